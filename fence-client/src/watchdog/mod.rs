//! Renews all leases of a client in one request, over a connection of its own, and raises their losses in time.
//!
//! Owns: the schedule of all leases ([`decide`]). Asks: the store, and [`crate::errands`] to release what came too
//! late. Asked by: whoever acquires or gives up a lease. Stops: when its last handle is dropped; the client and each
//! lease hold one.
//!
//! Its timers only wake it up: each time it asks the clock, which counts suspend, before it does anything.

mod batch;
mod decide;
mod window;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lease_core::limits::RENEW_MANY_MAX;
use lease_core::wire::RenewReply;
use tokio::sync::mpsc;
use tracing::info_span;

use crate::call_error::CallError;
use crate::caller::Caller;
use crate::clock::{Clock, Moment};
use crate::errands::ErrandsHandle;
use crate::hold::{Extended, Hold};
use crate::random::jitter;
use crate::tasks;
use batch::{Answers, Batch, Renewed};

#[cfg(any(test, feature = "test-util"))]
pub(crate) use decide::Decision;
pub(crate) use decide::{HoldId, Roster, Standing};
pub(crate) use window::{Caution, Window};

/// Acquires and releases on their way: the watchdog never waits on anything, so they pass at once.
const MAILBOX_DEPTH: usize = 256;

/// Longest sleep while a lease is held. Timers stand still in a suspend: so much later at the most is a loss raised
/// to those who only wait for it. Whoever asks is told at once.
const SLEEP_MAX: Duration = Duration::from_millis(500);

enum Message {
    /// Watch over a lease.
    Watch {
        hold: Arc<Hold>,
        caution: Caution,
        window: Window,
        maximum_until: Moment,
    },
    /// A lease is over.
    Forget { id: HoldId },
}

/// A handle on the watchdog.
#[derive(Debug, Clone)]
pub(crate) struct WatchdogHandle {
    mailbox: mpsc::Sender<Message>,
    watched: Arc<AtomicUsize>,
}

impl WatchdogHandle {
    pub(crate) fn spawn(caller: Caller, clock: Clock, errands: ErrandsHandle) -> Self {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        let watched = Arc::new(AtomicUsize::new(0));
        let watchdog = Watchdog {
            caller,
            clock,
            errands,
            roster: Roster::default(),
            watched: BTreeMap::new(),
            gauge: Arc::clone(&watched),
        };
        tasks::spawn(info_span!("watchdog"), watchdog.run(inbox));
        Self { mailbox, watched }
    }

    /// Watches over a lease from now on.
    ///
    /// # Errors
    /// The watchdog has stopped, with its runtime.
    pub(crate) async fn watch(
        &self,
        hold: Arc<Hold>,
        caution: Caution,
        window: Window,
        maximum_until: Moment,
    ) -> Result<(), CallError> {
        let message = Message::Watch {
            hold,
            caution,
            window,
            maximum_until,
        };
        self.mailbox.send(message).await.map_err(|_| CallError::Stopped)
    }

    /// Forgets a lease. If the mailbox is full the lease is forgotten at its next alarm.
    pub(crate) fn forget(&self, id: HoldId) {
        let _ = self.mailbox.try_send(Message::Forget { id });
    }

    /// Number of leases that are watched over.
    pub(crate) fn watched(&self) -> usize {
        self.watched.load(Ordering::Relaxed)
    }
}

struct Watched {
    hold: Arc<Hold>,
    caution: Caution,
}

struct Watchdog {
    caller: Caller,
    clock: Clock,
    errands: ErrandsHandle,
    roster: Roster,
    watched: BTreeMap<HoldId, Watched>,
    gauge: Arc<AtomicUsize>,
}

/// A batch on its way.
type Renewing = Pin<Box<dyn Future<Output = Renewed> + Send>>;

impl Watchdog {
    async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut renewing: FuturesUnordered<Renewing> = FuturesUnordered::new();
        loop {
            let wake_at = self.act(&mut renewing);
            tokio::select! {
                biased;
                message = inbox.recv() => match message {
                    Some(message) => self.on_message(message),
                    None => break,
                },
                Some(renewed) = renewing.next(), if !renewing.is_empty() => self.on_renewed(renewed),
                () = self.sleep_until(wake_at) => {}
            }
        }
    }

    async fn sleep_until(&self, wake_at: Option<Moment>) {
        match wake_at {
            Some(wake_at) => tokio::time::sleep(self.clock.now().until(wake_at).min(SLEEP_MAX)).await,
            None => std::future::pending().await,
        }
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Watch {
                hold,
                caution,
                window,
                maximum_until,
            } => {
                let ttl = hold.ttl.as_duration();
                self.roster.insert(hold.id, ttl, window, maximum_until);
                self.watched.insert(hold.id, Watched { hold, caution });
            }
            Message::Forget { id } => self.forget(id),
        }
        self.gauge.store(self.watched.len(), Ordering::Relaxed);
    }

    fn forget(&mut self, id: HoldId) {
        self.roster.remove(id);
        self.watched.remove(&id);
        self.gauge.store(self.watched.len(), Ordering::Relaxed);
    }

    /// Does what is due; gives when to look again.
    fn act(&mut self, renewing: &mut FuturesUnordered<Renewing>) -> Option<Moment> {
        let watched = &self.watched;
        let standing = |id| {
            watched
                .get(&id)
                .map_or(Standing::Over, |watched| watched.hold.standing())
        };
        let decision = self.roster.decide(self.clock.now(), standing);
        for id in &decision.lost {
            if let Some(watched) = self.watched.remove(id) {
                watched.hold.expire();
            }
        }
        if self.roster.len() < self.watched.len() {
            let roster = &self.roster;
            self.watched.retain(|id, _| roster.contains(*id));
        }
        self.gauge.store(self.watched.len(), Ordering::Relaxed);
        for ids in decision.renew.chunks(RENEW_MANY_MAX) {
            renewing.push(self.renew(ids));
        }
        decision.wake_at
    }

    fn renew(&self, ids: &[HoldId]) -> Renewing {
        let watched = ids.iter().filter_map(|id| self.watched.get(id));
        let batch = Batch::new(watched.map(|watched| Arc::clone(&watched.hold)).collect());
        Box::pin(batch.renew(self.caller.clone()))
    }

    fn on_renewed(&mut self, renewed: Renewed) {
        match renewed.answer {
            Ok(Answers { sent, asked, unasked }) => {
                for (hold, answer) in asked {
                    self.on_answer(&hold, sent, answer);
                }
                // Those that were left out when the request left may be wanted again.
                let now = self.clock.now();
                for hold in unasked {
                    self.roster.failed(hold.id, now, jitter());
                }
            }
            Err(error) => self.on_failed(&renewed.holds, error),
        }
    }

    fn on_answer(&mut self, hold: &Arc<Hold>, sent: Moment, answer: RenewReply) {
        let remaining = match answer {
            RenewReply::Renewed { remaining_ms } => remaining_ms.map(Duration::from_millis),
            RenewReply::Lost { reason } => {
                hold.ended(reason);
                // A release that is under way hears of it by itself.
                self.forget_if_over(hold);
                return;
            }
        };
        let Some(watched) = self.watched.get(&hold.id) else {
            self.on_late(hold);
            return;
        };
        // A lease whose deadline somebody took away is still renewed as it was asked for.
        let remaining = remaining.unwrap_or(hold.ttl.as_duration());
        let window = watched.caution.renewed(sent, remaining);
        match hold.extend(window.deadline) {
            Extended::Yes => {
                hold.set_renewal_failure(None);
                self.roster.renewed(hold.id, window);
            }
            Extended::TooLate => {
                self.forget(hold.id);
                self.on_late(hold);
            }
            Extended::NotWanted => self.roster.failed(hold.id, self.clock.now(), jitter()),
        }
    }

    /// A lease was renewed that the client has given up: it must not stand longer than it would have without.
    fn on_late(&self, hold: &Arc<Hold>) {
        if hold.standing() == Standing::Over && hold.is_lost() {
            self.errands.release(hold.fence.clone());
        }
    }

    fn on_failed(&mut self, holds: &[Arc<Hold>], error: CallError) {
        let (now, error) = (self.clock.now(), Arc::new(error));
        let withdrawn = matches!(*error, CallError::Withdrawn);
        if !withdrawn {
            tracing::warn!(leases = holds.len(), %error, "renewal failed");
        }
        for hold in holds {
            if !withdrawn {
                hold.set_renewal_failure(Some(Arc::clone(&error)));
            }
            self.roster.failed(hold.id, now, jitter());
        }
    }

    fn forget_if_over(&mut self, hold: &Hold) {
        if hold.standing() == Standing::Over {
            self.forget(hold.id);
        } else {
            self.roster.failed(hold.id, self.clock.now(), jitter());
        }
    }
}
