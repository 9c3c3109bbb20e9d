//! The `crawler-cli` command: options, texts, reports, `get` and the demo. What it does is in the packages beside it: `find`
//! searches web directory hierarchies, `check` tells whether links are good, `watch` keeps telling; `crawl` has what crawls
//! of many hosts share, on the engine `courser`.

// `plain::terminal::say` is used instead, which does not panic.
#![warn(clippy::print_stderr)]

mod cli;
mod curl_rules;
mod demo;
mod get;
mod report;
mod stdout;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(env::args_os().skip(1).collect())
}
