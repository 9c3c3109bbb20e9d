//! The engine against real servers: each server of [`programs`] × each feature of [`features`].
//!
//! ```text
//! cargo test -p tests --test servers -- --ignored                    # all servers that are installed
//! cargo test -p tests --test servers -- --ignored nginx              # one server
//! COURSER_BLESS=1 cargo test -p tests --test servers -- --ignored    # and write the rows to tests/README.md
//! ```
//!
//! Each check asserts what the client must do with this server, and reports what the server did: it works, it lacks the
//! feature, or it has a [`Quirk`] with which the client copes. The report must be what the server's file expects, in
//! both directions, and the table in `tests/README.md` must show it.
//!
//! Servers that the gate installs are required: a run without one of them fails. The others are tested when they are
//! installed, and the end of the run names those that are not.

mod features;
mod matrix;
mod programs;
mod quirk;
mod running;
mod site;
mod table;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Trial};

use features::Feature;
use matrix::{Outcome, Row};
use programs::{PROGRAMS, Program};
use quirk::Quirk;
use site::Site;
use table::Table;

fn main() -> ExitCode {
    let site = Arc::new(Site::new());
    let rows: Arc<Mutex<Vec<Row>>> = Arc::default();
    let mut trials: Vec<Trial> = PROGRAMS
        .iter()
        .filter(|program| program.required || program.is_installed())
        .map(|program| {
            let (site, rows) = (Arc::clone(&site), Arc::clone(&rows));
            let run = move || {
                let row = matrix::run(program, &site)?;
                rows.lock().expect("no row was poisoned").push(row);
                Ok(())
            };
            Trial::test(program.name, run).with_ignored_flag(true)
        })
        .collect();
    trials.push(Trial::test("the_table_is_what_is_expected", || {
        Ok(Table::read().check()?)
    }));
    trials.push(Trial::test("the_gate_installs_what_is_required", gate));
    trials.push(Trial::test("each_quirk_has_a_server", each_quirk));

    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    let rows = rows.lock().expect("no row was poisoned");
    if !rows.is_empty() {
        let mut table = Table::read();
        table.replace(&rows);
        println!("{table}");
        if std::env::var_os("COURSER_BLESS").is_some() {
            table.write();
        }
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

/// The list of packages in `.ci/run` has those of every required server.
fn gate() -> Result<(), libtest_mimic::Failed> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../.ci/run");
    let script = std::fs::read_to_string(path)?;
    let list = script
        .split_once("needed=(")
        .and_then(|(_, rest)| rest.split_once(')'))
        .ok_or("`.ci/run` has no list of packages")?
        .0;
    let installed: Vec<&str> = list.split_whitespace().collect();
    for program in PROGRAMS.iter().filter(|program| program.required) {
        for package in program.packages.split_whitespace() {
            if !installed.contains(&package) {
                return Err(
                    format!("{}: `.ci/run` does not install {package}", program.name).into(),
                );
            }
        }
    }
    Ok(())
}

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
