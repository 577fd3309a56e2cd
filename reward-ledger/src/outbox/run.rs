//! The rows of one player, delivered one after another within their lease.

use std::sync::Arc;

use super::decide::{Answer, Moment, Plan, Status, judge_answer, judge_status, plan};
use super::policy::PublishPolicy;
use super::target::Target;
use crate::ledger::Ledger;
use crate::types::{Delivery, DeliveryState, Doubt, Settlement, UnixMillis, Verdict};

/// What delivering needs.
#[derive(Debug, Clone)]
pub(super) struct Courier {
    pub(super) ledger: Ledger,
    pub(super) target: Arc<dyn Target>,
    pub(super) policy: PublishPolicy,
}

impl Courier {
    /// Delivers a player's rows in their order. Behind a row that is to be tried again nothing is sent; a dead one holds up
    /// nobody.
    pub(super) async fn deliver_all(self, deliveries: Vec<Delivery>) -> Vec<Settlement> {
        let mut settlements = Vec::with_capacity(deliveries.len());
        let mut held_up = false;
        for delivery in &deliveries {
            let verdict = if held_up || self.is_too_late(delivery) {
                Verdict::Released
            } else {
                self.deliver(delivery).await
            };
            held_up = matches!(verdict, Verdict::Again { .. } | Verdict::Released);
            settlements.push(Settlement::new(delivery, verdict));
        }
        settlements
    }

    /// Whether a request might still be on its way when others may take the row.
    fn is_too_late(&self, delivery: &Delivery) -> bool {
        match delivery.progress.state() {
            DeliveryState::Leased { until, .. } => self.now().after(self.policy.request_timeout) > *until,
            DeliveryState::Pending { .. }
            | DeliveryState::Delivered { .. }
            | DeliveryState::Dead { .. }
            | DeliveryState::Discarded { .. } => true,
        }
    }

    async fn deliver(&self, delivery: &Delivery) -> Verdict {
        let row = &delivery.progress;
        let mut doubt = row.doubt();
        match plan(row, self.now(), &self.policy) {
            Plan::Send => {}
            Plan::GiveUp(note) => return Verdict::Dead { doubt, note },
            Plan::AskOnly => {
                let status = self.ask(delivery).await;
                return judge_status(row, status, self.moment(), &self.policy);
            }
            Plan::AskThenSend => match self.ask(delivery).await {
                Status::Done => return Verdict::Delivered,
                Status::NotDone => doubt = Doubt::NotDone,
                Status::Unknown(_) => {}
            },
        }
        let answer = self.send(delivery).await;
        judge_answer(row, doubt, answer, self.moment(), &self.policy)
    }

    async fn send(&self, delivery: &Delivery) -> Answer {
        let sent = self.target.deliver(delivery);
        match tokio::time::timeout(self.policy.request_timeout, sent).await {
            Ok(answer) => answer,
            Err(_) => Answer::Unknown("no answer in time".into()),
        }
    }

    async fn ask(&self, delivery: &Delivery) -> Status {
        let asked = self.target.status(delivery);
        match tokio::time::timeout(self.policy.request_timeout, asked).await {
            Ok(status) => status,
            Err(_) => Status::Unknown("no answer in time".into()),
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            random: random(),
        }
    }

    fn now(&self) -> UnixMillis {
        self.ledger.now()
    }
}

/// For jitter; without random numbers there is none, which harms nothing but load.
pub(super) fn random() -> u64 {
    getrandom::u64().unwrap_or(0)
}
