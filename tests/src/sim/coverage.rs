//! How often each kind of fault and of outcome was met: a run that never met one proves nothing about it.

use std::collections::BTreeMap;

/// Counts by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<String, u64>,
}

/// What many seeds together must have met.
const MUST_BE_MET: [&str; 40] = [
    "acquire ok",
    "acquire fail",
    "acquire ended",
    "acquire unknown",
    "acquire retried",
    "acquire waited",
    "renew ok",
    "renew fail",
    "renew unknown",
    "release ok",
    "release fail",
    "release unknown",
    "force ok",
    "force fail",
    "read ok",
    "cancel answered",
    "set answered",
    "lease lost by deadline",
    "zombie renewal",
    "request lost",
    "answer lost",
    "node crash",
    "crash while starting",
    "all nodes down",
    "node pause",
    "client pause",
    "isolated",
    "cut one way",
    "cut both ways",
    "slow links",
    "lossy links",
    "slow disk",
    "stalled disk",
    "failed disk",
    "node stopped by its disk",
    "records lost at a crash",
    "snapshot installed",
    "leadership handed over",
    "leader changed",
    "machines compared",
];

impl Coverage {
    pub(super) fn add(&mut self, kind: &str, by: u64) {
        match self.counts.get_mut(kind) {
            Some(count) => *count = count.saturating_add(by),
            None => drop(self.counts.insert(kind.to_owned(), by)),
        }
    }

    /// Takes the counts of another run in.
    pub fn merge(&mut self, other: &Self) {
        for (kind, count) in &other.counts {
            self.add(kind, *count);
        }
    }

    /// Each kind and how often it was met.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// How often a kind was met.
    #[must_use]
    pub fn count(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or(0)
    }
}

/// What should have been met and was not.
#[must_use]
pub fn missing(coverage: &Coverage) -> Vec<&'static str> {
    MUST_BE_MET
        .into_iter()
        .filter(|kind| coverage.count(kind) == 0)
        .collect()
}
