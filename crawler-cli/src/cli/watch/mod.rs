//! `crawler-cli watch`: the service and the hands of its operator. Each verb has its own table of options and its own
//! manual, which is named `watch VERB`.

use std::ffi::OsString;
use std::process::ExitCode;

use super::help_rows::HelpRows;
use super::manual::Manual;
use super::option::{Row, Section};
use super::parse::{CommandLine, Syntax, UsageError, parse};
use super::{FAILED, USAGE, show, wrong_usage};
use crate::terminal;

mod config;
mod config_rows;
mod db;
mod dlq;
mod export;
mod hold;
mod list;
mod look;
mod pause;
mod recheck;
mod run;
mod schedule;
mod sets;
mod target;
mod verb;

use config_rows::ConfigRows;
use verb::verb;

/// A verb of `crawler-cli watch`.
pub(super) struct Verb {
    /// The word after `watch`.
    name: &'static str,
    /// The manual; its name is `watch` and the name of the verb.
    manual: fn() -> Manual,
    /// Runs the verb with the arguments that follow its name.
    main: fn(Vec<OsString>) -> ExitCode,
}

/// All verbs, in the order of the help text.
const VERBS: &[Verb] = &[
    run::VERB,
    verb::<sets::Add>(),
    verb::<sets::Remove>(),
    verb::<look::Show>(),
    verb::<look::Status>(),
    verb::<recheck::Recheck>(),
    verb::<export::Export>(),
    verb::<hold::Hold>(),
    verb::<pause::Pause>(),
    verb::<pause::Resume>(),
    verb::<dlq::Dlq>(),
    verb::<schedule::Schedule>(),
    verb::<db::Db>(),
    config::VERB,
];

/// Runs the command with the arguments that follow its name.
pub fn main(mut words: Vec<OsString>) -> ExitCode {
    let named = words.first().and_then(|word| word.to_str());
    if let Some(verb) = VERBS.iter().find(|verb| named == Some(verb.name)) {
        words.remove(0);
        return (verb.main)(words);
    }
    let mut args = Args;
    match parse(&mut args, words) {
        Ok(Some(text)) => show(text, &manual(), FAILED),
        Ok(None) => {
            terminal::say(super::help::short(&manual(), super::width()).trim_end());
            ExitCode::from(USAGE)
        }
        Err(error) => wrong_usage("watch", &error),
    }
}

/// The manuals of `watch` and of all its verbs.
pub(super) fn manuals() -> impl Iterator<Item = Manual> {
    let verbs = VERBS.iter().map(|verb| (verb.manual)());
    std::iter::once(manual()).chain(verbs)
}

fn manual() -> Manual {
    let mut options = Manual::of::<Args>("watch", ABOUT);
    let verbs = VERBS.iter().map(Verb::row).collect();
    options.sections.insert(0, ("Verbs", verbs));
    Manual {
        usage: "VERB [ARGUMENT...]",
        description: DESCRIPTION,
        ..options
    }
}

impl Verb {
    /// What the texts about `watch` say of the verb.
    fn row(&'static self) -> Row {
        Row {
            names: std::slice::from_ref(&self.name),
            values: &[],
            short: (self.manual)().about,
            long: "",
            default: "",
            env: &[],
        }
    }
}

/// What stands between `watch` and a verb: nothing but a question for help.
struct Args;

impl CommandLine for Args {
    const SYNTAX: Syntax = Syntax::FIND;
    const TABLE: &'static [Section<Self>] = &[Section {
        heading: "Options",
        options: &[HelpRows::ALL],
    }];

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        let operand = operand.to_string_lossy();
        Err(UsageError(format!("no verb {operand}")))
    }
}

const ABOUT: &str = "check URLs for years, schedule, remember and alert";

const DESCRIPTION: &str = "\
A service checks URLs, each at its own times, and remembers what became of them. 'watch run' is the service; the other verbs are the hands of its operator, and work whether the service runs or not. 'crawler-cli watch VERB --help' describes a verb.";
