//! A test kit for programs that hold leases: the faults that are hard to meet otherwise, at will, over any transport.
//!
//! ```no_run
//! # use fence_client::{FenceClient, ShortDurations as _, testing::TestKit};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let kit = TestKit::new();
//! let client = FenceClient::builder().test_kit(&kit).connect("127.0.0.1:7420").await?;
//! let lease = client.lease("a").ttl(1.secs()).acquire().await?;
//!
//! kit.pause();
//! tokio::time::sleep(2.secs()).await;
//! // As after a long pause of the process: it still believes that it holds the lease, and somebody else may, too.
//! assert!(lease.is_valid());
//!
//! kit.resume();
//! assert!(!lease.is_valid());
//! # Ok(())
//! # }
//! ```

pub mod decisions;
mod faults;
mod manual_clock;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use lease_core::wire::LeaseVerb;

use crate::clock::{Clock, Moment};
use crate::lease::Lease;
use crate::transport::Transport;
use faults::{Fault, Faults};
use transport::Faulty;

pub use faults::Gate;
pub use manual_clock::ManualClock;

/// Puts faults between one client and its store. Cloning gives another handle on the same faults.
#[derive(Debug, Clone)]
pub struct TestKit {
    faults: Arc<Faults>,
}

impl TestKit {
    /// No faults yet, on the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            faults: Arc::new(Faults::new(Clock::SYSTEM)),
        }
    }

    /// No faults yet, on a clock that the test moves.
    #[must_use]
    pub fn with_clock(clock: &ManualClock) -> Self {
        Self {
            faults: Arc::new(Faults::new(clock.clock())),
        }
    }

    /// The next request of this kind reaches the store, and its answer is lost.
    pub fn lose_next_answer(&self, verb: LeaseVerb) {
        self.faults.plan(verb, Fault::LoseAnswer);
    }

    /// The next request of this kind is not sent: its connection breaks before.
    pub fn lose_next_request(&self, verb: LeaseVerb) {
        self.faults.plan(verb, Fault::LoseRequest);
    }

    /// The answer to the next request of this kind is late by `delay`.
    pub fn delay_next_answer(&self, verb: LeaseVerb, delay: Duration) {
        self.faults.plan(verb, Fault::DelayAnswer(delay));
    }

    /// The answer to the next request of this kind stays away until the gate is opened, or dropped. The client waits
    /// no longer for it than it would otherwise.
    pub fn hold_next_answer(&self, verb: LeaseVerb) -> Gate {
        let (gate, opened) = Gate::new();
        self.faults.plan(verb, Fault::HoldAnswer(opened));
        gate
    }

    /// The next request of this kind is slow on its way: it reaches the store once the gate is opened, or dropped,
    /// also when the client has long given up waiting for its answer.
    pub fn hold_next_request(&self, verb: LeaseVerb) -> Gate {
        let (gate, opened) = Gate::new();
        self.faults.plan(verb, Fault::HoldRequest(opened));
        gate
    }

    /// Cuts the network: no request is sent, and no answer arrives, until [`TestKit::heal`].
    pub fn cut(&self) {
        self.faults.set_cut();
    }

    /// Forgets the faults that are planned and have not happened yet.
    pub fn clear(&self) {
        self.faults.clear();
    }

    /// Puts the network back.
    pub fn heal(&self) {
        self.faults.heal();
    }

    /// Takes the store's leader away, as the death of that node does: requests under way break without an answer, and
    /// may have been applied; every other one is answered that there is no leader, until [`TestKit::elect_leader`].
    pub fn lose_leader(&self) {
        self.faults.lose_leader();
    }

    /// The store has a leader again.
    pub fn elect_leader(&self) {
        self.faults.elect_leader();
    }

    /// Stops the client as a pause of its process does: it sends nothing, takes no answer in, raises no loss, and its
    /// clock shows the time of the pause, so that it goes on believing what it believed. The store's time goes on.
    pub fn pause(&self) {
        self.faults.pause();
    }

    /// Lets the client go on. Its clock shows the real time at once.
    pub fn resume(&self) {
        self.faults.resume();
    }

    /// Moves a lease's deadline to now: the loss is raised as if no renewal had been confirmed in time. In the store
    /// the lease ends with its time to live; to have somebody else get it at once, end it there too
    /// ([`crate::FenceClient::force`]).
    pub fn expire_now(&self, lease: &Lease) {
        lease.hold().set_deadline(Moment::from_nanos(0));
    }

    /// How many requests of this kind were sent.
    #[must_use]
    pub fn sent(&self, verb: LeaseVerb) -> u64 {
        self.faults.sent(verb)
    }

    pub(crate) fn clock(&self) -> Clock {
        self.faults.clock()
    }

    pub(crate) fn wrap(&self, transport: Arc<dyn Transport>) -> Arc<dyn Transport> {
        Arc::new(Faulty::new(transport, Arc::clone(&self.faults)))
    }
}

impl Default for TestKit {
    fn default() -> Self {
        Self::new()
    }
}
