//! The outside, as a publisher sees it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::decide::{Answer, Status};
use crate::types::Delivery;

/// The answer of a target, later.
pub type TargetFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An outside server that does each delivery once, by its [`Delivery::idempotency_key`].
///
/// Both calls may be dropped at any moment, when their time is over; then their outcome is unknown. They never fail: what
/// is not known is [`Answer::Unknown`].
pub trait Target: fmt::Debug + Send + Sync + 'static {
    /// Has the delivery done.
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Answer>;

    /// Asks whether it was done. A server that cannot tell answers [`Status::Unknown`].
    fn status<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Status>;
}
