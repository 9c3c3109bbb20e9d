//! What the writer promises, on SQLite.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use jiff::Timestamp;
use tempfile::TempDir;

use super::Sqlite;
use crate::{
    Engine, Inline, JobCounts, JobStore as _, Nature, NewJob, Op, Settled, Settlement, StoreError,
    StoreErrorKind, StoreHandle, Writer, WriterSettings, WriterState,
};

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn in_file() -> (TempDir, Sqlite) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Sqlite::open(&folder.path().join("jobs.db")).expect("a store");
    (folder, store)
}

/// An operation that enqueues a job, and tells what became of it.
struct Enqueue {
    name: &'static str,
    payload: Vec<u8>,
    nature: Nature,
    /// After the job was enqueued.
    then: Then,
    done: Sender<(&'static str, Result<(), String>)>,
    runs: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Then {
    Succeed,
    Fail,
    Panic,
}

impl Op for Enqueue {
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        engine.enqueue(&[NewJob::new(self.name, self.payload.clone())], now())?;
        match self.then {
            Then::Succeed => Ok(()),
            Then::Fail => {
                let kind = StoreErrorKind::Database("of its own".to_owned());
                Err(StoreError::new(Path::new(""), kind))
            }
            Then::Panic => panic!("a flaw"),
        }
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        let result = result.map_err(|error| error.to_string());
        self.done
            .send((self.name, result))
            .expect("the test listens");
    }

    fn nature(&self) -> Nature {
        self.nature
    }
}

/// Sends operations, and hears what became of them.
struct Bench {
    done: Sender<(&'static str, Result<(), String>)>,
    results: Receiver<(&'static str, Result<(), String>)>,
    runs: Arc<AtomicUsize>,
}

impl Bench {
    fn new() -> Self {
        let (done, results) = unbounded();
        Self {
            done,
            results,
            runs: Arc::default(),
        }
    }

    fn op(&self, name: &'static str, nature: Nature, then: Then) -> Box<dyn Op> {
        Box::new(Enqueue {
            name,
            payload: vec![0; 64],
            nature,
            then,
            done: self.done.clone(),
            runs: Arc::clone(&self.runs),
        })
    }

    fn large(&self, name: &'static str, nature: Nature) -> Box<dyn Op> {
        Box::new(Enqueue {
            name,
            payload: vec![0; 1 << 20],
            nature,
            then: Then::Succeed,
            done: self.done.clone(),
            runs: Arc::clone(&self.runs),
        })
    }

    fn next(&self) -> (&'static str, Result<(), String>) {
        let long = Duration::from_secs(60);
        self.results.recv_timeout(long).expect("told in time")
    }

    fn all(&self) -> Vec<(&'static str, Result<(), String>)> {
        self.results.try_iter().collect()
    }
}

fn waiting(handle: &impl StoreHandle, queue: &'static str) -> u64 {
    let counts = handle.read(move |engine| engine.job_counts(queue));
    counts.expect("readable").waiting
}

/// Groups that end only when they are full.
fn patient(group: usize) -> WriterSettings {
    WriterSettings {
        group,
        wait: Duration::from_secs(3600),
        ..WriterSettings::default()
    }
}

#[test]
fn a_group_is_one_transaction() {
    let (_folder, store) = in_file();
    let writer = Writer::start(store, patient(100)).expect("a thread");
    let bench = Bench::new();
    for _ in 0..100 {
        writer.send(bench.op("a", Nature::Must, Then::Succeed));
    }
    for _ in 0..100 {
        assert_eq!(bench.next(), ("a", Ok(())));
    }
    let figures = writer.figures();
    assert_eq!(figures.groups.load(Ordering::Relaxed), 1);
    assert_eq!(figures.operations.load(Ordering::Relaxed), 100);
    assert_eq!(figures.rows.sum(), 100);
    assert_eq!((waiting(&writer, "a"), writer.backlog()), (100, 0));
    writer.close(Duration::ZERO).expect("nothing kept");
}

#[test]
fn who_waits_is_not_kept_waiting() {
    let (_folder, store) = in_file();
    // The group would end after an hour.
    let writer = Writer::start(store, patient(100)).expect("a thread");
    let enqueued = writer.call(|engine| engine.enqueue(&[NewJob::new("a", "1")], now()));
    assert_eq!(enqueued.expect("written").len(), 1);
    assert_eq!(waiting(&writer, "a"), 1);
}

#[test]
fn an_operation_that_fails_spoils_no_other() {
    for then in [Then::Fail, Then::Panic] {
        let (_folder, store) = in_file();
        let writer = Writer::start(store, patient(4)).expect("a thread");
        let bench = Bench::new();
        writer.send(bench.op("a", Nature::Must, Then::Succeed));
        writer.send(bench.op("b", Nature::Must, then));
        writer.send(bench.op("c", Nature::Change, Then::Succeed));
        writer.send(bench.op("d", Nature::Must, then));
        let mut results: Vec<_> = (0..4).map(|_| bench.next()).collect();
        results.sort_by_key(|(name, _)| *name);
        let text = match then {
            Then::Panic => "store: a change failed: a flaw",
            _ => "temporary database: of its own",
        };
        let error = || Err(text.to_owned());
        assert_eq!(
            results,
            [("a", Ok(())), ("b", error()), ("c", Ok(())), ("d", error())]
        );
        let stored = ["a", "b", "c", "d"].map(|queue| waiting(&writer, queue));
        assert_eq!(stored, [1, 0, 1, 0]);
        assert_eq!(writer.state(), WriterState::Ok);
    }
}

#[test]
fn a_call_that_fails_stores_nothing() {
    let (_folder, store) = in_file();
    let inline = Inline::new(store);
    let called = inline.call(|engine| {
        engine.enqueue(&[NewJob::new("a", "1")], now())?;
        Err::<(), _>(StoreError::new(Path::new("x"), StoreErrorKind::Foreign))
    });
    let error = called.expect_err("its own").to_string();
    assert_eq!(error, "x: not a store of crawler-cli");
    assert_eq!(waiting(&inline, "a"), 0);
    inline
        .call(|engine| engine.enqueue(&[NewJob::new("a", "1")], now()))
        .expect("written");
    assert_eq!(waiting(&inline, "a"), 1);
}

impl Sqlite {
    /// Lets the file grow by so many pages more.
    pub(super) fn limit_pages(&self, more: i64) {
        let pages: i64 = self
            .db
            .sqlite()
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .expect("readable");
        self.db
            .sqlite()
            .pragma_update_and_check(None, "max_page_count", pages + more, |_| Ok(()))
            .expect("set");
    }
}

#[test]
fn while_the_disk_is_full_what_must_not_be_lost_is_kept() {
    let (_folder, store) = in_file();
    let inline = Inline::new(store);
    inline.with(|store| store.limit_pages(4));
    let bench = Bench::new();
    let full = |name| (name, Err::<(), _>("no space left"));
    let told = || {
        let all = bench.all().into_iter();
        let last = |text: String| text.rsplit(": ").next().map(str::to_owned);
        all.map(|(name, result)| (name, result.map_err(|text| last(text).expect("text"))))
            .collect::<Vec<_>>()
    };
    inline.send(bench.large("a", Nature::Must));
    assert_eq!(told(), []);
    assert_eq!((inline.state(), inline.backlog()), (WriterState::Full, 1));
    inline.send(bench.op("b", Nature::Must, Then::Succeed));
    inline.send(bench.op("c", Nature::Change, Then::Succeed));
    let refused = full("c").1.map_err(str::to_owned);
    assert_eq!(told(), [("c", refused)]);
    assert_eq!(inline.backlog(), 2);
    // Nothing is half applied, and what is stored can be read.
    let stored = ["a", "b", "c"].map(|queue| waiting(&inline, queue));
    assert_eq!(stored, [0, 0, 0]);
    inline.with(|store| store.limit_pages(1000));
    inline.retry();
    assert_eq!(told(), [("a", Ok(())), ("b", Ok(()))]);
    assert_eq!((inline.state(), inline.backlog()), (WriterState::Ok, 0));
    let stored = ["a", "b", "c"].map(|queue| waiting(&inline, queue));
    assert_eq!(stored, [1, 1, 0]);
}

#[test]
fn what_is_too_large_for_the_disk_does_not_stop_the_rest() {
    let (_folder, store) = in_file();
    let inline = Inline::new(store);
    inline.with(|store| store.limit_pages(8));
    let bench = Bench::new();
    inline.send(bench.large("a", Nature::Change));
    assert_eq!(inline.state(), WriterState::Full);
    inline.send(bench.op("b", Nature::Must, Then::Succeed));
    assert_eq!(inline.state(), WriterState::Ok);
    let names: Vec<(&str, bool)> = bench
        .all()
        .into_iter()
        .map(|(name, result)| (name, result.is_ok()))
        .collect();
    assert_eq!(names, [("a", false), ("b", true)]);
}

#[test]
fn kept_operations_are_tried_until_the_writer_ends() {
    let (folder, store) = in_file();
    store.limit_pages(4);
    let writer = Writer::start(store, WriterSettings::default()).expect("a thread");
    let bench = Bench::new();
    writer.send(bench.large("a", Nature::Must));
    writer.send(bench.op("b", Nature::Change, Then::Succeed));
    let (name, result) = bench.next();
    assert_eq!((name, result.is_err()), ("b", true));
    assert_eq!(writer.state(), WriterState::Full);
    assert_eq!(waiting(&writer, "a"), 0, "readers are served");
    let closed = writer.close(Duration::ZERO).expect_err("not stored");
    assert!(matches!(closed.kind(), StoreErrorKind::Full), "{closed}");
    let (name, result) = bench.next();
    assert_eq!((name, result.is_err()), ("a", true));
    writer.send(bench.op("c", Nature::Must, Then::Succeed));
    assert_eq!(
        bench.next(),
        ("c", Err("store: has been closed".to_owned()))
    );
    assert_eq!((writer.state(), writer.backlog()), (WriterState::Closed, 0));
    let called = writer.call(|engine| engine.job_counts("a"));
    assert!(matches!(
        called.expect_err("closed").kind(),
        StoreErrorKind::Closed
    ));
    drop(Sqlite::open(&folder.path().join("jobs.db")).expect("free"));
}

#[test]
fn what_was_sent_before_the_end_is_stored() {
    let (folder, store) = in_file();
    let writer = Writer::start(store, patient(1000)).expect("a thread");
    let bench = Bench::new();
    for _ in 0..50 {
        writer.send(bench.op("a", Nature::Change, Then::Succeed));
    }
    // Ends the group that would wait for an hour.
    assert_eq!(waiting(&writer, "a"), 50);
    for _ in 0..50 {
        writer.send(bench.op("a", Nature::Change, Then::Succeed));
    }
    assert_eq!(waiting(&writer, "a"), 100);
    drop(writer.clone());
    writer.close(Duration::ZERO).expect("nothing kept");
    assert!(bench.all().iter().all(|(_, result)| result.is_ok()));
    let mut store = Sqlite::open(&folder.path().join("jobs.db")).expect("free");
    assert_eq!(store.job_counts("a").expect("readable").waiting, 100);
}

#[test]
fn all_threads_get_their_results() {
    let (_folder, store) = in_file();
    let writer = Writer::start(store, WriterSettings::default()).expect("a thread");
    let run = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let jobs = vec![NewJob::new("a", "1"), NewJob::new("a", "2")];
                    let enqueued = writer.call(move |engine| engine.enqueue(&jobs, now()));
                    assert_eq!(enqueued.expect("written").len(), 2);
                    let started = writer.call(|engine| engine.start("a", now(), 3));
                    let settled: Vec<Settlement> = started
                        .expect("written")
                        .jobs
                        .iter()
                        .map(|job| Settlement {
                            job: job.id,
                            attempt: job.attempt,
                            settled: Settled::Done,
                        })
                        .collect();
                    let count = settled.len() as u64;
                    run.fetch_add(count, Ordering::Relaxed);
                    let settled = writer.call(move |engine| engine.settle(&settled, now()));
                    assert_eq!(settled.expect("written").stale, 0);
                }
            });
        }
    });
    let counts = writer
        .read(|engine| engine.job_counts("a"))
        .expect("readable");
    let JobCounts { waiting, started } = counts;
    assert_eq!((waiting + run.into_inner(), started), (400, 0));
}
