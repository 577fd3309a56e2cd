//! Any sequence of claims, against a naive model that keeps the whole history and searches it.

use std::collections::BTreeMap;

use lease_core::{Fence, FenceToken, LeaseName};
use proptest::prelude::*;

use super::{Attempt, ClaimOutcome, ConflictSubject, NextClaim, Protections, View, decide};
use crate::event_id::RewardEventId;
use crate::types::{Authority, Claim, ClaimBody, ClaimField, ClaimId, Receipt, UnixMillis};

const AT: UnixMillis = UnixMillis::new(0);

/// The rows that a store keeps, written by the effects.
#[derive(Default)]
struct Rows {
    fences: BTreeMap<LeaseName, FenceToken>,
    claims: BTreeMap<(i64, RewardEventId), Receipt>,
    answers: BTreeMap<(String, u64), (ClaimBody, ClaimOutcome)>,
    last_claim: u64,
}

fn number(token: Option<FenceToken>) -> u64 {
    token.map_or(0, FenceToken::get)
}

impl Rows {
    fn view(&self, claim: &Claim) -> View {
        let id = claim.attempt().as_str().to_owned();
        let exact = self.answers.get(&(id.clone(), number(claim.token())));
        let any = self.answers.range((id.clone(), 0)..=(id, u64::MAX)).next();
        View {
            attempt: match (exact, any) {
                (Some((body, answer)), _) => Attempt::Answered(body.clone(), answer.clone()),
                (None, Some((_, (body, _)))) => Attempt::Bound(body.clone()),
                (None, None) => Attempt::Unknown,
            },
            seen: claim.resource().and_then(|name| self.fences.get(name)).copied(),
            applied: self
                .claims
                .get(&(claim.player().get(), claim.event().clone()))
                .cloned(),
            next: NextClaim {
                claim_id: ClaimId::new(self.last_claim + 1),
                at: AT,
            },
        }
    }

    fn claim(&mut self, claim: &Claim) -> ClaimOutcome {
        let decision = decide(&self.view(claim), claim, Protections::ALL);
        if let Some(fence) = decision.effects.raise {
            let before = self.fences.insert(fence.resource, fence.token);
            assert!(before < Some(fence.token), "a fence only rises");
        }
        if let Some(receipt) = decision.effects.insert {
            self.last_claim = receipt.claim_id().get();
            let key = (receipt.player().get(), receipt.event().clone());
            assert_eq!(self.claims.insert(key, receipt), None, "an event is granted once");
        }
        if let Some(answer) = decision.effects.remember {
            let key = (claim.attempt().as_str().to_owned(), number(claim.token()));
            assert!(
                self.answers.insert(key, (claim.body(), answer)).is_none(),
                "a first answer stays"
            );
        }
        decision.outcome
    }
}

/// Everything that was ever asked and answered; each answer is searched for.
#[derive(Default)]
struct History(Vec<(Claim, ClaimOutcome)>);

impl History {
    fn expect(&self, claim: &Claim) -> ClaimOutcome {
        // Only answers that were remembered bind an attempt: a conflict of the attempt itself is not.
        let same_attempt: Vec<_> = self
            .0
            .iter()
            .filter(|(c, outcome)| c.attempt() == claim.attempt() && !is_attempt_conflict(outcome))
            .collect();
        if let Some((first, _)) = same_attempt.first() {
            let fields = first.body().differences(&claim.body());
            if !fields.is_empty() {
                return ClaimOutcome::Conflict {
                    subject: ConflictSubject::Attempt,
                    fields,
                };
            }
        }
        if let Some((_, answer)) = same_attempt.iter().find(|(c, _)| c.token() == claim.token()) {
            return match answer {
                ClaimOutcome::Applied(receipt) => ClaimOutcome::Replayed(receipt.clone()),
                other @ (ClaimOutcome::Replayed(_)
                | ClaimOutcome::Stale { .. }
                | ClaimOutcome::Conflict { .. }) => other.clone(),
            };
        }
        let granted = self
            .0
            .iter()
            .filter(|(c, o)| {
                matches!(o, ClaimOutcome::Applied(_))
                    && (c.player(), c.event()) == (claim.player(), claim.event())
            })
            .find_map(|(_, outcome)| outcome.receipt());
        if let (Some(presented), Some(seen)) = (claim.token(), self.highest_shown(claim))
            && presented < seen
        {
            return ClaimOutcome::Stale {
                presented,
                seen,
                applied: granted.cloned(),
            };
        }
        let Some(first) = granted else {
            let applied = self
                .0
                .iter()
                .filter(|(_, o)| matches!(o, ClaimOutcome::Applied(_)))
                .count();
            return ClaimOutcome::Applied(Receipt::issue(claim, ClaimId::new(applied as u64 + 1), AT));
        };
        let mut fields = Vec::new();
        if first.item() != claim.item() {
            fields.push(ClaimField::Item);
        }
        if first.amount() != claim.amount() {
            fields.push(ClaimField::Amount);
        }
        if fields.is_empty() {
            ClaimOutcome::Replayed(first.clone())
        } else {
            ClaimOutcome::Conflict {
                subject: ConflictSubject::Event,
                fields,
            }
        }
    }

    /// The highest token that anybody with authority has shown for the claim's resource. A replay of an attempt shows a
    /// token that was shown before, so that it may be counted or not.
    fn highest_shown(&self, claim: &Claim) -> Option<FenceToken> {
        self.0
            .iter()
            .filter(|(c, outcome)| {
                c.resource() == claim.resource()
                    && !matches!(outcome, ClaimOutcome::Stale { .. })
                    && !is_attempt_conflict(outcome)
            })
            .filter_map(|(c, _)| c.token())
            .max()
    }
}

fn is_attempt_conflict(outcome: &ClaimOutcome) -> bool {
    matches!(
        outcome,
        ClaimOutcome::Conflict {
            subject: ConflictSubject::Attempt,
            ..
        }
    )
}

/// Small ranges, so that everything collides with everything.
fn any_claim() -> impl Strategy<Value = Claim> {
    (0..6_u64, 0..2_u8, 1..3_i64, 0..3_u8, 1..3_i64, 0..8_u8, 0..2_u8).prop_map(
        |(token, resource, player, event, amount, attempt, item)| {
            let event = RewardEventId::parse(format!("event-{event}")).unwrap();
            let builder = match FenceToken::new(token) {
                Ok(token) => {
                    let resource = LeaseName::new(format!("lock-{resource}")).unwrap();
                    Claim::builder(Fence::new(resource, token), player, event, amount)
                }
                Err(_) => Claim::unfenced_builder(player, event, amount),
            };
            builder
                .item(["", "gold"][usize::from(item)])
                .attempt(format!("try-{attempt}"))
                .build()
                .unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_sequence_of_claims_is_answered_as_the_naive_model_answers(
        claims in prop::collection::vec(any_claim(), 1..60),
    ) {
        let mut rows = Rows::default();
        let mut history = History::default();
        for claim in claims {
            let expected = history.expect(&claim);
            let outcome = rows.claim(&claim);
            prop_assert_eq!(&outcome, &expected, "{:?}", claim);
            if let (ClaimOutcome::Replayed(receipt), Some(first)) = (
                &outcome,
                rows.claims.get(&(claim.player().get(), claim.event().clone())),
            ) {
                prop_assert_eq!(receipt.as_bytes(), first.as_bytes());
            }
            prop_assert!(
                *claim.authority() != Authority::Unfenced || !matches!(outcome, ClaimOutcome::Stale { .. }),
                "an unfenced claim is never stale"
            );
            history.0.push((claim, outcome));
        }
        let granted = history.0.iter().filter(|(_, o)| matches!(o, ClaimOutcome::Applied(_))).count();
        prop_assert_eq!(granted, rows.claims.len());
    }
}
