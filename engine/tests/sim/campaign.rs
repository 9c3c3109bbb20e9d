//! Very many seeds on all cores, and one seed shown in full.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::plan::Plan;
use crate::run::run;
use crate::watch;

/// A way to draw plans from seeds.
pub(crate) struct Campaign {
    pub(crate) name: &'static str,
    pub(crate) draw: fn(u64) -> Plan,
}

pub(crate) const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "one_host",
        draw: Plan::draw,
    },
    // With names, proxies, redirects from one host to another, and a limit over all hosts.
    Campaign {
        name: "hosts",
        draw: Plan::draw_web,
    },
    // With several calls on a connection at a time.
    Campaign {
        name: "pipelines",
        draw: Plan::draw_pipeline,
    },
];

/// The seeds to run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seeds {
    /// That many seeds, from 0 on.
    First(u64),
    /// This seed alone, shown in full.
    One(u64),
}

impl Seeds {
    /// Seeds of each campaign in the ordinary test run, which takes a few seconds. Faults that need several
    /// coincidences have shown once in some thousand seeds.
    pub(crate) fn usual() -> Self {
        Self::First(5_000)
    }
}

impl Campaign {
    pub(crate) fn run(&self, seeds: Seeds) -> Result<(), String> {
        match seeds {
            Seeds::First(count) => self.run_first(count),
            Seeds::One(seed) => self.tell(seed),
        }
    }

    fn run_first(&self, count: u64) -> Result<(), String> {
        let began = Instant::now();
        let next = AtomicU64::new(0);
        let failures = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        let enough = failures
                            .lock()
                            .is_ok_and(|all| all.len() >= ENOUGH_FAILURES);
                        if seed >= count || enough {
                            return;
                        }
                        if let Err(reason) = self.attempt(seed)
                            && let Ok(mut failures) = failures.lock()
                        {
                            failures.push((seed, reason));
                        }
                    }
                });
            }
        });
        let mut failures = failures.into_inner().unwrap_or_default();
        if failures.is_empty() {
            let speed = count as f64 / began.elapsed().as_secs_f64();
            println!("{}: {count} seeds, {speed:.0} a second", self.name);
            return Ok(());
        }
        failures.sort();
        let mut report = format!("{} of {count} seeds failed", failures.len());
        for (seed, reason) in &failures {
            let reason = reason.lines().next().unwrap_or_default();
            report.push_str(&format!(
                "\nseed {seed}: {reason}\n  {}",
                self.replay(*seed)
            ));
        }
        Err(report)
    }

    /// Runs one seed. The error is the check that failed.
    pub(crate) fn attempt(&self, seed: u64) -> Result<(), String> {
        caught(|| drop(run(&(self.draw)(seed), seed, |_| ())))
    }

    /// Runs one seed, and prints its plan and everything that happened.
    fn tell(&self, seed: u64) -> Result<(), String> {
        let plan = (self.draw)(seed);
        println!("{plan:#?}");
        watch::tell();
        let mut ends = Vec::new();
        let result = caught(|| ends = run(&plan, seed, |_| ()).ends);
        watch::tell_rest();
        for (n, end) in ends.iter().enumerate() {
            println!("call {}: {end}", n + 1);
        }
        result
    }

    /// The command that replays a seed.
    fn replay(&self, seed: u64) -> String {
        let name = self.name;
        format!("cargo test -p courser --release --test sim -- --exact {name} --seed {seed}")
    }
}

/// Runs a closure; a panic becomes an error with its text.
pub(crate) fn caught(run: impl FnOnce()) -> Result<(), String> {
    QUIET.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    QUIET.set(false);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_default()
    })
}

/// Panics that are [caught] are printed once, at the end.
pub(crate) fn keep_panics_quiet() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            usual(info);
        }
    }));
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// One fault in the engine fails many seeds; a few are enough to show it.
const ENOUGH_FAILURES: usize = 8;
