//! The states of an outbox row, and who may move it: `pending -> leased(owner, epoch, until) -> delivered | dead`.
//!
//! Each lease raises the row's epoch, and a verdict counts only with the epoch it was leased under. Times are the ledger's
//! wall clock: they say when somebody else may try, never whose verdict counts.

use crate::types::{DeliveryProgress, DeliveryState, Doubt, Note, PublisherId, Reason, UnixMillis, Verdict};

/// A new row: due at once.
pub(crate) fn begin(at: UnixMillis) -> DeliveryProgress {
    DeliveryProgress {
        state: DeliveryState::Pending { due: at },
        epoch: 0,
        tries: 0,
        first_sent: None,
        doubt: Doubt::NotDone,
        note: Note::default(),
    }
}

/// When a publisher may take the row; `None` for one that is not to be delivered any more.
pub(crate) const fn due(row: &DeliveryProgress) -> Option<UnixMillis> {
    match row.state {
        DeliveryState::Pending { due } => Some(due),
        DeliveryState::Leased { until, .. } => Some(until),
        DeliveryState::Delivered { .. } | DeliveryState::Dead { .. } | DeliveryState::Discarded { .. } => {
            None
        }
    }
}

/// The row as leased to `owner`, or `None` if it is not due. A lease that ran out without a verdict counts as a try of
/// unknown outcome: its publisher may have sent it before it died.
pub(crate) fn lease(
    row: &DeliveryProgress,
    owner: &PublisherId,
    at: UnixMillis,
    until: UnixMillis,
) -> Option<DeliveryProgress> {
    if due(row)? > at {
        return None;
    }
    let before = match row.state {
        DeliveryState::Leased { since, .. } => sent(row, since, Doubt::Unknown),
        DeliveryState::Pending { .. }
        | DeliveryState::Delivered { .. }
        | DeliveryState::Dead { .. }
        | DeliveryState::Discarded { .. } => row.clone(),
    };
    Some(DeliveryProgress {
        state: DeliveryState::Leased {
            owner: owner.clone(),
            since: at,
            until,
        },
        epoch: row.epoch.saturating_add(1),
        ..before
    })
}

/// The row after a verdict, or `None` where the verdict is that of an earlier lease.
pub(crate) fn settle(
    row: &DeliveryProgress,
    epoch: u64,
    verdict: &Verdict,
    at: UnixMillis,
) -> Option<DeliveryProgress> {
    let DeliveryState::Leased { since, .. } = row.state else {
        return None;
    };
    if row.epoch != epoch {
        return None;
    }
    Some(match verdict {
        Verdict::Delivered => DeliveryProgress {
            state: DeliveryState::Delivered { at },
            note: Note::default(),
            ..sent(row, since, Doubt::NotDone)
        },
        Verdict::Again { due, doubt, note } => DeliveryProgress {
            state: DeliveryState::Pending { due: *due },
            note: note.clone(),
            ..sent(row, since, *doubt)
        },
        Verdict::Dead { doubt, note } => DeliveryProgress {
            state: DeliveryState::Dead { at },
            note: note.clone(),
            ..sent(row, since, *doubt)
        },
        Verdict::Released => DeliveryProgress {
            state: DeliveryState::Pending { due: at },
            ..row.clone()
        },
    })
}

/// A dead or discarded row that a person wants tried again, with all its tries before it; `None` for any other. It is due
/// at once, or when `front`, the player's row that is first in line, is: so nothing else of the player is under way when it
/// is sent. What is known of earlier tries stays known, and so does when the first was sent: the outside's memory of
/// the key has not grown longer.
pub(crate) fn retry(
    row: &DeliveryProgress,
    at: UnixMillis,
    front: Option<UnixMillis>,
) -> Option<DeliveryProgress> {
    match row.state {
        DeliveryState::Dead { .. } | DeliveryState::Discarded { .. } => Some(DeliveryProgress {
            state: DeliveryState::Pending {
                due: front.map_or(at, |front| front.max(at)),
            },
            tries: 0,
            ..row.clone()
        }),
        DeliveryState::Pending { .. } | DeliveryState::Leased { .. } | DeliveryState::Delivered { .. } => {
            None
        }
    }
}

/// Whether the outside may have done what the row tells it, or a person may have by hand.
pub(crate) const fn may_be_done(row: &DeliveryProgress) -> bool {
    match row.state {
        DeliveryState::Pending { .. } | DeliveryState::Dead { .. } => matches!(row.doubt, Doubt::Unknown),
        DeliveryState::Leased { .. } | DeliveryState::Delivered { .. } | DeliveryState::Discarded { .. } => {
            true
        }
    }
}

/// A dead row that a person gives up for good; `None` for any other.
pub(crate) fn discard(row: &DeliveryProgress, reason: &Reason, at: UnixMillis) -> Option<DeliveryProgress> {
    match row.state {
        DeliveryState::Dead { .. } => Some(DeliveryProgress {
            state: DeliveryState::Discarded { at },
            note: Note::new(reason.as_str()),
            ..row.clone()
        }),
        DeliveryState::Pending { .. }
        | DeliveryState::Leased { .. }
        | DeliveryState::Delivered { .. }
        | DeliveryState::Discarded { .. } => None,
    }
}

/// One more try, begun at `since`. The outside may know the key from the first on.
fn sent(row: &DeliveryProgress, since: UnixMillis, doubt: Doubt) -> DeliveryProgress {
    DeliveryProgress {
        tries: row.tries.saturating_add(1),
        first_sent: row.first_sent.or(Some(since)),
        doubt,
        ..row.clone()
    }
}
