//! What the tools report in the same way: the names of values, and the exit code.

use std::process::ExitCode;

use clap::ValueEnum;

/// The exit code of a tool: 1 if a bar was missed.
pub(crate) fn exit_code(is_missed: bool) -> ExitCode {
    match is_missed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// The name of a value on the command line.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
