//! Which endpoint is dialled next. All connections of a client share one view, so that they move together.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::endpoint::Endpoint;

/// The endpoints of a client, and the one in use.
#[derive(Debug)]
pub(crate) struct Failover {
    endpoints: Vec<Endpoint>,
    /// Counts the moves; the endpoint in use is this modulo their number.
    moves: AtomicUsize,
}

/// An endpoint to try, and the count of moves at which it was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) moves: usize,
}

impl Failover {
    /// The first of `endpoints` is tried first.
    pub(crate) const fn new(endpoints: Vec<Endpoint>) -> Self {
        Self {
            endpoints,
            moves: AtomicUsize::new(0),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// The endpoint in use; `None` without any.
    pub(crate) fn current(&self) -> Option<Choice<'_>> {
        let moves = self.moves.load(Ordering::Relaxed);
        let index = moves.checked_rem(self.endpoints.len())?;
        Some(Choice {
            endpoint: self.endpoints.get(index)?,
            moves,
        })
    }

    /// Moves on from an endpoint if what is done with it fails, or is given up.
    pub(crate) const fn trying<'a>(&'a self, choice: Choice<'a>) -> Trying<'a> {
        Trying {
            failover: self,
            choice: Some(choice),
        }
    }

    /// Moves on from the endpoint that was chosen at this count of moves, since it failed; does nothing if somebody
    /// else has moved on already.
    pub(crate) fn failed(&self, moves: usize) {
        let next = moves.wrapping_add(1);
        let _ = self
            .moves
            .compare_exchange(moves, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// An endpoint that is being tried. Dropped without a success, it counts as failed: whoever had no more patience with
/// it tries the next one.
#[derive(Debug)]
pub(crate) struct Trying<'a> {
    failover: &'a Failover,
    choice: Option<Choice<'a>>,
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
            self.failover.failed(choice.moves);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_moves_on_once_however_many_saw_it() {
        let failover = Failover::new(Endpoint::parse_list("a:1,b:2").unwrap());
        let (one, same) = (failover.current().unwrap(), failover.current().unwrap());
        assert_eq!(one.endpoint.host, "a");
        failover.failed(one.moves);
        failover.failed(same.moves);
        let next = failover.current().unwrap();
        assert_eq!(next.endpoint.host, "b");
        failover.failed(next.moves);
        assert_eq!(failover.current().unwrap().endpoint.host, "a");
    }

    #[test]
    fn an_endpoint_whose_trial_is_given_up_counts_as_failed() {
        let failover = Failover::new(Endpoint::parse_list("a:1,b:2").unwrap());
        failover.trying(failover.current().unwrap()).succeeded();
        assert_eq!(failover.current().unwrap().endpoint.host, "a");
        drop(failover.trying(failover.current().unwrap()));
        assert_eq!(failover.current().unwrap().endpoint.host, "b");
    }

    #[test]
    fn without_endpoints_there_is_nothing_to_try() {
        assert_eq!(Failover::new(Vec::new()).current(), None);
    }
}
