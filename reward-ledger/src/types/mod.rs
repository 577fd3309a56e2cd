//! The vocabulary of claims: checked values, the claim itself, and the receipt.

mod amount;
mod attempt_id;
mod claim;
mod claim_builder;
mod claim_id;
mod delivery;
mod fence_state;
mod invalid;
mod item;
mod note;
mod order_id;
mod partition;
mod payment;
mod player_id;
mod receipt;
mod receipt_bytes;
mod reversal;
#[cfg(test)]
mod tests;
mod unix_millis;

pub use amount::Amount;
pub use attempt_id::AttemptId;
pub(crate) use claim::ClaimBody;
pub use claim::{Authority, Claim, ClaimField};
pub use claim_builder::ClaimBuilder;
pub use claim_id::ClaimId;
pub use delivery::{
    Delivery, DeliveryProgress, DeliveryState, Doubt, PublisherId, Settled, Settlement, Verdict,
};
pub use fence_state::{FenceReset, FenceState};
pub use invalid::{InvalidClaim, InvalidField};
pub(crate) use invalid::{check_length, check_text};
pub use item::Item;
pub use note::{Note, Reason};
pub use order_id::OrderId;
pub use partition::Partition;
pub use payment::{Finding, FoundBy, PaymentAttempt, PaymentResult, PaymentStart, PaymentStatus};
pub use player_id::PlayerId;
pub(crate) use receipt::Grant;
pub use receipt::Receipt;
pub use receipt_bytes::InvalidReceipt;
pub use reversal::Reversal;
pub use unix_millis::UnixMillis;
