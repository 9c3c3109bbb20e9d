//! Tables and their versions.

/// What `PRAGMA application_id` says of a store: "Crsr".
pub(super) const APPLICATION: i64 = 0x4372_7372;

/// The version of a store: how many of [`MIGRATIONS`] were applied.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// What makes each version of the one before. A migration that was released never changes.
///
/// - `url`: each URL once. `link`, `entry` and `demand` are of the last run that had the URL.
/// - `url_key`: finds URLs by their text: by the first 64 bits of its hash, or the next number that is free. The URLs
///   after `store.keyed` may be missing in it: they are hashed when the store is opened.
/// - `answer`: the last answer of each URL, and its life.
/// - `queue`: what the run still has to ask.
/// - `link`: the distinct spellings of URLs in the run, each with its first place; `place` has the others.
///   The spelling is NULL if it is the text of the URL. An `extra` one is not the first of its URL.
/// - `anchors`: the names of elements of pages that links with fragments lead to.
/// - `event`: changes of state.
///
/// Times are milliseconds since 1970.
pub(super) const MIGRATIONS: [&str; 3] = [VERSION_1, VERSION_2, VERSION_3];

/// Version 2: what a service keeps.
const VERSION_2: &str = concat!(
    include_str!("due.sql"),
    include_str!("jobs.sql"),
    include_str!("pauses.sql")
);

/// Version 3: what the operator's page, the API and webhooks need.
const VERSION_3: &str = include_str!("admin.sql");

const VERSION_1: &str = "
    CREATE TABLE store (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        next_link INTEGER NOT NULL,
        next_entry INTEGER NOT NULL,
        next_event INTEGER NOT NULL,
        keyed INTEGER NOT NULL
    ) STRICT;
    INSERT INTO store VALUES (1, 1, 1, 1, 0);
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
        episodes TEXT
    ) STRICT;
    CREATE TABLE url (
        url INTEGER PRIMARY KEY,
        host INTEGER,
        link INTEGER NOT NULL,
        entry INTEGER NOT NULL,
        demand INTEGER NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
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
        text TEXT NOT NULL,
        PRIMARY KEY (link, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE anchors (
        url INTEGER PRIMARY KEY,
        names BLOB NOT NULL
    ) STRICT;
    CREATE TABLE event (
        cursor INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        url INTEGER NOT NULL,
        from_state TEXT NOT NULL,
        to_state TEXT NOT NULL,
        status INTEGER,
        why TEXT NOT NULL
    ) STRICT;
    CREATE INDEX event_url ON event (url, cursor);
";
