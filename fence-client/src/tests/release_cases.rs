use lease_core::machine::{Command, EndReason, LeaseKey, Outcome, Renewal};
use lease_core::{Database, Fence};

use super::*;
use crate::call_error::CallError;
use crate::error::{AcquireError, ReleaseError};
use crate::lease::Lease;
use crate::loss::LossReason;
use crate::random::jitter;
use crate::release::Released;

fn renew_of(fence: &Fence) -> Command {
    let key = LeaseKey::new(Database::ZERO, fence.resource.clone());
    Command::Renew(Renewal {
        key,
        token: fence.token,
        ttl: None,
    })
}

/// A release of which every attempt is applied, and every answer lost.
async fn release_without_answer(side: &Side, lease: &Lease) -> ReleaseError {
    for _ in 0..100 {
        side.kit.lose_next_answer(LeaseVerb::Release);
    }
    let error = lease.release_within(ms(1)).await.unwrap_err();
    side.kit.clear();
    error
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_free_at_once_and_its_handle_says_so() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let lease = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    assert_eq!(lease.release().await.unwrap(), Released::Now);
    assert!(!lease.is_valid());
    assert_eq!(lease.lost().await, LossReason::Released);
    assert_eq!(lease.release().await.unwrap(), Released::Before);
    let _next = b.client.lease("l").try_acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c01_a_release_that_is_retried_after_a_lost_answer_spares_the_later_hold() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let first = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    let error = release_without_answer(&a, &first).await;
    assert!(matches!(error, ReleaseError::Unknown { .. }) && error.may_have_applied());
    assert!(!first.is_valid(), "it may be another's");

    let second = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    assert!(second.token() > first.token());
    assert_eq!(first.release().await.unwrap(), Released::Before);
    assert_eq!(store.holder_of("l"), Some(second.token()));
    let refused = b.client.lease("l").try_acquire().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { holder } if holder.token == second.token()));
}

#[tokio::test(start_paused = true)]
async fn c01_a_release_finds_out_by_itself_that_its_lost_answer_was_a_yes() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").acquire().await.unwrap();
    a.kit.lose_next_answer(LeaseVerb::Release);
    assert_eq!(lease.release().await.unwrap(), Released::Now);
    assert_eq!(a.kit.sent(LeaseVerb::Release), 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_of_unknown_outcome_stays_unknown_when_the_next_one_is_not_even_sent() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let lease = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    let unknown = release_without_answer(&a, &lease).await;
    assert!(unknown.may_have_applied());
    let _next = b.client.lease("l").try_acquire().await.unwrap();
    a.kit.cut();
    let again = lease.release_within(ms(100)).await.unwrap_err();
    assert!(again.may_have_applied(), "{again:?}");
    assert!(!lease.is_valid());
}

#[tokio::test(start_paused = true)]
async fn c02_a_release_without_time_left_sends_nothing_and_the_handle_stays_valid() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    let error = lease.release_within(Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, ReleaseError::Unavailable { .. }) && !error.may_have_applied());
    assert_eq!(a.kit.sent(LeaseVerb::Release), 0);
    assert!(lease.is_valid());
    tokio::time::sleep(ms(9_000)).await;
    assert!(lease.is_valid(), "it was renewed on");
    assert_eq!(lease.release().await.unwrap(), Released::Now);
    let _next = b.client.lease("l").try_acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c02_a_release_over_a_cut_connection_fails_and_the_handle_stays_renewable() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let lease = a.client.lease("l").ttl(ms(6_000)).acquire().await.unwrap();
    a.kit.cut();
    let error = lease.release_within(ms(500)).await.unwrap_err();
    assert!(matches!(
        error,
        ReleaseError::Unavailable {
            source: CallError::NotSent { .. }
        }
    ));
    assert!(lease.is_valid());
    a.kit.heal();
    tokio::time::sleep(ms(12_000)).await;
    assert!(lease.is_valid(), "it was renewed on");
    assert_eq!(lease.release().await.unwrap(), Released::Now);
    let _next = b.client.lease("l").try_acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_release_goes_on_when_its_caller_is_gone() {
    let store = MachineStore::start();
    let a = Side::with(&store, ms(5), |builder| builder);
    let lease = a.client.lease("l").acquire().await.unwrap();
    let gate = a.kit.hold_next_answer(LeaseVerb::Release);
    tokio::select! {
        biased;
        () = gate.reached() => {}
        released = lease.release() => panic!("{released:?}"),
    }
    drop(gate);
    eventually("free", || store.leases() == 0).await;
    lease.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c03_no_renewal_outlives_a_release() {
    let store = MachineStore::start();
    let a = Side::with(&store, ms(5), |builder| builder);
    for round in 0..1_000 {
        let lease = a.client.lease("l").ttl(ms(300)).acquire().await.unwrap();
        // Some are held until about the first renewal, so that one is often on its way at the release.
        if round % 10 == 0 {
            tokio::time::sleep(ms(95 + jitter() % 10)).await;
        }
        lease.release().await.unwrap();
    }
    let sent = a.renewals_sent();
    let seen = store.seen(LeaseVerb::RenewMany);
    tokio::time::sleep(ms(600)).await;
    assert_eq!(a.renewals_sent(), sent);
    assert_eq!(store.seen(LeaseVerb::RenewMany), seen);
    assert_eq!((store.leases(), a.client.held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn c03_a_renewal_that_waits_for_its_connection_is_withdrawn_by_the_release() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    // The pause stands for a renewal that was decided and not yet written.
    tokio::time::sleep(ms(999)).await;
    a.kit.pause();
    tokio::time::sleep(ms(1)).await;
    let releasing = tokio::time::timeout(ms(1), lease.release());
    assert!(releasing.await.is_err(), "the client is paused");
    a.kit.resume();
    eventually("released", || store.leases() == 0).await;
    tokio::time::sleep(ms(6_000)).await;
    assert_eq!(a.renewals_sent(), 0);
}

#[tokio::test(start_paused = true)]
async fn c04_a_renewal_answered_after_the_release_changes_nothing() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    let gate = a.kit.hold_next_answer(LeaseVerb::RenewMany);
    gate.reached().await;
    assert_eq!(lease.release().await.unwrap(), Released::Now);
    gate.open();
    tokio::time::sleep(ms(6_000)).await;
    assert!(!lease.is_valid());
    assert_eq!(a.renewals_sent(), 1, "the watchdog was not armed again");
    assert_eq!(a.client.held(), 0);
    let refused = store.one(renew_of(&lease.fence()));
    assert_eq!(
        refused,
        Outcome::Lost {
            reason: EndReason::Released
        }
    );
}

#[tokio::test(start_paused = true)]
async fn s10_a_late_release_spares_the_next_holder() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let late = a.client.lease("l").ttl(ms(1_000)).acquire().await.unwrap();
    a.kit.cut();
    let next = b
        .client
        .lease("l")
        .ttl(ms(1_000))
        .wait(ms(5_000))
        .acquire()
        .await
        .unwrap();
    a.kit.heal();
    let error = late.release().await.unwrap_err();
    assert!(matches!(error, ReleaseError::Lost { .. }) && !error.is_retryable());
    a.client.settle(ms(1_000)).await;
    assert_eq!(store.holder_of("l"), Some(next.token()));
    assert!(next.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lease_is_released_in_the_background() {
    let store = MachineStore::start();
    let a = Side::with(&store, ms(5), |builder| builder);
    drop(a.client.lease("l").ttl(ms(60_000)).acquire().await.unwrap());
    a.client.settle(ms(1_000)).await;
    assert_eq!((store.leases(), a.client.held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_outlives_its_client_is_renewed_until_it_is_dropped() {
    let store = MachineStore::start();
    let Side { client, kit, .. } = Side::new(&store);
    let lease = client.lease("l").ttl(ms(1_000)).acquire().await.unwrap();
    drop(client);
    tokio::time::sleep(ms(5_000)).await;
    assert!(lease.is_valid());
    drop(lease);
    eventually("free", || store.leases() == 0).await;
    let sent = kit.sent(LeaseVerb::RenewMany);
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(kit.sent(LeaseVerb::RenewMany), sent);
}

#[tokio::test(start_paused = true)]
async fn c35_a_second_handle_shares_token_and_lease() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let outer = a.client.lease("l").ttl(ms(1_000)).acquire().await.unwrap();
    let inner = outer.reenter().unwrap();
    assert_eq!(inner.fence(), outer.fence());
    assert_eq!(inner.release().await.unwrap(), Released::Shared);
    assert_eq!(inner.release().await.unwrap(), Released::Shared);
    drop(inner);
    tokio::time::sleep(ms(3_000)).await;
    assert!(outer.is_valid());
    assert_eq!(outer.release().await.unwrap(), Released::Now);
    assert!(outer.reenter().is_err());
}
