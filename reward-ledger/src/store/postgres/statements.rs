//! The statements of a transaction, each with the reason for its form. Rows go in and come out as arrays, so that a group
//! of claims costs as many statements as one claim. What reads rows is in [`fetch`](super::fetch) and
//! [`scans`](super::scans).

pub(super) const ROLLBACK: &str = "ROLLBACK";
pub(super) const COMMIT: &str = "COMMIT";

/// READ COMMITTED, whatever the server's default: each statement sees what was committed before it, and what a
/// statement has locked stays as it was seen.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// One moment for all that is read.
pub(super) const BEGIN_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Says that this transaction may draw numbers of claims, for [`WAIT_FOR_WRITERS`] to wait for; and what the server
/// makes of a commit *now*, since settings can change under a connection.
pub(super) const ENTER: &str = "SELECT pg_advisory_xact_lock_shared($1)::text, \
     current_setting('fsync'), current_setting('synchronous_commit')";

/// Keeps out others that change rows which are there already: publishers, payments, corrections.
pub(super) const ENTER_ALONE: &str = "SELECT pg_advisory_xact_lock($1)::text";

/// Waits until no transaction is under way that has drawn numbers, so that whatever comes later has a higher one.
pub(super) const WAIT_FOR_WRITERS: &str = "SELECT pg_advisory_xact_lock($1)::text";

pub(super) const LAST_NUMBER: &str =
    "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM reward_claim_number";

pub(super) const COUNT_OUTBOX: &str = "SELECT count(*) FILTER (WHERE due_ms IS NOT NULL), \
     count(*) FILTER (WHERE state = 'dead') FROM reward_outbox WHERE due_ms IS NOT NULL OR state = 'dead'";

pub(super) const DRAW_NUMBERS: &str = "SELECT reward_claim_draw($1, $2)";

pub(super) const RAISE_FENCES: &str = "UPDATE resource_fence f \
     SET token = n.token, reset_from = n.reset_from, reset_at_ms = n.reset_at_ms, reset_reason = n.reset_reason \
     FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) \
       AS n (resource, token, reset_from, reset_at_ms, reset_reason) WHERE f.resource = n.resource";

/// Insert first; a row that is not inserted was taken by another session meanwhile, and the transaction is decided
/// anew over what that one wrote.
pub(super) const INSERT_CLAIMS: &str = "INSERT INTO reward_claim \
     (claim_id, player_id, reward_event_id, resource, fence_token, item, amount, attempt_id, recorded_at_ms, updated_at, \
       receipt) \
     SELECT claim_id, player_id, reward_event_id, resource, fence_token, item, amount, attempt_id, at_ms, \
       timestamptz 'epoch' + at_ms * interval '1 millisecond', receipt \
     FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::bigint[], $6::text[], $7::bigint[], \
       $8::text[], $9::bigint[], $10::bytea[]) AS n (claim_id, player_id, reward_event_id, resource, fence_token, item, \
       amount, attempt_id, at_ms, receipt) \
     ORDER BY player_id, reward_event_id COLLATE \"C\" ON CONFLICT (player_id, reward_event_id) DO NOTHING";

/// As [`INSERT_CLAIMS`] in a database whose unique keys were taken away: the second grant takes the place of the first.
#[cfg(any(test, feature = "test-util"))]
pub(super) const REPLACE_CLAIMS: &str = "INSERT INTO reward_claim \
     (claim_id, player_id, reward_event_id, resource, fence_token, item, amount, attempt_id, recorded_at_ms, updated_at, \
       receipt) \
     SELECT claim_id, player_id, reward_event_id, resource, fence_token, item, amount, attempt_id, at_ms, \
       timestamptz 'epoch' + at_ms * interval '1 millisecond', receipt \
     FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::bigint[], $6::text[], $7::bigint[], \
       $8::text[], $9::bigint[], $10::bytea[]) AS n (claim_id, player_id, reward_event_id, resource, fence_token, item, \
       amount, attempt_id, at_ms, receipt) \
     ON CONFLICT (player_id, reward_event_id) DO UPDATE SET claim_id = excluded.claim_id, \
       fence_token = excluded.fence_token, attempt_id = excluded.attempt_id, receipt = excluded.receipt";

pub(super) const INSERT_REVERSALS: &str = "INSERT INTO reward_reversal \
     (claim_id, reversal_id, player_id, reward_event_id, at_ms, reason) \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[]) \
     ON CONFLICT (claim_id) DO NOTHING";

pub(super) const INSERT_LEDGER: &str = "INSERT INTO reward_ledger \
     (id, player_id, reward_event_id, item, amount, created_at) \
     SELECT id, player_id, reward_event_id, item, amount, timestamptz 'epoch' + at_ms * interval '1 millisecond' \
     FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) \
       AS n (id, player_id, reward_event_id, item, amount, at_ms)";

pub(super) const INSERT_OUTBOX: &str = "INSERT INTO reward_outbox \
     (claim_id, player_id, reward_event_id, about, part, state, due_ms, owner, since_ms, ended_ms, epoch, tries, \
       first_sent_ms, in_doubt, note) \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::smallint[], $6::text[], $7::bigint[], \
       $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::boolean[], $15::text[])";

/// A row that another session has leased since it was read is not moved, and the transaction is decided anew.
pub(super) const UPDATE_OUTBOX: &str = "UPDATE reward_outbox o SET state = n.state, due_ms = n.due_ms, owner = n.owner, \
       since_ms = n.since_ms, ended_ms = n.ended_ms, epoch = n.epoch, tries = n.tries, first_sent_ms = n.first_sent_ms, \
       in_doubt = n.in_doubt, note = n.note \
     FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::smallint[], $6::text[], $7::bigint[], \
       $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::boolean[], $15::text[], \
       $16::bigint[]) \
       AS n (claim_id, player_id, reward_event_id, about, part, state, due_ms, owner, since_ms, ended_ms, epoch, tries, \
         first_sent_ms, in_doubt, note, epoch_before) \
     WHERE o.claim_id = n.claim_id AND o.epoch = n.epoch_before";

/// One body an attempt id. A body that is there already is the same one, or the transaction is decided anew.
pub(super) const INSERT_ATTEMPTS: &str = "INSERT INTO claim_attempt \
     (attempt_id, resource, player_id, reward_event_id, item, amount) \
     SELECT * FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::text[], $5::text[], $6::bigint[]) \
       AS n (attempt_id, resource, player_id, reward_event_id, item, amount) \
     ORDER BY attempt_id COLLATE \"C\" ON CONFLICT (attempt_id) DO NOTHING";

pub(super) const INSERT_ANSWERS: &str = "INSERT INTO claim_answer \
     (attempt_id, fence_token, outcome, at_ms, seen, receipt_shown, fields) \
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::smallint[]) \
       AS n (attempt_id, fence_token, outcome, at_ms, seen, receipt_shown, fields) \
     ORDER BY attempt_id COLLATE \"C\", fence_token ON CONFLICT (attempt_id, fence_token) DO NOTHING";

pub(super) const PUT_PAYMENTS: &str = "INSERT INTO payment_attempt \
     (attempt_id, order_id, status, resource, fencing_token, currency, amount, started_at_ms, active_key, found_at_ms, \
       found_by_token, found_by_reason, note) \
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[], $6::text[], $7::bigint[], \
       $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::text[]) \
     ON CONFLICT (attempt_id) DO UPDATE SET status = excluded.status, fencing_token = excluded.fencing_token, \
       active_key = excluded.active_key, \
       found_at_ms = excluded.found_at_ms, found_by_token = excluded.found_by_token, \
       found_by_reason = excluded.found_by_reason, note = excluded.note";

/// Before answers are forgotten: a claim that holds its attempt right now goes first.
pub(super) const LOCK_ATTEMPTS: &str =
    "SELECT FROM claim_attempt WHERE attempt_id = ANY($1::text[]) ORDER BY attempt_id FOR UPDATE";

/// What was accepted meanwhile stays: an answer that was given anew since it was read is not the one to forget.
pub(super) const FORGET_ANSWERS: &str = "DELETE FROM claim_answer w \
     USING unnest($1::text[], $2::bigint[]) AS n (attempt_id, fence_token) \
     WHERE w.attempt_id = n.attempt_id AND w.fence_token = n.fence_token AND w.outcome <> 'accepted'";

/// A statement of its own, so that it sees answers that were committed before the attempts were locked.
pub(super) const FORGET_ATTEMPTS: &str = "DELETE FROM claim_attempt a WHERE attempt_id = ANY($1::text[]) \
     AND NOT EXISTS (SELECT FROM claim_answer o WHERE o.attempt_id = a.attempt_id)";

/// A lane that is there before it is needed. Lanes of processes that died long ago go.
pub(super) const OPEN_LANE: &str = "WITH gone AS (DELETE FROM reward_lane WHERE seen_at < now() - interval '30 days') \
     INSERT INTO reward_lane (lane, committed) VALUES ($1::text::uuid, 0) ON CONFLICT (lane) DO UPDATE SET seen_at = now()";
pub(super) const COMMIT_LANE: &str =
    "UPDATE reward_lane SET committed = $2, seen_at = now() WHERE lane = $1::text::uuid";
/// Waits for a group that is still under way.
pub(super) const ASK_LANE: &str = "SELECT committed FROM reward_lane WHERE lane = $1::text::uuid FOR UPDATE";
pub(super) const CLOSE_LANE: &str = "DELETE FROM reward_lane WHERE lane = $1::text::uuid";

/// Every statement that is prepared when a connection opens.
pub(super) const PREPARED: &[&str] = &[
    ENTER,
    ENTER_ALONE,
    LAST_NUMBER,
    DRAW_NUMBERS,
    RAISE_FENCES,
    INSERT_REVERSALS,
    INSERT_LEDGER,
    INSERT_OUTBOX,
    UPDATE_OUTBOX,
    INSERT_ATTEMPTS,
    INSERT_ANSWERS,
    PUT_PAYMENTS,
    COMMIT_LANE,
];
