//! The beginning of a cluster: who is there, and whether they may form one.
//!
//! It leaves to Raft everything after the first entry, and to [`decide`] the rule.

mod decide;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::peers::{Kind, Lane, PeerTransport};
use crate::runtime::Rt;

pub use decide::FormationError;
pub(crate) use decide::{Decision, Stage, Standing};

/// How often the others are asked.
const PROBE_EVERY: Duration = Duration::from_millis(300);
/// How long one may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// After so many rounds it is said who is waited for.
const SAY_EVERY_ROUNDS: u32 = 16;

/// What this node tells whoever probes it. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct OwnStanding(Arc<Mutex<Standing>>);

impl OwnStanding {
    pub(crate) fn new(standing: Standing) -> Self {
        Self(Arc::new(Mutex::new(standing)))
    }

    pub(crate) fn get(&self) -> Standing {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn advance(&self, stage: Stage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).stage = stage;
    }

    fn saw_alike(&self, nodes: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).alike = nodes;
    }

    /// The answer to a probe; what the other says of itself is asked for, not taken from its probes.
    pub(crate) fn answer(&self) -> Bytes {
        wire::encode(&self.get())
    }
}

/// Asks the others until it is known whether to form a cluster, or to go on with one. It waits for as long as it takes.
///
/// # Errors
/// [`FormationError`] if this node must not start.
///
/// # Cancel safety
/// Cancel safe: nothing is changed.
pub(crate) async fn settle<R: Rt, T: PeerTransport>(
    own: u64,
    standing: &OwnStanding,
    peers: &T,
) -> Result<Decision, FormationError> {
    let mut named = Vec::new();
    for round in 0_u32.. {
        let ours = standing.get();
        let answers = probe_all(own, standing, peers).await;
        let decided = decide::decide(own, &ours, &answers)?;
        if decided != Decision::Wait {
            return Ok(decided);
        }
        let unlike = decide::unlike(&ours, &answers);
        if round.is_multiple_of(SAY_EVERY_ROUNDS) || named != unlike {
            say_who_is_waited_for(&unlike, &answers);
        }
        named = unlike;
        R::sleep(PROBE_EVERY).await;
    }
    Ok(Decision::Wait)
}

/// Waits until all others have agreed to the cluster that this node agreed to. Only then may it begin: whoever still
/// looked for an empty cluster would take this one for somebody else's.
///
/// # Errors
/// [`FormationError`] if somebody agreed to another one.
///
/// # Cancel safety
/// Cancel safe: nothing is changed.
pub(crate) async fn await_agreement<R: Rt, T: PeerTransport>(
    own: u64,
    standing: &OwnStanding,
    peers: &T,
) -> Result<(), FormationError> {
    for round in 0_u32.. {
        let ours = standing.get();
        let answers = probe_all(own, standing, peers).await;
        if decide::all_agree(&ours, &answers)? {
            return Ok(());
        }
        // Mostly they need one more round, and nobody is to be named.
        if round > 0 && round.is_multiple_of(SAY_EVERY_ROUNDS) {
            say_who_is_waited_for(&decide::unlike(&ours, &answers), &answers);
        }
        R::sleep(PROBE_EVERY).await;
    }
    Ok(())
}

/// What the others answer; who of them has the same list is told to whoever asks this node from now on.
async fn probe_all<T: PeerTransport>(
    own: u64,
    standing: &OwnStanding,
    peers: &T,
) -> BTreeMap<u64, Option<Standing>> {
    let ours = standing.get();
    let others: Vec<u64> = ours.list.keys().copied().filter(|node| *node != own).collect();
    let probes = others.iter().map(|node| probe(*node, peers));
    let answers = others.iter().copied().zip(join_all(probes).await).collect();
    standing.saw_alike(decide::alike(&ours, &answers));
    answers
}

fn say_who_is_waited_for(unlike: &[u64], answers: &BTreeMap<u64, Option<Standing>>) {
    if !unlike.is_empty() {
        tracing::error!(
            nodes = ?unlike,
            "these nodes were started with another --cluster list: no cluster forms before all have the same list"
        );
    }
    let missing = answers.iter().filter(|(_, answer)| answer.is_none());
    let missing: Vec<u64> = missing.map(|(node, _)| *node).collect();
    tracing::info!(?missing, "waiting for the other nodes to form a cluster");
}

async fn probe<T: PeerTransport>(node: u64, peers: &T) -> Option<Standing> {
    let called = peers.call(
        node,
        Lane::Formation,
        Kind::FormationProbe,
        Bytes::new(),
        ANSWER_WITHIN,
    );
    match called.await {
        Ok(answer) => wire::decode(answer)
            .inspect_err(|error| tracing::warn!(node, %error, "a peer's answer cannot be read"))
            .ok(),
        Err(error) => {
            tracing::debug!(node, %error, "a peer does not answer yet");
            None
        }
    }
}
