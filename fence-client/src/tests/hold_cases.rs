use lease_core::machine::{Command, LeaseKey, TtlCondition};
use lease_core::wire::LossReason as EndReason;
use lease_core::{Database, LeaseName, SharedBytes, Ttl};

use super::*;
use crate::loss::LossReason;

fn key(name: &str) -> LeaseKey {
    LeaseKey::new(Database::ZERO, LeaseName::new(name).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_for_as_long_as_it_is_held_and_its_token_stays() {
    let store = MachineStore::start();
    let a = Side::with(&store, ms(5), |builder| builder);
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    let token = lease.token();
    for _ in 0..100 {
        tokio::time::sleep(ms(600)).await;
        assert!(lease.is_valid());
        assert_eq!(lease.token(), token);
    }
    assert_eq!(store.holder_of("l"), Some(token));
    assert!(
        (58..=66).contains(&a.renewals_sent()),
        "one a second: {}",
        a.renewals_sent()
    );
}

#[tokio::test(start_paused = true)]
async fn all_leases_of_a_client_end_up_in_one_request() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let mut leases = Vec::new();
    for number in 0..100 {
        leases.push(
            a.client
                .lease(format!("l{number}"))
                .ttl(ms(3_000))
                .acquire()
                .await
                .unwrap(),
        );
        tokio::time::sleep(ms(7)).await;
    }
    tokio::time::sleep(ms(3_000)).await;
    let before = a.renewals_sent();
    tokio::time::sleep(ms(10_000)).await;
    assert!(a.renewals_sent() - before <= 22, "{}", a.renewals_sent() - before);
    assert!(leases.iter().all(|lease| lease.is_valid()));
}

#[tokio::test(start_paused = true)]
async fn s1_a_pause_beyond_the_ttl_is_a_loss_and_the_next_holder_has_a_larger_token() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let paused = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    a.kit.pause();
    let next = b
        .client
        .lease("l")
        .ttl(ms(5_000))
        .wait(ms(6_000))
        .acquire()
        .await
        .unwrap();
    assert!(paused.is_valid(), "nobody told it");
    assert!(next.token() > paused.token());
    a.kit.resume();
    let worked = paused.run(async { "late work" }).await;
    assert_eq!(worked.unwrap_err().reason, LossReason::DeadlinePassed);
    tokio::time::sleep(ms(100)).await;
    assert_eq!(
        a.renewals_sent(),
        0,
        "the clock was looked at before a renewal was tried"
    );
}

#[tokio::test(start_paused = true)]
async fn s2_a_holder_whose_renewals_fail_knows_before_anybody_else_is_granted() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let lease = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    a.kit.cut();
    let waiting = b.client.lease("l").ttl(ms(5_000)).wait(ms(20_000)).acquire();
    tokio::select! {
        biased;
        reason = lease.lost() => assert_eq!(reason, LossReason::DeadlinePassed),
        next = waiting => panic!("{next:?} while the holder believed in its lease"),
    }
    assert_eq!(store.holder_of("l"), Some(lease.token()));
    assert!(matches!(
        *lease.renewal_failure().unwrap(),
        crate::CallError::NotSent { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn s3_a_renewal_that_arrives_after_the_expiry_revives_nothing() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    let gate = a.kit.hold_next_request(LeaseVerb::RenewMany);
    gate.reached().await;
    a.kit.cut();
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(store.holder_of("l"), None);
    gate.open();
    eventually("the late renewal is refused", || {
        store.seen(LeaseVerb::RenewMany) == 1
    })
    .await;
    assert_eq!(store.holder_of("l"), None);
    assert!(!lease.is_valid());
}

#[tokio::test(start_paused = true)]
async fn s3_a_renewal_that_is_answered_after_the_deadline_is_taken_back_by_its_token() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(5_000)).acquire().await.unwrap();
    // Attempts leave at 1,667, before 3,074, and before 4,636, each given up after 1,250: whatever the jitter, the
    // third one is on its way at the deadline, at 4,895.
    let gates = [(); 4].map(|()| a.kit.hold_next_answer(LeaseVerb::RenewMany));
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    assert_eq!(
        store.holder_of("l"),
        Some(lease.token()),
        "the store has renewed it"
    );
    drop(gates);
    eventually("released by token", || store.leases() == 0).await;
    assert!(!lease.is_valid());
}

#[tokio::test(start_paused = true)]
async fn s5_a_dead_worker_is_replaced_within_its_ttl() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let dead = a.client.lease("l").ttl(ms(2_000)).acquire().await.unwrap();
    a.kit.cut();
    std::mem::forget(dead);
    let asked = b.clock.elapsed();
    let _next = b.client.lease("l").wait(ms(20_000)).acquire().await.unwrap();
    assert!(b.clock.elapsed() - asked <= ms(2_010));
}

#[tokio::test(start_paused = true)]
async fn c06_a_lease_acquired_again_after_a_forced_removal_is_renewed() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let first = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    let ended = a.client.force("l", "maintenance").await.unwrap();
    assert_eq!(ended, Some(first.token()));
    let second = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    assert!(second.token() > first.token());
    let reason = EndReason::Forced {
        reason: SharedBytes::from("maintenance"),
    };
    assert_eq!(first.lost().await, LossReason::Ended { reason });
    tokio::time::sleep(ms(10_000)).await;
    assert!(second.is_valid());
    assert_eq!(store.holder_of("l"), Some(second.token()));
    assert_eq!(
        first.token().get() + 1,
        second.token().get(),
        "a handle never shows its successor's token"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deleted_says_so() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    store.one(Command::Delete { key: key("l") });
    let reason = EndReason::Overridden;
    assert_eq!(lease.lost().await, LossReason::Ended { reason });
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_shortened_to_nothing_says_so() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    let ttl = Some(Ttl::from_millis(1).unwrap());
    store.one(Command::SetTtl {
        key: key("l"),
        ttl,
        condition: TtlCondition::Always,
    });
    let reason = EndReason::Overridden;
    assert_eq!(lease.lost().await, LossReason::Ended { reason });
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_deadline_somebody_took_away_is_renewed_as_before() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    store.one(Command::SetTtl {
        key: key("l"),
        ttl: None,
        condition: TtlCondition::Always,
    });
    tokio::time::sleep(ms(9_000)).await;
    assert!(lease.is_valid() && lease.remaining() <= ms(3_000));
}

#[tokio::test(start_paused = true)]
async fn c08_a_lease_that_ran_out_is_not_revived_although_nobody_took_it() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(2_000)).acquire().await.unwrap();
    a.kit.pause();
    tokio::time::sleep(ms(2_001)).await;
    a.kit.resume();
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    let next = a.client.lease("l").acquire().await.unwrap();
    assert!(next.token() > lease.token());
}

#[tokio::test(start_paused = true)]
async fn c10_the_loss_comes_at_the_deadline_although_every_answer_is_awaited() {
    let store = MachineStore::start();
    let a = Side::with(&store, Duration::ZERO, |builder| {
        builder.request_timeout(ms(10_000)).operation_timeout(ms(10_000))
    });
    let lease = a.client.lease("l").ttl(ms(30_000)).acquire().await.unwrap();
    let start = a.clock.elapsed();
    let gates: Vec<_> = (0..1_000)
        .map(|_| a.kit.hold_next_answer(LeaseVerb::RenewMany))
        .collect();
    lease.lost().await;
    let held = a.clock.elapsed() - start;
    // 30 s, less 0.1 % and the margin of 500 ms.
    assert!(held <= ms(29_470 + 2) && held >= ms(29_470), "{held:?}");
    drop(gates);
}

#[tokio::test(start_paused = true)]
async fn c13_a_lease_that_is_not_fed_is_lost_and_one_that_is_fed_is_not() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let starved = a.client.lease("starved").ttl(ms(3_000)).acquire().await.unwrap();
    let fed = a
        .client
        .lease("fed")
        .ttl(ms(3_000))
        .fed(ms(1_000))
        .acquire()
        .await
        .unwrap();
    starved.fed(ms(1_000));
    for _ in 0..30 {
        fed.feed();
        tokio::time::sleep(ms(500)).await;
    }
    assert_eq!(starved.lost().await, LossReason::NotFed);
    assert!(fed.is_valid());
    assert_eq!(store.seen(LeaseVerb::Release), 0, "unfed is not released");
    assert_eq!(store.holder_of("starved"), None);
}

#[tokio::test(start_paused = true)]
async fn c13_a_maximum_hold_ends_a_lease_that_is_renewed_well() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let start = a.clock.elapsed();
    let lease = a
        .client
        .lease("l")
        .ttl(ms(3_000))
        .maximum_hold(ms(10_000))
        .acquire()
        .await
        .unwrap();
    assert_eq!(lease.lost().await, LossReason::MaximumHold);
    assert_eq!(a.clock.elapsed() - start, ms(10_000));
    eventually("freed by its ttl", || store.leases() == 0).await;
    assert!(a.clock.elapsed() - start <= ms(13_000));
}

#[tokio::test(start_paused = true)]
async fn c14_after_a_suspend_the_first_call_sees_the_loss_before_any_renewal() {
    let store = MachineStore::start();
    let (a, b) = (Side::new(&store), Side::new(&store));
    let lease = a.client.lease("l").ttl(ms(30_000)).acquire().await.unwrap();
    // The machine sleeps five minutes: clocks go on, A's timers do not.
    for clock in [&a.clock, &store.clock, &b.clock] {
        clock.advance(Duration::from_secs(300));
    }
    let next = b.client.lease("l").ttl(ms(30_000)).try_acquire().await.unwrap();
    assert!(!lease.is_valid());
    assert_eq!(lease.check().unwrap_err().reason, LossReason::DeadlinePassed);
    tokio::time::sleep(ms(60_000)).await;
    assert_eq!(a.renewals_sent(), 0);
    assert!(next.is_valid() && next.token() > lease.token());
}

#[tokio::test(start_paused = true)]
async fn c14_whoever_only_waits_for_the_loss_hears_of_it_soon_after_the_suspend() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(3_600_000)).acquire().await.unwrap();
    tokio::time::sleep(ms(10)).await;
    a.clock.advance(Duration::from_secs(7_200));
    let resumed = crate::clock::timer_now();
    lease
        .hold()
        .wait_for_phase(|phase| (*phase != crate::hold::Phase::Held).then_some(()))
        .await;
    assert!(resumed.elapsed() <= ms(501), "{:?}", resumed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn c31_one_lost_answer_of_a_renewal_loses_nothing() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    a.kit.lose_next_answer(LeaseVerb::RenewMany);
    tokio::time::sleep(ms(30_000)).await;
    assert!(lease.is_valid());
    assert!(lease.renewal_failure().is_none());
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_at_the_loss_and_finished_without_one() {
    struct NoteDrop(Arc<std::sync::atomic::AtomicBool>);
    impl Drop for NoteDrop {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(2_000)).acquire().await.unwrap();
    let worked = lease.run(async { tokio::time::sleep(ms(9_000)).await });
    worked.await.unwrap();
    let dropped = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let note = NoteDrop(Arc::clone(&dropped));
    a.kit.cut();
    let start = a.clock.elapsed();
    let worked = lease.run(async move {
        let _note = note;
        std::future::pending::<()>().await;
    });
    assert_eq!(worked.await.unwrap_err().reason, LossReason::DeadlinePassed);
    assert!(dropped.load(std::sync::atomic::Ordering::SeqCst));
    assert!(a.clock.elapsed() - start < ms(2_000));
}

#[tokio::test(start_paused = true)]
async fn the_kit_ends_a_lease_now() {
    let store = MachineStore::start();
    let a = Side::new(&store);
    let lease = a.client.lease("l").ttl(ms(2_000)).acquire().await.unwrap();
    a.kit.expire_now(&lease);
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    tokio::time::sleep(ms(2_001)).await;
    assert_eq!(store.leases(), 0, "it is no longer renewed");
}

#[tokio::test(start_paused = true)]
async fn k9_no_handle_is_told_more_time_than_the_store_gives() {
    let store = MachineStore::start();
    let (a, b) = (Side::with(&store, ms(40), |builder| builder), Side::new(&store));
    let first = b.client.lease("l").ttl(ms(700)).acquire().await.unwrap();
    drop(first);
    let lease = a
        .client
        .lease("l")
        .ttl(ms(700))
        .wait(ms(5_000))
        .acquire()
        .await
        .unwrap();
    for _ in 0..2_000 {
        tokio::time::sleep(ms(3)).await;
        let told = lease.remaining();
        let view = store.view(lease.name().clone()).unwrap();
        assert!(
            told < ms(view.remaining_ms.unwrap()),
            "{told:?} of {:?}",
            view.remaining_ms
        );
    }
}
