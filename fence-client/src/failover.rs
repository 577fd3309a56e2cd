//! The endpoints of a client. All its connections share one view of them, so that they move together.

use tokio::sync::watch;

use lease_core::wire::LeaderReply;

use crate::clock::timer_now;
use crate::course::Course;
use crate::endpoint::Endpoint;

/// The endpoints, and the one in use.
#[derive(Debug)]
pub(crate) struct Failover {
    endpoints: Vec<Endpoint>,
    course: watch::Sender<Course>,
}

/// An endpoint to ask, and the count of moves at which it was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) index: usize,
    pub(crate) moves: u64,
}

impl Failover {
    /// The first of `endpoints` is tried first.
    pub(crate) fn new(endpoints: Vec<Endpoint>) -> Self {
        let course = watch::Sender::new(Course::new(endpoints.len()));
        Self { endpoints, course }
    }

    pub(crate) const fn len(&self) -> usize {
        self.endpoints.len()
    }

    pub(crate) fn endpoint(&self, index: usize) -> Option<&Endpoint> {
        self.endpoints.get(index)
    }

    /// The endpoint in use.
    pub(crate) fn current(&self) -> Choice {
        let course = self.course.borrow();
        Choice {
            index: course.current(),
            moves: course.moves(),
        }
    }

    /// Whether this is still the endpoint in use.
    pub(crate) fn is_current(&self, choice: Choice) -> bool {
        self.course.borrow().current() == choice.index
    }

    /// Moves on from an endpoint if what is done with it fails, or is given up.
    pub(crate) const fn trying(&self, choice: Choice) -> Trying<'_> {
        Trying {
            failover: self,
            choice: Some(choice),
        }
    }

    /// Moves on from an endpoint that cannot serve; does nothing if somebody else has moved on already.
    pub(crate) fn leave(&self, choice: Choice) {
        self.course.send_if_modified(|course| {
            course.leave(choice.moves);
            false
        });
    }

    /// An endpoint leaves requests without an answer. Those who wait at it are told.
    pub(crate) fn found_silent(&self, index: usize) {
        self.course
            .send_modify(|course| course.found_silent(index, timer_now()));
    }

    /// An endpoint said what it knows of the cluster.
    pub(crate) fn told(&self, index: usize, reply: LeaderReply) {
        self.course.send_if_modified(|course| {
            course.told(index, reply, timer_now());
            false
        });
    }

    /// Counts an acquire that waits at an endpoint, until what this gives is dropped.
    pub(crate) fn waiting(&self, index: usize) -> Waiting<'_> {
        self.course.send_modify(|course| course.wait_begins(index));
        let silences = self.course.borrow().silences(index);
        Waiting {
            failover: self,
            index,
            silences,
        }
    }

    /// Waits until acquires wait at any endpoint.
    pub(crate) async fn has_waits(&self) {
        // The sender lives as long as `self`.
        let _ = self.course.subscribe().wait_for(Course::has_waits).await;
    }
}

/// An endpoint that is being tried. Dropped without a success, it counts as failed: whoever had no more patience with
/// it tries the next one.
#[derive(Debug)]
pub(crate) struct Trying<'a> {
    failover: &'a Failover,
    choice: Option<Choice>,
}

impl Trying<'_> {
    /// It works.
    pub(crate) fn succeeded(mut self) {
        self.choice = None;
    }
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if let Some(choice) = self.choice {
            self.failover.leave(choice);
        }
    }
}

/// An acquire that waits at an endpoint.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    failover: &'a Failover,
    index: usize,
    silences: u64,
}

impl Waiting<'_> {
    /// Waits until the endpoint is found silent.
    pub(crate) async fn silence(&self) {
        let heard = |course: &Course| course.silences(self.index) != self.silences;
        let _ = self.failover.course.subscribe().wait_for(heard).await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.failover.course.send_if_modified(|course| {
            course.wait_ends(self.index);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Failover {
        Failover::new(Endpoint::parse_list("a:1,b:2").unwrap())
    }

    #[test]
    fn an_endpoint_whose_trial_is_given_up_counts_as_failed() {
        let failover = two();
        failover.trying(failover.current()).succeeded();
        assert_eq!(failover.current().index, 0);
        drop(failover.trying(failover.current()));
        assert_eq!(failover.current().index, 1);
    }

    #[tokio::test]
    async fn whoever_waits_at_an_endpoint_hears_of_its_silence_and_nobody_else_does() {
        let failover = two();
        let (here, there) = (failover.waiting(0), failover.waiting(1));
        failover.found_silent(0);
        tokio::select! {
            biased;
            () = there.silence() => panic!("that one is not silent"),
            () = here.silence() => {}
        }
        assert_eq!(failover.current().index, 1);
        drop((here, there));
        assert!(!failover.course.borrow().has_waits());
    }
}
