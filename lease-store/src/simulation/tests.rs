//! The simulated runtime keeps what it promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::runtime::{AsyncRuntime, Instant as _, Rt};

fn simulate<T>(test: impl Future<Output = T>) -> T {
    NodeRt::with_seed(7, Chaos::NONE).block_on(test)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn openrafts_suite_for_runtimes_passes_on_the_simulated_one() {
    openraft_rt::testing::Suite::<NodeRt>::test_all();
}

#[test]
fn a_crash_drops_all_tasks_of_a_process_and_of_no_other() {
    simulate(async {
        let alive = Arc::new(());
        for process in [1, 2] {
            begin(process, ClockRate::default(), Steps::Prompt);
            let held = Arc::clone(&alive);
            drop(NodeRt::spawn_on(process, async move {
                // One that a task of the process has spawned belongs to it too.
                let inner = Arc::clone(&held);
                drop(NodeRt::spawn(async move {
                    let _inner = inner;
                    std::future::pending::<()>().await;
                }));
                let _held = held;
                std::future::pending::<()>().await;
            }));
        }
        NodeRt::sleep(SECOND).await;
        assert_eq!(Arc::strong_count(&alive), 5);
        crash(1);
        assert_eq!(Arc::strong_count(&alive), 3);
        let late = NodeRt::spawn_on(1, async { 7 });
        assert_eq!(late.await, Err(NodeJoinError::Cancelled));
        assert!(!lives(1) && lives(2));
    });
}

#[test]
fn whoever_waits_for_a_task_is_told_of_the_crash() {
    simulate(async {
        begin(1, ClockRate::default(), Steps::Prompt);
        let task = NodeRt::spawn_on(1, std::future::pending::<()>());
        NodeRt::sleep(SECOND).await;
        crash(1);
        assert_eq!(task.await, Err(NodeJoinError::Cancelled));
    });
}

#[test]
fn a_paused_process_takes_no_step_and_its_clock_goes_on() {
    simulate(async {
        begin(1, ClockRate::default(), Steps::Prompt);
        let steps = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&steps);
        drop(NodeRt::spawn_on(1, async move {
            let started = NodeInstant::now();
            loop {
                NodeRt::sleep(SECOND).await;
                counted.store(started.elapsed().as_secs(), Ordering::Relaxed);
            }
        }));
        NodeRt::sleep(SECOND * 3 + SECOND / 2).await;
        pause(1);
        NodeRt::sleep(SECOND * 10).await;
        assert_eq!(steps.load(Ordering::Relaxed), 3);
        resume(1);
        NodeRt::sleep(SECOND / 4).await;
        assert_eq!(steps.load(Ordering::Relaxed), 13);
    });
}

#[test]
fn a_clock_that_is_fast_by_a_thousandth_gains_a_second_in_a_thousand() {
    simulate(async {
        let rate = ClockRate {
            ppm: 1_000,
            ahead: SECOND,
        };
        begin(1, rate, Steps::Prompt);
        let local = NodeRt::spawn_on(1, async {
            let started = NodeInstant::now();
            NodeRt::sleep(SECOND * 1_001).await;
            started.elapsed()
        });
        let before = true_time();
        let local = local.await.unwrap();
        let passed = true_time() - before;
        assert!(local >= SECOND * 1_001 && local < SECOND * 1_001 + SECOND / 1_000);
        assert!(
            passed >= SECOND * 1_000 && passed < SECOND * 1_000 + SECOND / 1_000,
            "{passed:?}"
        );
    });
}

#[test]
fn blocking_work_goes_on_without_whoever_asked_and_stops_with_its_process() {
    simulate(async {
        let done = Arc::new(AtomicU64::new(0));
        for process in [1, 2] {
            begin(process, ClockRate::default(), Steps::Prompt);
            let done = Arc::clone(&done);
            drop(NodeRt::spawn_on(process, async move {
                drop(NodeRt::run_blocking(move || {
                    done.fetch_add(process, Ordering::Relaxed)
                }));
            }));
        }
        NodeRt::sleep(Duration::ZERO).await;
        NodeRt::sleep(Duration::from_nanos(1)).await;
        crash(2);
        NodeRt::sleep(SECOND).await;
        assert_eq!(done.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_panic_in_a_task_that_nobody_joins_is_counted() {
    simulate(async {
        begin(1, ClockRate::default(), Steps::Prompt);
        drop(NodeRt::spawn_on(1, async { panic!("on purpose") }));
        NodeRt::sleep(SECOND).await;
        assert_eq!(panics(), 1);
    });
}

#[test]
fn the_same_seed_gives_the_same_steps_and_another_one_does_not() {
    let trace = |seed| {
        let chaos = Chaos {
            again_per_mille: 200,
            late_per_mille: 100,
            late_max: Duration::from_millis(5),
        };
        let mut simulation = NodeRt::with_seed(seed, chaos);
        simulation.record_trace();
        simulation.block_on(async {
            begin(1, ClockRate::default(), Steps::Disturbed);
            let tasks: Vec<_> = (0..20)
                .map(|number| {
                    NodeRt::spawn_on(1, async move {
                        NodeRt::sleep(Duration::from_millis(number % 3)).await;
                        NodeRt::random_u64()
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        simulation.take_trace()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
