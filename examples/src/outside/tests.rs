//! What a ledger's publisher sends, over HTTP, in real time.

use std::net::Ipv4Addr;
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName};
use reward_ledger::{
    Amended, Claim, HttpTarget, Ledger, MemoryStore, OutboxQuery, PublishPolicy, Published, Publisher,
    Reason, ReversalOutcome, RewardEventId, Territory,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Outside, Switches};

const PLAYER: i64 = 42;
/// How long the server remembers keys: longer than any test.
const WINDOW: Duration = Duration::from_secs(3_600);
const POLL_EVERY: Duration = Duration::from_millis(5);
/// A condition that is not met by then never will be.
const SOON: Duration = Duration::from_secs(60);

fn event(id: &str) -> RewardEventId {
    RewardEventId::parse(id).unwrap()
}

/// All of them under one lease.
async fn grant(ledger: &Ledger, token: u64, id: &str) {
    let fence = Fence::new(
        LeaseName::new("lock:reward:player-42").unwrap(),
        FenceToken::new(token).unwrap(),
    );
    let claim = Claim::builder(fence, PLAYER, event(id), 500).item("gold");
    let told = ledger.claim(claim.build().unwrap()).await.unwrap();
    assert!(told.is_accepted(), "{told:?}");
}

/// Waits until so many letters were delivered or have died.
async fn ended(publisher: &Publisher, letters: u64) -> Published {
    let enough = |published: &Published| published.delivered + published.dead >= letters;
    let waited = tokio::time::timeout(SOON, publisher.published_until(enough)).await;
    waited.unwrap().unwrap()
}

/// Grant a (101) is refused and dies; b (101) and c (102) are granted; then a is tried again by hand, and b reversed.
async fn course(switches: Switches) -> (Published, Vec<String>) {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/items", socket.local_addr().unwrap());
    let refuse = true;
    let outside = Outside::new("item", Switches { refuse, ..switches });
    let mut serving = JoinSet::new();
    serving.spawn(outside.clone().serve(socket, "/items"));

    let ledger = Ledger::open(MemoryStore::new());
    let publisher = Publisher::start(
        ledger.clone(),
        HttpTarget::builder(url).build().unwrap(),
        PublishPolicy::builder(WINDOW)
            .poll_every(POLL_EVERY)
            .build()
            .unwrap(),
        Territory::everything(),
    );
    grant(&ledger, 101, "a").await;
    assert_eq!(ended(&publisher, 1).await.dead, 1);
    outside.switch(switches);
    grant(&ledger, 101, "b").await;
    grant(&ledger, 102, "c").await;
    assert_eq!(ended(&publisher, 3).await.delivered, 2);
    let dead = ledger.deliveries(OutboxQuery::Dead, None, 1).await.unwrap();
    let retried = ledger.retry_delivery(dead.deliveries[0].id).await.unwrap();
    assert!(matches!(retried, Amended::Done(_)), "{retried:?}");
    ended(&publisher, 4).await;
    let reason = Reason::new("granted to the wrong player").unwrap();
    let reversed = ledger.reverse(PLAYER, &event("b"), reason).await.unwrap();
    assert!(matches!(reversed, ReversalOutcome::Reversed(_)), "{reversed:?}");
    let published = ended(&publisher, 5).await;
    publisher.stop().await;
    (published, outside.effects())
}

#[tokio::test]
async fn a_letter_tried_again_and_a_reversal_arrive_after_a_newer_token() {
    let (published, effects) = course(Switches::default()).await;
    assert_eq!((published.delivered, published.dead), (4, 1), "{published:?}");
    assert_eq!(
        effects,
        ["grant/42/b", "grant/42/c", "grant/42/a", "reverse/42/b"]
    );
}

/// Control: a server that looks at the tokens of a ledger never takes what is tried again. A reversal shows none.
#[tokio::test]
async fn where_tokens_are_checked_a_letter_tried_again_is_refused_and_a_reversal_arrives() {
    let checking = Switches {
        check_tokens: true,
        ..Switches::default()
    };
    let (published, effects) = course(checking).await;
    assert_eq!((published.delivered, published.dead), (3, 2), "{published:?}");
    assert_eq!(effects, ["grant/42/b", "grant/42/c", "reverse/42/b"]);
}
