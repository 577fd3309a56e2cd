//! The machine's own invariants, checked after entries in debug builds and simulations, and after loading a snapshot.

use thiserror::Error;

use super::LeaseMachine;
use super::requests::RequestState;
use super::waits::Presence;
use crate::limits::DATABASES_MAX;
use crate::types::{Database, Timestamp};

/// An invariant of the machine that does not hold: a bug of ours.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invariant broken: {what}")]
pub struct Broken {
    what: String,
}

/// Above this many records a debug build checks only some entries, since a check walks all of them.
#[cfg(debug_assertions)]
const CHECK_EACH_ENTRY_BELOW: usize = 512;

macro_rules! holds {
    ($what:literal, $is_so:expr) => {
        if !$is_so {
            return Err(Broken {
                what: $what.to_owned(),
            });
        }
    };
}

impl LeaseMachine {
    /// Walks the whole state and compares it with its indexes.
    ///
    /// # Errors
    /// [`Broken`] names the first invariant that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        self.check_leases()?;
        self.check_waits()?;
        self.check_requests()?;
        self.check_endings()?;
        for (_, session) in self.sessions.iter() {
            holds!("a session holds what it counts", session.is_sound());
        }
        self.check_scripts()
    }

    fn check_scripts(&self) -> Result<(), Broken> {
        let (bytes, by_use) = self.scripts.counted();
        same("bytes of scripts", self.scripts.bytes(), bytes)?;
        same("scripts by use", by_use, self.scripts.len())
    }

    fn check_endings(&self) -> Result<(), Broken> {
        let bytes = self.endings.iter().map(|(_, ending)| ending.bytes());
        same(
            "bytes of endings",
            self.endings.bytes(),
            bytes.fold(0, usize::saturating_add),
        )?;
        let (by_token, in_order) = self.endings.index_lens();
        same("endings by token", by_token, self.endings.len())?;
        same("endings in order", in_order, self.endings.len())
    }

    #[cfg(debug_assertions)]
    pub(super) fn check_sometimes(&self) {
        let records = self.leases.records().len().saturating_add(self.requests.len());
        let records = records.saturating_add(self.endings.len());
        let every = u64::try_from(records.wrapping_div(CHECK_EACH_ENTRY_BELOW)).unwrap_or(u64::MAX);
        if self.now.as_millis().is_multiple_of(every.saturating_add(1)) {
            let checked = self.check();
            assert!(checked.is_ok(), "{checked:?} at {}", self.now);
        }
    }

    fn check_leases(&self) -> Result<(), Broken> {
        let (mut held, mut expiring, mut bytes, mut waiters) = (0_usize, 0_usize, 0_usize, 0_usize);
        let mut held_in = 0_u64;
        for database in 0..u64::from(DATABASES_MAX) {
            let database = Database::new(database).unwrap_or(Database::ZERO);
            held_in = held_in.saturating_add(self.leases.held_in(database));
        }
        holds!(
            "leases by database are all that are held",
            held_in == self.leases.held() as u64
        );
        for (slot, record) in self.leases.records().iter() {
            bytes = bytes.saturating_add(record.key.name.as_bytes().len());
            waiters = waiters.saturating_add(record.waiters as usize);
            holds!(
                "a name finds its record",
                self.leases.find(&record.key) == Some(slot)
            );
            holds!(
                "an idle name has no record",
                record.hold.is_some() || record.waiters > 0
            );
            let Some(hold) = &record.hold else { continue };
            held = held.saturating_add(1);
            let metadata = hold
                .metadata
                .as_ref()
                .map_or(0, |metadata| metadata.as_bytes().len());
            bytes = bytes
                .saturating_add(hold.owner.as_bytes().len())
                .saturating_add(metadata);
            holds!(
                "no token is above the counter",
                hold.token.get() <= self.tokens.last()
            );
            holds!("no grant lies in the future", hold.granted_at <= self.now);
            if let Some(request) = hold.request {
                let state = self.requests.get(request).map(|request| &request.state);
                holds!(
                    "a lease's request holds it",
                    state == Some(&RequestState::Held(hold.token))
                );
            }
            if hold.deadline != Timestamp::NEVER {
                expiring = expiring.saturating_add(1);
                let indexed = self.leases.deadlines().get(&(hold.deadline, hold.token));
                holds!("a deadline finds its record", indexed == Some(&slot));
            }
        }
        for (_, wait) in self.waits.iter() {
            bytes = bytes.saturating_add(wait.bytes());
        }
        same("leases held", self.leases.held(), held)?;
        same("deadlines", self.leases.deadlines().len(), expiring)?;
        same(
            "names in the index",
            self.leases.index_len(),
            self.leases.records().len(),
        )?;
        same("waiters of all names", waiters, self.waits.len())?;
        same("bytes", self.leases.bytes(), bytes)
    }

    fn check_waits(&self) -> Result<(), Broken> {
        let mut attached = 0_usize;
        for (slot, wait) in self.waits.iter() {
            holds!("a wait has a name", self.leases.get(wait.record).is_some());
            holds!(
                "an attachment finds its wait",
                self.waits.by_attachment(wait.attachment) == Some(slot)
            );
            holds!(
                "no wait began in the future",
                wait.attempt_at <= self.now && wait.id <= self.waits.last_id()
            );
            if wait.presence == Presence::Attached {
                attached = attached.saturating_add(1);
            }
            if let Some(request) = wait.request {
                let state = self.requests.get(request).map(|request| &request.state);
                holds!(
                    "a wait's request waits",
                    state == Some(&RequestState::Waiting(slot))
                );
            }
        }
        let (queued, deadlines, attachments) = self.waits.index_lens();
        same("waits in line", queued, attached)?;
        same("waits by deadline", deadlines, self.waits.len())?;
        same("waits by attachment", attachments, self.waits.len())
    }

    fn check_requests(&self) -> Result<(), Broken> {
        let (mut over, mut bytes) = (0_usize, 0_usize);
        for (slot, request) in self.requests.iter() {
            bytes = bytes.saturating_add(request.key.bytes());
            holds!(
                "a request id finds its request",
                self.requests.find(&request.key) == Some(slot)
            );
            match &request.state {
                RequestState::Over(_) => over = over.saturating_add(1),
                RequestState::Held(token) => {
                    let hold = self
                        .leases
                        .find(&request.key.key)
                        .and_then(|slot| self.leases.hold(slot));
                    let linked = hold.is_some_and(|hold| hold.token == *token && hold.request == Some(slot));
                    holds!("a granted request has its lease", linked);
                }
                RequestState::Waiting(wait) => {
                    let linked = self
                        .waits
                        .get(*wait)
                        .is_some_and(|wait| wait.request == Some(slot));
                    holds!("a waiting request has its wait", linked);
                }
            }
        }
        same("bytes of requests", self.requests.bytes(), bytes)?;
        same(
            "requests in the index",
            self.requests.index_len(),
            self.requests.len(),
        )?;
        same("requests that are over", self.requests.over_len(), over)
    }
}

fn same(what: &str, found: usize, expected: usize) -> Result<(), Broken> {
    if found == expected {
        Ok(())
    } else {
        Err(Broken {
            what: format!("{what}: {found} counted, {expected} expected"),
        })
    }
}
