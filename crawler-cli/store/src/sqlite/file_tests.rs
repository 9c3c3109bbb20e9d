//! Readers, backups and checks of files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use rusqlite::Connection;
use tempfile::TempDir;

use super::tests::{link_to, links};
use super::{Sqlite, backup, restore};
use crate::{
    Buried, Change, Completed, Engine as _, EntryId, HostId, JobStore as _, Judgement, Lane, Lanes,
    NewDeadLetter, NewJob, NewUrl, Origin, Store as _, StoreErrorKind, WatchStore as _,
};
use crate::{CheckReport, check};
use plain::random::Random;
use verdict::Answer;
use verdict::life::{Context, Profile};
use verdict::{Cause, Verdict};

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).expect("in range")
}

struct Place {
    folder: TempDir,
    store: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("watch.db");
        Self { folder, store }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names of all files.
    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path()).expect("readable");
        let name = |file: std::io::Result<fs::DirEntry>| {
            let name = file.expect("readable").file_name();
            name.into_string().expect("text")
        };
        let mut names: Vec<String> = files.map(name).collect();
        names.sort();
        names
    }
}

fn enqueue(store: &mut Sqlite, count: usize) {
    let jobs: Vec<NewJob> = (0..count)
        .map(|number| NewJob::new("mail", number.to_string()))
        .collect();
    store.enqueue(&jobs, now()).expect("written");
}

fn waiting(path: &Path) -> u64 {
    let mut store = Sqlite::open_read_only(path).expect("a store");
    store.job_counts("mail").expect("readable").waiting
}

#[test]
fn a_reader_sees_what_is_stored_while_another_process_writes() {
    let place = Place::new();
    fs::write(&place.store, "").expect("written");
    let empty = Sqlite::open_read_only(&place.store).expect_err("no store");
    assert!(matches!(empty.kind(), StoreErrorKind::Foreign), "{empty}");
    let mut store = Sqlite::open(&place.store).expect("a store");
    enqueue(&mut store, 1);
    assert_eq!(waiting(&place.store), 1);
    store.begin_group().expect("begun");
    enqueue(&mut store, 1);
    assert_eq!(
        waiting(&place.store),
        1,
        "what is not committed is not there"
    );
    store.end_group().expect("stored");
    assert_eq!(waiting(&place.store), 2);
    let mut reader = Sqlite::open_read_only(&place.store).expect("a store");
    let refused = reader.enqueue(&[NewJob::new("mail", "1")], now());
    let error = refused.expect_err("read only").to_string();
    assert!(error.ends_with("watch.db: cannot be written"), "{error}");
    drop((reader, store));
    assert_eq!(waiting(&place.store), 2, "without a writer, too");
}

#[test]
fn a_backup_is_the_store_at_one_moment() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    enqueue(&mut store, 20_000);
    let saved = place.file("saved.db");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The store goes on.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                enqueue(&mut store, 10);
            }
        });
        backup(&place.store, &saved).expect("copied");
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(waiting(&saved) % 10, 0, "whole transactions");
    assert!((20_000..=waiting(&place.store)).contains(&waiting(&saved)));
    assert!(check(&saved).expect("readable").is_clean());
    // The next backup takes the name.
    enqueue(&mut store, 1);
    let all = waiting(&place.store);
    backup(&place.store, &saved).expect("copied");
    assert_eq!(waiting(&saved), all);
    drop(store);
    let rest: Vec<String> = place.names();
    assert!(!rest.iter().any(|name| name.contains("copy")), "{rest:?}");
}

#[test]
fn a_symbolic_link_is_the_store_that_it_means() {
    let place = Place::new();
    let [link, next] = ["link.db", "next.db"].map(|name| place.file(name));
    std::os::unix::fs::symlink("watch.db", &link).expect("linked");
    std::os::unix::fs::symlink(&link, &next).expect("linked");
    // There is no store yet.
    let mut store = Sqlite::open(&next).expect("a store");
    enqueue(&mut store, 2);
    for name in [&place.store, &link, &next] {
        let error = Sqlite::open(name).expect_err("in use");
        assert!(matches!(error.kind(), StoreErrorKind::InUse(_)), "{error}");
        assert_eq!(waiting(name), 2);
    }
    let saved = place.file("saved.db");
    backup(&next, &saved).expect("copied");
    drop(store);
    let restored = super::restore(&saved, &link, now()).expect("restored");
    assert!(restored.aside.is_some_and(|aside| aside.exists()));
    assert!(link.is_symlink() && !place.store.is_symlink());
    assert_eq!(waiting(&place.store), 2);
}

#[test]
fn a_backup_replaces_a_store_with_its_log_and_none_that_is_in_use() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    enqueue(&mut store, 3);
    let other = place.file("other.db");
    let mut used = Sqlite::open(&other).expect("a store");
    enqueue(&mut used, 500);
    let error = backup(&place.store, &other).expect_err("in use");
    assert!(matches!(error.kind(), StoreErrorKind::InUse(_)), "{error}");
    // As if the process that used it was killed: its log is still there.
    let log = plain::files::beside(&other, "-wal");
    let left = fs::read(&log).expect("a log");
    assert!(!left.is_empty());
    drop(used);
    fs::write(&log, left).expect("written");
    backup(&place.store, &other).expect("copied");
    assert!(!log.exists());
    assert_eq!(waiting(&other), 3);
    assert!(check(&other).expect("readable").is_clean());
}

#[test]
fn a_backup_never_replaces_the_store_or_its_files() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    enqueue(&mut store, 3);
    let hard = place.file("hard.db");
    fs::hard_link(&place.store, &hard).expect("linked");
    let soft = place.file("soft.db");
    std::os::unix::fs::symlink(&place.store, &soft).expect("linked");
    let [log, lock] = ["-wal", "-lock"].map(|end| plain::files::beside(&place.store, end));
    for own in [&place.store, &hard, &soft, &log, &lock] {
        let error = backup(&place.store, own).expect_err("its own file");
        assert!(matches!(error.kind(), StoreErrorKind::OwnFile), "{error}");
    }
    // What is stored after that is where readers look for it.
    enqueue(&mut store, 4);
    assert_eq!(waiting(&place.store), 7);
}

#[test]
fn a_backup_replaces_no_other_file_and_is_never_half_a_store() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    enqueue(&mut store, 5000);
    let notes = place.file("notes.txt");
    fs::write(&notes, "mine ".repeat(500)).expect("written");
    let error = backup(&place.store, &notes)
        .expect_err("refused")
        .to_string();
    assert!(
        error.ends_with("notes.txt: not a store of crawler-cli"),
        "{error}"
    );
    assert_eq!(fs::read(&notes).expect("readable").len(), 2500);
    let below = place.file("missing/saved.db");
    let error = backup(&place.store, &below).expect_err("no folder");
    assert!(matches!(error.kind(), StoreErrorKind::Io(_)), "{error}");
    drop(store);
    // A damaged page in the middle.
    let mut bytes = fs::read(&place.store).expect("readable");
    let middle = bytes.len() / 2 / 8192 * 8192;
    bytes[middle..middle + 8192].fill(0xA5);
    fs::write(&place.store, bytes).expect("written");
    let saved = place.file("saved.db");
    let error = backup(&place.store, &saved).expect_err("damaged");
    assert!(
        matches!(error.kind(), StoreErrorKind::Damaged(_)),
        "{error}"
    );
    assert!(!saved.exists());
    let report = check(&place.store).expect("opened");
    assert_eq!(
        report.problems[0].invariant,
        "the file is a sound SQLite database"
    );
}

#[test]
fn a_restore_keeps_the_store_as_it_was() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    enqueue(&mut store, 1);
    let saved = place.file("saved.db");
    backup(&place.store, &saved).expect("copied");
    enqueue(&mut store, 2);
    let refused = restore(&saved, &place.store, now()).expect_err("in use");
    assert!(
        matches!(refused.kind(), StoreErrorKind::InUse(Some(_))),
        "{refused}"
    );
    // As after kill -9: changes are in the log only, and the log stays.
    let log = place.file("watch.db-wal");
    let killed = fs::read(&log).expect("a log");
    let file = fs::read(&place.store).expect("a file");
    drop(store);
    fs::write(&log, killed).expect("written");
    fs::write(&place.store, file).expect("written");
    fs::write(place.file("watch.db-rejected"), "old").expect("written");

    let restored = restore(&saved, &place.store, now()).expect("restored");
    let aside = restored.aside.expect("there was a store");
    assert_eq!(aside, place.file("watch.db-before-20251009T085320Z"));
    assert_eq!((waiting(&place.store), waiting(&aside)), (1, 3));
    assert!(!place.file("watch.db-rejected").exists());
    assert!(check(&place.store).expect("readable").is_clean());
    drop(Sqlite::open(&place.store).expect("not in use"));
}

#[test]
fn changes_after_a_restore_have_numbers_of_their_own() {
    let place = Place::new();
    let next = |path: &Path| {
        let db = Connection::open(path).expect("a database");
        let query = "SELECT next_event FROM store";
        let next = db.query_row(query, [], |row| row.get::<_, i64>(0));
        next.expect("readable")
    };
    drop(Sqlite::open(&place.store).expect("a store"));
    let saved = place.file("saved.db");
    backup(&place.store, &saved).expect("copied");
    let before = next(&place.store);
    restore(&saved, &place.store, now()).expect("restored");
    assert_eq!(next(&place.store), before + (1 << 32));
    assert!(check(&place.store).expect("readable").is_clean());
}

#[test]
fn a_restore_from_something_else_changes_nothing() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    enqueue(&mut store, 1);
    drop(store);
    let notes = place.file("notes.txt");
    fs::write(&notes, "mine ".repeat(500)).expect("written");
    restore(&notes, &place.store, now()).expect_err("no store");
    assert_eq!(waiting(&place.store), 1);
    let other = place.file("other.db");
    restore(&notes, &other, now()).expect_err("no store");
    assert!(!other.exists());
    let restored = restore(&place.store, &other, now()).expect("restored");
    assert_eq!((restored.aside, waiting(&other)), (None, 1));
}

#[test]
fn an_answer_that_is_good_again_writes_the_row_alone() {
    let mut store = Sqlite::temporary().expect("a store");
    let urls = [NewUrl::parse("https://w/1").expect("a URL")];
    store
        .submit("docs", Origin::Hand, &urls, now())
        .expect("written");
    // Fires when the column is written, whether it changes or not.
    let watch = "CREATE TEMP TABLE written (n INTEGER); CREATE TEMP TRIGGER note AFTER UPDATE OF trouble ON url \
         BEGIN INSERT INTO written VALUES (1); END";
    store.db.execute_batch(watch).expect("valid");
    let written = |store: &Sqlite| -> i64 {
        let count = "SELECT count(*) FROM written";
        store
            .db
            .query_row(count, [], |row| row.get(0))
            .expect("read")
    };
    // With what other columns take, a row has always the same size: the room to grow pays for them.
    let room = |store: &Sqlite| -> i64 {
        let length = "SELECT length(watched) % 8 FROM url";
        store
            .db
            .query_row(length, [], |row| row.get(0))
            .expect("read")
    };
    for _ in 0..3 {
        judge(&mut store, 0, Lane::Routine, None);
    }
    assert_eq!((written(&store), room(&store)), (0, 8 - 1));
    judge(&mut store, 1, Lane::Routine, None);
    assert_eq!((written(&store), room(&store)), (1, 8 - 3));
    judge(&mut store, 2, Lane::Doubt, None);
    assert_eq!(written(&store), 1, "a suspect that stays one");
    judge(&mut store, 0, Lane::Doubt, None);
    assert_eq!((written(&store), room(&store)), (2, 8 - 2));
}

#[test]
fn a_reader_goes_on_to_what_others_have_stored() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    let submit = |store: &mut Sqlite, numbers: std::ops::Range<i32>| {
        let parse = |n| NewUrl::parse(&format!("https://w/{n}")).expect("a URL");
        let urls: Vec<NewUrl> = numbers.map(parse).collect();
        store
            .submit("docs", Origin::Hand, &urls, now())
            .expect("written");
    };
    submit(&mut store, 0..5);
    let mut reader = Sqlite::open_read_only(&place.store).expect("a store");
    assert_eq!(reader.memory.keys.recent.len(), 5);
    submit(&mut store, 5..9);
    let is_known = |reader: &mut Sqlite, n: i32| {
        let shown = reader.show(&format!("https://w/{n}"));
        shown.expect("readable").is_some()
    };
    assert!(!is_known(&mut reader, 7));
    assert_eq!(reader.watch_counts().expect("readable").urls(), 5);
    reader.refresh().expect("readable");
    assert!(is_known(&mut reader, 7) && is_known(&mut reader, 1));
    assert_eq!(reader.watch_counts().expect("readable").urls(), 9);
    assert_eq!(reader.memory.keys.recent.len(), 9);
    // What went to the table is not kept in memory any more.
    submit(&mut store, 9..400);
    let reading = store.begin_reading("other", now()).expect("written");
    store.end_reading(reading, "", now(), 1.0).expect("written");
    submit(&mut store, 400..402);
    reader.refresh().expect("readable");
    assert_eq!(reader.memory.keys.recent.len(), 2);
    assert!([0, 8, 300, 401].iter().all(|&n| is_known(&mut reader, n)));
    // One moment for all that is read.
    reader.begin_moment().expect("readable");
    submit(&mut store, 402..410);
    assert!(is_known(&mut reader, 401) && !is_known(&mut reader, 405));
    assert_eq!(reader.watch_counts().expect("readable").urls(), 402);
    reader.end_moment();
    reader.refresh().expect("readable");
    assert!(is_known(&mut reader, 405));
    assert_eq!(reader.watch_counts().expect("readable").urls(), 410);
    // A store that changes is never behind.
    store.refresh().expect("nothing to do");
    assert_eq!(store.watch_counts().expect("readable").urls(), 410);
}

/// A store with some of everything: a run that goes on among it.
fn furnished(place: &Place) -> Sqlite {
    let mut store = Sqlite::open(&place.store).expect("a store");
    // Most keys are in their table.
    store.memory.keys.least = 8; // so that the table is reached
    store.begin_run("docs", now()).expect("written");
    let elsewhere = link_to("http://b/");
    for links in [links(0..40), links(40..80), vec![elsewhere]] {
        store.add(&links).expect("written");
    }
    let first = store.take(HostId(1), EntryId::START, 1).expect("readable");
    let completed = Completed::new(&first[0], Answer::of(Verdict::Ok));
    store.complete(&[completed]).expect("written");
    enqueue(&mut store, 3);
    let keyed = NewJob {
        keep_key: std::time::Duration::from_secs(60),
        ..NewJob::new("mail", "k").with_key("k")
    };
    store.enqueue(&[keyed], now()).expect("written");
    store.start("mail", now(), 2).expect("written");
    store.fire("nightly", now(), now()).expect("written");
    let letter = NewDeadLetter {
        reason: "invalid_url".to_owned(),
        attempts: 1,
        last: "x".to_owned(),
        first_at: now(),
        last_at: now(),
    };
    let text = Buried::Text("http://[".to_owned());
    store.bury(&text, &letter).expect("written");
    let urls = [NewUrl::parse("https://w/1").expect("a URL")];
    store
        .submit("docs", Origin::Hand, &urls, now())
        .expect("written");
    for (number, lane) in [(0, Lane::Routine), (1, Lane::Routine), (2, Lane::Doubt)] {
        judge(&mut store, number, lane, None);
    }
    store
}

/// Judges the first URL in a lane: good first, then gone. The next due row is in `next`, or where it belongs.
fn judge(store: &mut Sqlite, number: i64, lane: Lane, next: Option<Lane>) {
    let now = Timestamp::from_second(1_760_000_000 + number * 3600).expect("in range");
    let lanes = [Lanes::Schedule, Lanes::Doubt].into_iter();
    let far = Timestamp::from_second(1_900_000_000).expect("in range");
    let hosts = lanes.flat_map(|lanes| {
        store
            .ready(lanes, far, &HashSet::new(), 9)
            .expect("readable")
    });
    let host = hosts.map(|ready| ready.host.id).next().expect("a host");
    let due = store
        .due(host, lane, None, far, 1)
        .expect("readable")
        .remove(0);
    let mut life = due.life.clone();
    let verdict = match number {
        0 => (Verdict::Ok, Some(200)),
        _ => (Verdict::Failed(Cause::Status410), Some(410)),
    };
    let rules = Profile::Default.rules();
    let context = Context::default();
    let decision = rules.decide(now, &mut life, verdict, &context, &mut Random::new(7));
    let changes = decision
        .transition
        .map(|change| Change::new(&change, verdict.1));
    let next = next.unwrap_or(Lane::of(life.state(), false));
    let judgement = Judgement {
        id: due.id,
        answer: Some(Answer::of(verdict.0)),
        life,
        changes: changes.into_iter().collect(),
        next: Some((next, decision.due)),
        dead_letter: None,
    };
    assert_eq!(store.judge(&[judgement]).expect("written").stored, 1);
}

/// Each invariant, with a change that breaks it.
const BREAKS: &[(&str, &str)] = &[
    (
        "each URL has a host, or is local",
        "UPDATE url SET host = 99 WHERE url = 1",
    ),
    (
        "each answer is that of a URL",
        "UPDATE answer SET url = 99 WHERE url = 1",
    ),
    (
        "each URL that a run has to ask is in the queue of its host",
        "UPDATE queue SET host = 9 WHERE host = 1",
    ),
    (
        "each key leads to a URL, or is that of one that was forgotten",
        "UPDATE url_key SET url = 99",
    ),
    (
        "each change of state is that of a URL",
        "UPDATE event SET url = 99 WHERE cursor = 1",
    ),
    (
        "each change of state begins in the state in which the change before ended",
        "UPDATE event SET from_state = 'GONE' WHERE prev > 0",
    ),
    (
        "each change of state is the last one of its URL, or comes before another one",
        "UPDATE event SET prev = 0",
    ),
    (
        "the last change of state of each URL is there",
        "DELETE FROM event WHERE prev > 0",
    ),
    (
        "no change of state has a cursor that is still to come",
        "UPDATE store SET next_event = 1",
    ),
    (
        "each job is in a queue, and waits, is started, or is over with a key",
        "UPDATE job SET state = 2 WHERE job = 1",
    ),
    (
        "no job has more attempts than it may have",
        "UPDATE job SET attempt = 9 WHERE state = 1",
    ),
    (
        "each queue has as many jobs as it counts",
        "UPDATE job_queue SET waiting = 7",
    ),
    (
        "no job or dead letter has a number that is still to come",
        "UPDATE number SET next = 1 WHERE name = 'job'",
    ),
    (
        "each dead letter is that of a URL, a text or a job",
        "UPDATE dead_letter SET kind = 0, url = 99",
    ),
    (
        "each dead letter has a first time that is not after its last, and a last exchange of at most 4 KiB",
        "UPDATE dead_letter SET first_at = last_at + 1",
    ),
    (
        "there are as many dead letters of each reason as are counted",
        "UPDATE dead_letter_count SET letters = 2",
    ),
    (
        "each firing is that of a schedule, and none is after the last one",
        "UPDATE schedule SET last_fired = 0",
    ),
    (
        "each member of a set is a URL, and each set has as many members as it counts",
        "UPDATE url_set SET members = 9",
    ),
    (
        "each URL is in as many sets as it counts",
        "UPDATE url SET sets = 7 WHERE sets = 1",
    ),
    (
        "each set has as many members in each state as it counts",
        "UPDATE set_count SET count = count + 1",
    ),
    (
        "each URL in a set has exactly one due row, if it does not wait for an operator, and no other URL has one",
        "DELETE FROM due",
    ),
    (
        "each due row is that of a URL of its host",
        "UPDATE due SET host = 2",
    ),
    (
        "each host says when its first URL is due",
        "UPDATE host SET next_due = 7",
    ),
    (
        "each host has as many URLs in sets, and as many held, as it counts",
        "UPDATE host SET held = 7",
    ),
    (
        "each hold is that of a host, and each held URL is that of a host with a hold",
        "UPDATE due SET lane = 4",
    ),
    (
        "there are as many due rows in each lane, members, kept URLs and hosts as are counted",
        "DELETE FROM watch_count WHERE kind = 2",
    ),
    (
        "a URL that left all sets is in none, and says since when",
        "UPDATE url SET left_at = 1 WHERE sets > 0",
    ),
    (
        "what is known about each watched URL can be read",
        "UPDATE url SET watched = x'FF' WHERE sets > 0",
    ),
    // No SQL: a judgement does.
    ("each URL is due in the lane of its state", ""),
    (
        "each URL has the due row that it says it has",
        "UPDATE due SET due_at = due_at + 1",
    ),
    (
        "each URL is in the state in which its last change ended",
        "UPDATE event SET to_state = 'GONE' WHERE cursor = (SELECT event FROM url WHERE sets > 0 AND event > 0)",
    ),
    (
        "each URL in a set that is not due in the lane of good URLs is listed by its state, and no other URL is",
        "UPDATE url SET trouble = 3 WHERE sets > 0",
    ),
    (
        "there are as many URLs in each state, and at private addresses, as are counted",
        "DELETE FROM watch_count WHERE kind = 0",
    ),
];

#[test]
fn a_check_names_what_does_not_hold() {
    let place = Place::new();
    drop(furnished(&place));
    let broken = place.file("broken.db");
    let report = |change: Option<&str>| -> CheckReport {
        fs::copy(&place.store, &broken).expect("copied");
        if change == Some("") {
            let mut store = Sqlite::open(&broken).expect("a store");
            judge(&mut store, 3, Lane::Doubt, Some(Lane::Gone));
        }
        let db = Connection::open(&broken).expect("a database");
        db.pragma_update(None, "synchronous", "OFF").expect("set");
        let change = change.unwrap_or_default();
        db.execute_batch(change).expect(change);
        drop(db);
        check(&broken).expect("readable")
    };
    let clean = report(None);
    assert_eq!(clean.problems, []);
    for invariant in &clean.checked[1..] {
        let known = BREAKS.iter().find(|(name, _)| name == invariant);
        let (_, change) = known.unwrap_or_else(|| panic!("nothing breaks: {invariant}"));
        let found = report(Some(change));
        let names: Vec<&str> = found
            .problems
            .iter()
            .map(|problem| problem.invariant)
            .collect();
        assert!(names.contains(invariant), "{invariant}: {names:?}");
        let said = found.problems[0].to_string();
        assert!(said.contains(" ("), "{said}");
    }
}

#[test]
fn a_store_that_another_program_holds_is_in_use() {
    let place = Place::new();
    let mut store = Sqlite::open(&place.store).expect("a store");
    store
        .db
        .sqlite()
        .busy_timeout(std::time::Duration::ZERO)
        .expect("set");
    let other = Connection::open(&place.store).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("held");
    let refused = store
        .enqueue(&[NewJob::new("mail", "1")], now())
        .expect_err("held");
    assert!(
        refused
            .to_string()
            .ends_with("watch.db: another process is using it"),
        "{refused}"
    );
    assert_eq!(store.job_counts("mail").expect("readable").waiting, 0);
    other.execute_batch("ROLLBACK").expect("free");
    enqueue(&mut store, 1);
    assert_eq!(store.job_counts("mail").expect("readable").waiting, 1);
    store.begin_run("x", now()).expect("written");
}
