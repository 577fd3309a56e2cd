//! The end of A's lock, as the store's own history has it.

use std::time::Duration;

use lease_core::wire::HistoryEvent;
use lease_core::{Database, LeaseName};
use lease_store::LeaseStore;

use crate::Failure;
use crate::timeline::{Place, Step};

/// A grant that ended by itself.
#[derive(Debug)]
pub(crate) struct Expired {
    owner: String,
    why: String,
    /// How long before the next grant, on the store's clock.
    pub(crate) before_next_grant: Duration,
}

impl Expired {
    /// The first grant of `name` that ended, and the grant after it.
    pub(crate) fn find(store: &LeaseStore, name: &LeaseName) -> Result<Self, Failure> {
        let mut events = store
            .history(Database::ZERO, name.clone(), None)?
            .events
            .into_iter()
            .rev();
        let ended = events.find(|entry| entry.event == HistoryEvent::Ended);
        let granted = events.find(|entry| entry.event == HistoryEvent::Granted);
        let (Some(ended), Some(granted)) = (ended, granted) else {
            return Err("the store remembers no grant after the first".into());
        };
        Ok(Self {
            owner: ended.owner.to_string(),
            why: ended
                .reason
                .map_or_else(|| "ended".to_owned(), |reason| reason.to_string()),
            before_next_grant: Duration::from_millis(granted.at.millis_since(ended.at)),
        })
    }

    pub(crate) fn step(&self) -> Step {
        Step::new(Place::Store, format!("{}: {}", self.owner, self.why)).quiet()
    }
}
