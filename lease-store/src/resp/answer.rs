//! What a request is answered, and what must be undone if the answer cannot be written.

use lease_core::FenceToken;
use lease_core::machine::LeaseKey;
use lease_core::wire::Reply;

/// One answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// As it is sent.
    pub(super) reply: Reply,
    /// A grant that only this caller can use, and that has no request id under which it could ask again.
    pub(super) unclaimed: Option<Unclaimed>,
}

/// A grant to release if its caller is gone before the answer could be written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unclaimed {
    pub(super) key: LeaseKey,
    pub(super) token: FenceToken,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            unclaimed: None,
        }
    }
}
