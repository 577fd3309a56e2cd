//! Reads what a run has missed, many units by one statement, and shows it as rows.

use tokio_postgres::Row;

use super::link::Link;
use super::number;
use super::rows::{LoadedRows, Misses, Unit};
use super::scans;
use super::trouble::{Trouble, failed};
use crate::error::{Cause, StorageFailure};
use crate::event_id::RewardEventId;
use crate::store::codec::{self, Record};
use crate::store::keys;
use crate::store::outbox_records::{DoubtRow, OutboxRow, ReversalRow, StateRow, SubjectRow};
use crate::store::payment_records::{FindingRow, FoundByRow, PaymentRow, PaymentStatusRow};
use crate::store::records::{AnswerRow, AttemptRow, FenceRow, LedgerRow, ReceiptShown, ResetRow};
use crate::types::{AttemptId, ClaimId, PlayerId, UnixMillis};

/// Makes the fences that are missing, so that there is a row to lock: `SELECT .. FOR UPDATE` locks nothing where no row
/// is. Where another session makes the same row, this waits for it. In order, so that sessions never wait in a circle.
const MAKE_FENCES: &str = "INSERT INTO resource_fence (resource, token) \
     SELECT resource, 0 FROM unnest($1::bytea[]) AS wanted (resource) ORDER BY resource \
     ON CONFLICT (resource) DO NOTHING";
/// Reads the fences and holds them until the commit: a token that was seen here cannot be overtaken before it.
const LOCK_FENCES: &str = "SELECT resource, token, reset_from, reset_at_ms, reset_reason \
     FROM resource_fence WHERE resource = ANY($1::bytea[]) ORDER BY resource FOR UPDATE";
const READ_FENCES: &str = "SELECT resource, token, reset_from, reset_at_ms, reset_reason \
     FROM resource_fence WHERE resource = ANY($1::bytea[])";
const CLAIMS: &str = "SELECT c.player_id, c.reward_event_id, c.receipt \
     FROM unnest($1::bigint[], $2::text[]) AS wanted (player_id, reward_event_id) \
     JOIN reward_claim c USING (player_id, reward_event_id)";
const LEDGER: &str = "SELECT player_id, id, reward_event_id, item, amount FROM reward_ledger \
     WHERE id = ANY($1::bigint[])";
const OUTBOX: &str = "SELECT o.claim_id, o.player_id, o.reward_event_id, o.about, o.state, o.due_ms, o.owner, o.since_ms, \
       o.ended_ms, o.epoch, o.tries, o.first_sent_ms, o.in_doubt, o.note, c.receipt, \
       v.claim_id, v.reversal_id, v.player_id, v.reward_event_id, v.at_ms, v.reason \
     FROM reward_outbox o \
     LEFT JOIN reward_claim c ON c.player_id = o.player_id AND c.reward_event_id = o.reward_event_id \
     LEFT JOIN reward_reversal v ON v.claim_id = o.about \
     WHERE o.claim_id = ANY($1::bigint[])";
const REVERSALS: &str = "SELECT claim_id, reversal_id, player_id, reward_event_id, at_ms, reason \
     FROM reward_reversal WHERE claim_id = ANY($1::bigint[])";
/// What attempt ids are bound to; held, so that no cleaning takes it away before the commit.
const LOCK_ATTEMPTS: &str = "SELECT attempt_id FROM claim_attempt WHERE attempt_id = ANY($1::text[]) \
     ORDER BY attempt_id FOR SHARE";
pub(super) const ANSWERS: &str = "SELECT w.attempt_id, w.fence_token, w.outcome, w.at_ms, w.seen, w.receipt_shown, \
       w.fields, a.resource, a.player_id, a.reward_event_id, a.item, a.amount \
     FROM claim_answer w JOIN claim_attempt a USING (attempt_id) WHERE w.attempt_id = ANY($1::text[])";
const PAYMENTS: &str = "SELECT attempt_id, order_id, status, resource, fencing_token, currency, amount, started_at_ms, \
       found_at_ms, found_by_token, found_by_reason, note \
     FROM payment_attempt WHERE attempt_id = ANY($1::text[])";

pub(super) const PREPARED: &[&str] = &[
    MAKE_FENCES,
    LOCK_FENCES,
    READ_FENCES,
    CLAIMS,
    LEDGER,
    OUTBOX,
    REVERSALS,
    LOCK_ATTEMPTS,
    ANSWERS,
    PAYMENTS,
];

/// Steps in which one reading brings up another at the most: rows, what they are about, and the row of its reversal.
const STEPS_MAX: usize = 4;

/// Whether what is read is held until the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Yes,
    No,
}

/// The units of one kind each, as parameters.
#[derive(Debug, Default)]
struct Wanted {
    fences: Vec<Vec<u8>>,
    players: Vec<i64>,
    events: Vec<String>,
    ledger: Vec<i64>,
    outbox: Vec<i64>,
    reversals: Vec<i64>,
    attempts: Vec<String>,
    payments: Vec<String>,
}

impl Wanted {
    fn of(units: impl IntoIterator<Item = Unit>, rows: &mut LoadedRows) -> Self {
        let mut wanted = Self::default();
        for unit in units {
            if rows.knows(&unit) {
                continue;
            }
            match &unit {
                Unit::Fence(name) => wanted.fences.push(name.clone()),
                Unit::Claim(player, event) => {
                    wanted.players.push(*player);
                    wanted.events.push(event.clone());
                }
                Unit::Ledger(_, id) => wanted.ledger.push(*id),
                Unit::Outbox(id) => wanted.outbox.push(*id),
                Unit::Reversal(id) => wanted.reversals.push(*id),
                Unit::Attempt(attempt) => wanted.attempts.push(attempt.clone()),
                Unit::Payment(attempt) => wanted.payments.push(attempt.clone()),
            }
            rows.know(unit);
        }
        wanted
    }
}

/// Reads what was missed. Statements are sent one behind the other, without waiting for answers between them.
pub(super) async fn fetch(
    link: &Link,
    rows: &mut LoadedRows,
    misses: Misses,
    hold: Hold,
) -> Result<(), Trouble> {
    let wanted = Wanted::of(misses.units, rows);
    let (found, mut units) = tokio::try_join!(
        biased;
        read_units(link, &wanted, hold),
        scans::fetch(link, rows, misses.spans),
    )?;
    units.extend(found.put(rows)?);
    for _ in 0..STEPS_MAX {
        if units.is_empty() {
            break;
        }
        let wanted = Wanted::of(std::mem::take(&mut units), rows);
        units = read_units(link, &wanted, hold).await?.put(rows)?;
    }
    Ok(())
}

/// What was found of each kind.
struct Found {
    fences: Vec<Row>,
    attempts: Vec<Row>,
    claims: Vec<Row>,
    ledger: Vec<Row>,
    outbox: Vec<Row>,
    reversals: Vec<Row>,
    payments: Vec<Row>,
}

async fn read_units(link: &Link, wanted: &Wanted, hold: Hold) -> Result<Found, Trouble> {
    let w = wanted;
    let fences = async {
        if w.fences.is_empty() {
            return Ok(Vec::new());
        }
        if hold == Hold::No {
            return link.rows("read the fences", READ_FENCES, &[&w.fences]).await;
        }
        let (_, fences) = tokio::try_join!(
            biased;
            async { link.write("make the fences", MAKE_FENCES, &[&w.fences]).await },
            async { link.rows("lock the fences", LOCK_FENCES, &[&w.fences]).await },
        )?;
        Ok(fences)
    };
    let attempts = async {
        if w.attempts.is_empty() {
            return Ok(Vec::new());
        }
        if hold == Hold::No {
            return link.rows("read the answers", ANSWERS, &[&w.attempts]).await;
        }
        let (_, answers) = tokio::try_join!(
            biased;
            async { link.rows("lock the attempts", LOCK_ATTEMPTS, &[&w.attempts]).await },
            async { link.rows("read the answers", ANSWERS, &[&w.attempts]).await },
        )?;
        Ok(answers)
    };
    let (fences, attempts, claims, ledger, outbox, reversals, payments) = tokio::try_join!(
        biased;
        fences,
        attempts,
        async { if w.events.is_empty() { return Ok(Vec::new()); } link.rows("read the claims", CLAIMS, &[&w.players, &w.events]).await },
        async { if w.ledger.is_empty() { return Ok(Vec::new()); } link.rows("read the ledger", LEDGER, &[&w.ledger]).await },
        async { if w.outbox.is_empty() { return Ok(Vec::new()); } link.rows("read the outbox", OUTBOX, &[&w.outbox]).await },
        async { if w.reversals.is_empty() { return Ok(Vec::new()); } link.rows("read reversals", REVERSALS, &[&w.reversals]).await },
        async { if w.payments.is_empty() { return Ok(Vec::new()); } link.rows("read payments", PAYMENTS, &[&w.payments]).await },
    )?;
    Ok(Found {
        fences,
        attempts,
        claims,
        ledger,
        outbox,
        reversals,
        payments,
    })
}

impl Found {
    /// Answers with further units that those which were found bring up.
    fn put(&self, rows: &mut LoadedRows) -> Result<Vec<Unit>, StorageFailure> {
        let mut further = Vec::new();
        for row in &self.fences {
            put_fence(rows, row)?;
        }
        for row in &self.claims {
            put_claim(rows, row, 0)?;
        }
        for row in &self.ledger {
            put_ledger(rows, row)?;
        }
        for row in &self.outbox {
            further.extend(put_outbox(rows, row)?);
        }
        for row in &self.reversals {
            further.push(put_reversal(rows, row, 0)?);
        }
        for row in &self.attempts {
            put_answer(rows, row)?;
        }
        for row in &self.payments {
            put_payment(rows, row)?;
        }
        Ok(further)
    }
}

/// A fence of `resource, token, reset_from, reset_at_ms, reset_reason`; answers with its key, if a claim or an operator
/// has set it.
pub(super) fn put_fence(rows: &mut LoadedRows, row: &Row) -> Result<Option<Vec<u8>>, StorageFailure> {
    let bytes: &[u8] = column(row, 0)?;
    let resource = lease_core::LeaseName::new(bytes)
        .map_err(|_| corrupt("fence", bytes.escape_ascii(), "its resource is too long"))?;
    let reset_from: Option<i64> = column(row, 2)?;
    let last_reset = match reset_from {
        Some(from) => Some(ResetRow {
            from: number("fence", from)?,
            at_ms: number("fence", column(row, 3)?)?,
            reason: column(row, 4)?,
        }),
        None => None,
    };
    let token = number("fence", column(row, 1)?)?;
    rows.know(Unit::Fence(bytes.to_vec()));
    if token == 0 && last_reset.is_none() {
        return Ok(None);
    }
    let key = keys::fence(&resource);
    rows.put(key.clone(), encode(&FenceRow { token, last_reset })?);
    Ok(Some(key))
}

/// A claim of `player_id, reward_event_id, receipt` from column `at` on.
pub(super) fn put_claim(rows: &mut LoadedRows, row: &Row, at: usize) -> Result<Vec<u8>, StorageFailure> {
    let (player, event): (i64, &str) = (column(row, at)?, column(row, at + 1)?);
    let key = claim_key(player, event)?;
    rows.know(Unit::Claim(player, event.to_owned()));
    rows.put(key.clone(), column(row, at + 2)?);
    Ok(key)
}

fn claim_key(player: i64, event: &str) -> Result<Vec<u8>, StorageFailure> {
    let id = RewardEventId::stored(event).map_err(|error| corrupt("claim", event, error))?;
    Ok(keys::claim(PlayerId::new(player), &id))
}

/// A ledger row of `player_id, id, reward_event_id, item, amount`.
pub(super) fn put_ledger(rows: &mut LoadedRows, row: &Row) -> Result<Vec<u8>, StorageFailure> {
    let (player, id): (i64, i64) = (column(row, 0)?, column(row, 1)?);
    let record = LedgerRow {
        event: column(row, 2)?,
        item: column(row, 3)?,
        amount: column(row, 4)?,
    };
    let key = keys::ledger(PlayerId::new(player), ClaimId::new(number("ledger", id)?));
    rows.know(Unit::Ledger(player, id));
    rows.put(key.clone(), encode(&record)?);
    Ok(key)
}

/// An outbox row with what it is about; answers with what is to be read beside it.
fn put_outbox(rows: &mut LoadedRows, row: &Row) -> Result<Option<Unit>, StorageFailure> {
    let id = ClaimId::new(number("outbox", column(row, 0)?)?);
    let (player, event): (i64, &str) = (column(row, 1)?, column(row, 2)?);
    let about: i64 = column(row, 3)?;
    let record = outbox_row(row, id)?;
    if record.due().is_some() {
        rows.put(keys::open(PlayerId::new(player), id), Vec::new());
    }
    if matches!(record.state, StateRow::Dead { .. }) {
        rows.put(keys::dead(id), Vec::new());
    }
    rows.put(keys::outbox(id), encode(&record)?);
    rows.know(Unit::Claim(player, event.to_owned()));
    if let Some(receipt) = column::<Option<Vec<u8>>>(row, 14)? {
        rows.put(claim_key(player, event)?, receipt);
    }
    rows.know(Unit::Reversal(about));
    match column::<Option<i64>>(row, 15)? {
        Some(_) => Ok(Some(put_reversal(rows, row, 15)?)),
        None => Ok(None),
    }
}

fn outbox_row(row: &Row, id: ClaimId) -> Result<OutboxRow, StorageFailure> {
    let about = number("outbox", column(row, 3)?)?;
    let state: &str = column(row, 4)?;
    let time = |at: usize| -> Result<Option<u64>, StorageFailure> {
        column::<Option<i64>>(row, at)?
            .map(|at| number("outbox", at))
            .transpose()
    };
    let state = match (state, time(5)?, time(7)?, time(8)?) {
        ("pending", Some(due_ms), None, None) => StateRow::Pending { due_ms },
        ("leased", Some(until_ms), Some(since_ms), None) => StateRow::Leased {
            owner: column(row, 6)?,
            since_ms,
            until_ms,
        },
        ("delivered", None, None, Some(at_ms)) => StateRow::Delivered { at_ms },
        ("dead", None, None, Some(at_ms)) => StateRow::Dead { at_ms },
        ("discarded", None, None, Some(at_ms)) => StateRow::Discarded { at_ms },
        _ => return Err(corrupt("outbox", id, "its columns do not fit together")),
    };
    let tries = number("outbox", column(row, 10)?)?;
    Ok(OutboxRow {
        player: column(row, 1)?,
        event: column(row, 2)?,
        subject: match about == id.get() {
            true => SubjectRow::Grant,
            false => SubjectRow::Reversal { claim_id: about },
        },
        state,
        epoch: number("outbox", column(row, 9)?)?,
        tries: u32::try_from(tries).map_err(|error| corrupt("outbox", id, error))?,
        first_sent_ms: time(11)?,
        doubt: match column(row, 12)? {
            true => DoubtRow::Unknown,
            false => DoubtRow::NotDone,
        },
        note: column(row, 13)?,
    })
}

/// A reversal of `claim_id, reversal_id, player_id, reward_event_id, at_ms, reason` from column `at` on; answers with its
/// outbox row, which is to be read beside it.
fn put_reversal(rows: &mut LoadedRows, row: &Row, at: usize) -> Result<Unit, StorageFailure> {
    let (claim_id, id): (i64, i64) = (column(row, at)?, column(row, at + 1)?);
    let record = ReversalRow {
        id: number("reversal", id)?,
        player: column(row, at + 2)?,
        event: column(row, at + 3)?,
        at_ms: number("reversal", column(row, at + 4)?)?,
        reason: column(row, at + 5)?,
    };
    let key = keys::reversal(ClaimId::new(number("reversal", claim_id)?));
    rows.put(key, encode(&record)?);
    Ok(Unit::Outbox(id))
}

/// An answer and what its attempt is bound to, as [`ANSWERS`] reads them; answers with its key.
pub(super) fn put_answer(rows: &mut LoadedRows, row: &Row) -> Result<Vec<u8>, StorageFailure> {
    let text: &str = column(row, 0)?;
    let attempt = AttemptId::new(text).map_err(|error| corrupt("answer", text, error))?;
    let token = match number("answer", column(row, 1)?)? {
        0 => None,
        token => Some(
            lease_core::FenceToken::new(token)
                .map_err(|_| corrupt("answer", text, "its token breaks its rule"))?,
        ),
    };
    let outcome: &str = column(row, 2)?;
    let seen: Option<i64> = column(row, 4)?;
    let shown: Option<bool> = column(row, 5)?;
    let fields: Option<i16> = column(row, 6)?;
    let answer = match (outcome, seen, shown, fields) {
        ("accepted", None, None, None) => AnswerRow::Accepted,
        ("stale", Some(seen), Some(shown), None) => AnswerRow::Stale {
            seen: number("answer", seen)?,
            receipt: if shown {
                ReceiptShown::Yes
            } else {
                ReceiptShown::No
            },
        },
        ("conflict", None, None, Some(fields)) => AnswerRow::EventConflict {
            fields: u8::try_from(fields).map_err(|error| corrupt("answer", text, error))?,
        },
        _ => return Err(corrupt("answer", text, "its columns do not fit together")),
    };
    let record = AttemptRow {
        resource: column(row, 7)?,
        player: column(row, 8)?,
        event: column(row, 9)?,
        item: column(row, 10)?,
        amount: column(row, 11)?,
        at_ms: number("answer", column(row, 3)?)?,
        answer,
    };
    let key = keys::attempt(&attempt, token);
    rows.put(key.clone(), encode(&record)?);
    Ok(key)
}

/// A payment attempt, as [`PAYMENTS`] reads it; answers with its key.
pub(super) fn put_payment(rows: &mut LoadedRows, row: &Row) -> Result<Vec<u8>, StorageFailure> {
    let text: &str = column(row, 0)?;
    let attempt = AttemptId::new(text).map_err(|error| corrupt("payment attempt", text, error))?;
    let status: &str = column(row, 2)?;
    let status = match (status, finding(row, text)?) {
        ("READY", None) => PaymentStatusRow::Ready,
        ("unknown", Some(finding)) => PaymentStatusRow::Unknown(finding),
        ("approved", Some(finding)) => PaymentStatusRow::Approved(finding),
        ("failed", Some(finding)) => PaymentStatusRow::Failed(finding),
        _ => {
            return Err(corrupt(
                "payment attempt",
                text,
                "its columns do not fit together",
            ));
        }
    };
    let record = PaymentRow {
        order: column(row, 1)?,
        resource: column(row, 3)?,
        token: number("payment attempt", column(row, 4)?)?,
        currency: column(row, 5)?,
        amount: column(row, 6)?,
        started_at_ms: number("payment attempt", column(row, 7)?)?,
        status,
    };
    let key = keys::payment(&attempt);
    rows.know(Unit::Payment(text.to_owned()));
    rows.put(key.clone(), encode(&record)?);
    Ok(key)
}

fn finding(row: &Row, attempt: &str) -> Result<Option<FindingRow>, StorageFailure> {
    let Some(at) = column::<Option<i64>>(row, 8)? else {
        return Ok(None);
    };
    let by = match (column::<Option<i64>>(row, 9)?, column::<Option<String>>(row, 10)?) {
        (Some(token), None) => FoundByRow::Worker {
            token: number("payment attempt", token)?,
        },
        (None, Some(reason)) => FoundByRow::Person { reason },
        (Some(_), Some(_)) | (None, None) => {
            return Err(corrupt(
                "payment attempt",
                attempt,
                "nobody, or two, have found out",
            ));
        }
    };
    Ok(Some(FindingRow {
        at_ms: number("payment attempt", at)?,
        by,
        note: column(row, 11)?,
    }))
}

/// A time in a column.
pub(super) fn time(record: &'static str, at_ms: i64) -> Result<UnixMillis, StorageFailure> {
    Ok(UnixMillis::new(number(record, at_ms)?))
}

/// A column of the type that our own table gives it.
pub(super) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    at: usize,
) -> Result<T, StorageFailure> {
    row.try_get(at).map_err(|error| failed("read a row", error))
}

pub(super) fn corrupt(
    record: &'static str,
    key: impl std::fmt::Display,
    source: impl Into<Cause>,
) -> StorageFailure {
    StorageFailure::CorruptRow {
        record,
        key: key.to_string(),
        source: source.into(),
    }
}

pub(super) fn encode<T: Record>(record: &T) -> Result<Vec<u8>, StorageFailure> {
    codec::encode(record).map_err(|source| StorageFailure::Database {
        action: "encode a row",
        source: source.into(),
    })
}
