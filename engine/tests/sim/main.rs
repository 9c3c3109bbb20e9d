//! The whole client on a simulated network: random programs of calls against random faults, each drawn from one seed.
//!
//! ```text
//! cargo test -p courser --release --test sim -- --seeds 1000000         # that many seeds of each campaign
//! cargo test -p courser --release --test sim -- --exact hosts --seed 17 # one seed, shown in full
//! ```
//!
//! | what must hold in every run | where it is checked |
//! |---|---|
//! | each call completes exactly once, and no later than its deadline | `run` |
//! | connections never exceed their caps; nothing is left at the end | `run` |
//! | every answer belongs to its request; a body cut short is never a success | `run` |
//! | a request that must not be repeated reaches a server at most once | `run` |
//! | calls of a host get their connections in the order in which they came | `watch` |
//! | retries keep to their pauses, to what servers ask for, to their number and to their budget | `watch` |
//! | breakers open when they must, let nothing through while they are open, and probes only when half open | `watch` |
//! | what the peer has ended is not used again | `watch` |
//! | slow names do not hold fast ones; no lookup is left at the end | `run` |
//! | it ends: after a bounded number of iterations and a bounded time | `run` |
//! | one seed is one run | here |
//!
//! The checks are tested, too: `.ci/planted` plants faults in a copy of the engine, and each must be caught.
//!
//! The servers of some upstreams speak TLS.
//!
//! In runs where the network only delays and cuts, every call must succeed.

mod campaign;
mod plan;
mod run;
mod torture;
mod watch;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use campaign::{CAMPAIGNS, Seeds};
use run::run;

fn main() -> ExitCode {
    let (seeds, rest) = match options(std::env::args()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    campaign::keep_panics_quiet();
    let arguments = Arguments::from_iter(rest);
    let mut trials: Vec<_> = CAMPAIGNS
        .iter()
        .map(|campaign| Trial::test(campaign.name, move || Ok(campaign.run(seeds)?)))
        .collect();
    if !matches!(seeds, Seeds::One(_)) {
        trials.push(trial("one_seed_is_one_run", one_seed_is_one_run));
        trials.push(trial(
            "every_call_of_the_network_fails_once",
            torture::every_call_of_the_network_fails_once,
        ));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || Ok(campaign::caught(test)?))
}

/// Separates the options of this program from those of the test harness.
fn options(all: impl Iterator<Item = String>) -> Result<(Seeds, Vec<String>), String> {
    let (mut seeds, mut rest) = (Seeds::usual(), Vec::new());
    let mut all = all.peekable();
    while let Some(option) = all.next() {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&*option, None),
        };
        let make = match name {
            "--seeds" => Seeds::First,
            "--seed" => Seeds::One,
            _ => {
                rest.push(option);
                continue;
            }
        };
        let value = value.or_else(|| all.next());
        let number = value.as_deref().and_then(|text| text.parse().ok());
        seeds = make(number.ok_or_else(|| format!("{name} needs a number"))?);
    }
    Ok((seeds, rest))
}

fn one_seed_is_one_run() {
    for campaign in CAMPAIGNS {
        for seed in 0..100 {
            let plan = (campaign.draw)(seed);
            let same = run(&plan, seed, |_| ()) == run(&plan, seed, |_| ());
            assert!(same, "{} of {}", seed, campaign.name);
        }
    }
}
