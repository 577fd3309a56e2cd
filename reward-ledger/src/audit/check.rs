//! What must hold of each row and what it is joined with.

use super::{Against, AuditReport, Violation};
use crate::limits::VIOLATIONS_KEPT_MAX;
use crate::store::{
    AttemptEntry, AttemptStanding, ClaimEntry, Entry, LedgerEntry, LedgerLine, Listing, OutboxEntry,
    PaymentEntry,
};
use crate::types::{Authority, Delivery, DeliveryState, PlayerId};

/// Judges rows one at a time and counts.
pub(super) struct Checker<'a, F, P> {
    against: Against<'a>,
    found: F,
    progress: P,
    rows: u64,
    /// Keys of the outside that an outbox row accounts for.
    accounted: u64,
    report: AuditReport,
}

impl<'a, F: FnMut(&Violation), P: FnMut(u64)> Checker<'a, F, P> {
    pub(super) fn new(against: Against<'a>, found: F, progress: P) -> Self {
        Self {
            against,
            found,
            progress,
            rows: 0,
            accounted: 0,
            report: AuditReport::default(),
        }
    }

    /// C6: what the outside did and no outbox row accounts for was never granted.
    pub(super) fn finish(mut self) -> AuditReport {
        let done = self.against.outside.map_or(0, |outside| outside.keys());
        if done > self.accounted {
            self.violated(Violation::EffectsWithoutClaim {
                effects: done - self.accounted,
            });
        }
        self.report
    }

    pub(super) fn entry(&mut self, entry: &Entry) {
        self.rows += 1;
        (self.progress)(self.rows);
        match entry {
            Entry::Claim(entry) => self.claim(entry),
            Entry::Ledger(entry) => self.ledger(entry),
            Entry::Outbox(entry) => self.outbox(entry),
            Entry::Attempt(entry) => self.attempt(entry),
            Entry::Payment(entry) => self.payment(entry),
            Entry::Unreadable { table, problem } => self.violated(Violation::UnreadableRow {
                problem: format!("{table:?}: {problem}"),
            }),
        }
    }

    /// One player's sums.
    pub(super) fn player(&mut self, player: PlayerId, granted: i128, held: i128) {
        self.report.players += 1;
        self.report.granted = self.report.granted.saturating_add(held);
        if granted != held {
            self.violated(Violation::SumsDiffer {
                player,
                granted,
                held,
            });
        }
    }

    fn claim(&mut self, entry: &ClaimEntry) {
        let receipt = &entry.receipt;
        let claim_id = receipt.claim_id();
        self.report.claims += 1;
        if entry.player != receipt.player() || entry.event != *receipt.event() {
            self.violated(Violation::ClaimMisplaced {
                claim_id,
                player: entry.player,
                event: entry.event.clone(),
            });
        }
        let line = LedgerLine {
            event: receipt.event().as_str().to_owned(),
            item: receipt.item().as_str().to_owned(),
            amount: receipt.amount().get(),
        };
        match &entry.ledger {
            None => self.violated(Violation::LedgerRowMissing { claim_id }),
            Some(stored) if *stored != line => self.violated(Violation::LedgerRowDiffers { claim_id }),
            Some(_) => {}
        }
        match &entry.outbox {
            None => self.violated(Violation::OutboxRowMissing { claim_id }),
            Some((player, event)) if *player != receipt.player() || *event != line.event => {
                self.violated(Violation::OutboxRowDiffers { claim_id });
            }
            Some(_) => {}
        }
        self.authority(entry);
        self.amount(entry);
        self.reversal(entry);
    }

    /// A reversal has its own ledger row, which takes back what was granted, and its own outbox row.
    fn reversal(&mut self, entry: &ClaimEntry) {
        let Some(reversed) = &entry.reversal else {
            return;
        };
        let receipt = &entry.receipt;
        let (claim_id, reversal) = (receipt.claim_id(), reversed.reversal.id);
        self.report.reversals += 1;
        let is_paired = reversed
            .ledger
            .as_ref()
            .is_some_and(|line| line.amount == receipt.amount().get().saturating_neg());
        if !is_paired {
            self.violated(Violation::ReversalUnpaired { claim_id, reversal });
        }
        if reversed.outbox != Some(claim_id) {
            self.violated(Violation::OutboxRowMissing { claim_id: reversal });
        }
    }

    fn authority(&mut self, entry: &ClaimEntry) {
        let fence = match entry.receipt.authority() {
            Authority::Unfenced => {
                self.report.unfenced += 1;
                return;
            }
            Authority::Fenced(fence) => fence,
        };
        let state = entry.fence.as_ref();
        let holds = state.is_some_and(|state| {
            state.last_reset.is_some() || state.seen.is_some_and(|seen| seen >= fence.token)
        });
        if !holds {
            self.violated(Violation::FenceFell {
                claim_id: entry.receipt.claim_id(),
                resource: fence.resource.clone(),
                token: fence.token,
            });
        }
    }

    fn amount(&mut self, entry: &ClaimEntry) {
        let receipt = &entry.receipt;
        for expectations in self.against.expectations {
            if let Some(expected) = expectations.of(receipt)
                && expected != receipt.amount()
            {
                self.violated(Violation::UnexpectedAmount {
                    claim_id: receipt.claim_id(),
                    event: receipt.event().clone(),
                    granted: receipt.amount(),
                    expected,
                });
            }
        }
    }

    fn ledger(&mut self, entry: &LedgerEntry) {
        match &entry.claim {
            None => self.violated(Violation::LedgerRowWithoutClaim {
                player: entry.player,
                claim_id: entry.claim_id,
            }),
            // A line that takes something back is right where the reversal that it is of takes back as much.
            Some(claim)
                if entry.reversed_by == Some(entry.claim_id)
                    && entry.line.amount == claim.amount().get().saturating_neg() => {}
            Some(claim) if claim.claim_id() != entry.claim_id => self.violated(Violation::GrantedTwice {
                player: entry.player,
                event: entry.line.event.clone(),
                claim_id: entry.claim_id,
                other: claim.claim_id(),
            }),
            Some(_) => {}
        }
    }

    fn outbox(&mut self, entry: &OutboxEntry) {
        self.report.outbox_rows += 1;
        if entry.listing == Listing::Wrong {
            self.violated(Violation::OutboxRowUnlisted { id: entry.id });
        }
        let Some(delivery) = &entry.delivery else {
            self.violated(Violation::OutboxRowWithoutClaim {
                claim_id: entry.about,
                player: entry.player,
                event: entry.event.clone(),
            });
            return;
        };
        self.effects(delivery);
        match delivery.progress.state() {
            DeliveryState::Pending { .. } | DeliveryState::Leased { .. } => self.report.outbox_open += 1,
            DeliveryState::Delivered { .. } => self.report.delivered += 1,
            DeliveryState::Dead { .. } => self.report.outbox_dead += 1,
            DeliveryState::Discarded { .. } => self.report.discarded += 1,
        }
    }

    /// C5: what is delivered was done once, and nothing more than once. A row of unknown outcome may have been done.
    fn effects(&mut self, delivery: &Delivery) {
        let Some(outside) = self.against.outside else {
            return;
        };
        let key = delivery.idempotency_key();
        let times = outside.times(&key);
        self.accounted += u64::from(times > 0);
        let is_delivered = matches!(delivery.progress.state(), DeliveryState::Delivered { .. });
        if times > 1 || (is_delivered && times == 0) {
            self.violated(Violation::EffectsDiffer {
                id: delivery.id,
                key,
                state: delivery.progress.state().name(),
                times,
            });
        }
    }

    fn payment(&mut self, entry: &PaymentEntry) {
        self.report.payments += 1;
        if entry.attempt.is_active() && entry.active > 1 {
            self.violated(Violation::PaidTwice {
                order: entry.attempt.order.clone(),
                attempt: entry.attempt.attempt.clone(),
                active: entry.active,
            });
        }
    }

    fn attempt(&mut self, entry: &AttemptEntry) {
        self.report.attempts += 1;
        let agrees = entry
            .claim
            .as_ref()
            .is_some_and(|claim| *claim.item() == entry.body.item && claim.amount() == entry.body.amount);
        if entry.standing == AttemptStanding::Accepted && !agrees {
            self.violated(Violation::AttemptWithoutClaim {
                attempt: entry.attempt.clone(),
                player: entry.body.player,
                event: entry.body.event.clone(),
            });
        }
    }

    fn violated(&mut self, violation: Violation) {
        (self.found)(&violation);
        self.report.violations_found += 1;
        if self.report.violations.len() < VIOLATIONS_KEPT_MAX {
            self.report.violations.push(violation);
        }
    }
}
