//! Puts the planned faults on each request of any transport.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use lease_core::wire::{ErrorWord, Reply};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::info_span;

use super::faults::{Fault, Faults, GateWatch};
use crate::call_error::CallError;
use crate::tasks;
use crate::transport::{Answered, Call, Lane, Request, Transport};

#[derive(Debug)]
pub(super) struct Faulty {
    inner: Arc<dyn Transport>,
    faults: Arc<Faults>,
}

impl Faulty {
    pub(super) fn new(inner: Arc<dyn Transport>, faults: Arc<Faults>) -> Self {
        Self { inner, faults }
    }

    async fn send(&self, lane: Lane, request: Request) -> Result<Answered, CallError> {
        self.faults.running().await;
        let (verb, patience) = (request.verb, request.patience);
        let fault = self.faults.take(verb);
        if matches!(fault, Some(Fault::LoseRequest)) || self.faults.is_cut() {
            return Err(CallError::NotSent { patience });
        }
        if !self.faults.has_leader() {
            return Ok(self.no_leader());
        }
        let broken = CallError::Broken {
            kind: io::ErrorKind::ConnectionReset,
        };
        let asked = self.counted(request);
        let answered = match fault {
            Some(Fault::HoldRequest(gate)) => return self.send_late(lane, asked, gate).await,
            _ => tokio::select! {
                biased;
                () = self.faults.cut_off() => return Err(broken),
                answered = self.inner.call(lane, asked) => answered,
            },
        };
        match fault {
            Some(Fault::LoseAnswer) if answered.is_ok() => return Err(broken),
            Some(Fault::DelayAnswer(delay)) => sleep(delay).await,
            Some(Fault::HoldAnswer(gate)) => gate.pass().await,
            Some(Fault::LoseRequest | Fault::HoldRequest(_) | Fault::LoseAnswer) | None => {}
        }
        self.faults.running().await;
        if !self.faults.is_connected() {
            return Err(broken);
        }
        answered
    }

    /// What a node of a cluster without a leader answers.
    fn no_leader(&self) -> Answered {
        Answered {
            reply: Reply::error(ErrorWord::ClusterDown, "no leader is known"),
            sent: self.faults.now(),
        }
    }

    /// Takes note when the request leaves.
    fn counted(&self, request: Request) -> Request {
        let faults = Arc::clone(&self.faults);
        let (verb, patience) = (request.verb, request.patience);
        Request::prepared(verb, patience, move || {
            let command = request.into_command()?;
            faults.count_sent(verb);
            Some(command)
        })
    }

    /// The request leaves now and arrives when the gate is opened, whether or not somebody still waits for its answer.
    async fn send_late(&self, lane: Lane, request: Request, gate: GateWatch) -> Result<Answered, CallError> {
        let patience = request.patience;
        let sent = self.faults.now();
        let command = request.into_command().ok_or(CallError::Withdrawn)?;
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        tasks::spawn(info_span!("late request"), async move {
            gate.pass().await;
            let answered = inner.call(lane, Request::new(command, patience)).await;
            let _ = reply.send(answered.map(|answered| Answered { sent, ..answered }));
        });
        answer.await.unwrap_or(Err(CallError::Stopped))
    }
}

impl Transport for Faulty {
    fn call(&self, lane: Lane, request: Request) -> Call<'_> {
        let patience = request.patience;
        Box::pin(async move {
            match timeout(patience, self.send(lane, request)).await {
                Ok(answered) => answered,
                Err(_) => {
                    // A paused client does not even notice that its time is over.
                    self.faults.running().await;
                    Err(CallError::NoAnswer { patience })
                }
            }
        })
    }

    fn reach(&self) -> Pin<Box<dyn Future<Output = Result<(), CallError>> + Send + '_>> {
        self.inner.reach()
    }
}
