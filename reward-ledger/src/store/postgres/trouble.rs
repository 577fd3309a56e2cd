//! What can go wrong with one try of a transaction, by what is to be done about it.

use tokio_postgres::error::SqlState;

use super::group::Answers;
use crate::error::StorageFailure;

/// Why one try did not answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another session was faster, or both waited for each other. Nothing was applied; try again at once.
    Overtaken(StorageFailure),
    /// The connection or the server is gone. Nothing was applied; try again over a new connection.
    Lost(StorageFailure),
    /// The connection was lost while the commit was under way: look whether it was made.
    Unknown {
        failure: StorageFailure,
        /// What the answers are if it was.
        answers: Answers,
    },
    /// A job of the group failed on a row that does not read back; each is to be done for itself. Nothing was applied.
    OneByOne,
    /// Trying again does not help. Nothing was applied.
    Refused(StorageFailure),
}

impl From<StorageFailure> for Trouble {
    fn from(failure: StorageFailure) -> Self {
        Self::Refused(failure)
    }
}

impl Trouble {
    /// Sorts an error of any statement but a commit.
    pub(super) fn of(action: &'static str, error: tokio_postgres::Error) -> Self {
        let code = error.code().cloned();
        let failure = failed(action, error);
        match code {
            None => Self::Lost(failure),
            Some(code) if is_conflict(&code) => Self::Overtaken(failure),
            Some(code) if is_outage(&code) => Self::Lost(failure),
            Some(_) => Self::Refused(failure),
        }
    }

    /// Sorts an error of a commit: it was certainly not made only where the server says so.
    pub(super) fn of_commit(error: tokio_postgres::Error, answers: Answers) -> Self {
        let not_made = error
            .code()
            .is_some_and(|code| is_conflict(code) || matches!(code.code().get(..2), Some("23" | "25")));
        let failure = failed("commit", error);
        match not_made {
            true => Self::Overtaken(failure),
            false => Self::Unknown { failure, answers },
        }
    }

    /// The server took too long.
    pub(super) fn timed_out(action: &'static str) -> Self {
        Self::Lost(StorageFailure::Database {
            action,
            source: "the server did not answer in time".into(),
        })
    }

    pub(super) fn into_failure(self) -> StorageFailure {
        match self {
            Self::Overtaken(failure)
            | Self::Lost(failure)
            | Self::Refused(failure)
            | Self::Unknown { failure, .. } => failure,
            Self::OneByOne => StorageFailure::Database {
                action: "do a job for itself",
                source: "it is for itself already".into(),
            },
        }
    }
}

pub(super) fn failed(action: &'static str, error: tokio_postgres::Error) -> StorageFailure {
    StorageFailure::Database {
        action,
        source: error.into(),
    }
}

/// Two sessions in each other's way; a row of the same key is one, too: it is read at the next try.
fn is_conflict(code: &SqlState) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(code)
}

/// The server goes down, comes up, or has no room for now: classes 08, 53 and 57.
fn is_outage(code: &SqlState) -> bool {
    matches!(code.code().get(..2), Some("08" | "53" | "57"))
}
