//! The publisher's decisions, against outside servers that lose answers, forget keys and tell lies about nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::decide::{Answer, Moment, Plan, Status, delay, judge_answer, judge_status, plan};
use super::policy::PublishPolicy;
use crate::core::delivery;
use crate::types::{DeliveryProgress, DeliveryState, Doubt, PublisherId, UnixMillis, Verdict};

const TRIES_MAX: u32 = 4;
const WINDOW_MS: u64 = 10_000;
const GIVE_UP_MS: u64 = 8_000;
const TIMEOUT_MS: u64 = 1_000;
const LEASE_MS: u64 = 3_000;

fn policy() -> PublishPolicy {
    PublishPolicy::builder(Duration::from_millis(WINDOW_MS))
        .tries_max(TRIES_MAX)
        .give_up_after(Duration::from_millis(GIVE_UP_MS))
        .request_timeout(Duration::from_millis(TIMEOUT_MS))
        .lease_for(Duration::from_millis(LEASE_MS))
        .backoff(Duration::from_millis(100), Duration::from_millis(5_000))
        .build()
        .unwrap()
}

fn at(millis: u64) -> UnixMillis {
    UnixMillis::new(millis)
}

fn row(doubt: Doubt, tries: u32, first_sent: Option<u64>) -> DeliveryProgress {
    DeliveryProgress {
        tries,
        doubt,
        first_sent: first_sent.map(at),
        ..delivery::begin(at(0))
    }
}

#[test]
fn a_policy_that_outlives_the_outsides_memory_is_refused() {
    let window = Duration::from_secs(60);
    let late = PublishPolicy::builder(window)
        .give_up_after(window)
        .build()
        .unwrap_err();
    assert!(late.to_string().contains("65s after the first"), "{late}");
    assert!(
        PublishPolicy::builder(window)
            .lease_for(Duration::from_secs(9))
            .build()
            .is_err()
    );
    assert!(PublishPolicy::builder(window).tries_max(0).build().is_err());
    assert!(
        PublishPolicy::builder(window)
            .rows_in_flight_max(0)
            .build()
            .is_err()
    );
    assert!(PublishPolicy::builder(window).build().is_ok());
}

#[test]
fn a_row_is_sent_asked_about_or_given_up_by_what_is_known_of_it() {
    let policy = policy();
    let late = GIVE_UP_MS + 100;
    for (row, now, expected) in [
        (row(Doubt::NotDone, 0, None), late, "send"),
        (row(Doubt::NotDone, 3, Some(100)), 200, "send"),
        (row(Doubt::NotDone, 4, Some(100)), 200, "give up"),
        (row(Doubt::NotDone, 1, Some(100)), late, "give up"),
        (row(Doubt::Unknown, 1, Some(100)), 200, "ask then send"),
        (row(Doubt::Unknown, 1, Some(100)), late, "ask only"),
        (row(Doubt::Unknown, 4, Some(100)), 200, "ask only"),
        (row(Doubt::Unknown, 8, Some(100)), 200, "give up"),
    ] {
        let name = match plan(&row, at(now), &policy) {
            Plan::Send => "send",
            Plan::AskThenSend => "ask then send",
            Plan::AskOnly => "ask only",
            Plan::GiveUp(note) => {
                assert!(!note.as_str().is_empty());
                "give up"
            }
        };
        assert_eq!(name, expected, "{row:?} at {now}");
    }
}

#[test]
fn waits_double_up_to_their_longest_and_are_drawn_below_it() {
    let policy = policy();
    for (failures, longest_ms) in [(1, 100), (2, 200), (3, 400), (7, 5_000), (u32::MAX, 5_000)] {
        let longest = Duration::from_millis(longest_ms);
        let nanos = u64::try_from(longest.as_nanos()).unwrap();
        assert_eq!(delay(failures, nanos, &policy), longest);
        assert_eq!(delay(failures, nanos + 1, &policy), Duration::ZERO);
        assert!(delay(failures, 0x1234_5678_9abc_def0, &policy) <= longest);
    }
}

/// What the outside does with a request, and what of that the publisher hears.
#[derive(Debug, Clone, Copy)]
enum Outside {
    Well,
    LosesAnswer,
    Silent,
    Busy,
    Refuses,
}

#[derive(Debug, Clone, Copy)]
struct Round {
    outside: Outside,
    answers_status: u8,
    wait_ms: u64,
    random: u64,
    /// The publisher dies after its request, before its verdict.
    dies: u8,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let outside = prop_oneof![
        2 => Just(Outside::LosesAnswer),
        2 => Just(Outside::Silent),
        2 => Just(Outside::Busy),
        1 => Just(Outside::Well),
        1 => Just(Outside::Refuses),
    ];
    let round = (outside, 0_u8..3, 0_u64..4_000, any::<u64>(), 0_u8..6).prop_map(
        |(outside, answers_status, wait_ms, random, dies)| Round {
            outside,
            answers_status,
            wait_ms,
            random,
            dies,
        },
    );
    prop::collection::vec(round, 1..40)
}

/// An outside server that remembers a key for [`WINDOW_MS`] after it first saw it.
#[derive(Debug, Default)]
struct Server {
    first_seen: Option<u64>,
    done_at: Vec<u64>,
}

impl Server {
    fn request(&mut self, now: u64, outside: Outside) -> Answer {
        match outside {
            Outside::Busy => return Answer::Busy("busy".into()),
            Outside::Refuses => return Answer::Refused("no".into()),
            Outside::Silent => return Answer::Unknown("silent".into()),
            Outside::Well | Outside::LosesAnswer => {}
        }
        let remembers = self.first_seen.is_some_and(|first| now < first + WINDOW_MS);
        if !remembers {
            self.first_seen = Some(now);
            self.done_at.push(now);
        }
        if matches!(outside, Outside::LosesAnswer) {
            Answer::Unknown("lost".into())
        } else {
            Answer::Done
        }
    }

    fn status(&self, answers: u8) -> Status {
        match (answers, self.done_at.is_empty()) {
            (0, _) => Status::Unknown("no status".into()),
            (_, true) => Status::NotDone,
            (_, false) => Status::Done,
        }
    }
}

proptest! {
    /// Whatever the outside does and whenever publishers die: one effect at the most; what is called delivered was done;
    /// what is called surely not done was not; and a row comes to an end.
    #[test]
    fn a_row_is_done_once_and_its_end_is_the_truth(rounds in rounds()) {
        let policy = policy();
        let mut server = Server::default();
        let mut row = delivery::begin(at(0));
        let mut now = 0;
        let mut states = BTreeSet::new();
        for round in rounds {
            now += round.wait_ms;
            let until = at(now + LEASE_MS);
            let Some(leased) = delivery::lease(&row, &PublisherId::new("p"), at(now), until) else {
                continue;
            };
            row = leased;
            let verdict = carry_out(&row, &mut server, now, round, &policy);
            if round.dies == 0 {
                continue;
            }
            row = delivery::settle(&row, row.epoch(), &verdict, at(now)).unwrap();
            states.insert(row.state().name());
            if !row.state().is_open() {
                break;
            }
        }
        prop_assert!(server.done_at.len() <= 1, "done at {:?}, {row:?}", server.done_at);
        if matches!(row.state(), DeliveryState::Delivered { .. }) {
            prop_assert_eq!(server.done_at.len(), 1);
        }
        if matches!(row.state(), DeliveryState::Dead { .. }) && row.doubt() == Doubt::NotDone {
            prop_assert!(server.done_at.is_empty(), "{:?}", row);
        }
        prop_assert!(row.tries() <= 2 * TRIES_MAX + 40, "{states:?}");
    }
}

fn carry_out(
    row: &DeliveryProgress,
    server: &mut Server,
    now: u64,
    round: Round,
    policy: &PublishPolicy,
) -> Verdict {
    let moment = Moment {
        now: at(now),
        random: round.random,
    };
    let mut doubt = row.doubt();
    match plan(row, at(now), policy) {
        Plan::Send => {}
        Plan::GiveUp(note) => return Verdict::Dead { doubt, note },
        Plan::AskOnly => {
            let status = server.status(round.answers_status);
            return judge_status(row, status, moment, policy);
        }
        Plan::AskThenSend => match server.status(round.answers_status) {
            Status::Done => return Verdict::Delivered,
            Status::NotDone => doubt = Doubt::NotDone,
            Status::Unknown(_) => {}
        },
    }
    let answer = server.request(now, round.outside);
    judge_answer(row, doubt, answer, moment, policy)
}

/// The negative control: a publisher that sends the key again without a horizon does the work twice.
#[test]
fn without_a_horizon_the_work_is_done_twice() {
    let mut server = Server::default();
    for now in [0, WINDOW_MS] {
        let _lost = server.request(now, Outside::LosesAnswer);
    }
    assert_eq!(server.done_at.len(), 2);
}
