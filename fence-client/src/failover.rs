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
    moves: usize,
}

impl Failover {
    /// The first of `endpoints` is tried first.
    pub(crate) const fn new(endpoints: Vec<Endpoint>) -> Self {
        Self { endpoints, moves: AtomicUsize::new(0) }
    }

    pub(crate) const fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// The endpoint in use; `None` without any.
    pub(crate) fn current(&self) -> Option<Choice<'_>> {
        let moves = self.moves.load(Ordering::Relaxed);
        let index = moves.checked_rem(self.endpoints.len())?;
        Some(Choice { endpoint: self.endpoints.get(index)?, moves })
    }

    /// Moves on from an endpoint that failed; does nothing if somebody else has moved on already.
    pub(crate) fn failed(&self, choice: Choice<'_>) {
        let next = choice.moves.wrapping_add(1);
        let _ = self
            .moves
            .compare_exchange(choice.moves, next, Ordering::Relaxed, Ordering::Relaxed);
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
        failover.failed(one);
        failover.failed(same);
        let next = failover.current().unwrap();
        assert_eq!(next.endpoint.host, "b");
        failover.failed(next);
        assert_eq!(failover.current().unwrap().endpoint.host, "a");
    }

    #[test]
    fn without_endpoints_there_is_nothing_to_try() {
        assert_eq!(Failover::new(Vec::new()).current(), None);
    }
}
