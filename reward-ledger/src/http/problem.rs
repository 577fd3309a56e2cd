//! Whatever is no success: problem details as of RFC 9457, with a type to switch on.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::error::{ClaimError, ResetError, StoreError};
use crate::json::BadField;

/// What the types of problems begin with.
const TYPE: &str = "urn:reward-ledger:problem:";

/// A problem, as it is answered.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    more: Map<String, Value>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            detail: detail.into(),
            more: Map::new(),
        }
    }

    /// With the fields of an object besides.
    pub(super) fn with(mut self, more: Value) -> Self {
        if let Value::Object(more) = more {
            self.more.extend(more);
        }
        self
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not-found",
            format!("there is no such {what}"),
        )
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "a bearer token is needed",
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut fields = self.more;
        let mut put = |field: &str, value: Value| fields.insert(field.to_owned(), value);
        put("type", format!("{TYPE}{}", self.kind).into());
        put("title", self.kind.replace('-', " ").into());
        put("status", self.status.as_u16().into());
        put("detail", self.detail.into());
        let mut response = (self.status, Json(Value::Object(fields))).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

impl From<BadField> for Problem {
    fn from(bad: BadField) -> Self {
        let detail = bad.to_string();
        Self::new(StatusCode::BAD_REQUEST, "bad-field", detail)
            .with(serde_json::json!({ "field": bad.field }))
    }
}

impl From<StoreError> for Problem {
    /// The store is down: nothing is lost, and the same request may be sent again; also where it may have been applied.
    fn from(error: StoreError) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store-unavailable",
            error.to_string(),
        )
        .with(serde_json::json!({ "may_have_applied": error.may_have_applied() }))
    }
}

impl From<ClaimError> for Problem {
    fn from(error: ClaimError) -> Self {
        let detail = error.to_string();
        match error {
            ClaimError::Store(error) => error.into(),
            ClaimError::UnfencedNotAllowed => {
                Self::new(StatusCode::FORBIDDEN, "unfenced-not-allowed", detail)
                    .with(serde_json::json!({ "field": "unfenced" }))
            }
            ClaimError::BatchTooLarge { .. } => BadField::new("claims", detail).into(),
        }
    }
}

impl From<ResetError> for Problem {
    fn from(error: ResetError) -> Self {
        match error {
            ResetError::Store(error) => error.into(),
            ResetError::Field(error) => BadField::new("reason", error.to_string()).into(),
        }
    }
}
