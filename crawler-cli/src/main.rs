//! The command line: dispatches to `get`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(command) if command == "get" => crawler_cli::get::main(args),
        _ => ExitCode::from(2),
    }
}
