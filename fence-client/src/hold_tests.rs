use std::sync::atomic::{AtomicU64, Ordering};

use lease_core::{FenceToken, LeaseName};

use super::*;

/// A lease whose deadline is at 1,000 ms, on a clock that stands at 0 until it is set.
struct Fixture {
    hold: Hold,
    now_ms: Arc<AtomicU64>,
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

impl Fixture {
    fn new(maximum_ms: Option<u64>) -> Self {
        let now_ms = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&now_ms);
        let clock = Clock::from_fn(move || at(shown.load(Ordering::SeqCst)));
        let fence = Fence::new(LeaseName::new("a").unwrap(), FenceToken::new(7).unwrap());
        let terms = Terms {
            deadline: at(1_000),
            maximum_until: maximum_ms.map_or(Moment::NEVER, at),
            feeding: None,
        };
        let owner = OwnerId::new("me").unwrap();
        let hold = Hold::new(
            HoldId(1),
            fence,
            owner,
            Ttl::from_millis(1_000).unwrap(),
            (clock, terms),
        );
        Self { hold, now_ms }
    }

    fn set(&self, millis: u64) {
        self.now_ms.store(millis, Ordering::SeqCst);
    }
}

#[test]
fn a_lease_stands_before_its_deadline_and_not_at_it() {
    let fixture = Fixture::new(None);
    fixture.set(999);
    assert_eq!(fixture.hold.check(), Ok(Duration::from_millis(1)));
    fixture.set(1_000);
    assert_eq!(fixture.hold.check(), Err(LossReason::DeadlinePassed));
    assert_eq!(
        fixture.hold.phase(),
        Phase::Lost(LossReason::DeadlinePassed),
        "asking raises the loss"
    );
}

#[test]
fn c08_a_confirmation_after_the_deadline_revives_nothing() {
    let fixture = Fixture::new(None);
    fixture.set(1_000);
    assert_eq!(fixture.hold.extend(at(5_000)), Extended::TooLate);
    assert_eq!(fixture.hold.check(), Err(LossReason::DeadlinePassed));
    assert_eq!(fixture.hold.extend(at(9_000)), Extended::TooLate);
    fixture.set(0);
    assert_eq!(
        fixture.hold.check(),
        Err(LossReason::DeadlinePassed),
        "not even if the clock went back"
    );
}

#[test]
fn a_lease_that_somebody_shortened_ends_earlier() {
    let fixture = Fixture::new(None);
    assert_eq!(fixture.hold.extend(at(100)), Extended::Yes);
    fixture.set(100);
    assert_eq!(fixture.hold.check(), Err(LossReason::DeadlinePassed));
}

#[test]
fn an_unfed_lease_is_not_renewed_and_says_so_when_it_ends() {
    let fixture = Fixture::new(None);
    fixture.hold.set_feeding(Duration::from_millis(300));
    fixture.set(299);
    assert_eq!(fixture.hold.standing(), Standing::Wanted);
    fixture.set(300);
    assert_eq!(fixture.hold.standing(), Standing::Withheld);
    assert!(fixture.hold.check().is_ok(), "it is not released");
    fixture.hold.feed();
    assert_eq!(fixture.hold.standing(), Standing::Wanted);
    fixture.set(1_000);
    assert_eq!(fixture.hold.check(), Err(LossReason::NotFed));
}

#[test]
fn a_maximum_hold_is_a_reason_of_its_own() {
    let fixture = Fixture::new(Some(600));
    assert_eq!(fixture.hold.check(), Ok(Duration::from_millis(600)));
    fixture.set(600);
    assert_eq!(fixture.hold.check(), Err(LossReason::MaximumHold));
}

#[test]
fn c02_a_release_that_failed_for_certain_gives_the_lease_back() {
    let fixture = Fixture::new(None);
    assert_eq!(fixture.hold.leave(), Left::Last);
    assert!(!fixture.hold.may_be_renewed());
    assert_eq!(
        fixture.hold.check(),
        Err(LossReason::Released),
        "it may be another's at any moment"
    );
    fixture.hold.release_failed();
    assert!(fixture.hold.check().is_ok());
    assert!(fixture.hold.may_be_renewed());
    assert_eq!(fixture.hold.extend(at(2_000)), Extended::Yes);
}

#[test]
fn a_release_that_failed_after_the_deadline_finds_the_lease_lost() {
    let fixture = Fixture::new(None);
    assert_eq!(fixture.hold.leave(), Left::Last);
    fixture.set(1_000);
    fixture.hold.release_failed();
    assert_eq!(fixture.hold.phase(), Phase::Lost(LossReason::DeadlinePassed));
}

#[test]
fn a_release_of_unknown_outcome_never_stands_again_but_may_be_repeated() {
    let fixture = Fixture::new(None);
    assert_eq!(fixture.hold.leave(), Left::Last);
    fixture.hold.release_unknown();
    assert_eq!(fixture.hold.check(), Err(LossReason::Released));
    assert_eq!(fixture.hold.standing(), Standing::Over);
    assert_eq!(fixture.hold.leave(), Left::Last);
    assert!(fixture.hold.is_in_doubt());
    fixture.hold.release_failed();
    assert_eq!(
        fixture.hold.check(),
        Err(LossReason::Released),
        "the doubt about the first one remains"
    );
    assert_eq!(fixture.hold.leave(), Left::Last);
    fixture.hold.released();
    assert_eq!(fixture.hold.leave(), Left::Over);
}

#[test]
fn c04_an_answer_after_the_release_was_asked_for_changes_nothing() {
    let fixture = Fixture::new(None);
    assert_eq!(fixture.hold.leave(), Left::Last);
    assert_eq!(fixture.hold.extend(at(9_000)), Extended::NotWanted);
    fixture.hold.ended(EndReason::Released);
    assert_eq!(fixture.hold.phase(), Phase::Releasing);
    fixture.hold.released();
    assert_eq!(fixture.hold.extend(at(9_000)), Extended::NotWanted);
    assert_eq!(fixture.hold.phase(), Phase::Released);
}

#[test]
fn c06_a_loss_is_raised_once_with_its_first_reason() {
    let fixture = Fixture::new(None);
    let mut changes = fixture.hold.state.subscribe();
    fixture.hold.ended(EndReason::Superseded);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    fixture.hold.ended(EndReason::Unknown);
    fixture.set(1_000);
    fixture.hold.expire();
    assert!(!changes.has_changed().unwrap());
    assert_eq!(
        fixture.hold.check(),
        Err(LossReason::Ended {
            reason: EndReason::Superseded
        })
    );
}

#[test]
fn a_shared_lease_is_released_with_its_last_handle() {
    let fixture = Fixture::new(None);
    fixture.hold.enter().unwrap();
    assert_eq!(fixture.hold.leave(), Left::Shared);
    assert!(fixture.hold.check().is_ok());
    assert_eq!(fixture.hold.drop_handle(), Left::Last);
    assert_eq!(fixture.hold.enter(), Err(LossReason::Released));
}

#[test]
fn a_handle_that_is_dropped_while_its_release_fails_leaves_nobody_to_renew_for() {
    let fixture = Fixture::new(None);
    assert_eq!(fixture.hold.leave(), Left::Last);
    assert_eq!(fixture.hold.drop_handle(), Left::Over);
    fixture.hold.release_failed();
    assert_eq!(fixture.hold.standing(), Standing::Over);
}
