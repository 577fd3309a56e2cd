//! The faults that are planned, and whether the client is paused or cut off.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lease_core::wire::LeaseVerb;
use tokio::sync::watch;

use crate::clock::{Clock, Moment};

/// Keeps one answer or request back; opening or dropping it lets it through.
#[derive(Debug)]
#[must_use = "a gate that is dropped is open"]
pub struct Gate(watch::Sender<Opened>);

/// How far the fault behind a gate has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    Waiting,
    Reached,
    Open,
}

impl Gate {
    pub(super) fn new() -> (Self, GateWatch) {
        let gate = watch::Sender::new(Opened::Waiting);
        let watch = GateWatch {
            gate: gate.clone(),
            opened: gate.subscribe(),
        };
        (Self(gate), watch)
    }

    /// Waits until something stands behind the gate.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn reached(&self) {
        // The sender lives as long as `self`.
        let _ = self
            .0
            .subscribe()
            .wait_for(|opened| *opened != Opened::Waiting)
            .await;
    }

    /// Lets it through.
    pub fn open(self) {
        drop(self);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.send_replace(Opened::Open);
    }
}

/// What stands behind a gate.
#[derive(Debug)]
pub(super) struct GateWatch {
    gate: watch::Sender<Opened>,
    opened: watch::Receiver<Opened>,
}

impl GateWatch {
    /// Waits until the gate is opened.
    pub(super) async fn pass(mut self) {
        self.gate.send_if_modified(|opened| {
            let first = *opened == Opened::Waiting;
            if first {
                *opened = Opened::Reached;
            }
            first
        });
        let _ = self.opened.wait_for(|opened| *opened == Opened::Open).await;
    }
}

/// What happens to one request.
#[derive(Debug)]
pub(super) enum Fault {
    LoseRequest,
    HoldRequest(GateWatch),
    LoseAnswer,
    DelayAnswer(Duration),
    HoldAnswer(GateWatch),
}

/// Whether the client runs, whether the network does, and whether the store has a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weather {
    frozen_at: Option<Moment>,
    cut: Network,
    leader: Leader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    Whole,
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leader {
    Elected,
    Lost,
}

#[derive(Debug)]
pub(super) struct Faults {
    clock: Clock,
    planned: Mutex<BTreeMap<LeaseVerb, VecDeque<Fault>>>,
    sent: Mutex<BTreeMap<LeaseVerb, u64>>,
    weather: watch::Sender<Weather>,
}

impl Faults {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            planned: Mutex::default(),
            sent: Mutex::default(),
            weather: watch::Sender::new(Weather {
                frozen_at: None,
                cut: Network::Whole,
                leader: Leader::Elected,
            }),
        }
    }

    pub(super) fn plan(&self, verb: LeaseVerb, fault: Fault) {
        lock(&self.planned).entry(verb).or_default().push_back(fault);
    }

    pub(super) fn clear(&self) {
        lock(&self.planned).clear();
    }

    pub(super) fn take(&self, verb: LeaseVerb) -> Option<Fault> {
        lock(&self.planned).get_mut(&verb)?.pop_front()
    }

    pub(super) fn count_sent(&self, verb: LeaseVerb) {
        let mut sent = lock(&self.sent);
        let count = sent.entry(verb).or_default();
        *count = count.saturating_add(1);
    }

    pub(super) fn sent(&self, verb: LeaseVerb) -> u64 {
        lock(&self.sent).get(&verb).copied().unwrap_or(0)
    }

    pub(super) fn set_cut(&self) {
        self.weather.send_modify(|weather| weather.cut = Network::Cut);
    }

    pub(super) fn heal(&self) {
        self.weather.send_modify(|weather| weather.cut = Network::Whole);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.weather.borrow().cut == Network::Cut
    }

    pub(super) fn lose_leader(&self) {
        self.weather.send_modify(|weather| weather.leader = Leader::Lost);
    }

    pub(super) fn elect_leader(&self) {
        self.weather
            .send_modify(|weather| weather.leader = Leader::Elected);
    }

    /// Whether answers can arrive.
    pub(super) fn is_connected(&self) -> bool {
        !self.is_cut() && self.has_leader()
    }

    pub(super) fn has_leader(&self) -> bool {
        self.weather.borrow().leader == Leader::Elected
    }

    pub(super) fn pause(&self) {
        let now = self.clock.now();
        self.weather.send_modify(|weather| {
            weather.frozen_at.get_or_insert(now);
        });
    }

    pub(super) fn resume(&self) {
        self.weather.send_modify(|weather| weather.frozen_at = None);
    }

    /// Waits until the client runs.
    pub(super) async fn running(&self) {
        let _ = self
            .weather
            .subscribe()
            .wait_for(|weather| weather.frozen_at.is_none())
            .await;
    }

    /// Waits until the network is cut, or the leader lost: no answer to what is under way will arrive.
    pub(super) async fn cut_off(&self) {
        let _ = self
            .weather
            .subscribe()
            .wait_for(|weather| weather.cut == Network::Cut || weather.leader == Leader::Lost)
            .await;
    }

    /// The time as the client sees it.
    pub(super) fn now(&self) -> Moment {
        self.weather
            .borrow()
            .frozen_at
            .unwrap_or_else(|| self.clock.now())
    }

    /// The clock as the client sees it.
    pub(super) fn clock(self: &Arc<Self>) -> Clock {
        let faults = Arc::clone(self);
        Clock::from_fn(move || faults.now())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
