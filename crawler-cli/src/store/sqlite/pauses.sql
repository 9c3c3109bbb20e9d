-- What operators have paused. Kind: 0 everything, 1 the host with this root URL, 2 the set with this name.
CREATE TABLE pause (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    who TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
