//! `watch db`: the file of the store.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::store::{Place, Problem, check as check_store, copy as copy_store, sqlite};
use crate::watch::hands::{counted, safe};
use crate::watch::log::mask;

/// `watch db`.
pub(super) struct Db;

impl Spec for Db {
    const NAME: &'static str = "db";
    const TITLE: &'static str = "watch db";
    const ABOUT: &'static str = "back up, restore, check or copy the store";
    const USAGE: &'static str = "backup [--force] FILE | restore FILE | check | copy FROM TO";
    const DESCRIPTION: &'static str = "\
backup: copies the store as it is at one moment to a file, also while the service runs. The copy gets its name only when it was found to be sound. A file that has the name is not replaced without --force.
restore: replaces the store with a backup, while no service runs. The store as it was is kept beside it.
check: tells whether everything that has to hold in the store holds, also while the service runs.
copy: copies a store as it is at one moment to an empty one, all of it or nothing: FILE, sqlite:FILE or postgres://USER@HOST/DATABASE. End the services before, and name the new place in the configuration.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[
            Rows::<Self>::FORCE,
            Rows::<Self>::JSON,
            ConfigRows::ALL,
            HelpRows::ALL,
        ],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        (
            "crawler-cli watch db backup /backup/watch.db",
            "A copy, while the service runs",
        ),
        ("crawler-cli watch db check", "Is the store sound?"),
    ];
    const STATUSES: &'static [(&'static str, &'static str)] = &[
        ("0", "Done; everything that has to hold holds."),
        ("1", "Something does not hold, or could not be done."),
        ("2", "Wrong usage, or a configuration that is wrong."),
    ];
    const OPERANDS: &'static [&'static str] = &["backup", "restore", "check", "copy"];
    const TAKES_FILES: bool = true;

    fn run(values: Values) -> Result<(), Failure> {
        let operands: Vec<&str> = values.operands.iter().map(String::as_str).collect();
        match *operands {
            ["backup", file] => backup(&values, &named(file)?),
            ["restore", file] => restore(&values, &named(file)?),
            ["check"] => check(&values),
            ["copy", from, to] => copy(&values, from, to),
            _ => Err(usage(format!("neither of: {}", Self::USAGE))),
        }
    }
}

/// The file of an operand. SQLite takes an empty name for a temporary database, and one that begins with `file:` for a URI.
fn named(file: &str) -> Result<PathBuf, Failure> {
    match file {
        "" => Err(usage("\"\": not the name of a file")),
        _ if file.starts_with("file:") => Ok(Path::new(".").join(file)),
        _ => Ok(PathBuf::from(file)),
    }
}

fn backup(values: &Values, file: &Path) -> Result<(), Failure> {
    let store = values.store()?;
    let is_there = fs::metadata(file).is_ok_and(|file| file.len() > 0);
    if is_there && !values.is_forced {
        let why = format!("{}: is there already; --force replaces it", file.display());
        return Err(Failure::Failed(why));
    }
    sqlite::backup(store.only_file()?, file)?;
    let name = safe(&file.display().to_string());
    match values.is_json {
        true => print(&format!("{}\n", json!({ "backup": name }))),
        false => print(&format!("backed up to {name}, which is sound\n")),
    }
}

fn restore(values: &Values, file: &Path) -> Result<(), Failure> {
    let store = values.store()?;
    let restored = sqlite::restore(file, store.only_file()?, Timestamp::now())?;
    let aside = restored
        .aside
        .map(|aside| safe(&aside.display().to_string()));
    match values.is_json {
        true => print(&format!("{}\n", json!({ "aside": aside }))),
        false => {
            let aside = aside.map(|aside| format!("; the store as it was is {aside}"));
            let store = safe(&store.to_string());
            print(&format!("restored {store}{}\n", aside.unwrap_or_default()))
        }
    }
}

fn check(values: &Values) -> Result<(), Failure> {
    let report = check_store(&values.store()?)?;
    let mut text = String::new();
    if values.is_json {
        let problems = report.problems.iter().map(|problem| {
            json!({
                "invariant": problem.invariant,
                "count": problem.count,
                "examples": problem.examples,
            })
        });
        let problems: serde_json::Value = problems.collect();
        text += &format!(
            "{}\n",
            json!({ "checked": report.checked, "problems": problems })
        );
    } else {
        for invariant in &report.checked {
            let is_broken = |problem: &&Problem| problem.invariant == *invariant;
            text += &match report.problems.iter().find(is_broken) {
                None => format!("ok     {invariant}\n"),
                Some(problem) => format!("WRONG  {}\n", safe(&problem.to_string())),
            };
        }
    }
    print(&text)?;
    match report.is_clean() {
        true => Ok(()),
        false => Err(Failure::Said),
    }
}

fn copy(values: &Values, from: &str, to: &str) -> Result<(), Failure> {
    // The configuration may have a file with the password of its store.
    let own = values.store().ok();
    let place = |text: &str| match &own {
        Some(Place::Server(own)) if own.shown() == text => Ok(Place::Server(own.clone())),
        _ => {
            let place = text.parse::<Place>();
            place.map_err(|error| usage(format!("{}: {error}", mask(text))))
        }
    };
    let (from, to) = (place(from)?, place(to)?);
    for place in [&from, &to] {
        if let Some(file) = place.file() {
            named(&file.to_string_lossy())?;
        }
    }
    let rows = copy_store(&from, &to)?;
    let (from, to) = (safe(&from.to_string()), safe(&to.to_string()));
    match values.is_json {
        true => print(&format!(
            "{}\n",
            json!({ "from": from, "to": to, "rows": rows })
        )),
        false => print(&format!(
            "copied {} from {from} to {to}\n",
            counted(rows, "row", "rows")
        )),
    }
}
