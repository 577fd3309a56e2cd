//! The store as a whole, on one node in this process.
#![expect(
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "callers run beside the store, on tokio and its paused clock; every other answer fails a test"
)]

use std::time::Duration;

use lease_core::wire::{AcquireCommand, AcquireReply, LossReason, ReleaseReply, RenewCommand, RenewReply};
use lease_core::{Database, FenceToken, LeaseName, OwnerId, RequestId, SharedBytes, Ttl};

use crate::{LeaseStore, StoreConfig, TokenFloor};

mod orphans;
mod restart;
mod time;

const DB: Database = Database::ZERO;

async fn in_memory() -> LeaseStore {
    LeaseStore::start(StoreConfig::in_memory().token_floor(TokenFloor::At(0)))
        .await
        .unwrap()
}

fn name(name: &str) -> LeaseName {
    LeaseName::new(name).unwrap()
}

fn token(token: u64) -> FenceToken {
    FenceToken::new(token).unwrap()
}

fn ask(lease: &str, owner: &str, ttl_ms: u64) -> AcquireCommand {
    AcquireCommand {
        name: name(lease),
        owner: OwnerId::new(owner).unwrap(),
        ttl: Ttl::from_millis(ttl_ms).unwrap(),
        wait_ms: 0,
        request: None,
        metadata: None,
    }
}

fn waiting(lease: &str, owner: &str, ttl_ms: u64, wait_ms: u64) -> AcquireCommand {
    AcquireCommand {
        wait_ms,
        ..ask(lease, owner, ttl_ms)
    }
}

fn with_request(request: &str, command: AcquireCommand) -> AcquireCommand {
    AcquireCommand {
        request: Some(RequestId::new(request).unwrap()),
        ..command
    }
}

/// The token of a grant; anything else fails the test.
fn granted(reply: &AcquireReply) -> FenceToken {
    match reply {
        AcquireReply::Granted { token, .. } => *token,
        other => panic!("not granted: {other:?}"),
    }
}

/// Lets other tasks run until `condition` holds. Bounded, so that a test fails instead of hanging.
async fn until(condition: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the condition never held");
}

#[tokio::test]
async fn a_lease_is_held_by_one_renewed_released_and_granted_anew_with_a_higher_token() {
    let store = in_memory().await;
    let first = granted(&store.acquire(DB, ask("a", "x", 60_000)).await.unwrap());
    assert_eq!(first, token(1));
    match store.acquire(DB, ask("a", "y", 60_000)).await.unwrap() {
        AcquireReply::Held {
            token,
            owner,
            waiters: 0,
            remaining_ms: Some(left),
            ..
        } => {
            assert_eq!((token, owner.as_bytes()), (first, &b"x"[..]));
            assert!(left <= 60_000);
        }
        other => panic!("{other:?}"),
    }
    let renew = RenewCommand {
        name: name("a"),
        token: first,
        ttl: None,
    };
    let renewed = store.renew(DB, renew.clone()).await.unwrap();
    assert_eq!(
        renewed,
        RenewReply::Renewed {
            remaining_ms: Some(60_000)
        }
    );
    assert_eq!(
        store.release(DB, name("a"), first).await.unwrap(),
        ReleaseReply::Released
    );
    let again = store.release(DB, name("a"), first).await.unwrap();
    assert_eq!(
        again,
        ReleaseReply::Lost {
            reason: LossReason::Released
        }
    );
    assert_eq!(
        store.renew(DB, renew).await.unwrap(),
        RenewReply::Lost {
            reason: LossReason::Released
        }
    );
    let second = granted(&store.acquire(DB, ask("a", "y", 60_000)).await.unwrap());
    assert!(second > first);
    store.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_waiting_caller_is_granted_at_the_release_and_told_why_it_was_lost_by_force() {
    let store = in_memory().await;
    let first = granted(&store.acquire(DB, ask("a", "x", 60_000)).await.unwrap());
    let waiter = tokio::task::spawn({
        let store = store.clone();
        async move {
            store
                .acquire(DB, waiting("a", "y", 60_000, 60_000))
                .await
                .unwrap()
        }
    });
    until(|| store.stats().waiters == 1).await;
    store.release(DB, name("a"), first).await.unwrap();
    let second = granted(&waiter.await.unwrap());
    let forced = store
        .force(DB, name("a"), SharedBytes::from("stuck"))
        .await
        .unwrap();
    assert_eq!(forced, lease_core::wire::ForceReply::Released { token: second });
    let renew = RenewCommand {
        name: name("a"),
        token: second,
        ttl: None,
    };
    let lost = RenewReply::Lost {
        reason: LossReason::Forced {
            reason: SharedBytes::from("stuck"),
        },
    };
    assert_eq!(store.renew(DB, renew).await.unwrap(), lost);
    let history = store.history(DB, name("a"), None);
    let tokens: Vec<u64> = history
        .unwrap()
        .events
        .iter()
        .map(|event| event.token.get())
        .collect();
    assert_eq!(tokens, [2, 2, 1, 1], "granted and ended, newest first");
    store.shutdown().await.unwrap();
}

#[tokio::test]
async fn many_callers_at_once_get_different_tokens_in_few_entries() {
    let store = in_memory().await;
    let callers: Vec<_> = (0..256)
        .map(|n| {
            let store = store.clone();
            tokio::task::spawn(
                async move { store.acquire(DB, ask(&format!("lease-{n}"), "x", 60_000)).await },
            )
        })
        .collect();
    let mut tokens = Vec::new();
    for caller in callers {
        tokens.push(granted(&caller.await.unwrap().unwrap()).get());
    }
    tokens.sort_unstable();
    assert_eq!(tokens, (1..=256).collect::<Vec<u64>>());
    assert!(
        store.status().applied_index.unwrap() < 64,
        "callers share entries"
    );
    store.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_retry_gets_its_token_again_and_a_cancelled_request_never_a_grant() {
    let store = in_memory().await;
    let command = with_request("r1", ask("a", "x", 60_000));
    let first = granted(&store.acquire(DB, command.clone()).await.unwrap());
    assert_eq!(granted(&store.acquire(DB, command.clone()).await.unwrap()), first);
    let owner = OwnerId::new("x").unwrap();
    let cancelled = store
        .cancel(DB, name("a"), owner, RequestId::new("r1").unwrap())
        .await
        .unwrap();
    assert_eq!(
        cancelled,
        lease_core::wire::CancelReply::Released { token: first }
    );
    let ended = AcquireReply::Ended {
        token: Some(first),
        reason: LossReason::Cancelled,
    };
    assert_eq!(store.acquire(DB, command).await.unwrap(), ended);
    store.shutdown().await.unwrap();
}

#[tokio::test]
async fn after_a_shutdown_other_handles_are_told_so() {
    let store = in_memory().await;
    let other = store.clone();
    store.shutdown().await.unwrap();
    let refused = tokio::time::timeout(Duration::from_secs(5), other.acquire(DB, ask("a", "x", 1_000))).await;
    let error = refused.expect("an answer").unwrap_err();
    assert_eq!(error.word(), lease_core::wire::ErrorWord::ClusterDown);
    other.shutdown().await.unwrap();
}
