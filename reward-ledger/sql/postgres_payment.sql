-- A payment, guarded by postgres.sql: an order has one attempt that is not known to have failed. The gateway is called
-- with the attempt's id as its idempotency key, after the transaction that starts the attempt has committed.

CREATE TABLE IF NOT EXISTS order_payment (
    attempt_id    text        PRIMARY KEY,
    order_id      text        NOT NULL,
    amount        bigint      NOT NULL CHECK (amount > 0),
    status        text        NOT NULL DEFAULT 'READY' CHECK (status IN ('READY', 'unknown', 'approved', 'failed')),
    fencing_token bigint      NOT NULL,
    -- 'active' until it is known to have failed, then null: nulls do not conflict.
    active_key    text        DEFAULT 'active' CHECK (active_key = 'active'),
    started_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (order_id, active_key),
    CHECK ((status = 'failed') = (active_key IS NULL))
);

-- 'started': call the gateway. 'existing': this attempt was started before, by whomever; its status says what to do, and it
-- is under the token shown from now on. 'approved' is paid and 'failed' wants an attempt with a new id; 'READY' and 'unknown'
-- may have been charged: ask the gateway for the attempt's status first. Raises FN001 for a stale token, FN003 where the
-- attempt is of another order or amount, and FN004 where another attempt of the order is active, paid or not.
-- Its result was a text once, which no REPLACE changes.
DROP FUNCTION IF EXISTS order_payment_start(text, bigint, text, text, bigint);
CREATE FUNCTION order_payment_start(
    lease text, shown bigint, "order" text, attempt text, wanted_amount bigint,
    OUT outcome text, OUT status text, OUT amount bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    same   order_payment;
    active text;
    made   bigint;
BEGIN
    PERFORM fence_advance(lease, shown);
    INSERT INTO order_payment (attempt_id, order_id, amount, fencing_token) VALUES (attempt, "order", wanted_amount, shown)
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    -- A statement of its own: it sees the row that the first one has waited for.
    SELECT p.* INTO same FROM order_payment AS p WHERE p.attempt_id = attempt FOR UPDATE;
    IF NOT FOUND THEN
        SELECT p.attempt_id INTO active FROM order_payment AS p WHERE p.order_id = "order" AND p.active_key = 'active';
        RAISE EXCEPTION 'order % has another active payment attempt: %', "order", active USING ERRCODE = 'FN004';
    END IF;
    IF same.order_id <> "order" OR same.amount <> wanted_amount THEN
        RAISE EXCEPTION 'payment attempt % is of order % and amount %, not of order % and amount %',
            attempt, same.order_id, same.amount, "order", wanted_amount USING ERRCODE = 'FN003';
    END IF;
    IF same.fencing_token < shown THEN
        UPDATE order_payment AS p SET fencing_token = shown WHERE p.attempt_id = attempt;
    END IF;
    outcome := CASE made WHEN 1 THEN 'started' ELSE 'existing' END;
    status := same.status;
    amount := same.amount;
END
$$;

-- Notes what the gateway said: 'approved', 'failed', or 'unknown' where its answer was lost. What is settled stays.
CREATE OR REPLACE FUNCTION order_payment_report(lease text, shown bigint, attempt text, finding text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
BEGIN
    PERFORM fence_advance(lease, shown);
    UPDATE order_payment SET status = finding, active_key = CASE finding WHEN 'failed' THEN NULL ELSE 'active' END
        WHERE attempt_id = attempt AND status IN ('READY', 'unknown');
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN changed = 1;
END
$$;
