-- Fencing for services in any language: guards your own tables in your own transaction. MariaDB 10.6 or later. It is
-- not tested on MySQL.
--
-- Load it once (mariadb DATABASE < mariadb.sql). Then, first thing in the transaction that writes:
--
--     CALL fence_advance('lock:reward:player-42', 101);
--
-- fails with SQLSTATE 45001 if a higher token was seen for the resource; roll back then. Otherwise the token is the highest
-- now, and the row stays locked until you commit. An equal token passes, since the same holder writes more than once.

CREATE TABLE IF NOT EXISTS fence (
    resource VARBINARY(1024) NOT NULL PRIMARY KEY,
    token    BIGINT          NOT NULL CHECK (token > 0)
) ENGINE = InnoDB;

DELIMITER //

DROP PROCEDURE IF EXISTS fence_advance //
CREATE PROCEDURE fence_advance(wanted_resource VARBINARY(1024), shown BIGINT)
    MODIFIES SQL DATA
BEGIN
    DECLARE highest BIGINT;
    DECLARE words VARCHAR(128);
    IF shown IS NULL OR shown < 1 THEN
        SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = 'a fencing token is 1 or more';
    END IF;
    -- Makes the row, or raises it, and locks it either way.
    INSERT INTO fence (resource, token) VALUES (wanted_resource, shown)
        ON DUPLICATE KEY UPDATE token = GREATEST(token, shown);
    -- A locking read: what was committed last, whatever the transaction has read before.
    SELECT token INTO highest FROM fence WHERE resource = wanted_resource FOR UPDATE;
    IF highest > shown THEN
        SET words = CONCAT('stale fencing token ', shown, ': ', highest, ' was seen');
        SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = words;
    END IF;
END //

-- For teams that issue tokens from the database: the next token of a resource, to be taken together with the lease, in a
-- transaction of its own. Issue the tokens of a resource here or by a lease store, never by both.
DROP PROCEDURE IF EXISTS fence_next //
CREATE PROCEDURE fence_next(wanted_resource VARBINARY(1024), OUT next_token BIGINT)
    MODIFIES SQL DATA
BEGIN
    INSERT INTO fence (resource, token) VALUES (wanted_resource, 1)
        ON DUPLICATE KEY UPDATE token = token + 1;
    SELECT token INTO next_token FROM fence WHERE resource = wanted_resource FOR UPDATE;
END //

-- Whether an event id looks random, by the rules of the library: a UUID anywhere, or an unbroken run of 16 or more
-- hexadecimal digits, or of 20 or more letters and digits, with both letters and digits in it.
DROP FUNCTION IF EXISTS event_id_looks_random //
CREATE FUNCTION event_id_looks_random(event_id VARCHAR(256)) RETURNS BOOLEAN
    DETERMINISTIC NO SQL
BEGIN
    RETURN event_id REGEXP '[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}'
        OR event_id REGEXP '(?<![0-9A-Fa-f])(?=[0-9A-Fa-f]{16})([0-9]+[A-Fa-f]|[A-Fa-f]+[0-9])'
        OR event_id REGEXP '(?<![0-9A-Za-z])(?=[0-9A-Za-z]{20})([0-9]+[A-Za-z]|[A-Za-z]+[0-9])';
END //

DELIMITER ;
