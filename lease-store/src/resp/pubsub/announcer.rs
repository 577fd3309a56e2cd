//! Tells subscribers what the log says: messages, and what becomes of leases.
//!
//! Owns: the feed of what was applied here. Asks: nobody. Asked by: nobody. Stops: when the server stops.
//!
//! Whoever applies entries never waits for it. If it falls behind, the feed says so, and everybody who listens is cut off.

use std::sync::Arc;

use lease_core::SharedBytes;
use lease_core::machine::EndReason;
use tokio::sync::watch;

use super::topics::Pubsub;
use crate::events::{Feed, LeaseEvent, LeaseEventKind, News};

/// What stands before a lease's name in the name of its channel.
const LEASE_CHANNEL: &[u8] = b"lease:";

/// The task that tells.
#[derive(Debug)]
pub(crate) struct Announcer {
    pub(in crate::resp) feed: Feed,
    pub(in crate::resp) pubsub: Arc<Pubsub>,
}

impl Announcer {
    /// Tells until `stop` is closed or set.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<()>) {
        loop {
            let news = tokio::select! {
                biased;
                // A change or a closed channel: the server stops.
                _ = stop.changed() => break,
                news = self.feed.next() => news,
            };
            match news {
                None => break,
                Some(Err(_)) => {
                    tracing::warn!("subscribers are cut off: this node could not follow what it applied");
                    self.pubsub.cut_all();
                }
                Some(Ok(batch)) => batch.iter().for_each(|news| self.tell(news)),
            }
            // A long batch shall not hold up connections.
            tokio::task::yield_now().await;
        }
    }

    fn tell(&self, news: &News) {
        match news {
            News::Said { channel, message } => self.pubsub.tell(channel, message),
            News::Lease(event) => self.pubsub.tell(&channel_of(event), &payload_of(event)),
        }
    }
}

fn channel_of(event: &LeaseEvent) -> SharedBytes {
    SharedBytes::from([LEASE_CHANNEL, event.key.name.as_bytes()].concat())
}

/// `granted TOKEN DATABASE` or `ended TOKEN DATABASE REASON`. The owner is left out: whoever knows it can release the key.
fn payload_of(event: &LeaseEvent) -> SharedBytes {
    let (token, database) = (event.token, event.key.database);
    match &event.kind {
        LeaseEventKind::Granted => SharedBytes::from(format!("granted {token} {database}").as_str()),
        LeaseEventKind::Ended { reason } => {
            let mut text = format!("ended {token} {database} {}", word_of(reason)).into_bytes();
            if let EndReason::Forced { reason } = reason
                && !reason.is_empty()
            {
                text.push(b':');
                text.extend_from_slice(reason.as_slice());
            }
            SharedBytes::from(text)
        }
    }
}

/// As `LEASE.RENEW` says it.
const fn word_of(reason: &EndReason) -> &'static str {
    match reason {
        EndReason::Expired => "expired",
        EndReason::Released => "released",
        EndReason::Forced { .. } => "forced",
        EndReason::Superseded => "superseded",
        EndReason::Overridden => "overridden",
        EndReason::Orphaned => "orphaned",
        EndReason::Cancelled => "cancelled",
        EndReason::Unknown => "unknown",
    }
}
