//! Leases and waits that run out, in paused time.

use lease_core::wire::GetReply;

use super::*;

async fn look(store: &LeaseStore, lease: &str) -> GetReply {
    store.get(DB, name(lease)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_at_its_deadline_by_a_committed_tick_and_its_waiter_is_granted() {
    let store = in_memory().await;
    let started = tokio::time::Instant::now();
    granted(&store.acquire(DB, ask("a", "dead", 5_000)).await.unwrap());
    let second = store
        .acquire(DB, waiting("a", "next", 5_000, 20_000))
        .await
        .unwrap();
    let waited = started.elapsed();
    assert_eq!(granted(&second), token(2));
    assert!((5_000..=5_200).contains(&waited.as_millis()), "{waited:?}");
    let history = store.history(DB, name("a"), None);
    assert_eq!(history.unwrap().events[1].reason, Some(LossReason::Expired));
    store.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_runs_out_is_told_who_holds() {
    let store = in_memory().await;
    granted(&store.acquire(DB, ask("a", "x", 60_000)).await.unwrap());
    let started = tokio::time::Instant::now();
    match store.acquire(DB, waiting("a", "y", 60_000, 1_000)).await.unwrap() {
        AcquireReply::Held {
            owner, held_for_ms, ..
        } => {
            assert_eq!(owner.as_bytes(), b"x");
            assert!(held_for_ms >= 1_000);
        }
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() >= Duration::from_secs(1));
    store.shutdown().await.unwrap();
}

/// C08: a renewal after the deadline is refused, also when nobody else wants the lease.
#[tokio::test(start_paused = true)]
async fn c08_a_late_renewal_is_refused_although_nobody_else_holds() {
    let store = in_memory().await;
    let first = granted(&store.acquire(DB, ask("a", "x", 5_000)).await.unwrap());
    tokio::time::advance(Duration::from_millis(5_001)).await;
    let renew = RenewCommand {
        name: name("a"),
        token: first,
        ttl: None,
    };
    assert_eq!(
        store.renew(DB, renew).await.unwrap(),
        RenewReply::Lost {
            reason: LossReason::Expired
        }
    );
    assert!(granted(&store.acquire(DB, ask("a", "x", 5_000)).await.unwrap()) > first);
    store.shutdown().await.unwrap();
}

/// I4: the end of a lease is decided in the log. A read that meets a deadline that has passed commits it first.
#[tokio::test(start_paused = true)]
async fn a_read_after_the_deadline_finds_nobody_and_never_a_negative_time() {
    let store = in_memory().await;
    granted(&store.acquire(DB, ask("a", "x", 1_000)).await.unwrap());
    let left = look(&store, "a").await.lease.unwrap().remaining_ms.unwrap();
    assert!((900..=1_000).contains(&left), "{left}");
    tokio::time::advance(Duration::from_millis(1_000)).await;
    assert_eq!(look(&store, "a").await, GetReply { lease: None });
    store.shutdown().await.unwrap();
}

/// While leases live, the log knows the time to a second.
#[tokio::test(start_paused = true)]
async fn live_leases_are_ticked_at_least_once_a_second_and_an_idle_store_not_at_all() {
    let store = in_memory().await;
    let before = store.status().applied_index.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        store.status().applied_index.unwrap(),
        before,
        "nothing lives, nothing is written"
    );
    granted(&store.acquire(DB, ask("a", "x", 600_000)).await.unwrap());
    let before = store.status().applied_index.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let ticks = store.status().applied_index.unwrap() - before;
    assert!((55..=65).contains(&ticks), "{ticks}");
    store.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_leases_that_end_at_once_are_all_ended() {
    let store = in_memory().await;
    let mut asked = Vec::new();
    for n in 0..10_000 {
        let store = store.clone();
        asked.push(tokio::task::spawn(async move {
            store.acquire(DB, ask(&format!("a{n}"), "x", 5_000)).await
        }));
    }
    for one in asked {
        granted(&one.await.unwrap().unwrap());
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(store.stats().leases, 0);
    store.shutdown().await.unwrap();
}
