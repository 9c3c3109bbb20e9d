//! The `crawler-cli` command. Everything that it does is in the library.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    crawler_cli::cli::main(env::args_os().skip(1).collect())
}
