//! An outside server as this project asks for one: it does what it is asked once for each idempotency key, answers the same
//! key with the same result, and tells the status of a key. With switches to be what outside servers are: slow, silent after
//! the work, forgetful, unwilling.
//!
//! Tokens are looked at where `check_tokens` is on, for callers that hold the lease themselves. What a ledger sends was
//! decided under its fence; a letter that a person has tried again comes after newer tokens of its resource, and is due.
//!
//! Its books are in memory; `GET /effects` shows them, one line an effect.

mod books;
mod switches;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub use self::books::{Books, Done, Memory};
pub use self::switches::Switches;

/// A running outside server; a clone is the same one.
#[derive(Debug, Clone)]
pub struct Outside {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    books: Mutex<Books>,
    switches: Mutex<Switches>,
    /// What one effect is called in an answer, such as `item` or `charge`.
    what: &'static str,
}

impl Outside {
    /// One whose effects are called `what`.
    #[must_use]
    pub fn new(what: &'static str, switches: Switches) -> Self {
        Self {
            shared: Arc::new(Shared {
                books: Mutex::default(),
                switches: Mutex::new(switches),
                what,
            }),
        }
    }

    /// Serves at `path` of `socket` until it is dropped.
    ///
    /// # Errors
    /// What the system says of the socket.
    ///
    /// # Cancel safety
    /// A dropped call cuts connections off.
    pub async fn serve(self, socket: TcpListener, path: &str) -> std::io::Result<()> {
        let routes = Router::new()
            .route(path, post(work))
            .route(&format!("{path}/{{key}}"), get(status))
            .route("/effects", get(effects))
            .route("/switches", put(switch))
            .with_state(self);
        axum::serve(socket, routes).await
    }

    /// Turns switches.
    pub fn switch(&self, switches: Switches) {
        *self.switches() = switches;
    }

    /// The keys of what it has done, in their order; one that was done twice stands twice.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        self.books().effects().to_vec()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.shared.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.shared
            .switches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, switches: Switches, headers: &HeaderMap, body: &Bytes) -> Response {
        let Some(key) = text(headers, "idempotency-key") else {
            return refuse(StatusCode::BAD_REQUEST, "an Idempotency-Key is needed");
        };
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return refuse(StatusCode::BAD_REQUEST, "a JSON body is needed");
        };
        if switches.refuse {
            return refuse(StatusCode::UNPROCESSABLE_ENTITY, "this is never done");
        }
        if switches.busy {
            return refuse(StatusCode::TOO_MANY_REQUESTS, "come back later");
        }
        let fence = switches.check_tokens.then(|| fence(headers, &body)).flatten();
        let memory = if switches.forget_keys {
            Memory::Lost
        } else {
            Memory::Good
        };
        let done = self.books().work(&key, body, fence, memory);
        match done {
            Done::Now(number) | Done::Before(number) => {
                let what = self.shared.what;
                Json(json!({ what: number.to_string(), "status": "done" })).into_response()
            }
            Done::OtherBody => refuse(
                StatusCode::UNPROCESSABLE_ENTITY,
                "the key was used for something else",
            ),
            Done::Stale { highest } => refuse(
                StatusCode::PRECONDITION_FAILED,
                &format!("the token is below {highest}, the highest seen for this resource"),
            ),
        }
    }
}

/// Does the work of a key once. It goes on also when the caller has gone, as it does where work is more than a row.
#[expect(
    clippy::disallowed_methods,
    reason = "detached: what was begun is done, whoever waits for it"
)]
async fn work(State(outside): State<Outside>, headers: HeaderMap, body: Bytes) -> Response {
    let switches = outside.switches().next_request();
    let work = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(switches.slow_ms)).await;
        outside.work(switches, &headers, &body)
    });
    let answer = work.await;
    if switches.lose_answer {
        // The work is done, and nobody will ever hear of it from here.
        std::future::pending::<()>().await;
    }
    answer.unwrap_or_else(|_| refuse(StatusCode::INTERNAL_SERVER_ERROR, "the work panicked"))
}

/// Whether the work of a key was done.
async fn status(State(outside): State<Outside>, Path(key): Path<String>) -> Response {
    if outside.switches().no_status {
        return refuse(StatusCode::NOT_IMPLEMENTED, "no status is told");
    }
    let number = outside.books().number(&key);
    match number {
        Some(number) => {
            Json(json!({ "status": "done", outside.shared.what: number.to_string() })).into_response()
        }
        None => refuse(StatusCode::NOT_FOUND, "this was not done"),
    }
}

/// The books, as `reward-ledger audit --outside` reads them.
async fn effects(State(outside): State<Outside>) -> Response {
    let lines: String = outside
        .effects()
        .iter()
        .map(|key| format!("{}\n", json!({ "idempotency_key": key })))
        .collect();
    ([(header::CONTENT_TYPE, "application/jsonl")], lines).into_response()
}

async fn switch(State(outside): State<Outside>, Json(body): Json<Value>) -> Response {
    let before = *outside.switches();
    outside.switch(before.with(&body));
    StatusCode::NO_CONTENT.into_response()
}

/// The resource of a request, and the token that it shows for it.
fn fence(headers: &HeaderMap, body: &Value) -> Option<(String, u64)> {
    let token = text(headers, "fence-token")?.parse().ok()?;
    let resource = body.get("resource").and_then(Value::as_str).unwrap_or_default();
    Some((resource.to_owned(), token))
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty()).then(|| value.to_owned())
}

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}
