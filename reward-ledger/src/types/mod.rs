//! The vocabulary of claims: checked values, the claim itself, and the receipt.

mod amount;
mod attempt_id;
mod claim;
mod claim_builder;
mod claim_id;
mod fence_state;
mod invalid;
mod item;
mod player_id;
mod receipt;
mod receipt_bytes;
#[cfg(test)]
mod tests;
mod unix_millis;

pub use amount::Amount;
pub use attempt_id::AttemptId;
pub(crate) use claim::ClaimBody;
pub use claim::{Authority, Claim, ClaimField};
pub use claim_builder::ClaimBuilder;
pub use claim_id::ClaimId;
pub(crate) use fence_state::Reason;
pub use fence_state::{FenceReset, FenceState};
pub use invalid::{InvalidClaim, InvalidField};
pub(crate) use invalid::{check_length, check_text};
pub use item::Item;
pub use player_id::PlayerId;
pub(crate) use receipt::Grant;
pub use receipt::Receipt;
pub use receipt_bytes::InvalidReceipt;
pub use unix_millis::UnixMillis;
