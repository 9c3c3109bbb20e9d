//! curl and `crawler-cli get` do the same things against the same peers, and what the peers received, what was
//! printed, the files left behind and the exit code are compared. Each difference is one of [`known::KNOWN`], with its
//! reason.
//!
//! `SCENARIO=tls/` in the environment runs only the scenarios whose name begins so, and shows both outcomes.

mod cases;
mod known;
mod peer;
mod scenario;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use known::{KNOWN, Part};
use scenario::{Outcome, Scenario};
use tests::program::PROGRAM;

#[test]
#[ignore = "needs curl"]
fn the_same_as_curl() {
    let only = env::var("SCENARIO").ok();
    let mut scenarios = cases::all();
    let names: BTreeSet<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names.len(), scenarios.len(), "names are unique");
    for name in KNOWN.iter().flat_map(|known| known.scenarios) {
        assert!(names.contains(name), "{name} is listed and does not exist");
    }
    if let Some(only) = &only {
        scenarios.retain(|s| s.name.starts_with(only.as_str()));
    }
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(complaint) = compare(scenario, &PROGRAM, only.is_some()) {
                        let mut complaints = complaints.lock().expect("no thread panics");
                        complaints.insert(scenario.name.clone(), complaint);
                    }
                }
            });
        }
    });
    let complaints = complaints.into_inner().expect("no thread panics");
    let texts: Vec<&str> = complaints.values().map(String::as_str).collect();
    assert!(
        texts.is_empty(),
        "{}\n{} of {} scenarios",
        texts.join("\n"),
        texts.len(),
        scenarios.len()
    );
}

/// Runs both programs, and complains about a difference that is not listed and about a listed one that is none.
fn compare(scenario: &Scenario, program: &Path, show: bool) -> Result<(), String> {
    let curl = scenario.run(Path::new("curl"), &["-q", "-sS", "--socks5-basic"]);
    let get = scenario.run(program, &["get", "-sS"]);
    let found = differences(&curl, &get);
    let listed: Vec<Part> = known::of(&scenario.name)
        .flat_map(|known| known.parts)
        .copied()
        .collect();
    let name = &scenario.name;
    let mut complaint = String::new();
    for (program, outcome) in [("curl", &curl), ("get", &get)] {
        if outcome.exit == Some(28) && !scenario.is_limited() {
            let _ = writeln!(complaint, "{name}: {program} hangs");
        }
    }
    for (part, curl, get) in &found {
        if !listed.contains(part) {
            let _ = writeln!(complaint, "{name}: {part:?}\n  curl {curl}\n  get  {get}");
        }
    }
    for part in &listed {
        if !found.iter().any(|(found, ..)| found == part) {
            let reasons: Vec<&str> = known::of(name).map(|known| known.why).collect();
            let reasons = reasons.join(" ");
            let _ = writeln!(
                complaint,
                "{name}: {part:?} is listed as a difference and is none: {reasons}"
            );
        }
    }
    if !complaint.is_empty() || show {
        let _ = writeln!(complaint, "  curl said {:?}", curl.stderr);
        let _ = writeln!(complaint, "  get said  {:?}", get.stderr);
    }
    if complaint.is_empty() {
        Ok(())
    } else {
        Err(complaint)
    }
}

/// What differs, in curl's form and in ours.
fn differences(curl: &Outcome, get: &Outcome) -> Vec<(Part, String, String)> {
    let shown = |outcome: &Outcome| {
        [
            (Part::Exit, format!("{:?}", outcome.exit)),
            (Part::Output, outcome.stdout.escape_ascii().to_string()),
            (Part::Wire, wire(outcome)),
            (Part::Verbose, outcome.verbose.escape_ascii().to_string()),
            (Part::Files, files(outcome)),
        ]
    };
    let pairs = shown(curl).into_iter().zip(shown(get));
    pairs
        .filter(|((_, curl), (_, get))| curl != get)
        .map(|((part, curl), (_, get))| (part, curl, get))
        .collect()
}

fn wire(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (letter, connections) in ('A'..).zip(&outcome.received) {
        for (number, bytes) in connections.iter().enumerate() {
            let _ = write!(text, "\n    {letter}{number} {}", bytes.escape_ascii());
        }
    }
    text
}

fn files(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (name, bytes) in &outcome.files {
        let _ = write!(text, "\n    {name}: {}", bytes.escape_ascii());
    }
    text
}

/// More than cores: a run spends much of its time in waiting.
const THREADS: usize = 4;
