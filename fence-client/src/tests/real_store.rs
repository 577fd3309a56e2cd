//! One suite over the real store: embedded in the process, and as a server over TCP.

use std::net::SocketAddr;

use lease_store::{LeaseStore, Server, ServerConfig, StoreConfig};

use super::*;
use crate::error::AcquireError;
use crate::loss::LossReason;
use crate::release::Released;
use crate::{EndReason, HistoryEvent, LeaseName};

/// Short, since these tests run in real time; long enough for a machine that is busy with other tests.
const TTL: Duration = Duration::from_millis(1_000);

enum Real {
    Embedded(LeaseStore),
    Server(Box<Server>),
}

impl Real {
    async fn embedded() -> Self {
        Self::Embedded(LeaseStore::start(StoreConfig::in_memory()).await.unwrap())
    }

    async fn server() -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServerConfig::new(StoreConfig::in_memory(), any, any);
        Self::Server(Box::new(Server::start(config).await.unwrap()))
    }

    fn store(&self) -> &LeaseStore {
        match self {
            Self::Embedded(store) => store,
            Self::Server(server) => server.store(),
        }
    }

    async fn client(&self) -> (FenceClient, TestKit) {
        let kit = TestKit::new();
        let builder = FenceClient::builder()
            .test_kit(&kit)
            .request_timeout(ms(1_000))
            .backoff(ms(5), ms(40));
        let client = match self {
            Self::Embedded(store) => builder.embedded(store.clone()).unwrap(),
            Self::Server(server) => builder.connect(&server.ready().resp.to_string()).await.unwrap(),
        };
        (client, kit)
    }

    async fn stop(self) {
        match self {
            Self::Embedded(store) => store.shutdown().await.unwrap(),
            Self::Server(server) => server.shutdown().await.unwrap(),
        }
    }
}

async fn suite(real: Real) {
    a_lease_lives_and_is_seen(&real).await;
    s1_a_pause_is_a_loss(&real).await;
    s4_a_short_cut_loses_nothing(&real).await;
    lost_answers_do_no_harm(&real).await;
    c26_cancelled_acquires_leave_nothing(&real).await;
    c06_a_forced_end_has_its_reason(&real).await;
    c03_nothing_outlives_a_release(&real).await;
    assert_eq!(
        (real.store().stats().leases, real.store().stats().waiters),
        (0, 0)
    );
    real.stop().await;
}

async fn a_lease_lives_and_is_seen(real: &Real) {
    let (client, kit) = real.client().await;
    let lease = client
        .lease("life:1")
        .ttl(TTL)
        .metadata("build 7")
        .acquire()
        .await
        .unwrap();
    eventually("renewed", || kit.sent(LeaseVerb::RenewMany) >= 3).await;
    assert!(lease.is_valid() && lease.remaining() < TTL);
    let view = client.get("life:1").await.unwrap().unwrap();
    assert_eq!((view.token, &view.owner), (lease.token(), client.owner()));
    let page = client.list("life:", None, None).await.unwrap();
    assert_eq!(page.leases[0].name, LeaseName::new("life:1").unwrap());
    let again = client.lease("life:1").try_acquire().await.unwrap_err();
    assert!(matches!(again, AcquireError::Held { holder } if holder.token == lease.token()));
    assert_eq!(lease.release().await.unwrap(), Released::Now);
    assert_eq!(lease.release().await.unwrap(), Released::Before);
    let history = client.history("life:1", None).await.unwrap();
    let events: Vec<_> = history.iter().map(|entry| entry.event).collect();
    assert_eq!(events, [HistoryEvent::Ended, HistoryEvent::Granted]);
    assert_eq!(history[0].reason, Some(EndReason::Released));
}

async fn s1_a_pause_is_a_loss(real: &Real) {
    let ((a, kit), (b, _)) = (real.client().await, real.client().await);
    let paused = a.lease("pause").ttl(TTL).acquire().await.unwrap();
    kit.pause();
    let next = b
        .lease("pause")
        .ttl(TTL)
        .wait(ms(10_000))
        .acquire()
        .await
        .unwrap();
    assert!(paused.is_valid() && next.token() > paused.token());
    kit.resume();
    assert_eq!(paused.check().unwrap_err().reason, LossReason::DeadlinePassed);
    assert!(paused.release().await.is_err());
    a.settle(ms(1_000)).await;
    assert!(next.is_valid());
    next.release().await.unwrap();
}

async fn s4_a_short_cut_loses_nothing(real: &Real) {
    let (client, kit) = real.client().await;
    let lease = client.lease("cut").ttl(ms(3_000)).acquire().await.unwrap();
    kit.cut();
    eventually("a renewal has failed", || lease.renewal_failure().is_some()).await;
    kit.heal();
    eventually("renewed again", || lease.renewal_failure().is_none()).await;
    lease.release().await.unwrap();
}

async fn lost_answers_do_no_harm(real: &Real) {
    let (client, kit) = real.client().await;
    kit.lose_next_answer(LeaseVerb::Acquire);
    let lease = client.lease("answers").ttl(ms(3_000)).acquire().await.unwrap();
    assert_eq!(client.get("answers").await.unwrap().unwrap().token, lease.token());
    kit.lose_next_answer(LeaseVerb::RenewMany);
    eventually("renewed twice", || kit.sent(LeaseVerb::RenewMany) >= 2).await;
    assert!(lease.is_valid());
    kit.lose_next_answer(LeaseVerb::Release);
    assert_eq!(lease.release().await.unwrap(), Released::Now);
}

async fn c26_cancelled_acquires_leave_nothing(real: &Real) {
    let (client, _) = real.client().await;
    let held = client.lease("cancel").ttl(ms(60_000)).acquire().await.unwrap();
    for round in 0..20 {
        let waiting = client.lease("cancel").ttl(ms(60_000)).wait(ms(60_000)).acquire();
        tokio::select! {
            waited = waiting => panic!("{waited:?}"),
            () = async {
                if round % 2 == 0 {
                    eventually("queued", || real.store().stats().waiters == 1).await;
                }
            } => {}
        }
        client.settle(ms(5_000)).await;
        assert_eq!(real.store().stats().waiters, 0, "round {round}");
    }
    held.release().await.unwrap();
    let next = client.lease("cancel").try_acquire().await.unwrap();
    next.release().await.unwrap();
}

async fn c06_a_forced_end_has_its_reason(real: &Real) {
    let ((holder, _), (operator, _)) = (real.client().await, real.client().await);
    let first = holder.lease("force").ttl(TTL).acquire().await.unwrap();
    assert_eq!(
        operator.force("force", "drain").await.unwrap(),
        Some(first.token())
    );
    let second = holder.lease("force").ttl(TTL).acquire().await.unwrap();
    let LossReason::Ended { reason } = first.lost().await else {
        panic!("{first:?}");
    };
    assert_eq!(reason.to_string(), "forced: drain");
    assert!(second.is_valid() && second.token() > first.token());
    second.release().await.unwrap();
}

/// That nothing happens can only be seen by waiting for it; a renewal would come within the ttl.
async fn wait_for_as_long_as_anything_could_happen() {
    tokio::time::sleep(TTL).await;
}

async fn c03_nothing_outlives_a_release(real: &Real) {
    let (client, kit) = real.client().await;
    for _ in 0..100 {
        let lease = client.lease("churn").ttl(TTL).acquire().await.unwrap();
        lease.release().await.unwrap();
    }
    let sent = kit.sent(LeaseVerb::RenewMany);
    wait_for_as_long_as_anything_could_happen().await;
    assert_eq!((kit.sent(LeaseVerb::RenewMany), client.held()), (sent, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_passes_on_the_embedded_store() {
    suite(Real::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_passes_on_a_server() {
    suite(Real::server().await).await;
}
