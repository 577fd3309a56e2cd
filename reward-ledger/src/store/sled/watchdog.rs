//! The watchdog: says loudly when the writer makes no step, so that callers are answered and a person looks.
//!
//! Owns nothing; asks nobody; asked by nobody. It reads the writer's progress and sled's first error, writes the health,
//! and stops when the writer drops its end of the channel. sled's own threads can fail without waking the writer that waits
//! for them, and deadlocks of sled under load are known: both end here instead of in silence.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use super::Stage;
use super::progress::Progress;
use crate::error::StorageFailure;
use crate::store::Health;

/// Looks in the time that the writer may be stuck for.
const LOOKS: u32 = 4;

/// Held by the writer; the watchdog ends when it is dropped.
#[derive(Debug)]
pub(super) struct Leash {
    _end: Sender<()>,
}

struct Watchdog {
    progress: Arc<Progress>,
    health: watch::Sender<Health>,
    /// Of the database, for its first error alone: it holds no file.
    sled: ::sled::Config,
    stuck_after: Duration,
    /// Report again once it is stuck for this long.
    report_after: Duration,
}

pub(super) fn spawn(
    progress: Arc<Progress>,
    health: watch::Sender<Health>,
    db: &::sled::Db,
    stuck_after: Duration,
) -> io::Result<Leash> {
    let (end, ended) = channel();
    let watchdog = Watchdog {
        progress,
        health,
        sled: ::sled::Config::clone(&db.context),
        stuck_after,
        report_after: stuck_after,
    };
    thread::Builder::new()
        .name("ledger-watchdog".to_owned())
        .spawn(move || watchdog.run(&ended))?;
    Ok(Leash { _end: end })
}

impl Watchdog {
    fn run(mut self, ended: &Receiver<()>) {
        while ended.recv_timeout(self.stuck_after / LOOKS) == Err(RecvTimeoutError::Timeout) {
            let (stage, lasted) = self.progress.look();
            if stage == Stage::Idle || lasted < self.stuck_after {
                self.on_moving();
            } else {
                self.on_stuck(stage, lasted);
            }
        }
    }

    fn on_moving(&mut self) {
        self.report_after = self.stuck_after;
        let recovered = self.health.send_if_modified(|health| {
            let stalled = matches!(health, Health::Stalled);
            if stalled {
                *health = Health::Serving;
            }
            stalled
        });
        if recovered {
            tracing::warn!("the ledger's writer moves again");
        }
    }

    fn on_stuck(&mut self, stage: Stage, lasted: Duration) {
        if lasted >= self.report_after {
            tracing::error!(%stage, ?lasted, "the ledger's writer is stuck");
            self.report_after = self.report_after.saturating_mul(2);
        }
        let failure = self
            .sled
            .global_error()
            .err()
            .map(|source| StorageFailure::Files {
                action: "write the database's buffers",
                source: source.into(),
            });
        if let Some(failure) = &failure {
            tracing::error!(error = ?failure, "the ledger stops at a storage error; stop this process");
        }
        self.health.send_if_modified(|health| match (&*health, failure) {
            (Health::Serving | Health::Stalled, Some(failure)) => {
                *health = Health::Stopped(Arc::new(failure));
                true
            }
            (Health::Serving, None) => {
                *health = Health::Stalled;
                true
            }
            _ => false,
        });
    }
}
