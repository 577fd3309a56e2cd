//! Payment attempts. The gateway is called by the worker, with the attempt's id as its idempotency key.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::State;
use super::problem::Problem;
use super::request::{Json, Path};
use crate::core::{Judgement, PaymentOutcome, PaymentReport, ReportOutcome};
use crate::json::{self, BadField};
use crate::types::{AttemptId, Note, OrderId, PaymentAttempt, PaymentResult, PaymentStart};

pub(super) async fn start(Shared(state): Shared<State>, Json(mut fields): Json) -> Result<Response, Problem> {
    let order = fields.order()?;
    let attempt = fields.attempt()?;
    let fence = fields.fence()?;
    let currency = fields.item("currency")?;
    let amount = fields.amount()?;
    fields.end()?;
    let start = PaymentStart::new(order, attempt, fence, currency, amount);
    let refused = |status, kind, detail: &str, attempt: Option<&PaymentAttempt>| {
        Problem::new(status, kind, detail).with(json!({ "attempt": attempt.map(json::payment_attempt) }))
    };
    match state.ledger.start_payment(start).await? {
        PaymentOutcome::Started(attempt) => {
            Ok((StatusCode::CREATED, Answer(json::payment_attempt(&attempt))).into_response())
        }
        PaymentOutcome::Existing(attempt) => Ok(Answer(json::payment_attempt(&attempt)).into_response()),
        PaymentOutcome::Blocked(attempt) => Err(refused(
            StatusCode::CONFLICT,
            "order-has-active-attempt",
            "another attempt of this order is active",
            Some(&attempt),
        )),
        PaymentOutcome::Stale {
            presented,
            seen,
            active,
        } => Err(stale(presented.get(), seen.get(), active.as_ref())),
        PaymentOutcome::TooMany { attempts } => Err(Problem::new(
            StatusCode::CONFLICT,
            "too-many-attempts",
            format!("{attempts} attempts of this order have failed; a person should look"),
        )),
        PaymentOutcome::Conflict(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| field.name()).collect();
            let detail = format!(
                "the attempt's id was used for something else; what differs: {}",
                fields.join(", ")
            );
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "conflict", detail)
                .with(json!({ "subject": "attempt_id", "fields": fields })))
        }
    }
}

fn stale(presented: u64, seen: u64, attempt: Option<&PaymentAttempt>) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "stale-token",
        format!("token {presented} is below {seen}, the highest seen for this resource"),
    )
    .with(json!({
        "fence_token": presented.to_string(),
        "highest_fence_token": seen.to_string(),
        "attempt": attempt.map(json::payment_attempt),
    }))
}

pub(super) async fn list(
    Shared(state): Shared<State>,
    Path(order): Path<String>,
) -> Result<Answer<Value>, Problem> {
    let order = read_order(&order)?;
    let attempts = state.ledger.payments(&order).await?;
    let attempts: Vec<_> = attempts.iter().map(json::payment_attempt).collect();
    Ok(Answer(json!({ "attempts": attempts })))
}

pub(super) async fn report(
    Shared(state): Shared<State>,
    Path((order, attempt)): Path<(String, String)>,
    Json(mut fields): Json,
) -> Result<Answer<Value>, Problem> {
    let (order, attempt) = (read_order(&order)?, read_attempt(&attempt)?);
    let result = match fields.text("result")?.as_str() {
        "approved" => PaymentResult::Approved,
        "failed" => PaymentResult::Failed,
        "unknown" => PaymentResult::Unknown,
        _ => return Err(BadField::new("result", "approved, failed or unknown is needed").into()),
    };
    let token = fields.token("fence_token")?;
    let note = Note::new(fields.maybe_text("note")?.unwrap_or_default());
    fields.end()?;
    note_result(
        &state,
        &order,
        PaymentReport::of_worker(attempt, result, token, note),
    )
    .await
}

pub(super) async fn judge(
    Shared(state): Shared<State>,
    Path((order, attempt)): Path<(String, String)>,
    Json(mut fields): Json,
) -> Result<Answer<Value>, Problem> {
    let (order, attempt) = (read_order(&order)?, read_attempt(&attempt)?);
    let judgement = match fields.text("result")?.as_str() {
        "approved" => Judgement::Approved,
        "failed" => Judgement::Failed,
        _ => return Err(BadField::new("result", "approved or failed is needed").into()),
    };
    let reason = fields.reason()?;
    fields.end()?;
    note_result(
        &state,
        &order,
        PaymentReport::of_person(attempt, judgement, reason),
    )
    .await
}

async fn note_result(
    state: &State,
    order: &OrderId,
    report: PaymentReport,
) -> Result<Answer<Value>, Problem> {
    let attempts = state.ledger.payments(order).await?;
    if !attempts.iter().any(|attempt| attempt.attempt == report.attempt) {
        return Err(Problem::not_found("payment attempt of this order"));
    }
    match state.ledger.report_payment(report).await? {
        ReportOutcome::Recorded(attempt) => Ok(Answer(json::payment_attempt(&attempt))),
        ReportOutcome::NotFound => Err(Problem::not_found("payment attempt")),
        ReportOutcome::Stale {
            presented,
            seen,
            attempt,
        } => Err(stale(presented.get(), seen.get(), Some(&attempt))),
        ReportOutcome::Final(attempt) => Err(Problem::new(
            StatusCode::CONFLICT,
            "payment-is-final",
            format!("the attempt is {} and stays so", attempt.status.name()),
        )
        .with(json!({ "attempt": json::payment_attempt(&attempt) }))),
    }
}

fn read_order(text: &str) -> Result<OrderId, BadField> {
    OrderId::new(text).map_err(|error| BadField::new("order_id", error.to_string()))
}

fn read_attempt(text: &str) -> Result<AttemptId, BadField> {
    AttemptId::new(text).map_err(|error| BadField::new("attempt_id", error.to_string()))
}
