-- A store of version 1, as it was written: in the middle of a run.
CREATE TABLE store (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    next_link INTEGER NOT NULL,
    next_entry INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    keyed INTEGER NOT NULL
) STRICT;
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

INSERT INTO store VALUES (1, 9, 7, 3, 1);
INSERT INTO run VALUES (1, 'before', 1760000000000, 1760000001000, 1);
INSERT INTO run VALUES (2, 'docs', 1760000002000, NULL, 3);
INSERT INTO host VALUES (1, 'http://a/', 1760000100000, 1760000200000, 1760000000000, 1760000000001, 200, '[[1760000000000,86400000]]');
INSERT INTO host VALUES (2, 'https://b:8443/', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO url VALUES (2, 1, 3, 3, 11, 'http://a/');
INSERT INTO url VALUES (1, 1, 4, 4, 36, 'http://host0.example.com/some/path/of/files/number-00023825.html');
INSERT INTO url VALUES (3, NULL, 6, 0, 0, 'file:///missing.md');
INSERT INTO url VALUES (4, 2, 7, 5, 17, 'https://b:8443/x?y=1');
INSERT INTO url_key VALUES (-9223285618244497214, 1);
INSERT INTO answer VALUES (2, 2, 11, 0, 'ok', NULL, 200, 'GET', 1, 812, 1760000003000, X'7F000001', NULL, NULL, NULL, NULL, 'ALIVE', X'010140f8a487c2c068000100000000000000008088b2a0020000000000000001c00c');
INSERT INTO answer VALUES (1, 1, 0, 1, 'net', 'status_503', 503, 'HEAD', 3, 2000000, 1760000000500, X'00000000000000000000000000000001', 'overloaded', 'http://a/new', 'http://a/new#x', '[[301,"http://a/new"]]', 'UNREACHABLE', X'010140f8a487c2c068000100000000000000008088b2a0020000000000000001c00c');
INSERT INTO answer VALUES (3, 2, 0, 0, 'soft', 'file_missing', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queue VALUES (1, 4, 1);
INSERT INTO queue VALUES (2, 5, 4);
INSERT INTO source VALUES (1, 0, 'urls.txt');
INSERT INTO source VALUES (2, 1, 'http://a/');
INSERT INTO link VALUES (3, 2, 0, 1, 1, 1, '', NULL);
INSERT INTO link VALUES (4, 1, 0, 2, 10, 5, 'the page', NULL);
INSERT INTO link VALUES (5, 1, 1, 2, 11, 5, 'a part', 'http://host0.example.com/some/path/of/files/number-00023825.html#part');
INSERT INTO link VALUES (6, 3, 0, 1, 2, NULL, '', NULL);
INSERT INTO link VALUES (7, 4, 0, 1, 3, 1, '', NULL);
INSERT INTO place VALUES (4, 8, 2, 12, 1, 'again');
INSERT INTO anchors VALUES (2, X'746F70');
INSERT INTO event VALUES (1, 1760000000500, 1, 'NEW', 'UNREACHABLE', 503, 'status_503');
INSERT INTO event VALUES (2, 1760000003000, 2, 'NEW', 'ALIVE', 200, 'ok');
