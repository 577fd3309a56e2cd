//! Payments of one order: whatever workers and people do, and in whatever order their messages arrive.

use lease_core::{Fence, FenceToken, LeaseName};
use proptest::prelude::*;

use super::payment::{PaymentView, report, start};
use super::{Judgement, PaymentOutcome, PaymentReport, ReportOutcome};
use crate::limits::PAYMENT_ATTEMPTS_MAX;
use crate::types::{
    Amount, AttemptId, Item, Note, OrderId, PaymentAttempt, PaymentResult, PaymentStart, PaymentStatus,
    Reason, UnixMillis,
};

const AT: UnixMillis = UnixMillis::new(1);

fn token(number: u64) -> FenceToken {
    FenceToken::new(number).unwrap()
}

fn attempt_id(number: u8) -> AttemptId {
    AttemptId::new(format!("pay-{number}")).unwrap()
}

fn start_of(attempt: u8, number: u64) -> PaymentStart {
    PaymentStart::new(
        OrderId::new("order-1").unwrap(),
        attempt_id(attempt),
        Fence::new(LeaseName::new("lock:order-1").unwrap(), token(number)),
        Item::new("EUR-cent").unwrap(),
        Amount::new(1_999).unwrap(),
    )
}

/// One order and its fence, as a store would keep them.
#[derive(Debug, Default)]
struct Books {
    attempts: Vec<PaymentAttempt>,
    seen: Option<FenceToken>,
}

impl Books {
    fn find(&self, id: &AttemptId) -> Option<PaymentAttempt> {
        self.attempts
            .iter()
            .find(|attempt| attempt.attempt == *id)
            .cloned()
    }

    fn write(&mut self, written: Option<PaymentAttempt>, raise: Option<FenceToken>) {
        if let Some(token) = raise {
            assert!(self.seen.is_none_or(|seen| seen < token), "the fence only rises");
            self.seen = Some(token);
        }
        if let Some(written) = written {
            self.attempts.retain(|attempt| attempt.attempt != written.attempt);
            self.attempts.push(written);
        }
    }

    fn start(&mut self, wanted: &PaymentStart) -> PaymentOutcome {
        let view = PaymentView {
            same: self.find(&wanted.attempt),
            active: self.attempts.iter().find(|attempt| attempt.is_active()).cloned(),
            attempts: self.attempts.len(),
            seen: self.seen,
        };
        let decision = start(&view, wanted, AT);
        self.write(decision.write, decision.raise);
        decision.outcome
    }

    fn report(&mut self, told: &PaymentReport) -> ReportOutcome {
        let same = self.find(&told.attempt);
        let decision = report(same.as_ref(), self.seen, told, AT);
        self.write(decision.write, decision.raise);
        decision.outcome
    }
}

#[derive(Debug, Clone)]
enum Step {
    Start(u8, u64),
    Worker(u8, u64, PaymentResult),
    Person(u8, Judgement),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let result = prop_oneof![
        Just(PaymentResult::Approved),
        Just(PaymentResult::Failed),
        Just(PaymentResult::Unknown)
    ];
    let judgement = prop_oneof![Just(Judgement::Approved), Just(Judgement::Failed)];
    let step = prop_oneof![
        (0_u8..5, 1_u64..6).prop_map(|(attempt, token)| Step::Start(attempt, token)),
        (0_u8..5, 1_u64..6, result).prop_map(|(attempt, token, result)| Step::Worker(attempt, token, result)),
        (0_u8..5, judgement).prop_map(|(attempt, judgement)| Step::Person(attempt, judgement)),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// At most one attempt is active; what is approved or failed stays so; a stale worker moves nothing.
    #[test]
    fn one_attempt_is_active_and_what_is_final_stays(steps in steps()) {
        let mut books = Books::default();
        for step in steps {
            let before = books.attempts.clone();
            let seen = books.seen;
            match &step {
                Step::Start(attempt, number) => {
                    let outcome = books.start(&start_of(*attempt, *number));
                    if seen.is_some_and(|seen| token(*number) < seen) {
                        let is_stale = matches!(outcome, PaymentOutcome::Stale { .. });
                        prop_assert!(is_stale, "{:?}", outcome);
                        prop_assert_eq!(&before, &books.attempts);
                    }
                }
                Step::Worker(attempt, number, result) => {
                    let told = PaymentReport::of_worker(attempt_id(*attempt), *result, token(*number), Note::default());
                    let _outcome = books.report(&told);
                    if seen.is_some_and(|seen| token(*number) < seen) {
                        prop_assert_eq!(&before, &books.attempts);
                    }
                }
                Step::Person(attempt, judgement) => {
                    let reason = Reason::new("by hand").unwrap();
                    let _outcome = books.report(&PaymentReport::of_person(attempt_id(*attempt), *judgement, reason));
                    prop_assert_eq!(seen, books.seen, "a person moves no fence");
                }
            }
            prop_assert!(books.attempts.iter().filter(|attempt| attempt.is_active()).count() <= 1);
            for was in &before {
                let is = books.find(&was.attempt).unwrap();
                if matches!(was.status, PaymentStatus::Approved(_) | PaymentStatus::Failed(_)) {
                    prop_assert_eq!(&was.status, &is.status);
                }
            }
        }
    }
}

#[test]
fn an_order_whose_attempts_all_fail_comes_to_an_end() {
    let mut books = Books::default();
    for number in 0..=PAYMENT_ATTEMPTS_MAX {
        let mut wanted = start_of(0, 1);
        wanted.attempt = AttemptId::new(format!("loop-{number}")).unwrap();
        let outcome = books.start(&wanted);
        if number == PAYMENT_ATTEMPTS_MAX {
            assert_eq!(outcome, PaymentOutcome::TooMany { attempts: number });
            return;
        }
        assert!(matches!(outcome, PaymentOutcome::Started(_)));
        let told = PaymentReport::of_worker(wanted.attempt, PaymentResult::Failed, token(1), Note::default());
        assert!(matches!(books.report(&told), ReportOutcome::Recorded(_)));
    }
}
