//! `watch db`: the file of the store.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use super::verb::{ConfigFile, Json, print};
use crate::cli::usage::{Failure, usage};
use plain::text;
use store::{Place, Problem, check as check_store, copy as copy_store, sqlite};
use watch::hands::safe;
use watch::log::mask;

/// Back up, restore, check or copy the store
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch db backup /backup/watch.db    a copy, while the service runs
  crawler-cli watch db check                      is the store sound?")]
pub(super) struct Db {
    #[command(subcommand)]
    deed: Deed,
    /// With backup: replace a store that has the name
    ///
    /// With backup: replace a store that has the name of the copy. A store that a process uses, and a file that is no
    /// store, are never replaced.
    #[arg(long = "force", global = true)]
    is_forced: bool,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(clap::Subcommand)]
enum Deed {
    /// Copy the store as it is at one moment to a file
    ///
    /// Also while the service runs. The copy gets its name only when it was found to be sound.
    Backup { file: String },
    /// Replace the store with a backup, while no service runs
    ///
    /// The store as it was is kept beside it.
    Restore { file: String },
    /// Tell whether everything that has to hold in the store holds
    ///
    /// Also while the service runs. The exit status is 1 if something does not hold.
    Check,
    /// Copy a store as it is at one moment to an empty one, all of it or nothing
    ///
    /// A store is FILE, sqlite:FILE or postgres://USER@HOST/DATABASE. End the services before, and name the new place in
    /// the configuration.
    Copy { from: String, to: String },
}

impl Db {
    pub(super) fn run(self) -> Result<(), Failure> {
        match &self.deed {
            Deed::Backup { file } => backup(&self, &named(file)?, self.is_forced),
            Deed::Restore { file } => restore(&self, &named(file)?),
            Deed::Check => check(&self),
            Deed::Copy { from, to } => copy(&self, from, to),
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

fn backup(db: &Db, file: &Path, is_forced: bool) -> Result<(), Failure> {
    let store = db.config.store()?;
    let is_there = fs::metadata(file).is_ok_and(|file| file.len() > 0);
    if is_there && !is_forced {
        let why = format!("{}: is there already; --force replaces it", file.display());
        return Err(Failure::Failed(why));
    }
    sqlite::backup(store.only_file()?, file)?;
    let name = safe(&file.display().to_string());
    let text = format!("backed up to {name}, which is sound");
    db.json.say(&json!({ "backup": name }), &text)
}

fn restore(db: &Db, file: &Path) -> Result<(), Failure> {
    let store = db.config.store()?;
    let restored = sqlite::restore(file, store.only_file()?, Timestamp::now())?;
    let aside = restored
        .aside
        .map(|aside| safe(&aside.display().to_string()));
    let kept = aside.as_ref();
    let kept = kept.map(|aside| format!("; the store as it was is {aside}"));
    let store = safe(&store.to_string());
    let text = format!("restored {store}{}", kept.unwrap_or_default());
    db.json.say(&json!({ "aside": aside }), &text)
}

fn check(db: &Db) -> Result<(), Failure> {
    let report = check_store(&db.config.store()?)?;
    let mut text = String::new();
    if db.json.is_asked {
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

fn copy(db: &Db, from: &str, to: &str) -> Result<(), Failure> {
    // The configuration may have a file with the password of its store.
    let own = db.config.store().ok();
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
    let copied = text::count(rows, "row", "rows");
    let text = format!("copied {copied} from {from} to {to}");
    let value = json!({ "from": from, "to": to, "rows": rows });
    db.json.say(&value, &text)
}
