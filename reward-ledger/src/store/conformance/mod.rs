//! The suite that every store passes, in one line each: what the contract promises, asked of a real store through the
//! ledger's door. The order of the checks in detail is the core's own tests' business.
//!
//! Every store is opened to decide twice ([`Protections::all_deciding_twice`]), since a store may run its transaction
//! again.

mod archive;
mod claims;
mod concurrency;
mod controls;
mod corrections;
mod dead_letters;
mod operations;
mod outbox;
mod payments;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lease_core::{Fence, FenceToken, LeaseName};

use crate::clock::Clock;
use crate::config::LedgerBuilder;
use crate::core::{ClaimOutcome, Protections};
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;
use crate::types::{Claim, ClaimBuilder, Receipt, UnixMillis};

/// Runs the whole suite. `open` makes a ledger over a fresh, empty store that runs with these protections.
///
/// # Panics
/// Where the store breaks a promise.
pub async fn check<F: AsyncFn(Protections) -> LedgerBuilder>(open: F) {
    let fresh = async || open(Protections::all_deciding_twice()).await;

    claims::a_claim_is_applied_once_and_replayed_byte_for_byte(fresh().await).await;
    claims::a_stale_token_is_refused_and_shown_the_receipt(fresh().await).await;
    claims::a_refusal_binds_the_attempt_and_never_the_event(fresh().await).await;
    claims::a_refused_attempt_keeps_its_first_refusal(fresh().await).await;
    claims::an_accepted_attempt_is_answered_also_when_its_token_is_stale_by_now(fresh().await).await;
    claims::a_message_delivered_again_under_a_new_token_is_replayed(fresh().await).await;
    claims::one_attempt_id_for_two_events_is_a_conflict(fresh().await).await;
    claims::a_taken_event_conflicts_and_names_the_fields(fresh().await).await;
    claims::accepted_replayed_and_conflicting_claims_raise_the_fence(fresh().await).await;
    claims::fences_of_different_resources_do_not_compare(fresh().await).await;
    claims::two_rewards_of_one_player_are_both_granted(fresh().await).await;
    claims::extreme_values_are_kept(fresh().await).await;

    operations::unfenced_claims_are_taken_only_where_allowed(fresh().await, fresh().await).await;
    operations::refusals_are_forgotten_in_time_and_claims_never(fresh().await).await;
    operations::an_operator_resets_a_fence_with_a_reason(fresh().await).await;
    operations::an_audit_counts_what_is_there(fresh().await).await;
    operations::a_closed_ledger_says_so(fresh().await).await;

    corrections::a_batch_answers_each_claim_for_itself(fresh().await).await;
    corrections::a_whole_batch_is_granted_or_nothing_of_it_is_written(fresh().await).await;
    corrections::a_grant_is_taken_back_once_and_its_event_never_granted_again(fresh().await).await;

    outbox::rows_are_leased_in_the_order_of_their_player_and_delivered_once(fresh().await).await;
    outbox::a_leased_row_is_nobody_elses_until_the_lease_is_over(fresh().await).await;
    outbox::a_verdict_of_an_earlier_lease_touches_nothing(fresh().await).await;
    outbox::a_row_that_is_tried_again_holds_up_its_player_and_nobody_else(fresh().await).await;
    dead_letters::dead_letters_hold_up_nobody_are_listed_and_wait_for_a_person(fresh().await).await;
    dead_letters::a_dead_letter_that_is_tried_again_keeps_its_players_order(fresh().await).await;
    dead_letters::a_grant_is_never_told_after_its_reversal(fresh().await).await;
    outbox::a_publisher_whose_partition_has_a_newer_holder_is_leased_nothing(fresh().await).await;
    outbox::many_rows_of_one_player_that_are_not_due_hide_nobody(fresh().await).await;

    payments::one_attempt_of_an_order_is_active(fresh().await).await;
    payments::a_stale_worker_touches_no_payment(fresh().await).await;
    payments::an_unknown_outcome_blocks_until_it_is_settled(fresh().await).await;
    payments::sixty_four_starts_of_one_order_start_one(fresh().await).await;

    archive::claims_are_found_by_player_event_resource_token_and_time(fresh().await).await;
    archive::an_export_put_into_an_empty_store_answers_as_the_first_one(fresh().await, fresh().await).await;
    archive::an_import_that_differs_is_refused_whole(fresh().await, fresh().await).await;

    concurrency::sixty_four_claims_of_one_event_grant_it_once(fresh().await).await;
    concurrency::claims_of_many_players_beside_each_other_all_arrive(fresh().await).await;
    concurrency::accepted_tokens_never_fall(fresh().await).await;
    concurrency::an_audit_beside_claims_finds_nothing(fresh().await).await;

    controls::without_fencing_a_stale_holder_is_paid(&open).await;
    controls::without_the_unique_key_an_event_is_paid_twice_and_the_audit_says_so(&open).await;
}

/// A wall clock that stands until it is moved.
#[derive(Debug, Clone)]
struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    fn at(millis: u64) -> Self {
        Self(Arc::new(AtomicU64::new(millis)))
    }

    fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        UnixMillis::new(self.0.load(Ordering::SeqCst))
    }
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
fn resource(name: &str) -> LeaseName {
    LeaseName::new(name).expect("the suite's names are valid")
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
fn token(number: u64) -> FenceToken {
    FenceToken::new(number).expect("the suite's tokens are valid")
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
fn event(text: &str) -> RewardEventId {
    RewardEventId::parse(text).expect("the suite's events are valid")
}

/// 500 gold for `player` for `event_name`, under the player's own lock.
fn gold(number: u64, player: i64, event_name: &str) -> ClaimBuilder {
    let fence = Fence::new(resource(&format!("lock:reward:{player}")), token(number));
    Claim::builder(fence, player, event(event_name), 500).item("gold")
}

/// The answer to a claim that must be answered.
#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn claim(ledger: &Ledger, claim: ClaimBuilder) -> ClaimOutcome {
    let claim = claim.build().expect("the suite's claims are valid");
    ledger.claim(claim).await.expect("the store answers")
}

/// The receipt of a claim that must be applied now.
#[track_caller]
fn applied(outcome: ClaimOutcome) -> Receipt {
    match outcome {
        ClaimOutcome::Applied(receipt) => receipt,
        other @ (ClaimOutcome::Replayed(_) | ClaimOutcome::Stale { .. } | ClaimOutcome::Conflict { .. }) => {
            unreachable!("expected a claim to be applied, it was {other:?}")
        }
    }
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn seen(ledger: &Ledger, name: &str) -> Option<u64> {
    let state = ledger.fence(&resource(name)).await.expect("the store answers");
    state.and_then(|state| state.seen).map(FenceToken::get)
}

/// No invariant is violated.
#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn is_sound(ledger: &Ledger) {
    let report = ledger.audit().await.expect("the store answers");
    assert!(report.is_clean(), "{:?}", report.violations);
}
