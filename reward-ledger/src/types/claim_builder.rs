use super::{Amount, AttemptId, Authority, Claim, InvalidClaim, InvalidField, Item, PlayerId, check_length};
use crate::event_id::RewardEventId;
use crate::limits::RESOURCE_BYTES_MAX;

/// Builds a [`Claim`]; every value is checked by [`ClaimBuilder::build`].
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ClaimBuilder {
    authority: Authority,
    player: PlayerId,
    event: RewardEventId,
    amount: Result<Amount, InvalidField>,
    item: Result<Item, InvalidField>,
    attempt: Option<Result<AttemptId, InvalidField>>,
}

impl ClaimBuilder {
    pub(super) fn new(
        authority: Authority,
        player: PlayerId,
        event: RewardEventId,
        amount: Result<Amount, InvalidField>,
    ) -> Self {
        Self {
            authority,
            player,
            event,
            amount,
            item: Ok(Item::none()),
            attempt: None,
        }
    }

    /// What is granted, such as `gold`; empty unless said.
    pub fn item(mut self, item: impl AsRef<str>) -> Self {
        self.item = Item::new(item);
        self
    }

    /// Which try this is, such as the id of the message that asked for it.
    ///
    /// Without it `build` draws a random one. Such a claim, and its clones, still get their first answer again for as
    /// long as the value is kept. What is lost with the value is only the right of an *accepted* try to be answered
    /// after a newer token was seen: a claim that is built anew for an event that was already granted is answered
    /// `Replayed` while its token is good, and `Stale` with the receipt shown when it is not. So name the attempt where a
    /// message may be delivered again to a process that has forgotten the first delivery.
    pub fn attempt(mut self, attempt: impl AsRef<str>) -> Self {
        self.attempt = Some(AttemptId::new(attempt));
        self
    }

    /// The claim.
    ///
    /// # Errors
    /// [`InvalidClaim`] where a value breaks its rule, or a typed event id names another player. Nothing was applied.
    pub fn build(self) -> Result<Claim, InvalidClaim> {
        let amount = self.amount?;
        let item = self.item?;
        if let Authority::Fenced(fence) = &self.authority {
            check_length("resource", 1, RESOURCE_BYTES_MAX, fence.resource.as_bytes().len())?;
        }
        if let Some(named) = self.event.parts().map(|parts| parts.player)
            && named != self.player
        {
            return Err(InvalidClaim::OtherPlayer {
                named,
                claimed: self.player,
            });
        }
        let attempt = match self.attempt {
            Some(attempt) => attempt?,
            None => AttemptId::fresh()?,
        };
        Ok(Claim {
            authority: self.authority,
            player: self.player,
            event: self.event,
            item,
            amount,
            attempt,
        })
    }
}
