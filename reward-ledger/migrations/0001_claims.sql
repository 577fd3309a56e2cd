-- Claims: fence, claim, ledger row, outbox row and the answers to attempts. One transaction writes all of a claim.
--
-- Texts that are keys sort by their bytes (COLLATE "C"), as in the other stores. Times are for people; the exact time of
-- a grant is in its receipt.

-- The highest token that a claim has shown for a resource. 0: none; a row is made, and locked, before it is known whether
-- the claim is accepted.
CREATE TABLE resource_fence (
    resource     bytea  PRIMARY KEY,
    token        bigint NOT NULL CHECK (token >= 0),
    -- The last reset by an operator.
    reset_from   bigint,
    reset_at_ms  bigint,
    reset_reason text,
    CHECK (num_nulls(reset_from, reset_at_ms, reset_reason) IN (0, 3))
);

-- Numbers of claims. Drawn after the fences are locked, so that accepted tokens of a resource rise with them.
CREATE SEQUENCE reward_claim_number AS bigint MINVALUE 1 NO CYCLE;

-- Draws `count` numbers that follow each other, and returns the first. The lock keeps two sessions from drawing in between;
-- it is given back at once, since numbers are not part of the transaction.
CREATE FUNCTION reward_claim_draw(lock_key bigint, count bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    PERFORM pg_advisory_lock(lock_key);
    first := nextval('reward_claim_number');
    IF count > 1 THEN
        PERFORM setval('reward_claim_number', first + count - 1);
    END IF;
    PERFORM pg_advisory_unlock(lock_key);
    RETURN first;
END
$$;

-- What was granted: a player is granted an event once.
CREATE TABLE reward_claim (
    claim_id        bigint      PRIMARY KEY,
    player_id       bigint      NOT NULL,
    reward_event_id text        COLLATE "C" NOT NULL,
    -- Both null: an unfenced claim.
    resource        bytea,
    fence_token     bigint,
    item            text        NOT NULL,
    amount          bigint      NOT NULL CHECK (amount > 0),
    attempt_id      text        NOT NULL,
    status          text        NOT NULL DEFAULT 'applied' CHECK (status = 'applied'),
    recorded_at_ms  bigint      NOT NULL,
    updated_at      timestamptz NOT NULL,
    -- What everybody who asks for this event is answered, byte for byte.
    receipt         bytea       NOT NULL,
    CONSTRAINT reward_claim_once UNIQUE (player_id, reward_event_id),
    CHECK ((resource IS NULL) = (fence_token IS NULL)),
    -- Columns that people and other services read say what the receipt says.
    CONSTRAINT reward_claim_agrees CHECK (
        substring(receipt FROM 2 FOR 8) = int8send(claim_id)
        AND substring(receipt FROM 18 FOR 8) = int8send(player_id)
        AND substring(receipt FROM 26 FOR 8) = int8send(amount)
        AND substring(receipt FROM 34 FOR 8) = int8send(coalesce(fence_token, 0)))
);
CREATE INDEX reward_claim_event ON reward_claim (reward_event_id, claim_id);
CREATE INDEX reward_claim_token ON reward_claim (resource, fence_token, claim_id);
CREATE INDEX reward_claim_time ON reward_claim (recorded_at_ms, claim_id);

-- Grants that were taken back, each once.
CREATE TABLE reward_reversal (
    claim_id        bigint PRIMARY KEY REFERENCES reward_claim,
    reversal_id     bigint NOT NULL UNIQUE,
    player_id       bigint NOT NULL,
    reward_event_id text   NOT NULL,
    at_ms           bigint NOT NULL,
    reason          text   NOT NULL
);

-- The players' accounts. `id` is the number of the claim, or of its reversal, which has a negative amount.
CREATE TABLE reward_ledger (
    id              bigint      PRIMARY KEY,
    player_id       bigint      NOT NULL,
    reward_event_id text        COLLATE "C" NOT NULL,
    item            text        NOT NULL,
    amount          bigint      NOT NULL CHECK (amount <> 0),
    created_at      timestamptz NOT NULL
);
CREATE INDEX reward_ledger_player ON reward_ledger (player_id, id);
CREATE UNIQUE INDEX reward_ledger_once ON reward_ledger (player_id, reward_event_id) WHERE amount > 0;
CREATE UNIQUE INDEX reward_ledger_reversed_once ON reward_ledger (player_id, reward_event_id) WHERE amount < 0;

-- What the outside world is to be told, and how far that has come. `claim_id` is the row's own number: that of the
-- claim, or of the reversal; `about` is the claim.
CREATE TABLE reward_outbox (
    claim_id        bigint   PRIMARY KEY,
    player_id       bigint   NOT NULL,
    reward_event_id text     COLLATE "C" NOT NULL,
    about           bigint   NOT NULL,
    part            smallint NOT NULL,
    state           text     NOT NULL CHECK (state IN ('pending', 'leased', 'delivered', 'dead', 'discarded')),
    -- When a publisher may take it; only an open row has it.
    due_ms          bigint,
    owner           text,
    since_ms        bigint,
    -- When it came to its end.
    ended_ms        bigint,
    epoch           bigint   NOT NULL,
    tries           bigint   NOT NULL,
    first_sent_ms   bigint,
    in_doubt        boolean  NOT NULL,
    note            text     NOT NULL,
    CHECK ((state IN ('pending', 'leased')) = (due_ms IS NOT NULL)),
    CHECK ((state = 'leased') = (owner IS NOT NULL AND since_ms IS NOT NULL)),
    CHECK ((state IN ('delivered', 'dead', 'discarded')) = (ended_ms IS NOT NULL))
);
CREATE INDEX reward_outbox_open ON reward_outbox (part, player_id, claim_id) INCLUDE (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX reward_outbox_dead ON reward_outbox (claim_id) WHERE state = 'dead';

-- Charges. An order has at most one that is not known to have failed.
CREATE TABLE payment_attempt (
    attempt_id      text     COLLATE "C" PRIMARY KEY,
    order_id        text     COLLATE "C" NOT NULL,
    status          text     NOT NULL CHECK (status IN ('READY', 'unknown', 'approved', 'failed')),
    resource        bytea    NOT NULL,
    fencing_token   bigint   NOT NULL,
    currency        text     NOT NULL,
    amount          bigint   NOT NULL CHECK (amount > 0),
    started_at_ms   bigint   NOT NULL,
    -- 'active', or null once it has failed: nulls do not conflict.
    active_key      text     CHECK (active_key = 'active'),
    -- What was found out, when, and by whom: a worker, by its token, or a person, with a reason.
    found_at_ms     bigint,
    found_by_token  bigint,
    found_by_reason text,
    note            text,
    -- Looked at when a statement ends: within one, an attempt may fail and another begin.
    CONSTRAINT payment_attempt_one_active UNIQUE (order_id, active_key) DEFERRABLE INITIALLY IMMEDIATE,
    CHECK ((status = 'READY') = (found_at_ms IS NULL)),
    CHECK ((found_at_ms IS NULL) = (note IS NULL)),
    CHECK (num_nonnulls(found_by_token, found_by_reason) = num_nonnulls(found_at_ms))
);
CREATE INDEX payment_attempt_order ON payment_attempt (order_id, attempt_id);

-- What an attempt id is bound to: everything of its claim but the token.
CREATE TABLE claim_attempt (
    attempt_id      text   COLLATE "C" PRIMARY KEY,
    resource        bytea,
    player_id       bigint NOT NULL,
    reward_event_id text   NOT NULL,
    item            text   NOT NULL,
    amount          bigint NOT NULL
);

-- The first answer to an attempt with a token (0: unfenced). Receipts are not copied: claims are kept for ever.
CREATE TABLE claim_answer (
    attempt_id      text     COLLATE "C",
    fence_token     bigint,
    outcome         text     NOT NULL CHECK (outcome IN ('accepted', 'stale', 'conflict')),
    at_ms           bigint   NOT NULL,
    -- Of a stale one: the highest token then seen, and whether a receipt was shown.
    seen            bigint,
    receipt_shown   boolean,
    -- Of a conflict: the fields that differ, a bit each.
    fields          smallint,
    PRIMARY KEY (attempt_id, fence_token),
    CHECK ((outcome = 'stale') = (seen IS NOT NULL AND receipt_shown IS NOT NULL)),
    CHECK ((outcome = 'conflict') = (fields IS NOT NULL))
);
-- Refusals are forgotten by age.
CREATE INDEX claim_answer_refused ON claim_answer (at_ms) WHERE outcome <> 'accepted';

-- The number of the last group of each connection that writes, so that one whose answer was lost can be looked up.
CREATE TABLE reward_lane (
    lane      uuid        PRIMARY KEY,
    committed bigint      NOT NULL,
    seen_at   timestamptz NOT NULL DEFAULT now()
);
