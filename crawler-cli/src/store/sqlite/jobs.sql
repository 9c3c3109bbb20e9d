-- Jobs, dead letters, schedules and the outbox.
-- `number` has the next numbers, so that none is used twice.
CREATE TABLE number (
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO number VALUES ('job', 1), ('letter', 1), ('message', 1);
-- `waiting` and `started` count the jobs of the queue in these states.
CREATE TABLE job_queue (
    queue INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    waiting INTEGER NOT NULL DEFAULT 0,
    started INTEGER NOT NULL DEFAULT 0
) STRICT;
-- `state`: 0 waits until `at`, 1 was started at `at`, 2 is over and its key is known until `at`.
-- `attempt` counts the starts, `spared` those of them that do not count.
-- `letter` is the dead letter that the job was before it was replayed.
CREATE TABLE job (
    job INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    state INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    spared INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    first_at INTEGER,
    keep_key INTEGER NOT NULL,
    letter INTEGER,
    key TEXT,
    failure TEXT,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX job_turn ON job (queue, state, at);
CREATE UNIQUE INDEX job_key ON job (queue, key) WHERE key IS NOT NULL;
-- `kind`: 0 a URL of the table, 1 a text that is no URL, 2 a job, 3 a message of the outbox.
-- `text` is the text, or the receiver of the message; `payload` that of the job, or the body of the message.
CREATE TABLE dead_letter (
    letter INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    url INTEGER,
    text TEXT,
    topic TEXT,
    queue INTEGER,
    job INTEGER,
    key TEXT,
    keep_key INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL DEFAULT 1,
    payload BLOB,
    reason TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    last TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    replayed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX dead_letter_url ON dead_letter (url, reason) WHERE kind = 0;
CREATE UNIQUE INDEX dead_letter_text ON dead_letter (text, reason) WHERE kind = 1;
CREATE UNIQUE INDEX dead_letter_key ON dead_letter (queue, key, reason) WHERE key IS NOT NULL;
CREATE INDEX dead_letter_replayed ON dead_letter (replayed_at) WHERE replayed_at IS NOT NULL;
-- How many dead letters have a reason, without those that were replayed.
CREATE TABLE dead_letter_count (
    reason TEXT PRIMARY KEY,
    letters INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER dead_letter_new AFTER INSERT ON dead_letter WHEN new.replayed_at IS NULL BEGIN
    INSERT INTO dead_letter_count VALUES (new.reason, 1)
        ON CONFLICT (reason) DO UPDATE SET letters = letters + 1;
END;
CREATE TRIGGER dead_letter_gone AFTER DELETE ON dead_letter WHEN old.replayed_at IS NULL BEGIN
    UPDATE dead_letter_count SET letters = letters - 1 WHERE reason = old.reason;
    DELETE FROM dead_letter_count WHERE reason = old.reason AND letters = 0;
END;
CREATE TRIGGER dead_letter_away AFTER UPDATE ON dead_letter
WHEN old.replayed_at IS NULL AND (new.replayed_at IS NOT NULL OR new.reason <> old.reason) BEGIN
    UPDATE dead_letter_count SET letters = letters - 1 WHERE reason = old.reason;
    DELETE FROM dead_letter_count WHERE reason = old.reason AND letters = 0;
END;
CREATE TRIGGER dead_letter_back AFTER UPDATE ON dead_letter
WHEN new.replayed_at IS NULL AND (old.replayed_at IS NOT NULL OR new.reason <> old.reason) BEGIN
    INSERT INTO dead_letter_count VALUES (new.reason, 1)
        ON CONFLICT (reason) DO UPDATE SET letters = letters + 1;
END;
CREATE TABLE schedule (
    schedule INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    last_fired INTEGER,
    last_success INTEGER,
    next INTEGER,
    missed INTEGER NOT NULL DEFAULT 0,
    overlapped INTEGER NOT NULL DEFAULT 0,
    paused INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE firing (
    schedule INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    fired_at INTEGER NOT NULL,
    PRIMARY KEY (schedule, scheduled_at)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    message INTEGER PRIMARY KEY,
    receiver TEXT NOT NULL,
    topic TEXT NOT NULL,
    posted_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX outbox_turn ON outbox (receiver, next_at);
