//! How a ledger is opened.

use std::sync::Arc;
use std::time::Duration;

use crate::audit::Expectations;
use crate::clock::{Clock, SystemClock};
use crate::ledger::Ledger;
use crate::store::Store;

/// How long the answers of refused attempts are kept, unless said: far beyond any retry.
const REFUSALS_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Whether claims without a fence are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnfencedPolicy {
    Refuse,
    Allow,
}

#[derive(Debug)]
pub(crate) struct LedgerConfig {
    pub(crate) unfenced: UnfencedPolicy,
    pub(crate) refusals_kept: Duration,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) expectations: Expectations,
}

/// Opens a [`Ledger`] in other ways than the usual.
#[derive(Debug)]
#[must_use = "a builder opens nothing until `open`"]
pub struct LedgerBuilder {
    store: Arc<dyn Store>,
    config: LedgerConfig,
}

impl LedgerBuilder {
    pub(crate) fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            config: LedgerConfig {
                unfenced: UnfencedPolicy::Refuse,
                refusals_kept: REFUSALS_KEPT,
                clock: Box::new(SystemClock),
                expectations: Expectations::default(),
            },
        }
    }

    /// Takes claims that show no fence. The unique event key then protects them alone; they are marked in their
    /// receipts, counted by the audit, and never move a fence.
    pub fn allow_unfenced(mut self) -> Self {
        self.config.unfenced = UnfencedPolicy::Allow;
        self
    }

    /// How long the answers of refused attempts are kept; 30 days unless said.
    ///
    /// Too short: a late retry of a refused attempt is decided anew, which is safe. Too long: refusals fill the disk.
    pub fn refusals_kept(mut self, kept: Duration) -> Self {
        self.config.refusals_kept = kept;
        self
    }

    /// The wall clock; the system's unless said.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = Box::new(clock);
        self
    }

    /// The amounts that audits hold the ledger to.
    pub fn expect_amounts(mut self, expectations: Expectations) -> Self {
        self.config.expectations = expectations;
        self
    }

    /// The ledger.
    #[must_use]
    pub fn open(self) -> Ledger {
        Ledger::new(self.store, self.config)
    }
}
