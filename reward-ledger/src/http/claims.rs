//! Claims, batches, reversals, queries.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lease_core::Fence;
use serde_json::{Value, json};

use super::State;
use super::problem::Problem;
use super::request::{Json, Params, Path};
use crate::core::{BatchOutcome, ClaimOutcome, ReversalOutcome};
use crate::event_id::RewardEventId;
use crate::json::{self, BadField, Fields};
use crate::limits::QUERY_ROWS_MAX;
use crate::store::{Cursor, Query};
use crate::types::{Claim, PlayerId, UnixMillis};

/// Rows of an answer unless said.
const ROWS: usize = 100;

pub(super) async fn claim(Shared(state): Shared<State>, Json(fields): Json) -> Result<Response, Problem> {
    let outcome = state.ledger.claim(fields.claim()?).await?;
    state.metrics.note(&outcome);
    Ok(match &outcome {
        ClaimOutcome::Applied(receipt) => {
            (StatusCode::CREATED, Answer(json::receipt(receipt))).into_response()
        }
        ClaimOutcome::Replayed(receipt) => (StatusCode::OK, Answer(json::receipt(receipt))).into_response(),
        ClaimOutcome::Stale { .. } | ClaimOutcome::Conflict { .. } => refusal(&outcome).into_response(),
    })
}

fn refusal(outcome: &ClaimOutcome) -> Problem {
    let (status, kind, detail) = match outcome {
        ClaimOutcome::Stale { presented, seen, .. } => (
            StatusCode::CONFLICT,
            "stale-token",
            format!("token {presented} is below {seen}, the highest seen for this resource"),
        ),
        ClaimOutcome::Conflict { fields, .. } => {
            let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
            let detail = format!(
                "it is taken by something else; what differs: {}",
                names.join(", ")
            );
            (StatusCode::UNPROCESSABLE_ENTITY, "conflict", detail)
        }
        // Not a refusal; nobody asks.
        ClaimOutcome::Applied(_) | ClaimOutcome::Replayed(_) => (StatusCode::OK, "granted", String::new()),
    };
    Problem::new(status, kind, detail).with(json::refused_outcome(outcome))
}

pub(super) async fn batch(Shared(state): Shared<State>, Json(mut fields): Json) -> Result<Response, Problem> {
    let mode = fields.text("mode")?;
    let claims = fields.list("claims")?;
    fields.end()?;
    let claims = claims
        .into_iter()
        .enumerate()
        .map(|(index, value)| {
            let claim = Fields::of(value).and_then(Fields::claim);
            claim.map_err(|bad| bad.within(&format!("claims[{index}]")))
        })
        .collect::<Result<Vec<Claim>, BadField>>()?;
    match mode.as_str() {
        "each" => {
            let outcomes = state.ledger.claim_each(claims).await?;
            outcomes.iter().for_each(|outcome| state.metrics.note(outcome));
            let results: Vec<_> = outcomes.iter().map(result).collect();
            Ok(Answer(json!({ "results": results })).into_response())
        }
        "all" => match state.ledger.claim_all(claims).await? {
            BatchOutcome::Accepted(outcomes) => {
                outcomes.iter().for_each(|outcome| state.metrics.note(outcome));
                let results: Vec<_> = outcomes.iter().map(result).collect();
                Ok(Answer(json!({ "results": results })).into_response())
            }
            BatchOutcome::Refused(refused) => {
                let refused: Vec<_> = refused
                    .iter()
                    .map(|refused| {
                        let mut entry = result(&refused.outcome);
                        if let Value::Object(fields) = &mut entry {
                            fields.insert("index".to_owned(), refused.index.into());
                        }
                        entry
                    })
                    .collect();
                Err(Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "batch-refused",
                    format!("{} claims would be refused; nothing was applied", refused.len()),
                )
                .with(json!({ "refused": refused })))
            }
        },
        _ => Err(BadField::new("mode", "each or all is needed").into()),
    }
}

/// One claim's answer among others: its kind, with the receipt or what there is to know of the refusal.
fn result(outcome: &ClaimOutcome) -> Value {
    let (kind, what) = match outcome {
        ClaimOutcome::Applied(_) => ("applied", "receipt"),
        ClaimOutcome::Replayed(_) => ("replayed", "receipt"),
        ClaimOutcome::Stale { .. } => ("stale-token", "refusal"),
        ClaimOutcome::Conflict { .. } => ("conflict", "refusal"),
    };
    json!({ "outcome": kind, what: json::refused_outcome(outcome) })
}

/// Player and event of a path. An event that was stored may look random.
fn read_key((player, event): (String, String)) -> Result<(PlayerId, RewardEventId), BadField> {
    let player = PlayerId::new(json::read_signed("player_id", &player)?);
    let event = RewardEventId::parse_allowing_random_look(event)
        .map_err(|error| BadField::new("reward_event_id", error.to_string()))?;
    Ok((player, event))
}

pub(super) async fn record(
    Shared(state): Shared<State>,
    Path(path): Path<(String, String)>,
) -> Result<Answer<Value>, Problem> {
    let (player, event) = read_key(path)?;
    match state.ledger.record(player, &event).await? {
        Some(record) => Ok(Answer(json::claim_record(&record))),
        None => Err(Problem::not_found("claim")),
    }
}

pub(super) async fn reverse(
    Shared(state): Shared<State>,
    Path(path): Path<(String, String)>,
    Json(mut fields): Json,
) -> Result<Response, Problem> {
    let (player, event) = read_key(path)?;
    let reason = fields.reason()?;
    fields.end()?;
    match state.ledger.reverse(player, &event, reason).await? {
        ReversalOutcome::Reversed(reversal) => {
            Ok((StatusCode::CREATED, Answer(json::reversal(&reversal))).into_response())
        }
        ReversalOutcome::Replayed(reversal) => Ok(Answer(json::reversal(&reversal)).into_response()),
        ReversalOutcome::NotFound => Err(Problem::not_found("claim")),
    }
}

pub(super) async fn find(
    Shared(state): Shared<State>,
    Params(mut params): Params,
) -> Result<Answer<Value>, Problem> {
    let after = match params.maybe_text("after")? {
        Some(hex) => Some(Cursor::from_bytes(json::read_hex("after", &hex)?)),
        None => None,
    };
    let rows_max = read_limit(&mut params)?;
    let query = read_query(&mut params)?;
    params.end()?;
    let found = state.ledger.find(query, after, rows_max).await?;
    let records: Vec<_> = found.records.iter().map(json::claim_record).collect();
    let next = found.next.map(|cursor| json::hex(cursor.as_bytes()));
    Ok(Answer(json!({ "claims": records, "next": next })))
}

pub(super) fn read_limit(params: &mut Fields) -> Result<usize, BadField> {
    let limit = params.maybe_unsigned("limit")?;
    let Some(limit) = limit else {
        return Ok(ROWS);
    };
    usize::try_from(limit)
        .ok()
        .filter(|limit| (1..=QUERY_ROWS_MAX).contains(limit))
        .ok_or_else(|| BadField::new("limit", format!("1 to {QUERY_ROWS_MAX} is needed")))
}

/// One thing to look for: a player, an event, a resource with or without a token, or a time.
fn read_query(params: &mut Fields) -> Result<Query, BadField> {
    let player = params.maybe_text("player_id")?;
    let event = params.maybe_text("reward_event_id")?;
    let resource = params.maybe_resource()?;
    let token = params.maybe_token("fence_token")?;
    let from = params.maybe_unsigned("from_ms")?;
    let to = params.maybe_unsigned("to_ms")?;
    let of_time = (from.is_some() || to.is_some()).then(|| Query::Time {
        from: UnixMillis::new(from.unwrap_or(0)),
        to: UnixMillis::new(to.unwrap_or(u64::MAX)),
    });
    let of_player = player
        .map(|player| json::read_signed("player_id", &player))
        .transpose()?
        .map(|player| Query::Player(PlayerId::new(player)));
    let of_event = event
        .map(RewardEventId::parse_allowing_random_look)
        .transpose()
        .map_err(|error| BadField::new("reward_event_id", error.to_string()))?
        .map(Query::Event);
    let of_resource = match (resource, token) {
        (Some(resource), Some(token)) => Some(Query::Token(Fence::new(resource, token))),
        (Some(resource), None) => Some(Query::Resource(resource)),
        (None, Some(_)) => return Err(BadField::new("resource", "a token is one of a resource: name it")),
        (None, None) => None,
    };
    let mut asked = [of_player, of_event, of_resource, of_time].into_iter().flatten();
    match (asked.next(), asked.next()) {
        (None, _) => Ok(Query::All),
        (Some(query), None) => Ok(query),
        (Some(_), Some(_)) => Err(BadField::new(
            "query",
            "one of player_id, reward_event_id, resource, or from_ms and to_ms is needed, not several",
        )),
    }
}
