//! The whole ledger: audit, export; and the description of the service.

use axum::Json as Answer;
use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::State;
use super::problem::Problem;
use crate::archive::Exporter;
use crate::error::StoreError;
use crate::json;

/// The description of the service, as it is handed out.
const OPENAPI: &str = include_str!("openapi.json");

pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

pub(super) async fn audit(Shared(state): Shared<State>) -> Result<Answer<Value>, Problem> {
    Ok(Answer(json::audit_report(&state.ledger.audit().await?)))
}

/// The export as it is read, a page at a time and no faster than the client takes it. It ends with a line that counts the
/// others; one that does not was cut off.
pub(super) async fn export(Shared(state): Shared<State>) -> Response {
    let exporter = Exporter::new(state.ledger);
    let pages = futures_util::stream::try_unfold(exporter, |mut exporter| async move {
        let text = exporter.next().await?;
        Ok::<_, StoreError>(text.map(|text| (Bytes::from(text), exporter)))
    });
    (
        [(header::CONTENT_TYPE, "application/jsonl")],
        Body::from_stream(pages),
    )
        .into_response()
}
