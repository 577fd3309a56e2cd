//! What every request passes: a bound on how many there are, a bound on its time, its body as fields.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request, State as Shared};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::problem::Problem;
use super::{BODY_BYTES_MAX, REQUEST_TIMEOUT, State};
use crate::json::{BadField, Fields};

/// Lets a request in if there is room for one.
pub(super) async fn admit(
    Shared(state): Shared<State>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Ok(_room) = state.metrics.room.try_acquire() else {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too-many-requests-at-once",
            "the service works on as many requests as it may; nothing was applied",
        )
        .with(serde_json::json!({ "may_have_applied": false })));
    };
    Ok(next.run(request).await)
}

/// Ends a request that takes too long. Its body is read here, so that what is cut off while it is sent applied nothing.
pub(super) async fn in_time(request: Request, next: Next) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let read = to_bytes(body, BODY_BYTES_MAX);
    let bytes = match tokio::time::timeout(REQUEST_TIMEOUT, read).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body-too-large",
                format!("a body of at most {BODY_BYTES_MAX} bytes is taken"),
            )
            .with(serde_json::json!({ "field": "body" })));
        }
        Err(_) => {
            return Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "request-timeout",
                "the body did not arrive in time; nothing was applied",
            ));
        }
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => Ok(response),
        Err(_) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store-unavailable",
            "the store did not answer in time",
        )
        .with(serde_json::json!({ "may_have_applied": true }))),
    }
}

/// A JSON object in the body.
pub(super) struct Json(pub(super) Fields);

impl<S: Send + Sync> FromRequest<S> for Json {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "media-type",
                "a body of application/json is needed",
            )
            .with(serde_json::json!({ "field": "content-type" })));
        }
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|error| BadField::new("body", error.body_text()))?;
        Ok(Self(Fields::parse(&body)?))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media.is_some_and(|media| {
        let media = media.split(';').next().unwrap_or_default().trim();
        media.eq_ignore_ascii_case("application/json")
    })
}

pub(super) async fn no_such_route() -> Problem {
    Problem::not_found("route")
}

pub(super) async fn no_such_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "the route has no such method",
    )
}

/// The parameters behind the question mark, as fields.
pub(super) struct Params(pub(super) Fields);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, Problem> {
        type Pairs = std::collections::BTreeMap<String, String>;
        let pairs = axum::extract::Query::<Pairs>::from_request_parts(parts, state).await;
        let axum::extract::Query(pairs) = pairs.map_err(|error| BadField::new("query", error.body_text()))?;
        let fields = pairs.into_iter().map(|(name, value)| (name, value.into()));
        Ok(Self(Fields::of(serde_json::Value::Object(fields.collect()))?))
    }
}

/// The parts of the path, decoded.
pub(super) struct Path<T>(pub(super) T);

impl<S: Send + Sync, T: serde::de::DeserializeOwned + Send> axum::extract::FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(error) => Err(BadField::new("path", error.body_text()).into()),
        }
    }
}
