//! L18: a database that hangs under reads and writes from many threads.
//!
//! The usual run is short. In full: `LEDGER_SOAK_SECONDS=1800 cargo test -p tests --test scenarios -- l18`.

use std::time::Duration;

use lease_core::{Fence, FenceToken};
use reward_ledger::{Claim, Health, Ledger, RewardEventId};
use tests::clock::{Deadline, SOON};

use crate::books::applied;
use crate::desk::Place;
use crate::stage::{GOLD, name};

/// `LEDGER_SOAK_SECONDS` for longer.
const SECONDS: u64 = 3;
const THREADS: i64 = 8;
/// Reads beside each claim: hundreds a second beside dozens, as where it was reported.
const READS_EACH: u64 = 8;

fn event(player: i64, number: u64) -> RewardEventId {
    RewardEventId::builder("soak", player, format!("rank-{number}"))
        .build()
        .unwrap()
}

/// Claims one reward after another, and reads what it and its neighbours were granted; the number of claims.
async fn claim_and_read(ledger: &Ledger, player: i64, until: Deadline) -> u64 {
    let fence = Fence::new(name(&format!("lock:soak:{player}")), FenceToken::new(1).unwrap());
    let mut number = 0;
    while until.left().is_some() {
        let claim = Claim::builder(fence.clone(), player, event(player, number), GOLD).item("gold");
        applied(ledger.claim(claim.build().unwrap()).await.unwrap());
        for back in 0..READS_EACH {
            let of = (player + i64::try_from(back).unwrap()) % THREADS;
            let found = ledger.get(of, &event(of, number)).await.unwrap();
            assert!(of != player || found.is_some(), "{player}: {number}");
        }
        number += 1;
    }
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn l18_reads_beside_claims_from_many_threads_never_hang_and_lose_nothing() {
    let seconds = std::env::var("LEDGER_SOAK_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    for place in Place::DURABLE {
        let ledger = place.ledger().await;
        let until = Deadline::after(Duration::from_secs(seconds));
        let mut threads = tokio::task::JoinSet::new();
        for player in 0..THREADS {
            let ledger = ledger.clone();
            threads.spawn(async move {
                ledger
                    .ask(async move |ledger| claim_and_read(&ledger, player, until).await)
                    .await
            });
        }
        let all = tokio::time::timeout(Duration::from_secs(seconds) + SOON, threads.join_all());
        let claims: u64 = all
            .await
            .unwrap_or_else(|_| panic!("{place:?}: it hangs"))
            .into_iter()
            .sum();
        assert!(claims >= THREADS.unsigned_abs(), "{place:?}: {claims}");
        let health = ledger.ask(async |ledger| ledger.health()).await;
        assert!(matches!(health, Health::Serving), "{place:?}: {health:?}");
        let report = ledger.audit().await;
        assert!(report.is_clean(), "{place:?}: {:?}", report.violations);
        assert_eq!(report.claims, claims, "{place:?}");
    }
}
