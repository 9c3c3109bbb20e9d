//! Selects the tool that a program runs: its own, or the one that its first argument names. [`compare`] and others use
//! the latter to run other tools as processes.

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::{check, compare, find, fleet, load, memory, serve, soak, watch};

/// Runs the tool `name` with the arguments of the program, or the tool that the first argument names.
///
/// A failure is printed to standard error as one line; the exit code is 1. The exit code of a wrong command line is 2.
#[must_use]
pub fn main(name: &str) -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let other = args.get(1).and_then(|arg| arg.to_str());
    let other = other.filter(|other| tool(other).is_some());
    let name = other.unwrap_or(name).to_owned();
    if other.is_some() {
        args.remove(0);
    }
    let outcome = match tool(&name) {
        Some(tool) => tool(args),
        None => Err("there is no such tool".into()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{name}: {error}");
        ExitCode::FAILURE
    })
}

type Tool = fn(Vec<OsString>) -> Result<ExitCode, Box<dyn Error>>;

fn tool(name: &str) -> Option<Tool> {
    Some(match name {
        "check" => |args| check::run(&check::Args::parse_from(args)),
        "compare" => |args| compare::run(&compare::Args::parse_from(args)),
        "find" => |args| find::run(&find::Args::parse_from(args)),
        "fleet" => |args| fleet::run(&fleet::Args::parse_from(args)),
        "idle" => |args| memory::idle(&memory::IdleArgs::parse_from(args)),
        "load" => |args| load::run(&load::Args::parse_from(args)),
        "memory" => |args| memory::run(&memory::Args::parse_from(args)),
        "peak" => |args| find::peak(&find::PeakArgs::parse_from(args)),
        "serve" => |args| serve::run(&serve::Args::parse_from(args)),
        "soak" => |args| soak::run(&soak::Args::parse_from(args)),
        "soak-server" => |args| soak::serve(&soak::ServerArgs::parse_from(args)),
        "watch" => |args| watch::run(&watch::Args::parse_from(args)),
        _ => return None,
    })
}
