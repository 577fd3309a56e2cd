use std::fmt;

use lease_core::{Fence, FenceToken, LeaseName};

use super::{Amount, AttemptId, ClaimBuilder, Item, PlayerId};
use crate::event_id::RewardEventId;
use crate::types::InvalidField;

/// Under which authority a claim is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Authority {
    /// Under a lease: the ledger compares the token with the highest it has seen for the resource.
    Fenced(Fence),
    /// Under none: only the unique event key protects. Asked for by name, where the ledger was opened to allow it.
    Unfenced,
}

/// One try to grant one reward to one player. A clone is the same try: keep it, and send it again for as long as
/// the answer is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub(super) authority: Authority,
    pub(super) player: PlayerId,
    pub(super) event: RewardEventId,
    pub(super) item: Item,
    pub(super) amount: Amount,
    pub(super) attempt: AttemptId,
}

impl Claim {
    /// A claim made under a lease: `amount` for `player` for `event`, with the token of `fence`.
    pub fn builder(
        fence: Fence,
        player: impl Into<PlayerId>,
        event: RewardEventId,
        amount: impl TryInto<Amount, Error: Into<InvalidField>>,
    ) -> ClaimBuilder {
        ClaimBuilder::new(
            Authority::Fenced(fence),
            player.into(),
            event,
            amount.try_into().map_err(Into::into),
        )
    }

    /// A claim made without a lease, protected by its event key alone. Only a ledger that was opened with
    /// [`allow_unfenced`](crate::LedgerBuilder::allow_unfenced) takes it.
    pub fn unfenced_builder(
        player: impl Into<PlayerId>,
        event: RewardEventId,
        amount: impl TryInto<Amount, Error: Into<InvalidField>>,
    ) -> ClaimBuilder {
        ClaimBuilder::new(
            Authority::Unfenced,
            player.into(),
            event,
            amount.try_into().map_err(Into::into),
        )
    }

    /// Under which authority it is made.
    #[must_use]
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The token shown, if any.
    #[must_use]
    pub const fn token(&self) -> Option<FenceToken> {
        match &self.authority {
            Authority::Fenced(fence) => Some(fence.token),
            Authority::Unfenced => None,
        }
    }

    /// The resource whose fence it passes, if any.
    #[must_use]
    pub const fn resource(&self) -> Option<&LeaseName> {
        match &self.authority {
            Authority::Fenced(fence) => Some(&fence.resource),
            Authority::Unfenced => None,
        }
    }

    /// Who is rewarded.
    #[must_use]
    pub const fn player(&self) -> PlayerId {
        self.player
    }

    /// What for.
    #[must_use]
    pub const fn event(&self) -> &RewardEventId {
        &self.event
    }

    /// With what; may be empty.
    #[must_use]
    pub const fn item(&self) -> &Item {
        &self.item
    }

    /// With how much.
    #[must_use]
    pub const fn amount(&self) -> Amount {
        self.amount
    }

    /// Which try this is.
    #[must_use]
    pub const fn attempt(&self) -> &AttemptId {
        &self.attempt
    }

    /// What an attempt id is bound to.
    pub(crate) fn body(&self) -> ClaimBody {
        ClaimBody {
            resource: self.resource().cloned(),
            player: self.player,
            event: self.event.clone(),
            item: self.item.clone(),
            amount: self.amount,
        }
    }
}

/// What an attempt id is bound to: everything but the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimBody {
    pub(crate) resource: Option<LeaseName>,
    pub(crate) player: PlayerId,
    pub(crate) event: RewardEventId,
    pub(crate) item: Item,
    pub(crate) amount: Amount,
}

impl ClaimBody {
    /// The fields in which `other` differs, in a fixed order.
    pub(crate) fn differences(&self, other: &Self) -> Vec<ClaimField> {
        [
            (self.resource != other.resource, ClaimField::Resource),
            (self.player != other.player, ClaimField::Player),
            (self.event != other.event, ClaimField::Event),
            (self.item != other.item, ClaimField::Item),
            (self.amount != other.amount, ClaimField::Amount),
        ]
        .into_iter()
        .filter_map(|(differs, field)| differs.then_some(field))
        .collect()
    }
}

/// A field in which two claims disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ClaimField {
    /// The resource whose fence it passes.
    Resource,
    /// Who is rewarded.
    Player,
    /// What for.
    Event,
    /// With what.
    Item,
    /// With how much.
    Amount,
}

impl ClaimField {
    /// The field's name in JSON and SQL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Player => "player_id",
            Self::Event => "reward_event_id",
            Self::Item => "item",
            Self::Amount => "amount",
        }
    }
}

impl fmt::Display for ClaimField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
