//! The wire: requests and replies of Redis's protocol, and the `LEASE.*` commands and answers within them.
//!
//! Everything here turns bytes into data and back. Both directions of each form stand side by side, the server's half
//! and the client's. It leaves to others what the commands do, and every socket.
//!
//! Reading order: [`RequestDecoder`], [`Reply`], [`LeaseCommand`], [`AcquireReply`].
//!
//! Source: the RESP2 and RESP3 specifications of Redis; error texts and edge cases follow redis-server by behaviour.

mod command_error;
mod decimal;
mod encode_request;
mod error_word;
mod inline;
mod lease_command;
mod lease_reply;
mod lease_verb;
mod line;
mod list_cursor;
mod loss_reason;
mod protocol;
mod protocol_error;
mod reply;
mod reply_decode_error;
mod reply_decoder;
mod reply_encoder;
mod request;
mod request_decoder;
mod request_limits;

pub use command_error::CommandError;
pub use encode_request::encode_request;
pub use error_word::{ErrorWord, Retry};
pub use lease_command::{AcquireCommand, LeaseCommand, ListCommand, RenewCommand, RenewManyCommand};
pub use lease_reply::{
    AcquireReply, AnswerError, CancelReply, ForceReply, GetReply, HistoryEntry, HistoryEvent, HistoryReply,
    LeaderReply, LeaseView, ListEntry, ListReply, ReleaseReply, RenewManyReply, RenewReply, TokenReply,
};
pub use lease_verb::LeaseVerb;
pub use line::Line;
pub use list_cursor::{ListCursor, NotACursor};
pub use loss_reason::LossReason;
pub use protocol::Protocol;
pub use protocol_error::ProtocolError;
pub use reply::{ErrorReply, Reply};
pub use reply_decode_error::ReplyDecodeError;
pub use reply_decoder::ReplyDecoder;
pub use reply_encoder::ReplyWriter;
pub use request::Request;
pub use request_decoder::RequestDecoder;
pub use request_limits::{Access, RequestLimits};

#[cfg(test)]
mod tests;
