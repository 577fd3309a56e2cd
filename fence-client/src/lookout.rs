//! Looks after the endpoints of a client: which of them leads, and which has fallen silent.
//!
//! Owns: nothing. Asks: each server, over a short connection. Asked by: nobody; it tells [`Failover`]. Stops: when the
//! client's connections are dropped.
//!
//! A wait holds up its connection, so nothing on it shows that its server still lives: without a look a client whose
//! server stands still would keep waiting there while the cluster strikes its place.
//!
//! [`Failover`]: crate::failover::Failover

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lease_core::wire::{LeaderReply, LeaseCommand};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::info_span;

use crate::call_error::CallError;
use crate::clock::timer_now;
use crate::link::Dialer;
use crate::tasks;
use crate::transport::Request;

/// Between two looks: a hop that is saved is worth little, and many clients may look.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Between two looks while acquires wait: with the time that a server may take to answer it must stay below the 5 s of
/// silence after which a cluster strikes the waits of a node.
const LOOK_EVERY_WAITING: Duration = Duration::from_secs(2);

/// Ends the lookout when it is dropped.
#[derive(Debug)]
pub(crate) struct LookoutHandle {
    _stop: oneshot::Sender<()>,
}

impl LookoutHandle {
    /// Looks from now on; `None` with a single endpoint, since there is nowhere else to go.
    pub(crate) fn spawn(dialer: &Arc<Dialer>) -> Option<Self> {
        if dialer.failover.len() < 2 {
            return None;
        }
        let (stop, stopped) = oneshot::channel();
        let lookout = Lookout {
            dialer: Arc::clone(dialer),
        };
        tasks::spawn(info_span!("lookout"), lookout.run(stopped));
        Some(Self { _stop: stop })
    }
}

struct Lookout {
    dialer: Arc<Dialer>,
}

impl Lookout {
    async fn run(self, stopped: oneshot::Receiver<()>) {
        let looking = async {
            loop {
                join_all((0..self.dialer.failover.len()).map(|index| self.look_at(index))).await;
                self.pause().await;
            }
        };
        tokio::select! {
            biased;
            _ = stopped => {}
            () = looking => {}
        }
    }

    async fn pause(&self) {
        let waiting = async {
            self.dialer.failover.has_waits().await;
            sleep(LOOK_EVERY_WAITING).await;
        };
        tokio::select! {
            biased;
            () = waiting => {}
            () = sleep(LOOK_EVERY) => {}
        }
    }

    async fn look_at(&self, index: usize) {
        let asked = timeout(self.dialer.connect_timeout, self.ask(index)).await;
        match asked {
            Ok(Ok(reply)) => self.dialer.failover.told(index, reply),
            // It answers, and gives no hint: an older version, or one that wants a password.
            Ok(Err(CallError::Answer { .. } | CallError::Greeting { .. } | CallError::Garbled { .. })) => {}
            Ok(Err(_)) | Err(_) => self.dialer.failover.found_silent(index),
        }
    }

    async fn ask(&self, index: usize) -> Result<LeaderReply, CallError> {
        let patience = self.dialer.connect_timeout;
        let connection = self.dialer.dial_one(index).await?;
        let request = Request::new(LeaseCommand::Leader, patience);
        let answered = connection.call(request, timer_now() + patience).await?;
        Ok(LeaderReply::from_reply(answered.reply)?)
    }
}
