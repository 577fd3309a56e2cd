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

-- The id of the attempt to go on with: a new one, or the same worker's own. Raises FN001 for a stale token, and FN004 where
-- another attempt of the order is active, also one of unknown outcome: ask the gateway for its status first.
CREATE OR REPLACE FUNCTION order_payment_start(lease text, shown bigint, "order" text, attempt text, wanted_amount bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    active text;
BEGIN
    PERFORM fence_advance(lease, shown);
    INSERT INTO order_payment (attempt_id, order_id, amount, fencing_token) VALUES (attempt, "order", wanted_amount, shown)
        ON CONFLICT DO NOTHING;
    SELECT attempt_id INTO active FROM order_payment WHERE order_id = "order" AND active_key = 'active';
    IF active IS DISTINCT FROM attempt THEN
        RAISE EXCEPTION 'order % has another active payment attempt: %', "order", active USING ERRCODE = 'FN004';
    END IF;
    RETURN attempt;
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
