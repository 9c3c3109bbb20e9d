//! `crawler-cli find`: its arguments, exit codes and signals. What it does is in [`Find`]; how it is shown, in
//! `report`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use super::Find;
use super::report::{Options, Report};
use crate::terminal;

pub mod complete;
mod help;
mod options;
mod words;

use options::{Ask, Parsed, parse};

/// Runs the command with the arguments that follow its name.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let var = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    match parse(args, var) {
        Ok(Parsed::Ask(ask)) => {
            terminal::print_help(&match ask {
                Ask::ShortHelp => help::short(width()),
                Ask::LongHelp => help::long(width()),
                Ask::Man => help::man(),
            });
            ExitCode::SUCCESS
        }
        Ok(Parsed::Args(args)) => run(args.find, args.output),
        Err(error) => {
            let message = terminal::neutralise(&error.0).into_owned();
            eprintln!("crawler-cli find: {message}\nTry 'crawler-cli find --help'.");
            ExitCode::from(USAGE)
        }
    }
}

fn run(find: Find, output: Options) -> ExitCode {
    let interrupted = match interrupt_flag() {
        Ok(flag) => flag,
        Err(error) => {
            eprintln!("crawler-cli find: cannot watch for signals: {error}");
            return ExitCode::from(UNREAD);
        }
    };
    let mut report = Report::new(output);
    let summary = find.run(|event| {
        report.event(&event);
        if report.is_over() || interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let written = report.finish(&summary);
    if interrupted.load(Ordering::Relaxed) {
        ExitCode::from(INTERRUPTED)
    } else if summary.counts.unread > 0 || summary.failed > 0 || written.is_err() {
        ExitCode::from(UNREAD)
    } else {
        ExitCode::SUCCESS
    }
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
struct UsageError(String);

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

/// Some URL could not be read, or the results could not be written.
const UNREAD: u8 = 1;
const USAGE: u8 = 2;
/// 128 + SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;
