//! Faults planted in the client: each must be caught, and soon.

use courser::fault::{Fault, plant};
use libtest_mimic::Trial;

use crate::campaign::{CAMPAIGNS, Seeds};

/// One for each fault. A single seed is run with the fault, and told in full.
pub(crate) fn trials(seeds: Seeds) -> impl Iterator<Item = Trial> {
    Fault::ALL.iter().copied().map(move |fault| {
        Trial::test(format!("planted::{fault:?}"), move || {
            plant(Some(fault));
            let caught = match seeds {
                Seeds::One(_) => CAMPAIGNS
                    .iter()
                    .try_for_each(|campaign| campaign.run(seeds)),
                Seeds::First(_) => must_be_caught(fault),
            };
            plant(None);
            Ok(caught?)
        })
    })
}

fn must_be_caught(fault: Fault) -> Result<(), String> {
    for seed in 0..MOST_SEEDS {
        for campaign in CAMPAIGNS {
            if let Err(reason) = campaign.attempt(seed) {
                let reason: String = reason.lines().next().unwrap_or_default().into();
                let reason: String = reason.chars().take(100).collect();
                let name = campaign.name;
                println!("{fault:?}: caught by seed {seed} of {name}: {reason}");
                return Ok(());
            }
        }
    }
    Err(format!("not caught by {MOST_SEEDS} seeds of each campaign"))
}

/// Most take less than a tenth of this. `EndlessReads` takes up to 2,400, because few servers send a flood.
const MOST_SEEDS: u64 = 3_000;
