//! `crawler-cli check`: arguments, exit statuses and signals. The check is in [`Checker`](check::Checker), its
//! output in `report::check`.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cli::USAGE;
use crate::cli::signals::{INTERRUPTED, cannot_watch, die_of_closed_pipe, interrupt_flag};
use crate::cli::usage::Failure;
use crate::report::check::CheckReport;
use check::{Ending, Outcome, Summary};
use plain::terminal;

mod args;
mod options;

use args::Check;
pub(super) use options::Options;

/// Runs the command with the arguments that follow its name.
///
/// # Errors
/// The arguments ask for a text, or mean nothing.
pub(super) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let var = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    run(args::read(words, var)?)
}

fn run(check: Check) -> Result<ExitCode, Failure> {
    let Check {
        mut checker,
        output,
    } = check;
    let interrupted = interrupt_flag().map_err(cannot_watch)?;
    let files = output.files();
    let report = CheckReport::new(output, Arc::clone(&interrupted));
    let mut report = report.map_err(|why| Failure::Wrong(format!("crawler-cli check: {why}")))?;
    // The reports exist now, and are not to be read as documents.
    for file in &files {
        checker = checker.leave_out(file);
    }
    let summary = checker.run_with(&mut report);
    let state_is_unusable = report.state_is_unusable();
    let written = report.close(&summary);
    let links = summary.urls + summary.unsupported + summary.excluded + summary.problems;
    if links == 0 && summary.ending == Ending::Finished {
        terminal::say("crawler-cli check: warning: no document with a link and no URL was found");
    }
    let is_interrupted = interrupted.load(Ordering::Relaxed);
    if summary.outcome() == Outcome::Interrupted && !is_interrupted && written.is_ok() {
        die_of_closed_pipe();
    }
    let status = match exit_status(&summary, is_interrupted) {
        // Nothing is lost silently.
        0 if written.is_err() => BAD,
        BAD if state_is_unusable => USAGE,
        status => status,
    };
    Ok(ExitCode::from(status))
}

/// The exit status of a check. `interrupted`: a signal has come.
fn exit_status(summary: &Summary, interrupted: bool) -> u8 {
    match summary.outcome() {
        Outcome::Interrupted if interrupted => INTERRUPTED,
        // Nobody reads the output any more.
        Outcome::Interrupted => BAD,
        outcome => outcome.exit_status(),
    }
}

/// Something is broken, could not be read, or could not be written.
const BAD: u8 = 1;
