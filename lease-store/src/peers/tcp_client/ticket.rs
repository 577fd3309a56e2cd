//! One call on its way, and whether it has left: who gives up first decides, and both know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::peers::transport::{Kind, PeerError};

pub(super) type Answer = Result<Bytes, PeerError>;

/// What waits in the mailbox of a lane.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) body: Bytes,
    pub(super) ticket: Arc<Ticket>,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Call {
    /// Whether it is to be sent now; if so, it counts as sent. One whose caller has gone is not.
    pub(super) fn sends(&self) -> bool {
        !self.reply.is_closed() && self.ticket.mark_sent()
    }
}

/// Shared by the caller and the lane.
#[derive(Debug, Default)]
pub(super) struct Ticket(AtomicU8);

const WAITING: u8 = 0;
const SENT: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Ticket {
    /// Gives the call up unless it was sent; answers whether it was not, and now never will be.
    pub(super) fn give_up(&self) -> bool {
        self.leave(GIVEN_UP)
    }

    fn mark_sent(&self) -> bool {
        self.leave(SENT)
    }

    fn leave(&self, to: u8) -> bool {
        self.0
            .compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_given_up_is_not_sent_and_one_that_was_sent_not_given_up() {
        let ticket = Ticket::default();
        assert!(ticket.give_up());
        assert!(!ticket.mark_sent());
        let ticket = Ticket::default();
        assert!(ticket.mark_sent());
        assert!(!ticket.give_up());
    }

    #[test]
    fn a_call_whose_caller_is_gone_is_not_sent() {
        let (reply, answer) = oneshot::channel();
        let call = Call {
            kind: Kind::Request,
            body: Bytes::new(),
            ticket: Arc::default(),
            reply,
        };
        drop(answer);
        assert!(!call.sends());
    }
}
