//! C15, L25: a leader that stood still and goes on does no harm to what its successor has promised.

use std::time::{Duration, Instant};

use lease_core::wire::{RenewReply, Reply};
use tests::Client;
use tests::clock::{now, wait_until};
use tests::history::{Op, Outcome, Record};
use tests::resp::Gone;

use crate::disks::Disks;
use crate::load::{Load, has_no_outcome};
use crate::trio::{NODES, Trio, others};

/// Every third client waits longer than the leader stands still: what it says afterwards is heard, and written down.
const PATIENCE: [Duration; 3] = [
    Duration::from_secs(3),
    Duration::from_secs(3),
    Duration::from_secs(20),
];
/// Longer than the ttl, so that to the old leader the lease is due when it goes on.
const STANDS_STILL: Duration = Duration::from_secs(6);
/// Long enough for all that had queued up in it.
const GOES_ON: Duration = Duration::from_secs(2);
const TTL: Duration = Duration::from_secs(5);
const RENEW_EVERY: Duration = Duration::from_millis(250);

#[test]
fn c15_a_leader_that_stood_still_ends_no_lease_that_was_renewed_elsewhere_and_contradicts_nobody() {
    let trio = Trio::form(NODES);
    let mut load = Load::start(trio.addresses(), 9, &PATIENCE);
    load.mark();
    load.wait_for_grants(60);
    let old = trio.leader();
    let mut holder = Holder::acquire(&trio, others(old), &load);

    trio.pause(old);
    let at = load.mark();
    let stopped_at = now();
    holder.hold_until("others are granted while the leader stands still", || {
        stopped_at.elapsed() >= STANDS_STILL && load.grants() >= 20
    });
    let [one, other] = others(old);
    assert_ne!(trio.leader_among(&[one, other]), old);
    load.was_disturbed(at);
    trio.resume(old);
    let resumed_at = now();
    load.mark();
    holder.hold_until("the old leader has gone on for a while", || {
        resumed_at.elapsed() >= GOES_ON && load.grants() >= 50
    });
    trio.leader();
    load.stop();
    load.expect_no_violation();
}

/// Its disk hangs, and nothing else: it is heard all the time.
#[test]
fn l25_a_leader_that_hangs_in_a_sync_ends_no_live_lease_and_contradicts_nobody() {
    let disks = Disks::new();
    let trio = disks.form();
    let mut load = Load::start(trio.addresses(), 9, &PATIENCE);
    load.mark();
    load.wait_for_grants(60);
    let stuck = trio.leader();
    let mut holder = Holder::acquire(&trio, others(stuck), &load);

    disks.hang(stuck);
    let at = load.mark();
    let hung_at = now();
    holder.hold_until("the disk has hung for longer than the ttl", || {
        hung_at.elapsed() >= STANDS_STILL
    });
    println!("while the leader's disk hung: {} grants", load.grants());
    disks.go_on(stuck);
    load.was_disturbed(at);
    let resumed_at = now();
    load.mark();
    holder.hold_until("the disk has gone on for a while", || {
        resumed_at.elapsed() >= GOES_ON && load.grants() >= 50
    });
    trio.leader();
    load.stop();
    load.expect_no_violation();
}

/// A holder that renews at the other two nodes.
struct Holder<'a> {
    trio: &'a Trio,
    at: [u64; 2],
    client: Option<Client>,
    token: u64,
    load: &'a Load,
    asked_at: Instant,
}

impl<'a> Holder<'a> {
    const LEASE: &'static str = "held";

    fn acquire(trio: &'a Trio, at: [u64; 2], load: &'a Load) -> Self {
        let [first, _] = at;
        let mut client = trio.client(first);
        let (call, asked_at) = (load.clock.micros(), now());
        let ttl_ms = u64::try_from(TTL.as_millis()).unwrap();
        let granted = client.call(&format!("LEASE.ACQUIRE {} me {ttl_ms}", Self::LEASE));
        let token = match &granted {
            Reply::Array(fields) => match fields.as_slice() {
                [_, Reply::Integer(token), ..] => u64::try_from(*token).unwrap(),
                _ => panic!("{granted:?}"),
            },
            _ => panic!("{granted:?}"),
        };
        load.history.add(Record {
            process: 0,
            op: Op::Acquire,
            resource: Self::LEASE.to_owned(),
            request_id: None,
            call,
            returned: Some(load.clock.micros()),
            outcome: Outcome::Ok,
            token: Some(token),
            ttl_ms: Some(ttl_ms),
        });
        Self {
            trio,
            at,
            client: Some(client),
            token,
            load,
            asked_at,
        }
    }

    /// Renews until then; panics if the lease is refused.
    fn hold_until(&mut self, what: &str, condition: impl Fn() -> bool) {
        wait_until(what, || {
            if self.asked_at.elapsed() >= RENEW_EVERY {
                self.renew();
            }
            condition().then_some(())
        });
    }

    fn renew(&mut self) {
        let asked_at = now();
        let [here, next] = self.at;
        let mut client = self.client.take().unwrap_or_else(|| self.trio.client(here));
        let ttl_ms = u64::try_from(TTL.as_millis()).unwrap();
        let args = [
            "LEASE.RENEW",
            Self::LEASE,
            &self.token.to_string(),
            &ttl_ms.to_string(),
        ];
        let mut record = Record {
            process: 0,
            op: Op::Renew,
            resource: Self::LEASE.to_owned(),
            request_id: None,
            call: self.load.clock.micros(),
            returned: None,
            outcome: Outcome::Unknown,
            token: Some(self.token),
            ttl_ms: Some(ttl_ms),
        };
        let answer: Result<Reply, Gone> = client.try_call(&args);
        match answer {
            Ok(reply) if !has_no_outcome(&reply) => {
                let renewed = RenewReply::from_reply(reply).unwrap();
                assert!(
                    matches!(renewed, RenewReply::Renewed { .. }),
                    "{renewed:?}, {:?} after the last renewal that was confirmed",
                    self.asked_at.elapsed()
                );
                record.returned = Some(self.load.clock.micros());
                record.outcome = Outcome::Ok;
                self.asked_at = asked_at;
                self.client = Some(client);
            }
            _ => self.at = [next, here],
        }
        self.load.history.add(record);
    }
}
