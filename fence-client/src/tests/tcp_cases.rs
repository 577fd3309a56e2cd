use super::fake_server::{FakeServer, Mode};
use super::*;
use crate::call_error::CallError;
use crate::error::{AcquireError, ConnectError};
use crate::loss::LossReason;
use crate::release::Released;

fn quick() -> ClientBuilder {
    FenceClient::builder()
        .connect_timeout(ms(500))
        .request_timeout(ms(300))
        .operation_timeout(ms(3_000))
        .backoff(ms(5), ms(40))
}

#[tokio::test]
async fn a_lease_over_tcp_is_acquired_renewed_shown_and_released() {
    let server = FakeServer::start(None).await;
    let client = quick().connect(&server.address).await.unwrap();
    let lease = client
        .lease("l")
        .ttl(ms(1_000))
        .metadata("build 7")
        .acquire()
        .await
        .unwrap();
    eventually("renewed", || server.store.seen(LeaseVerb::RenewMany) >= 3).await;
    assert!(lease.is_valid());
    let view = client.get("l").await.unwrap().unwrap();
    assert_eq!((view.token, &view.owner), (lease.token(), client.owner()));
    assert_eq!(view.metadata.unwrap().as_bytes(), b"build 7");
    assert_eq!(
        client.token("l", client.owner()).await.unwrap(),
        Some(lease.token())
    );
    assert_eq!(lease.release().await.unwrap(), Released::Now);
    assert_eq!(client.get("l").await.unwrap(), None);
}

#[tokio::test]
async fn the_first_server_that_answers_is_taken() {
    let (dead, server) = (FakeServer::start(None).await, FakeServer::start(None).await);
    dead.set(Mode::Down);
    let client = quick()
        .connect(&format!("{},{}", dead.address, server.address))
        .await
        .unwrap();
    let lease = client.lease("l").acquire().await.unwrap();
    assert_eq!(server.store.holder_of("l"), Some(lease.token()));
}

#[tokio::test]
async fn c16_a_holder_whose_server_falls_silent_moves_to_the_next_one_in_time() {
    let (silent, other) = (FakeServer::start(None).await, FakeServer::start(None).await);
    let client = quick()
        .connect(&format!("{},{}", silent.address, other.address))
        .await
        .unwrap();
    let lease = client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    eventually("renewed", || silent.store.seen(LeaseVerb::RenewMany) >= 1).await;
    silent.set(Mode::Silent);
    // The other one is no member of the same cluster here, so it does not know the lease: that it says so is enough.
    let lost = lease.lost().await;
    assert_eq!(
        lost,
        LossReason::Ended {
            reason: crate::EndReason::Unknown
        }
    );
    assert_eq!(other.store.seen(LeaseVerb::RenewMany), 1);
}

#[tokio::test]
async fn nobody_there_is_an_error_that_names_the_address() {
    let server = FakeServer::start(None).await;
    server.set(Mode::Down);
    let error = quick().connect(&server.address).await.unwrap_err();
    assert!(error.is_retryable());
    let ConnectError::Unreachable {
        source: CallError::Connect { endpoint, .. },
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(endpoint, server.address);
}

#[tokio::test]
async fn a_missing_or_wrong_password_is_told_at_once_and_the_right_one_works() {
    let server = FakeServer::start(Some("secret")).await;
    for builder in [quick(), quick().password("guess")] {
        let error = builder.connect(&server.address).await.unwrap_err();
        assert!(!error.is_retryable());
        assert!(matches!(
            error,
            ConnectError::Unreachable {
                source: CallError::Greeting { .. }
            }
        ));
    }
    let client = quick().password("secret").connect(&server.address).await.unwrap();
    client
        .lease("l")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

#[tokio::test]
async fn s4_a_client_whose_connections_are_cut_comes_back_by_itself_and_loses_nothing() {
    let server = FakeServer::start(None).await;
    let client = quick().connect(&server.address).await.unwrap();
    let lease = client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    server.set(Mode::Down);
    server.connections(|count| count == 0).await;
    server.set(Mode::Up);
    let before = server.store.seen(LeaseVerb::RenewMany);
    eventually("renewed again", || {
        server.store.seen(LeaseVerb::RenewMany) > before
    })
    .await;
    assert!(lease.is_valid());
    assert_eq!(lease.release().await.unwrap(), Released::Now);
}

#[tokio::test]
async fn s4_a_cut_for_longer_than_the_ttl_is_a_loss_and_then_a_new_start() {
    let server = FakeServer::start(None).await;
    let client = quick().connect(&server.address).await.unwrap();
    let lease = client.lease("l").ttl(ms(300)).acquire().await.unwrap();
    server.set(Mode::Down);
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    server.set(Mode::Up);
    let next = client
        .lease("l")
        .ttl(ms(300))
        .wait(ms(2_000))
        .acquire()
        .await
        .unwrap();
    assert!(next.token() > lease.token());
}

#[tokio::test]
async fn c09_behind_a_network_that_drops_all_packets_the_loss_comes_before_another_grant() {
    let server = FakeServer::start(None).await;
    // A wide margin, so that the test itself has time to look.
    let client = quick().margin(ms(500)).connect(&server.address).await.unwrap();
    let lease = client.lease("l").ttl(ms(2_000)).acquire().await.unwrap();
    server.set(Mode::Silent);
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    assert_eq!(
        server.store.holder_of("l"),
        Some(lease.token()),
        "nobody else could have been granted"
    );
}

#[tokio::test]
async fn c42_a_holder_whose_access_is_revoked_is_told_so_and_the_lease_ends_all_the_same() {
    let server = FakeServer::start(None).await;
    let client = quick().connect(&server.address).await.unwrap();
    let lease = client.lease("l").ttl(ms(600)).acquire().await.unwrap();
    server.set(Mode::Revoked);
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    let failure = lease.renewal_failure().unwrap();
    assert!(
        !failure.is_retryable() && !failure.may_have_applied(),
        "{failure:?}"
    );
    eventually("free", || server.store.holder_of("l").is_none()).await;
    let refused = client.lease("l").acquire().await.unwrap_err();
    let word = crate::ErrorWord::NoPerm;
    assert!(matches!(refused, AcquireError::Refused { reply } if reply.word() == Some(word)));
}

#[tokio::test]
async fn a_silent_server_is_given_up_in_time_and_the_store_is_asked_again() {
    let server = FakeServer::start(None).await;
    let client = quick()
        .operation_timeout(ms(600))
        .connect(&server.address)
        .await
        .unwrap();
    server.set(Mode::Silent);
    let error = client.lease("l").acquire().await.unwrap_err();
    assert!(
        matches!(error, AcquireError::Unknown { .. }) && error.is_retryable(),
        "{error:?}"
    );
    server.set(Mode::Up);
    client
        .lease("l")
        .wait(ms(3_000))
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

#[tokio::test]
async fn c26_a_dropped_wait_closes_its_connection_and_leaves_no_waiter() {
    let server = FakeServer::start(None).await;
    let client = quick().connect(&server.address).await.unwrap();
    let held = client.lease("l").ttl(ms(60_000)).acquire().await.unwrap();
    server.connections(|count| count == 1).await;
    {
        let waiting = client.lease("l").wait(ms(60_000)).acquire();
        tokio::select! {
            waited = waiting => panic!("{waited:?}"),
            () = eventually("queued", || server.store.waiters() == 1) => {}
        }
    }
    server.connections(|count| count == 1).await;
    client.settle(ms(5_000)).await;
    assert_eq!(server.store.waiters(), 0);
    held.release().await.unwrap();
    assert_eq!(server.store.leases(), 0);
    let _next = client.lease("l").try_acquire().await.unwrap();
}

#[tokio::test]
async fn c23_a_wait_whose_server_dies_returns_an_error() {
    let server = FakeServer::start(None).await;
    let client = quick()
        .operation_timeout(ms(500))
        .connect(&server.address)
        .await
        .unwrap();
    let _held = client.lease("l").ttl(ms(60_000)).acquire().await.unwrap();
    let waiting = client.lease("l").wait(ms(600_000)).acquire();
    let (error, ()) = tokio::join!(waiting, async {
        eventually("queued", || server.store.waiters() == 1).await;
        server.set(Mode::Down);
    });
    assert!(error.unwrap_err().is_unavailable());
}

#[tokio::test]
async fn a_wait_does_not_hold_up_renewals_or_other_requests() {
    let server = FakeServer::start(None).await;
    let client = quick().connect(&server.address).await.unwrap();
    let held = client.lease("l").ttl(ms(1_000)).acquire().await.unwrap();
    let waiting = client.lease("l").ttl(ms(1_000)).wait(ms(60_000)).acquire();
    let (next, ()) = tokio::join!(waiting, async {
        eventually("queued", || server.store.waiters() == 1).await;
        eventually("renewed", || server.store.seen(LeaseVerb::RenewMany) >= 4).await;
        client
            .lease("m")
            .try_acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        assert!(held.is_valid());
        held.release().await.unwrap();
    });
    assert!(next.unwrap().token() > held.token());
}

#[tokio::test]
async fn requests_of_many_callers_share_one_connection() {
    let server = FakeServer::start(None).await;
    let client = quick()
        .request_timeout(ms(3_000))
        .connect(&server.address)
        .await
        .unwrap();
    let acquired = futures_util::future::join_all((0..500).map(|number| {
        let client = client.clone();
        async move { client.lease(format!("l{number}")).ttl(ms(60_000)).acquire().await }
    }));
    let acquired: Result<Vec<_>, _> = acquired.await.into_iter().collect();
    let mut tokens: Vec<_> = acquired.unwrap().iter().map(|lease| lease.token()).collect();
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 500);
    server.connections(|count| count == 1).await;
}
