use super::{Attempt, ClaimOutcome, ConflictSubject, Decision, Effects, Protection, Protections, View};
use crate::types::{Authority, Claim, ClaimField, Receipt};

/// Decides a claim. The order of the checks is the contract: the attempt first, then the fence, then the event key,
/// then the grant.
pub(crate) fn decide(view: &View, claim: &Claim, protections: Protections) -> Decision {
    if let Some(answered) = check_attempt(view, claim) {
        return answered;
    }
    if protections.are_with(Protection::Fencing)
        && let Some(stale) = check_fence(view, claim)
    {
        return stale;
    }
    if protections.are_with(Protection::UniqueEvent)
        && let Some(taken) = check_event(view, claim)
    {
        return taken;
    }
    let receipt = Receipt::issue(claim, view.next.claim_id, view.next.at);
    Decision {
        outcome: ClaimOutcome::Applied(receipt.clone()),
        effects: Effects {
            insert: Some(receipt.clone()),
            ..accepted_authority(view, claim, ClaimOutcome::Replayed(receipt))
        },
    }
}

/// The same attempt with the same body gets its first answer again. With another body it is a conflict, whatever
/// its token. With the same body and another token it is a message that was delivered again: it goes on.
///
/// Nothing is written: the first answer stays, and a retry shows no new authority.
fn check_attempt(view: &View, claim: &Claim) -> Option<Decision> {
    let (body, first) = match &view.attempt {
        Attempt::Unknown => return None,
        Attempt::Bound(body) => (body, None),
        Attempt::Answered(body, first) => (body, Some(first)),
    };
    let fields = body.differences(&claim.body());
    let outcome = if fields.is_empty() {
        first?.clone()
    } else {
        ClaimOutcome::Conflict {
            subject: ConflictSubject::Attempt,
            fields,
        }
    };
    Some(Decision {
        outcome,
        effects: Effects::default(),
    })
}

/// A token below the highest seen is refused. An equal one is not: the same holder writes more than once.
///
/// The refusal binds the attempt, never the event, and does not touch the fence.
fn check_fence(view: &View, claim: &Claim) -> Option<Decision> {
    let presented = claim.token()?;
    let seen = view.seen.filter(|&seen| presented < seen)?;
    let outcome = ClaimOutcome::Stale {
        presented,
        seen,
        applied: view.applied.clone(),
    };
    Some(Decision {
        effects: Effects {
            remember: Some(outcome.clone()),
            ..Effects::default()
        },
        outcome,
    })
}

/// A taken event is replayed to whoever asks for the same thing, and conflicts with anything else. Both come from
/// a holder in good standing, so both raise the fence.
fn check_event(view: &View, claim: &Claim) -> Option<Decision> {
    let first = view.applied.as_ref()?;
    let fields: Vec<_> = [
        (first.item() != claim.item(), ClaimField::Item),
        (first.amount() != claim.amount(), ClaimField::Amount),
    ]
    .into_iter()
    .filter_map(|(differs, field)| differs.then_some(field))
    .collect();
    let outcome = if fields.is_empty() {
        ClaimOutcome::Replayed(first.clone())
    } else {
        ClaimOutcome::Conflict {
            subject: ConflictSubject::Event,
            fields,
        }
    };
    Some(Decision {
        effects: accepted_authority(view, claim, outcome.clone()),
        outcome,
    })
}

/// The effects of an answer to a claim whose authority is good: its token becomes the highest seen.
fn accepted_authority(view: &View, claim: &Claim, remember: ClaimOutcome) -> Effects {
    let raise = match claim.authority() {
        Authority::Fenced(fence) if view.seen.is_none_or(|seen| seen < fence.token) => Some(fence.clone()),
        Authority::Fenced(_) | Authority::Unfenced => None,
    };
    Effects {
        raise,
        insert: None,
        remember: Some(remember),
    }
}
