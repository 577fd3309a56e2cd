//! The grants of a history, each with the time in which its holder could be certain of it.

use std::collections::BTreeMap;

use super::record::{Micros, Op, Outcome, Record};

/// Assumed error of the rate between any two clocks: one in a thousand.
const RATE_ERROR_DIVISOR: u64 = 1_000;

/// One grant: all attempts of one request that were answered with it.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) resource: String,
    pub(super) token: u64,
    /// When the request was first sent, answered or not.
    pub(super) first_call: Micros,
    /// When its first answer came.
    pub(super) returned: Micros,
    /// Until when the holder can be certain of it. Not after `returned` if it never could be.
    pub(super) certain_until: Micros,
}

impl Grant {
    pub(super) const fn was_certain(&self) -> bool {
        self.certain_until > self.returned
    }

    /// Whether the holder was certain of it from one moment to another.
    pub(super) const fn is_certain_during(&self, from: Micros, to: Micros) -> bool {
        self.returned < from && to < self.certain_until
    }
}

/// Every grant, in the order in which their requests were sent; a request that was answered with two tokens gives two.
pub(super) fn grants(records: &[Record]) -> Vec<Grant> {
    let mut first_calls: BTreeMap<(&str, &str), Micros> = BTreeMap::new();
    for record in records.iter().filter(|record| record.op == Op::Acquire) {
        if let Some(request) = &record.request_id {
            let first = first_calls
                .entry((&record.resource, request))
                .or_insert(record.call);
            *first = record.call.min(*first);
        }
    }
    let mut grants: BTreeMap<(&str, Option<&str>, u64), Grant> = BTreeMap::new();
    let mut without_request = Vec::new();
    for record in records {
        let (Op::Acquire, Outcome::Ok, Some(token), Some(returned)) =
            (record.op, record.outcome, record.token, record.returned)
        else {
            continue;
        };
        let request = record.request_id.as_deref();
        let key = (record.resource.as_str(), request);
        let first_call = request
            .and_then(|request| first_calls.get(&(record.resource.as_str(), request)))
            .map_or(record.call, |first| *first);
        let grant = Grant {
            resource: record.resource.clone(),
            token,
            first_call,
            returned,
            certain_until: 0,
        };
        if request.is_none() {
            // Each is a request of its own, even if two of them show one token.
            without_request.push(grant);
        } else {
            let known = grants.entry((key.0, key.1, token)).or_insert(grant);
            known.returned = known.returned.min(returned);
        }
    }
    let mut grants: Vec<Grant> = grants.into_values().chain(without_request).collect();
    let ends = certain_ends(records);
    for grant in &mut grants {
        let end = ends.get(&(grant.resource.as_str(), grant.token));
        grant.certain_until = end.copied().unwrap_or_default();
    }
    grants.sort_by_key(|grant| (grant.first_call, grant.token));
    grants
}

/// Until when a lease is certain: the last word about its time, or the first about its end.
fn certain_ends(records: &[Record]) -> BTreeMap<(&str, u64), Micros> {
    let mut in_order: Vec<&Record> = records.iter().collect();
    in_order.sort_by_key(|record| record.call);
    let mut ends: BTreeMap<(&str, u64), Micros> = BTreeMap::new();
    for record in in_order.iter().copied() {
        let (Some(token), Op::Acquire | Op::Renew) = (record.token, record.op) else {
            continue;
        };
        let until = record.ttl_ms.map_or(Micros::MAX, |ttl| end_of(record.call, ttl));
        let end = ends.entry((record.resource.as_str(), token)).or_default();
        match record.outcome {
            Outcome::Ok => *end = until,
            // It may have shortened the lease, but nobody can count on more.
            Outcome::Unknown => *end = until.min(*end),
            Outcome::Fail | Outcome::Ended => {}
        }
    }
    for record in in_order {
        match (record.op, record.token) {
            (Op::Release, Some(token)) => {
                if let Some(end) = ends.get_mut(&(record.resource.as_str(), token)) {
                    *end = record.call.min(*end);
                }
            }
            (Op::Force, _) => {
                for ((resource, _), end) in &mut ends {
                    if **resource == record.resource {
                        *end = record.call.min(*end);
                    }
                }
            }
            _ => {}
        }
    }
    ends
}

/// The end of a lease as its holder counts it, from when it asked.
pub(super) const fn end_of(call: Micros, ttl_ms: u64) -> Micros {
    let ttl = ttl_ms.saturating_mul(1_000);
    call.saturating_add(ttl - rate_error(ttl))
}

/// By how much two clocks may differ over such a time.
pub(super) const fn rate_error(time: Micros) -> Micros {
    time / RATE_ERROR_DIVISOR
}
