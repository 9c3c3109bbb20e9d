//! Whole runs of the service of `watch`: on a simulated network, with a virtual clock and a real store, each drawn from
//! one seed.
//!
//! ```text
//! cargo test -p crawler-cli --release --test watch_sim -- months --seeds 20        # that many seeds, 1,000 URLs each
//! cargo test -p crawler-cli --release --test watch_sim -- months --seed 17         # one seed
//! cargo test -p crawler-cli --release --test watch_sim -- planted                  # variants with a flaw each
//! cargo test -p crawler-cli --release --test watch_sim -- week --urls 100000       # many URLs
//! cargo test -p crawler-cli --release --test watch_sim -- eager --urls 100000      # how stale the profile `eager` gets
//! ```
//!
//! In the first days, 12 % of the URLs answer 410 for 5 minutes to 24 hours, because caches are purged; some hosts answer
//! 404 for 2 hours; the own network is cut; some URLs answer 404 for 9 days, or 410 for 10; 1 % are gone for ever; up to
//! 12 % of all requests fail at random; hosts are slow, treat HEAD wrongly, redirect, and answer 429. On bad days the
//! process is killed at any operation of the store and started again, is stopped for an hour, runs out of descriptors or of
//! disk, and its clock jumps by a day in both directions.
//!
//! What must hold for every seed, after every event of the store:
//! - Changes of state follow one another, and the counters agree with them.
//! - Every URL has a due row; nothing is lost. No answer counts twice.
//! - Nothing is pruned that does not answer 410 for days. Nothing is gone but what is gone.
//! - What is gone is found within its span and one more check; time in which a guard was on does not count.
//! - What comes back is found again.
//! - No host gets more requests at a time than it has connections, more than its rate, or one before its `Retry-After`.
//! - Cycles of reconciling do not overlap, and begin an interval and its jitter apart.
//! - Every alert that is due is given once, and none without a reason: the own network is cut and works again, a host is
//!   held and released, the budget of pruning is spent.
//!
//! A harness that finds no fault proves nothing unless it finds those that are there: `planted` runs variants with a
//! flaw each, and expects their faults.
//!
//! The flaws of a published pipeline that checks URLs in two stages, and what shows that this service has none of them:
//!
//! | flaw | shown by |
//! |---|---|
//! | what is dead is never asked again, because the re-check asks the filter of rejected URLs first | here: URLs that come back are resurrected; `planted` |
//! | the jitter of the cycles is computed and dropped | here: cycles begin an interval and its jitter apart; `planted` |
//! | what is unknown or timed out is marked as reconciled, and lost | here: every URL has a due row after every event |
//! | a cycle that takes longer than its interval overlaps the next | here: a cycle begins after the one before has ended |
//! | what was committed late is skipped by "since the last cycle" | `store::suite`, `what_is_written_late_is_due_nevertheless` |
//! | one fixed time limit makes slow hosts dead | here: slow hosts end as alive; `eager` prunes nothing of theirs |
//! | the cause of a failure is hidden | here: every change has a cause |
//! | a batch waits in memory as a whole | `store::suite`, `what_is_written_late_is_due_nevertheless`: rows are read piece by piece |
//! | the number of cores bounds the requests in flight | here: `week` has more connections at a time than the machine has cores |
//! | the filter has no stated error rate | `store::rejected`, `what_was_inserted_is_never_denied_and_most_else_is`; `store::sqlite::rejects`, `a_filter_that_says_yes_to_everything_gives_the_same` |
//! | no guard against a mass of 410s | here: nothing is pruned that was purged; `planted` |
//! | 404 counts as alive only to avoid pruning | here: what answers 404 for ever is found as gone, and is not pruned; `planted` |

mod alerts;
mod draw;
mod oracle;
mod plan;
mod server;
mod store;
mod world;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use verdict::life::{GoneRule, Intervals, Profile, Rules};
use watch::core::{Limit, Limits, Settings};

use oracle::Matrix;
use plan::Plan;
use server::Manners;
use world::{Shown, World};

fn main() -> ExitCode {
    let mut options = Options::default();
    let rest = match options.read(std::env::args()) {
        Ok(rest) => rest,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut trials = vec![Trial::test("months", move || months(options))];
    if !cfg!(debug_assertions) {
        // They would take long without optimization.
        trials.push(Trial::test("week", move || week(options)));
        trials.push(Trial::test("eager", move || eager(options)));
        trials.push(Trial::test("planted", move || planted(options)));
    }
    let mut arguments = Arguments::from_iter(rest);
    // Each uses all cores.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

#[derive(Clone, Copy)]
struct Options {
    first: u64,
    count: u64,
    urls: Option<usize>,
    days: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            first: 0,
            count: 2,
            urls: None,
            days: DAYS,
        }
    }
}

impl Options {
    /// Takes the options of this program, and returns those of the test harness.
    fn read(&mut self, all: impl Iterator<Item = String>) -> Result<Vec<String>, String> {
        let (mut all, mut rest) = (all, Vec::new());
        while let Some(option) = all.next() {
            if !["--seeds", "--seed", "--urls", "--days"].contains(&&*option) {
                rest.push(option);
                continue;
            }
            let value = all.next().and_then(|text| text.parse::<u32>().ok());
            let number = value.ok_or_else(|| format!("{option} needs a number"))?;
            match &*option {
                "--seeds" => (self.first, self.count) = (0, number.into()),
                "--seed" => (self.first, self.count) = (number.into(), 1),
                "--urls" => self.urls = usize::try_from(number).ok(),
                _ => self.days = number.into(),
            }
        }
        Ok(rest)
    }
}

/// Months of few URLs. Every other seed has bad days.
fn months(options: Options) -> Result<(), Failed> {
    let urls = options.urls.unwrap_or(URLS);
    let (began, next) = (Instant::now(), AtomicU64::new(options.first));
    let end = options.first.saturating_add(options.count);
    let results = Mutex::new((0, Matrix::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let is_bad = seed % 2 == 1;
                    let plan = Plan::draw(seed, urls, is_bad);
                    let (settings, manners) = (usual(), Manners::USUAL);
                    let shown = run(plan, seed, settings, manners, is_bad, options.days);
                    let mut results = results.lock().unwrap();
                    results.0 += 1;
                    match shown {
                        Ok(shown) => {
                            results.1.add(&shown.matrix);
                            let faults = shown.faults.into_iter();
                            results
                                .2
                                .extend(faults.map(|fault| format!("seed {seed}: {fault}")));
                        }
                        Err(error) => results.2.push(format!("seed {seed}: {error}")),
                    }
                }
            });
        }
    });
    let (runs, matrix, mut faults) = results.into_inner().unwrap();
    println!("{matrix}");
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{runs} seeds with {urls} URLs and {} days each in {seconds:.1} s",
        options.days
    );
    matrix.expect_everything_happened(runs)?;
    faults.truncate(40);
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults.join("\n").into()),
    }
}

/// A week and the time until everything is found, of many URLs, in memory.
fn week(options: Options) -> Result<(), Failed> {
    let urls = options.urls.unwrap_or(URLS);
    let began = Instant::now();
    let plan = Plan::draw(options.first, urls, false);
    let (settings, manners) = (usual(), Manners::USUAL);
    let shown = run(plan, options.first, settings, manners, false, options.days)?;
    println!("{}", shown.matrix);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{urls} URLs, {} days in {seconds:.1} s; {} connections at a time",
        options.days, shown.peak
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if shown.peak <= cores {
        return Err(format!("{} connections with {cores} cores", shown.peak).into());
    }
    shown.expect_no_faults()
}

/// The profile `eager`: how stale the URLs get.
fn eager(options: Options) -> Result<(), Failed> {
    let urls = options.urls.unwrap_or(URLS);
    let began = Instant::now();
    let settings = eager_settings();
    let plan = Plan::draw(options.first, urls, false);
    let manners = Manners {
        rate: 0.0,
        ..Manners::USUAL
    };
    let days = options.days.min(12);
    let shown = run(plan, options.first, settings, manners, false, days)?;
    println!("{}", shown.matrix);
    println!(
        "{urls} URLs in {:.1} s: at most {:.4} of the URLs past due by more than 2.4 min; at most {} s past due",
        began.elapsed().as_secs_f64(),
        shown.staleness.worst,
        shown.staleness.longest
    );
    // Judged as by the profile `default`, some URLs end as they should not: to `eager` a 404 is alive.
    if shown.matrix.false_prunes > 0 || shown.staleness.worst > STALE_SHARE {
        return Err(shown.faults.join("\n").into());
    }
    Ok(())
}

/// The default settings, but that URLs are asked more often: a run need not last for half a year to find what is gone.
fn usual() -> Settings {
    of_profile(Profile::Default)
}

fn of_profile(profile: Profile) -> Settings {
    Settings {
        rules: Rules {
            alive_interval: Intervals {
                first: 2 * DAY,
                longest: 8 * DAY,
            },
            gone_interval: Intervals {
                first: 3 * DAY,
                longest: 30 * DAY,
            },
            ..profile.rules()
        },
        ..Settings::default()
    }
}

fn eager_settings() -> Settings {
    let mut settings = of_profile(Profile::Eager);
    settings.limits.per_host_rate = Limit::None;
    settings.limits.adaptive_timeout = Profile::Eager.adaptive_timeout();
    settings
}

/// Variants with a flaw. Each must be found by one of a few seeds.
fn planted(options: Options) -> Result<(), Failed> {
    let urls = options.urls.unwrap_or(URLS);
    for (name, plant, found_by) in FLAWS {
        let mut settings = usual();
        plant(&mut settings);
        let mut faults = Vec::new();
        for seed in 0..MOST_SEEDS {
            let plan = Plan::draw(seed, urls, false);
            let setting = settings.clone();
            let shown = run(plan, seed, setting, Manners::USUAL, false, options.days)?;
            faults.extend(shown.faults);
            if faults.iter().any(|fault| fault.contains(found_by)) {
                break;
            }
        }
        if !faults.iter().any(|fault| fault.contains(found_by)) {
            return Err(format!("{name}: not found; {faults:?}").into());
        }
        println!("{name}: found");
    }
    Ok(())
}

type Plant = fn(&mut Settings);

/// The flaw, how it is planted, and a part of what the run says about it.
const FLAWS: [(&str, Plant, &str); 8] = [
    (
        "one 410 is believed, and no guard sees that there are many",
        |settings| {
            settings.rules.gone_410 = GoneRule {
                count: 1,
                span: Duration::ZERO,
            };
            settings.rules.grace = Duration::ZERO;
            settings.guards.flip.min = u32::MAX;
        },
        "Purged is pruned",
    ),
    (
        "one 404 is believed",
        |settings| {
            settings.rules.gone_404 = GoneRule {
                count: 1,
                span: Duration::ZERO,
            };
            settings.guards.flip.min = u32::MAX;
        },
        "HostDown is gone",
    ),
    (
        "404 counts as alive",
        |settings| settings.rules.alive_on = Profile::Eager.rules().alive_on,
        "Gone404 ends as ALIVE",
    ),
    (
        "no guard sees that the own network is cut",
        |settings| settings.guards.network.hosts = u32::MAX,
        "its alerts: []",
    ),
    (
        "what is dead is never asked again",
        |settings| {
            settings.rules.gone_interval = Intervals {
                first: 1_000 * DAY,
                longest: 1_000 * DAY,
            };
        },
        "Returns ends as PRUNED",
    ),
    (
        "the jitter of the cycles is computed and dropped",
        |settings| settings.reconcile.jitter = (Duration::ZERO, Duration::ZERO),
        "a cycle began too early",
    ),
    (
        "requests are sent faster than the host wants",
        |settings| settings.limits.per_host_rate = Limits::rate(3.0),
        "requests in 10 s",
    ),
    (
        "a host gets more requests at a time than it wants",
        |settings| {
            settings.limits.per_host_connections =
                NonZeroUsize::new(4).map_or(Limit::None, Limit::At);
            settings.limits.per_host_rate = Limit::None;
        },
        "requests at a time",
    ),
];

/// The share of URLs past due by more than 2.4 minutes that is an alarm.
const STALE_SHARE: f64 = 0.026;

/// URLs of a run. Without optimization, few.
const URLS: usize = if cfg!(debug_assertions) { 60 } else { 1_000 };

/// Days of a run. Without optimization, only what must hold after every event is seen.
const DAYS: i64 = if cfg!(debug_assertions) { 2 } else { 45 };

const MOST_SEEDS: u64 = 12;
const DAY: Duration = Duration::from_secs(86_400);

fn run(
    plan: Plan,
    seed: u64,
    settings: Settings,
    manners: Manners,
    is_on_disk: bool,
    days: i64,
) -> Result<Shown, String> {
    let run = catch_unwind(AssertUnwindSafe(|| {
        let world = World::new(plan, seed, settings, manners, is_on_disk);
        let run = world.and_then(|world| world.run(days));
        run.map_err(|error| error.to_string())
    }));
    // The panic itself was printed.
    run.unwrap_or_else(|_| Err("panicked".to_owned()))
}

impl Shown {
    fn expect_no_faults(self) -> Result<(), Failed> {
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(self.faults.join("\n").into()),
        }
    }
}
