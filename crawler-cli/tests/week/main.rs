//! URLs, their checks and the guards through a week of faults, each week drawn from one seed.
//!
//! ```text
//! cargo test -p crawler-cli --release --test week -- --seeds 1000           # that many seeds, 1,000 URLs each
//! cargo test -p crawler-cli --release --test week -- --seed 17              # one seed
//! cargo test -p crawler-cli --release --test week -- --seed 1 --urls 100000 # many URLs
//! ```
//!
//! In the week, 12 % of the URLs answer 410 for 5 minutes to 24 hours, because caches are purged; some hosts answer 404
//! for 2 hours; the own network is cut; some URLs answer 404 for 9 days; 1 % are gone for ever; and up to 12 % of all
//! requests fail at random. Time is virtual and goes on until everything that is gone has long been found.
//!
//! What must hold for every seed:
//! - Nothing is pruned that is not gone for ever.
//! - Nothing is gone but what is gone for ever, and what answered 404 for 9 days.
//! - What is gone is found within its span and one more check; time in which a guard was on does not count.
//! - Everything else is alive in the end, or waits for its next check after a random failure.

#[path = "../common/draw.rs"]
mod draw;
mod plan;
mod world;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

use plan::Plan;
use world::{Matrix, World};

fn main() -> ExitCode {
    let mut options = Options {
        first: 0,
        count: 20,
        urls: 1_000,
    };
    let rest = match options.read(std::env::args()) {
        Ok(rest) => rest,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let trials = vec![Trial::test("week", move || Ok(run(options)?))];
    libtest_mimic::run(&Arguments::from_iter(rest), trials).exit_code()
}

#[derive(Clone, Copy)]
struct Options {
    first: u64,
    count: u64,
    urls: usize,
}

impl Options {
    /// Takes the options of this program, and returns those of the test harness.
    fn read(&mut self, all: impl Iterator<Item = String>) -> Result<Vec<String>, String> {
        let (mut all, mut rest) = (all, Vec::new());
        while let Some(option) = all.next() {
            if !["--seeds", "--seed", "--urls"].contains(&&*option) {
                rest.push(option);
                continue;
            }
            let value = all.next().and_then(|text| text.parse::<u64>().ok());
            let number = value.ok_or_else(|| format!("{option} needs a number"))?;
            match &*option {
                "--seeds" => (self.first, self.count) = (0, number),
                "--seed" => (self.first, self.count) = (number, 1),
                _ => self.urls = usize::try_from(number).map_err(|error| error.to_string())?,
            }
        }
        Ok(rest)
    }
}

/// All seeds, on all cores.
fn run(options: Options) -> Result<(), String> {
    let began = Instant::now();
    let next = AtomicU64::new(options.first);
    let end = options.first + options.count;
    let results = Mutex::new((Matrix::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let plan = Plan::draw(seed, options.urls);
                    let (matrix, faults) = World::new(&plan, seed).run();
                    let mut results = results.lock().unwrap();
                    results.0.add(&matrix);
                    let faults = faults
                        .into_iter()
                        .map(|fault| format!("seed {seed}: {fault}"));
                    results.1.extend(faults);
                }
            });
        }
    });
    let (matrix, mut faults) = results.into_inner().unwrap();
    println!("{matrix}");
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} seeds with {} URLs each in {seconds:.1} s",
        options.count, options.urls
    );
    matrix.expect_everything_happened(options.count)?;
    faults.sort();
    faults.truncate(20);
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults.join("\n")),
    }
}
