//! The page on security names tests. Each of them has to be there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn each_test_that_the_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = root.join("engine/src/manual/security.rs");
    let text = fs::read_to_string(page).expect("the page");
    let rows = text
        .lines()
        .filter(|line| line.starts_with("//! | ") && !line.contains("| shown by |"));
    let mut named = BTreeSet::new();
    let mut count = 0;
    for row in rows {
        let last = row
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .expect("a column");
        let names: Vec<_> = last.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test in {row}");
        named.extend(names.into_iter().map(str::to_owned));
        count += 1;
    }
    assert!(count > 20, "only {count} rows were understood");
    let mut tests = BTreeSet::new();
    for folder in ["engine/src", "engine/tests", "tests/tests"] {
        collect(&root.join(folder), &mut tests);
    }
    let missing: Vec<_> = named.difference(&tests).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// The names of the functions that are tests, in all sources below a folder.
fn collect(folder: &PathBuf, tests: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, tests);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        for part in text.split("#[test]").skip(1) {
            let name = part
                .split_once("fn ")
                .and_then(|(_, rest)| rest.split('(').next());
            tests.extend(name.map(str::to_owned));
        }
    }
}
