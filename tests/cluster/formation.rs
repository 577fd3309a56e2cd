//! How a cluster begins, and who may come back to it.

use lease_core::wire::Reply;
use tests::Client;
use tests::clock::{Deadline, SOON};

use crate::trio::{NODES, Trio, others};

#[test]
fn started_in_any_order_the_nodes_form_one_cluster_and_each_serves_every_command() {
    for order in [[1, 2, 3], [3, 1, 2]] {
        let trio = Trio::form(order);
        let mut clients = NODES.map(|id| trio.client(id));
        for (number, client) in clients.iter_mut().enumerate() {
            every_command_is_served(client, &format!("lease-{number}"));
        }
        // What one has set, the others see at once, and it has one token everywhere.
        let [first, second, third] = &mut clients;
        assert_eq!(first.say("SET job me NX PX 60000"), "+OK");
        let token = second.say("LEASE.TOKEN job me");
        assert!(token.starts_with(':'), "{token}");
        assert_eq!(third.say("LEASE.TOKEN job me"), token);
        assert_eq!(second.say("SET job other NX PX 60000"), "nil");
        assert_eq!(third.say("DEL job"), ":1");
        assert_eq!(first.say("GET job"), "nil");
    }
}

#[test]
fn three_settings_files_make_a_cluster() {
    let trio = Trio::form_by(NODES, Trio::spawn_by_file);
    assert_eq!(trio.client(1).say("SET job me NX PX 60000"), "+OK");
    assert_eq!(trio.client(3).say("GET job"), "\"me\"");
    for id in NODES {
        let ready = &trio.node(id).ready().line;
        assert!(ready.ends_with(&format!(" node={id}")), "{ready}");
    }
}

fn every_command_is_served(client: &mut Client, name: &str) {
    assert_eq!(client.say("PING"), "+PONG");
    let Reply::Array(granted) = client.call(&format!("LEASE.ACQUIRE {name} me 60000 REQ r")) else {
        panic!("no answer to an acquire");
    };
    let token = match granted.as_slice() {
        [Reply::Bulk(word), Reply::Integer(token), ..] if *word == "granted" => *token,
        other => panic!("{other:?}"),
    };
    assert!(
        client
            .say(&format!("LEASE.RENEW {name} {token} 60000"))
            .contains("renewed")
    );
    let renewed = client.say(&format!("LEASE.MRENEW {name} {token}"));
    assert!(renewed.contains("renewed"), "{renewed}");
    assert_eq!(client.say(&format!("LEASE.TOKEN {name} me")), format!(":{token}"));
    for read in [
        format!("LEASE.GET {name}"),
        format!("LEASE.HISTORY {name}"),
        format!("LEASE.LIST PREFIX {name}"),
        format!("PTTL {name}"),
    ] {
        let seen = client.say(&read);
        assert!(!seen.starts_with('-') && seen != "nil", "{read}: {seen}");
    }
    assert_eq!(client.say(&format!("EXISTS {name}")), ":1");
    assert!(
        client
            .say(&format!("LEASE.FORCE {name} test"))
            .contains("released")
    );
    assert!(
        client
            .say(&format!("LEASE.RELEASE {name} {token}"))
            .contains("lost")
    );
    assert_eq!(client.say(&format!("GET {name}")), "nil");
}

#[test]
fn a_node_with_a_wrong_list_ends_alone_and_the_others_wait_for_it() {
    let mut trio = Trio::prepare();
    trio.spawn(1);
    trio.spawn(2);
    let shorter: Vec<String> = trio.members().split(',').skip(1).map(str::to_owned).collect();
    trio.spawn_with_list(3, &shorter.join(","));
    // It knows one of the others alone, which knows that there are two of them.
    let exit = trio.take(3).wait();
    exit.expect_failure(&["another --cluster list", "give this node the same list"]);
    assert_eq!(exit.code, Some(1));
    for id in [1, 2] {
        assert_eq!(trio.node(id).stdout().text(), "", "node {id} serves");
    }
    trio.spawn(3);
    for id in NODES {
        trio.wait_until_ready(id);
    }
    assert_eq!(trio.client(3).say("SET job me NX PX 60000"), "+OK");
}

#[test]
fn while_all_lists_differ_nobody_ends_and_each_says_so_until_they_have_the_same() {
    let mut trio = Trio::prepare();
    let members = trio.members();
    let members: Vec<&str> = members.split(',').collect();
    let pair = |one: usize, other: usize| format!("{},{}", members[one], members[other]);
    let lists = [pair(0, 1), pair(1, 2), pair(0, 2)];
    for (id, list) in NODES.into_iter().zip(&lists) {
        trio.spawn_with_list(id, list);
    }
    for id in NODES {
        let says = |text: &str| text.contains("another --cluster list").then_some(());
        let said = trio.node(id).stderr().wait_for(Deadline::after(SOON), says);
        assert!(said.is_some(), "{}", trio.node(id).stderr().text());
        assert_eq!(trio.node(id).stdout().text(), "", "node {id} serves");
    }
    for id in NODES {
        trio.kill(id);
        trio.spawn(id);
    }
    for id in NODES {
        trio.wait_until_ready(id);
    }
    assert_eq!(trio.client(2).say("SET job me NX PX 60000"), "+OK");
}

#[test]
fn a_node_that_restarts_rejoins_and_one_that_was_wiped_is_refused_with_the_way_out() {
    let mut trio = Trio::form([2, 3, 1]);
    assert_eq!(trio.client(1).say("SET job me NX PX 600000"), "+OK");
    let token = trio.client(2).say("LEASE.TOKEN job me");

    // A clean stop and a kill, of the leader and of a follower.
    let leader = trio.leader();
    trio.take(leader).stop();
    trio.start(leader);
    assert_eq!(trio.client(leader).say("LEASE.TOKEN job me"), token);
    let [follower, _] = others(trio.leader());
    trio.kill(follower);
    trio.start(follower);
    assert_eq!(trio.client(follower).say("LEASE.TOKEN job me"), token);

    trio.kill(follower);
    std::fs::remove_dir_all(trio.directory(follower)).unwrap();
    let exit = trio.launch(follower).run_to_end();
    exit.expect_failure(&[
        "this node is empty, but node",
        "its data was lost and it must not vote again",
        "under an id that was never used",
    ]);
    assert_eq!(exit.code, Some(1));
    let [one, other] = others(follower);
    for id in [one, other] {
        assert_eq!(
            trio.client(id).say("LEASE.TOKEN job me"),
            token,
            "the cluster goes on"
        );
    }
}

#[test]
fn a_node_alone_waits_for_the_others_and_says_for_whom() {
    let mut trio = Trio::prepare();
    trio.spawn(2);
    let waits = |text: &str| text.contains("waiting for the other nodes").then_some(());
    let said = trio.node(2).stderr().wait_for(Deadline::after(SOON), waits);
    assert!(said.is_some(), "{}", trio.node(2).stderr().text());
    assert!(trio.node(2).stderr().text().contains("missing=[1, 3]"));
    assert_eq!(trio.node(2).stdout().text(), "", "it does not serve");
}
