//! Nodes that are killed under load: nothing that was acknowledged is lost, and somebody grants again soon.

use std::time::Duration;

use tests::history::{Micros, Op, Outcome, Record};

use crate::load::Load;
use crate::trio::{NODES, Trio};

/// Kills of the leader in a run; `LEASE_TEST_KILLS` for more.
const KILLS: u64 = 5;
/// Clients at once; `LEASE_TEST_CLIENTS` for more.
const CLIENTS: u64 = 8;
/// Far more than an election takes, on a machine that has other things to do.
const FIRST_GRANT_WITHIN_MS: u64 = 10_000;
/// Longer than a node takes to answer at the most.
const PATIENCE: Duration = Duration::from_secs(4);

/// A number from the environment.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn clients() -> u32 {
    u32::try_from(number("LEASE_TEST_CLIENTS", CLIENTS)).unwrap()
}

#[test]
fn a_leader_killed_under_load_loses_nothing_and_another_one_grants_soon() {
    let mut trio = Trio::form(NODES);
    let mut load = Load::start(trio.addresses(), clients(), &[PATIENCE]);
    let mut killed_at = Vec::new();
    for _ in 0..number("LEASE_TEST_KILLS", KILLS) {
        load.mark();
        load.wait_for_grants(100);
        let leader = trio.leader();
        trio.kill(leader);
        let at = load.mark();
        killed_at.push(at);
        load.wait_for_grants(50);
        load.was_disturbed(at);
        trio.start(leader);
    }
    load.mark();
    load.wait_for_grants(100);
    load.stop();
    load.expect_no_violation();

    let records = load.history.records();
    let mut pauses: Vec<Micros> = killed_at
        .iter()
        .map(|at| first_grant_after(&records, *at) - at)
        .collect();
    pauses.sort_unstable();
    let (median, worst) = (pauses.get(pauses.len() / 2), pauses.last());
    println!(
        "{} kills: first new grant after {} ms at the median, {} ms at worst; {} attempts",
        pauses.len(),
        median.unwrap() / 1_000,
        worst.unwrap() / 1_000,
        records.len()
    );
    assert!(*worst.unwrap() < FIRST_GRANT_WITHIN_MS * 1_000, "{pauses:?}");
    expect_coverage(&records);
}

/// When the first grant came that was asked for after this moment.
fn first_grant_after(records: &[Record], at: Micros) -> Micros {
    let grants = records
        .iter()
        .filter(|record| record.op == Op::Acquire && record.outcome == Outcome::Ok && record.call > at);
    grants.filter_map(|record| record.returned).min().unwrap()
}

/// A run in which nothing happened proves nothing.
fn expect_coverage(records: &[Record]) {
    let of = |op, outcome| {
        let fitting = |record: &&Record| record.op == op && record.outcome == outcome;
        records.iter().filter(fitting).count()
    };
    for (op, outcome, least) in [
        (Op::Acquire, Outcome::Ok, 200),
        (Op::Acquire, Outcome::Fail, 5),
        (Op::Acquire, Outcome::Unknown, 3),
        (Op::Renew, Outcome::Ok, 50),
        (Op::Release, Outcome::Ok, 50),
    ] {
        let count = of(op, outcome);
        assert!(count >= least, "only {count} of {op:?} {outcome:?}");
    }
    let held = |record: &&Record| record.op == Op::Read && record.token.is_some();
    assert!(
        records.iter().filter(held).count() >= 10,
        "too few leases are held at the end"
    );
}

#[test]
fn after_a_power_cut_of_all_three_everything_acknowledged_is_there() {
    let mut trio = Trio::form(NODES);
    let mut load = Load::start(trio.addresses(), clients(), &[PATIENCE]);
    for _ in 0..2 {
        load.mark();
        load.wait_for_grants(150);
        let at = load.clock.micros();
        let nodes = NODES.map(|id| trio.take(id));
        // Before one of them could see that another is gone.
        for node in &nodes {
            node.signal(rustix::process::Signal::KILL);
        }
        for node in nodes {
            node.kill();
        }
        for id in NODES {
            trio.spawn(id);
        }
        for id in NODES {
            trio.wait_until_ready(id);
        }
        load.was_disturbed(at);
    }
    load.mark();
    load.wait_for_grants(100);
    load.stop();
    load.expect_no_violation();
    expect_coverage(&load.history.records());
}
