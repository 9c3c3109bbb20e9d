//! Prints what a store of many watched URLs costs: bytes on disk, processor time of each step, time and memory of a start.
//!
//! `COURSER_URLS=1000000 cargo test --release -p crawler-cli --lib what_many_urls_cost -- --ignored --nocapture`

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::check::Verdict;
use crate::check::life::{Context, Profile, Rules};
use crate::crawl::random::Random;
use crate::store::sqlite::Sqlite;
use crate::store::{
    Answer, Change, DueUrl, Judgement, Lane, Lanes, NewUrl, Ready, WatchStore as _,
};

#[test]
#[ignore = "takes minutes with many URLs; prints what they cost"]
fn what_many_urls_cost() {
    let urls: u64 = number("COURSER_URLS", 10_000);
    let hosts = number("COURSER_HOSTS", 1_000).min(urls);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("watch.db");
    let mut store = Sqlite::open(&path).expect("a store");
    let length = step("submitted", urls, || submit(&mut store, urls, hosts));
    let mut asker = Asker::new();
    step("judged for the first time", urls, || {
        asker.ask_all(&mut store, urls)
    });
    at_rest(&path, store, urls, length);
    let mut store = open(&path);
    step("judged again", urls / 10, || {
        asker.ask_all(&mut store, urls / 10)
    });
    at_rest(&path, store, urls, length);
    open(&path);
}

fn number(name: &str, default: u64) -> u64 {
    let given = env::var(name).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_760_000_000 + second).expect("in range")
}

/// Prints how much processor time a step took for each URL.
fn step<T>(name: &str, urls: u64, work: impl FnOnce() -> T) -> T {
    let (began, used) = (Instant::now(), processor_time());
    let value = work();
    let micros = (processor_time() - used).as_secs_f64() * 1e6 / urls as f64;
    let seconds = began.elapsed().as_secs_f64();
    println!("{name}: {micros:.1} µs of processor time for each URL, {seconds:.1} s in all");
    value
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

/// Returns the length of all URLs.
fn submit(store: &mut Sqlite, urls: u64, hosts: u64) -> u64 {
    let reading = store.begin_reading("all", at(0)).expect("written");
    let mut length = 0;
    let mut batch = Vec::new();
    for number in 0..urls {
        let url = format!(
            "https://host{}.example.com/some/path/of/files/number-{number:08}.html",
            number % hosts
        );
        length += url.len() as u64;
        batch.push(NewUrl::parse(&url).expect("a URL"));
        if batch.len() == 1_000 || number + 1 == urls {
            store.read_urls(&reading, &batch, at(0)).expect("written");
            batch.clear();
        }
    }
    store
        .end_reading(reading, "mark", at(0), 0.5)
        .expect("written");
    length
}

/// Asks URLs as a service does: in rounds over all hosts, some URLs of each, and 512 in a transaction.
struct Asker {
    rules: Rules,
    random: Random,
}

impl Asker {
    fn new() -> Self {
        Self {
            rules: Profile::Default.rules(),
            random: Random::new(1),
        }
    }

    fn ask_all(&mut self, store: &mut Sqlite, urls: u64) {
        let mut left = urls;
        while left > 0 {
            let next = store
                .next_due(Lanes::Schedule)
                .expect("readable")
                .expect("due");
            let now = next.max(at(1));
            let ready = store
                .ready(Lanes::Schedule, now, &HashSet::new(), 512)
                .expect("readable");
            let mut judgements = Vec::new();
            for Ready { host, .. } in ready {
                let due = store
                    .due(host.id, Lane::Routine, None, now, 16)
                    .expect("readable");
                judgements.extend(due.iter().map(|due| self.judgement(due, now)));
            }
            // In the order in which answers arrive: one of each host.
            judgements.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            judgements.sort_by_key(|judgement| judgement.id.url.0 % 16);
            for group in judgements.chunks(512) {
                let completion = store.judge(group).expect("written");
                left -= completion.stored;
            }
        }
    }

    fn judgement(&mut self, due: &DueUrl, now: Timestamp) -> Judgement {
        let mut life = due.life.clone();
        let context = Context::default();
        let verdict = (Verdict::Ok, Some(200));
        let decision = self
            .rules
            .decide(now, &mut life, verdict, &context, &mut self.random);
        let change = decision
            .transition
            .map(|change| Change::new(&change, Some(200)));
        Judgement {
            id: due.id,
            answer: Some(Answer {
                status: Some(200),
                method: Some("HEAD"),
                attempts: 1,
                latency: Some(Duration::from_micros(31_234)),
                address: Some("192.0.2.1".parse().expect("an address")),
                checked_at: Some(now),
                ..Answer::of(Verdict::Ok)
            }),
            life,
            changes: change.into_iter().collect(),
            next: Some((Lane::Routine, decision.due)),
            dead_letter: None,
        }
    }
}

/// Prints how large the file is when the store is closed.
fn at_rest(path: &Path, store: Sqlite, urls: u64, length: u64) {
    for (table, bytes) in tables(&store) {
        println!(
            "  {table}: {:.1} bytes for each URL",
            bytes as f64 / urls as f64
        );
    }
    drop(store);
    let bytes = fs::metadata(path).expect("a file").len();
    let beside = (bytes as f64 - length as f64) / urls as f64;
    println!(
        "at rest: {beside:.1} bytes for each URL beside its own {:.1}",
        length as f64 / urls as f64
    );
}

/// The bytes that each table takes, if SQLite can say so.
fn tables(store: &Sqlite) -> Vec<(String, u64)> {
    let query = "SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name ORDER BY 2 DESC LIMIT 8";
    let Ok(mut query) = store.db.sqlite().prepare(query) else {
        return Vec::new();
    };
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)));
    rows.map(|rows| rows.flatten().collect())
        .unwrap_or_default()
}

/// Opens a store, and prints how long that took and how much memory the process has had.
fn open(path: &Path) -> Sqlite {
    let began = Instant::now();
    let mut store = Sqlite::open(path).expect("a store");
    let next = store.next_due(Lanes::Schedule).expect("readable");
    println!(
        "opened in {:.3} s, next due {next:?}, {}",
        began.elapsed().as_secs_f64(),
        memory()
    );
    store
}

/// What the kernel says about the memory of this process.
fn memory() -> String {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let lines = text
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(", ")
}
