//! The routes of the admin address.

use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use super::AdminState;
use crate::metrics::Gauges;
use crate::store::{MemberStatus, NodeStatus, Standing};

/// The content type of Prometheus's text format.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn routes(state: AdminState) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/v1/cluster", get(cluster))
        .with_state(state)
}

/// Whether the process is fit to go on: 200 until its storage fails.
async fn healthz(State(state): State<AdminState>) -> Response {
    match state.store.failure() {
        None => (StatusCode::OK, "ok\n").into_response(),
        Some(failure) => (StatusCode::SERVICE_UNAVAILABLE, format!("{failure}\n")).into_response(),
    }
}

/// Whether requests are served: 200 while a leader is known.
async fn readyz(State(state): State<AdminState>) -> Response {
    match (state.store.failure(), state.store.leader()) {
        (None, Some(_)) => (StatusCode::OK, "ready\n").into_response(),
        (None, None) => (StatusCode::SERVICE_UNAVAILABLE, "no leader\n").into_response(),
        (Some(failure), _) => (StatusCode::SERVICE_UNAVAILABLE, format!("{failure}\n")).into_response(),
    }
}

async fn metrics(State(state): State<AdminState>) -> Response {
    let (store, status) = (&state.store, state.store.status());
    let gauges = Gauges {
        stats: store.stats(),
        parked: store.parked_callers() as u64,
        connections: state.connections.load(Ordering::Relaxed) as u64,
        applied_index: status.applied_index.unwrap_or(0),
        term: status.term,
        leading: u64::from(store.leader() == Some(status.node)),
    };
    (
        [(header::CONTENT_TYPE, PROMETHEUS_TEXT)],
        store.metrics().render(&gauges),
    )
        .into_response()
}

/// `/v1/cluster`. Ids and terms are small numbers; they are numbers here.
#[derive(Debug, Serialize)]
struct Cluster {
    node: u64,
    leader: Option<u64>,
    term: u64,
    last_index: Option<u64>,
    committed_index: Option<u64>,
    applied_index: Option<u64>,
    snapshot_index: Option<u64>,
    purged_index: Option<u64>,
    members: Vec<Member>,
}

#[derive(Debug, Serialize)]
struct Member {
    node: u64,
    address: Option<String>,
    role: &'static str,
}

async fn cluster(State(state): State<AdminState>) -> Json<Cluster> {
    let NodeStatus {
        node,
        term,
        last_index,
        committed_index,
        applied_index,
        snapshot_index,
        purged_index,
        members,
        ..
    } = state.store.status();
    Json(Cluster {
        node,
        // Who serves, not who was elected a moment ago.
        leader: state.store.leader(),
        term,
        last_index,
        committed_index,
        applied_index,
        snapshot_index,
        purged_index,
        members: members.into_iter().map(member).collect(),
    })
}

fn member(
    MemberStatus {
        node,
        address,
        standing,
        ..
    }: MemberStatus,
) -> Member {
    Member {
        node,
        address: (!address.is_empty()).then_some(address),
        role: match standing {
            Standing::Voter => "voter",
            Standing::Learner => "learner",
        },
    }
}
