//! What is written.

use std::fmt::Write as _;

use lease_core::{FenceToken, LeaseName};
use serde_json::{Map, Value, json};

use crate::audit::AuditReport;
use crate::core::{ClaimOutcome, ConflictSubject};
use crate::store::ClaimRecord;
use crate::types::{
    Authority, Delivery, DeliveryProgress, DeliveryState, FenceState, FoundBy, PaymentAttempt, Receipt,
    Reversal, UnixMillis,
};

/// A receipt: the same text for the same receipt, for ever.
pub(crate) fn receipt(receipt: &Receipt) -> Value {
    let mut fields = Map::new();
    let mut put = |field: &str, text: String| fields.insert(field.to_owned(), Value::String(text));
    put("claim_id", receipt.claim_id().to_string());
    put("player_id", receipt.player().to_string());
    put("reward_event_id", receipt.event().as_str().to_owned());
    put("item", receipt.item().as_str().to_owned());
    put("amount", receipt.amount().to_string());
    put("attempt_id", receipt.attempt().as_str().to_owned());
    put("recorded_at_ms", receipt.recorded_at().get().to_string());
    match receipt.authority() {
        Authority::Fenced(fence) => {
            put_resource(&mut fields, &fence.resource);
            fields.insert("fence_token".to_owned(), token(Some(fence.token)));
        }
        Authority::Unfenced => {
            fields.insert("unfenced".to_owned(), Value::Bool(true));
        }
    }
    Value::Object(fields)
}

fn put_resource(fields: &mut Map<String, Value>, resource: &LeaseName) {
    let (field, text) = match std::str::from_utf8(resource.as_bytes()) {
        Ok(text) => ("resource", text.to_owned()),
        Err(_) => ("resource_hex", hex(resource.as_bytes())),
    };
    fields.insert(field.to_owned(), Value::String(text));
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn token(token: Option<FenceToken>) -> Value {
    token.map_or(Value::Null, |token| Value::String(token.get().to_string()))
}

fn millis(at: UnixMillis) -> Value {
    Value::String(at.get().to_string())
}

/// An outcome that is no grant: what to switch on, and what there is to know.
pub(crate) fn refused_outcome(outcome: &ClaimOutcome) -> Value {
    match outcome {
        ClaimOutcome::Applied(granted) | ClaimOutcome::Replayed(granted) => receipt(granted),
        ClaimOutcome::Stale {
            presented,
            seen,
            applied,
        } => json!({
            "fence_token": token(Some(*presented)),
            "highest_fence_token": token(Some(*seen)),
            "applied": applied.as_ref().map(receipt),
        }),
        ClaimOutcome::Conflict { subject, fields } => json!({
            "subject": match subject {
                ConflictSubject::Attempt => "attempt_id",
                ConflictSubject::Event => "reward_event_id",
            },
            "fields": fields.iter().map(|field| field.name()).collect::<Vec<_>>(),
        }),
    }
}

/// A claim with what became of it.
pub(crate) fn claim_record(record: &ClaimRecord) -> Value {
    json!({
        "receipt": receipt(&record.receipt),
        "delivery": progress(&record.progress),
        "reversal": record.reversal.as_ref().map(reversal),
    })
}

pub(crate) fn reversal(reversal: &Reversal) -> Value {
    json!({
        "reversal_id": reversal.id.to_string(),
        "claim_id": reversal.claim_id.to_string(),
        "player_id": reversal.player.to_string(),
        "reward_event_id": reversal.event.as_str(),
        "recorded_at_ms": millis(reversal.recorded_at),
        "reason": reversal.reason.as_str(),
    })
}

/// An outbox row with what it is about.
pub(crate) fn delivery(delivery: &Delivery) -> Value {
    json!({
        "delivery_id": delivery.id.to_string(),
        "idempotency_key": delivery.idempotency_key(),
        "receipt": receipt(&delivery.receipt),
        "reversal": delivery.reversal.as_ref().map(reversal),
        "delivery": progress(&delivery.progress),
    })
}

/// How far a delivery has come.
pub(super) fn progress(progress: &DeliveryProgress) -> Value {
    let mut fields = Map::new();
    fields.insert("state".to_owned(), progress.state().name().into());
    match progress.state() {
        DeliveryState::Pending { due } => {
            fields.insert("due_ms".to_owned(), millis(*due));
        }
        DeliveryState::Leased { owner, since, until } => {
            fields.insert("owner".to_owned(), owner.as_str().into());
            fields.insert("since_ms".to_owned(), millis(*since));
            fields.insert("until_ms".to_owned(), millis(*until));
        }
        DeliveryState::Delivered { at } | DeliveryState::Dead { at } | DeliveryState::Discarded { at } => {
            fields.insert("at_ms".to_owned(), millis(*at));
        }
    }
    fields.insert("epoch".to_owned(), progress.epoch().to_string().into());
    fields.insert("tries".to_owned(), progress.tries().into());
    let first = progress.first_sent().map_or(Value::Null, millis);
    fields.insert("first_sent_ms".to_owned(), first);
    fields.insert("outcome".to_owned(), progress.doubt().name().into());
    fields.insert("note".to_owned(), progress.note().as_str().into());
    Value::Object(fields)
}

pub(crate) fn fence_state(resource: &LeaseName, state: &FenceState) -> Value {
    let mut fields = Map::new();
    put_resource(&mut fields, resource);
    fields.insert("highest_fence_token".to_owned(), token(state.seen));
    let last_reset = state.last_reset.as_ref().map(|reset| {
        json!({
            "from_fence_token": token(reset.from),
            "at_ms": millis(reset.at),
            "reason": &*reset.reason,
        })
    });
    fields.insert("last_reset".to_owned(), last_reset.unwrap_or(Value::Null));
    Value::Object(fields)
}

pub(crate) fn payment_attempt(attempt: &PaymentAttempt) -> Value {
    let mut fields = Map::new();
    let mut put = |field: &str, text: &str| fields.insert(field.to_owned(), text.into());
    put("order_id", attempt.order.as_str());
    put("attempt_id", attempt.attempt.as_str());
    put("currency", attempt.currency.as_str());
    put("amount", &attempt.amount.to_string());
    put("started_at_ms", &attempt.started_at.get().to_string());
    put("status", attempt.status.name());
    put_resource(&mut fields, &attempt.fence.resource);
    fields.insert("fence_token".to_owned(), token(Some(attempt.fence.token)));
    let finding = attempt.status.finding().map(|finding| {
        let (found_by, reason) = match &finding.by {
            FoundBy::Worker(number) => (token(Some(*number)), Value::Null),
            FoundBy::Person(reason) => (Value::Null, reason.as_str().into()),
        };
        json!({
            "at_ms": millis(finding.at),
            "fence_token": found_by,
            "reason": reason,
            "note": finding.note.as_str(),
        })
    });
    fields.insert("finding".to_owned(), finding.unwrap_or(Value::Null));
    Value::Object(fields)
}

pub(crate) fn audit_report(report: &AuditReport) -> Value {
    let violations: Vec<_> = report
        .violations
        .iter()
        .map(|violation| json!({ "check": violation.check(), "detail": violation.to_string() }))
        .collect();
    json!({
        "clean": report.is_clean(),
        "claims": report.claims.to_string(),
        "unfenced": report.unfenced.to_string(),
        "players": report.players.to_string(),
        "granted": report.granted.to_string(),
        "reversals": report.reversals.to_string(),
        "outbox_rows": report.outbox_rows.to_string(),
        "outbox_open": report.outbox_open.to_string(),
        "delivered": report.delivered.to_string(),
        "outbox_dead": report.outbox_dead.to_string(),
        "discarded": report.discarded.to_string(),
        "payments": report.payments.to_string(),
        "attempts": report.attempts.to_string(),
        "violations_found": report.violations_found.to_string(),
        "violations": violations,
    })
}
