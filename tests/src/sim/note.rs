//! What is noted during a run: the history, what happened when, how often, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lease_store::simulation::true_time;

use super::belief::Belief;
use super::coverage::Coverage;
use crate::history::{Micros, Outage, Record};

/// Lines of a trace that are kept; a run has some ten thousand.
const TRACE_LINES_MAX: usize = 400_000;

/// The book of a run.
#[derive(Debug, Default)]
pub(super) struct Notes {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    records: Vec<Record>,
    beliefs: Vec<Belief>,
    trace: Vec<String>,
    coverage: Coverage,
    wrong: Vec<String>,
    outages: Vec<Outage>,
    /// Since when the cluster may not be served by a leader.
    disturbed_since: Option<Micros>,
    faults_on: u32,
    fingerprints: BTreeMap<u64, (u64, u64)>,
    /// Owners whose request was, by every word they got, never applied; and owners that somebody was shown.
    never_applied: BTreeSet<String>,
    shown: BTreeSet<String>,
}

/// What a run leaves behind.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) records: Vec<Record>,
    pub(super) beliefs: Vec<Belief>,
    pub(super) trace: Vec<String>,
    pub(super) coverage: Coverage,
    pub(super) wrong: Vec<String>,
    pub(super) outages: Vec<Outage>,
}

/// Now, as the history counts it.
pub(super) fn now() -> Micros {
    u64::try_from(true_time().as_micros()).unwrap_or(u64::MAX)
}

impl Notes {
    pub(super) fn record(&self, record: Record) {
        let said = format!(
            "c{} {:?} {} {:?} {:?} from {} token {:?} ms {:?}",
            record.process,
            record.op,
            record.resource,
            record.request_id.as_deref().unwrap_or_default(),
            record.outcome,
            record.call,
            record.token,
            record.ttl_ms
        );
        self.say(&said);
        let kind = format!("{:?} {:?}", record.op, record.outcome).to_lowercase();
        self.count(&kind);
        self.lock().records.push(record);
    }

    pub(super) fn belief(&self, belief: Belief) {
        self.lock().beliefs.push(belief);
    }

    pub(super) fn say(&self, what: &str) {
        let mut inside = self.lock();
        if inside.trace.len() < TRACE_LINES_MAX {
            let mut line = String::with_capacity(what.len() + 16);
            let _ = write!(line, "{:>10} {what}", now());
            inside.trace.push(line);
        }
    }

    pub(super) fn count(&self, kind: &str) {
        self.add(kind, 1);
    }

    pub(super) fn add(&self, kind: &str, by: u64) {
        self.lock().coverage.add(kind, by);
    }

    /// Something that must not be.
    pub(super) fn wrong(&self, what: String) {
        self.say(&format!("WRONG {what}"));
        self.lock().wrong.push(what);
    }

    /// A fault begins that can leave the cluster without a leader.
    pub(super) fn fault_on(&self) {
        let mut inside = self.lock();
        inside.faults_on += 1;
        inside.disturbed_since.get_or_insert_with(now);
    }

    /// It is over; the cluster may not be back yet.
    pub(super) fn fault_off(&self) {
        let mut inside = self.lock();
        inside.faults_on = inside.faults_on.saturating_sub(1);
    }

    /// Whether the cluster may be back, and nobody has seen it yet.
    pub(super) fn may_be_back(&self) -> bool {
        let inside = self.lock();
        inside.faults_on == 0 && inside.disturbed_since.is_some()
    }

    /// It was seen to serve, by something that was asked for at `asked`.
    pub(super) fn serves_again(&self) {
        let mut inside = self.lock();
        if inside.faults_on == 0
            && let Some(from) = inside.disturbed_since.take()
        {
            inside.outages.push(Outage { from, to: now() });
        }
    }

    /// The state of a node's machine at an index: it must be that of every other node there.
    pub(super) fn fingerprint(&self, node: u64, applied_next: u64, state: u64) {
        let mut inside = self.lock();
        let known = *inside.fingerprints.entry(applied_next).or_insert((node, state));
        if known.1 != state {
            drop(inside);
            self.wrong(format!(
                "the machines of nodes {} and {node} differ before entry {applied_next}",
                known.0
            ));
        } else if known.0 != node {
            inside.coverage.add("machines compared", 1);
        }
    }

    /// Every attempt of this owner was answered with the word that nothing was applied.
    pub(super) fn never_applied(&self, owner: &str) {
        self.lock().never_applied.insert(owner.to_owned());
    }

    /// Somebody was told that this owner holds a lease.
    pub(super) fn shown(&self, owner: &[u8]) {
        let owner = String::from_utf8_lossy(owner).into_owned();
        self.lock().shown.insert(owner);
    }

    pub(super) fn take(&self) -> Noted {
        let mut inside = std::mem::take(&mut *self.lock());
        inside.outages.extend(inside.disturbed_since.map(|from| Outage {
            from,
            to: Micros::MAX,
        }));
        for owner in inside.never_applied.intersection(&inside.shown) {
            let text = format!("{owner} was told that nothing was applied, and held a lease");
            inside.wrong.push(text);
        }
        Noted {
            records: inside.records,
            beliefs: inside.beliefs,
            trace: inside.trace,
            coverage: inside.coverage,
            wrong: inside.wrong,
            outages: inside.outages,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
