//! Which endpoint a client asks next. Pure: time is an argument.
//!
//! The rules, each held by a test:
//! - An endpoint that fails, or says that it cannot serve, is left for the next one; once, however many saw it.
//! - An endpoint that says of itself that it leads is preferred, of several the one of the highest term. That is a
//!   hint: any node serves any command, so a wrong one costs a hop and nothing else.
//! - An endpoint that left a request without an answer is not preferred for a while, whatever it says.

use std::time::Duration;

use lease_core::wire::LeaderReply;
use tokio::time::Instant;

/// For so long an endpoint that left a request without an answer is not preferred: it may answer questions about the
/// cluster and serve nothing, as with a disk that hangs. Long enough that a holder is not led back to it again and
/// again within one time to live.
const DISTRUST: Duration = Duration::from_secs(10);

/// One endpoint, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    /// The term in which it says that it leads.
    leads_in: Option<u64>,
    distrusted_until: Option<Instant>,
    /// How often it was found silent.
    silences: u64,
    /// Acquires that wait at it.
    waiting: usize,
}

/// The endpoints of a client by number, and the one in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Course {
    places: Vec<Place>,
    current: usize,
    /// Counts the moves from one endpoint to another.
    moves: u64,
}

impl Course {
    /// The first of so many endpoints is tried first.
    pub(crate) fn new(endpoints: usize) -> Self {
        Self {
            places: vec![Place::default(); endpoints],
            current: 0,
            moves: 0,
        }
    }

    /// The endpoint in use.
    pub(crate) const fn current(&self) -> usize {
        self.current
    }

    /// How many moves there were.
    pub(crate) const fn moves(&self) -> u64 {
        self.moves
    }

    /// An endpoint that was chosen at this count of moves cannot serve now.
    pub(crate) fn leave(&mut self, moves: u64) {
        if moves == self.moves {
            let next = self.current.saturating_add(1);
            self.move_to(next.checked_rem(self.places.len()).unwrap_or(0));
        }
    }

    /// An endpoint leaves requests without an answer.
    pub(crate) fn found_silent(&mut self, index: usize, now: Instant) {
        if let Some(place) = self.places.get_mut(index) {
            place.silences = place.silences.saturating_add(1);
            place.leads_in = None;
            place.distrusted_until = now.checked_add(DISTRUST);
        }
        if index == self.current {
            self.leave(self.moves);
        }
    }

    /// An endpoint said what it knows of the cluster.
    pub(crate) fn told(&mut self, index: usize, reply: LeaderReply, now: Instant) {
        let Some(place) = self.places.get_mut(index) else {
            return;
        };
        place.leads_in = (reply.leader == Some(reply.node)).then_some(reply.term);
        let trusted = self.places.iter().enumerate().filter(|(_, place)| {
            let distrusted = place.distrusted_until.is_some_and(|until| now < until);
            place.leads_in.is_some() && !distrusted
        });
        if let Some((leader, _)) = trusted.max_by_key(|(_, place)| place.leads_in)
            && leader != self.current
        {
            self.move_to(leader);
        }
    }

    /// How often an endpoint was found silent.
    pub(crate) fn silences(&self, index: usize) -> u64 {
        self.places.get(index).map_or(0, |place| place.silences)
    }

    /// One more acquire waits at an endpoint.
    pub(crate) fn wait_begins(&mut self, index: usize) {
        if let Some(place) = self.places.get_mut(index) {
            place.waiting = place.waiting.saturating_add(1);
        }
    }

    /// An acquire no longer waits at an endpoint.
    pub(crate) fn wait_ends(&mut self, index: usize) {
        if let Some(place) = self.places.get_mut(index) {
            place.waiting = place.waiting.saturating_sub(1);
        }
    }

    /// Whether acquires wait at any endpoint.
    pub(crate) fn has_waits(&self) -> bool {
        self.places.iter().any(|place| place.waiting > 0)
    }

    const fn move_to(&mut self, index: usize) {
        self.current = index;
        self.moves = self.moves.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::timer_now;

    fn leads(term: u64) -> LeaderReply {
        LeaderReply {
            node: 7,
            leader: Some(7),
            term,
        }
    }

    fn follows(leader: Option<u64>) -> LeaderReply {
        LeaderReply {
            node: 8,
            leader,
            term: 9,
        }
    }

    #[test]
    fn a_failure_moves_on_once_however_many_saw_it() {
        let mut course = Course::new(2);
        let seen = course.moves();
        course.leave(seen);
        course.leave(seen);
        assert_eq!(course.current(), 1);
        course.leave(course.moves());
        assert_eq!(course.current(), 0);
    }

    #[test]
    fn whoever_leads_is_preferred_and_of_several_the_one_of_the_highest_term() {
        let (mut course, now) = (Course::new(3), timer_now());
        course.told(0, follows(Some(7)), now);
        assert_eq!(
            (course.current(), course.moves()),
            (0, 0),
            "others are not known by their numbers"
        );
        course.told(2, leads(5), now);
        assert_eq!(course.current(), 2);
        // One that was cut off from the others still believes that it leads.
        course.told(1, leads(4), now);
        assert_eq!((course.current(), course.moves()), (2, 1));
        course.told(0, leads(6), now);
        assert_eq!(course.current(), 0);
        course.told(0, follows(None), now);
        assert_eq!(course.current(), 2, "the next best that says so");
    }

    #[test]
    fn a_hint_that_changes_nothing_moves_nothing() {
        let (mut course, now) = (Course::new(2), timer_now());
        course.told(0, leads(1), now);
        course.told(0, leads(2), now);
        course.told(7, leads(9), now);
        assert_eq!((course.current(), course.moves()), (0, 0));
    }

    #[test]
    fn a_leader_that_leaves_requests_unanswered_is_not_preferred_for_a_while() {
        let (mut course, now) = (Course::new(2), timer_now());
        course.told(0, leads(3), now);
        course.found_silent(0, now);
        assert_eq!((course.current(), course.silences(0)), (1, 1));
        course.told(0, leads(3), now);
        assert_eq!(course.current(), 1);
        course.told(0, leads(3), now + DISTRUST);
        assert_eq!(course.current(), 0);
    }

    #[test]
    fn an_endpoint_that_is_not_in_use_falls_silent_without_a_move() {
        let mut course = Course::new(2);
        course.found_silent(1, timer_now());
        assert_eq!((course.current(), course.moves(), course.silences(1)), (0, 0, 1));
    }

    #[test]
    fn waits_are_counted_for_each_endpoint() {
        let mut course = Course::new(2);
        course.wait_begins(1);
        course.wait_begins(1);
        course.wait_ends(1);
        assert!(course.has_waits());
        course.wait_ends(1);
        course.wait_ends(0);
        assert!(!course.has_waits());
    }

    #[test]
    fn without_endpoints_nothing_happens() {
        let mut course = Course::new(0);
        course.leave(0);
        course.told(0, leads(1), timer_now());
        course.found_silent(3, timer_now());
        assert_eq!(course.current(), 0);
    }
}
