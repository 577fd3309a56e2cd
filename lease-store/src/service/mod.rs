//! What clients' commands mean: the protocol's words on one side, the machine's on the other, converted by hand.
//!
//! The embedded library and the RESP listener both come through here, so they cannot differ.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each command is answered a few outcomes; all others are bugs of ours, and handled as such"
)]

mod call_error;
mod keys;
mod keyspace;
mod leases;
mod scripts;

pub use call_error::CallError;
pub(crate) use keys::{Room, changed, looked};
pub use keys::{Stored, TtlAnswer};
pub(crate) use scripts::Attempt;
pub use scripts::{NamedScript, ScriptCall};
