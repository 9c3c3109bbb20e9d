//! `crawler-cli completions SHELL`: what a shell needs to complete command lines of this program.

use std::ffi::OsString;
use std::process::ExitCode;

use clap_complete::Shell;

use super::usage::Failure;
use super::{NAME, find, print, program};

/// Print the completions of command lines for a shell
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    shell: Shell,
}

/// Runs the command with the arguments that follow its name.
pub(super) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let options: Options = super::options("completions", words)?;
    // clap knows no words of an expression; shells offer them where a URL can stand.
    let mut program = program().mut_subcommand("find", |find| {
        find.mut_arg("urls", |urls| urls.value_parser(find::words()))
    });
    // clap_complete 4.6.12 writes the dash of a name for bash in two ways, which do not meet.
    let name = match options.shell {
        Shell::Bash => "crawler_cli",
        _ => NAME,
    };
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut program, name, &mut text);
    let text = String::from_utf8_lossy(&text);
    Ok(print(
        &text.replace("default crawler_cli\n", "default crawler-cli\n"),
    ))
}

const EXAMPLES: &str = "\
In bash:  source <(crawler-cli completions bash)
In zsh:   source <(crawler-cli completions zsh)
In fish:  crawler-cli completions fish | source";
