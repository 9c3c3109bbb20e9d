//! `crawler-cli find`: its arguments, exit codes and signals. What it does is in
//! [`Find`](crate::find::Find); how it is shown, in `report`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli::{self, USAGE};
use crate::find::{Ending, Event, State};
use crate::report::{self, Report};

mod args;
mod expression_words;
mod manual;
mod options;
mod wfind;

use args::{Request, Search};
pub(super) use manual::manual;

/// Runs the command with the arguments that follow its name.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let var = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    match args::read(args, var) {
        Ok(Request::WfindHelp) => cli::print(&wfind::help(cli::width()), UNREAD),
        Ok(Request::Show(show)) => cli::show(show, &manual(), UNREAD),
        Ok(Request::Search(search)) => run(*search),
        Err(error) => cli::wrong_usage("find", &error),
    }
}

fn run(search: Search) -> ExitCode {
    let Search {
        mut find,
        output,
        state,
        identity,
    } = search;
    let interrupted = match interrupt_flag() {
        Ok(flag) => flag,
        Err(error) => {
            eprintln!("crawler-cli find: cannot watch for signals: {error}");
            return ExitCode::from(UNREAD);
        }
    };
    let mut kept = None;
    if let Some(path) = &state {
        match keep(path, &identity) {
            Ok(state) => {
                find = find.state(Arc::clone(&state));
                kept = Some(state);
            }
            Err(error) => {
                eprintln!("crawler-cli find: --state {error}");
                return ExitCode::from(UNREAD);
            }
        }
    }
    let mut report = match Report::new(output, kept.clone()) {
        Ok(report) => report,
        Err(message) => {
            eprintln!("crawler-cli find: {message}");
            return ExitCode::from(USAGE);
        }
    };
    let summary = find.run(|event| {
        report.event(&event);
        // Between turns: what is kept of the search is of whole turns.
        let may_end = matches!(event, Event::Turn(_));
        if may_end && (report.is_over() || interrupted.load(Ordering::Relaxed)) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let written = report.finish(&summary);
    if let Some(state) = kept
        && let Err(error) = let_go(state, written.is_ok() && summary.ending != Ending::Stopped)
    {
        eprintln!("crawler-cli find: --state {error}");
        return ExitCode::from(UNREAD);
    }
    if interrupted.load(Ordering::Relaxed) {
        ExitCode::from(INTERRUPTED)
    } else if summary.counts.unread > 0 || summary.failed > 0 || written.is_err() {
        ExitCode::from(UNREAD)
    } else {
        ExitCode::SUCCESS
    }
}

/// Opens the state of a search, and writes the results that it may have been cut off in writing.
fn keep(path: &Path, identity: &str) -> Result<Arc<Mutex<State>>, String> {
    let mut state = State::open(path, identity).map_err(|error| error.to_string())?;
    let unwritten = state.unwritten().map_err(|error| error.to_string())?;
    report::write_rest(&unwritten.0, unwritten.1)
        .map_err(|error| format!("{}: the last results: {error}", path.display()))?;
    state.note_written().map_err(|error| error.to_string())?;
    Ok(Arc::new(Mutex::new(state)))
}

/// The search is over; or else its state stays.
fn let_go(state: Arc<Mutex<State>>, over: bool) -> Result<(), String> {
    let Some(state) = Arc::into_inner(state).filter(|_| over) else {
        return Ok(());
    };
    let state = state
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    state.remove().map_err(|error| error.to_string())
}

/// Set by the first SIGINT or SIGTERM; the second ends the process at once.
fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Some URL could not be read, some action failed, or the results could not be written.
const UNREAD: u8 = 1;
/// 128 + SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;
