-- Fencing for services in any language: guards your own tables in your own transaction. PostgreSQL 12 or later.
--
-- Load it once (psql -f postgres.sql). Then, first thing in the transaction that writes:
--
--     SELECT fence_advance('lock:reward:player-42', 101);
--
-- raises SQLSTATE FN001 if a higher token was seen for the resource, and rolls the transaction back with it. Otherwise the
-- token is the highest now, and the row stays locked until you commit: nobody can overtake the write in between. An equal
-- token passes, since the same holder writes more than once.

CREATE TABLE IF NOT EXISTS fence (
    resource text   PRIMARY KEY CHECK (octet_length(resource) BETWEEN 1 AND 1024),
    token    bigint NOT NULL CHECK (token > 0)
);

-- One upsert: a row that is missing is made, and locked, too. An UPDATE that finds no row would look like a stale token,
-- and SELECT .. FOR UPDATE locks no row that is not there yet.
CREATE OR REPLACE FUNCTION fence_advance(wanted_resource text, shown bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    highest bigint;
BEGIN
    IF shown IS NULL OR shown < 1 THEN
        RAISE EXCEPTION 'a fencing token is 1 or more, not %', shown USING ERRCODE = 'FN002';
    END IF;
    INSERT INTO fence AS f (resource, token) VALUES (wanted_resource, shown)
        ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token
        RETURNING token INTO highest;
    IF highest IS NULL THEN
        SELECT token INTO highest FROM fence WHERE resource = wanted_resource;
        RAISE EXCEPTION 'stale fencing token % for %: % was seen', shown, wanted_resource, highest
            USING ERRCODE = 'FN001', HINT = 'Somebody else holds the lease, or did since. Stop, and do not retry.';
    END IF;
END
$$;

-- For teams that issue tokens from the database: the next token of a resource, to be taken together with the lease, in a
-- transaction of its own. Issue the tokens of a resource here or by a lease store, never by both.
CREATE OR REPLACE FUNCTION fence_next(wanted_resource text) RETURNS bigint
LANGUAGE sql AS $$
    INSERT INTO fence AS f (resource, token) VALUES (wanted_resource, 1)
        ON CONFLICT (resource) DO UPDATE SET token = f.token + 1
        RETURNING token
$$;

-- Whether an event id looks random. A retry that draws a new id is another reward; build ids from what the reward is:
-- season-2026-week-34:player-42:rank-3. The rules are those of the library: a UUID anywhere, or an unbroken run of 16 or
-- more hexadecimal digits, or of 20 or more letters and digits, with both letters and digits in it.
CREATE OR REPLACE FUNCTION event_id_looks_random(event_id text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT event_id ~ '[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}'
        OR EXISTS (SELECT FROM regexp_matches(event_id, '[0-9A-Fa-f]{16,}', 'g') AS run (text)
                   WHERE run.text[1] ~ '[0-9]' AND run.text[1] ~ '[A-Fa-f]')
        OR EXISTS (SELECT FROM regexp_matches(event_id, '[0-9A-Za-z]{20,}', 'g') AS run (text)
                   WHERE run.text[1] ~ '[0-9]' AND run.text[1] ~ '[A-Za-z]')
$$;

-- A CHECK for an event id column: 1 to 256 visible ASCII characters that do not look random.
CREATE OR REPLACE FUNCTION event_id_is_valid(event_id text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT event_id ~ '^[!-~]+$' AND octet_length(event_id) <= 256 AND NOT event_id_looks_random(event_id)
$$;
