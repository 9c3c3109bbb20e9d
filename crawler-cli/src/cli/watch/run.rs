//! `crawler-cli watch run`: the service.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use super::Verb;
use super::config_rows::{self, ConfigFile, ConfigRows, HasConfig};
use crate::cli::find::read_for_job;
use crate::cli::help_rows::HelpRows;
use crate::cli::manual::Manual;
use crate::cli::option::Section;
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse};
use crate::cli::signals::{hang_up_flag, interrupt_flag};
use crate::cli::{FAILED, USAGE, show, wrong_usage};
use crate::terminal;
use crate::watch::daemon::{self, Signals};

/// The verb.
pub(super) const VERB: Verb = Verb {
    name: "run",
    manual,
    main,
};

fn main(words: Vec<OsString>) -> ExitCode {
    let mut args = Args::default();
    match parse(&mut args, words) {
        Ok(Some(text)) => return show(text, &manual(), FAILED),
        Ok(None) => {}
        Err(error) => return wrong_usage("watch run", &error),
    }
    let path = match args.config.path() {
        Ok(path) => path,
        Err(error) => return wrong_usage("watch run", &error),
    };
    let mut read = || config_rows::load(&path);
    let loaded = match read() {
        Ok(loaded) => loaded,
        Err(errors) => {
            // The lines are safe to show already.
            terminal::say(errors);
            return ExitCode::from(USAGE);
        }
    };
    let signals = match signals() {
        Ok(signals) => signals,
        Err(error) => {
            terminal::say(format_args!("crawler-cli watch run: signals: {error}"));
            return ExitCode::from(FAILED);
        }
    };
    match daemon::run(loaded, &mut read, read_for_job, &signals, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            let text = terminal::neutralise(&text);
            terminal::say(format_args!("crawler-cli watch run: {text}"));
            ExitCode::from(match failure.is_configuration() {
                true => USAGE,
                false => FAILED,
            })
        }
    }
}

fn signals() -> io::Result<Signals> {
    Ok(Signals {
        end: interrupt_flag()?,
        reload: hang_up_flag()?,
    })
}

fn manual() -> Manual {
    Manual {
        usage: "[--config FILE]",
        description: DESCRIPTION,
        notes: &[SIGNALS],
        statuses: STATUSES,
        examples: EXAMPLES,
        see_also: &["crawler-cli-watch"],
        ..Manual::of::<Args>("watch run", "run the service that keeps checking")
    }
}

#[derive(Default)]
struct Args {
    config: ConfigFile,
}

impl HasConfig for Args {
    fn config(&mut self) -> &mut ConfigFile {
        &mut self.config
    }
}

impl CommandLine for Args {
    const SYNTAX: Syntax = Syntax::FIND;
    const TABLE: &'static [Section<Self>] = &[Section {
        heading: "Options",
        options: &[ConfigRows::ALL, HelpRows::ALL],
    }];

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        let operand = operand.to_string_lossy();
        Err(UsageError(format!("{operand}: there are no operands")))
    }
}

const DESCRIPTION: &str = "\
Checks the URLs of the sets in the configuration, each at its own times, keeps all results in the store, and runs jobs by their schedules, until a signal ends it.
The first line on standard output says where metrics and health are served: /metrics, /healthz, /readyz and /version. Logs go to standard error.
The service tells systemd when it is ready, and feeds its watchdog (Type=notify-reload, WatchdogSec).";

const SIGNALS: (&str, &str) = (
    "Signals",
    "\
SIGHUP: read the configuration and the sources of the sets again. A configuration that is wrong, or that needs a restart, changes nothing.
SIGTERM, SIGINT: ask nothing new, finish what is under way within limits.drain_timeout, and end. A second one ends the process at once; what was under way is asked again at the next start.",
);

const STATUSES: &[(&str, &str)] = &[
    (
        "0",
        "The service was ended by a signal, and everything is stored.",
    ),
    (
        "1",
        "The service failed, or could not store everything at its end.",
    ),
    (
        "2",
        "The configuration or the command line is wrong, or the store cannot be used.",
    ),
    ("130", "A second signal ended the process."),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "crawler-cli watch config example > watch.toml",
        "Begin with a file that has all keys.",
    ),
    (
        "crawler-cli watch run --config watch.toml",
        "Run the service.",
    ),
];
