//! `crawler-cli watch`: the service and the hands of its operator. Each verb has its own options.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, Subcommand as _};

use super::usage::Failure;

mod config;
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

/// The verbs, in the order of the help text.
#[derive(clap::Subcommand)]
enum Verb {
    Run(run::Run),
    Add(sets::Add),
    Remove(sets::Remove),
    Show(look::Show),
    Status(look::Status),
    Recheck(recheck::Recheck),
    Export(export::Export),
    Hold(hold::Hold),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Dlq(dlq::Dlq),
    Schedule(schedule::Schedule),
    Db(db::Db),
    Config(config::Config),
}

/// The command with its verbs.
pub(super) fn command() -> Command {
    Verb::augment_subcommands(Command::new("watch"))
        .about("Check URLs for years, schedule, remember and alert")
        .long_about(DESCRIPTION)
        .after_long_help(STATUSES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("VERB")
        .subcommand_help_heading("Verbs")
}

/// Runs the command with the arguments that follow its name.
///
/// # Errors
/// The arguments ask for a text or mean nothing, or the verb failed.
pub(super) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    match super::options("watch", words)? {
        Verb::Run(verb) => verb.run()?,
        Verb::Add(verb) => verb.run()?,
        Verb::Remove(verb) => verb.run()?,
        Verb::Show(verb) => verb.run()?,
        Verb::Status(verb) => verb.run()?,
        Verb::Recheck(verb) => verb.run()?,
        Verb::Export(verb) => verb.run()?,
        Verb::Hold(verb) => verb.run()?,
        Verb::Pause(verb) => verb.run()?,
        Verb::Resume(verb) => verb.run()?,
        Verb::Dlq(verb) => verb.run()?,
        Verb::Schedule(verb) => verb.run()?,
        Verb::Db(verb) => verb.run()?,
        Verb::Config(verb) => verb.run()?,
    }
    Ok(ExitCode::SUCCESS)
}

const DESCRIPTION: &str = "\
A service checks URLs, each at its own times, and remembers what became of them. 'watch run' is the service; the other verbs are the hands of its operator, and work whether the service runs or not. 'crawler-cli watch VERB --help' describes a verb.";

const STATUSES: &str = "\
Exit status:
  0    Done.
  1    What was asked for is not there, was refused, or could not be done.
  2    Wrong usage, or a configuration that is wrong.
  130  A second signal ended the service.";
