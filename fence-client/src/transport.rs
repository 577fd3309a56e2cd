//! How a request gets to the store and its answer back: over TCP, or to a store in the same process.
//!
//! One request, one answer, no retry: that is left to [`crate::caller`]. A transport says when the request left,
//! since every deadline counts from there, and tells what was certainly not sent from what may have been applied.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use lease_core::wire::{LeaseCommand, LeaseVerb, Reply};

use crate::call_error::CallError;
use crate::clock::Moment;

/// Which connection a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Short requests, many on one connection.
    Control,
    /// Renewals, which nothing else may hold up.
    Renewal,
    /// Acquires that wait: each holds up its connection until it is answered.
    Wait,
}

/// What makes the command at the moment when it can leave; `None` withdraws it.
type Prepare = Box<dyn FnOnce() -> Option<LeaseCommand> + Send>;

/// One request.
pub(crate) struct Request {
    pub(crate) verb: LeaseVerb,
    /// How long to wait for the answer, the way to a connection included.
    pub(crate) patience: Duration,
    prepare: Prepare,
}

impl Request {
    /// A request whose command is made now.
    pub(crate) fn new(command: LeaseCommand, patience: Duration) -> Self {
        Self {
            verb: command.verb(),
            patience,
            prepare: Box::new(move || Some(command)),
        }
    }

    /// A request whose command is made when it leaves, so that what is no longer wanted by then is not sent.
    pub(crate) fn prepared(
        verb: LeaseVerb,
        patience: Duration,
        prepare: impl FnOnce() -> Option<LeaseCommand> + Send + 'static,
    ) -> Self {
        Self {
            verb,
            patience,
            prepare: Box::new(prepare),
        }
    }

    /// The command. Call this when it leaves, and not before.
    pub(crate) fn into_command(self) -> Option<LeaseCommand> {
        (self.prepare)()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("verb", &self.verb)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// An answer, and when its request left.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) reply: Reply,
    /// Just before the first byte of the request left.
    pub(crate) sent: Moment,
}

/// The answer to one request, to be awaited.
pub(crate) type Call<'a> = Pin<Box<dyn Future<Output = Result<Answered, CallError>> + Send + 'a>>;

/// A way to the store. Dropping a call gives it up: a waiting acquire's connection is closed.
pub(crate) trait Transport: fmt::Debug + Send + Sync {
    /// Sends one request and waits for its answer.
    fn call(&self, lane: Lane, request: Request) -> Call<'_>;

    /// Sees to it that there is a connection.
    fn reach(&self) -> Pin<Box<dyn Future<Output = Result<(), CallError>> + Send + '_>>;
}
