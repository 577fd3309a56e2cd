//! A ledger that grants each reward once, and refuses whoever shows a stale fencing token.
//!
//! A lease keeps several workers from doing the same work at once; it cannot keep a worker that was paused past its
//! lease from writing. The ledger can: each claim shows its lease's token, the ledger keeps the highest token it has
//! seen for each resource, and refuses lower ones. Two more rules hold even without any lease: a player is granted an event
//! once, and whoever asks again for the same thing gets the first receipt, byte for byte.
//!
//! ```
//! use lease_core::{Fence, FenceToken, LeaseName};
//! use reward_ledger::{Claim, ClaimOutcome, Ledger, MemoryStore, RewardEventId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ledger = Ledger::open(MemoryStore::new());
//! let resource = LeaseName::new("lock:reward:player-42")?;
//! let event = RewardEventId::builder("season-2026-week-34", 42, "rank-3").build()?;
//! let claim = |token| -> Result<Claim, Box<dyn std::error::Error>> {
//!     let fence = Fence::new(resource.clone(), FenceToken::new(token)?);
//!     Ok(Claim::builder(fence, 42, event.clone(), 500).item("gold").build()?)
//! };
//!
//! // A holds the lease with token 101, is paused, and B is granted it with token 102.
//! let granted = ledger.claim(claim(102)?).await?;
//! assert!(matches!(granted, ClaimOutcome::Applied(_)));
//!
//! // A wakes up, still believing that it holds the lease: refused, and shown what B did.
//! let ClaimOutcome::Stale { seen, applied, .. } = ledger.claim(claim(101)?).await? else {
//!     unreachable!("101 is lower than 102");
//! };
//! assert_eq!(seen.get(), 102);
//! assert_eq!(applied.as_ref(), granted.receipt());
//!
//! // B's message is delivered again: the first receipt, and nothing is granted twice.
//! let replayed = ledger.claim(claim(102)?).await?;
//! assert!(matches!(&replayed, ClaimOutcome::Replayed(receipt) if Some(receipt) == granted.receipt()));
//! assert!(ledger.audit().await?.is_clean());
//! # Ok(())
//! # }
//! ```
//!
//! # Reading order
//! `types` and `event_id` are the vocabulary; `core::decide` is the whole decision, pure; `store` keeps rows, each store
//! with its own transaction and durability; `ledger` is the door; `audit` checks it all.
//!
//! # Features
//! * `sled` (default): the embedded store, [`SledStore`].
//! * `server` (default): the HTTP service [`Service`], exports and imports, and the command line `reward-ledger`.
//! * `http-target` (with `server`): deliveries over HTTP.
//! * `lease-guard`: publishers that share the work by leases of lease-store.
//! * `postgres` (default): the shared store, [`PostgresStore`].
//! * `test-util`: the `testing` module.
#![cfg_attr(
    not(any(test, feature = "test-util")),
    expect(
        unreachable_pub,
        reason = "what `testing` shows can be reached with test-util only"
    )
)]

#[cfg(feature = "server")]
mod archive;
mod audit;
mod clock;
#[cfg(feature = "server")]
pub mod command_line;
mod config;
mod core;
mod error;
mod event_id;
#[cfg(feature = "server")]
mod http;
#[cfg(feature = "server")]
mod json;
#[cfg(test)]
#[cfg(any(feature = "sled", feature = "postgres"))]
mod killed;
mod ledger;
pub mod limits;
mod outbox;
#[cfg(all(test, feature = "postgres"))]
mod sql_kit;
mod store;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod types;

pub use crate::core::{
    BatchOutcome, ClaimOutcome, ConflictSubject, Judgement, PaymentField, PaymentOutcome, PaymentReport,
    PaymentWitness, RefusedClaim, ReportOutcome, ReversalOutcome,
};
#[cfg(feature = "server")]
pub use archive::{Exporter, ImportError, import};
pub use audit::{AuditReport, Expectations, OutsideRecords, Violation};
pub use clock::{Clock, SystemClock};
pub use config::LedgerBuilder;
pub use error::{Certainty, ClaimError, InvalidConfig, OpenError, ResetError, StorageFailure, StoreError};
pub use event_id::{EventIdBuilder, EventParts, InvalidEventId, RandomLook, RewardEventId};
#[cfg(feature = "server")]
pub use http::{Access, Service, ServiceError};
pub use ledger::Ledger;
#[cfg(feature = "lease-guard")]
pub use outbox::LeaseGuard;
pub use outbox::{
    Answer, MemoryTarget, Mood, PublishPolicy, PublishPolicyBuilder, Published, Publisher, Status, Target,
    TargetFuture, Territory,
};
#[cfg(feature = "http-target")]
pub use outbox::{HttpTarget, HttpTargetBuilder};
pub use store::{
    Amended, ArchivePage, ArchiveTable, Archived, ClaimRecord, Cursor, Deliveries, Health, MemoryStore,
    OutboxQuery, Query, Records, Standing, Store,
};
#[cfg(feature = "postgres")]
pub use store::{OpenPostgresError, PostgresConfig, PostgresConfigBuilder, PostgresStore};
#[cfg(feature = "sled")]
pub use store::{SledConfig, SledConfigBuilder, SledStore};
pub use types::{
    Amount, AttemptId, Authority, Claim, ClaimBuilder, ClaimField, ClaimId, Delivery, DeliveryProgress,
    DeliveryState, Doubt, FenceReset, FenceState, Finding, FoundBy, InvalidClaim, InvalidField,
    InvalidReceipt, Item, Note, OrderId, Partition, PaymentAttempt, PaymentResult, PaymentStart,
    PaymentStatus, PlayerId, PublisherId, Reason, Receipt, Reversal, Settled, Settlement, UnixMillis,
    Verdict,
};
