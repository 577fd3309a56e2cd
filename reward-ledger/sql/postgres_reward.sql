-- A reward, guarded by postgres.sql: once a player and event, and never by a stale holder.

CREATE TABLE IF NOT EXISTS reward_grant (
    player_id       bigint      NOT NULL,
    reward_event_id text        NOT NULL CHECK (event_id_is_valid(reward_event_id)),
    amount          bigint      NOT NULL CHECK (amount > 0),
    fence_token     bigint      NOT NULL,
    granted_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (player_id, reward_event_id)
);

CREATE TABLE IF NOT EXISTS reward_grant_outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    player_id       bigint NOT NULL,
    reward_event_id text   NOT NULL,
    state           text   NOT NULL DEFAULT 'pending',
    UNIQUE (player_id, reward_event_id)
);

-- 'granted', or 'replayed' with what was granted first; raises FN001 for a stale token, and FN003 where the event was
-- granted with another amount. Fence, grant and outbox row are one transaction: that of the caller.
CREATE OR REPLACE FUNCTION reward_grant_once(
    lease text, shown bigint, player bigint, event text, wanted_amount bigint,
    OUT outcome text, OUT amount bigint, OUT fence_token bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM fence_advance(lease, shown);
    INSERT INTO reward_grant AS g (player_id, reward_event_id, amount, fence_token)
        VALUES (player, event, wanted_amount, shown)
        ON CONFLICT DO NOTHING
        RETURNING 'granted', g.amount, g.fence_token INTO outcome, amount, fence_token;
    IF outcome IS NOT NULL THEN
        INSERT INTO reward_grant_outbox (player_id, reward_event_id) VALUES (player, event);
        RETURN;
    END IF;
    -- A second statement: it sees the row that the first one has waited for.
    SELECT 'replayed', g.amount, g.fence_token INTO outcome, amount, fence_token
        FROM reward_grant AS g WHERE g.player_id = player AND g.reward_event_id = event;
    IF amount <> wanted_amount THEN
        RAISE EXCEPTION 'event % was granted with amount %, not %', event, amount, wanted_amount USING ERRCODE = 'FN003';
    END IF;
END
$$;
