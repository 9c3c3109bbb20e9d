//! `crawler-cli watch config`: checks, shows and explains the configuration.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::Timestamp;

use super::Verb;
use super::config_rows::{self, ConfigFile, ConfigRows, HasConfig};
use crate::cli::help_rows::HelpRows;
use crate::cli::manual::Manual;
use crate::cli::option::{Opt, Section};
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse};
use crate::cli::{FAILED, USAGE, print, show, wrong_usage};
use crate::jobs::Cancel;
use crate::terminal;
use crate::watch::config::{Loaded, ScheduleConfig, example};
use crate::watch::sets::Private;

/// The verb.
pub(super) const VERB: Verb = Verb {
    name: "config",
    manual,
    main,
};

fn main(words: Vec<OsString>) -> ExitCode {
    let mut args = Args::default();
    match parse(&mut args, words) {
        Ok(Some(text)) => return show(text, &manual(), FAILED),
        Ok(None) => {}
        Err(error) => return wrong_usage("watch config", &error),
    }
    let Some(action) = args.action else {
        let why = "needs one of check, show and example".to_owned();
        return wrong_usage("watch config", &UsageError(why));
    };
    if let Action::Example = action {
        return print(&example(), FAILED);
    }
    let path = match args.config.path() {
        Ok(path) => path,
        Err(error) => return wrong_usage("watch config", &error),
    };
    let loaded = match config_rows::load(&path) {
        Ok(loaded) => loaded,
        Err(errors) => {
            // The lines are safe to show already.
            terminal::say(errors);
            return ExitCode::from(USAGE);
        }
    };
    match action {
        Action::Show => print(&loaded.shown(args.with_origin), FAILED),
        Action::Check | Action::Example => print(&checked(&loaded, Timestamp::now()), FAILED),
    }
}

/// What `check` says of a good configuration: what it has, and when its schedules fire next.
fn checked(loaded: &Loaded, now: Timestamp) -> String {
    let config = &loaded.config;
    let file = loaded.file().display().to_string();
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let mut text = format!(
        "{}: good: {}, {}, {}\n",
        terminal::neutralise(&file),
        count(config.sets.len(), "set"),
        count(config.schedules.len(), "schedule"),
        count(config.hosts.len(), "host rule"),
    );
    for set in &config.sets {
        // A file that is not there yet is not wrong.
        if let Ok(private) = Private::of(&set.source, &Cancel::new())
            && private.urls > 0
            && !config.limits.allow_private
        {
            let _ = writeln!(
                text,
                "set {}: {}",
                set.name,
                terminal::neutralise(&private.to_string())
            );
        }
    }
    for schedule in &config.schedules {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "schedule {}: next at {}",
            schedule.name,
            next(schedule, now)
        );
    }
    text
}

/// The next three firings, in the zone of the schedule.
fn next(schedule: &ScheduleConfig, now: Timestamp) -> String {
    // The jitter is left out: the store fixes it.
    let firings = schedule
        .schedule("")
        .map(|schedule| schedule.next_firings(now, 3));
    let firings = firings.unwrap_or_default().into_iter();
    let firings = firings.map(|at| {
        let at = at.to_zoned(schedule.timezone.clone());
        at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
    });
    firings.collect::<Vec<_>>().join(", ")
}

fn manual() -> Manual {
    Manual {
        usage: "check|show|example [OPTION...]",
        description: DESCRIPTION,
        statuses: STATUSES,
        examples: EXAMPLES,
        see_also: &["crawler-cli-watch"],
        operands: &["check", "show", "example"],
        ..Manual::of::<Args>("watch config", "check, show and explain the configuration")
    }
}

#[derive(Default)]
struct Args {
    config: ConfigFile,
    action: Option<Action>,
    with_origin: bool,
}

#[derive(Clone, Copy)]
enum Action {
    Check,
    Show,
    Example,
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
        options: &[ConfigRows::ALL, OPTIONS, HelpRows::ALL],
    }];

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        let action = match operand.to_str() {
            Some("check") => Action::Check,
            Some("show") => Action::Show,
            Some("example") => Action::Example,
            _ => {
                let operand = operand.to_string_lossy();
                let why = format!("{operand}: there are check, show and example");
                return Err(UsageError(why));
            }
        };
        match self.action.replace(action) {
            None => Ok(()),
            Some(_) => Err(UsageError(
                "one of check, show and example at a time".to_owned(),
            )),
        }
    }
}

const OPTIONS: &[Opt<Args>] = &[Opt::flag(&["--origin"], |args: &mut Args| args.with_origin = true)
    .short("show where each value comes from")
    .long("With show: after each value, show where it comes from: the file with line and column, the profile, or the default.")];

const DESCRIPTION: &str = "\
check reads the configuration and reports everything that is wrong with it, with lines and columns. If it is good, it says how many URLs of each set are never asked because they are at private addresses, and when each schedule fires next.
show prints the configuration as the service uses it, with all defaults.
example prints a configuration with all keys, their defaults and what they mean.";

const STATUSES: &[(&str, &str)] = &[
    ("0", "The configuration is good."),
    ("2", "The configuration or the command line is wrong."),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "crawler-cli watch config example > watch.toml",
        "Begin with a file that has all keys.",
    ),
    (
        "crawler-cli watch config check",
        "Check the file watch.toml in this folder.",
    ),
    (
        "crawler-cli watch config show --origin --config /etc/courser/watch.toml",
        "See what the service uses, and why.",
    ),
];
