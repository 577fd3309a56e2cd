//! C21: a follower that lags behind refuses by what the leader knows, never by what it saw last.

use lease_core::wire::{AcquireReply, Reply};
use tests::Client;
use tests::clock::wait_until;

use crate::load::has_no_outcome;
use crate::trio::{NODES, Trio, others};

const CLIENTS: usize = 50;

fn token(client: &mut Client, owner: &str) -> u64 {
    match client.call(&format!("LEASE.TOKEN job {owner}")) {
        Reply::Integer(token) => u64::try_from(token).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn c21_fifty_clients_of_a_follower_that_lags_are_each_refused_once_with_the_holder_named() {
    let trio = Trio::form(NODES);
    let leader = trio.leader();
    let [lags, _] = others(leader);
    let mut here = trio.client(leader);
    assert_eq!(here.say("SET job before NX PX 600000"), "+OK");
    let before = token(&mut here, "before");
    // It has seen that the lease was given up, and then nothing more.
    assert!(
        here.say(&format!("LEASE.RELEASE job {before}"))
            .contains("released")
    );
    let mut there = trio.client(lags);
    assert_eq!(there.say("LEASE.GET job"), "nil");
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| trio.client(lags)).collect();
    trio.pause(lags);
    assert_eq!(here.say("SET job holder NX PX 600000"), "+OK");
    let holder = token(&mut here, "holder");
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("LEASE.ACQUIRE job p{number} 60000 REQ r{number}"));
    }
    trio.resume(lags);

    let mut named = 0;
    for (number, client) in clients.iter_mut().enumerate() {
        let first = client.receive();
        // Where nothing is known it says so, and is asked again.
        let reply = match has_no_outcome(&first) {
            false => {
                named += 1;
                first
            }
            true => wait_until("the follower knows its leader", || {
                let reply = client.call(&format!("LEASE.ACQUIRE job p{number} 60000 REQ r{number}"));
                (!has_no_outcome(&reply)).then_some(reply)
            }),
        };
        match AcquireReply::from_reply(reply).unwrap() {
            AcquireReply::Held { token, owner, .. } => {
                assert_eq!((token.get(), owner.as_bytes()), (holder, b"holder".as_slice()));
            }
            other => panic!("client {number} of a lagging follower: {other:?}"),
        }
    }
    println!("{named} of {CLIENTS} were refused at once, with the holder named");
    assert_eq!(token(&mut here, "holder"), holder);
}
