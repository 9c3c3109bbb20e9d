-- What operators have paused. Kind: 0 everything, 1 the host with this root URL.
CREATE TABLE pause (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    who TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
