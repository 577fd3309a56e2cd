#![expect(clippy::disallowed_methods, reason = "a test starts callers of its own")]

use lease_core::wire::LossReason as EndReason;
use lease_core::{OwnerId, RequestId};

use super::*;
use crate::error::AcquireError;
use crate::random::jitter;
use crate::unavailable::{Authority, UnavailablePolicy};

#[tokio::test(start_paused = true)]
async fn a_refusal_says_who_holds_under_which_token_and_for_how_long() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let owner = OwnerId::new("worker-a").unwrap();
    let lease = a
        .client
        .lease("l")
        .owner(owner.clone())
        .ttl(ms(5_000))
        .acquire()
        .await
        .unwrap();
    tokio::time::sleep(ms(1_000)).await;
    let AcquireError::Held { holder } = b.client.lease("l").try_acquire().await.unwrap_err() else {
        panic!("not held");
    };
    assert_eq!((holder.owner, holder.token), (owner, lease.token()));
    assert_eq!(
        (holder.remaining, holder.held_for, holder.waiters),
        (Some(ms(4_000)), ms(1_000), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn two_acquires_of_one_client_exclude_each_other() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let first = a.client.lease("l").acquire().await.unwrap();
    assert!(matches!(
        a.client.lease("l").try_acquire().await,
        Err(AcquireError::Held { .. })
    ));
    let waiting = a.client.lease("l").wait(ms(1_000)).acquire();
    let (second, released) = tokio::join!(waiting, first.release());
    released.unwrap();
    assert!(second.unwrap().token() > first.token());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_refused_before_it_is_sent() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let long = vec![b'x'; 1_025];
    for (error, request) in [
        ("empty name", a.client.lease("")),
        ("long name", a.client.lease(&long)),
        ("long metadata", a.client.lease("l").metadata(vec![0; 4_097])),
        ("no ttl", a.client.lease("l").ttl(Duration::ZERO)),
        ("short ttl", a.client.lease("l").ttl(ms(20))),
    ] {
        let refused = request.acquire().await.unwrap_err();
        let as_expected = matches!(
            refused,
            AcquireError::Invalid { .. } | AcquireError::TtlTooShort { .. }
        );
        assert!(as_expected && !refused.is_retryable(), "{error}: {refused:?}");
    }
    assert_eq!(store.seen(LeaseVerb::Acquire), 0);
    let text = a
        .client
        .lease("l")
        .ttl(ms(20))
        .acquire()
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        text,
        "a ttl of 20ms is too short: with a margin of 10ms it must be at least 21ms"
    );
}

#[tokio::test(start_paused = true)]
async fn c11_a_grant_counts_from_the_send_of_its_request() {
    let store = MachineStore::start();
    let patient = |builder: ClientBuilder| builder.request_timeout(ms(60_000)).operation_timeout(ms(120_000));
    let a = Side::with(&store, Duration::ZERO, patient);
    a.kit.delay_next_answer(LeaseVerb::Acquire, ms(20_000));
    let lease = a.client.lease("l").ttl(ms(25_000)).acquire().await.unwrap();
    assert!(lease.remaining() <= ms(4_500), "{:?}", lease.remaining());
    lease.release().await.unwrap();

    a.kit.delay_next_answer(LeaseVerb::Acquire, ms(30_000));
    let error = a.client.lease("l").ttl(ms(25_000)).acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::AnsweredTooLate { .. }), "{error:?}");
    a.client.settle(ms(1_000)).await;
    assert_eq!(store.leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn k2_the_time_in_the_queue_counts_for_the_holder() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let first = a.client.lease("l").ttl(ms(4_000)).acquire().await.unwrap();
    let waiting = b.client.lease("l").ttl(ms(4_000)).wait(ms(20_000)).acquire();
    let (next, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(ms(9_000)).await;
        first.release().await.unwrap();
    });
    let remaining = next.unwrap().remaining();
    // 4 s, less the margin of 80 ms, less 0.1 % of the 13 s since the request left.
    assert!(remaining > ms(3_900) && remaining <= ms(3_907), "{remaining:?}");
}

#[tokio::test(start_paused = true)]
async fn c23_a_wait_ends_with_its_time_and_never_wins_later() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let held = a.client.lease("l").acquire().await.unwrap();
    let start = b.clock.elapsed();
    let refused = b.client.lease("l").wait(ms(3_000)).acquire().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { .. }));
    assert!(b.clock.elapsed() - start <= ms(3_010));
    held.release().await.unwrap();
    tokio::time::sleep(ms(100)).await;
    assert_eq!((store.leases(), store.waiters()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn c23_a_wait_that_is_cut_off_returns_an_error_and_never_wins_later() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let held = a.client.lease("l").acquire().await.unwrap();
    let waiting = b.client.lease("l").wait(ms(60_000)).acquire();
    let cutting = async {
        eventually("queued", || store.waiters() == 1).await;
        b.kit.cut();
    };
    let start = b.clock.elapsed();
    let (error, ()) = tokio::join!(waiting, cutting);
    let error = error.unwrap_err();
    assert!(matches!(error, AcquireError::Unknown { .. }) && error.may_have_applied());
    assert!(
        b.clock.elapsed() - start <= ms(6_000),
        "within the time of one operation"
    );
    held.release().await.unwrap();
    tokio::time::sleep(ms(100)).await;
    assert_eq!((store.leases(), store.waiters()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_whose_connection_broke_keeps_its_place() {
    let store = MachineStore::start();
    let (a, b, c) = (Side::new(&store), Side::new(&store), Side::new(&store));
    let held = a.client.lease("l").acquire().await.unwrap();
    let first = tokio::spawn(b.client.lease("l").wait(ms(60_000)).acquire());
    eventually("the first is queued", || store.waiters() == 1).await;
    let second = tokio::spawn(c.client.lease("l").wait(ms(60_000)).acquire());
    eventually("both are queued", || store.waiters() == 2).await;
    b.kit.cut();
    tokio::time::sleep(ms(10)).await;
    b.kit.heal();
    tokio::time::sleep(ms(1_500)).await;
    held.release().await.unwrap();
    let first = first.await.unwrap().unwrap();
    assert!(!second.is_finished(), "not before its turn");
    first.release().await.unwrap();
    assert!(second.await.unwrap().unwrap().token() > first.token());
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_asks_again_in_its_place() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let held = a.client.lease("l").acquire().await.unwrap();
    let waiting = b.client.lease("l").wait(ms(300_000)).acquire();
    let (lease, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(ms(100_000)).await;
        held.release().await.unwrap();
    });
    let _lease = lease.unwrap();
    assert_eq!(b.kit.sent(LeaseVerb::Acquire), 4);
}

#[tokio::test(start_paused = true)]
async fn c26_a_cancelled_acquire_leaves_neither_holder_nor_waiter() {
    let store = MachineStore::start();
    let a = Side::with(&store, ms(5), |builder| builder);
    for round in 0..1_000 {
        let held = if round % 2 == 0 {
            Some(a.client.lease("l").ttl(ms(60_000)).acquire().await.unwrap())
        } else {
            None
        };
        let asked = a.client.lease("l").ttl(ms(60_000)).wait(ms(60_000)).acquire();
        let micros = jitter() % 8_000;
        let cancelled = tokio::time::timeout(Duration::from_micros(micros), asked).await;
        drop(cancelled);
        drop(held);
        a.client.settle(ms(5_000)).await;
        assert_eq!((store.leases(), store.waiters()), (0, 0), "round {round}");
    }
    let next = a.client.lease("l").try_acquire().await.unwrap();
    assert!(next.is_valid());
}

#[tokio::test(start_paused = true)]
async fn c29_the_winner_of_many_knows_it_although_its_answer_was_lost() {
    let store = MachineStore::start();
    let sides: Vec<_> = (0..12).map(|_| Side::new(&store)).collect();
    sides[0].kit.lose_next_answer(LeaseVerb::Acquire);
    let acquired = futures_util::future::join_all(
        sides
            .iter()
            .map(|side| side.client.lease("l").ttl(ms(30_000)).acquire()),
    );
    let acquired = acquired.await;
    let winners: Vec<_> = acquired
        .iter()
        .filter_map(|acquired| acquired.as_ref().ok())
        .collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(store.holder_of("l"), Some(winners[0].token()));
    assert_eq!(
        winners[0].token().get(),
        1,
        "the first attempt's token, and no second one was issued"
    );
    assert!(acquired[0].is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_known_request_id_can_be_given_up_from_elsewhere() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let _held = a.client.lease("l").acquire().await.unwrap();
    let id = RequestId::new("job-7").unwrap();
    let waiting = b
        .client
        .lease("l")
        .request_id(id.clone())
        .wait(ms(60_000))
        .acquire();
    let (ended, cancelled) = tokio::join!(waiting, async {
        eventually("queued", || store.waiters() == 1).await;
        a.client.cancel("l", b.client.owner(), &id).await
    });
    assert_eq!(cancelled.unwrap(), crate::CancelReply::Cancelled);
    let reason = EndReason::Cancelled;
    assert!(matches!(ended, Err(AcquireError::Ended { token: None, reason: found }) if found == reason));
}

#[tokio::test(start_paused = true)]
async fn s15_an_unreachable_store_means_no_lease_and_no_work() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    a.kit.cut();
    let start = a.clock.elapsed();
    let error = a.client.lease("l").acquire_or_unfenced().await.unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable { .. }));
    assert!(error.is_retryable() && !error.may_have_applied());
    assert!(a.clock.elapsed() - start <= ms(5_000));
}

#[tokio::test(start_paused = true)]
async fn s15_an_open_policy_gives_a_limited_unfenced_permit_and_never_against_a_holder() {
    let store = MachineStore::start();
    let open = UnavailablePolicy::open_limited(1, Duration::from_secs(60));
    let (a, b) = (
        Side::with(&store, Duration::ZERO, |builder| builder.unavailable(open)),
        Side::new(&store),
    );
    let held = b.client.lease("l").acquire().await.unwrap();
    let refused = a.client.lease("l").acquire_or_unfenced().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { .. }));

    a.kit.cut();
    let Authority::Unfenced(permit) = a.client.lease("l").acquire_or_unfenced().await.unwrap() else {
        panic!("a lease without a store");
    };
    assert_eq!(permit.name().as_bytes(), b"l");
    assert!(
        a.client.lease("m").acquire_or_unfenced().await.is_err(),
        "one at a time"
    );
    drop(permit);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        a.client.lease("l").acquire_or_unfenced().await.is_err(),
        "only for the first minute"
    );

    a.kit.heal();
    held.release().await.unwrap();
    assert!(matches!(
        a.client.lease("l").acquire_or_unfenced().await.unwrap(),
        Authority::Fenced(_)
    ));
}
