//! The engine against real servers: each server of [`programs`] × each feature of [`features`].
//!
//! ```text
//! cargo test --workspace --test servers -- --ignored                    # all servers
//! cargo test --workspace --test servers -- --ignored nginx              # one server
//! ```
//!
//! Each check asserts what the client must do with this server, and reports what the server did: it works, it lacks the
//! feature, or it has a [`Quirk`] with which the client copes. The report must be what the server's file expects, in
//! both directions.
//!
//! The gate installs nginx, Apache httpd and HAProxy, the campaign all of them: `.ci/long` has the list of packages.

mod features;
mod matrix;
mod programs;
mod quirk;
mod running;
mod site;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use programs::PROGRAMS;
use site::Site;

fn main() -> ExitCode {
    let site = Arc::new(Site::new());
    let trials = PROGRAMS.iter().map(|program| {
        let site = Arc::clone(&site);
        let run = move || Ok(matrix::run(program, &site)?);
        Trial::test(program.name, run).with_ignored_flag(true)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
