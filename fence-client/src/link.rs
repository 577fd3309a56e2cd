//! One connection that is made when it is needed, and made anew after it broke.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lease_core::wire::{ErrorWord, Reply};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::backoff::Backoff;
use crate::call_error::CallError;
use crate::clock::{Clock, timer_now};
use crate::connection::Connection;
use crate::failover::{Choice, Failover};
use crate::greeting::{Greeting, GreetingFailed};
use crate::random::jitter;
use crate::transport::{Answered, Request};

/// Makes connections to the servers of one client.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) failover: Failover,
    pub(crate) greeting: Greeting,
    /// How long one server may take to answer a new connection's greeting.
    pub(crate) connect_timeout: Duration,
    pub(crate) clock: Clock,
}

/// A connection, and which server it goes to.
#[derive(Debug, Clone)]
pub(crate) struct Dialled {
    pub(crate) connection: Connection,
    pub(crate) choice: Choice,
}

impl Dialer {
    /// Makes a connection, trying each server once at the most, the one in use first.
    ///
    /// Dropped, the server being tried counts as failed, so that whoever has little patience still gets around.
    pub(crate) async fn dial(&self) -> Result<Dialled, CallError> {
        let mut last = CallError::Stopped;
        for _ in 0..self.failover.len() {
            let choice = self.failover.current();
            let trying = self.failover.trying(choice);
            match self.dial_one(choice.index).await {
                Ok(connection) => {
                    trying.succeeded();
                    return Ok(Dialled { connection, choice });
                }
                Err(error) => {
                    tracing::debug!(%error, "no connection");
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Whether a connection is open, and goes to the server in use.
    pub(crate) fn is_good(&self, dialled: &Dialled) -> bool {
        !dialled.connection.is_closed() && self.failover.is_current(dialled.choice)
    }

    /// Sends one request over a connection. A server that leaves it without an answer, or cannot serve it, is left.
    pub(crate) async fn call(
        &self,
        dialled: &Dialled,
        request: Request,
        expires: Instant,
    ) -> Result<Answered, CallError> {
        let answered = dialled.connection.call(request, expires).await;
        match &answered {
            Err(CallError::NoAnswer { .. }) => self.failover.found_silent(dialled.choice.index),
            Err(CallError::Broken { .. }) => self.failover.leave(dialled.choice),
            Ok(Answered { reply, .. }) if cannot_serve(reply) => self.failover.leave(dialled.choice),
            Ok(_) | Err(_) => {}
        }
        answered
    }

    /// Makes a connection to one server.
    pub(crate) async fn dial_one(&self, index: usize) -> Result<Connection, CallError> {
        let endpoint = self.failover.endpoint(index).ok_or(CallError::Stopped)?;
        let dialled = timeout(self.connect_timeout, async {
            let mut stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
            stream.set_nodelay(true)?;
            Ok((self.greeting.exchange(&mut stream).await, stream))
        });
        let failed = |source: io::Error| CallError::Connect {
            endpoint: endpoint.to_string(),
            source,
        };
        let (greeted, stream) = match dialled.await {
            Ok(dialled) => dialled.map_err(failed)?,
            Err(_) => return Err(failed(io::ErrorKind::TimedOut.into())),
        };
        match greeted {
            Ok(decoder) => Ok(Connection::open(stream, decoder, self.clock.clone())),
            Err(GreetingFailed::Io(error)) => Err(failed(error)),
            Err(GreetingFailed::Garbled(source)) => {
                Err(failed(io::Error::new(io::ErrorKind::InvalidData, source)))
            }
            Err(GreetingFailed::Refused(reply)) => Err(CallError::Greeting {
                endpoint: endpoint.to_string(),
                reply,
            }),
        }
    }
}

/// Whether another server may serve what this one could not: it knows no leader, or got no answer from it.
fn cannot_serve(reply: &Reply) -> bool {
    let Reply::Error(error) = reply else {
        return false;
    };
    matches!(error.word(), Some(ErrorWord::ClusterDown | ErrorWord::Unknown))
}

/// Who sees to it that a server that is down is not dialled all the time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pacing {
    /// The link: it waits longer after each failure.
    Backoff(Backoff),
    /// Its caller, who has a schedule of its own.
    ByCaller,
}

/// One connection at a time.
#[derive(Debug)]
pub(crate) struct Link {
    dialer: Arc<Dialer>,
    pacing: Pacing,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    dialled: Option<Dialled>,
    failures: u32,
    not_before: Option<Instant>,
}

impl Link {
    pub(crate) fn new(dialer: Arc<Dialer>, pacing: Pacing) -> Self {
        Self {
            dialer,
            pacing,
            state: Mutex::default(),
        }
    }

    /// Sends one request over the connection, which is made first if there is none.
    pub(crate) async fn call(&self, request: Request) -> Result<Answered, CallError> {
        let patience = request.patience;
        let expires = timer_now() + patience;
        let dialled = timeout_at(expires, self.connection())
            .await
            .unwrap_or(Err(CallError::NotSent { patience }))?;
        self.dialer.call(&dialled, request, expires).await
    }

    /// The connection, made now if there is none to the server in use. Who still waits for an answer over an earlier
    /// one keeps it open.
    pub(crate) async fn connection(&self) -> Result<Dialled, CallError> {
        let mut state = self.state.lock().await;
        let standing = state
            .dialled
            .take()
            .filter(|dialled| self.dialer.is_good(dialled));
        if let Some(dialled) = standing {
            return Ok(state.dialled.insert(dialled).clone());
        }
        if let Some(not_before) = state.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        match self.dialer.dial().await {
            Ok(dialled) => {
                *state = State {
                    dialled: Some(dialled.clone()),
                    ..State::default()
                };
                Ok(dialled)
            }
            Err(error) => {
                state.failures = state.failures.saturating_add(1);
                state.not_before = match self.pacing {
                    Pacing::Backoff(backoff) => Some(timer_now() + backoff.delay(state.failures, jitter())),
                    Pacing::ByCaller => None,
                };
                Err(error)
            }
        }
    }
}
