//! A row of an export, one line each. A receipt is written as its own bytes, so that what comes back is what was there.

use serde_json::{Value, json};

use super::fields::{BadField, Fields, read_hex};
use super::shapes::{fence_state, hex, payment_attempt, progress, receipt, reversal};
use crate::event_id::RewardEventId;
use crate::store::{Archived, ArchivedAnswer, ArchivedAttempt, ArchivedClaim, Shown};
use crate::types::{
    ClaimBody, ClaimField, DeliveryProgress, DeliveryState, Doubt, FenceReset, FenceState, Finding, FoundBy,
    Note, PaymentAttempt, PaymentStatus, PublisherId, Receipt, Reversal, UnixMillis,
};

/// The row as one line of JSON, without its end.
pub(crate) fn write_archived(row: &Archived) -> String {
    match row {
        Archived::Claim(claim) => json!({
            "row": "claim",
            "receipt_hex": hex(claim.receipt.as_bytes()),
            "receipt": receipt(&claim.receipt),
            "delivery": progress(&claim.progress),
            "reversal": claim.reversal.as_ref().map(|(reversed, _)| reversal(reversed)),
            "reversal_delivery": claim.reversal.as_ref().map(|(_, told)| progress(told)),
        }),
        Archived::Attempt(attempt) => attempt_line(attempt),
        Archived::Payment(attempt) => json!({ "row": "payment", "payment": payment_attempt(attempt) }),
        Archived::Fence(resource, state) => json!({ "row": "fence", "fence": fence_state(resource, state) }),
    }
    .to_string()
}

fn attempt_line(attempt: &ArchivedAttempt) -> Value {
    let body = &attempt.body;
    let answer = match &attempt.answer {
        ArchivedAnswer::Accepted => json!({ "kind": "accepted" }),
        ArchivedAnswer::Stale { seen, receipt } => json!({
            "kind": "stale",
            "highest_fence_token": seen.get().to_string(),
            "applied": *receipt == Shown::Yes,
        }),
        ArchivedAnswer::EventConflict { fields } => json!({
            "kind": "conflict",
            "fields": fields.iter().map(|field| field.name()).collect::<Vec<_>>(),
        }),
    };
    json!({
        "row": "attempt",
        "attempt_id": attempt.attempt.as_str(),
        "fence_token": attempt.token.map(|token| token.get().to_string()),
        "at_ms": attempt.at.get().to_string(),
        "resource_hex": body.resource.as_ref().map(|name| hex(name.as_bytes())),
        "player_id": body.player.to_string(),
        "reward_event_id": body.event.as_str(),
        "item": body.item.as_str(),
        "amount": body.amount.to_string(),
        "answer": answer,
    })
}

/// The row of a line.
pub(crate) fn read_archived(line: &[u8]) -> Result<Archived, BadField> {
    let mut fields = Fields::parse(line)?;
    let row = match fields.text("row")?.as_str() {
        "claim" => Archived::Claim(claim(&mut fields)?),
        "attempt" => Archived::Attempt(attempt(&mut fields)?),
        "payment" => {
            let payment = fields.object("payment")?;
            let payment = payment.ok_or_else(|| BadField::new("payment", "this field is missing"))?;
            Archived::Payment(read_payment(payment)?)
        }
        "fence" => {
            let fence = fields.object("fence")?;
            let mut fence = fence.ok_or_else(|| BadField::new("fence", "this field is missing"))?;
            let resource = fence
                .maybe_resource()?
                .ok_or_else(|| BadField::new("resource", "this field is missing"))?;
            Archived::Fence(resource, read_fence_state(fence)?)
        }
        _ => return Err(BadField::new("row", "claim, attempt, payment or fence is needed")),
    };
    fields.end()?;
    Ok(row)
}

fn claim(fields: &mut Fields) -> Result<ArchivedClaim, BadField> {
    let bytes = read_hex("receipt_hex", &fields.text("receipt_hex")?)?;
    let receipt =
        Receipt::from_bytes(bytes).map_err(|error| BadField::new("receipt_hex", error.to_string()))?;
    // For people; the bytes say it all.
    let _for_people = fields.take("receipt");
    let progress = read_progress(fields, "delivery")?;
    let reversal = match fields.object("reversal")? {
        Some(reversed) => Some((
            read_reversal(reversed, &receipt)?,
            read_progress(fields, "reversal_delivery")?,
        )),
        None => {
            let _null = fields.take("reversal_delivery");
            None
        }
    };
    let _null = fields.take("reversal_delivery");
    Ok(ArchivedClaim {
        receipt,
        progress,
        reversal,
    })
}

fn read_reversal(mut fields: Fields, receipt: &Receipt) -> Result<Reversal, BadField> {
    Ok(Reversal {
        id: fields.claim_id("reversal_id")?,
        claim_id: receipt.claim_id(),
        player: receipt.player(),
        event: receipt.event().clone(),
        recorded_at: fields.millis("recorded_at_ms")?,
        reason: fields.reason()?,
    })
}

fn read_progress(fields: &mut Fields, name: &str) -> Result<DeliveryProgress, BadField> {
    let fields = fields.object(name)?;
    let mut fields = fields.ok_or_else(|| BadField::new(name, "this field is missing"))?;
    let state = match fields.text("state")?.as_str() {
        "pending" => DeliveryState::Pending {
            due: fields.millis("due_ms")?,
        },
        "leased" => DeliveryState::Leased {
            owner: PublisherId::new(fields.text("owner")?),
            since: fields.millis("since_ms")?,
            until: fields.millis("until_ms")?,
        },
        "delivered" => DeliveryState::Delivered {
            at: fields.millis("at_ms")?,
        },
        "dead" => DeliveryState::Dead {
            at: fields.millis("at_ms")?,
        },
        "discarded" => DeliveryState::Discarded {
            at: fields.millis("at_ms")?,
        },
        _ => return Err(BadField::new("state", "it is no state of a delivery").within(name)),
    };
    let tries = fields.take("tries").and_then(|tries| tries.as_u64());
    let tries = tries.and_then(|tries| u32::try_from(tries).ok());
    Ok(DeliveryProgress {
        state,
        epoch: fields.unsigned("epoch")?,
        tries: tries
            .ok_or_else(|| BadField::new("tries", "a whole number of 32 bits is needed").within(name))?,
        first_sent: fields.maybe_unsigned("first_sent_ms")?.map(UnixMillis::new),
        doubt: match fields.text("outcome")?.as_str() {
            "not-done" => Doubt::NotDone,
            "unknown" => Doubt::Unknown,
            _ => return Err(BadField::new("outcome", "not-done or unknown is needed").within(name)),
        },
        note: Note::new(fields.maybe_text("note")?.unwrap_or_default()),
    })
}

fn attempt(fields: &mut Fields) -> Result<ArchivedAttempt, BadField> {
    let body = ClaimBody {
        resource: fields.maybe_resource()?,
        player: fields.player()?,
        event: RewardEventId::stored(&fields.text("reward_event_id")?)
            .map_err(|error| BadField::new("reward_event_id", error.to_string()))?,
        item: fields.item("item")?,
        amount: fields.amount()?,
    };
    let answer = fields.object("answer")?;
    let answer = answer.ok_or_else(|| BadField::new("answer", "this field is missing"))?;
    Ok(ArchivedAttempt {
        attempt: fields.attempt()?,
        token: fields.maybe_token("fence_token")?,
        at: fields.millis("at_ms")?,
        answer: read_answer(answer)?,
        body,
    })
}

fn read_answer(mut fields: Fields) -> Result<ArchivedAnswer, BadField> {
    match fields.text("kind")?.as_str() {
        "accepted" => Ok(ArchivedAnswer::Accepted),
        "stale" => Ok(ArchivedAnswer::Stale {
            seen: fields.token("highest_fence_token")?,
            receipt: match fields.is_set("applied")? {
                true => Shown::Yes,
                false => Shown::No,
            },
        }),
        "conflict" => {
            let names = fields.list("fields")?;
            let all = [
                ClaimField::Resource,
                ClaimField::Player,
                ClaimField::Event,
                ClaimField::Item,
                ClaimField::Amount,
            ];
            let fields = names
                .iter()
                .map(|name| {
                    let found = all.into_iter().find(|field| name == field.name());
                    found.ok_or_else(|| BadField::new("fields", "it is no field of a claim"))
                })
                .collect::<Result<_, _>>()?;
            Ok(ArchivedAnswer::EventConflict { fields })
        }
        _ => Err(BadField::new("kind", "accepted, stale or conflict is needed")),
    }
}

fn read_payment(mut fields: Fields) -> Result<PaymentAttempt, BadField> {
    let status = fields.text("status")?;
    let finding = fields.object("finding")?.map(read_finding).transpose()?;
    let found = || finding.ok_or_else(|| BadField::new("finding", "this field is missing"));
    Ok(PaymentAttempt {
        order: fields.order()?,
        attempt: fields.attempt()?,
        fence: fields.fence()?,
        currency: fields.item("currency")?,
        amount: fields.amount()?,
        started_at: fields.millis("started_at_ms")?,
        status: match status.as_str() {
            "ready" => PaymentStatus::Ready,
            "unknown" => PaymentStatus::Unknown(found()?),
            "approved" => PaymentStatus::Approved(found()?),
            "failed" => PaymentStatus::Failed(found()?),
            _ => return Err(BadField::new("status", "it is no status of a payment")),
        },
    })
}

fn read_finding(mut fields: Fields) -> Result<Finding, BadField> {
    let by = match fields.maybe_token("fence_token")? {
        Some(token) => FoundBy::Worker(token),
        None => FoundBy::Person(fields.reason()?),
    };
    let note = Note::new(fields.maybe_text("note")?.unwrap_or_default());
    Ok(Finding::new(fields.millis("at_ms")?, by, note))
}

fn read_fence_state(mut fields: Fields) -> Result<FenceState, BadField> {
    let last_reset = match fields.object("last_reset")? {
        Some(mut reset) => Some(FenceReset::new(
            reset.maybe_token("from_fence_token")?,
            reset.millis("at_ms")?,
            reset.reason()?.into_text(),
        )),
        None => None,
    };
    Ok(FenceState::new(
        fields.maybe_token("highest_fence_token")?,
        last_reset,
    ))
}
