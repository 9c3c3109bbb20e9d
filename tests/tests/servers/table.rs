//! The table in `tests/README.md`, between two markers.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use crate::features::Feature;
use crate::matrix::{Outcome, Row};
use crate::programs::{PROGRAMS, Program};
use crate::quirk::Quirk;

/// The rows by the name of the server: version and cells.
#[derive(Eq, PartialEq)]
pub(crate) struct Table(BTreeMap<String, (String, Vec<String>)>);

impl Table {
    /// The table as the README has it.
    pub(crate) fn read() -> Self {
        let readme = fs::read_to_string(README).expect("tests/README.md");
        let (_, section, _) = split(&readme);
        let rows = section.lines().filter_map(|line| {
            let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
            let mut cells = line.split(" | ").map(str::to_owned);
            let (name, version) = (cells.next()?, cells.next()?);
            let known = PROGRAMS.iter().any(|program| program.name == name);
            known.then(|| (name, (version, cells.collect())))
        });
        Self(rows.collect())
    }

    /// Puts rows that a run has made in the place of the old ones.
    pub(crate) fn replace(&mut self, rows: &[Row]) {
        for row in rows {
            let cells = row.outcomes.iter().map(|outcome| cell(*outcome)).collect();
            self.0
                .insert(row.program.name.to_owned(), (row.version.clone(), cells));
        }
    }

    /// Compares with what is expected, and so with what a run has seen.
    ///
    /// # Errors
    /// The first difference.
    pub(crate) fn check(&self) -> Result<(), String> {
        for program in PROGRAMS {
            let cells = Feature::ALL
                .iter()
                .map(|feature| cell(program.expected(*feature)));
            let shown = self.0.get(program.name).map(|(_, cells)| cells);
            if shown != Some(&cells.collect()) {
                return Err(format!(
                    "{}: tests/README.md shows {shown:?}; {ADVICE}",
                    program.name
                ));
            }
        }
        let readme = fs::read_to_string(README).expect("tests/README.md");
        if split(&readme).1 != self.to_string() {
            return Err(format!("the table in tests/README.md was edited; {ADVICE}"));
        }
        Ok(())
    }

    /// Writes the table to the README.
    pub(crate) fn write(&self) {
        let readme = fs::read_to_string(README).expect("tests/README.md");
        let (before, _, after) = split(&readme);
        fs::write(README, format!("{before}{self}{after}")).expect("write tests/README.md");
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| server | version |")?;
        for feature in Feature::ALL {
            write!(f, " {} |", feature.heading())?;
        }
        writeln!(f, "\n|---|---|{}", "---|".repeat(Feature::ALL.len()))?;
        let row = |program: &&Program| Some((program.name, self.0.get(program.name)?));
        for (name, (version, cells)) in PROGRAMS.iter().filter_map(row) {
            writeln!(f, "| {name} | {version} | {} |", cells.join(" | "))?;
        }
        writeln!(f)?;
        for quirk in Quirk::ALL {
            writeln!(f, "{}. {}", quirk.number(), quirk.note())?;
        }
        Ok(())
    }
}

fn cell(outcome: Outcome) -> String {
    match outcome {
        Outcome::Works => "✓".to_owned(),
        Outcome::Lacks => "–".to_owned(),
        Outcome::Copes(quirk) => quirk.number().to_string(),
    }
}

/// What stands before the table, the table, and what stands behind it.
fn split(readme: &str) -> (&str, &str, &str) {
    let begin = readme.find(BEGIN).expect("the marker before the table") + BEGIN.len();
    let end = readme.find(END).expect("the marker behind the table");
    (&readme[..begin], &readme[begin..end], &readme[end..])
}

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const BEGIN: &str = "<!-- servers: begin -->\n";
const END: &str = "<!-- servers: end -->";
const ADVICE: &str = "run COURSER_BLESS=1 cargo test --workspace --test servers -- --ignored";
