//! The way of a request from a client to a node and back: it takes time, and either way can lose it.
//!
//! A client that gives up hangs up, and its node learns of it as a server does of a broken connection: the call is
//! dropped there.

use std::time::Duration;

use lease_core::machine::Set;
use lease_core::wire::{
    AcquireCommand, AcquireReply, CancelReply, ForceReply, GetReply, ReleaseReply, RenewCommand,
    RenewManyCommand, RenewManyReply, RenewReply,
};
use lease_core::{Database, FenceToken, LeaseName, OwnerId, RequestId, SharedBytes};
use lease_store::peers::memory::WIRES;
use lease_store::runtime::{AsyncRuntime as _, Rt as _, Select2};
use lease_store::simulation::NodeRt;
use lease_store::{CallError, Stored};
use tokio::sync::oneshot;

use super::stage::{SimStore, Stage};
use crate::random::Random;

/// What a client asks.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    Acquire(AcquireCommand),
    Set(Set),
    Renew(RenewCommand),
    RenewMany(RenewManyCommand),
    Release(LeaseName, FenceToken),
    Cancel(LeaseName, OwnerId, RequestId),
    Force(LeaseName),
    Get(LeaseName),
}

/// What a node answers.
#[derive(Debug)]
pub(super) enum Answer {
    Acquire(AcquireReply),
    Set(Stored),
    Renew(RenewReply),
    RenewMany(RenewManyReply),
    Release(ReleaseReply),
    Cancel(CancelReply),
    Force(ForceReply),
    Get(GetReply),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Nothing was applied.
    NotApplied,
    /// It may have been applied.
    Unknown,
}

/// What becomes of one request on its way.
#[derive(Debug, Clone, Copy)]
struct Fate {
    there: Duration,
    back: Duration,
    loss: Loss,
    hang_up: HangUp,
}

/// What of it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Nothing,
    Request,
    Answer,
}

/// Whether the node learns that a client has hung up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HangUp {
    Heard,
    Unheard,
}

impl Fate {
    fn draw(random: &mut Random) -> Self {
        let mut takes = || {
            let most_us = match random.below(1_000) {
                0..4 => 2_500_000,
                4..40 => 200_000,
                _ => 3_000,
            };
            Duration::from_micros(50 + random.below(most_us))
        };
        let (there, back) = (takes(), takes());
        Self {
            there,
            back,
            loss: match random.below(1_000) {
                0..12 => Loss::Request,
                12..32 => Loss::Answer,
                _ => Loss::Nothing,
            },
            hang_up: match random.percent(80) {
                true => HangUp::Heard,
                false => HangUp::Unheard,
            },
        }
    }
}

/// Sends a request to a node, and waits for the answer, at most for `within` on the client's clock.
pub(super) async fn ask(
    stage: &Stage,
    random: &mut Random,
    node: u64,
    asked: Ask,
    within: Duration,
) -> Result<Answer, NoAnswer> {
    let fate = Fate::draw(random);
    let (tell, told) = oneshot::channel();
    drop(NodeRt::spawn_on(
        WIRES,
        carry(stage.clone(), fate, node, asked, tell),
    ));
    match NodeRt::timeout(within, told).await {
        Ok(Ok(answer)) => answer,
        // The connection broke, or there was no answer in time.
        Ok(Err(_)) | Err(_) => Err(NoAnswer::Unknown),
    }
}

async fn carry(
    stage: Stage,
    fate: Fate,
    node: u64,
    asked: Ask,
    mut tell: oneshot::Sender<Result<Answer, NoAnswer>>,
) {
    NodeRt::sleep(fate.there).await;
    if fate.loss == Loss::Request {
        stage.notes().count("request lost");
        return tell.closed().await;
    }
    let Some(store) = stage.store(node) else {
        stage.notes().count("connection refused");
        NodeRt::sleep(fate.back).await;
        drop(tell.send(Err(NoAnswer::NotApplied)));
        return;
    };
    let (mut done, answered) = oneshot::channel();
    drop(NodeRt::spawn_on(node, async move {
        let answer = NodeRt::select2(serve(&store, asked), done.closed()).await;
        if let Select2::First(answer) = answer {
            // A client that is gone needs no answer.
            drop(done.send(answer));
        }
    }));
    let mut answered = answered;
    let answer = match NodeRt::select2(&mut answered, tell.closed()).await {
        Select2::First(answer) => answer,
        Select2::Second(()) => {
            stage.notes().count("client hung up");
            if fate.hang_up == HangUp::Heard {
                NodeRt::sleep(fate.there).await;
            } else {
                drop(answered.await);
            }
            return;
        }
    };
    NodeRt::sleep(fate.back).await;
    if fate.loss == Loss::Answer {
        stage.notes().count("answer lost");
        return tell.closed().await;
    }
    // No answer: the node crashed, and the connection breaks.
    drop(tell.send(answer.unwrap_or(Err(NoAnswer::Unknown))));
}

async fn serve(store: &SimStore, asked: Ask) -> Result<Answer, NoAnswer> {
    let zero = Database::ZERO;
    let answer = match asked {
        Ask::Acquire(command) => store.acquire(zero, command).await.map(Answer::Acquire),
        Ask::Set(set) => store.set(set).await.map(Answer::Set),
        Ask::Renew(command) => store.renew(zero, command).await.map(Answer::Renew),
        Ask::RenewMany(command) => store.renew_many(zero, command).await.map(Answer::RenewMany),
        Ask::Release(name, token) => store.release(zero, name, token).await.map(Answer::Release),
        Ask::Cancel(name, owner, request) => {
            store.cancel(zero, name, owner, request).await.map(Answer::Cancel)
        }
        Ask::Force(name) => store
            .force(zero, name, SharedBytes::from(b"simulated".to_vec()))
            .await
            .map(Answer::Force),
        Ask::Get(name) => store.get(zero, name).await.map(Answer::Get),
    };
    answer.map_err(|error| told(&error))
}

fn told(error: &CallError) -> NoAnswer {
    if error.may_have_applied() {
        NoAnswer::Unknown
    } else {
        NoAnswer::NotApplied
    }
}
