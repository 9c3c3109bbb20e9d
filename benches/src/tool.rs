//! Selects the tool that a program runs: its own, or the one that its first argument names. [`compare`], [`counts`] and
//! [`scale`] use the latter to run other tools as processes.

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::{check, compare, counts, find, limit, load, memory, scale, serve, soak, watch};
#[cfg(feature = "crawler")]
use crate::{fleet, jobs, links};

/// Runs the tool `name` with the arguments of the program, or the tool that the first argument names.
///
/// A failure is printed to standard error as one line; the exit code is 1. The exit code of a wrong command line is 2.
#[must_use]
pub fn main(name: &str) -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let other = args
        .get(1)
        .and_then(|arg| arg.to_str())
        .filter(|arg| NAMES.contains(arg));
    let name = other.unwrap_or(name).to_owned();
    if other.is_some() {
        args.remove(0);
    }
    match run(&name, args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, args: Vec<OsString>) -> Result<ExitCode, Box<dyn Error>> {
    match name {
        "serve" => serve::run(&serve::Args::parse_from(args))?,
        "limit" => limit::run(&limit::Args::parse_from(args))?,
        "load" => return load::run(&load::Args::parse_from(args)),
        "compare" => compare::run(&compare::Args::parse_from(args))?,
        "check" => return check::run(&check::Args::parse_from(args)),
        "find" => return find::run(&find::Args::parse_from(args)),
        "find-peak" => return find::peak(&find::PeakArgs::parse_from(args)),
        "find-together" => return find::together(&find::TogetherArgs::parse_from(args)),
        #[cfg(feature = "crawler")]
        "fleet" => return fleet::run(&fleet::Args::parse_from(args)),
        #[cfg(feature = "crawler")]
        "fleet-cut" => return fleet::cut::run(&fleet::cut::Args::parse_from(args)),
        #[cfg(feature = "crawler")]
        "fleet-kills" => return fleet::kills::run(&fleet::kills::Args::parse_from(args)),
        #[cfg(feature = "crawler")]
        "jobs" => return jobs::run(&jobs::Args::parse_from(args)),
        #[cfg(feature = "crawler")]
        "links" => return links::run(&links::Args::parse_from(args)),
        #[cfg(feature = "crawler")]
        "links-dump" => links::dump(&links::DumpArgs::parse_from(args))?,
        "memory" => return memory::run(&memory::Args::parse_from(args)),
        "counts" => return counts::run(&counts::Args::parse_from(args)),
        "scale" => return scale::run(&scale::Args::parse_from(args)),
        "scale-step" => scale::step::run(&scale::step::Args::parse_from(args))?,
        "soak" => return soak::run(&soak::Args::parse_from(args)),
        "soak-server" => soak::serve(&soak::ServerArgs::parse_from(args))?,
        "watch" => return watch::run(&watch::Args::parse_from(args)),
        _ => return Err("there is no such tool".into()),
    }
    Ok(ExitCode::SUCCESS)
}

const NAMES: [&str; 21] = [
    "check",
    "serve",
    "limit",
    "load",
    "compare",
    "counts",
    "find",
    "find-peak",
    "find-together",
    "fleet",
    "fleet-cut",
    "fleet-kills",
    "jobs",
    "links",
    "links-dump",
    "memory",
    "scale",
    "scale-step",
    "soak",
    "soak-server",
    "watch",
];
