//! `crawler-cli find`: arguments, exit statuses and signals. The search is in [`find::Find`], its output
//! in `report`.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cli::signals::{INTERRUPTED, cannot_watch, die_of_closed_pipe, interrupt_flag};
use crate::cli::usage::Failure;
use crate::report::{self, Reader, Report, SummaryFormat};
use find::{Ending, State, StateError, Summary};
use plain::terminal;

mod args;
mod options;

use args::Search;
pub(crate) use args::read_for_job;
pub(super) use options::{Options, words};

/// Runs the command with the arguments that follow its name.
///
/// # Errors
/// The arguments ask for a text, or mean nothing.
pub(super) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let var = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    run(args::read(words, var)?)
}

fn run(search: Search) -> Result<ExitCode, Failure> {
    let Search {
        find,
        output,
        state,
        identity,
    } = search;
    let interrupted = interrupt_flag().map_err(cannot_watch)?;
    let of_state = |error: String| Failure::Failed(format!("--state {error}"));
    let state = state.map(|path| open_state(&path, &identity)).transpose();
    let state = state.map_err(of_state)?;
    let says_more = output.summary == SummaryFormat::Text;
    let report = Report::new(output, state.as_ref(), Arc::clone(&interrupted));
    let mut report = report.map_err(|why| Failure::Wrong(format!("crawler-cli find: {why}")))?;
    let (summary, state) = find.run_kept(state, &mut report);
    let is_stopped = summary.ending == Ending::Stopped;
    let closed = report.close(&summary);
    let is_unread = matches!(closed, Ok(Reader::Gone));
    let written = closed.map_err(drop).map(drop);
    if let Some(state) = state {
        let left = leave(state, written.is_ok() && !is_unread, &summary, says_more);
        left.map_err(|error| of_state(error.to_string()))?;
    }
    if is_unread {
        die_of_closed_pipe();
    }
    // A signal after the last result interrupts nothing.
    Ok(if is_stopped && interrupted.load(Ordering::Relaxed) {
        ExitCode::from(INTERRUPTED)
    } else if summary.counts.unread > 0 || summary.failed > 0 || written.is_err() {
        ExitCode::from(UNREAD)
    } else {
        ExitCode::SUCCESS
    })
}

/// Opens the state of a search. Writes the results that an interrupted run may not have written completely to its file.
fn open_state(path: &Path, identity: &str) -> Result<State, String> {
    let mut state = State::open(path, identity).map_err(|error| error.to_string())?;
    let unwritten = state.unwritten().map_err(|error| error.to_string())?;
    report::write_rest(&unwritten.0, unwritten.1)
        .map_err(|error| format!("{}: the last results: {error}", path.display()))?;
    let place = report::place_in_file();
    state
        .note_written(place)
        .map_err(|error| error.to_string())?;
    Ok(state)
}

/// Removes the state of a search that is complete; keeps one that has something left to do.
fn leave(
    mut state: State,
    is_written: bool,
    summary: &Summary,
    says_more: bool,
) -> Result<(), StateError> {
    if !is_written {
        return Ok(());
    }
    let is_stopped = summary.ending == Ending::Stopped;
    let is_over = summary.ending == Ending::Quit || !state.has_failed()?;
    if is_over && !is_stopped {
        return state.remove();
    }
    // The next run does not write the last results again.
    state.note_written(report::place_in_file())?;
    if says_more && !is_stopped {
        let path = state.path().display();
        terminal::say(format_args!(
            "crawler-cli find: --state {path}: kept; the same command asks again for what could not be read"
        ));
    }
    Ok(())
}

/// Some URL could not be read, some action failed, or the results could not be written.
const UNREAD: u8 = 1;
