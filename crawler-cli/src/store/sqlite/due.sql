-- What version 2 adds for URLs that are watched.
--
-- `member`: the URLs of each set. Twice the number of the last reading that had the URL; 1 more if it was added by hand.
-- `due`: when each URL that is in a set is to be asked. `lane` is the code of `Lane`.
-- `url.watched`: what is known about a URL that is or was in a set, as `watched.rs` writes it. `sets`: in how many sets it
-- is, `left_at`: since when in none. `event`: its last change of state. `spelling`: how it was given, if not like `text`.
-- `event.prev`: the change of state of the same URL before this one; 0 if there is none.
-- `host.next_due`, `host.next_doubt`: when the first row of its lanes is due; `urls`, `held`: its URLs in sets.
-- `watch_count`: counts that each transaction keeps up to date.
ALTER TABLE store ADD COLUMN next_url INTEGER NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN urls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN next_due INTEGER;
ALTER TABLE host ADD COLUMN next_doubt INTEGER;
CREATE INDEX host_due ON host (next_due) WHERE next_due IS NOT NULL;
CREATE INDEX host_doubt ON host (next_doubt) WHERE next_doubt IS NOT NULL;
ALTER TABLE url ADD COLUMN sets INTEGER NOT NULL DEFAULT 0;
ALTER TABLE url ADD COLUMN event INTEGER NOT NULL DEFAULT 0;
ALTER TABLE url ADD COLUMN left_at INTEGER;
ALTER TABLE url ADD COLUMN spelling TEXT;
ALTER TABLE url ADD COLUMN watched BLOB;
CREATE INDEX url_left ON url (left_at) WHERE left_at IS NOT NULL;
ALTER TABLE event ADD COLUMN prev INTEGER NOT NULL DEFAULT 0;
UPDATE event SET prev = coalesce(
    (SELECT max(e.cursor) FROM event e WHERE e.url = event.url AND e.cursor < event.cursor), 0);
UPDATE url SET event = e.last FROM (SELECT url, max(cursor) AS last FROM event GROUP BY url) e WHERE e.url = url.url;
DROP INDEX event_url;
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
