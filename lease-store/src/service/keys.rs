//! The commands of Redis's string keys: a key is a lease, and its value names the owner.

use lease_core::limits::{KEYS_PER_CHANGE_MAX, REPLY_VALUES_BYTES_MAX};
use lease_core::machine::{
    Command, Holder, KeyCommand, LeaseKey, Outcome, Refusal, Set, SetCondition, Sighting, TtlCondition,
    Watched,
};
use lease_core::redis::{Change, Look, too_many_values};
use lease_core::wire::Reply;
use lease_core::{FenceToken, OwnerId, Ttl};

use super::CallError;
use super::leases::unexpected;
use crate::orphans::IfUndelivered;
use crate::runtime::Rt;
use crate::store::{Seen, Store};

/// What `SET` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// It stored the value.
    Yes {
        /// The token under which the key is held now.
        token: FenceToken,
        /// The value before, if any.
        previous: Option<OwnerId>,
    },
    /// Its condition did not hold.
    No {
        /// The value that stands, if any.
        current: Option<OwnerId>,
    },
}

/// What is left of a key's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtlAnswer {
    /// There is no such key.
    NoKey,
    /// It has no deadline.
    NoDeadline,
    /// Milliseconds.
    Remaining(u64),
}

impl<R: Rt> Store<R> {
    /// Stores a value, as Redis's `SET`.
    ///
    /// A key that `NX` took for a caller that is gone before its answer is released; any other `SET` stays, as it
    /// would with Redis.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. What `NX` took is released then; any other `SET` stays.
    pub async fn set(&self, set: Set) -> Result<Stored, CallError> {
        match self.change(KeyCommand::Set(set)).await? {
            Outcome::Stored { token, previous } => Ok(Stored::Yes { token, previous }),
            Outcome::NotStored { current } => Ok(Stored::No { current }),
            other => Err(unexpected("SET", other)),
        }
    }

    /// Applies one of Redis's commands on keys, and gives its outcome.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// As [`Store::set`], where it is a `SET NX`; else dropped, it may or may not be applied.
    pub async fn change(&self, command: KeyCommand) -> Result<Outcome, CallError> {
        let if_undelivered = match &command {
            KeyCommand::Set(set) if set.condition == SetCondition::IfAbsent => {
                IfUndelivered::Release(set.key.clone())
            }
            _ => IfUndelivered::Keep,
        };
        match self.submit(&command.into(), if_undelivered).await? {
            Outcome::Refused(refusal) => Err(refusal.into()),
            outcome => Ok(outcome),
        }
    }

    /// Applies several commands with nothing in between; `None` if a watched key was changed, and nothing was applied.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied.
    pub async fn transaction(
        &self,
        watched: Vec<Watched>,
        commands: Vec<KeyCommand>,
    ) -> Result<Option<Vec<Outcome>>, CallError> {
        if commands.iter().all(|command| !command.changes()) {
            return self.reading_transaction(watched, commands).await;
        }
        let command = Command::Transaction { watched, commands };
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::Transaction(outcomes) => Ok(Some(outcomes)),
            Outcome::WatchFailed => Ok(None),
            other => Err(unexpected("EXEC", other)),
        }
    }

    /// A transaction that changes nothing costs no entry of the log.
    async fn reading_transaction(
        &self,
        watched_before: Vec<Watched>,
        commands: Vec<KeyCommand>,
    ) -> Result<Option<Vec<Outcome>>, CallError> {
        let looks: Vec<Vec<LeaseKey>> = commands
            .into_iter()
            .map(|command| match command {
                KeyCommand::Look { keys } => keys,
                _ => Vec::new(),
            })
            .collect();
        let keys: Vec<LeaseKey> = watched_before
            .iter()
            .map(|watched| &watched.key)
            .chain(looks.iter().flatten())
            .cloned()
            .collect();
        if keys.len() > KEYS_PER_CHANGE_MAX {
            let max = KEYS_PER_CHANGE_MAX as u64;
            return Err(Refusal::TooManyKeys { max }.into());
        }
        let mut seen = self.see_all(&keys).await?.into_iter();
        for before in watched_before {
            let now = seen.next().flatten();
            if watched(before.key.clone(), now.as_ref()) != before {
                return Ok(None);
            }
        }
        let outcomes = looks.iter().map(|keys| {
            let of_one = seen.by_ref().take(keys.len());
            Outcome::Looked(of_one.map(|seen| seen.map(holder)).collect())
        });
        Ok(Some(outcomes.collect()))
    }

    /// Keys as they are now, to find out later whether they were changed. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn sight(&self, keys: Vec<LeaseKey>) -> Result<Vec<Watched>, CallError> {
        let seen = self.see_all(&keys).await?;
        Ok(keys
            .into_iter()
            .zip(&seen)
            .map(|(key, seen)| watched(key, seen.as_ref()))
            .collect())
    }

    /// Who holds each of these keys, as of one moment. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn look(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, CallError> {
        let seen = self.see_all(keys).await?;
        Ok(seen.into_iter().map(|seen| seen.map(holder)).collect())
    }

    /// The value of a key. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn value(&self, key: &LeaseKey) -> Result<Option<OwnerId>, CallError> {
        Ok(self.see(key).await?.map(|seen| seen.lease.owner))
    }

    /// What is left of a key's time. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn ttl(&self, key: &LeaseKey) -> Result<TtlAnswer, CallError> {
        Ok(self.see(key).await?.map_or(TtlAnswer::NoKey, |seen| {
            seen.remaining_ms()
                .map_or(TtlAnswer::NoDeadline, TtlAnswer::Remaining)
        }))
    }

    /// Ends a key, whoever holds it, and says whether there was one.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropped, it may or may not be applied, and asking again could end the next holder's key.
    pub async fn delete(&self, key: LeaseKey) -> Result<bool, CallError> {
        match self.submit(&Command::Delete { key }, IfUndelivered::Keep).await? {
            Outcome::Released { .. } => Ok(true),
            Outcome::NotFound => Ok(false),
            other => Err(unexpected("DEL", other)),
        }
    }

    /// Sets a key's deadline, whoever holds it (`None` takes it away), and says whether it was set.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropped, it may or may not be applied, and asking again could hit the next holder's key.
    pub async fn set_ttl(
        &self,
        key: LeaseKey,
        ttl: Option<Ttl>,
        condition: TtlCondition,
    ) -> Result<bool, CallError> {
        let command = Command::SetTtl { key, ttl, condition };
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::TtlSet => Ok(true),
            Outcome::NotFound | Outcome::Unchanged => Ok(false),
            other => Err(unexpected("PEXPIRE", other)),
        }
    }
}

/// How an outcome of a change is answered.
pub(crate) fn changed(asked: &Change, outcome: Outcome) -> Reply {
    match asked.reply(&outcome) {
        Some(reply) => reply,
        None => unexpected("a command on keys", outcome).to_reply(),
    }
}

/// Bytes of values that the reads of one transaction may still be answered with.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Room {
    /// That of a whole transaction.
    pub(crate) const fn whole() -> Self {
        Self(REPLY_VALUES_BYTES_MAX)
    }
}

/// How what a transaction saw is answered: with an error in place of values that have no room any more.
pub(crate) fn looked(asked: &Look, outcome: Outcome, wall_ms: i64, room: &mut Room) -> Reply {
    match outcome {
        Outcome::Looked(seen) => match room.0.checked_sub(asked.value_bytes(&seen)) {
            Some(left) => {
                room.0 = left;
                asked.reply(&seen, wall_ms)
            }
            None => too_many_values().into(),
        },
        other => unexpected("a read of keys", other).to_reply(),
    }
}

fn watched(key: LeaseKey, seen: Option<&Seen>) -> Watched {
    let seen = seen.map(|seen| Sighting {
        token: seen.lease.token,
        deadline: seen.lease.deadline,
    });
    Watched { key, seen }
}

fn holder(seen: Seen) -> Holder {
    Holder {
        remaining_ms: seen.remaining_ms(),
        held_for_ms: seen.held_for_ms(),
        token: seen.lease.token,
        owner: seen.lease.owner,
        waiters: seen.lease.waiters,
    }
}
