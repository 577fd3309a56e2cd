//! The rules, each over a whole history.

use std::collections::BTreeMap;
use std::fmt;

use super::grants::{Grant, grants};
use super::record::{Micros, Op, Outcome, Record};

/// What a lock service with fencing tokens promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// K1: a grant that was returned before another was called has the smaller token; no two grants share one.
    TokenOrder,
    /// K2: of one lease, no two holders are certain at once.
    MutualExclusion,
    /// K3: while a holder is certain, nobody else is granted the lease, no renewal is refused, and every read shows the
    /// holder's token.
    NoEarlyExpiry,
    /// K4: a lease that nobody renews is over soon after its time: nobody is refused for it any longer.
    BoundedLateExpiry,
    /// K5: no renewal is acknowledged once a later grant had returned before it was called.
    NoZombieRenewal,
    /// K6: nothing succeeds with a token once its release had returned.
    NoResurrection,
    /// K7: one request has one token.
    OneTokenPerRequest,
    /// K8: a grant's token is above every token that anybody had seen before it was called.
    TokenFloor,
    /// K9: nobody is told more time than there is: no holder more than it can be certain of, nobody else more than the
    /// lease can last.
    HonestTime,
}

/// A rule that a history breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Which lease.
    pub resource: String,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}: {}", self.rule, self.resource, self.seen)
    }
}

/// Everything that is wrong with a history, which holds all attempts on its leases from their first one on; but for the
/// rules of [`check_times`](super::check_times), which must be told more than a history.
#[must_use]
pub fn check(records: &[Record]) -> Vec<Violation> {
    let grants = grants(records);
    let mut violations = Violations::default();
    token_order(&grants, &mut violations);
    token_floor(records, &grants, &mut violations);
    one_token_per_request(records, &mut violations);
    for of_one in by_resource(&grants).values() {
        exclusion(of_one, &mut violations);
    }
    reads(records, &by_resource(&grants), &mut violations);
    renewals(records, &by_resource(&grants), &mut violations);
    refusals(records, &by_resource(&grants), &mut violations);
    resurrections(records, &mut violations);
    violations.found
}

#[derive(Debug, Default)]
pub(super) struct Violations {
    pub(super) found: Vec<Violation>,
}

impl Violations {
    pub(super) fn add(&mut self, rule: Rule, resource: &str, seen: String) {
        let resource = resource.to_owned();
        self.found.push(Violation { rule, resource, seen });
    }
}

fn by_resource(grants: &[Grant]) -> BTreeMap<&str, Vec<&Grant>> {
    let mut sorted: BTreeMap<&str, Vec<&Grant>> = BTreeMap::new();
    for grant in grants {
        sorted.entry(&grant.resource).or_default().push(grant);
    }
    sorted
}

fn token_order(grants: &[Grant], violations: &mut Violations) {
    let mut by_token: BTreeMap<u64, &Grant> = BTreeMap::new();
    for grant in grants {
        if let Some(other) = by_token.insert(grant.token, grant) {
            let seen = format!(
                "token {} was granted twice, also of {}",
                grant.token, other.resource
            );
            violations.add(Rule::TokenOrder, &grant.resource, seen);
        }
    }
    // Grants come in the order of their calls; so do, here, those that had returned by then.
    let mut returned: Vec<&Grant> = grants.iter().collect();
    returned.sort_by_key(|grant| grant.returned);
    let mut returned = returned.into_iter().peekable();
    let mut highest: Option<&Grant> = None;
    for grant in grants {
        while let Some(before) = returned.next_if(|before| before.returned < grant.first_call) {
            highest = highest
                .filter(|highest| highest.token > before.token)
                .or(Some(before));
        }
        if let Some(before) = highest.filter(|before| before.token > grant.token) {
            let seen = format!(
                "token {} was granted after {} of {}",
                grant.token, before.token, before.resource
            );
            violations.add(Rule::TokenOrder, &grant.resource, seen);
        }
    }
}

/// Tokens that were seen count as issued, whoever was granted them: also the holder's in a refusal or a read.
fn token_floor(records: &[Record], grants: &[Grant], violations: &mut Violations) {
    let mut seen: Vec<(Micros, u64)> = records
        .iter()
        .filter_map(|record| Some((record.returned?, record.token?)))
        .collect();
    seen.sort_unstable();
    let mut seen = seen.into_iter().peekable();
    let mut floor = 0;
    for grant in grants {
        while let Some((_, token)) = seen.next_if(|(at, _)| *at < grant.first_call) {
            floor = floor.max(token);
        }
        if grant.token <= floor {
            let text = format!("token {} was granted although {floor} had been seen", grant.token);
            violations.add(Rule::TokenFloor, &grant.resource, text);
        }
    }
}

fn one_token_per_request(records: &[Record], violations: &mut Violations) {
    let mut tokens: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for record in records {
        let (Op::Acquire, Outcome::Ok, Some(request), Some(token)) =
            (record.op, record.outcome, &record.request_id, record.token)
        else {
            continue;
        };
        let first = *tokens.entry((&record.resource, request)).or_insert(token);
        if first != token {
            let seen = format!("request {request} was granted {first} and {token}");
            violations.add(Rule::OneTokenPerRequest, &record.resource, seen);
        }
    }
}

/// Over the grants of one lease.
fn exclusion(grants: &[&Grant], violations: &mut Violations) {
    let mut by_return = grants.to_vec();
    by_return.sort_by_key(|grant| grant.returned);
    let mut last_certain: Option<&Grant> = None;
    for grant in by_return {
        if let Some(before) = last_certain.filter(|before| before.certain_until > grant.returned) {
            let times = format!(
                "token {} was certain until {}, and {} was granted by {}",
                before.token, before.certain_until, grant.token, grant.returned
            );
            // An older grant whose answer came late says nothing against the younger one.
            if grant.token > before.token {
                violations.add(Rule::NoEarlyExpiry, &grant.resource, times.clone());
            }
            if grant.was_certain() {
                violations.add(Rule::MutualExclusion, &grant.resource, times);
            }
        }
        if grant.was_certain() && last_certain.is_none_or(|last| last.certain_until < grant.certain_until) {
            last_certain = Some(grant);
        }
    }
}

fn reads(records: &[Record], grants: &BTreeMap<&str, Vec<&Grant>>, violations: &mut Violations) {
    for record in records {
        let (Op::Read, Outcome::Ok, Some(returned)) = (record.op, record.outcome, record.returned) else {
            continue;
        };
        for grant in grants.get(record.resource.as_str()).into_iter().flatten() {
            if grant.is_certain_during(record.call, returned) && record.token != Some(grant.token) {
                let shown = record
                    .token
                    .map_or_else(|| "nobody".to_owned(), |token| token.to_string());
                let seen = format!(
                    "token {} was certain until {}, and a read from {} to {returned} shows {shown}",
                    grant.token, grant.certain_until, record.call
                );
                violations.add(Rule::NoEarlyExpiry, &record.resource, seen);
            }
        }
    }
}

fn renewals(records: &[Record], grants: &BTreeMap<&str, Vec<&Grant>>, violations: &mut Violations) {
    for record in records {
        let (Op::Renew, Outcome::Ok, Some(token)) = (record.op, record.outcome, record.token) else {
            continue;
        };
        let of_one = grants.get(record.resource.as_str()).into_iter().flatten();
        let mut later = of_one.filter(|grant| grant.token > token && grant.returned < record.call);
        if let Some(later) = later.next() {
            let seen = format!(
                "token {token} was renewed although {} had been granted",
                later.token
            );
            violations.add(Rule::NoZombieRenewal, &record.resource, seen);
        }
    }
}

/// A renewal is not refused while its holder is certain.
fn refusals(records: &[Record], grants: &BTreeMap<&str, Vec<&Grant>>, violations: &mut Violations) {
    for record in records {
        let (Op::Renew, Outcome::Fail, Some(returned)) = (record.op, record.outcome, record.returned) else {
            continue;
        };
        let of_one = grants.get(record.resource.as_str()).into_iter().flatten();
        let certain = of_one.filter(|grant| Some(grant.token) == record.token);
        for grant in certain.filter(|grant| grant.is_certain_during(record.call, returned)) {
            let (token, until) = (grant.token, grant.certain_until);
            let seen =
                format!("token {token} was certain until {until}, and a renewal at {returned} was refused");
            violations.add(Rule::NoEarlyExpiry, &record.resource, seen);
        }
    }
}

fn resurrections(records: &[Record], violations: &mut Violations) {
    let mut released: BTreeMap<(&str, u64), Micros> = BTreeMap::new();
    for record in records {
        if let (Op::Release, Outcome::Ok, Some(token), Some(returned)) =
            (record.op, record.outcome, record.token, record.returned)
        {
            let at = released.entry((&record.resource, token)).or_insert(returned);
            *at = returned.min(*at);
        }
    }
    for record in records {
        let (Op::Acquire | Op::Renew | Op::Read, Outcome::Ok, Some(token)) =
            (record.op, record.outcome, record.token)
        else {
            continue;
        };
        let at = released.get(&(record.resource.as_str(), token));
        if at.is_some_and(|at| *at < record.call) {
            let seen = format!(
                "token {token} served {:?} after its release had returned",
                record.op
            );
            violations.add(Rule::NoResurrection, &record.resource, seen);
        }
    }
}
