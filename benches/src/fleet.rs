//! Several workers of `watch` on one PostgreSQL: what a completion costs the server, how long claims take while an old
//! snapshot is open, and how many dead rows there are. The workers claim hosts, read what is due and store answers, as
//! `watch run` does, without a network.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plain::random::Random;
use store::{
    Database, DueUrl, FleetStore as _, Judgement, LEASE, Lane, Lanes, NewUrl, NewWorker, Place,
    StoreError, WatchStore as _,
};
use verdict::Answer;
use verdict::Verdict;
use verdict::life::{Context, Profile};

use crate::process::times;
use crate::report::exit_code;

#[path = "../../crawler-cli/tests/all/common/cluster.rs"]
mod cluster;

use cluster::Cluster;

/// Measures the store of several workers of watch.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// URLs
    #[arg(short, long, default_value = "1000000")]
    urls: u64,

    /// Hosts, with the same number of URLs each
    #[arg(long, default_value = "1000")]
    hosts: u64,

    /// Workers
    #[arg(short, long, default_value = "4")]
    workers: usize,
}

/// Measures. The exit code is 1 if a bar is missed.
///
/// # Errors
/// PostgreSQL cannot be run.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let settings = [
        "max_connections=50",
        "shared_buffers=512MB",
        "max_wal_size=8GB",
        "autovacuum_naptime=1s",
    ];
    let cluster = Cluster::new(&settings);
    let url = cluster.database();
    let began = Instant::now();
    submit(args, &url)?;
    let used = server_time(&cluster)?;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / args.urls.max(1) as f64;
    println!(
        "{} URLs of {} hosts submitted: {:.1} us each, {:.1} us of the server",
        args.urls,
        args.hosts,
        each(began.elapsed()),
        each(used)
    );
    println!(
        "round      workers  completions/s  server us each  HOT updates  claim P50 ms  P99 ms  dead rows"
    );
    let bench = Bench { args, cluster, url };
    let first = bench.round(1, "first")?;
    let second = bench.round(2, "second")?;
    let size = numbers(
        &bench.cluster,
        &bench.url,
        "SELECT pg_database_size(current_database())",
    )?;
    println!(
        "{:.0} bytes on the disk for each URL",
        size[0] / args.urls.max(1) as f64
    );
    // The last round begins so many completions after the snapshot as there are URLs.
    let snapshot = Snapshot::open(&bench.url)?;
    bench.round(3, "snapshot")?;
    let late = bench.round(4, "+1 round")?;
    snapshot.close()?;
    let fast = second.each_second >= 10_000.0 || second.server_us <= 60.0;
    let is_right = fast && second.hot >= 0.99 && late.claim_ms < 10.0 && first.dead < 0.05;
    Ok(exit_code(!is_right))
}

/// A transaction that sees what was there when it began, as a backup does.
struct Snapshot(Child);

impl Snapshot {
    fn open(url: &str) -> Result<Self, Box<dyn Error>> {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-A", "-t", "-q", url]);
        let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.as_mut().ok_or("no pipe")?;
        writeln!(
            input,
            "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT count(*) FROM host;"
        )?;
        let output = child.stdout.as_mut().ok_or("no pipe")?;
        BufReader::new(output).read_line(&mut String::new())?;
        Ok(Self(child))
    }

    fn close(mut self) -> Result<(), Box<dyn Error>> {
        drop(self.0.stdin.take());
        self.0.wait()?;
        Ok(())
    }
}

struct Bench<'a> {
    args: &'a Args,
    cluster: Cluster,
    url: String,
}

/// What a round has shown.
struct Round {
    each_second: f64,
    server_us: f64,
    hot: f64,
    claim_ms: f64,
    dead: f64,
}

impl Bench<'_> {
    /// All URLs are due, and are completed.
    fn round(&self, round: i64, name: &str) -> Result<Round, Box<dyn Error>> {
        let hot = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'url'";
        let updates = || numbers(&self.cluster, &self.url, hot);
        let before = (updates()?, server_time(&self.cluster)?, Instant::now());
        let done = AtomicU64::new(0);
        let mut claims = Vec::new();
        thread::scope(|scope| {
            let workers = (0..self.args.workers).map(|number| {
                let done = &done;
                scope.spawn(move || work(&self.url, number, round, self.args.urls, done))
            });
            let workers: Vec<_> = workers.collect();
            for worker in workers {
                let times = worker.join().map_err(|_| "a worker failed")?;
                claims.extend(times.map_err(|error| error.to_string())?);
            }
            Ok::<(), Box<dyn Error>>(())
        })?;
        let took = before.2.elapsed();
        let used = server_time(&self.cluster)? - before.1;
        // Statistics are told with a delay.
        thread::sleep(Duration::from_secs(2));
        let after = updates()?;
        let dead = "SELECT sum(n_dead_tup), sum(n_live_tup) FROM pg_stat_user_tables";
        let rows = numbers(&self.cluster, &self.url, dead)?;
        claims.sort_unstable();
        let claim = |share: f64| {
            let place = (claims.len() as f64 * share) as usize;
            claims
                .get(place)
                .map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        let updated = after[0] - before.0[0];
        let seen = Round {
            each_second: self.args.urls as f64 / took.as_secs_f64(),
            server_us: used.as_secs_f64() * 1e6 / self.args.urls as f64,
            hot: (after[1] - before.0[1]) / updated.max(1.0),
            claim_ms: claim(0.99),
            dead: rows[0] / rows[1].max(1.0),
        };
        println!(
            "{name:9}  {:7}  {:13.0}  {:14.1}  {:10.2}%  {:12.2}  {:6.2}  {:8.2}%",
            self.args.workers,
            seen.each_second,
            seen.server_us,
            seen.hot * 100.0,
            claim(0.5),
            seen.claim_ms,
            seen.dead * 100.0
        );
        Ok(seen)
    }
}

fn open(url: &str) -> Result<Database, StoreError> {
    let place: Place = url
        .parse()
        .map_err(|_| StoreError::new(std::path::Path::new(url), store::StoreErrorKind::Foreign))?;
    place.open()
}

/// So long after the beginning, in hours.
fn at(hours: i64) -> Timestamp {
    let seconds = 1_760_000_000 + hours * 3_600;
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn submit(args: &Args, url: &str) -> Result<(), Box<dyn Error>> {
    let mut store = open(url)?;
    let reading = store.begin_reading("all", at(0))?;
    let all: Vec<u64> = (0..args.urls).collect();
    for some in all.chunks(1_000) {
        let urls = some.iter().map(|number| {
            let host = number % args.hosts.max(1);
            NewUrl::parse(&format!(
                "https://h{host}.example.com/some/path/of/files/number-{number:08}.html"
            ))
        });
        let urls = urls.collect::<Result<Vec<_>, _>>();
        let urls = urls.map_err(|_| "not a URL")?;
        store.read_urls(&reading, &urls, at(0))?;
    }
    store.end_reading(reading, "", at(0), 1.0)?;
    Ok(())
}

/// Claims, reads and completes until all workers together have completed as many as there are. Returns how long each claim
/// took.
fn work(
    url: &str,
    number: usize,
    round: i64,
    urls: u64,
    done: &AtomicU64,
) -> Result<Vec<Duration>, StoreError> {
    let mut store = open(url)?;
    store.join_fleet(&NewWorker {
        name: format!("worker-{number}"),
        process: std::process::id(),
        version: String::new(),
        lease: LEASE,
    })?;
    let mut random = Random::new(number as u64 + 1);
    let mut times = Vec::new();
    // Later than the longest interval after the round before.
    let now = at(round * 24 * 200);
    while done.load(Ordering::Relaxed) < urls {
        let began = Instant::now();
        let ready = store.ready(Lanes::Schedule, now, &HashSet::new(), 16)?;
        times.push(began.elapsed());
        for ready in &ready {
            loop {
                let due = store.due(ready.host.id, Lane::Routine, None, now, 256)?;
                if due.is_empty() {
                    break;
                }
                let answers = due.iter().map(|due| answer(due, now, &mut random));
                let answers: Vec<Judgement> = answers.collect();
                let stored = store.judge(&answers)?.stored;
                done.fetch_add(stored, Ordering::Relaxed);
            }
        }
        store.release(&HashSet::new())?;
        if ready.is_empty() {
            thread::sleep(Duration::from_millis(50));
        }
    }
    store.leave_fleet()?;
    Ok(times)
}

fn answer(due: &DueUrl, now: Timestamp, random: &mut Random) -> Judgement {
    let mut life = due.life.clone();
    let rules = Profile::Default.rules();
    let context = Context::default();
    let decision = rules.decide(now, &mut life, (Verdict::Ok, Some(200)), &context, random);
    let transition = decision.transition;
    let change = transition.map(|change| store::Change::new(&change, Some(200)));
    Judgement {
        id: due.id,
        answer: Some(Answer {
            status: Some(200),
            method: Some("HEAD"),
            checked_at: Some(now),
            latency: Some(Duration::from_millis(20)),
            ..Answer::of(Verdict::Ok)
        }),
        life,
        changes: change.into_iter().collect(),
        next: Some((Lane::Routine, decision.due)),
        dead_letter: None,
    }
}

/// The processor time of a server, with all its processes.
fn server_time(cluster: &Cluster) -> Result<Duration, Box<dyn Error>> {
    let first = cluster.first_process().as_raw_nonzero();
    let (_, mut all) = times(&format!("/proc/{first}/stat"))?;
    let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"))?;
    for child in children.split_whitespace() {
        // One that has ended since is in the time of the first process, or will be.
        if let Ok((_, time)) = times(&format!("/proc/{child}/stat")) {
            all += time;
        }
    }
    Ok(all)
}

/// The numbers in the first row that a query prints.
fn numbers(cluster: &Cluster, url: &str, query: &str) -> Result<Vec<f64>, Box<dyn Error>> {
    let database = url.rsplit('/').next().unwrap_or_default();
    let printed = cluster.psql(database, query);
    let row = printed.lines().next().unwrap_or_default();
    let numbers = row.split('|').map(|number| number.trim().parse());
    Ok(numbers.collect::<Result<_, _>>()?)
}
