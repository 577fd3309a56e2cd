//! Callers that leave in the middle.

use std::future::{Future, poll_fn};
use std::task::Poll;

use lease_core::machine::LeaseKey;

use super::*;

#[tokio::test]
async fn a_plain_grant_whose_caller_is_gone_is_released_and_one_with_a_request_id_stays() {
    let store = in_memory().await;
    for (lease, request) in [("plain", None), ("named", Some("r"))] {
        let plain = ask(lease, "x", 60_000);
        let command = match request {
            Some(request) => with_request(request, plain),
            None => plain,
        };
        let mut acquire = Box::pin(store.acquire(DB, command));
        // Once asked for, it is granted, and nobody takes the answer.
        assert!(
            poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx)))
                .await
                .is_pending()
        );
        until(|| store.events(&LeaseKey::new(DB, name(lease)), 1).len() == 1).await;
        drop(acquire);
    }
    until(|| store.stats().leases == 1).await;
    let retry = with_request("r", ask("named", "x", 60_000));
    let kept = granted(&store.acquire(DB, retry).await.unwrap());
    assert_eq!(kept, token(2), "the grant of the lost answer");
    store.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_caller_in_line_that_leaves_is_passed_over() {
    let store = in_memory().await;
    let holder = granted(&store.acquire(DB, ask("a", "x", 60_000)).await.unwrap());
    let plain = tokio::task::spawn({
        let store = store.clone();
        async move { store.acquire(DB, waiting("a", "plain", 60_000, 60_000)).await }
    });
    until(|| store.stats().waiters == 1).await;
    plain.abort();
    let _ = plain.await;
    until(|| store.stats().waiters == 0).await;
    store.release(DB, name("a"), holder).await.unwrap();
    let next = granted(&store.acquire(DB, ask("a", "y", 60_000)).await.unwrap());
    assert_eq!(next, token(2), "nobody was granted in between");
    assert_eq!(store.parked_callers(), 0);
    store.shutdown().await.unwrap();
}

/// A clean stop leaves nothing behind that nobody could use or release.
#[tokio::test]
async fn what_nobody_can_use_any_more_is_released_before_the_node_stops() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        || LeaseStore::start(StoreConfig::in_directory(directory.path()).token_floor(TokenFloor::At(0)));
    let store = open().await.unwrap();
    let mut asked = Vec::new();
    for number in 0..50 {
        let acquire = Box::pin(store.acquire(DB, ask(&format!("a{number}"), "x", 600_000)));
        asked.push(acquire);
    }
    for acquire in &mut asked {
        let polled = poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
    }
    until(|| store.stats().leases == 50).await;
    drop(asked);
    store.shutdown().await.unwrap();

    let store = open().await.unwrap();
    assert_eq!(store.stats().leases, 0);
    store.shutdown().await.unwrap();
}

/// C26: whatever the moment at which an acquire is dropped, no holder and no waiter stays behind.
#[tokio::test]
async fn c26_an_acquire_dropped_at_any_moment_leaves_nothing_behind() {
    let store = in_memory().await;
    for polls in 0..300_usize {
        let wait_ms = if polls % 2 == 0 { 0 } else { 60_000 };
        let mut acquire = Box::pin(store.acquire(DB, waiting("a", "x", 600_000, wait_ms)));
        let mut answer = None;
        for _ in 0..polls % 50 {
            if let Poll::Ready(reply) = poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx))).await {
                answer = Some(reply.unwrap());
                break;
            }
            tokio::task::yield_now().await;
        }
        if let Some(reply) = answer {
            store.release(DB, name("a"), granted(&reply)).await.unwrap();
        }
        drop(acquire);
    }
    until(|| store.stats().leases == 0 && store.stats().waiters == 0).await;
    assert_eq!(store.parked_callers(), 0);
    granted(&store.acquire(DB, ask("a", "y", 1_000)).await.unwrap());
    store.shutdown().await.unwrap();
}
