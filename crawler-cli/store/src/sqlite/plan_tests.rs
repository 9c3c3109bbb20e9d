//! What the database does for each list: it begins at a key in an index, and neither looks at all rows nor sorts them.

use super::Sqlite;
use crate::tables::jobs::letters;
use crate::tables::read::{PRUNED, events_before};
use crate::tables::watch::{guards, read};

/// Each query of a list, with the tables and indexes that are searched.
fn lists() -> Vec<(String, &'static [&'static str])> {
    vec![
        (read::of_state(), &["u USING INDEX url_trouble (trouble=?)"]),
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
            letters::of_url(),
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
        };
        assert_eq!(details.iter().find(is_other), None, "{query}");
    }
}
