use super::AnswerError;
use super::fields::Fields;
use crate::wire::{LeaseVerb, Reply};

/// The answer to `LEASE.LEADER`: what one node knows, which may be out of date. It says where requests take the
/// shortest way, and nothing else may rest on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderReply {
    /// The node that answers.
    pub node: u64,
    /// The node that leads; `None` if none is known.
    pub leader: Option<u64>,
    /// The election that the answering node knows of. Of two that say that they lead, the one of the higher term does.
    pub term: u64,
}

impl LeaderReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        let leader = self.leader.map_or(Reply::Nil, Reply::count);
        Reply::Array(vec![Reply::count(self.node), leader, Reply::count(self.term)])
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, or of another form. Nothing was applied: this only reads.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let mut fields = Fields::of(LeaseVerb::Leader, reply)?;
        Ok(Self {
            node: fields.count()?,
            leader: fields.count_or_nil()?,
            term: fields.count()?,
        })
    }
}
