CREATE SCHEMA IF NOT EXISTS courser_find;
CREATE TABLE search (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL,
    identity TEXT NOT NULL,
    began_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    ended_at TIMESTAMPTZ,
    quit BOOLEAN NOT NULL DEFAULT false
);
-- Each process that has ever joined: its numbers are those of the search, also when it is gone.
CREATE TABLE process (
    process BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    lease_until TIMESTAMPTZ NOT NULL,
    -- How many transactions it has committed: tells whether one whose answer was lost is stored.
    turn BIGINT NOT NULL DEFAULT 0,
    -- How many hosts it has with something left to do.
    active BIGINT NOT NULL DEFAULT 0,
    gone BOOLEAN NOT NULL DEFAULT false,
    -- Results that are saved, and may not have been written.
    results BYTEA NOT NULL DEFAULT '',
    tally TEXT
) WITH (fillfactor = 50);
CREATE TABLE host (
    host BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    origin TEXT NOT NULL UNIQUE,
    owner BIGINT,
    is_open BOOLEAN NOT NULL DEFAULT true,
    summit TEXT
) WITH (fillfactor = 50);
CREATE INDEX host_free ON host (host) WHERE owner IS NULL;
CREATE INDEX host_owner ON host (owner);
CREATE TABLE queued (
    host BIGINT NOT NULL,
    number BIGINT NOT NULL,
    task TEXT NOT NULL,
    spilled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (host, number)
);
CREATE TABLE held (
    host BIGINT NOT NULL,
    number BIGINT NOT NULL,
    listing TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (host, number)
);
CREATE TABLE known (host BIGINT NOT NULL, directory BYTEA NOT NULL, PRIMARY KEY (host, directory));
CREATE TABLE wanted (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host BIGINT NOT NULL,
    url TEXT NOT NULL,
    size_lo BIGINT,
    size_hi BIGINT,
    time_lo BIGINT,
    time_hi BIGINT
);
-- A URL can be too long for an index.
CREATE UNIQUE INDEX wanted_url ON wanted (host, md5(url), hashtextextended(url, 0));
CREATE TABLE downloads (host BIGINT PRIMARY KEY, tally TEXT NOT NULL);
-- Links to a host that another process has.
CREATE TABLE inbox (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, host BIGINT NOT NULL, link TEXT NOT NULL);
CREATE INDEX inbox_host ON inbox (host);
-- The results of all processes. The order of the keys is that of the results.
CREATE TABLE result (number BIGINT GENERATED ALWAYS AS IDENTITY, key BYTEA NOT NULL, output BYTEA NOT NULL);
