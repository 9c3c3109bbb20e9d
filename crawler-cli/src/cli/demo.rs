//! `crawler-cli demo`: the command line. What it shows is in [`demo`](crate::demo).

use std::ffi::OsString;
use std::process::ExitCode;

use super::usage::Failure;

/// Show find at work on a built-in sample mirror
///
/// Serves a built-in sample mirror on a free port of the loopback address, and searches it with the code of
/// 'crawler-cli find'. No network is needed.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Only serve the mirror, until Ctrl-C
    #[arg(long)]
    serve: bool,
}

/// Runs the command with the arguments that follow its name.
pub(super) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let options: Options = super::options("demo", words)?;
    Ok(match options.serve {
        true => crate::demo::serve(),
        false => crate::demo::search(),
    })
}
