-- The tables of a store in a file.
--
-- `url`: each URL once. `link`, `entry` and `demand` are of the last run that had the URL.
-- `url_key`: finds URLs by their text: by the first 64 bits of its hash, or the next number that is free. The URLs
-- after `store.keyed` may be missing in it: they are hashed when the store is opened.
-- `answer`: the last answer of each URL, and its life.
-- `queue`: what the run still has to ask.
-- `link`: the distinct spellings of URLs in the run, each with its first place; `place` has the others.
-- `written`: how a link to a file of this machine was written, if not like its spelling.
-- The spelling is NULL if it is the text of the URL. An `extra` one is not the first of its URL.
-- `event`: changes of state. `prev`: the change of state of the same URL before this one; 0 if there is none.
--
-- `member`: the URLs of each set. Twice the number of the last reading that had the URL; 1 more if it was added by hand.
-- `due`: when each URL that is in a set is to be asked. `lane` is the code of `Lane`.
-- `url.watched`: what is known about a URL that is or was in a set, as `tables/watch/bytes.rs` writes it. `sets`: in how many sets it
-- is, `left_at`: since when in none. `event`: its last change of state. `spelling`: how it was given, if not like `text`.
-- `trouble`: the code of the state of a URL that is in a set and not due in the lane of new and alive URLs; NULL for
-- all others, so that an answer that is good again writes nothing more.
-- `host.next_due`, `host.next_doubt`: when the first row of its lanes is due; `urls`, `held`: its URLs in sets.
-- `watch_count`, `set_count`: counts that each transaction keeps up to date.
--
-- `number` has the next numbers of jobs and their like, so that none is used twice. `store.id` tells stores apart.
--
-- Times are milliseconds since 1970.
CREATE TABLE store (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    next_link INTEGER NOT NULL,
    next_entry INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    keyed INTEGER NOT NULL,
    next_url INTEGER NOT NULL DEFAULT 0,
    id TEXT NOT NULL
) STRICT;
INSERT INTO store VALUES (1, 1, 1, 1, 0, 0, lower(hex(randomblob(4))));
CREATE TABLE run (
    run INTEGER PRIMARY KEY,
    identity TEXT NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    first_link INTEGER NOT NULL
) STRICT;
CREATE TABLE host (
    host INTEGER PRIMARY KEY,
    root TEXT NOT NULL UNIQUE,
    no_head_until INTEGER,
    head_lies_until INTEGER,
    answered_at INTEGER,
    control_at INTEGER,
    control_status INTEGER,
    episodes TEXT,
    urls INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0,
    next_due INTEGER,
    next_doubt INTEGER
) STRICT;
CREATE INDEX host_due ON host (next_due) WHERE next_due IS NOT NULL;
CREATE INDEX host_doubt ON host (next_doubt) WHERE next_doubt IS NOT NULL;
CREATE TABLE url (
    url INTEGER PRIMARY KEY,
    host INTEGER,
    link INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    demand INTEGER NOT NULL,
    text TEXT NOT NULL,
    sets INTEGER NOT NULL DEFAULT 0,
    event INTEGER NOT NULL DEFAULT 0,
    left_at INTEGER,
    spelling TEXT,
    watched BLOB,
    trouble INTEGER
) STRICT;
CREATE INDEX url_left ON url (left_at) WHERE left_at IS NOT NULL;
CREATE INDEX url_trouble ON url (trouble, url) WHERE trouble IS NOT NULL;
CREATE TABLE url_key (
    key INTEGER PRIMARY KEY,
    url INTEGER NOT NULL
) STRICT;
CREATE TABLE answer (
    url INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    demand INTEGER NOT NULL,
    reused INTEGER NOT NULL,
    class TEXT NOT NULL,
    cause TEXT,
    status INTEGER,
    method TEXT,
    attempts INTEGER NOT NULL,
    latency_us INTEGER,
    checked_at INTEGER,
    address BLOB,
    detail TEXT,
    moved_to TEXT,
    final_url TEXT,
    redirects TEXT,
    state TEXT,
    life BLOB
) STRICT;
CREATE TABLE queue (
    host INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    url INTEGER NOT NULL,
    PRIMARY KEY (host, entry)
) STRICT, WITHOUT ROWID;
CREATE TABLE source (
    source INTEGER PRIMARY KEY,
    is_page INTEGER NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE TABLE link (
    link INTEGER PRIMARY KEY,
    url INTEGER NOT NULL,
    extra INTEGER NOT NULL,
    source INTEGER NOT NULL,
    line INTEGER,
    col INTEGER,
    written TEXT,
    text TEXT NOT NULL,
    spelling TEXT
) STRICT;
CREATE INDEX link_extra ON link (url, spelling) WHERE extra = 1;
CREATE TABLE place (
    link INTEGER NOT NULL,
    place INTEGER NOT NULL,
    source INTEGER NOT NULL,
    line INTEGER,
    col INTEGER,
    written TEXT,
    text TEXT NOT NULL,
    PRIMARY KEY (link, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
    cursor INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    url INTEGER NOT NULL,
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    status INTEGER,
    why TEXT NOT NULL,
    prev INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX event_gone ON event (cursor) WHERE to_state IN ('GONE', 'PRUNED');
CREATE TABLE url_set (
    set_number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    members INTEGER NOT NULL DEFAULT 0,
    -- The last reading that began, and the last one that reached the end of the source.
    reading INTEGER NOT NULL DEFAULT 0,
    complete INTEGER NOT NULL DEFAULT 0,
    -- Members from the source: those that the reading has had, those that only earlier ones had, and how many there
    -- were when the reading began.
    fresh INTEGER NOT NULL DEFAULT 0,
    stale INTEGER NOT NULL DEFAULT 0,
    had INTEGER NOT NULL DEFAULT 0,
    read_at INTEGER,
    mark TEXT,
    -- The last reading that was not believed, and how many URLs were missing then; NULL once a later one was.
    refused INTEGER,
    refused_lost INTEGER,
    -- The last member that was looked at for leaving; NULL if there is nothing to look for.
    swept INTEGER
) STRICT;
CREATE TABLE member (
    set_number INTEGER NOT NULL,
    url INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    PRIMARY KEY (set_number, url)
) STRICT, WITHOUT ROWID;
CREATE TABLE due (
    host INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    url INTEGER NOT NULL,
    PRIMARY KEY (host, lane, due_at, url)
) STRICT, WITHOUT ROWID;
CREATE TABLE hold (
    host INTEGER PRIMARY KEY,
    since INTEGER NOT NULL,
    sampled_at INTEGER,
    was_sample_good INTEGER NOT NULL,
    -- The code of `HoldEnd`; 0 while the hold lasts.
    ending INTEGER NOT NULL
) STRICT;
-- The host is 0 for the own network.
CREATE TABLE stop (
    host INTEGER NOT NULL,
    place INTEGER NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    PRIMARY KEY (host, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE cycle (
    cycle INTEGER PRIMARY KEY,
    began INTEGER NOT NULL,
    ended INTEGER,
    asked INTEGER NOT NULL DEFAULT 0,
    alive INTEGER NOT NULL DEFAULT 0,
    in_doubt INTEGER NOT NULL DEFAULT 0,
    worse INTEGER NOT NULL DEFAULT 0,
    void INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE notice (
    notice INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    host INTEGER,
    who TEXT,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE watch_count (
    kind INTEGER NOT NULL,
    code INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, code)
) STRICT, WITHOUT ROWID;
CREATE TABLE set_count (
    set_number INTEGER NOT NULL,
    -- The code of a state.
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (set_number, state)
) STRICT, WITHOUT ROWID;
CREATE TABLE number (
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO number VALUES ('job', 1), ('letter', 1);
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
-- `kind`: 0 a URL of the table, 1 a text that is no URL, 2 a job. `times`: how often it was buried.
CREATE TABLE dead_letter (
    letter INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    url INTEGER,
    text TEXT,
    queue INTEGER,
    job INTEGER,
    key TEXT,
    keep_key INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL DEFAULT 1,
    times INTEGER NOT NULL DEFAULT 1,
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
CREATE UNIQUE INDEX dead_letter_key ON dead_letter (queue, key) WHERE key IS NOT NULL;
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
-- What operators have paused. Kind: 0 everything, 1 the host with this root URL.
CREATE TABLE pause (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    who TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
