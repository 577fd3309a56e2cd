//! C17, L26: leader after leader is lost, and no lease is longer or shorter for it than it should be.

use std::time::Duration;

use lease_core::wire::{GetReply, RenewReply};
use tests::clock::{now, wait_until};

use crate::load::has_no_outcome;
use crate::trio::{NODES, Trio, others};

const ELECTIONS: u32 = 5;
const TTL: Duration = Duration::from_secs(12);
/// Published, for each change of leaders beside the time in which nobody serves.
const LEADER_CHANGE: Duration = Duration::from_millis(200);
/// For a commit, and for whoever looks, on a machine that has other things to do.
const COMMIT: Duration = Duration::from_secs(1);

/// Asks until there is an answer.
fn asked<T>(trio: &Trio, id: u64, mut ask: impl FnMut(&mut tests::Client) -> Option<T>) -> T {
    let mut client = trio.client(id);
    wait_until("somebody serves", || ask(&mut client))
}

/// What is left of the lease of the dead holder; `None` if it is free.
fn left_of_dead(trio: &Trio, id: u64) -> Option<Duration> {
    let lease = asked(trio, id, |client| {
        let reply = client.call("LEASE.GET dead");
        (!has_no_outcome(&reply)).then(|| GetReply::from_reply(reply).unwrap().lease)
    });
    Some(Duration::from_millis(lease?.remaining_ms.unwrap()))
}

#[test]
fn c17_l26_five_elections_reset_no_ttl_and_a_live_holder_keeps_what_it_was_promised() {
    let mut trio = Trio::form(NODES);
    let ttl_ms = TTL.as_millis();
    let leader = trio.leader();
    let mut client = trio.client(leader);
    // Two holders: one dies at once, the other one renews after each election.
    let granted_at = now();
    for name in ["dead", "live"] {
        assert_eq!(client.say(&format!("SET {name} me NX PX {ttl_ms}")), "+OK");
    }
    let granted_by = now();
    let token = client
        .say("LEASE.TOKEN live me")
        .trim_start_matches(':')
        .to_owned();
    let mut stood_still = Duration::ZERO;
    let (mut renewed_at, mut seen_free) = (granted_at, false);
    for election in 1..=ELECTIONS {
        let leader = trio.leader();
        let [one, _] = others(leader);
        let killed_at = now();
        trio.kill(leader);
        let renew = format!("LEASE.RENEW live {token} {ttl_ms}");
        let mut sent = now();
        let renewed = asked(&trio, one, |client| {
            sent = now();
            let reply = client.call(&renew);
            (!has_no_outcome(&reply)).then(|| RenewReply::from_reply(reply).unwrap())
        });
        assert!(
            matches!(renewed, RenewReply::Renewed { .. }),
            "a lease of {TTL:?} is lost {:?} after its last renewal: {renewed:?}",
            renewed_at.elapsed()
        );
        renewed_at = sent;
        stood_still += killed_at.elapsed() + LEADER_CHANGE;
        let seen = now();
        match left_of_dead(&trio, one) {
            Some(left) => {
                let most = (TTL + stood_still).saturating_sub(granted_by.elapsed().min(seen - granted_by));
                assert!(
                    left <= TTL && left <= most,
                    "election {election}: {left:?} are left, at most {most:?} may be"
                );
            }
            None => {
                assert!(granted_at.elapsed() >= TTL - TTL / 1_000, "before its time");
                seen_free = true;
            }
        }
        trio.start(leader);
    }
    let id = trio.leader();
    wait_until("the dead one's lease is free", || {
        left_of_dead(&trio, id).is_none().then_some(())
    });
    let after = granted_at.elapsed();
    println!("across {ELECTIONS} elections a dead holder's lease of {TTL:?} was free after {after:?}");
    // If it was free before, nobody looked at the moment.
    assert!(
        seen_free || after <= TTL + stood_still + COMMIT,
        "after {after:?}, and the cluster stood still for {stood_still:?}"
    );
    assert_eq!(
        trio.client(id).say("LEASE.TOKEN live me"),
        format!(":{token}"),
        "the live one is held"
    );
}
