//! How the steps of tasks are disturbed: the executor is strictly first in, first out, and code takes no time there, so
//! only this makes two runs of the same requests take another course.

use std::cell::RefCell;
use std::time::Duration;

use openraft_rt::AsyncRuntime as _;
use openraft_rt_sim::{SimRuntime, SimSleep};

thread_local! {
    static CHAOS: RefCell<State> = const {
        RefCell::new(State {
            chaos: Chaos::NONE,
            random: 0,
            panics: 0,
        })
    };
}

struct State {
    chaos: Chaos,
    random: u64,
    panics: u64,
}

/// How often, of 1,000 steps, which disturbance happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chaos {
    /// A task that could go on is put behind all others.
    pub again_per_mille: u16,
    /// A task that could go on does so a little later.
    pub late_per_mille: u16,
    /// How much later at the most.
    pub late_max: Duration,
}

impl Chaos {
    /// None at all.
    pub const NONE: Self = Self {
        again_per_mille: 0,
        late_per_mille: 0,
        late_max: Duration::ZERO,
    };
}

/// What becomes of a step.
pub(super) enum Step {
    Now,
    Again,
    Late(SimSleep),
}

/// Counts the panics of tasks: one in a task that nobody joins is not seen otherwise.
pub(super) struct CountPanic;

impl Drop for CountPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            CHAOS.with(|state| {
                let mut state = state.borrow_mut();
                state.panics = state.panics.saturating_add(1);
            });
        }
    }
}

/// Starts a run: from here on steps are disturbed like this, by this seed.
pub(super) fn begin(seed: u64, chaos: Chaos) {
    CHAOS.with(|state| {
        *state.borrow_mut() = State {
            chaos,
            random: seed,
            panics: 0,
        };
    });
}

/// Changes how steps are disturbed.
pub fn set_chaos(chaos: Chaos) {
    CHAOS.with(|state| state.borrow_mut().chaos = chaos);
}

/// Tasks that have panicked in this run.
#[must_use]
pub fn panics() -> u64 {
    CHAOS.with(|state| state.borrow().panics)
}

pub(super) fn next_step() -> Step {
    let (chaos, bits) = CHAOS.with(|state| {
        let mut state = state.borrow_mut();
        (state.chaos, splitmix(&mut state.random))
    });
    let share = bits % 1_000;
    let again = u64::from(chaos.again_per_mille);
    if share < again {
        return Step::Again;
    }
    if share < again.saturating_add(u64::from(chaos.late_per_mille)) {
        let span = u64::try_from(chaos.late_max.as_nanos())
            .unwrap_or(u64::MAX)
            .max(1);
        let late = Duration::from_nanos((bits >> 10) % span);
        return Step::Late(SimRuntime::sleep(late));
    }
    Step::Now
}

/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
const fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
