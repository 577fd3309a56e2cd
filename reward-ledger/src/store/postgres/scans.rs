//! Reads rows in a row: pages of a table, or of a list that other stores keep as rows of their own.
//!
//! Every statement goes on after a key by comparing whole keys, so that an index finds the place.

use std::collections::BTreeMap;

use lease_core::{FenceToken, LeaseName};
use tokio_postgres::Row;

use super::fetch::{column, corrupt, put_answer, put_claim, put_fence, put_ledger, put_payment, time};
use super::link::{Link, Params};
use super::rows::{LoadedRows, Span, Unit};
use super::trouble::Trouble;
use super::{number, signed};
use crate::error::StorageFailure;
use crate::store::keys::{self, ScanOf};
use crate::types::{AttemptId, OrderId, PlayerId};

const CLAIMS: &str = "SELECT player_id, reward_event_id, receipt FROM reward_claim \
     WHERE (player_id, reward_event_id) > ($1, $2) ORDER BY player_id, reward_event_id LIMIT $3";
const LEDGER: &str = "SELECT player_id, id, reward_event_id, item, amount FROM reward_ledger \
     WHERE (player_id, id) > ($1, $2) AND player_id <= $3 ORDER BY player_id, id LIMIT $4";
const OUTBOX: &str = "SELECT claim_id FROM reward_outbox WHERE claim_id > $1 ORDER BY claim_id LIMIT $2";
const DEAD: &str =
    "SELECT claim_id FROM reward_outbox WHERE state = 'dead' AND claim_id > $1 ORDER BY claim_id LIMIT $2";
/// Of many players at once.
const OPEN: &str = "SELECT w.player_id, o.claim_id FROM unnest($1::bigint[], $2::smallint[]) AS w (player_id, part) \
     CROSS JOIN LATERAL (SELECT claim_id FROM reward_outbox o WHERE o.part = w.part AND o.player_id = w.player_id \
       AND o.due_ms IS NOT NULL AND o.claim_id > $3 ORDER BY o.claim_id LIMIT $4) o ORDER BY 1, 2";
/// The players of a partition that have open rows, by when the first of them is due: read out of the rows themselves, so
/// that nothing has to keep it in step with them.
const HEADS: &str = "SELECT due_ms, player_id FROM \
       (SELECT DISTINCT ON (player_id) player_id, due_ms FROM reward_outbox \
        WHERE part = $1 AND due_ms IS NOT NULL ORDER BY player_id, claim_id) AS heads \
     ORDER BY due_ms, player_id LIMIT $2";
const BY_EVENT: &str = "SELECT claim_id FROM reward_claim WHERE reward_event_id = $1 AND claim_id > $2 \
     ORDER BY claim_id LIMIT $3";
const BY_TOKEN: &str = "SELECT fence_token, claim_id FROM reward_claim \
     WHERE resource = $1 AND (fence_token, claim_id) > ($2, $3) AND fence_token <= $4 \
     ORDER BY fence_token, claim_id LIMIT $5";
const BY_TIME: &str = "SELECT recorded_at_ms, claim_id FROM reward_claim WHERE (recorded_at_ms, claim_id) > ($1, $2) \
     ORDER BY recorded_at_ms, claim_id LIMIT $3";
const ANSWERS: &str = "SELECT w.attempt_id, w.fence_token, w.outcome, w.at_ms, w.seen, w.receipt_shown, \
       w.fields, a.resource, a.player_id, a.reward_event_id, a.item, a.amount \
     FROM claim_answer w JOIN claim_attempt a USING (attempt_id) WHERE (w.attempt_id, w.fence_token) > ($1, $2) \
     ORDER BY w.attempt_id, w.fence_token LIMIT $3";
const REFUSALS: &str = "SELECT at_ms, attempt_id, fence_token FROM claim_answer WHERE outcome <> 'accepted' \
     ORDER BY at_ms LIMIT $1";
const FENCES: &str = "SELECT resource, token, reset_from, reset_at_ms, reset_reason FROM resource_fence \
     WHERE resource > $1 AND (token > 0 OR reset_from IS NOT NULL) ORDER BY resource LIMIT $2";
const PAYMENTS: &str = "SELECT attempt_id, order_id, status, resource, fencing_token, currency, amount, started_at_ms, \
       found_at_ms, found_by_token, found_by_reason, note \
     FROM payment_attempt WHERE attempt_id > $1 ORDER BY attempt_id LIMIT $2";
const PAYMENTS_OF: &str = "SELECT attempt_id, order_id, status, resource, fencing_token, currency, amount, started_at_ms, \
       found_at_ms, found_by_token, found_by_reason, note \
     FROM payment_attempt WHERE order_id = $1 ORDER BY attempt_id LIMIT $2";

pub(super) const PREPARED: &[&str] = &[
    CLAIMS,
    LEDGER,
    OUTBOX,
    DEAD,
    OPEN,
    HEADS,
    BY_EVENT,
    BY_TOKEN,
    BY_TIME,
    ANSWERS,
    REFUSALS,
    FENCES,
    PAYMENTS,
    PAYMENTS_OF,
];

/// Reads spans; answers with what their rows bring up.
pub(super) async fn fetch(
    link: &Link,
    rows: &mut LoadedRows,
    spans: BTreeMap<Span, usize>,
) -> Result<Vec<Unit>, Trouble> {
    let mut reader = Reader {
        link,
        rows,
        further: Vec::new(),
    };
    let mut open: BTreeMap<PlayerId, usize> = BTreeMap::new();
    for (span, rows_max) in spans {
        match keys::read_scan(&span.0) {
            Some(ScanOf::Open(player)) if span.1.is_none() => {
                open.insert(player, rows_max);
            }
            Some(scan) => {
                let found = reader.keys_of(&scan, span.1.as_deref(), limit(rows_max)).await?;
                reader.rows.put_span(span, found, rows_max);
            }
            None => return Err(corrupt("list", span.0.escape_ascii(), "no table keeps such rows").into()),
        }
    }
    if !open.is_empty() {
        reader.open_of_many(open).await?;
    }
    Ok(reader.further)
}

/// Reads spans one after another.
struct Reader<'a> {
    link: &'a Link,
    rows: &'a mut LoadedRows,
    /// What is to be read beside the rows that were found.
    further: Vec<Unit>,
}

/// The keys of a span's rows, in order.
type Keys = Result<Vec<Vec<u8>>, Trouble>;

const ACTION: &str = "read a page";

impl Reader<'_> {
    async fn keys_of(&mut self, scan: &ScanOf, after: Option<&[u8]>, limit: i64) -> Keys {
        let after_id = after.and_then(keys::read_number).map_or(0, |id| signed(id.get()));
        match scan {
            ScanOf::Claims => self.claims(after, limit).await,
            ScanOf::Ledger(of) => self.ledger(*of, after, limit).await,
            ScanOf::Attempts => self.answers(after, limit).await,
            ScanOf::Fences => self.fences(after, limit).await,
            ScanOf::Payments => self.payments(after, limit).await,
            ScanOf::PaymentsOf(order) => self.payments_of(order, limit).await,
            ScanOf::Refusals => {
                let found = self.link.rows(ACTION, REFUSALS, &[&limit]).await?;
                Ok(found.iter().map(refusal).collect::<Result<_, _>>()?)
            }
            ScanOf::Heads(partition) => self.heads(*partition, limit).await,
            ScanOf::Open(player) => self.open_of(*player, after_id, limit).await,
            ScanOf::Outbox => {
                let found = self.link.rows(ACTION, OUTBOX, &[&after_id, &limit]).await?;
                self.listed(&found, 0, |_| Ok(keys::OUTBOX.to_vec()))
            }
            ScanOf::Dead => {
                let found = self.link.rows(ACTION, DEAD, &[&after_id, &limit]).await?;
                self.listed(&found, 0, |_| Ok(keys::DEAD.to_vec()))
            }
            ScanOf::ByEvent(event) => {
                let params: Params<'_> = &[&event.as_str(), &after_id, &limit];
                let found = self.link.rows(ACTION, BY_EVENT, params).await?;
                self.listed(&found, 0, |_| Ok(keys::by_event(event)))
            }
            ScanOf::ByToken(resource, token) => self.by_token(resource, *token, after, limit).await,
            ScanOf::ByTime => self.by_time(after, limit).await,
        }
    }

    async fn claims(&mut self, after: Option<&[u8]>, limit: i64) -> Keys {
        let after = after.and_then(keys::read_claim);
        let (player, event) = after
            .as_ref()
            .map_or((i64::MIN, ""), |(player, event)| (player.get(), event.as_str()));
        let found = self.link.rows(ACTION, CLAIMS, &[&player, &event, &limit]).await?;
        let keys = found.iter().map(|row| put_claim(self.rows, row, 0));
        Ok(keys.collect::<Result<_, _>>()?)
    }

    async fn ledger(&mut self, of: Option<PlayerId>, after: Option<&[u8]>, limit: i64) -> Keys {
        let (first, last) = of.map_or((i64::MIN, i64::MAX), |player| (player.get(), player.get()));
        let (player, id) = after
            .and_then(keys::read_ledger)
            .map_or((first, 0), |(player, id)| (player.get(), signed(id.get())));
        let params: Params<'_> = &[&player, &id, &last, &limit];
        let found = self.link.rows(ACTION, LEDGER, params).await?;
        if of.is_some() {
            for row in &found {
                self.further.push(Unit::Outbox(column(row, 1)?));
            }
        }
        let keys = found.iter().map(|row| put_ledger(self.rows, row));
        Ok(keys.collect::<Result<_, _>>()?)
    }

    async fn answers(&mut self, after: Option<&[u8]>, limit: i64) -> Keys {
        let after = after.and_then(keys::read_attempt);
        let (attempt, token) = after.as_ref().map_or(("", -1), |(attempt, token)| {
            (attempt.as_str(), token.map_or(0, |token| signed(token.get())))
        });
        let params: Params<'_> = &[&attempt, &token, &limit];
        let found = self.link.rows(ACTION, ANSWERS, params).await?;
        for row in &found {
            self.further.push(Unit::Claim(column(row, 8)?, column(row, 9)?));
        }
        let keys = found.iter().map(|row| put_answer(self.rows, row));
        Ok(keys.collect::<Result<_, _>>()?)
    }

    async fn fences(&mut self, after: Option<&[u8]>, limit: i64) -> Keys {
        let after = after.and_then(keys::read_fence);
        let resource = after.as_ref().map_or(&[][..], |name| name.as_bytes());
        let found = self.link.rows(ACTION, FENCES, &[&resource, &limit]).await?;
        let keys = found
            .iter()
            .filter_map(|row| put_fence(self.rows, row).transpose());
        Ok(keys.collect::<Result<_, _>>()?)
    }

    async fn payments(&mut self, after: Option<&[u8]>, limit: i64) -> Keys {
        let after = after.and_then(keys::read_payment);
        let attempt = after.as_ref().map_or("", |attempt| attempt.as_str());
        let found = self.link.rows(ACTION, PAYMENTS, &[&attempt, &limit]).await?;
        let keys = found.iter().map(|row| put_payment(self.rows, row));
        Ok(keys.collect::<Result<_, _>>()?)
    }

    async fn payments_of(&mut self, order: &OrderId, limit: i64) -> Keys {
        let params: Params<'_> = &[&order.as_str(), &limit];
        let found = self.link.rows(ACTION, PAYMENTS_OF, params).await?;
        let mut keys = Vec::with_capacity(found.len());
        for row in &found {
            put_payment(self.rows, row)?;
            keys.push(payment_of(order, row)?);
        }
        Ok(keys)
    }

    async fn heads(&mut self, partition: u16, limit: i64) -> Keys {
        let part = i16::try_from(partition).unwrap_or(i16::MAX);
        let found = self.link.rows(ACTION, HEADS, &[&part, &limit]).await?;
        let head = |row: &Row| -> Result<Vec<u8>, StorageFailure> {
            let due = time("outbox", column(row, 0)?)?;
            Ok(keys::head(PlayerId::new(column(row, 1)?), due))
        };
        Ok(found.iter().map(head).collect::<Result<_, _>>()?)
    }

    async fn open_of(&mut self, player: PlayerId, after: i64, limit: i64) -> Keys {
        let (players, parts) = ([player.get()], [super::part_of(player)]);
        let params: Params<'_> = &[&&players[..], &&parts[..], &after, &limit];
        let found = self.link.rows(ACTION, OPEN, params).await?;
        self.listed(&found, 1, |_| Ok(keys::open_of(player)))
    }

    async fn open_of_many(&mut self, wanted: BTreeMap<PlayerId, usize>) -> Result<(), Trouble> {
        let players: Vec<i64> = wanted.keys().map(|player| player.get()).collect();
        let parts: Vec<i16> = wanted.keys().map(|player| super::part_of(*player)).collect();
        let rows_max = wanted.values().copied().max().unwrap_or(0);
        let params: Params<'_> = &[&players, &parts, &0_i64, &limit(rows_max)];
        let found = self.link.rows(ACTION, OPEN, params).await?;
        let keys = self.listed(&found, 1, |row| Ok(keys::open_of(PlayerId::new(column(row, 0)?))))?;
        let mut of: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for key in keys {
            let prefix = key.get(..key.len().saturating_sub(size_of::<u64>()));
            of.entry(prefix.unwrap_or_default().to_vec())
                .or_default()
                .push(key);
        }
        for player in wanted.into_keys() {
            let prefix = keys::open_of(player);
            let of_player = of.remove(&prefix).unwrap_or_default();
            self.rows.put_span((prefix, None), of_player, rows_max);
        }
        Ok(())
    }

    async fn by_token(
        &mut self,
        resource: &LeaseName,
        token: Option<FenceToken>,
        after: Option<&[u8]>,
        limit: i64,
    ) -> Keys {
        let (first, last) = token.map_or((0, i64::MAX), |token| (signed(token.get()), signed(token.get())));
        let after = after.and_then(|key| keys::read_by_token(resource, key).zip(keys::read_number(key)));
        let (from, id) = after.map_or((first, 0), |(token, id)| (signed(token.get()), signed(id.get())));
        let params: Params<'_> = &[&resource.as_bytes(), &from, &id, &last, &limit];
        let found = self.link.rows(ACTION, BY_TOKEN, params).await?;
        self.listed(&found, 1, |row| {
            let token = FenceToken::new(number("claim", column(row, 0)?)?)
                .map_err(|_| corrupt("claim", "of a token", "it breaks its rule"))?;
            Ok(keys::by_token(resource, Some(token)))
        })
    }

    async fn by_time(&mut self, after: Option<&[u8]>, limit: i64) -> Keys {
        let (from, id) = after.and_then(keys::read_by_time).map_or((0, 0), |(at, id)| {
            (super::millis(at), id.map_or(0, |id| signed(id.get())))
        });
        let found = self.link.rows(ACTION, BY_TIME, &[&from, &id, &limit]).await?;
        self.listed(&found, 1, |row| {
            Ok(keys::by_time(time("claim", column(row, 0)?)?))
        })
    }

    /// The keys of a list's rows: what each begins with, and the number in column `at`, whose outbox row is read as well.
    fn listed(
        &mut self,
        found: &[Row],
        at: usize,
        prefix: impl Fn(&Row) -> Result<Vec<u8>, StorageFailure>,
    ) -> Keys {
        let mut keys = Vec::with_capacity(found.len());
        for row in found {
            let id = number("outbox", column(row, at)?)?;
            self.further.push(Unit::Outbox(signed(id)));
            keys.push([prefix(row)?.as_slice(), &id.to_be_bytes()].concat());
        }
        Ok(keys)
    }
}

fn refusal(row: &Row) -> Result<Vec<u8>, StorageFailure> {
    let text: &str = column(row, 1)?;
    let attempt = AttemptId::new(text).map_err(|error| corrupt("answer", text, error))?;
    let token = match number("answer", column(row, 2)?)? {
        0 => None,
        token => {
            Some(FenceToken::new(token).map_err(|_| corrupt("answer", text, "its token breaks its rule"))?)
        }
    };
    Ok(keys::refusal(time("answer", column(row, 0)?)?, &attempt, token))
}

fn payment_of(order: &OrderId, row: &Row) -> Result<Vec<u8>, StorageFailure> {
    let text: &str = column(row, 0)?;
    let attempt = AttemptId::new(text).map_err(|error| corrupt("payment attempt", text, error))?;
    Ok(keys::payment_of(order, &attempt))
}

fn limit(rows_max: usize) -> i64 {
    i64::try_from(rows_max).unwrap_or(i64::MAX)
}
