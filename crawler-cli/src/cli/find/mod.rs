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

use crate::cli::help;
use crate::find::{Ending, Event, State};
use crate::report::{self, Report};
use crate::terminal;

mod expression_words;
pub(super) mod options;
mod wfind;

use options::{Args, Ask, Parsed, parse};

/// Runs the command with the arguments that follow its name.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let var = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    match parse(args, var) {
        Ok(Parsed::Ask(ask)) => {
            terminal::print_help(&match ask {
                Ask::ShortHelp => help::short(width()),
                Ask::LongHelp => help::long(width()),
                Ask::Man => help::man(),
                Ask::Wfind => wfind::help(),
                Ask::Version => concat!("crawler-cli ", env!("CARGO_PKG_VERSION"), "\n").to_owned(),
            });
            ExitCode::SUCCESS
        }
        Ok(Parsed::Args(args)) => run(*args),
        Err(error) => {
            let message = terminal::neutralise(&error.0).into_owned();
            eprintln!("crawler-cli find: {message}\nTry 'crawler-cli find --help'.");
            ExitCode::from(USAGE)
        }
    }
}

fn run(args: Args) -> ExitCode {
    let Args {
        mut find,
        output,
        state,
        identity,
        ..
    } = args;
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

/// What is wrong with the arguments.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct UsageError(String);

impl<E: std::error::Error> From<E> for UsageError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// As wide as the terminal, within reason.
fn width() -> usize {
    let columns = console::Term::stdout().size_checked();
    columns.map_or(100, |(_, columns)| usize::from(columns).clamp(60, 100))
}

/// Some URL could not be read, some action failed, or the results could not be written.
const UNREAD: u8 = 1;
pub(super) const USAGE: u8 = 2;
/// 128 + SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;
