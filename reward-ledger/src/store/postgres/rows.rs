//! The rows that a transaction has read so far, and what it would have read beyond them.
//!
//! A run over them that misses nothing has seen what the database holds. One that misses something goes on as if nothing
//! were there, so that it finds out much of what is missed at once; what it decided does not count. Lists that other
//! stores keep as rows of their own (open and dead outbox rows, claims by event, by token, by time) are read out of the
//! tables here; their writes are left out.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::error::StorageFailure;
use crate::store::keys;
use crate::store::outbox_records::OutboxRow;
use crate::store::rows::{Row, Rows};
use crate::store::transaction::read;
use crate::types::{AttemptId, PlayerId};

/// Something that is read as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Fence(Vec<u8>),
    Claim(i64, String),
    Ledger(i64, i64),
    /// The row, the lists it stands in, and what it is about.
    Outbox(i64),
    /// All answers to an attempt id.
    Attempt(String),
    /// By the claim.
    Reversal(i64),
    Payment(String),
}

/// Rows in a row: those of a prefix, after a key.
pub(super) type Span = (Vec<u8>, Option<Vec<u8>>);

/// What a run would have read.
#[derive(Debug, Default)]
pub(super) struct Misses {
    pub(super) units: BTreeSet<Unit>,
    /// With the number of rows that are wanted.
    pub(super) spans: BTreeMap<Span, usize>,
}

impl Misses {
    pub(super) fn are_none(&self) -> bool {
        self.units.is_empty() && self.spans.is_empty()
    }
}

/// Whether a player's open outbox rows matter. They do not to new claims: their place is behind all others, and the list
/// of players that they would be written into is read out of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenRows {
    Matter,
    DoNotMatter,
}

#[derive(Debug)]
struct Scanned {
    /// Values are with the other rows; those of lists are empty.
    keys: Vec<Vec<u8>>,
    /// How many were asked for; fewer rows are all there are.
    asked: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct LoadedRows {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    known: BTreeSet<Unit>,
    spans: BTreeMap<Span, Scanned>,
    open_rows: OpenRows,
    misses: RefCell<Misses>,
}

impl LoadedRows {
    pub(super) fn new(open_rows: OpenRows) -> Self {
        Self {
            rows: BTreeMap::new(),
            known: BTreeSet::new(),
            spans: BTreeMap::new(),
            open_rows,
            misses: RefCell::default(),
        }
    }

    /// What runs have missed since the last call.
    pub(super) fn take_misses(&mut self) -> Misses {
        self.misses.take()
    }

    /// From here on it is known whether the unit's rows are there.
    pub(super) fn know(&mut self, unit: Unit) {
        self.known.insert(unit);
    }

    pub(super) fn knows(&self, unit: &Unit) -> bool {
        self.known.contains(unit)
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.rows.insert(key, value);
    }

    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.rows.contains_key(key)
    }

    /// Whether an attempt id has an answer, and so is bound, beside those that go.
    pub(super) fn is_bound(&self, attempt: &AttemptId, but: &BTreeSet<Vec<u8>>) -> bool {
        let prefix = keys::attempts_of(attempt);
        let answers = self.rows.range(prefix.clone()..);
        answers
            .take_while(|(key, _)| key.starts_with(&prefix))
            .any(|(key, _)| !but.contains(key))
    }

    pub(super) fn put_span(&mut self, span: Span, keys: Vec<Vec<u8>>, asked: usize) {
        self.spans.insert(span, Scanned { keys, asked });
    }

    fn row(&self, key: &[u8]) -> Row {
        (key.to_vec(), self.rows.get(key).cloned().unwrap_or_default())
    }

    /// A player's place among those with open rows: that of its first one.
    fn head_of(&self, player: PlayerId) -> Result<Option<Vec<u8>>, StorageFailure> {
        let first = self.scan(&keys::open_of(player), None, 1)?;
        let Some(id) = first.first().and_then(|(key, _)| keys::read_number(key)) else {
            return Ok(None);
        };
        let row: Option<OutboxRow> = read(self, &keys::outbox(id))?;
        Ok(row.and_then(|row| row.due()).map(|due| keys::head(player, due)))
    }

    fn miss(&self, unit: Unit) {
        self.misses.borrow_mut().units.insert(unit);
    }
}

impl Rows for LoadedRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageFailure> {
        if let Some((_, player)) = keys::read_head(key) {
            return Ok(self
                .head_of(player)?
                .filter(|head| head == key)
                .map(|_| Vec::new()));
        }
        match unit_of(key) {
            Some(unit) if !self.known.contains(&unit) => self.miss(unit),
            Some(_) | None => {}
        }
        Ok(self.rows.get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, rows_max: usize) -> Result<Vec<Row>, StorageFailure> {
        if let Some(attempt) = keys::read_attempts_of(prefix) {
            let unit = Unit::Attempt(attempt);
            if !self.known.contains(&unit) {
                self.miss(unit);
            }
            let answers = self.rows.range(prefix.to_vec()..);
            return Ok(answers
                .take_while(|(key, _)| key.starts_with(prefix))
                .filter(|(key, _)| after.is_none_or(|after| key.as_slice() > after))
                .take(rows_max)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect());
        }
        if self.open_rows == OpenRows::DoNotMatter && prefix.starts_with(keys::OPEN) {
            return Ok(Vec::new());
        }
        let span = (prefix.to_vec(), after.map(<[u8]>::to_vec));
        match self.spans.get(&span) {
            Some(scanned) if scanned.asked >= rows_max || scanned.keys.len() < scanned.asked => Ok(scanned
                .keys
                .iter()
                .take(rows_max)
                .map(|key| self.row(key))
                .collect()),
            scanned => {
                let mut misses = self.misses.borrow_mut();
                let wanted = misses.spans.entry(span).or_default();
                *wanted = (*wanted).max(rows_max);
                Ok(scanned.map_or_else(Vec::new, |scanned| {
                    scanned.keys.iter().map(|key| self.row(key)).collect()
                }))
            }
        }
    }
}

/// What must be read to know a row.
fn unit_of(key: &[u8]) -> Option<Unit> {
    let number = |key| keys::read_number(key).map(|id| super::signed(id.get()));
    match key.first()? {
        b'f' => keys::read_fence(key).map(|name| Unit::Fence(name.as_bytes().to_vec())),
        b'c' => {
            keys::read_claim(key).map(|(player, event)| Unit::Claim(player.get(), event.as_str().to_owned()))
        }
        b'l' => {
            keys::read_ledger(key).map(|(player, id)| Unit::Ledger(player.get(), super::signed(id.get())))
        }
        b'o' | b'd' | b'q' => number(key).map(Unit::Outbox),
        b'v' => number(key).map(Unit::Reversal),
        b'a' => keys::read_attempt(key).map(|(attempt, _)| Unit::Attempt(attempt.as_str().to_owned())),
        b'p' => keys::read_payment(key).map(|attempt| Unit::Payment(attempt.as_str().to_owned())),
        _ => None,
    }
}
