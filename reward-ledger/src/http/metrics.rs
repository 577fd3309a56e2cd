//! Health and figures, in Prometheus's text format.
//!
//! | name | kind | what |
//! |---|---|---|
//! | `reward_ledger_claims_total{outcome}` | counter | claims answered, by outcome |
//! | `reward_ledger_http_responses_total{class}` | counter | answers, by the first digit of their status |
//! | `reward_ledger_http_connections` | gauge | connections that are open |
//! | `reward_ledger_http_connections_refused_total` | counter | connections beyond the bound, closed unanswered |
//! | `reward_ledger_store_answers` | gauge | 1, or 0 while the store does not say how far it has come; then the following are missing |
//! | `reward_ledger_last_number` | gauge | number of the last claim or reversal |
//! | `reward_ledger_outbox_open` | gauge | rows that publishers still have work with |
//! | `reward_ledger_outbox_dead` | gauge | rows that a person should look at |

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::State;
use crate::core::ClaimOutcome;
use crate::store::{Health, Standing};

/// How long the store is asked how far it has come: scrapers wait some seconds.
const STANDING_WITHIN: Duration = Duration::from_secs(1);
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug)]
pub(super) struct Metrics {
    /// One permit for each request that may be worked on.
    pub(super) room: Semaphore,
    /// Connections that are open.
    pub(super) connections: AtomicUsize,
    /// Connections that were closed unanswered.
    pub(super) connections_refused: AtomicU64,
    applied: AtomicU64,
    replayed: AtomicU64,
    stale: AtomicU64,
    conflict: AtomicU64,
    /// By the first digit of the status.
    responses: [AtomicU64; 6],
}

impl Metrics {
    pub(super) fn new(requests_max: usize) -> Self {
        Self {
            room: Semaphore::new(requests_max),
            connections: AtomicUsize::new(0),
            connections_refused: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            replayed: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            conflict: AtomicU64::new(0),
            responses: Default::default(),
        }
    }

    pub(super) fn note(&self, outcome: &ClaimOutcome) {
        let counter = match outcome {
            ClaimOutcome::Applied(_) => &self.applied,
            ClaimOutcome::Replayed(_) => &self.replayed,
            ClaimOutcome::Stale { .. } => &self.stale,
            ClaimOutcome::Conflict { .. } => &self.conflict,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) async fn count(Shared(state): Shared<State>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let class = usize::from(response.status().as_u16() / 100);
    if let Some(counter) = state.metrics.responses.get(class) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
    response
}

/// 200 while the store answers. One that did not at last is asked again: it may be back, and whoever sends callers here
/// by this answer sends none meanwhile.
pub(super) async fn healthz(Shared(state): Shared<State>) -> Response {
    let (status, text) = match state.ledger.health() {
        Health::Serving => (StatusCode::OK, "ok\n".to_owned()),
        Health::Stalled => match standing(&state).await {
            Some(_) => (StatusCode::OK, "ok\n".to_owned()),
            None => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the store does not answer\n".to_owned(),
            ),
        },
        Health::Closed => (StatusCode::SERVICE_UNAVAILABLE, "closed\n".to_owned()),
        Health::Stopped(failure) => (StatusCode::SERVICE_UNAVAILABLE, format!("{failure}\n")),
    };
    (status, text).into_response()
}

/// How far the store has come, if it says so soon.
async fn standing(state: &State) -> Option<Standing> {
    let asked = tokio::time::timeout(STANDING_WITHIN, state.ledger.standing()).await;
    asked.ok().and_then(Result::ok)
}

/// The figures; while the store does not answer, all but its own.
pub(super) async fn metrics(Shared(state): Shared<State>) -> Response {
    let standing = standing(&state).await;
    let metrics = &state.metrics;
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut text = String::from("# TYPE reward_ledger_claims_total counter\n");
    for (outcome, counter) in [
        ("applied", &metrics.applied),
        ("replayed", &metrics.replayed),
        ("stale", &metrics.stale),
        ("conflict", &metrics.conflict),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "reward_ledger_claims_total{{outcome=\"{outcome}\"}} {}",
            read(counter)
        );
    }
    text.push_str("# TYPE reward_ledger_http_responses_total counter\n");
    for (class, counter) in metrics.responses.iter().enumerate().skip(2) {
        let _ = writeln!(
            text,
            "reward_ledger_http_responses_total{{class=\"{class}xx\"}} {}",
            read(counter)
        );
    }
    let _ = writeln!(
        text,
        "# TYPE reward_ledger_http_connections_refused_total counter\n\
         reward_ledger_http_connections_refused_total {}",
        read(&metrics.connections_refused)
    );
    let connections = metrics.connections.load(Ordering::Relaxed);
    let mut gauges = vec![
        ("http_connections", u64::try_from(connections).unwrap_or(u64::MAX)),
        ("store_answers", u64::from(standing.is_some())),
    ];
    if let Some(standing) = standing {
        gauges.push(("last_number", standing.last.get()));
        gauges.push(("outbox_open", standing.outbox_open));
        gauges.push(("outbox_dead", standing.outbox_dead));
    }
    for (name, value) in gauges {
        let _ = writeln!(
            text,
            "# TYPE reward_ledger_{name} gauge\nreward_ledger_{name} {value}"
        );
    }
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], text).into_response()
}
