use std::collections::BTreeMap;

use crate::event_id::RewardEventId;
use crate::limits::EXPECTATIONS_MAX;
use crate::types::{Amount, InvalidField, Receipt, check_length};

/// Amounts that the ledger must show: for each event of a kind, or for one event.
///
/// An event of its own comes before its kind. Events that nothing is said of are not judged.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    kinds: BTreeMap<String, Amount>,
    events: BTreeMap<RewardEventId, Amount>,
}

impl Expectations {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Each event of this kind grants this amount. The kind is that of a typed event id.
    ///
    /// # Errors
    /// [`InvalidField::Length`] past [`EXPECTATIONS_MAX`] of them.
    pub fn kind(mut self, kind: impl Into<String>, amount: Amount) -> Result<Self, InvalidField> {
        self.kinds.insert(kind.into(), amount);
        self.checked()
    }

    /// This event grants this amount.
    ///
    /// # Errors
    /// [`InvalidField::Length`] past [`EXPECTATIONS_MAX`] of them.
    pub fn event(mut self, event: RewardEventId, amount: Amount) -> Result<Self, InvalidField> {
        self.events.insert(event, amount);
        self.checked()
    }

    fn checked(self) -> Result<Self, InvalidField> {
        check_length(
            "expectations",
            0,
            EXPECTATIONS_MAX,
            self.kinds.len() + self.events.len(),
        )?;
        Ok(self)
    }

    /// The amount that this grant should have, if anything is said of it.
    pub(super) fn of(&self, receipt: &Receipt) -> Option<Amount> {
        let by_kind = || self.kinds.get(receipt.event().parts()?.kind?).copied();
        self.events.get(receipt.event()).copied().or_else(by_kind)
    }
}
