//! The suite of the trait on a database in a file, and what is particular to SQLite.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;
use url::Url;

use super::*;
use crate::suite::{Durable, Engine, child, suite};
use crate::tables::keys;
use crate::*;
use crate::{Demand, StoreErrorKind, Target};
use verdict::Reference;

mod file {
    use super::*;

    suite!(InFile);

    #[test]
    #[ignore = "started and killed by the test `kills`"]
    fn killed() {
        child::<InFile>();
    }
}

/// A database in a file.
struct InFile {
    path: PathBuf,
    /// Removed at the end, if it was made here.
    _folder: Option<TempDir>,
}

impl Engine for InFile {
    type Store = Sqlite;

    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            path: folder.path().join("urls.db"),
            _folder: Some(folder),
        }
    }

    fn open(&self) -> Sqlite {
        let mut store = Sqlite::open(&self.path).expect("a store");
        store.memory.keys.least = 8; // so that the table is reached
        store
    }
}

impl Durable for InFile {
    const CHILD: &'static str = "sqlite::tests::file::killed";

    fn place(&self) -> String {
        self.path.to_str().expect("text").to_owned()
    }

    fn at(place: &str) -> Self {
        Self {
            path: place.into(),
            _folder: None,
        }
    }

    fn check(&self) {
        let db = Connection::open(&self.path).expect("a database");
        let found: String = db
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("readable");
        assert_eq!(found, "ok");
        drop(db);
        let report = crate::check(&self.path).expect("readable");
        assert_eq!(report.problems, []);
    }
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

pub(super) fn link_to(url: &str) -> Link {
    Link {
        spelling: url.into(),
        target: Target::Ask(Url::parse(url).expect("a URL"), Demand::default()),
        reference: Reference {
            source: "urls.txt".into(),
            line: Some(1),
            column: Some(1),
            written: None,
            text: String::new(),
        },
        is_in_page: false,
    }
}

pub(super) fn links(numbers: std::ops::Range<usize>) -> Vec<Link> {
    numbers
        .map(|number| link_to(&format!("http://a/{number}")))
        .collect()
}

fn error_of(path: &Path) -> String {
    let error = Sqlite::open(path).expect_err("refused").to_string();
    let name = path.display().to_string();
    error
        .strip_prefix(&name)
        .expect("names the file")
        .to_owned()
}

#[test]
fn a_file_has_one_user_at_a_time() {
    let engine = InFile::new();
    let store = engine.open();
    let own = std::process::id();
    assert_eq!(
        error_of(&engine.path),
        format!(": process {own} is using it")
    );
    drop(store);
    drop(engine.open());
    let names = fs::read_dir(engine.path.parent().expect("a folder")).expect("readable");
    assert_eq!(names.count(), 1, "only the database is left");
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("notes.txt");
    fs::write(
        &text,
        "Not a database, but a text that somebody needs.".repeat(50),
    )
    .expect("written");
    let before = fs::read(&text).expect("readable");
    assert_eq!(error_of(&text), ": not a store of crawler-cli");
    assert_eq!(fs::read(&text).expect("readable"), before);

    let other = folder.path().join("other.db");
    let db = Connection::open(&other).expect("a database");
    db.execute_batch("CREATE TABLE mine (x)").expect("written");
    drop(db);
    let before = fs::read(&other).expect("readable");
    assert_eq!(error_of(&other), ": not a store of crawler-cli");
    assert_eq!(fs::read(&other).expect("readable"), before);
    assert_eq!(error_of(folder.path()), ": Is a directory (os error 21)");
}

#[test]
fn other_versions_are_refused() {
    let engine = InFile::new();
    drop(engine.open());
    let db = Connection::open(&engine.path).expect("a database");
    db.pragma_update(None, "user_version", 99).expect("written");
    drop(db);
    assert_eq!(
        error_of(&engine.path),
        format!(
            ": the store has version 99, but this version of crawler-cli needs version {}",
            open::VERSION
        )
    );
}

#[test]
fn damage_is_an_error_that_names_the_file() {
    let engine = InFile::new();
    let mut store = engine.open();
    store.begin_run("test", now()).expect("written");
    let host = store.add(&links(0..2000)).expect("written").new_hosts[0].id;
    drop(store);
    let mut bytes = fs::read(&engine.path).expect("readable");
    // Everything but the header and the schema.
    for page in bytes.chunks_mut(8192).skip(4) {
        page.fill(0xA5);
    }
    fs::write(&engine.path, &bytes).expect("written");
    let read = Sqlite::open(&engine.path).and_then(|mut store| {
        store.begin_run("test", now())?;
        store.take(host, EntryId::START, 10)
    });
    let error = read.expect_err("damaged");
    assert!(
        matches!(error.kind(), StoreErrorKind::Damaged(_)),
        "{error}"
    );
    let start = format!("{}: damaged: ", engine.path.display());
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn values_that_were_not_written_so_are_damage() {
    let engine = InFile::new();
    let mut store = engine.open();
    store.begin_run("test", now()).expect("written");
    let host = store.add(&links(0..1)).expect("written").new_hosts[0].id;
    store
        .db
        .sqlite()
        .execute_batch("UPDATE url SET demand = -1")
        .expect("written");
    let error = store.take(host, EntryId::START, 10).expect_err("damaged");
    assert!(
        error.to_string().ends_with(": damaged: demand -1"),
        "{error}"
    );
}

#[test]
fn a_full_disk_loses_only_the_batch_that_does_not_fit() {
    let engine = InFile::new();
    let mut store = engine.open();
    store.begin_run("test", now()).expect("written");
    let host = store.add(&links(0..10)).expect("written").new_hosts[0].id;
    let pages: i64 = store
        .db
        .sqlite()
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .expect("readable");
    store
        .db
        .sqlite()
        .pragma_update_and_check(None, "max_page_count", pages + 2, |_| Ok(()))
        .expect("written");
    let error = store.add(&links(5..5000)).expect_err("full");
    assert!(matches!(error.kind(), StoreErrorKind::Full), "{error}");
    assert_eq!(
        error.to_string(),
        format!("{}: no space left", engine.path.display())
    );
    let waiting = |store: &mut Sqlite| {
        store
            .take(host, EntryId::START, 10_000)
            .expect("readable")
            .len()
    };
    assert_eq!(waiting(&mut store), 10);
    // With space again, the same batch fits.
    store
        .db
        .sqlite()
        .pragma_update_and_check(None, "max_page_count", 1_000_000, |_| Ok(()))
        .expect("written");
    let added = store.add(&links(5..5000)).expect("fits");
    assert!(added.new_hosts.is_empty());
    assert_eq!(waiting(&mut store), 5000);
}

#[test]
fn without_a_file_nothing_is_stored_after_a_failure() {
    let mut store = Sqlite::temporary().expect("memory");
    store.begin_run("test", now()).expect("written");
    store
        .db
        .sqlite()
        .pragma_update_and_check(None, "max_page_count", 30, |_| Ok(()))
        .expect("written");
    let error = store.add(&links(0..50_000)).expect_err("full");
    assert_eq!(error.to_string(), "temporary database: no space left");
    let error = store.add(&links(0..1)).expect_err("broken");
    assert_eq!(
        error.to_string(),
        "temporary database: an earlier change could not be stored"
    );
}

#[test]
fn keys_in_memory_and_in_the_table_find_the_same_urls() {
    let engine = InFile::new();
    let mut store = engine.open();
    store.begin_run("test", now()).expect("written");
    for batch in 0..40 {
        store
            .add(&links(batch * 50..batch * 50 + 60))
            .expect("written");
        // In memory are those of the last batch and a few more.
        if batch % 7 == 3 {
            drop(store);
            store = engine.open();
            store.begin_run("test", now()).expect("written");
        }
    }
    let urls = |store: &Sqlite, table: &str| {
        let query = format!("SELECT count(*) FROM {table}");
        store
            .db
            .sqlite()
            .query_row(&query, [], |row| row.get::<_, i64>(0))
            .expect("readable")
    };
    assert_eq!(urls(&store, "url"), 2010);
    let in_table = urls(&store, "url_key");
    assert!((1000..2010).contains(&in_table), "{in_table}");
    for number in 0..2010 {
        let known = store
            .history(&format!("http://a/{number}"))
            .expect("readable");
        assert!(known.is_some(), "{number}");
    }
}

#[test]
fn urls_with_the_same_hash_are_told_apart() {
    let mut store = Sqlite::temporary().expect("memory");
    store.begin_run("test", now()).expect("written");
    store.add(&links(0..3)).expect("written");
    // The first URL takes the key of the next one that comes, and that after it.
    let key = keys::key_of("http://a/3");
    store.memory.keys.insert(key, 1);
    store.memory.keys.insert(key.wrapping_add(1), 2);
    let added = store.add(&links(3..4)).expect("written");
    assert_eq!(added.queued.len(), 1);
    assert!(store.add(&links(3..4)).expect("written").queued.is_empty());
    let known = store
        .history("http://a/3")
        .expect("readable")
        .expect("known");
    assert_eq!(known.id, UrlId(4));
}
