//! The invariants that hold after every scenario, by the audit and by counting.

use reward_ledger::{Amount, AuditReport, ClaimOutcome, Expectations, Receipt, RewardEventId};

use crate::desk::Desk;

/// What a ledger must hold: each of these once, and nothing else.
pub(crate) async fn hold_exactly(ledger: &Desk, granted: &[(i64, RewardEventId, i64)]) {
    let mut expectations = Expectations::new();
    let mut sum = 0;
    for (player, event, amount) in granted {
        expectations = expectations
            .event(event.clone(), Amount::new(*amount).unwrap())
            .unwrap();
        sum += i128::from(*amount);
        let receipt = ledger.get(*player, event).await;
        assert_eq!(receipt.unwrap().amount().get(), *amount, "{event}");
    }
    let report = ledger.audit_against(expectations).await;
    assert!(report.is_clean(), "{:?}", report.violations);
    let rewards = u64::try_from(granted.len()).unwrap();
    assert_eq!(
        (report.claims, report.outbox_rows, report.granted),
        (rewards, rewards, sum)
    );
}

/// The audit of a ledger that must be found to be broken.
pub(crate) async fn broken(ledger: &Desk) -> AuditReport {
    let report = ledger.audit().await;
    assert!(
        !report.is_clean(),
        "the audit does not see what went wrong: {report:?}"
    );
    report
}

/// Whether an audit found an event granted more than once.
pub(crate) fn granted_twice(report: &AuditReport) -> bool {
    report
        .violations
        .iter()
        .any(|violation| violation.check() == "C1")
}

/// The receipt of a claim that must be applied now.
#[track_caller]
pub(crate) fn applied(outcome: ClaimOutcome) -> Receipt {
    assert!(
        matches!(outcome, ClaimOutcome::Applied(_)),
        "not applied: {outcome:?}"
    );
    outcome.receipt().unwrap().clone()
}

/// The receipt of a claim that must be answered with an earlier one.
#[track_caller]
pub(crate) fn replayed(outcome: ClaimOutcome) -> Receipt {
    assert!(
        matches!(outcome, ClaimOutcome::Replayed(_)),
        "not replayed: {outcome:?}"
    );
    outcome.receipt().unwrap().clone()
}

/// A claim that must be refused: which token was shown, the highest seen, and what was shown in return.
#[track_caller]
pub(crate) fn stale(outcome: ClaimOutcome) -> (u64, u64, Option<Receipt>) {
    let ClaimOutcome::Stale {
        presented,
        seen,
        applied,
    } = outcome
    else {
        panic!("not refused as stale: {outcome:?}");
    };
    (presented.get(), seen.get(), applied)
}
