//! The `crawler-cli` command: a table of contents. Each command is in the library, in the module of its name.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use crawler_cli::terminal;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = env::args_os().skip(1).collect();
    if args.is_empty() {
        eprint!("{HELP}");
        return ExitCode::from(2);
    }
    let command = args.remove(0);
    match command.to_str() {
        Some("get") => crawler_cli::get::main(args.into_iter()),
        Some("find") => crawler_cli::cli::find::main(args),
        Some("completions") => crawler_cli::cli::completions::main(&args),
        Some("demo") => crawler_cli::demo::main(args),
        Some("help" | "-h" | "--help") => {
            terminal::print_help(HELP);
            ExitCode::SUCCESS
        }
        Some("-V" | "--version") => {
            println!("crawler-cli {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            let command = command.to_string_lossy();
            let command = terminal::neutralise(&command);
            eprintln!("crawler-cli: no command {command}\n");
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}

const HELP: &str = "\
Finds and fetches files over HTTP.

Usage: crawler-cli COMMAND [ARGUMENT...]

  get    transfers URLs, with curl's options
  find   finds files and directories in web directory listings, as find(1) does in file systems
  demo   shows find at work on a built-in sample mirror; needs no network
  completions
         prints what a shell needs to complete command lines: bash, zsh or fish

'crawler-cli COMMAND --help' tells more. --version tells the version.
";
