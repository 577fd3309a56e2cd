//! S8 and S9: what the outside does of what the ledger has granted. A real server, real sockets, in real time.

use std::time::Duration;

use examples::outside::Switches;
use reward_ledger::{
    Amended, Doubt, OutboxQuery, PublishPolicy, PublishPolicyBuilder, Published, Publisher, Territory,
};
use tests::clock::SOON;

use crate::books::{applied, hold_exactly, replayed};
use crate::desk::{Desk, Opening, Place, Point};
use crate::lost_answer::claimed_and_killed_at;
use crate::outside_server::OutsideServer;
use crate::stage::{GOLD, PLAYER, claim, fence, gold, quest_9, rank_3};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_millis(400);

/// Quick, and no try is the last one.
fn policy() -> PublishPolicyBuilder {
    PublishPolicy::builder(Duration::from_secs(3_600))
        .request_timeout(PATIENCE)
        .lease_for(PATIENCE * 3)
        .tries_max(100)
        .backoff(Duration::from_millis(5), Duration::from_millis(50))
        .poll_every(Duration::from_millis(10))
}

fn publisher(ledger: &Desk, items: &OutsideServer) -> Publisher {
    let policy = policy().build().unwrap();
    ledger.publish(items.target(), policy, Territory::everything())
}

async fn until(publisher: &Publisher, enough: impl FnMut(&Published) -> bool) -> Published {
    let waited = tokio::time::timeout(SOON, publisher.published_until(enough)).await;
    waited
        .unwrap_or_else(|_| panic!("{:?}", publisher.published()))
        .unwrap()
}

async fn granted(place: Place) -> Desk {
    let ledger = place.ledger().await;
    applied(claim(&ledger, gold(fence(101), rank_3())).await);
    ledger
}

fn key() -> String {
    format!("grant/{PLAYER}/{}", rank_3())
}

/// The ledger is whole, and the outside's books say the same as it does.
async fn both_agree(ledger: &Desk, items: &OutsideServer) {
    hold_exactly(ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    let report = ledger.audit_with(items.books()).await;
    assert!(report.is_clean(), "{:?}", report.violations);
    assert_eq!((report.delivered, report.outbox_open), (1, 0));
}

#[tokio::test]
async fn s09_what_a_worker_had_committed_before_it_died_arrives_all_the_same() {
    for place in Place::DURABLE {
        let home = claimed_and_killed_at(Point::Durable, place).await;
        let items = OutsideServer::of_items().await;
        let ledger = home.open(Opening::usual()).await;
        let publisher = publisher(&ledger, &items);
        until(&publisher, |published| published.delivered == 1).await;
        publisher.stop().await;
        assert_eq!(items.effects(), [key()], "{place:?}");
        both_agree(&ledger, &items).await;
    }
}

/// Control: a worker that calls the outside itself, after its commit, where the claim is new. It dies between the two, and to
/// whoever comes after it the claim is not new.
#[tokio::test]
async fn s09_without_the_outbox_the_item_never_arrives() {
    for place in Place::DURABLE {
        let home = claimed_and_killed_at(Point::Durable, place).await;
        let items = OutsideServer::of_items().await;
        let ledger = home.open(Opening::usual()).await;
        replayed(claim(&ledger, gold(fence(102), rank_3())).await);
        assert_eq!(items.has_done(&key()).await, Some(false));
        assert_eq!(items.effects(), [""; 0], "{place:?}");
    }
}

#[tokio::test]
async fn s08_a_lost_answer_is_learnt_by_asking_and_the_item_is_handed_out_once() {
    for place in Place::ALL {
        let (ledger, items) = (granted(place).await, OutsideServer::of_items().await);
        // It would do the same again: only the question for the status keeps it from that.
        items.switch(Switches {
            lose_answers: 1,
            forget_keys: true,
            ..Switches::default()
        });
        let publisher = publisher(&ledger, &items);
        let published = until(&publisher, |published| published.delivered == 1).await;
        assert!(published.again >= 1, "{place:?}: {published:?}");
        assert_eq!(items.effects(), [key()], "{place:?}");
        both_agree(&ledger, &items).await;
    }
}

#[tokio::test]
async fn s08_without_a_status_the_same_key_is_sent_again_and_the_item_is_handed_out_once() {
    for place in Place::ALL {
        let (ledger, items) = (granted(place).await, OutsideServer::of_items().await);
        items.switch(Switches {
            lose_answers: 2,
            no_status: true,
            ..Switches::default()
        });
        let publisher = publisher(&ledger, &items);
        let published = until(&publisher, |published| published.delivered == 1).await;
        assert!(published.again >= 2, "{place:?}: {published:?}");
        assert_eq!(items.effects(), [key()], "{place:?}");
        both_agree(&ledger, &items).await;
    }
}

/// L03: the outside is slower than anybody waits, and does the work all the same.
#[tokio::test]
async fn l03_an_outside_that_answers_after_everybody_gave_up_has_done_it_once() {
    for place in Place::ALL {
        let (ledger, items) = (granted(place).await, OutsideServer::of_items().await);
        let slow_ms = u64::try_from(PATIENCE.as_millis()).unwrap() * 2;
        items.switch(Switches {
            slow_ms,
            ..Switches::default()
        });
        let publisher = publisher(&ledger, &items);
        let published = until(&publisher, |published| published.delivered == 1).await;
        assert!(published.again >= 1, "{place:?}: {published:?}");
        publisher.stop().await;
        assert_eq!(items.effects(), [key()], "{place:?}");
        both_agree(&ledger, &items).await;
    }
}

/// Control of the three above: an outside that forgets its keys and tells no status is made to do it twice, and its books
/// show that to the audit.
#[tokio::test]
async fn s08_an_outside_without_keys_and_status_does_it_twice_and_the_audit_says_so() {
    for place in Place::ALL {
        let (ledger, items) = (granted(place).await, OutsideServer::of_items().await);
        items.switch(Switches {
            lose_answers: 1,
            no_status: true,
            forget_keys: true,
            ..Switches::default()
        });
        let publisher = publisher(&ledger, &items);
        until(&publisher, |published| published.delivered == 1).await;
        publisher.stop().await;
        assert_eq!(items.effects(), [key(), key()], "{place:?}");
        let report = ledger.audit_with(items.books()).await;
        let found: Vec<_> = report.violations.iter().map(|found| found.check()).collect();
        assert!(found.contains(&"C5"), "{place:?}: {found:?}");
    }
}

/// L32: what the outside refuses for good is listed and not dropped, what comes after it flows, and a person retries it.
#[tokio::test]
async fn l32_what_the_outside_refuses_is_listed_holds_up_nobody_and_is_retried_by_hand() {
    for place in Place::ALL {
        let (ledger, items) = (granted(place).await, OutsideServer::of_items().await);
        items.switch(Switches {
            refuse: true,
            ..Switches::default()
        });
        let publisher = publisher(&ledger, &items);
        until(&publisher, |published| published.dead == 1).await;
        items.switch(Switches::default());
        applied(claim(&ledger, gold(fence(101), quest_9())).await);
        until(&publisher, |published| published.delivered == 1).await;
        assert_eq!(items.effects(), [format!("grant/{PLAYER}/{}", quest_9())]);

        let dead = ledger.ask(async |ledger| ledger.deliveries(OutboxQuery::Dead, None, 10).await);
        let dead = dead.await.unwrap().deliveries;
        assert_eq!(dead.len(), 1, "{place:?}: {dead:?}");
        assert_eq!(dead[0].progress.doubt(), Doubt::NotDone);
        let id = dead[0].id;
        let retried = ledger
            .ask(async move |ledger| ledger.retry_delivery(id).await)
            .await;
        assert!(matches!(retried, Ok(Amended::Done(_))), "{place:?}: {retried:?}");
        until(&publisher, |published| published.delivered == 2).await;
        assert_eq!(items.effects().len(), 2);
        let report = ledger.audit_with(items.books()).await;
        assert!(report.is_clean(), "{place:?}: {:?}", report.violations);
    }
}
