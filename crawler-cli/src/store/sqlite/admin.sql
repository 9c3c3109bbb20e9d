-- Version 3: what lists of many rows need, and what the operator's page, the API and webhooks keep.
--
-- `url.trouble`: the code of the state of a URL that is in a set and not due in the lane of new and alive URLs; NULL for
-- all others, so that an answer that is good again writes nothing more.
-- `event.damped`: whether the URL was flapping. `store.id` tells stores apart.
-- `dead_letter.turn`: a number of its own whenever the letter is news.
-- `sample`: what the charts of the operator's page show. `idempotency`: answers to requests that may come again.
-- `hook`: how far each receiver of webhooks has been told; `stopped_at`: it wants no more.
ALTER TABLE store ADD COLUMN id TEXT NOT NULL DEFAULT '';
UPDATE store SET id = lower(hex(randomblob(4)));
ALTER TABLE url ADD COLUMN trouble INTEGER;
UPDATE url SET trouble = CASE e.to_state WHEN 'SUSPECT' THEN 2 WHEN 'BROKEN' THEN 3 WHEN 'UNREACHABLE' THEN 4
        WHEN 'QUARANTINED' THEN 5 WHEN 'GONE' THEN 6 WHEN 'PRUNED' THEN 7 END
    FROM event e WHERE e.cursor = url.event AND url.sets > 0
    AND e.to_state IN ('SUSPECT', 'BROKEN', 'UNREACHABLE', 'QUARANTINED', 'GONE', 'PRUNED');
-- URLs that wait for an operator have no due row.
UPDATE url SET trouble = coalesce((SELECT e.to_state = 'ALIVE' FROM event e WHERE e.cursor = url.event), 0)
    WHERE sets > 0 AND trouble IS NULL
    AND url IN (SELECT url FROM dead_letter WHERE kind = 0 EXCEPT SELECT url FROM due WHERE lane = 0);
CREATE INDEX url_trouble ON url (trouble, url) WHERE trouble IS NOT NULL;
CREATE INDEX url_host_trouble ON url (host, trouble, url) WHERE trouble IS NOT NULL;
ALTER TABLE event ADD COLUMN damped INTEGER NOT NULL DEFAULT 0;
CREATE INDEX event_gone ON event (cursor) WHERE to_state IN ('GONE', 'PRUNED');
CREATE INDEX event_damped ON event (cursor) WHERE damped = 1;
ALTER TABLE dead_letter ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
INSERT INTO number VALUES ('turn', 1);
CREATE INDEX dead_letter_turn ON dead_letter (turn) WHERE turn > 0;
CREATE INDEX dead_letter_reason ON dead_letter (reason, letter);
CREATE TABLE sample (
    at INTEGER PRIMARY KEY,
    data TEXT NOT NULL
) STRICT;
CREATE TABLE token (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    may_write INTEGER NOT NULL,
    made_at INTEGER NOT NULL,
    expires_at INTEGER,
    made_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency (
    key TEXT PRIMARY KEY,
    request BLOB NOT NULL,
    status INTEGER NOT NULL,
    answer TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_at ON idempotency (at);
CREATE TABLE hook (
    receiver TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    event INTEGER NOT NULL,
    damped INTEGER NOT NULL,
    damped_at INTEGER,
    notice INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    stopped_at INTEGER,
    why TEXT
) STRICT, WITHOUT ROWID;
-- Messages are sent in the order of their numbers.
DROP INDEX outbox_turn;
CREATE INDEX outbox_receiver ON outbox (receiver);
INSERT INTO notice (at, kind, text)
    SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER), 'migrate', 'migrated the store to version 3'
    FROM url WHERE watched IS NOT NULL LIMIT 1;
