//! The ratios that are promised, and whether a run held them.

use super::results::{Cell, Results};
use super::systems::System;
use super::work::Work;

/// One figure with its bound.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// What it is, in words.
    pub what: &'static str,
    figure: Figure,
    bound: Bound,
}

#[derive(Debug, Clone, Copy)]
enum Figure {
    Ratio { above: Cell, below: Cell },
    MedianUs(Cell),
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// A promise beside what a run measured.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What it is, in words.
    pub what: &'static str,
    /// The bound, in words.
    pub bound: String,
    /// What was measured.
    pub measured: f64,
    /// Whether it holds.
    pub holds: bool,
}

const fn cell(work: Work, connections: usize, system: System) -> Cell {
    Cell {
        work,
        connections,
        system,
    }
}

const fn ratio(what: &'static str, above: Cell, below: Cell, least: f64) -> Promise {
    Promise {
        what,
        figure: Figure::Ratio { above, below },
        bound: Bound::AtLeast(least),
    }
}

const fn at_most(what: &'static str, cell: Cell, most_us: f64) -> Promise {
    Promise {
        what,
        figure: Figure::MedianUs(cell),
        bound: Bound::AtMost(most_us),
    }
}

const fn set(connections: usize, system: System) -> Cell {
    cell(Work::Set, connections, system)
}

/// All promises. Those about rates are ratios within one run, and hold on any machine of two cores.
pub const PROMISES: [Promise; 11] = [
    ratio(
        "one node / Redis appendfsync always, SET, 1 connection",
        set(1, System::OneNode),
        set(1, System::RedisSynced),
        0.7,
    ),
    ratio(
        "one node / Redis appendfsync always, SET, 64 connections",
        set(64, System::OneNode),
        set(64, System::RedisSynced),
        0.9,
    ),
    ratio(
        "one node / Redis appendfsync always, SET, 256 connections",
        set(256, System::OneNode),
        set(256, System::RedisSynced),
        0.9,
    ),
    ratio(
        "three nodes / Redis with two replicas and WAIT 1, SET, 1 connection",
        set(1, System::ThreeNodes),
        set(1, System::RedisReplicated),
        0.8,
    ),
    ratio(
        "three nodes / Redis with two replicas and WAIT 1, SET, 64 connections",
        set(64, System::ThreeNodes),
        set(64, System::RedisReplicated),
        1.3,
    ),
    ratio(
        "three nodes / Redis with two replicas and WAIT 1, SET, 256 connections",
        set(256, System::ThreeNodes),
        set(256, System::RedisReplicated),
        1.3,
    ),
    ratio(
        "three nodes / etcd, acquire, 64 connections",
        cell(Work::Acquire, 64, System::ThreeNodes),
        cell(Work::Acquire, 64, System::Etcd),
        10.0,
    ),
    ratio(
        "LEASE.ACQUIRE / SET, one node, 64 connections",
        cell(Work::Acquire, 64, System::OneNode),
        set(64, System::OneNode),
        0.9,
    ),
    ratio(
        "LEASE.ACQUIRE / SET, three nodes, 64 connections",
        cell(Work::Acquire, 64, System::ThreeNodes),
        set(64, System::ThreeNodes),
        0.9,
    ),
    at_most(
        "embedded in memory: acquire by one caller, median",
        cell(Work::Acquire, 1, System::EmbeddedMemory),
        15.0,
    ),
    at_most(
        "one node: hand-over among 64, median",
        cell(Work::HandOver, 64, System::OneNode),
        2_000.0,
    ),
];

/// The promises of which this run measured both sides.
#[must_use]
pub fn verdicts(results: &Results) -> Vec<Verdict> {
    PROMISES
        .iter()
        .filter_map(|promise| promise.verdict(results))
        .collect()
}

impl Promise {
    fn verdict(&self, results: &Results) -> Option<Verdict> {
        let (measured, unit) = match self.figure {
            Figure::Ratio { above, below } => (results.ratio(above, below)?, "times"),
            Figure::MedianUs(cell) => (results.median_of(cell, |turn| turn.median_us)?, "us"),
        };
        let (bound, holds) = match self.bound {
            Bound::AtLeast(least) => (format!("at least {least} {unit}"), measured >= least),
            Bound::AtMost(most) => (format!("at most {most} {unit}"), measured <= most),
        };
        Some(Verdict {
            what: self.what,
            bound,
            measured,
            holds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Turn;
    use super::*;

    #[test]
    fn a_promise_is_judged_by_what_was_measured_and_left_out_otherwise() {
        let mut results = Results::default();
        let turn = |rate, median_us| Turn {
            rate,
            median_us,
            p99_us: 0.0,
            operations: 1,
        };
        results.add(set(64, System::OneNode), turn(80.0, 1.0));
        results.add(set(64, System::RedisSynced), turn(100.0, 1.0));
        results.add(cell(Work::HandOver, 64, System::OneNode), turn(1.0, 1_999.0));
        let held: Vec<_> = verdicts(&results)
            .into_iter()
            .map(|verdict| (verdict.measured, verdict.holds))
            .collect();
        assert_eq!(held, [(0.8, false), (1_999.0, true)]);
    }
}
