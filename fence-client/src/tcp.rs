//! The store over TCP: one connection for short requests, one for renewals, and one for each acquire that waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use crate::call_error::CallError;
use crate::clock::timer_now;
use crate::link::{Dialer, Dialled, Link, Pacing};
use crate::lookout::LookoutHandle;
use crate::transport::{Answered, Call, Lane, Request, Transport};

/// Connections of finished waits that are kept for the next ones.
const IDLE_MAX: usize = 8;

/// A client's connections.
#[derive(Debug)]
pub(crate) struct Tcp {
    control: Link,
    renewal: Link,
    waits: Waits,
    _lookout: Option<LookoutHandle>,
}

impl Tcp {
    /// No connection for requests is made yet. At most `waits_max` acquires wait at once; more queue here.
    pub(crate) fn new(dialer: Dialer, control: Pacing, waits_max: usize) -> Self {
        let dialer = Arc::new(dialer);
        let lookout = LookoutHandle::spawn(&dialer);
        Self {
            control: Link::new(Arc::clone(&dialer), control),
            // The watchdog has a schedule of its own, which fits the leases.
            renewal: Link::new(Arc::clone(&dialer), Pacing::ByCaller),
            waits: Waits {
                dialer,
                permits: Semaphore::new(waits_max),
                idle: Mutex::default(),
            },
            _lookout: lookout,
        }
    }
}

impl Transport for Tcp {
    fn call(&self, lane: Lane, request: Request) -> Call<'_> {
        match lane {
            Lane::Control => Box::pin(self.control.call(request)),
            Lane::Renewal => Box::pin(self.renewal.call(request)),
            Lane::Wait => Box::pin(self.waits.call(request)),
        }
    }

    fn reach(&self) -> Pin<Box<dyn Future<Output = Result<(), CallError>> + Send + '_>> {
        Box::pin(async { self.control.connection().await.map(drop) })
    }
}

/// The connections of waiting acquires. A wait that is given up takes its connection along: the server sees it close.
/// So does one whose server falls silent; asked again elsewhere under its request id, it keeps its place.
#[derive(Debug)]
struct Waits {
    dialer: Arc<Dialer>,
    permits: Semaphore,
    idle: Mutex<Vec<Dialled>>,
}

impl Waits {
    async fn call(&self, request: Request) -> Result<Answered, CallError> {
        let (patience, asked_at) = (request.patience, timer_now());
        let expires = asked_at + patience;
        let ready = timeout_at(expires, async {
            let permit = self.permits.acquire().await.map_err(|_| CallError::Stopped)?;
            let dialled = match self.take_idle() {
                Some(dialled) => dialled,
                None => self.dialer.dial().await?,
            };
            Ok((permit, dialled))
        });
        let (permit, dialled) = ready.await.unwrap_or(Err(CallError::NotSent { patience }))?;
        let waiting = self.dialer.failover.waiting(dialled.choice.index);
        let answered = tokio::select! {
            biased;
            answered = self.dialer.call(&dialled, request, expires) => answered?,
            () = waiting.silence() => return Err(CallError::NoAnswer { patience: timer_now() - asked_at }),
        };
        self.keep(dialled);
        drop(permit);
        Ok(answered)
    }

    fn take_idle(&self) -> Option<Dialled> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|dialled| self.dialer.is_good(dialled));
        idle.pop()
    }

    fn keep(&self, dialled: Dialled) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && self.dialer.is_good(&dialled) {
            idle.push(dialled);
        }
    }
}
