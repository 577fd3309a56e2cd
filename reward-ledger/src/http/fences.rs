//! Fences: what is known of a resource's tokens, and an operator's reset.

use axum::Json as Answer;
use axum::extract::State as Shared;
use serde_json::Value;

use super::State;
use super::problem::Problem;
use super::request::{Json, Path};
use crate::json;

pub(super) async fn get(
    Shared(state): Shared<State>,
    Path(resource): Path<String>,
) -> Result<Answer<Value>, Problem> {
    let resource = json::read_resource(&resource)?;
    match state.ledger.fence(&resource).await? {
        Some(fence) => Ok(Answer(json::fence_state(&resource, &fence))),
        None => Err(Problem::not_found("resource")),
    }
}

pub(super) async fn reset(
    Shared(state): Shared<State>,
    Path(resource): Path<String>,
    Json(mut fields): Json,
) -> Result<Answer<Value>, Problem> {
    let resource = json::read_resource(&resource)?;
    let to = fields.maybe_token("fence_token")?;
    let reason = fields.reason()?;
    fields.end()?;
    let fence = state.ledger.reset_fence(&resource, to, reason.as_str()).await?;
    Ok(Answer(json::fence_state(&resource, &fence)))
}
