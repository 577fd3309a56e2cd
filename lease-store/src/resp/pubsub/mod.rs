//! Channels and who listens to them on this node.
//!
//! What is published goes through the log, so every node tells its own subscribers, each message once and in the order of
//! the log. Nobody is waited for: a subscriber that does not keep up is cut off, and one that was not there is not told
//! later. A node that catches up by a snapshot has not seen what lies in between, and says so by cutting its subscribers
//! off.

mod announcer;
mod commands;
mod outlet;
mod topics;

pub(crate) use announcer::Announcer;
pub(super) use outlet::{Message, Subscriber};
pub(super) use topics::Pubsub;
