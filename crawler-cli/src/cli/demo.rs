//! `crawler-cli demo`: the command line. What it shows is in [`demo`](crate::demo).

use std::ffi::OsString;
use std::process::ExitCode;

use super::manual::Manual;
use super::option::{self, Section, Set, Show};
use super::parse::{CommandLine, Syntax, UsageError, parse};
use super::{FAILED, show, wrong_usage};

/// Runs the command with the arguments that follow its name.
pub(super) fn main(words: Vec<OsString>) -> ExitCode {
    let mut args = Args::default();
    match parse(&mut args, words) {
        Ok(None) if args.only_serve => crate::demo::serve(),
        Ok(None) => crate::demo::search(),
        Ok(Some(text)) => show(text, &manual(), FAILED),
        Err(error) => wrong_usage("demo", &error),
    }
}

pub(super) fn manual() -> Manual {
    Manual {
        usage: "[--serve]",
        description: "Serves a built-in sample mirror on a free port of the loopback address, and searches it with the code of 'crawler-cli find'. No network is needed.",
        ..Manual::of::<Args>("demo", "show find at work on a built-in sample mirror")
    }
}

#[derive(Default)]
struct Args {
    only_serve: bool,
}

impl CommandLine for Args {
    const SYNTAX: Syntax = Syntax::FIND;
    const TABLE: &'static [Section<Self>] = &[Section {
        heading: "Options",
        options: &[OPTIONS],
    }];

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        let operand = operand.to_string_lossy();
        Err(UsageError(format!("{operand}: there are no operands")))
    }
}

type Opt = option::Opt<Args>;

const OPTIONS: &[Opt] = &[
    Opt::new(&["--serve"], &[], Set::Flag(|args| args.only_serve = true))
        .short("only serve the mirror, until Ctrl-C"),
    Opt::show(&["-h", "--help"], Show::LongHelp).short("this help"),
];
