//! The engine against real servers: each server of [`programs`] × each feature of [`features`].
//!
//! ```text
//! cargo test --workspace --test servers -- --ignored                    # all servers that are installed
//! cargo test --workspace --test servers -- --ignored nginx              # one server
//! cargo test --workspace --test servers -- --ignored '[gate]'           # nginx, Apache httpd and HAProxy
//! ```
//!
//! Each check asserts what the client must do with this server, and reports what the server did: it works, it lacks the
//! feature, or it has a [`Quirk`] with which the client copes. The report must be what the server's file expects, in
//! both directions.
//!
//! Servers that the gate or the campaign installs are required: a run without one of them fails. The others are tested
//! when they are installed, and the end of the run names those that are not.

mod features;
mod matrix;
mod programs;
mod quirk;
mod running;
mod site;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use features::Feature;
use matrix::Outcome;
use programs::{PROGRAMS, Program, Script};
use quirk::Quirk;
use site::Site;

fn main() -> ExitCode {
    let site = Arc::new(Site::new());
    let mut trials: Vec<Trial> = PROGRAMS
        .iter()
        .filter(|program| program.installed_by.is_some() || program.is_installed())
        .map(|program| {
            let site = Arc::clone(&site);
            let run = move || Ok(matrix::run(program, &site)?);
            let kind = match program.installed_by {
                Some(Script::Run) => "gate",
                _ => "campaign",
            };
            Trial::test(program.name, run)
                .with_kind(kind)
                .with_ignored_flag(true)
        })
        .collect();
    trials.push(Trial::test("the_scripts_install_what_is_required", scripts));
    trials.push(Trial::test("each_quirk_has_a_server", each_quirk));

    let arguments = Arguments::from_args();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if arguments.ignored || arguments.include_ignored {
        report_missing();
    }
    conclusion.exit_code()
}

/// Names the servers that were not tested.
fn report_missing() {
    let missing: Vec<&&Program> = PROGRAMS
        .iter()
        .filter(|program| !program.is_installed())
        .collect();
    if missing.is_empty() {
        return;
    }
    let names: Vec<&str> = missing.iter().map(|program| program.name).collect();
    let packages: Vec<&str> = missing.iter().map(|program| program.packages).collect();
    println!(
        "Not installed, so not tested: {}.\napt-get install --no-install-recommends {}",
        names.join(", "),
        packages.join(" ")
    );
}

/// The lists of packages in the scripts have those of every server that a script installs.
fn scripts() -> Result<(), libtest_mimic::Failed> {
    for program in PROGRAMS {
        let Some(script) = program.installed_by else {
            continue;
        };
        let (path, list) = script.list();
        let text = std::fs::read_to_string(format!("{ROOT}/{path}"))?;
        let (_, rest) = text
            .split_once(list)
            .ok_or(format!("`{path}` has no `{list}`"))?;
        let (list, _) = rest.split_once(')').ok_or("a list without an end")?;
        let installed: Vec<&str> = list.split_whitespace().collect();
        for package in program.packages.split_whitespace() {
            if !installed.contains(&package) {
                return Err(
                    format!("{}: `{path}` does not install {package}", program.name).into(),
                );
            }
        }
    }
    Ok(())
}

/// The root of the project.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A quirk that no server has is a note that nothing proves.
fn each_quirk() -> Result<(), libtest_mimic::Failed> {
    for quirk in Quirk::ALL {
        let has = |program: &&Program| {
            let outcomes = Feature::ALL
                .iter()
                .map(|feature| program.expected(*feature));
            outcomes
                .into_iter()
                .any(|outcome| outcome == Outcome::Copes(*quirk))
        };
        if !PROGRAMS.iter().any(has) {
            return Err(format!("no server is expected to have {quirk:?}").into());
        }
    }
    Ok(())
}
