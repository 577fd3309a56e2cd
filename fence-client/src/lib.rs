//! Client of lease-store: acquire, renew by watchdog, learn of a loss in time, release.
//!
//! ```no_run
//! use fence_client::{FenceClient, ShortDurations as _};
//!
//! # async fn work(_: fence_client::Fence) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = FenceClient::connect("127.0.0.1:7420").await?;
//! let lease = client.lease("lock:reward:player-42").ttl(5.secs()).wait(10.secs()).acquire().await?;
//!
//! // The work is dropped at the loss. Its writes carry the token, so that a late one is refused.
//! lease.run(work(lease.fence())).await?;
//! lease.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a handle promises
//! - [`Lease::is_valid`] is never true while the store may already count the lease as over, if two clocks differ by no
//!   more than 0.1 % in rate (see [`ClientBuilder::clock_rate_error_ppm`]). The deadline counts from the moment when
//!   the request left, and a margin is taken off it.
//! - The loss is raised at that deadline, also while a renewal is in flight, and a lease that was lost never comes
//!   back. After a suspend of the machine, the first call sees it.
//! - From the call of [`Lease::release`] on no renewal is sent.
//! - An error says whether the request may have been applied. Unknown is not failed.
//!
//! It cannot promise that work stops in time: a process may be paused between the check and the write. Only the
//! resource can refuse a late write, by its token; show it [`Lease::fence`] with each.
//!
//! # Reading order
//! `client.rs`, `lease_request.rs`, `acquire.rs`, `lease.rs`; then `watchdog/decide.rs` and `watchdog/window.rs`, which are pure and hold
//! the rules; `hold.rs`, the state that handles and watchdog share; `transport.rs` and what is below it, `course.rs` first.

mod acquire;
mod backoff;
mod builder;
mod call_error;
mod caller;
mod client;
mod clock;
mod config;
mod connection;
mod course;
#[cfg(any(test, feature = "embedded"))]
mod embedded;
mod endpoint;
mod errands;
mod error;
mod failover;
mod greeting;
mod hold;
mod lease;
mod lease_request;
mod link;
mod lookout;
mod loss;
mod random;
mod release;
mod short_durations;
mod tasks;
mod tcp;
mod terms;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod transport;
mod unavailable;
mod watchdog;

pub use builder::ClientBuilder;
pub use call_error::CallError;
pub use client::FenceClient;
pub use endpoint::InvalidEndpoint;
pub use error::{AcquireError, ConnectError, Holder, ReleaseError, RequestError};
pub use lease::Lease;
pub use lease_request::LeaseRequest;
pub use loss::{LossReason, Lost};
pub use release::Released;
pub use short_durations::ShortDurations;
pub use unavailable::{Authority, UnavailablePolicy, UnfencedPermit};

pub use lease_core::wire::{
    CancelReply, ErrorReply, ErrorWord, HistoryEntry, HistoryEvent, LeaseView, ListCursor, ListEntry,
    ListReply, LossReason as EndReason,
};
pub use lease_core::{Database, Fence, FenceToken, InvalidValue, LeaseName, Metadata, OwnerId, RequestId};

#[cfg(test)]
mod tests;
