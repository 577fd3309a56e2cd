use std::io;
use std::time::Duration;

use lease_core::wire::{AnswerError, ErrorReply, ErrorWord, ReplyDecodeError};
use thiserror::Error;

/// One request got no answer that says what was done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// No connection could be made.
    #[error("cannot connect to {endpoint}")]
    Connect {
        /// The server's address.
        endpoint: String,
        /// What failed.
        source: io::Error,
    },
    /// The server does not take this client: a wrong password, a database that it does not have.
    #[error("{endpoint} refused the connection: {reply}")]
    Greeting {
        /// The server's address.
        endpoint: String,
        /// What it said.
        reply: ErrorReply,
    },
    /// The request was not sent: there was no connection in time, or it broke before.
    #[error("the request could not be sent within {patience:?}")]
    NotSent {
        /// How long was tried.
        patience: Duration,
    },
    /// Nobody wanted the request any more when it could be sent.
    #[error("the request was withdrawn before it was sent")]
    Withdrawn,
    /// No answer came in time. The connection is given up.
    #[error("no answer came within {patience:?}")]
    NoAnswer {
        /// How long was waited.
        patience: Duration,
    },
    /// The connection broke before the answer came.
    #[error("the connection broke before the answer came ({kind})")]
    Broken {
        /// How it broke.
        kind: io::ErrorKind,
    },
    /// The peer does not speak the protocol.
    #[error("the answer cannot be read")]
    Garbled {
        /// What is wrong with it.
        source: ReplyDecodeError,
    },
    /// The server answered with an error, or with what is no answer to this request.
    #[error("the server gave no answer")]
    Answer {
        /// What it said.
        source: AnswerError,
    },
    /// The client is shutting down, or its runtime is.
    #[error("the client has stopped")]
    Stopped,
}

impl CallError {
    /// Whether sending the same request again can help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::NotSent { .. } | Self::NoAnswer { .. } | Self::Broken { .. } => true,
            Self::Greeting { reply, .. } => reply.is_retryable(),
            Self::Answer { source } => source.is_retryable(),
            Self::Withdrawn | Self::Garbled { .. } | Self::Stopped => false,
        }
    }

    /// Whether the request may have been applied all the same.
    #[must_use]
    pub fn may_have_applied(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Greeting { .. } | Self::NotSent { .. } | Self::Withdrawn => false,
            Self::NoAnswer { .. } | Self::Broken { .. } | Self::Garbled { .. } | Self::Stopped => true,
            Self::Answer { source } => source.may_have_applied(),
        }
    }

    /// What the server refused the request with, if it did and knows that nothing was applied.
    pub(crate) fn refusal(&self) -> Option<&ErrorReply> {
        let reply = match self {
            Self::Answer {
                source: AnswerError::Refused { reply, .. },
            }
            | Self::Greeting { reply, .. } => reply,
            Self::Answer { .. }
            | Self::Connect { .. }
            | Self::NotSent { .. }
            | Self::Withdrawn
            | Self::NoAnswer { .. }
            | Self::Broken { .. }
            | Self::Garbled { .. }
            | Self::Stopped => return None,
        };
        match reply.word() {
            Some(ErrorWord::ClusterDown | ErrorWord::Unknown) | None => None,
            Some(_) => Some(reply),
        }
    }
}

impl From<AnswerError> for CallError {
    fn from(source: AnswerError) -> Self {
        Self::Answer { source }
    }
}
