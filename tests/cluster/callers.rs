//! Clients that are at it while something happens to the cluster, until they are told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tests::Client;

use crate::trio::Trio;

/// Clients at work.
pub(crate) struct Callers<T> {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<T>>,
}

/// Whether a client goes on.
pub(crate) struct GoesOn(Arc<AtomicBool>);

impl GoesOn {
    pub(crate) fn yet(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> Callers<T> {
    /// So many clients of each of these nodes; each is given a name of its own, among those of a round.
    pub(crate) fn of(
        trio: &Trio,
        (nodes, each): (&[u64], usize),
        round: usize,
        work: fn(&GoesOn, Client, &str) -> T,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let clients = nodes
            .iter()
            .flat_map(|node| (0..each).map(move |number| (*node, number)));
        let threads = clients.map(|(node, number)| {
            let (client, goes_on) = (trio.client(node), GoesOn(Arc::clone(&stop)));
            thread::spawn(move || work(&goes_on, client, &format!("{round}-{node}-{number}")))
        });
        let threads = threads.collect();
        Self { stop, threads }
    }

    /// Lets each finish what it has begun, and gives what each says.
    pub(crate) fn stop(self) -> Vec<T> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    }
}
