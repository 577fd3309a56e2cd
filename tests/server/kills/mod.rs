//! Killed again and again at any moment under load: whatever was acknowledged is there, and no token comes twice.
//!
//! Clients acquire, renew and release through all of it, repeat under the same request id what was not answered, and
//! write down what they saw. After each restart every lease is read. At the end the whole history is checked: tokens
//! in order over all restarts (K1, K8), one token for each request (K7), no lease over before its time (K2, K3).

mod load;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use lease_core::wire::GetReply;
use tests::history::{Op, Outcome, Record, Rule, check};
use tests::random::Random;
use tests::{Launch, Node};

use self::load::{Load, name_of_process};

const KILLS: usize = 24;
/// The reader writes as this process; clients count from 1.
const READER: u32 = 0;

#[test]
fn after_any_number_of_kills_everything_acknowledged_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let seed = Random::seed(20_261_130);
    let mut random = Random::new(seed);
    let load = Load::start(seed);
    let mut node = start_at_any_cost(directory.path(), &mut random);
    load.serve_at(node.resp());
    for kill in 0..KILLS {
        load.wait_for_answers(random.below(120));
        // From here the node is gone at no moment that anybody chose.
        node.kill();
        node = start_at_any_cost(directory.path(), &mut random);
        read_all(&load, node.resp(), kill);
        load.serve_at(node.resp());
    }
    load.wait_for_answers(200);
    let load = load.stop();
    node.stop();
    let node = Launch::in_directory(directory.path()).start();
    read_all(&load, node.resp(), KILLS);
    node.stop();

    let records = load.history.records();
    let violations = check(&records);
    assert!(
        violations.is_empty(),
        "LEASE_TEST_SEED={seed}\n{}",
        lines(&violations)
    );
    expect_coverage(&records);
}

/// Now and then the node is killed while it starts, too: at once, or when it has said something.
fn start_at_any_cost(directory: &Path, random: &mut Random) -> Node {
    if random.percent(40) {
        let node = Launch::in_directory(directory).spawn();
        if random.percent(50) {
            let said = |text: &str| (!text.is_empty()).then_some(());
            node.stderr()
                .wait_for(tests::clock::Deadline::after(tests::clock::SOON), said);
        }
        node.kill();
    }
    Launch::in_directory(directory).start()
}

/// Reads every lease that was ever asked for, and writes down who holds it.
fn read_all(load: &Load, address: SocketAddr, kill: usize) {
    let mut client = tests::Client::connect(address);
    let owners = owners(&load.history.records());
    for resource in load.resources() {
        let call = load.clock.micros();
        let reply = client.call_args(&["LEASE.GET", &resource]);
        let returned = load.clock.micros();
        let seen = GetReply::from_reply(reply).unwrap().lease;
        let token = seen.as_ref().map(|lease| lease.token.get());
        if let (Some(lease), Some(token)) = (&seen, token)
            && let Some(process) = owners.get(&token)
        {
            let owner = name_of_process(*process);
            assert!(
                lease.owner.as_bytes().starts_with(owner.as_bytes()),
                "after kill {kill} {resource} is held by {:?} under the token of {owner}",
                lease.owner
            );
        }
        load.history.add(Record {
            process: READER,
            op: Op::Read,
            resource,
            request_id: None,
            call,
            returned: Some(returned),
            outcome: Outcome::Ok,
            token,
            ttl_ms: None,
        });
    }
}

/// Who was granted each token.
fn owners(records: &[Record]) -> BTreeMap<u64, u32> {
    let granted = records
        .iter()
        .filter(|record| record.op == Op::Acquire && record.outcome == Outcome::Ok);
    granted
        .filter_map(|record| Some((record.token?, record.process)))
        .collect()
}

/// A run in which nothing happened proves nothing.
fn expect_coverage(records: &[Record]) {
    let count = |is: &dyn Fn(&Record) -> bool| records.iter().filter(|record| is(record)).count();
    let of = |op, outcome| count(&|record| record.op == op && record.outcome == outcome);
    assert!(
        of(Op::Acquire, Outcome::Ok) > 300,
        "too few grants: {}",
        of(Op::Acquire, Outcome::Ok)
    );
    assert!(of(Op::Release, Outcome::Ok) > 100 && of(Op::Renew, Outcome::Ok) > 100);
    assert!(
        of(Op::Acquire, Outcome::Fail) > 10,
        "nobody ever met a held lease"
    );
    assert!(
        of(Op::Acquire, Outcome::Unknown) > 5,
        "no acquire was ever left without an answer"
    );
    let held = count(&|record| record.op == Op::Read && record.token.is_some());
    assert!(held > 10 * KILLS, "too few leases outlived a kill: {held}");
    let mut attempts: BTreeMap<&str, usize> = BTreeMap::new();
    for request in records.iter().filter_map(|record| record.request_id.as_deref()) {
        *attempts.entry(request).or_default() += 1;
    }
    assert!(
        attempts.values().filter(|count| **count > 1).count() > 5,
        "no request was ever repeated"
    );
}

/// The negative control: a store that forgets must turn the same check red.
#[test]
fn a_store_that_forgets_at_a_kill_is_seen_by_the_same_check() {
    let load = Load::start(7);
    let node = Launch::in_memory().start();
    load.serve_at(node.resp());
    load.wait_for_answers(100);
    node.kill();
    let node = Launch::in_memory().start();
    let load = load.stop_without_server();
    read_all(&load, node.resp(), 1);
    let violations = check(&load.history.records());
    let forgotten = violations
        .iter()
        .filter(|violation| violation.rule == Rule::NoEarlyExpiry);
    assert!(
        forgotten.count() > 0,
        "the check cannot fail: {}",
        lines(&violations)
    );
    node.stop();
}

/// With its counter set back by hand, a store grants tokens again: that is seen, too.
#[test]
fn a_token_that_is_granted_again_is_seen_by_the_same_check() {
    let load = Load::start(7);
    let low = || Launch::in_memory().args(["--token-floor", "0"]).start();
    let node = low();
    load.serve_at(node.resp());
    load.wait_for_answers(100);
    node.kill();
    let node = low();
    load.serve_at(node.resp());
    load.wait_for_answers(100);
    let load = load.stop();
    let violations = check(&load.history.records());
    let broken = |rule| violations.iter().any(|violation| violation.rule == rule);
    assert!(
        broken(Rule::TokenFloor) && broken(Rule::TokenOrder),
        "{}",
        lines(&violations)
    );
    node.stop();
}

fn lines(violations: &[tests::history::Violation]) -> String {
    let lines: Vec<_> = violations.iter().take(20).map(ToString::to_string).collect();
    format!("{} violations\n{}", violations.len(), lines.join("\n"))
}
