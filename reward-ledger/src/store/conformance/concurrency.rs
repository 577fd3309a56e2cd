//! Many callers at once.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{applied, claim, gold, is_sound, seen};
use crate::config::LedgerBuilder;
use crate::core::ClaimOutcome;
use crate::ledger::Ledger;

/// Runs all of them beside each other on this task, so that the suite needs no runtime of its own.
async fn together<T>(works: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    enum Slot<'a, T> {
        Waits(Pin<Box<dyn Future<Output = T> + 'a>>),
        Done(T),
    }
    let mut slots: Vec<_> = works
        .into_iter()
        .map(|work| Slot::Waits(Box::pin(work)))
        .collect();
    std::future::poll_fn(|context: &mut Context<'_>| {
        let mut waits = false;
        for slot in &mut slots {
            if let Slot::Waits(work) = slot {
                match work.as_mut().poll(context) {
                    Poll::Ready(value) => *slot = Slot::Done(value),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    slots
        .into_iter()
        .filter_map(|slot| match slot {
            Slot::Done(value) => Some(value),
            Slot::Waits(_) => None,
        })
        .collect()
}

pub(super) async fn sixty_four_claims_of_one_event_grant_it_once(open: LedgerBuilder) {
    let ledger = open.open();
    let outcomes = together((0..64).map(|_| claim(&ledger, gold(101, 42, "week-34")))).await;
    let granted = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, ClaimOutcome::Applied(_)))
        .count();
    assert_eq!(granted, 1);
    let mut receipts: Vec<_> = outcomes.iter().filter_map(ClaimOutcome::receipt).collect();
    assert_eq!(receipts.len(), 64, "each of them gets the receipt");
    receipts.dedup_by(|a, b| a.as_bytes() == b.as_bytes());
    assert_eq!(receipts.len(), 1, "and it is the same, byte for byte");
    is_sound(&ledger).await;
}

pub(super) async fn claims_of_many_players_beside_each_other_all_arrive(open: LedgerBuilder) {
    let ledger = open.open();
    let receipts =
        together((0..700_i64).map(async |player| applied(claim(&ledger, gold(1, player, "week-34")).await)))
            .await;
    let mut numbers: Vec<_> = receipts.iter().map(|receipt| receipt.claim_id().get()).collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (1..=700).collect::<Vec<_>>(),
        "each has a number of its own"
    );
    is_sound(&ledger).await;
}

/// An audit looks at a moving ledger, and what moves is no violation.
pub(super) async fn an_audit_beside_claims_finds_nothing(open: LedgerBuilder) {
    type Work<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
    let ledger = &open.open();
    let works = (0..1_200_i64).map(|number| -> Work<'_> {
        if number % 50 == 0 {
            return Box::pin(is_sound(ledger));
        }
        Box::pin(async move {
            for week in 0..3 {
                applied(claim(ledger, gold(1, number % 40, &format!("week-{number}-{week}"))).await);
            }
        })
    });
    together(works).await;
    is_sound(ledger).await;
}

pub(super) async fn accepted_tokens_never_fall(open: LedgerBuilder) {
    let ledger = open.open();
    let tokens = (0..200_u64).map(|n| 1 + n * 7_919 % 97);
    let answers = together(tokens.map(|number| one_event_each(&ledger, number))).await;
    let mut accepted: Vec<_> = answers.into_iter().flatten().collect();
    accepted.sort_unstable();
    let in_commit_order: Vec<u64> = accepted.iter().map(|&(_, token)| token).collect();
    assert!(in_commit_order.is_sorted(), "{in_commit_order:?}");
    assert_eq!(
        seen(&ledger, "lock:reward:42").await,
        in_commit_order.last().copied()
    );
    is_sound(&ledger).await;
}

/// Claim number and token, if the claim was applied.
async fn one_event_each(ledger: &Ledger, number: u64) -> Option<(u64, u64)> {
    match claim(ledger, gold(number, 42, &format!("week-{number}"))).await {
        ClaimOutcome::Applied(receipt) => Some((receipt.claim_id().get(), number)),
        ClaimOutcome::Replayed(_) | ClaimOutcome::Stale { .. } => None,
        other @ ClaimOutcome::Conflict { .. } => unreachable!("all claims agree, yet {other:?}"),
    }
}
