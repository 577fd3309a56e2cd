//! Partitions that publishers share by leases: this project's own first user.
//!
//! Owns the leases. Asks the lease store through its client. Asked by the publisher. Stops when the guard is dropped, and
//! lets go of the leases then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fence_client::{FenceClient, Lease};
use tokio::sync::watch;

use crate::store::Share;
use crate::types::Partition;

/// How long a partition stays with a publisher that died.
const TTL: Duration = Duration::from_secs(10);
/// How often free partitions are looked for: a share of [`TTL`], so that a dead publisher's partitions move on soon.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Takes and holds the leases of partitions.
///
/// It takes free ones up to its number, so to share the work among N publishers, let each take a bit more than one Nth:
/// the rest takes over what a dead one leaves.
#[derive(Debug)]
pub struct LeaseGuard {
    held: Arc<Held>,
    stop: watch::Sender<()>,
}

type Held = Mutex<BTreeMap<Partition, Lease>>;

impl LeaseGuard {
    /// Guards up to `partitions_max` partitions of the ledger called `name` by leases of `client`'s store.
    /// Publishers of one ledger name it alike.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(client: FenceClient, name: &str, partitions_max: usize) -> Self {
        let held = Arc::new(Held::default());
        let (stop, stopping) = watch::channel(());
        let seeker = Seeker {
            client,
            name: name.to_owned(),
            partitions_max,
            held: Arc::clone(&held),
        };
        super::publisher::spawn(seeker.run(stopping));
        Self { held, stop }
    }

    /// Partitions whose lease is good now.
    #[must_use]
    pub fn partitions(&self) -> Vec<Partition> {
        let held = lock(&self.held);
        let good = held.iter().filter(|(_, lease)| lease.is_valid());
        good.map(|(partition, _)| *partition).collect()
    }

    /// Waits until it holds `partitions` of them, and no more are lost meanwhile.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait_until_held(&self, partitions: usize) {
        while self.partitions().len() < partitions {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) fn shares(&self) -> Vec<Share> {
        let held = lock(&self.held);
        let good = held.iter().filter(|(_, lease)| lease.is_valid());
        good.map(|(partition, lease)| Share {
            partition: *partition,
            guard: Some(lease.fence()),
        })
        .collect()
    }

    /// Dropping a lease lets go of it.
    pub(super) fn lose(&self, lost: &[Partition]) {
        let mut held = lock(&self.held);
        for partition in lost {
            held.remove(partition);
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.stop.send_replace(());
        lock(&self.held).clear();
    }
}

fn lock(held: &Held) -> MutexGuard<'_, BTreeMap<Partition, Lease>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Seeker {
    client: FenceClient,
    name: String,
    partitions_max: usize,
    held: Arc<Held>,
}

impl Seeker {
    async fn run(self, mut stopping: watch::Receiver<()>) {
        loop {
            tokio::select! {
                biased;
                _ = stopping.changed() => return,
                () = self.look() => {}
            }
            tokio::select! {
                biased;
                _ = stopping.changed() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Forgets what is lost, and takes what is free.
    async fn look(&self) {
        lock(&self.held).retain(|_, lease| lease.is_valid());
        for partition in Partition::all() {
            let (has_it, enough) = {
                let held = lock(&self.held);
                (held.contains_key(&partition), held.len() >= self.partitions_max)
            };
            if enough {
                return;
            }
            if has_it {
                continue;
            }
            let name = format!("reward-ledger:{}:outbox:{partition}", self.name);
            // Held by others, or the store is away: the next look tells.
            if let Ok(lease) = self.client.lease(name).ttl(TTL).try_acquire().await {
                lock(&self.held).insert(partition, lease);
            }
        }
    }
}
