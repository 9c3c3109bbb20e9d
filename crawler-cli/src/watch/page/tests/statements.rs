//! What the database does for the pages and the API.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::{Served, fill_store, links};
use crate::store::sqlite::Sqlite;

static STATEMENTS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn note(statement: &str) {
    let mut statements = STATEMENTS.lock().expect("no test panicked here");
    statements.insert(statement.to_owned());
}

/// Each page with each of its filters, and each list and look-up of the API: their statements search by a key, or read a
/// table that does not grow with the URLs.
#[test]
fn nothing_that_is_shown_needs_a_look_at_all_urls() {
    let served = fill_store(Served::traced(note));
    let mut pages = vec!["/".to_owned()];
    let mut seen: BTreeSet<String> = pages.iter().cloned().collect();
    while let Some(path) = pages.pop() {
        for link in links(&served.get(&path)) {
            if seen.insert(link.clone()) {
                pages.push(link);
            }
        }
    }
    let host = "https%3A%2F%2Fhost1.example%2F";
    for path in [
        "status".to_owned(),
        "urls".to_owned(),
        "urls?state=gone".to_owned(),
        "urls?state=alive".to_owned(),
        "urls?set=added".to_owned(),
        format!("urls?host={host}"),
        format!("urls?host={host}&state=gone"),
        "url?url=https%3A%2F%2Fhost1.example%2F001%3Fq%3D%3Cscript%3E".to_owned(),
        "changes".to_owned(),
        "hosts".to_owned(),
        "hosts?name=host1".to_owned(),
        format!("host?root={host}"),
        "holds".to_owned(),
        "dead-letters".to_owned(),
        "dead-letters?reason=x".to_owned(),
        "dead-letters?host=host1.example&since=3d".to_owned(),
        "dead-letters?queue=x".to_owned(),
        "dead-letter?number=1".to_owned(),
        "schedules".to_owned(),
        "webhooks".to_owned(),
        "notices".to_owned(),
    ] {
        let answer = served.get(&format!("/api/v1/{path}"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
    let store = Sqlite::temporary().expect("a store");
    let statements = STATEMENTS.lock().expect("no test panicked here");
    let reads: Vec<_> = (statements.iter())
        .filter(|statement| statement.starts_with("SELECT"))
        .collect();
    assert!(reads.len() > 30, "{reads:#?}");
    for statement in reads {
        for step in store.plan(statement) {
            assert!(!step.contains("TEMP B-TREE"), "sorts: {statement}");
            if let Some(scanned) = step.strip_prefix("SCAN ") {
                let table = scanned.split(" USING ").next().unwrap_or(scanned);
                let is_first_row = *statement == "SELECT EXISTS (SELECT 1 FROM url_key)";
                assert!(
                    SMALL.contains(&table) || is_first_row,
                    "{step}: {statement}"
                );
            }
        }
    }
}

/// Tables that do not grow with the URLs, `s` for `url_set`, and what is no table. A list of cycles ends after some rows.
const SMALL: [&str; 11] = [
    "few",
    "CONSTANT ROW",
    "cycle",
    "dead_letter_count",
    "job_queue",
    "pause",
    "s",
    "schedule",
    "store",
    "url_set",
    "watch_count",
];
