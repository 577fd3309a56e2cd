//! How long a test of made-up input goes on.

use std::time::Duration;

use crate::clock::Deadline;

/// A minute in CI.
const CI_SECONDS: u64 = 60;

/// So many cases; for a minute under `CI=true`; or for as many seconds as `LEASE_FUZZ_SECONDS` says.
#[derive(Debug)]
pub struct Effort {
    cases: u64,
    deadline: Option<Deadline>,
    begun: u64,
}

impl Effort {
    /// `cases`, unless the environment says otherwise.
    #[must_use]
    pub fn of(cases: u64) -> Self {
        let asked = std::env::var("LEASE_FUZZ_SECONDS").ok();
        let seconds = match asked {
            Some(asked) => {
                let seconds = asked.parse::<u64>();
                Some(seconds.unwrap_or_else(|_| panic!("harness: LEASE_FUZZ_SECONDS is {asked}, no number")))
            }
            None => (std::env::var("CI").as_deref() == Ok("true")).then_some(CI_SECONDS),
        };
        Self {
            cases,
            deadline: seconds.map(|seconds| Deadline::after(Duration::from_secs(seconds))),
            begun: 0,
        }
    }

    /// Whether there is to be another case, which is then counted.
    pub fn goes_on(&mut self) -> bool {
        let more = match self.deadline {
            Some(deadline) => deadline.left().is_some(),
            None => self.begun < self.cases,
        };
        self.begun += u64::from(more);
        more
    }

    /// How many cases were begun.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }
}
