//! The outbox: what is still to be delivered, and what a person does about dead letters.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::State;
use super::claims::read_limit;
use super::problem::Problem;
use super::request::{Json, Params, Path};
use crate::error::StoreError;
use crate::json::{self, BadField};
use crate::store::{Amended, OutboxQuery};
use crate::types::{ClaimId, PlayerId};

pub(super) async fn list(
    Shared(state): Shared<State>,
    Params(mut params): Params,
) -> Result<Answer<Value>, Problem> {
    let after = params.maybe_unsigned("after")?.map(ClaimId::new);
    let rows_max = read_limit(&mut params)?;
    let query = match (
        params.maybe_text("state")?.as_deref(),
        params.maybe_text("player_id")?,
    ) {
        (None | Some("dead"), None) => OutboxQuery::Dead,
        (Some("all"), None) => OutboxQuery::All,
        (None | Some("open"), Some(player)) => {
            OutboxQuery::OpenOf(PlayerId::new(json::read_signed("player_id", &player)?))
        }
        _ => {
            return Err(BadField::new("state", "dead or all is needed, or open with the player_id").into());
        }
    };
    params.end()?;
    let found = state.ledger.deliveries(query, after, rows_max).await?;
    let rows: Vec<_> = found.deliveries.iter().map(json::delivery).collect();
    let next = found.next.map(|id| id.to_string());
    Ok(Answer(json!({ "deliveries": rows, "next": next })))
}

pub(super) async fn retry(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
) -> Result<Answer<Value>, Problem> {
    let id = ClaimId::new(json::read_unsigned("delivery_id", &id)?);
    answer(state.ledger.retry_delivery(id).await)
}

pub(super) async fn discard(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
    Json(mut fields): Json,
) -> Result<Answer<Value>, Problem> {
    let id = ClaimId::new(json::read_unsigned("delivery_id", &id)?);
    let reason = fields.reason()?;
    fields.end()?;
    answer(state.ledger.discard_delivery(id, reason).await)
}

fn answer(amended: Result<Amended, StoreError>) -> Result<Answer<Value>, Problem> {
    match amended? {
        Amended::Done(delivery) => Ok(Answer(json::delivery(&delivery))),
        Amended::NotFound => Err(Problem::not_found("delivery")),
        Amended::Refused(delivery) => Err(Problem::new(
            StatusCode::CONFLICT,
            "delivery-state",
            format!("the delivery is {}", delivery.progress.state().name()),
        )
        .with(json::delivery(&delivery))),
        Amended::TakenBack(delivery) => Err(Problem::new(
            StatusCode::CONFLICT,
            "delivery-taken-back",
            "the grant was taken back, and the outside may know that: it would be granted for good",
        )
        .with(json::delivery(&delivery))),
    }
}
