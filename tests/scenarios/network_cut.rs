//! S4: the network is cut and comes back. A real server and real sockets, in real time, with times scaled down.

use std::time::Duration;

use fence_client::{AcquireError, FenceClient, Lease, LossReason};
use lease_core::Database;
use lease_core::wire::{HistoryEvent, LossReason as EndReason};
use lease_store::{Server, ServerConfig, StoreConfig, TokenFloor};
use reward_ledger::ClaimOutcome;
use reward_ledger::testing::Protection;
use tests::proxy::Proxy;

use crate::books::{applied, hold_exactly, stale};
use crate::desk::{Desk, Place};
use crate::stage::{GOLD, LOCK, PLAYER, claim, gold, name, owner, rank_3};

/// Scaled down from five seconds; a busy machine must not decide these tests.
const TTL: Duration = Duration::from_millis(1_500);
/// How long anything here may take before the test is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server; A reaches it over a network that can be cut, B over another.
struct Net {
    server: Server,
    proxy: Proxy,
    a: FenceClient,
    b: FenceClient,
    ledger: Desk,
}

impl Net {
    async fn with(ledger: Desk) -> Self {
        let (listen, admin) = ("127.0.0.1:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap());
        let store = StoreConfig::in_memory().token_floor(TokenFloor::At(100));
        let server = Server::start(ServerConfig::new(store, listen, admin))
            .await
            .unwrap();
        let proxy = Proxy::before(server.ready().resp);
        let a = client("a", &proxy.address().to_string()).await;
        let b = client("b", &server.ready().resp.to_string()).await;
        Self {
            server,
            proxy,
            a,
            b,
            ledger,
        }
    }

    async fn pays(&self, lease: &Lease) -> ClaimOutcome {
        claim(&self.ledger, gold(lease.fence(), rank_3())).await
    }

    async fn stop(self) {
        drop((self.a, self.b));
        self.server.shutdown().await.unwrap();
    }
}

async fn client(who: &str, address: &str) -> FenceClient {
    let builder = FenceClient::builder()
        .owner(owner(who))
        .request_timeout(Duration::from_secs(1))
        .operation_timeout(Duration::from_secs(2))
        .backoff(Duration::from_millis(5), Duration::from_millis(50));
    builder.connect(address).await.unwrap()
}

async fn acquire(client: &FenceClient) -> Lease {
    client
        .lease(LOCK)
        .ttl(TTL)
        .wait(PATIENCE)
        .acquire()
        .await
        .unwrap()
}

/// The network is cut in the middle of A's work, and comes back after B has paid. What A was told in the end.
async fn cut_and_heal(net: &Net) -> ClaimOutcome {
    let lease = acquire(&net.a).await;
    net.proxy.cut();
    let waiting = acquire(&net.b);
    let (stopped, next) = tokio::join!(lease.run(std::future::pending::<()>()), waiting);
    assert_eq!(stopped.unwrap_err().reason, LossReason::DeadlinePassed);
    assert!(next.token() > lease.token());
    applied(net.pays(&next).await);
    let unreachable = net.a.lease(LOCK).ttl(TTL).try_acquire().await;
    assert!(
        unreachable.is_err_and(|error| error.is_unavailable()),
        "A is cut off"
    );

    net.proxy.heal();
    let late = net.pays(&lease).await;
    // The same client: it finds its way back by itself, and learns who holds the lease now.
    let refused = net.a.lease(LOCK).ttl(TTL).try_acquire().await;
    assert!(matches!(refused, Err(AcquireError::Held { holder }) if holder.token == next.token()));
    next.release().await.unwrap();
    let again = acquire(&net.a).await;
    assert!(again.token() > next.token());
    again.release().await.unwrap();
    late
}

#[tokio::test]
async fn s04_a_cut_network_loses_the_lease_in_time_and_the_client_comes_back_by_itself() {
    for place in Place::ALL {
        let net = Net::with(place.ledger().await).await;
        let late = cut_and_heal(&net).await;
        assert!(stale(late).2.is_some());
        hold_exactly(&net.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
        net.stop().await;
    }
}

/// The loss does not wait for the network: when B is granted, A's clock has already ended A's lease.
#[tokio::test]
async fn s04_when_another_is_granted_the_cut_off_holder_knows_that_its_time_is_over() {
    let net = Net::with(Place::Memory.ledger().await).await;
    let lease = acquire(&net.a).await;
    net.proxy.cut();
    let next = acquire(&net.b).await;
    assert_eq!(lease.remaining(), Duration::ZERO);
    assert!(next.is_valid());
    net.stop().await;
}

/// Nothing is broken, all packets are late: a renewal that was sent in time arrives after the end.
#[tokio::test]
async fn s04_packets_that_are_late_revive_nothing() {
    for place in Place::ALL {
        let net = Net::with(place.ledger().await).await;
        let lease = acquire(&net.a).await;
        net.proxy.slow_down();
        net.proxy.holds_a_packet_up().await;
        assert!(lease.is_valid(), "its renewal is on its way");
        assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
        let next = acquire(&net.b).await;
        applied(net.pays(&next).await);

        net.proxy.heal();
        // An answer to A: whatever was held up before it has arrived.
        let view = net.a.get(LOCK).await.unwrap().unwrap();
        assert_eq!(view.token, next.token());
        assert!(next.is_valid() && !lease.is_valid());
        let history = net
            .server
            .store()
            .history(Database::ZERO, name(LOCK), None)
            .unwrap()
            .events;
        let of_a: Vec<_> = history
            .iter()
            .filter(|entry| entry.token == lease.token())
            .collect();
        assert_eq!(
            of_a.iter().map(|entry| entry.event).collect::<Vec<_>>(),
            [HistoryEvent::Ended, HistoryEvent::Granted]
        );
        assert_eq!(of_a[0].reason, Some(EndReason::Expired));
        stale(net.pays(&lease).await);
        hold_exactly(&net.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
        net.stop().await;
    }
}

/// Control: the client has learnt of its loss, and the write that was under way is taken all the same.
#[tokio::test]
async fn s04_without_fencing_the_write_of_the_cut_off_holder_is_taken() {
    for place in Place::ALL {
        let net = Net::with(place.ledger_without(Protection::Fencing).await).await;
        let late = cut_and_heal(&net).await;
        assert!(late.is_accepted(), "{late:?}");
        net.stop().await;
    }
}
