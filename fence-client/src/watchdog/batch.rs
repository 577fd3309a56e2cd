//! One renewal of several leases: made when it leaves, so that nothing is renewed that is no longer wanted by then.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lease_core::wire::{LeaseCommand, LeaseVerb, RenewManyCommand, RenewManyReply, RenewReply};

use crate::call_error::CallError;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::hold::Hold;
use crate::transport::{Lane, Request};

/// Part of the shortest time to live after which an unanswered renewal is given up and its connection is replaced, so
/// that another attempt fits before the deadline.
const PATIENCE_PART: u32 = 4;

/// The leases of one request.
pub(super) struct Batch {
    holds: Vec<Arc<Hold>>,
    /// Set when the request leaves: for each lease, whether it was still wanted then.
    asked: OnceLock<Vec<Asked>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Yes,
    LeftOut,
}

/// What came of one batch.
pub(super) struct Renewed {
    pub(super) holds: Vec<Arc<Hold>>,
    pub(super) answer: Result<Answers, CallError>,
}

/// The answers of a batch.
pub(super) struct Answers {
    /// When the request left.
    pub(super) sent: Moment,
    /// The leases that were asked for.
    pub(super) asked: Vec<(Arc<Hold>, RenewReply)>,
    /// Those that were left out.
    pub(super) unasked: Vec<Arc<Hold>>,
}

impl Batch {
    pub(super) const fn new(holds: Vec<Arc<Hold>>) -> Self {
        Self {
            holds,
            asked: OnceLock::new(),
        }
    }

    /// Sends it once and waits for its answer.
    pub(super) async fn renew(self, caller: Caller) -> Renewed {
        let patience = self.patience(caller.request_timeout);
        let batch = Arc::new(self);
        let leaving = Arc::clone(&batch);
        let request = Request::prepared(LeaseVerb::RenewMany, patience, move || leaving.command());
        let answer = match caller.transport.call(Lane::Renewal, request).await {
            Ok(answered) => RenewManyReply::from_reply(batch.asked_len(), answered.reply)
                .map(|reply| batch.answers(answered.sent, reply))
                .map_err(CallError::from),
            Err(error) => Err(error),
        };
        Renewed {
            holds: batch.holds.clone(),
            answer,
        }
    }

    fn patience(&self, request_timeout: Duration) -> Duration {
        let shortest = self.holds.iter().map(|hold| hold.ttl.as_duration()).min();
        let part = shortest.unwrap_or_default().checked_div(PATIENCE_PART);
        part.unwrap_or_default().min(request_timeout)
    }

    /// The command, made when it leaves: whoever was released meanwhile is left out.
    fn command(&self) -> Option<LeaseCommand> {
        let mut leases = Vec::with_capacity(self.holds.len());
        let asked = self.holds.iter().map(|hold| {
            if hold.may_be_renewed() {
                leases.push((hold.fence.resource.clone(), hold.fence.token));
                Asked::Yes
            } else {
                Asked::LeftOut
            }
        });
        // A request leaves once.
        let _ = self.asked.set(asked.collect());
        (!leases.is_empty()).then_some(LeaseCommand::RenewMany(RenewManyCommand { leases }))
    }

    fn asked(&self) -> &[Asked] {
        self.asked.get().map(Vec::as_slice).unwrap_or_default()
    }

    fn asked_len(&self) -> usize {
        self.asked().iter().filter(|asked| **asked == Asked::Yes).count()
    }

    fn answers(&self, sent: Moment, reply: RenewManyReply) -> Answers {
        let mut replies = reply.answers.into_iter();
        let mut answers = Answers {
            sent,
            asked: Vec::new(),
            unasked: Vec::new(),
        };
        for (hold, asked) in self.holds.iter().zip(self.asked()) {
            let hold = Arc::clone(hold);
            match asked {
                Asked::Yes => answers.asked.extend(replies.next().map(|reply| (hold, reply))),
                Asked::LeftOut => answers.unasked.push(hold),
            }
        }
        answers
    }
}
