//! The `LEASE.*` commands.

use lease_core::limits::{HISTORY_COUNT_MAX, LIST_COUNT_MAX};
use lease_core::machine::{
    Acquire, Command, EndReason, Holder, LeaseInfo, LeaseKey, Outcome, ReleaseCause, Renewal, Wait,
};
use lease_core::wire::{
    AcquireCommand, AcquireReply, CancelReply, ForceReply, GetReply, HistoryEntry, HistoryEvent,
    HistoryReply, LeaderReply, LeaseCommand, LeaseView, ListCommand, ListCursor, ListEntry, ListReply,
    LossReason, ReleaseReply, RenewCommand, RenewManyCommand, RenewManyReply, RenewReply, Reply, TokenReply,
};
use lease_core::{Database, FenceToken, LeaseName, OwnerId, RequestId, SharedBytes, Timestamp};

use std::sync::Arc;

use super::CallError;
use crate::error::StoreError;
use crate::events::{LeaseEvent, LeaseEventKind};
use crate::orphans::IfUndelivered;
use crate::runtime::Rt;
use crate::store::Store;

/// Leases of one page if the client names no count.
const LIST_COUNT_DEFAULT: u64 = 100;
/// Events of one answer if the client names no count.
const HISTORY_COUNT_DEFAULT: u64 = 20;

impl<R: Rt> Store<R> {
    /// Serves one `LEASE.*` command as the server does: the answer, or an error reply, as it is sent.
    ///
    /// # Cancel safety
    /// Dropping the future gives the caller up, as if its connection had broken: what is in the log stays, a wait is
    /// detached, and a grant without a request id is released.
    pub async fn execute(&self, database: Database, command: LeaseCommand) -> Reply {
        let replied = match command {
            LeaseCommand::Acquire(command) => self
                .acquire(database, command)
                .await
                .map(|reply| reply.to_reply()),
            LeaseCommand::Renew(command) => self.renew(database, command).await.map(|reply| reply.to_reply()),
            LeaseCommand::RenewMany(command) => self
                .renew_many(database, command)
                .await
                .map(|reply| reply.to_reply()),
            LeaseCommand::Release { name, token } => self
                .release(database, name, token)
                .await
                .map(|reply| reply.to_reply()),
            LeaseCommand::Cancel { name, owner, request } => self
                .cancel(database, name, owner, request)
                .await
                .map(|reply| reply.to_reply()),
            LeaseCommand::Get { name } => self.get(database, name).await.map(|reply| reply.to_reply()),
            LeaseCommand::List(command) => self.list(database, command).await.map(|reply| reply.to_reply()),
            LeaseCommand::Token { name, owner } => self
                .token(database, name, &owner)
                .await
                .map(|reply| reply.to_reply()),
            LeaseCommand::Force { name, reason } => self
                .force(database, name, reason)
                .await
                .map(|reply| reply.to_reply()),
            LeaseCommand::History { name, count } => {
                self.history(database, name, count).map(|reply| reply.to_reply())
            }
            LeaseCommand::Leader => Ok(self.leader_hint().to_reply()),
        };
        replied.unwrap_or_else(|error| error.to_reply())
    }

    /// Takes a lease, or waits for it.
    ///
    /// # Errors
    /// [`CallError`] says whether the request may have been applied; then try again with the same request id.
    ///
    /// # Cancel safety
    /// Dropping the future gives the caller up: a wait is detached (with a request id it keeps its place for two
    /// seconds), and a grant without a request id is released. One with a request id stays for its retry or its ttl.
    pub async fn acquire(
        &self,
        database: Database,
        command: AcquireCommand,
    ) -> Result<AcquireReply, CallError> {
        let AcquireCommand {
            name,
            owner,
            ttl,
            wait_ms,
            request,
            metadata,
        } = command;
        let key = LeaseKey::new(database, name);
        let if_undelivered = if request.is_some() {
            IfUndelivered::Keep
        } else {
            IfUndelivered::Release(key.clone())
        };
        let acquire = Acquire {
            key,
            owner,
            ttl,
            wait: None,
            request,
            metadata,
        };
        let outcome = if wait_ms == 0 {
            self.submit(&Command::Acquire(acquire), if_undelivered).await?
        } else {
            let command = |attachment| {
                let wait = Some(Wait {
                    for_ms: wait_ms,
                    attachment,
                });
                Command::Acquire(Acquire { wait, ..acquire })
            };
            self.submit_waiting(command, if_undelivered).await?
        };
        acquired(outcome)
    }

    /// Extends a lease that still stands.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied; asking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. Asking again does no harm.
    pub async fn renew(&self, database: Database, command: RenewCommand) -> Result<RenewReply, CallError> {
        let RenewCommand { name, token, ttl } = command;
        let renewal = Renewal {
            key: LeaseKey::new(database, name),
            token,
            ttl,
        };
        renewed(self.submit(&Command::Renew(renewal), IfUndelivered::Keep).await?)
    }

    /// Extends several leases in one entry, each on its own.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied; asking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. Asking again does no harm.
    pub async fn renew_many(
        &self,
        database: Database,
        command: RenewManyCommand,
    ) -> Result<RenewManyReply, CallError> {
        let renewals = command.leases.into_iter().map(|(name, token)| Renewal {
            key: LeaseKey::new(database, name),
            token,
            ttl: None,
        });
        let command = Command::RenewMany(renewals.collect());
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::RenewedMany(outcomes) => {
                let answers = outcomes.into_iter().map(renewed).collect::<Result<_, _>>()?;
                Ok(RenewManyReply { answers })
            }
            other => Err(unexpected("LEASE.MRENEW", other)),
        }
    }

    /// Ends a lease by its token.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied; asking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. Asking again does no harm.
    pub async fn release(
        &self,
        database: Database,
        name: LeaseName,
        token: FenceToken,
    ) -> Result<ReleaseReply, CallError> {
        let key = LeaseKey::new(database, name);
        let command = Command::Release {
            key,
            token,
            cause: ReleaseCause::Holder,
        };
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::Released { .. } => Ok(ReleaseReply::Released),
            Outcome::Lost { reason } => Ok(ReleaseReply::Lost {
                reason: loss_reason(reason),
            }),
            other => Err(unexpected("LEASE.RELEASE", other)),
        }
    }

    /// Gives a request up, for good: ends its wait, or its lease if it was granted.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied; asking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. Asking again does no harm.
    pub async fn cancel(
        &self,
        database: Database,
        name: LeaseName,
        owner: OwnerId,
        request: RequestId,
    ) -> Result<CancelReply, CallError> {
        let command = Command::Cancel {
            key: LeaseKey::new(database, name),
            owner,
            request,
        };
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::Cancelled => Ok(CancelReply::Cancelled),
            Outcome::Released { token } => Ok(CancelReply::Released { token }),
            Outcome::NotFound => Ok(CancelReply::NotFound),
            other => Err(unexpected("LEASE.CANCEL", other)),
        }
    }

    /// Who holds a lease. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn get(&self, database: Database, name: LeaseName) -> Result<GetReply, CallError> {
        let seen = self.see(&LeaseKey::new(database, name)).await?;
        let lease = seen.map(|seen| LeaseView {
            remaining_ms: seen.remaining_ms(),
            held_for_ms: seen.held_for_ms(),
            owner: seen.lease.owner,
            token: seen.lease.token,
            waiters: seen.lease.waiters,
            metadata: seen.lease.metadata,
        });
        Ok(GetReply { lease })
    }

    /// The token of a lease, if `owner` holds it. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn token(
        &self,
        database: Database,
        name: LeaseName,
        owner: &OwnerId,
    ) -> Result<TokenReply, CallError> {
        let seen = self.see(&LeaseKey::new(database, name)).await?;
        let token = seen
            .filter(|seen| seen.lease.owner == *owner)
            .map(|seen| seen.lease.token);
        Ok(TokenReply { token })
    }

    /// One page of the leases of a database.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn list(&self, database: Database, command: ListCommand) -> Result<ListReply, CallError> {
        let cursor = match &command.cursor {
            Some(cursor) => parse_cursor(cursor)?,
            None => 0,
        };
        let count = command.count.unwrap_or(LIST_COUNT_DEFAULT).min(LIST_COUNT_MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let look = |machine: &lease_core::machine::LeaseMachine, at| {
            (
                machine.list(database, command.prefix.as_slice(), cursor, count),
                at,
            )
        };
        let (page, at) = self.survey(look).await?;
        let next = (page.next_cursor != 0).then(|| ListCursor::new(page.next_cursor.to_string()));
        Ok(ListReply {
            next,
            leases: page.leases.into_iter().map(|lease| listed(lease, at)).collect(),
        })
    }

    /// Ends a lease against its holder's will. Exclusion ends at once: the holder learns of it at its next renewal.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied; asking again would end the next holder's lease.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropped, it may or may not be applied, and asking again could end the next holder's lease.
    pub async fn force(
        &self,
        database: Database,
        name: LeaseName,
        reason: SharedBytes,
    ) -> Result<ForceReply, CallError> {
        tracing::warn!(database = %database, lease = %name, %reason, "forced release");
        let command = Command::Force {
            key: LeaseKey::new(database, name),
            reason,
        };
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::Released { token } => Ok(ForceReply::Released { token }),
            Outcome::NotFound => Ok(ForceReply::NotHeld),
            other => Err(unexpected("LEASE.FORCE", other)),
        }
    }

    /// Who leads, as this node knows it: for clients that look for the shortest way.
    #[must_use]
    pub fn leader_hint(&self) -> LeaderReply {
        let status = self.status();
        LeaderReply {
            node: status.node,
            leader: self.leader(),
            term: status.term,
        }
    }

    /// What happened to a lease lately, from this node's memory.
    ///
    /// # Errors
    /// [`CallError`] once the node has failed: it answers nothing from memory then.
    pub fn history(
        &self,
        database: Database,
        name: LeaseName,
        count: Option<u64>,
    ) -> Result<HistoryReply, CallError> {
        if let Some(failure) = self.failure() {
            return Err(StoreError::Failed(Arc::new(failure)).into());
        }
        let count = count.unwrap_or(HISTORY_COUNT_DEFAULT).min(HISTORY_COUNT_MAX);
        let events = self.events(
            &LeaseKey::new(database, name),
            usize::try_from(count).unwrap_or(usize::MAX),
        );
        Ok(HistoryReply {
            events: events.into_iter().map(history_entry).collect(),
        })
    }
}

fn acquired(outcome: Outcome) -> Result<AcquireReply, CallError> {
    match outcome {
        Outcome::Granted {
            token,
            remaining_ms,
            waited_ms,
        } => Ok(AcquireReply::Granted {
            token,
            remaining_ms,
            waited_ms,
        }),
        Outcome::Held(Holder {
            token,
            owner,
            remaining_ms,
            held_for_ms,
            waiters,
        }) => Ok(AcquireReply::Held {
            token,
            remaining_ms,
            owner,
            held_for_ms,
            waiters,
        }),
        Outcome::Ended { token, reason } => Ok(AcquireReply::Ended {
            token,
            reason: loss_reason(reason),
        }),
        Outcome::Cancelled => Ok(AcquireReply::Ended {
            token: None,
            reason: LossReason::Cancelled,
        }),
        Outcome::Moved => Err(CallError::Moved),
        Outcome::WaitOver => Err(CallError::WaitOver),
        other => Err(unexpected("LEASE.ACQUIRE", other)),
    }
}

fn renewed(outcome: Outcome) -> Result<RenewReply, CallError> {
    match outcome {
        Outcome::Renewed { remaining_ms } => Ok(RenewReply::Renewed { remaining_ms }),
        Outcome::Lost { reason } => Ok(RenewReply::Lost {
            reason: loss_reason(reason),
        }),
        other => Err(unexpected("LEASE.RENEW", other)),
    }
}

pub(super) fn unexpected(command: &'static str, outcome: Outcome) -> CallError {
    if let Outcome::Refused(refusal) = outcome {
        return CallError::Refused(refusal);
    }
    tracing::error!(
        command,
        ?outcome,
        "the machine answered what this command is never answered"
    );
    CallError::Unexpected { command }
}

fn loss_reason(reason: EndReason) -> LossReason {
    match reason {
        EndReason::Expired => LossReason::Expired,
        EndReason::Released => LossReason::Released,
        EndReason::Forced { reason } => LossReason::Forced { reason },
        EndReason::Superseded => LossReason::Superseded,
        EndReason::Overridden => LossReason::Overridden,
        EndReason::Orphaned => LossReason::Orphaned,
        EndReason::Cancelled => LossReason::Cancelled,
        EndReason::Unknown => LossReason::Unknown,
    }
}

fn parse_cursor(cursor: &ListCursor) -> Result<u32, CallError> {
    let number = std::str::from_utf8(cursor.as_bytes())
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or(CallError::Invalid(lease_core::InvalidValue::NotANumber {
        what: "cursor",
    }))
}

fn listed(lease: LeaseInfo, at: Timestamp) -> ListEntry {
    let remaining_ms = (lease.deadline != Timestamp::NEVER).then(|| lease.deadline.millis_since(at));
    ListEntry {
        name: lease.name,
        owner: lease.owner,
        token: lease.token,
        remaining_ms,
        waiters: lease.waiters,
    }
}

fn history_entry(event: LeaseEvent) -> HistoryEntry {
    let LeaseEvent {
        owner,
        token,
        at,
        kind,
        ..
    } = event;
    let (event, reason) = match kind {
        LeaseEventKind::Granted => (HistoryEvent::Granted, None),
        LeaseEventKind::Ended { reason } => (HistoryEvent::Ended, Some(loss_reason(reason))),
    };
    HistoryEntry {
        event,
        token,
        owner,
        at,
        reason,
    }
}
