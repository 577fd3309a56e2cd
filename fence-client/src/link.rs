//! One connection that is made when it is needed, and made anew after it broke.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::backoff::Backoff;
use crate::call_error::CallError;
use crate::clock::{Clock, timer_now};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::failover::Failover;
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

impl Dialer {
    /// Makes a connection, trying each server once at the most, the one in use first.
    pub(crate) async fn dial(&self) -> Result<Connection, CallError> {
        let mut last = CallError::Stopped;
        for _ in 0..self.failover.len() {
            let Some(choice) = self.failover.current() else { break };
            match self.dial_one(choice.endpoint).await {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    tracing::debug!(endpoint = %choice.endpoint, %error, "no connection");
                    self.failover.failed(choice);
                    last = error;
                }
            }
        }
        Err(last)
    }

    async fn dial_one(&self, endpoint: &Endpoint) -> Result<Connection, CallError> {
        let dialled = timeout(self.connect_timeout, async {
            let mut stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
            stream.set_nodelay(true)?;
            Ok((self.greeting.exchange(&mut stream).await, stream))
        });
        let failed = |source: io::Error| CallError::Connect { endpoint: endpoint.to_string(), source };
        let (greeted, stream) = match dialled.await {
            Ok(dialled) => dialled.map_err(failed)?,
            Err(_) => return Err(failed(io::ErrorKind::TimedOut.into())),
        };
        match greeted {
            Ok(decoder) => Ok(Connection::open(stream, decoder, self.clock.clone())),
            Err(GreetingFailed::Io(error)) => Err(failed(error)),
            Err(GreetingFailed::Garbled(source)) => Err(failed(io::Error::new(io::ErrorKind::InvalidData, source))),
            Err(GreetingFailed::Refused(reply)) => {
                Err(CallError::Greeting { endpoint: endpoint.to_string(), reply })
            }
        }
    }
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
    connection: Option<Connection>,
    failures: u32,
    not_before: Option<Instant>,
}

impl Link {
    pub(crate) fn new(dialer: Arc<Dialer>, pacing: Pacing) -> Self {
        Self { dialer, pacing, state: Mutex::default() }
    }

    /// Sends one request over the connection, which is made first if there is none.
    pub(crate) async fn call(&self, request: Request) -> Result<Answered, CallError> {
        let patience = request.patience;
        let expires = timer_now() + patience;
        let connection = timeout_at(expires, self.connection())
            .await
            .unwrap_or(Err(CallError::NotSent { patience }))?;
        connection.call(request, expires).await
    }

    /// The connection, made now if there is none.
    pub(crate) async fn connection(&self) -> Result<Connection, CallError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        state.connection = None;
        if let Some(not_before) = state.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        match self.dialer.dial().await {
            Ok(connection) => {
                *state = State { connection: Some(connection.clone()), ..State::default() };
                Ok(connection)
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
