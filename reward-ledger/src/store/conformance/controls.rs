//! Negative controls: with a protection off, the same store must be seen to do wrong.

use super::{applied, claim, gold, is_sound};
use crate::config::LedgerBuilder;
use crate::core::{Protection, Protections};

pub(super) async fn without_fencing_a_stale_holder_is_paid<F: AsyncFn(Protections) -> LedgerBuilder>(
    open: &F,
) {
    let ledger = open(Protections::all_without(Protection::Fencing)).await.open();
    applied(claim(&ledger, gold(102, 42, "week-34")).await);
    applied(claim(&ledger, gold(101, 42, "week-35")).await);
    is_sound(&ledger).await;
}

pub(super) async fn without_the_unique_key_an_event_is_paid_twice_and_the_audit_says_so<
    F: AsyncFn(Protections) -> LedgerBuilder,
>(
    open: &F,
) {
    let ledger = open(Protections::all_without(Protection::UniqueEvent))
        .await
        .open();
    applied(claim(&ledger, gold(101, 42, "week-34")).await);
    applied(claim(&ledger, gold(101, 42, "week-34")).await);
    let report = ledger.audit().await;
    let checks: Vec<_> = report
        .iter()
        .flat_map(|report| report.violations.iter().map(|violation| violation.check()))
        .collect();
    for check in ["C1", "C4", "C7"] {
        assert!(checks.contains(&check), "{check} is not among {checks:?}");
    }
}
