//! The pure core: vocabulary, bounds, the lease machine and the wire formats.
//!
//! Everything here is a function of its arguments. There is no clock (time is a [`Timestamp`] argument), no
//! file, no socket, no random number and no iterated hash map, so that every replica that applies the same log
//! holds the same state, and a simulation can replay it byte for byte. `clippy.toml` of this crate and the `tidy`
//! test hold that.
//!
//! Reading order: [`limits`], [`types`], [`machine`], [`wire`], [`redis`], [`script`].
#![warn(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::iter_over_hash_type
)]

pub mod limits;
pub mod machine;
pub mod redis;
pub mod script;
pub mod types;
pub mod wire;

pub use types::{
    Attachment, Database, Fence, FenceToken, InvalidValue, LeaseName, Metadata, OwnerId, RequestId,
    SharedBytes, Timestamp, Ttl,
};
