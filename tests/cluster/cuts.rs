//! C09, C16: networks that are cut between the nodes, each node, each pair, and each direction of it.

use std::time::Duration;

use fence_client::{FenceClient, Lease};
use tests::clock::{now, wait_until};
use tests::show::show;

use crate::load::{Load, has_no_outcome};
use crate::trio::{NODES, Trio, others};
use crate::waits::wait_until_waiting;

const CLIENTS: u32 = 9;
/// Longer than a node takes to answer at the most.
const PATIENCE: Duration = Duration::from_secs(4);
/// A node answers after 2 s at the latest; the rest is the machine's, which may be busy.
const ANSWERED_WITHIN: Duration = Duration::from_secs(4);
/// Grants after which a cluster is taken to go on.
const GOES_ON: u64 = 20;

/// How a node is cut off from the others.
#[derive(Debug, Clone, Copy)]
enum Side {
    Both,
    WhatItSends,
    WhatItHears,
}

impl Side {
    fn cut(self, trio: &Trio, id: u64) {
        match self {
            Self::Both => trio.wires().isolate(id),
            Self::WhatItSends => trio.wires().silence(id),
            Self::WhatItHears => trio.wires().deafen(id),
        }
    }
}

#[test]
fn c16_a_node_that_is_cut_off_grants_and_renews_nothing_and_says_so_while_the_others_go_on() {
    let trio = Trio::form_on_wires();
    let mut load = Load::start(trio.addresses(), CLIENTS, &[PATIENCE]);
    load.mark();
    load.wait_for_grants(60);
    assert_eq!(trio.client(1).say("SET held me NX PX 600000"), "+OK");
    let token = trio.client(2).say("LEASE.TOKEN held me");
    let number = token.trim_start_matches(':');
    for side in [Side::Both, Side::WhatItSends, Side::WhatItHears] {
        // The leader, and a follower: which nodes these are changes as it goes.
        for leads in [true, false] {
            let leader = trio.leader();
            let [follower, _] = others(leader);
            let alone = if leads { leader } else { follower };
            println!("cut off: node {alone}, {side:?}; node {leader} leads");
            let at = load.mark();
            side.cut(&trio, alone);
            says_that_it_can_do_nothing(&trio, alone, number, &format!("{side:?}-{leads}"));
            load.mark();
            load.wait_for_grants(GOES_ON);
            let healed_at = load.mark();
            trio.wires().heal();
            trio.leader();
            load.wait_for_grants(GOES_ON);
            load.was_disturbed(at);
            println!(
                "all are one again after {} ms",
                (load.clock.micros() - healed_at) / 1_000
            );
            assert_eq!(served(&trio, alone, "LEASE.TOKEN held me"), token);
        }
    }
    assert!(trio.wires().held_up() > 0, "nothing was ever cut");
    load.stop();
    load.expect_no_violation();
}

/// All at once, each on a connection of its own.
fn says_that_it_can_do_nothing(trio: &Trio, alone: u64, token: &str, name: &str) {
    let commands = [
        format!("LEASE.ACQUIRE new-{name} me 600000 REQ r"),
        format!("SET plain-{name} me NX PX 600000"),
        format!("LEASE.RENEW held {token} 600000"),
        "LEASE.GET held".to_owned(),
        format!("LEASE.ACQUIRE held other-{name} 600000 WAIT 60000"),
    ];
    let asked = commands.map(|command| {
        let mut client = trio.client(alone);
        client.send(&command);
        (command, client, now())
    });
    for (command, mut client, sent) in asked {
        let reply = client.receive();
        assert!(has_no_outcome(&reply), "{command}: {}", show(&reply));
        assert!(
            sent.elapsed() < ANSWERED_WITHIN,
            "{command}: after {:?}",
            sent.elapsed()
        );
    }
}

/// The answer of a node, once it has one.
fn served(trio: &Trio, id: u64, command: &str) -> String {
    let mut client = trio.client(id);
    wait_until("the node serves again", || {
        let reply = client.call(command);
        (!has_no_outcome(&reply)).then(|| show(&reply))
    })
}

#[test]
fn a_cut_between_two_nodes_in_either_direction_or_both_contradicts_nobody_and_the_cluster_goes_on() {
    let trio = Trio::form_on_wires();
    let mut load = Load::start(trio.addresses(), CLIENTS, &[PATIENCE]);
    load.mark();
    load.wait_for_grants(60);
    for [one, other] in [[1, 2], [1, 3], [2, 3]] {
        let wires = trio.wires();
        let cuts: [&dyn Fn(); 3] = [&|| wires.cut_pair(one, other), &|| wires.cut(one, other), &|| {
            wires.cut(other, one)
        }];
        for (kind, cut) in cuts.into_iter().enumerate() {
            let leader = trio.leader();
            let at = load.mark();
            cut();
            load.wait_for_grants(GOES_ON);
            let went_on = load.mark();
            println!(
                "cut {kind} of nodes {one} and {other}, node {leader} led: {GOES_ON} grants after {} ms",
                (went_on - at) / 1_000
            );
            load.wait_for_grants(GOES_ON);
            wires.heal();
            for id in NODES {
                served(&trio, id, "LEASE.GET nothing");
            }
            load.was_disturbed(at);
        }
    }
    assert!(trio.wires().held_up() > 0, "nothing was ever cut");
    load.stop();
    load.expect_no_violation();
}

#[test]
fn c09_a_holder_on_the_wrong_side_of_a_cut_knows_of_its_loss_before_anybody_else_is_granted() {
    const TTL: Duration = Duration::from_secs(4);
    let trio = Trio::form_on_wires();
    for leads in [true, false] {
        let leader = trio.leader();
        let [follower, third] = others(leader);
        let alone = if leads { leader } else { follower };
        let name = format!("job-{leads}");
        let holder = Holder::acquire(&trio, alone, &name, TTL);
        let mut next = trio.client(third);
        next.send(&format!("LEASE.ACQUIRE {name} next 60000 WAIT 60000"));
        wait_until_waiting(&mut trio.client(third), &name, 1);

        trio.wires().isolate(alone);
        let cut_at = now();
        let granted = show(&next.receive());
        let is_valid = holder.lease.is_valid();
        println!(
            "cut off from {}: another was granted after {:?}",
            if leads { "its followers" } else { "its leader" },
            cut_at.elapsed()
        );
        assert!(granted.starts_with("[\"granted\", "), "{granted}");
        assert!(!is_valid, "two hold it at once");
        let reason = holder.runtime.block_on(holder.lease.lost());
        println!("the holder was told: {reason:?}");
        trio.wires().heal();
        trio.leader();
    }
}

/// A client that knows one node, and its lease.
struct Holder {
    runtime: tokio::runtime::Runtime,
    lease: Lease,
    _client: FenceClient,
}

impl Holder {
    fn acquire(trio: &Trio, at: u64, name: &str, ttl: Duration) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let endpoint = trio.resp(at).to_string();
        let (client, lease) = runtime.block_on(async {
            let client = FenceClient::connect(&endpoint).await.unwrap();
            let lease = client.lease(name).ttl(ttl).acquire().await.unwrap();
            (client, lease)
        });
        Self {
            runtime,
            lease,
            _client: client,
        }
    }
}
