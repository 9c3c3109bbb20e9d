//! What a job costs: in memory, beside a channel with threads, which is the least that a pool can be; and in an
//! embedded store, with commits that many jobs share.

use std::error::Error;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crawler_cli::jobs::{Cancel, Drain, DurablePool, PoolSettings, StartedJob, WorkerPool};
use crawler_cli::store::sqlite::Sqlite;
use crawler_cli::store::{NewJob, Writer, WriterSettings};
use nix::sys::resource::UsageWho;

use crate::measure;

/// Measures the pools of jobs.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// The number of jobs in memory
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,

    /// The number of durable jobs
    #[arg(long, default_value_t = 200_000)]
    durable: u64,

    /// The number of workers
    #[arg(long, default_value = "2")]
    workers: NonZeroUsize,

    /// The number of jobs with which the queue in memory is full
    #[arg(long, default_value = "100")]
    queue: NonZeroUsize,
}

/// Runs the tool. The exit code is 1 if a bar is missed.
///
/// # Errors
/// A thread or a store could not be started, or a job was lost.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let channel = run_and_measure(args.jobs, |done| channel(args, done))?;
    let memory = run_and_measure(args.jobs, |done| memory(args, done))?;
    let durable = run_and_measure(args.durable, |done| durable(args, done))?;
    println!(
        "{:<28} {:>10} {:>12} {:>14} {:>8}",
        "", "jobs", "µs each", "µs CPU each", "lost"
    );
    for (name, result) in [
        ("channel and threads", &channel),
        ("WorkerPool", &memory),
        ("DurablePool, SQLite", &durable),
    ] {
        result.print(name);
    }
    let a_second = durable.jobs as f64 / durable.took.as_secs_f64();
    println!("durable jobs a second: {a_second:.0} (bar: 50,000)");
    // Processor time, too: threads that spin would be fast only where a core is free.
    let (each, cpu) = (memory.each(memory.took), memory.each(memory.cpu));
    println!("in memory: {each:.2} µs a job, {cpu:.2} µs of processor time (bar: 5)");
    let is_met = a_second >= 50_000.0 && each <= 5.0 && cpu <= 5.0;
    Ok(if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Measured {
    jobs: u64,
    done: u64,
    took: Duration,
    cpu: Duration,
}

impl Measured {
    fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.jobs as f64
    }

    fn print(&self, name: &str) {
        let lost = self.jobs - self.done;
        let (took, cpu) = (self.each(self.took), self.each(self.cpu));
        println!(
            "{name:<28} {:>10} {took:>12.2} {cpu:>14.2} {lost:>8}",
            self.jobs
        );
    }
}

type Done = Arc<AtomicU64>;

fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let [user, system] = measure::cpu_time(UsageWho::RUSAGE_SELF)?;
    Ok(user + system)
}

fn run_and_measure(
    jobs: u64,
    run: impl FnOnce(&Done) -> Result<(), Box<dyn Error>>,
) -> Result<Measured, Box<dyn Error>> {
    let done = Done::default();
    let (began, cpu) = (Instant::now(), cpu_time()?);
    run(&done)?;
    let measured = Measured {
        jobs,
        done: done.load(Ordering::Relaxed),
        took: began.elapsed(),
        cpu: cpu_time()?.saturating_sub(cpu),
    };
    match measured.done == jobs {
        true => Ok(measured),
        false => Err(format!("{} of {jobs} jobs were done", measured.done).into()),
    }
}

fn channel(args: &Args, done: &Done) -> Result<(), Box<dyn Error>> {
    let (jobs, queue) = crossbeam_channel::bounded(args.queue.get());
    thread::scope(|scope| {
        for _ in 0..args.workers.get() {
            let queue = queue.clone();
            scope.spawn(move || {
                for job in queue {
                    done.fetch_add(job, Ordering::Relaxed);
                }
            });
        }
        (0..args.jobs).try_for_each(|_| jobs.send(1))?;
        drop(jobs);
        Ok(())
    })
}

fn memory(args: &Args, done: &Done) -> Result<(), Box<dyn Error>> {
    let of_task = Arc::clone(done);
    let task = move |job: &u64, _: &Cancel| {
        of_task.fetch_add(*job, Ordering::Relaxed);
        Ok(())
    };
    let pool = WorkerPool::new(settings(args), task)?;
    for _ in 0..args.jobs {
        pool.submit(1).map_err(|_| "the pool is closed")?;
    }
    let report = pool.shutdown(Drain::Finish, LONG);
    match report.is_complete() {
        true => Ok(()),
        false => Err("jobs were left".into()),
    }
}

fn durable(args: &Args, done: &Done) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = Sqlite::open(&folder.path().join("jobs.db"))?;
    let store = Writer::start(store, WriterSettings::default())?;
    let of_task = Arc::clone(done);
    let task = move |_: &StartedJob, _: &Cancel| {
        of_task.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    let pool = DurablePool::start(store.clone(), "jobs", settings(args), task)?;
    let mut left = args.durable;
    while left > 0 {
        let count = left.min(BATCH);
        let jobs = (0..count).map(|_| NewJob::new("jobs", *b"https://a.example/1"));
        pool.submit_all(jobs.collect())?;
        left -= count;
    }
    let report = pool.shutdown(Drain::Finish, LONG);
    store.close(LONG)?;
    match report.kept == 0 && report.left.is_empty() {
        true => Ok(()),
        false => Err(format!("jobs were left: {report:?}").into()),
    }
}

fn settings(args: &Args) -> PoolSettings {
    PoolSettings {
        workers: args.workers,
        queue: args.queue,
        ..PoolSettings::default()
    }
}

/// How many durable jobs are submitted at once.
const BATCH: u64 = 500;

const LONG: Duration = Duration::from_secs(600);
