//! Whether all that has to hold in a store holds.

mod invariants;
mod watched;

use std::fmt;
use std::path::Path;

use crate::sql::Connection;
use crate::tables::failure::Failure;
use crate::{Place, StoreError, StoreErrorKind, postgres, sqlite};

/// What was found wrong in a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// What has to hold, in words.
    pub invariant: &'static str,
    /// How often it does not.
    pub count: u64,
    /// The first ones that break it.
    pub examples: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} ({}",
            self.invariant,
            self.count,
            self.examples.join(", ")
        )?;
        match self.count > self.examples.len() as u64 {
            true => f.write_str(", …)"),
            false => f.write_str(")"),
        }
    }
}

/// What a check of a store found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CheckReport {
    /// What has to hold, in words: all that was checked.
    pub checked: Vec<&'static str>,
    /// What does not hold.
    pub problems: Vec<Problem>,
}

impl CheckReport {
    /// Whether all holds.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Something that has to hold was checked; these break it.
    fn add(&mut self, invariant: &'static str, broken: Broken) {
        self.checked.push(invariant);
        if broken.count > 0 {
            self.problems.push(Problem {
                invariant,
                count: broken.count,
                examples: broken.examples,
            });
        }
    }
}

/// What breaks an invariant.
#[derive(Default)]
struct Broken {
    count: u64,
    examples: Vec<String>,
}

/// How many of them are named.
const EXAMPLES: usize = 5;

impl Broken {
    fn add(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }
}

/// The invariant that SQLite itself checks.
const SOUND: &str = "the file is a sound SQLite database";

/// Checks everything that has to hold in a store, as it is at one moment; also while other processes use the store.
///
/// # Errors
/// The store cannot be read. Damage is no error: the report tells of it.
///
/// ```
/// use store::sqlite::Sqlite;
/// use store::check;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("watch.db");
/// drop(Sqlite::open(&path)?);
/// let report = check(&path)?;
/// assert!(report.is_clean());
/// assert!(report.checked.contains(&"the file is a sound SQLite database"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check(store: impl Into<Place>) -> Result<CheckReport, StoreError> {
    let store = store.into();
    let mut report = CheckReport::default();
    let opened = match &store {
        Place::File(path) => sqlite::reader(path),
        Place::Server(address) => postgres::reader(address),
    };
    let checked = opened.and_then(|db| check_all(&db, &mut report));
    let Err(failure) = checked else {
        return Ok(report);
    };
    let error = failure.at(Path::new(&store.to_string()));
    if !matches!(error.kind(), StoreErrorKind::Damaged(_)) {
        return Err(error);
    }
    let mut broken = Broken::default();
    broken.add(|| error.to_string());
    report.add(SOUND, broken);
    Ok(report)
}

fn check_all(db: &Connection, report: &mut CheckReport) -> Result<(), Failure> {
    // One moment of the store for all of it.
    db.begin_moment()?;
    if let Connection::Sqlite(file) = db {
        sqlite::is_sound(file)?;
        report.add(SOUND, Broken::default());
    }
    for (invariant, query) in invariants::QUERIES {
        report.add(invariant, broken_by(db, query)?);
    }
    watched::check(db, report)?;
    Ok(db.commit()?)
}

/// The rows of a query that names what breaks an invariant.
fn broken_by(db: &Connection, query: &str) -> Result<Broken, Failure> {
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.stream([])?;
    let mut broken = Broken::default();
    while let Some(row) = rows.next()? {
        let example: String = row.get(0)?;
        broken.add(|| example);
    }
    Ok(broken)
}
