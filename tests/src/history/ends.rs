//! By when each lease of a history must be over at the latest, from what is known so far.

use std::collections::BTreeMap;

use super::grants::rate_error;
use super::record::{Micros, Op, Outcome, Record};

/// What is promised about a lease that nobody renews: it is over this soon after its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// For the entry that ends it to be committed, and told.
    pub commit: Micros,
    /// For each change of leaders, beside the time in which there was no quorum.
    pub leader_change: Micros,
}

/// A time in which the cluster may have had no leader with a quorum: its clock may have stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When the fault began.
    pub from: Micros,
    /// When the cluster was seen to serve again.
    pub to: Micros,
}

/// One attempt among all of a history.
pub type AttemptId = usize;

/// The leases and the attempts on one name.
#[derive(Debug, Default)]
struct Name {
    leases: BTreeMap<u64, Lease>,
    /// Acquires that are under way, or will never be answered, each with its request.
    open: BTreeMap<AttemptId, Option<String>>,
    /// The longest time that anybody ever asked for.
    longest_asked: Micros,
}

#[derive(Debug)]
struct Lease {
    /// When the last word about its time was told.
    told_at: Micros,
    /// Its end by that word. [`Micros::MAX`] if it has none.
    end: Micros,
    /// The longest time that it was given at once.
    longest: Micros,
    /// Renewals that are under way, or will never be answered, each with the time that it asks for.
    open: BTreeMap<AttemptId, Micros>,
    /// When it was known to be over, by its release or a later grant.
    over: Micros,
}

/// All that is known so far.
#[derive(Debug)]
pub(super) struct Ends {
    names: BTreeMap<String, Name>,
    outages: Vec<Outage>,
    promise: Promise,
}

impl Ends {
    pub(super) fn new(mut outages: Vec<Outage>, promise: Promise) -> Self {
        outages.sort_unstable_by_key(|outage| outage.from);
        Self {
            names: BTreeMap::new(),
            outages,
            promise,
        }
    }

    /// An attempt was sent.
    pub(super) fn called(&mut self, attempt: AttemptId, record: &Record) {
        if !matches!(record.op, Op::Acquire | Op::Renew) {
            return;
        }
        let asked = record.ttl_ms.map_or(Micros::MAX, micros);
        let name = self.names.entry(record.resource.clone()).or_default();
        if record.op == Op::Acquire {
            name.open.insert(attempt, record.request_id.clone());
            name.longest_asked = name.longest_asked.max(asked);
        } else if let Some(token) = record.token {
            // Of one that nobody was seen to be granted nothing is known.
            let unknown = || Lease::new(Micros::MAX, record.call);
            let lease = name.leases.entry(token).or_insert_with(unknown);
            lease.open.insert(attempt, asked);
        }
    }

    /// An attempt was answered.
    pub(super) fn answered(&mut self, attempt: AttemptId, record: &Record, at: Micros) {
        let name = self.names.entry(record.resource.clone()).or_default();
        name.open.remove(&attempt);
        match (record.op, record.outcome, record.token) {
            (Op::Acquire, Outcome::Ok, Some(token)) => {
                name.told(token, record.ttl_ms, at);
                name.settle(record.request_id.as_deref());
                for (_, before) in name.leases.range_mut(..token) {
                    before.over = before.over.min(at);
                }
            }
            (Op::Acquire, Outcome::Ended, token) => {
                name.settle(record.request_id.as_deref());
                if let Some(lease) = token.and_then(|token| name.leases.get_mut(&token)) {
                    lease.over = lease.over.min(at);
                }
            }
            (Op::Acquire, Outcome::Fail, Some(token)) | (Op::Read, Outcome::Ok, Some(token)) => {
                name.shown(token, at);
            }
            (Op::Renew, outcome, Some(token)) => {
                if let Some(lease) = name.leases.get_mut(&token) {
                    lease.open.remove(&attempt);
                }
                if outcome == Outcome::Ok {
                    name.told(token, record.ttl_ms, at);
                }
            }
            (Op::Release, Outcome::Ok, Some(token)) => {
                if let Some(lease) = name.leases.get_mut(&token) {
                    lease.over = lease.over.min(at);
                }
            }
            (Op::Force, Outcome::Ok, _) => {
                for lease in name
                    .leases
                    .values_mut()
                    .filter(|lease| lease.told_at < record.call)
                {
                    lease.over = lease.over.min(at);
                }
            }
            _ => {}
        }
    }

    /// By when nobody may be told any more that a lease stands; `None` if nothing is known of it.
    pub(super) fn gone_by(&self, resource: &str, token: u64) -> Option<Micros> {
        let lease = self.names.get(resource)?.leases.get(&token)?;
        Some(self.end_of(lease, self.promise.commit).min(lease.over))
    }

    /// The last moment to which a lease can last for one who asks at `asked`; `None` if nothing is known of it.
    ///
    /// A lease that is given back or forced while the question is under way may have been seen before that.
    pub(super) fn lasts_until(&self, resource: &str, token: u64, asked: Micros) -> Option<Micros> {
        let lease = self.names.get(resource)?.leases.get(&token)?;
        let end = self.end_of(lease, 0);
        Some(if lease.over <= asked {
            end.min(lease.over)
        } else {
            end
        })
    }

    /// By when a name must be free, unless somebody is granted it anew; `None` if somebody may be whom nobody saw.
    pub(super) fn free_by(&self, resource: &str) -> Option<Micros> {
        let name = self.names.get(resource)?;
        if !name.open.is_empty() {
            return None;
        }
        let ends = name
            .leases
            .values()
            .map(|lease| self.end_of(lease, self.promise.commit).min(lease.over));
        Some(ends.max().unwrap_or_default())
    }

    fn end_of(&self, lease: &Lease, commit: Micros) -> Micros {
        // Each open renewal may be applied when the lease is all but over.
        let open = lease
            .open
            .values()
            .map(|asked| asked.saturating_add(rate_error(*asked)).saturating_add(commit));
        let mut end = open.fold(lease.end, Micros::saturating_add);
        end = end
            .saturating_add(commit)
            .saturating_add(rate_error(lease.longest));
        for outage in &self.outages {
            if outage.from < end && outage.to > lease.told_at {
                let stood_still = outage.to.saturating_sub(outage.from.max(lease.told_at));
                end = end
                    .saturating_add(stood_still)
                    .saturating_add(self.promise.leader_change);
            }
        }
        end
    }
}

impl Name {
    /// Somebody was told that a lease has this time from here on, at the most.
    fn told(&mut self, token: u64, ttl_ms: Option<u64>, at: Micros) {
        let time = ttl_ms.map_or(Micros::MAX, micros);
        let end = at.saturating_add(time);
        let lease = self.leases.entry(token).or_insert_with(|| Lease::new(end, at));
        if end >= lease.end {
            lease.end = end;
            lease.told_at = at;
        }
        lease.longest = lease.longest.max(time);
    }

    /// A lease was seen, and its holder has perhaps not been answered yet.
    fn shown(&mut self, token: u64, at: Micros) {
        if !self.leases.contains_key(&token) {
            let longest = self.longest_asked;
            let lease = Lease::new(at.saturating_add(longest), at);
            self.leases.insert(token, Lease { longest, ..lease });
        }
    }

    /// A request has its outcome: what else was sent for it can only have the same one.
    fn settle(&mut self, request: Option<&str>) {
        if request.is_some() {
            self.open.retain(|_, other| other.as_deref() != request);
        }
    }
}

impl Lease {
    const fn new(end: Micros, told_at: Micros) -> Self {
        Self {
            told_at,
            end,
            longest: 0,
            open: BTreeMap::new(),
            over: Micros::MAX,
        }
    }
}

const fn micros(ms: u64) -> Micros {
    ms.saturating_mul(1_000)
}
