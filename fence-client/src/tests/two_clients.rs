//! Two clients and one name under random faults: never two valid handles at once.

use super::*;
use crate::lease::Lease;
use crate::random::{jitter, seeded};

/// What one step does to one side.
async fn step(side: &Side, lease: &mut Option<Lease>, random: u64) {
    let verbs = [LeaseVerb::Acquire, LeaseVerb::RenewMany, LeaseVerb::Release];
    let verb = verbs[usize::try_from(random / 16 % 3).unwrap()];
    match random % 16 {
        0 => side.kit.lose_next_answer(verb),
        1 => side.kit.lose_next_request(verb),
        2 => side.kit.delay_next_answer(verb, ms(random / 64 % 400)),
        3 => side.kit.cut(),
        4..=6 => side.kit.heal(),
        7 => drop(lease.take()),
        8 | 9 => {
            if let Some(held) = lease {
                let _ = held.release_within(ms(random / 64 % 200)).await;
            }
        }
        10 => {
            // The machine under this side sleeps for a while.
            side.clock.advance(ms(random / 64 % 400));
        }
        _ => {
            if lease.as_ref().is_none_or(|lease| !lease.is_valid()) {
                let wait = ms(random / 64 % 300);
                let asked = side.client.lease("l").ttl(ms(500)).wait(wait).acquire();
                *lease = tokio::time::timeout(ms(400), asked)
                    .await
                    .ok()
                    .and_then(Result::ok);
            }
        }
    }
}

/// Runs one seed; gives how often a lease was acquired.
async fn run(seed: u64) -> u64 {
    seeded::begin(seed);
    let store = MachineStore::start();
    let settings = |builder: ClientBuilder| {
        builder
            .request_timeout(ms(100))
            .operation_timeout(ms(300))
            .backoff(ms(5), ms(50))
    };
    let sides = [
        Side::with(&store, ms(20), settings),
        Side::with(&store, ms(20), settings),
    ];
    let leases = [tokio::sync::Mutex::new(None), tokio::sync::Mutex::new(None)];
    let mut grants = std::collections::BTreeSet::new();
    for _ in 0..400 {
        let mut steps = Vec::new();
        for (side, lease) in sides.iter().zip(&leases) {
            let chosen = jitter() >> 32;
            steps.push(async move { step(side, &mut *lease.lock().await, chosen).await });
        }
        futures_util::future::join_all(steps).await;
        tokio::time::sleep(ms(jitter() % 128)).await;
        let mut valid = 0;
        for lease in &leases {
            if let Some(lease) = lease.lock().await.as_ref() {
                grants.insert(lease.token());
                if lease.is_valid() {
                    valid += 1;
                    assert_eq!(
                        store.holder_of("l"),
                        Some(lease.token()),
                        "a valid handle that holds nothing"
                    );
                }
            }
        }
        assert!(valid <= 1, "two holders at once");
    }
    // Healed, everything gets going again.
    for (side, lease) in sides.iter().zip(&leases) {
        side.kit.clear();
        side.kit.heal();
        drop(lease.lock().await.take());
    }
    for side in &sides {
        side.client
            .lease("l")
            .ttl(ms(500))
            .wait(ms(3_000))
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
    u64::try_from(grants.len()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn k2_never_two_valid_handles_whatever_fails() {
    let mut grants = 0;
    let first = std::env::var("FENCE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = first.map_or_else(|| (0..24).map(|_| jitter() >> 1).collect(), |seed| vec![seed]);
    for seed in &seeds {
        println!("replay: FENCE_SEED={seed} cargo test -p fence-client k2_never_two");
        grants += run(*seed).await;
    }
    assert!(
        grants > seeds.len() as u64 * 20,
        "the faults left no lease to look at: {grants}"
    );
}
