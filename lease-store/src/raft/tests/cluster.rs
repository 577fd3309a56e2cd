//! Three nodes: leaders that go and come back, partitions, snapshots for those who were away.

use std::fs;
use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use lease_core::Timestamp;

use super::super::error::{ProposeError, ReadError};
use super::super::leadership::Role;
use super::super::node::{NodeConfig, TransferError};
use super::counter::{Node, add, adds};
use super::trio::{Lead, NODES, Trio, eventually};
use crate::runtime::{AsyncRuntime, Rt, Tokio};

const fn as_it_is(_: &mut NodeConfig) {}

/// Snapshots soon, and hardly any entries behind them.
const fn short_logs(config: &mut NodeConfig) {
    config.entries_kept = 8;
    config.snapshot_after_bytes = 8_000;
}

fn others(node: u64) -> Vec<u64> {
    NODES.into_iter().filter(|other| *other != node).collect()
}

async fn add_ones(node: &Node, lead: &Lead, count: u64) -> u64 {
    let mut sum = 0;
    for at in 0..count {
        sum = add(node, lead, at, 1).await.unwrap();
    }
    sum
}

#[tokio::test]
async fn three_nodes_elect_one_leader_and_all_apply_what_it_proposes() {
    let trio = Trio::over_tcp(as_it_is).await;
    let (leader, lead) = trio.leader(&NODES).await;
    let sum = add_ones(&trio.running[&leader].node, &lead, 50).await;
    trio.all_have(sum).await;
    for (node, running) in &trio.running {
        let status = running.node.status();
        assert_eq!(status.leader, Some(leader));
        assert_eq!(status.members.len(), 3);
        let knows_others = status.members.iter().any(|member| member.progress.is_some());
        assert_eq!(
            knows_others,
            *node == leader,
            "only the leader knows how far others are"
        );
    }
    trio.stop_all().await;
}

#[tokio::test]
async fn the_others_go_on_without_their_leader_and_it_catches_up_when_it_is_back() {
    let mut trio = Trio::over_tcp(as_it_is).await;
    let (first, lead) = trio.leader(&NODES).await;
    add_ones(&trio.running[&first].node, &lead, 10).await;
    trio.stop(first).await;

    let (second, lead) = trio.leader(&others(first)).await;
    let sum = add_ones(&trio.running[&second].node, &lead, 10).await;
    assert_eq!(sum, 20, "nothing acknowledged is lost");

    trio.restart(first).await;
    trio.all_have(sum).await;
    trio.stop_all().await;
}

#[tokio::test]
async fn all_nodes_stopped_and_started_again_have_everything() {
    let mut trio = Trio::over_tcp(as_it_is).await;
    let (leader, lead) = trio.leader(&NODES).await;
    let sum = add_ones(&trio.running[&leader].node, &lead, 25).await;
    for node in NODES {
        trio.stop(node).await;
    }
    for node in NODES {
        trio.restart(node).await;
    }
    let (leader, lead) = trio.leader(&NODES).await;
    assert_eq!(
        add(&trio.running[&leader].node, &lead, 1, 5).await.unwrap(),
        sum + 5
    );
    trio.all_have(sum + 5).await;
    trio.stop_all().await;
}

#[tokio::test]
async fn a_follower_that_was_away_for_long_catches_up_by_a_snapshot_without_new_writes() {
    let mut trio = Trio::over_tcp(short_logs).await;
    let (leader, lead) = trio.leader(&NODES).await;
    let away = others(leader)[0];
    add(&trio.running[&leader].node, &lead, 0, 1).await.unwrap();
    trio.all_have(1).await;
    trio.stop(away).await;

    // A state of some megabytes, so that it travels in many pieces; it makes the snapshot due.
    let node = &trio.running[&leader].node;
    // As many as are purged in one go, and more.
    let mut pending = Vec::new();
    for at in 0..1_200 {
        let at = Timestamp::from_millis(at);
        pending.push(node.propose(at, adds(1), lead.id).await.unwrap());
    }
    for pending in pending {
        pending.await.unwrap();
    }
    let mut body = BytesMut::from(&adds(1)[..]);
    body.put_bytes(7, 3_000_000);
    let ballast = node.propose(Timestamp::from_millis(2_000), body.freeze(), lead.id);
    let mut sum = ballast.await.unwrap().await.unwrap().outcome;
    let mut stamp = 2_000;
    while node.status().purged_index.is_none_or(|purged| purged < 20) {
        assert!(sum < 10_000, "nothing is purged");
        stamp = 2_000 + sum;
        sum = add(node, &lead, stamp, 1).await.unwrap();
    }
    // It reaches to the end, so that the last stamp comes with it or not at all.
    node.core_for_tests().trigger().snapshot().await.unwrap();
    eventually("the last snapshot", || {
        let status = node.status();
        status.snapshot_index >= status.last_index
    })
    .await;

    trio.restart(away).await;
    trio.all_have(sum).await;
    let count = trio.running[&away].counter.count();
    assert_eq!(count.ballast.len(), 3_000_000);
    // By a snapshot, not by entries: those are gone.
    let purged = || trio.running[&away].node.status().purged_index;
    eventually("the entries are gone there too", || {
        purged().is_some_and(|purged| purged >= 8)
    })
    .await;
    eventually("nothing unfinished is left", || {
        let files = fs::read_dir(trio.dir(away).join("snapshots")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".snapshot")).count() == 0
    })
    .await;
    // Cluster time goes on from there where it leads.
    let leads = &trio.running[&leader].node;
    leads.transfer_leader(away).await.unwrap();
    let (_, lead) = trio.leader(&[away]).await;
    assert_eq!(lead.anchor.unwrap().stamp, Timestamp::from_millis(stamp));
    // It is a whole member again, also after a restart.
    trio.stop(away).await;
    trio.restart(away).await;
    trio.all_have(sum).await;
    trio.stop_all().await;
}

#[tokio::test]
async fn a_reader_elsewhere_sees_what_was_acknowledged_before_its_barrier() {
    let trio = Trio::over_tcp(as_it_is).await;
    let (leader, lead) = trio.leader(&NODES).await;
    for round in 1..=20 {
        let node = &trio.running[&leader].node;
        let sum = add(node, &lead, round, 1).await.unwrap();
        let index = node.read_barrier().await.unwrap();
        for follower in others(leader) {
            let running = &trio.running[&follower];
            assert!(matches!(
                running.node.read_barrier().await,
                Err(ReadError::NotLeader { .. })
            ));
            running.node.wait_applied(index).await;
            assert!(running.counter.count().sum >= sum);
        }
    }
    trio.stop_all().await;
}

#[tokio::test]
async fn a_leader_hands_over_to_whom_it_is_told_and_not_to_whom_it_does_not_hear() {
    let mut trio = Trio::over_tcp(as_it_is).await;
    let (leader, lead) = trio.leader(&NODES).await;
    add_ones(&trio.running[&leader].node, &lead, 5).await;
    let [to, third] = others(leader)[..] else { panic!() };
    let follower = &trio.running[&to].node;
    let refused = follower.transfer_leader(third).await.unwrap_err();
    assert_eq!(refused, TransferError::NotLeader { leader: Some(leader) });
    let old = &trio.running[&leader].node;
    assert_eq!(
        old.transfer_leader(9).await,
        Err(TransferError::NotAVoter { to: 9 })
    );

    old.transfer_leader(to).await.unwrap();
    let (_, lead) = trio.leader(&[to]).await;
    let refused = add(old, &lead, 1, 1).await.unwrap_err();
    assert!(!refused.may_have_applied(), "{refused}");
    assert_eq!(add(&trio.running[&to].node, &lead, 9, 1).await.unwrap(), 6);

    trio.stop(third).await;
    let new = &trio.running[&to].node;
    let silent = Err(TransferError::Silent { to: third });
    let deadline = Tokio::now() + Duration::from_secs(10);
    eventually("the leader notices the silence", || {
        assert!(Tokio::now() < deadline);
        let members = new.status().members;
        let progress = members
            .iter()
            .find(|member| member.node == third)
            .unwrap()
            .progress;
        let ago = progress.and_then(|progress| progress.heard_ago);
        ago.is_none_or(|ago| ago > Duration::from_secs(1))
    })
    .await;
    assert_eq!(new.transfer_leader(third).await, silent);
    trio.stop_all().await;
}

/// Cuts `node` off, both ways.
fn isolate(trio: &Trio, node: u64) {
    for other in others(node) {
        trio.net.cut(node, other);
        trio.net.cut(other, node);
    }
}

fn mend(trio: &Trio) {
    for from in NODES {
        for to in others(from) {
            trio.net.mend(from, to);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_proves_no_read_and_what_it_proposes_is_not_kept() {
    let trio = Trio::in_memory(as_it_is).await;
    let (old, old_lead) = trio.leader(&NODES).await;
    add(&trio.running[&old].node, &old_lead, 1, 1).await.unwrap();
    isolate(&trio, old);
    let lost = trio.running[&old]
        .node
        .propose(Timestamp::from_millis(2), adds(1_000), old_lead.id);
    let lost = lost.await.unwrap();
    let unproven = Tokio::timeout(Duration::from_secs(2), trio.running[&old].node.read_barrier()).await;
    assert!(
        matches!(
            unproven,
            Ok(Err(ReadError::NoQuorum | ReadError::NotLeader { .. }))
        ),
        "{unproven:?}"
    );

    let (new, new_lead) = trio.leader(&others(old)).await;
    assert_eq!(add(&trio.running[&new].node, &new_lead, 3, 1).await.unwrap(), 2);
    assert_eq!(trio.running[&old].counter.count().sum, 1);

    mend(&trio);
    trio.all_have(2).await;
    let unknown = lost.await.unwrap_err();
    assert!(matches!(unknown, ProposeError::Unknown { .. }), "{unknown}");
    assert!(matches!(
        trio.running[&old].node.leadership().role(),
        Role::Following { .. }
    ));
    trio.stop_all().await;
}

/// One clock for each leadership, and none of them begins at the election.
#[tokio::test(start_paused = true)]
async fn cluster_time_goes_on_from_the_last_stamp_and_from_when_it_was_applied_here() {
    let trio = Trio::in_memory(as_it_is).await;
    let (mut leader, mut lead) = trio.leader(&NODES).await;
    for round in 1..=4 {
        let stamped_at = Tokio::now();
        let sum = add(&trio.running[&leader].node, &lead, 1_000 * round, 1).await;
        trio.all_have(sum.unwrap()).await;
        // Nothing is stamped for a while. Then another one leads, which has led before.
        Tokio::sleep(Duration::from_secs(60)).await;
        let next = others(leader)[0];
        trio.running[&leader].node.transfer_leader(next).await.unwrap();
        (leader, lead) = trio.leader(&[next]).await;
        let anchor = lead.anchor.unwrap();
        assert_eq!(anchor.stamp, Timestamp::from_millis(1_000 * round));
        let late = anchor.applied_at - stamped_at;
        assert!(late < Duration::from_secs(1), "{late:?}");
    }
    trio.stop_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_from_isolation_does_not_unseat_the_leader() {
    let trio = Trio::in_memory(as_it_is).await;
    let (leader, lead) = trio.leader(&NODES).await;
    let away = others(leader)[0];
    isolate(&trio, away);
    let term = trio.running[&leader].node.status().term;
    for round in 0..20 {
        add(&trio.running[&leader].node, &lead, round, 1).await.unwrap();
        Tokio::sleep(Duration::from_secs(1)).await;
    }
    mend(&trio);
    trio.all_have(20).await;
    // It has asked before it stood, and nobody would have voted for it.
    assert_eq!(trio.running[&leader].node.status().term, term);
    assert_eq!(add(&trio.running[&leader].node, &lead, 99, 1).await.unwrap(), 21);
    trio.stop_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_hears_nobody_is_replaced_although_all_hear_it() {
    let trio = Trio::in_memory(as_it_is).await;
    let (deaf, lead) = trio.leader(&NODES).await;
    add(&trio.running[&deaf].node, &lead, 1, 1).await.unwrap();
    for other in others(deaf) {
        trio.net.cut(other, deaf);
    }
    let (new, lead) = trio.leader(&others(deaf)).await;
    assert_eq!(add(&trio.running[&new].node, &lead, 2, 1).await.unwrap(), 2);
    mend(&trio);
    trio.all_have(2).await;
    trio.stop_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_network_that_delays_and_loses_only_slows_the_cluster_down() {
    let trio = Trio::in_memory(as_it_is).await;
    trio.net.set_every_link(crate::peers::memory::Link {
        delay_min: Duration::from_micros(100),
        delay_max: Duration::from_millis(15),
        lost_per_mille: 50,
        ..Default::default()
    });
    let mut acknowledged = 0;
    for round in 0..100 {
        let (leader, lead) = trio.leader(&NODES).await;
        let added = add(&trio.running[&leader].node, &lead, round, 1);
        match Tokio::timeout(Duration::from_secs(20), added).await {
            Ok(Ok(_)) => acknowledged += 1,
            // Another leader has taken over meanwhile.
            Ok(Err(error)) => assert!(error.is_retryable(), "{error}"),
            Err(_) => panic!("a proposal has no end"),
        }
    }
    assert!(acknowledged > 50, "{acknowledged}");
    let (leader, _) = trio.leader(&NODES).await;
    eventually("the same sum everywhere", || {
        let sum = trio.running[&leader].counter.count().sum;
        sum >= acknowledged
            && trio
                .running
                .values()
                .all(|running| running.counter.count().sum == sum)
    })
    .await;
    let (carried, lost) = trio.net.counts();
    assert!(carried > 0 && lost > 0);
    trio.stop_all().await;
}
