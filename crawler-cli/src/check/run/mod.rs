//! A running check.

use std::time::Instant;

use super::checker::{Checker, Keeping, Reach, Tolerance};
use super::event::Event;
use super::host::Policy;
use super::sources::{Input, SourceOptions};
use super::summary::{Ending, Summary};
use crate::crawl::reporter::Reporter;
use crate::crawl::transfer::Transfer;

/// What to check, and how.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) inputs: Vec<Input>,
    pub(super) sources: SourceOptions,
    pub(super) reach: Reach,
    pub(super) policy: Policy,
    pub(super) transfer: Transfer,
    pub(super) tolerance: Tolerance,
    pub(super) keeping: Keeping,
}

/// Runs a check.
pub(super) fn run(plan: &Plan, reporter: &mut dyn Reporter<Checker>) -> Summary {
    let _ = (&plan.inputs, &plan.sources, &plan.policy, &plan.reach);
    let _ = (&plan.tolerance, &plan.keeping);
    let mut summary = Summary::new(Instant::now());
    if let Err(error) = plan.transfer.client(&[]) {
        let _ = reporter.event(&Event::NetworkFailed(&error));
        summary.ending = Ending::Failed;
    }
    reporter.finish(&summary);
    summary
}
