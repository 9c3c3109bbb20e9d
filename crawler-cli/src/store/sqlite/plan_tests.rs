//! What the database does for each list: it begins at a key in an index, and neither looks at all rows nor sorts them.

use super::Sqlite;
use crate::store::tables::jobs::letter_lists;
use crate::store::tables::read::{PRUNED, events_before};
use crate::store::tables::watch::{guards, lists};

/// Each query of a list, with the tables and indexes that are searched.
fn lists() -> Vec<(String, &'static [&'static str])> {
    vec![
        (lists::all(), &["u USING INTEGER PRIMARY KEY (rowid>?)"]),
        (
            lists::of_set(),
            &[
                "m USING PRIMARY KEY (set_number=? AND url>?)",
                "u USING INTEGER PRIMARY KEY (rowid=?)",
            ],
        ),
        (
            lists::of_state(),
            &["u USING INDEX url_trouble (trouble=? AND url>?)"],
        ),
        (
            lists::of_host_and_state(),
            &["u USING INDEX url_host_trouble (host=? AND trouble=? AND url>?)"],
        ),
        (
            lists::of_host_by_time(),
            &[
                "d USING PRIMARY KEY (host=? AND lane=? AND (due_at,url)>(?,?))",
                "u USING INTEGER PRIMARY KEY (rowid=?)",
            ],
        ),
        (
            lists::COUNT.to_owned(),
            &["url USING COVERING INDEX url_host_trouble (host=? AND trouble=?)"],
        ),
        (
            lists::named_hosts(),
            &["host USING INDEX sqlite_autoindex_host_1 (root>? AND root<?)"],
        ),
        (
            lists::hosts_due_at(),
            &["host USING INDEX host_due (next_due=? AND rowid>?)"],
        ),
        (
            lists::hosts_due_after(),
            &["host USING INDEX host_due (next_due>?)"],
        ),
        (
            guards::HOLDS.to_owned(),
            &[
                "d USING INTEGER PRIMARY KEY (rowid>?)",
                "h USING INTEGER PRIMARY KEY (rowid=?)",
            ],
        ),
        (
            guards::NOTICES_BEFORE.to_owned(),
            &["notice USING INTEGER PRIMARY KEY (rowid<?)"],
        ),
        (
            events_before(),
            &[
                "e USING INTEGER PRIMARY KEY (rowid<?)",
                "u USING INTEGER PRIMARY KEY (rowid=?)",
            ],
        ),
        (
            PRUNED.to_owned(),
            &[
                "e USING INDEX event_gone (cursor>?)",
                "u USING INTEGER PRIMARY KEY (rowid=?)",
            ],
        ),
        (
            letter_lists::latest(),
            &[
                "d USING INTEGER PRIMARY KEY (rowid<?)",
                "q USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
                "u USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
            ],
        ),
        (
            letter_lists::latest_with_reason(),
            &[
                "d USING INDEX dead_letter_reason (reason=? AND letter<?)",
                "q USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
                "u USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
            ],
        ),
        (
            letter_lists::of_url(),
            &[
                "d USING INDEX dead_letter_url (url=?)",
                "q USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
                "u USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
            ],
        ),
    ]
}

#[test]
fn each_list_begins_at_its_key() {
    let store = Sqlite::temporary().expect("a store");
    for (query, expected) in lists() {
        let details = store.plan(&query);
        let searched = |detail: &String| detail.strip_prefix("SEARCH ").map(str::to_owned);
        let found: Vec<String> = details.iter().filter_map(searched).collect();
        assert_eq!(found, expected, "{query}: {details:?}");
        let is_other = |detail: &&String| {
            !detail.starts_with("SEARCH ")
                && !detail.starts_with("CO-ROUTINE")
                && !detail.starts_with("LIST SUBQUERY")
                && *detail != "SCAN few"
        };
        assert_eq!(details.iter().find(is_other), None, "{query}");
    }
}
