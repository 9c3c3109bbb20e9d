//! The nightly fetch of the filings of 5,000 companies, from a server that allows ten requests a second and answers 2 %
//! of them with 429 all the same:
//! `cargo run -p crawler-cli --example tickers -- --speed 200`
//!
//! A schedule fires at 02:15 in New York. With the firing, in one commit, the tickers become jobs of an embedded store.
//! The process can be killed at any moment and started again with the same `--folder`: it goes on. At the end each
//! filing was fetched and is a file in the folder, none was dropped, the server saw no window over its rate, and the
//! dead letters are the companies that are listed no more.
//!
//! `--speed N` makes a second of the server and of the schedule N times shorter.

pub(crate) mod server;

use std::error::Error;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use courser::{Backoff, Client, Config, Rate, Response, Shared, SharedConfig};
use jiff::{SignedDuration, Timestamp};
use jobs::{
    Cancel, Ceiling, CeilingLimits, Decision, Drain, JobError, PoolSettings, Schedule,
    ScheduleRuns, ScheduleSettings,
};
use store::sqlite::Sqlite;
use store::{
    DeadLetterFilter, DeadLetterId, DurablePool, NewJob, StartedJob, StoreHandle, Writer,
    WriterSettings,
};

const QUEUE: &str = "filings";

#[allow(dead_code, reason = "a test uses the example as a module")]
fn main() -> Result<(), Box<dyn Error>> {
    run(env::args().skip(1))
}

/// Runs with the words of a command line.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let options = Options::read(words)?;
    let window = Duration::from_secs(1) / options.speed;
    let (address, journal) = match &options.server {
        Some(address) => (address.clone(), None),
        None => {
            let (address, journal) = server::start(window)?;
            (address.to_string(), Some(journal))
        }
    };
    let temporary = tempfile::tempdir()?;
    let folder = options.folder.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(folder)?;
    let store = Sqlite::open(&folder.join("jobs.db"))?;
    let store = Writer::start(store, WriterSettings::default())?;

    enqueue_when_due(&store, &options)?;
    let started = Instant::now();
    let fetch = Fetch::new(&address, folder, options.kill_after)?;
    let settings = PoolSettings {
        name: QUEUE.to_owned(),
        workers: NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN),
        ceiling: Some(ceiling_of_the_server(window)),
        backoff: Backoff {
            initial: window,
            factor: 2.0,
            max: window * 60,
        },
        time_limit: Some(Duration::from_secs(60)),
        ..PoolSettings::default()
    };
    let pool = DurablePool::start(store.clone(), QUEUE, settings, move |job, cancel| {
        fetch.run(job, cancel)
    })?;
    let report = pool.shutdown(Drain::Finish, Duration::from_secs(3600));
    println!(
        "{} fetched by this process in {:.1?}, {} kept, {} left",
        report.done,
        started.elapsed(),
        report.kept,
        report.left.len()
    );
    print_dead_letters(&store)?;
    if let Some(journal) = journal {
        let journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
        println!(
            "server: {} requests, {} ok, {} not found, {} refused with 429, {} over the rate",
            journal.requests,
            journal.count(200),
            journal.count(404),
            journal.count(429),
            journal.over
        );
    }
    store.close(Duration::from_secs(10))?;
    println!("ok");
    Ok(())
}

/// Ten requests in a window, one after the other. Another process may have used up the window a moment ago.
fn ceiling_of_the_server(window: Duration) -> Ceiling {
    let most = NonZeroU64::new(server::MOST as u64).unwrap_or(NonZeroU64::MIN);
    let ceiling = Ceiling::new(CeilingLimits {
        concurrency: NonZeroUsize::new(4),
        rate: Some(Rate {
            count: most,
            per: window,
            burst: NonZeroU64::MIN,
        }),
    });
    ceiling.use_up(Instant::now());
    ceiling
}

/// Waits for the schedule, and stores the jobs together with the firing. If the schedule has fired, there is nothing to
/// do.
fn enqueue_when_due(store: &Writer, options: &Options) -> Result<(), Box<dyn Error>> {
    let schedule = Schedule::new(
        "nightly",
        "tickers",
        &ScheduleSettings {
            cron: "0 15 2 * * *".to_owned(),
            timezone: "America/New_York".to_owned(),
            ..ScheduleSettings::default()
        },
    )?;
    let evening: Timestamp = "2026-11-22T02:14:50-05:00".parse()?;
    let known = store.read(|engine| engine.schedule("nightly"))?;
    if let Some(fired) = known.last_fired {
        println!("{} fired at {fired}: going on", schedule.name());
        return Ok(());
    }
    let began = Instant::now();
    let runs = ScheduleRuns::since(evening);
    let firing = loop {
        let elapsed = SignedDuration::try_from(began.elapsed() * options.speed)?;
        match schedule.poll(&runs, evening + elapsed) {
            Decision::Fire(firing) => break firing,
            _ => std::thread::sleep(Duration::from_secs(1) / options.speed),
        }
    };
    let jobs: Vec<_> = (1..=options.tickers)
        .map(|number| {
            let ticker = format!("T{number:04}");
            let key = format!("{} {ticker}", firing.scheduled_at);
            NewJob {
                max_attempts: 10,
                ..NewJob::new(QUEUE, ticker).with_key(key)
            }
        })
        .collect();
    let count = jobs.len();
    let is_first = store.call(move |engine| {
        let now = Timestamp::now();
        let is_first = engine.fire("nightly", firing.scheduled_at, now)?;
        if is_first {
            engine.enqueue(&jobs, now)?;
        }
        Ok(is_first)
    })?;
    println!(
        "{} fired at {}: {count} jobs, first: {is_first}",
        schedule.name(),
        firing.scheduled_at
    );
    Ok(())
}

fn print_dead_letters(store: &Writer) -> Result<(), Box<dyn Error>> {
    let letters = store.read(|engine| {
        let mut reasons = std::collections::BTreeMap::new();
        let filter = DeadLetterFilter::default();
        engine.dead_letters(&filter, DeadLetterId::START, &mut |letter| {
            *reasons
                .entry((letter.letter.reason, letter.letter.last))
                .or_insert(0) += 1;
            ControlFlow::Continue(())
        })?;
        Ok(reasons)
    })?;
    for ((reason, last), count) in letters {
        println!("dead letters: {count} {reason}: {last}");
    }
    Ok(())
}

/// The task: fetches one filing into a file.
struct Fetch {
    client: Shared<Client>,
    base: String,
    folder: PathBuf,
    /// Kills the process after so many filings.
    kill_after: Option<u32>,
    fetched: Arc<Mutex<u32>>,
}

impl Fetch {
    fn new(address: &str, folder: &Path, kill_after: Option<u32>) -> Result<Self, courser::Error> {
        Ok(Self {
            client: Shared::spawn(SharedConfig::default(), |_| Client::new(Config::default()))?,
            base: format!("http://{address}/"),
            folder: folder.to_owned(),
            kill_after,
            fetched: Arc::default(),
        })
    }

    fn run(&self, job: &StartedJob, _: &Cancel) -> Result<(), JobError> {
        let ticker = String::from_utf8_lossy(&job.payload);
        let path = self.folder.join(format!("{ticker}.txt"));
        if path.exists() {
            // Fetched by a process that was killed before it could say so.
            return Ok(());
        }
        let mut response = Response::new();
        self.client
            .get(&format!("{}{ticker}", self.base), &mut response)
            .map_err(|error| JobError::retry(error.to_string()))?;
        match response.status() {
            200 => {}
            404 => return Err(JobError::fail("404 Not Found")),
            status => return Err(JobError::retry(format!("status {status}"))),
        }
        // Whole or not at all.
        let part = path.with_extension("part");
        fs::write(&part, response.body())
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| JobError::retry(error.to_string()))?;
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        *fetched += 1;
        if Some(*fetched) == self.kill_after {
            process::abort();
        }
        Ok(())
    }
}

/// What the command line says.
struct Options {
    speed: u32,
    tickers: u32,
    server: Option<String>,
    folder: Option<PathBuf>,
    kill_after: Option<u32>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            speed: 1,
            tickers: 5000,
            server: None,
            folder: None,
            kill_after: None,
        };
        while let Some(name) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("{name} needs a value"))?;
            match &*name {
                "--speed" => options.speed = value.parse::<u32>()?.max(1),
                "--tickers" => options.tickers = value.parse()?,
                "--server" => options.server = Some(value),
                "--folder" => options.folder = Some(value.into()),
                "--kill-after" => options.kill_after = Some(value.parse()?),
                _ => return Err(format!("unknown option {name}").into()),
            }
        }
        Ok(options)
    }
}
