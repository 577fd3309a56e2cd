//! The bytes of a receipt, version 1.
//!
//! They are kept and handed out for ever, so they follow a layout of their own that no library can change:
//! version (1 byte); claim id, time in milliseconds, player, amount, token (8 bytes each, big-endian, token 0 for an
//! unfenced claim); then resource, event, item, attempt, each with its length in 2 bytes before it.

use lease_core::{Fence, FenceToken, LeaseName};
use thiserror::Error;

use super::{Amount, AttemptId, Authority, ClaimId, Grant, InvalidField, Item, PlayerId, UnixMillis};
use crate::event_id::RewardEventId;
use crate::limits::RECORD_BYTES_MAX;

const VERSION: u8 = 1;
/// What stands in the token's place where there is none: no issuer gives out token 0.
const NO_TOKEN: u64 = 0;

/// Bytes that are not those of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidReceipt {
    /// A version that this code does not know.
    #[error("receipt version {found} is unknown")]
    Version {
        /// Version found.
        found: u8,
    },
    /// The bytes end too early.
    #[error("the receipt is cut short")]
    Short,
    /// Bytes follow after the end.
    #[error("{bytes} bytes follow after the receipt")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// More bytes than any receipt has.
    #[error("a receipt has at most {max} bytes, this one has {len}")]
    Long {
        /// Most bytes allowed.
        max: usize,
        /// Bytes found.
        len: usize,
    },
    /// A text is not UTF-8.
    #[error("the receipt's {what} is not UTF-8")]
    Text {
        /// Which one.
        what: &'static str,
    },
    /// A value breaks the rule of its type.
    #[error("a value of the receipt breaks its rule")]
    Field(#[from] InvalidField),
    /// The token or the resource breaks its rule, or only one of them is there.
    #[error("the receipt's fence is not valid")]
    Fence,
}

pub(super) fn encode(grant: &Grant) -> Vec<u8> {
    let (resource, token): (&[u8], u64) = match &grant.authority {
        Authority::Fenced(fence) => (fence.resource.as_bytes(), fence.token.get()),
        Authority::Unfenced => (&[], NO_TOKEN),
    };
    let mut out = Vec::with_capacity(256);
    out.push(VERSION);
    out.extend_from_slice(&grant.claim_id.get().to_be_bytes());
    out.extend_from_slice(&grant.recorded_at.get().to_be_bytes());
    out.extend_from_slice(&grant.player.get().to_be_bytes());
    out.extend_from_slice(&grant.amount.get().to_be_bytes());
    out.extend_from_slice(&token.to_be_bytes());
    for text in [
        resource,
        grant.event.as_str().as_bytes(),
        grant.item.as_str().as_bytes(),
        grant.attempt.as_str().as_bytes(),
    ] {
        let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
        debug_assert_eq!(
            usize::from(len),
            text.len(),
            "the limits keep every field below 64 KiB"
        );
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(text);
    }
    out
}

pub(super) fn decode(bytes: &[u8]) -> Result<Grant, InvalidReceipt> {
    if bytes.len() > RECORD_BYTES_MAX {
        return Err(InvalidReceipt::Long {
            max: RECORD_BYTES_MAX,
            len: bytes.len(),
        });
    }
    let mut rest = Rest(bytes);
    let [version] = rest.array()?;
    if version != VERSION {
        return Err(InvalidReceipt::Version { found: version });
    }
    let claim_id = ClaimId::new(u64::from_be_bytes(rest.array()?));
    let recorded_at = UnixMillis::new(u64::from_be_bytes(rest.array()?));
    let player = PlayerId::new(i64::from_be_bytes(rest.array()?));
    let amount = Amount::new(i64::from_be_bytes(rest.array()?))?;
    let token = u64::from_be_bytes(rest.array()?);
    let authority = authority(rest.counted()?, token)?;
    let event = RewardEventId::stored(rest.text("event")?)?;
    let item = Item::new(rest.text("item")?)?;
    let attempt = AttemptId::new(rest.text("attempt")?)?;
    match rest.0.len() {
        0 => Ok(Grant {
            claim_id,
            recorded_at,
            authority,
            player,
            event,
            item,
            amount,
            attempt,
        }),
        bytes => Err(InvalidReceipt::Trailing { bytes }),
    }
}

fn authority(resource: &[u8], token: u64) -> Result<Authority, InvalidReceipt> {
    if token == NO_TOKEN && resource.is_empty() {
        return Ok(Authority::Unfenced);
    }
    let token = FenceToken::new(token).map_err(|_| InvalidReceipt::Fence)?;
    let resource = LeaseName::new(resource).map_err(|_| InvalidReceipt::Fence)?;
    Ok(Authority::Fenced(Fence::new(resource, token)))
}

/// What is not yet read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidReceipt> {
        let (head, tail) = self.0.split_first_chunk().ok_or(InvalidReceipt::Short)?;
        self.0 = tail;
        Ok(*head)
    }

    fn counted(&mut self) -> Result<&'a [u8], InvalidReceipt> {
        let len = u16::from_be_bytes(self.array()?);
        let (head, tail) = self
            .0
            .split_at_checked(usize::from(len))
            .ok_or(InvalidReceipt::Short)?;
        self.0 = tail;
        Ok(head)
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, InvalidReceipt> {
        std::str::from_utf8(self.counted()?).map_err(|_| InvalidReceipt::Text { what })
    }
}
