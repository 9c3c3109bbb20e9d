//! A configuration with the places of its values, and the texts about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::contradictions;
use super::error::{ConfigError, shown};
use super::reader::Reader;
use super::tables::{Row, TABLES, written};
use super::text_file;
use super::{Config, JobConfig};
use crate::config::toml_text::Position;
use plain::terminal;
use store;
use verdict::life::Profile;

/// A configuration that was read, with the places of its values.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub config: Config,
    file: PathBuf,
    places: BTreeMap<String, Position>,
}

impl Loaded {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or something is wrong: everything that is, one in a line, safe to show on a terminal.
    pub fn read(file: &Path) -> Result<Self, String> {
        let name = file.display().to_string();
        let name = terminal::neutralise(&name);
        let text = text_file::read(file, LONGEST).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&text, file).map_err(|errors| {
            let errors = errors.iter().map(|error| error.shown(file));
            errors.collect::<Vec<_>>().join("\n")
        })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Vec<ConfigError>> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut reader = Reader::new(text, folder);
        let mut config = Config::default();
        if let store::Place::File(file) = &mut config.store.place {
            *file = folder.join(&file);
        }
        let root = reader.root();
        for table in TABLES {
            table.read(&mut config, &mut reader, root.get_ref().get(table.name()));
        }
        let names: Vec<_> = TABLES.iter().map(|table| table.name()).collect();
        reader.unknown_tables(root.get_ref(), &names);
        if let Some(timeout) = config.policy.profile.adaptive_timeout()
            && !reader.is_set(ADAPTIVE_TIMEOUT)
        {
            config.limits.adaptive_timeout = Some(timeout);
        }
        contradictions::find(&config, &mut reader);
        if let (Some(file), store::Place::Server(address)) =
            (&config.store.password_file, &mut config.store.place)
        {
            match text_file::read(file, LONGEST) {
                Ok(password) => address.set_password(password.trim_end_matches(['\n', '\r'])),
                Err(error) => {
                    let why = format!("{}: {error}", file.display());
                    reader.contradiction("store.password_file", &why);
                }
            }
        }
        let places = reader.finish()?;
        let file = file.to_owned();
        Ok(Self {
            config,
            file,
            places,
        })
    }

    /// Refuses jobs about which others know more. `wrong` says why a job cannot run.
    ///
    /// # Errors
    /// What is wrong, as [`read`](Self::read) says it.
    pub fn check_jobs(self, wrong: impl Fn(&JobConfig) -> Option<String>) -> Result<Self, String> {
        let schedules = self.config.schedules.iter().enumerate();
        let errors = schedules.filter_map(|(index, schedule)| {
            let (path, why) = (format!("schedule[{index}].job"), wrong(&schedule.job)?);
            let why = terminal::neutralise(&why);
            Some(format!("{}: {path}: {why}", self.origin(&path)))
        });
        let errors: Vec<_> = errors.collect();
        match errors.is_empty() {
            true => Ok(self),
            false => Err(errors.join("\n")),
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The configuration as TOML. `with_origin`: after each value stands where it comes from.
    pub fn shown(&self, with_origin: bool) -> String {
        let mut text = String::new();
        for table in TABLES {
            for (index, rows) in table.rows(&self.config).iter().enumerate() {
                let gap = if text.is_empty() { "" } else { "\n" };
                // Writing to a string does not fail.
                let _ = writeln!(text, "{gap}{}", written(*table));
                let path = match table.is_list() {
                    true => format!("{}[{index}]", table.name()),
                    false => table.name().to_owned(),
                };
                for row in rows {
                    self.show_row(&mut text, &path, row, with_origin);
                }
            }
        }
        text
    }

    /// The keys whose values differ from those of another configuration, as `TABLE.KEY`; for tables that can be there
    /// several times, the name of the table.
    pub fn changes(&self, other: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for table in TABLES {
            let (own, others) = (table.rows(&self.config), table.rows(&other.config));
            let values = |rows: &[Vec<Row>]| -> Vec<_> {
                rows.iter()
                    .flatten()
                    .map(|row| (row.name, row.value.clone()))
                    .collect()
            };
            let (own, others) = (values(&own), values(&others));
            if table.is_list() {
                changes.extend((own != others).then(|| table.name().to_owned()));
                continue;
            }
            let pairs = own.iter().zip(&others).filter(|(own, other)| own != other);
            changes.extend(pairs.map(|((name, _), _)| format!("{}.{name}", table.name())));
        }
        changes
    }

    fn show_row(&self, text: &mut String, path: &str, row: &Row, with_origin: bool) {
        let Some(value) = &row.value else {
            return;
        };
        let path = format!("{path}.{}", row.name);
        let origin = match with_origin {
            true => format!("  # {}", self.origin(&path)),
            false => String::new(),
        };
        let _ = writeln!(
            text,
            "{} = {}{origin}",
            row.name,
            terminal::neutralise(value)
        );
    }

    /// Where the value of a key comes from: `FILE:LINE:COLUMN`, the profile, or the default.
    fn origin(&self, path: &str) -> String {
        let profile = self.config.policy.profile;
        if let Some(place) = self.places.get(path) {
            return shown(*place, &self.file);
        }
        let is_limit = path == ADAPTIVE_TIMEOUT && profile.adaptive_timeout().is_some();
        let is_of_profile = profile != Profile::Default
            && (path.starts_with("policy.") || is_limit)
            && value_of(&Config::default(), path) != value_of(&self.config, path);
        match is_of_profile {
            true => format!("profile {}", profile.name()),
            false => "default".to_owned(),
        }
    }
}

/// The value of a key of a table that is there once.
fn value_of(config: &Config, path: &str) -> Option<String> {
    let (table, key) = path.split_once('.')?;
    let table = TABLES.iter().find(|known| known.name() == table)?;
    let rows = table.rows(config).into_iter().next()?;
    rows.into_iter().find(|row| row.name == key)?.value
}

/// A configuration file with all keys, their defaults and what they mean.
pub fn example() -> String {
    let mut text = "# The configuration of crawler-cli watch. All keys are optional: those that are set here have their defaults.\n\
         # Times have the units ms, s, m, h and d. Relative paths are relative to the folder of this file.\n"
        .to_owned();
    for table in TABLES.iter() {
        let _ = writeln!(text, "\n# {}", table.doc());
        let defaults = table.rows(&Config::default()).into_iter().next();
        let is_there = !table.is_list();
        let mark = if is_there { "" } else { "#" };
        let _ = writeln!(text, "{mark}{}", written(*table));
        let rows = match is_there {
            true => defaults.unwrap_or_default(),
            false => table.samples(),
        };
        for row in &rows {
            example_row(&mut text, row, is_there);
        }
    }
    text
}

fn example_row(text: &mut String, row: &Row, is_there: bool) {
    let needed = if row.is_required { " Required." } else { "" };
    let _ = writeln!(text, "\n# {}{needed}\n# Allowed: {}.", row.doc, row.allowed);
    let _ = match (&row.value, is_there) {
        (Some(value), true) => writeln!(text, "{} = {value}", row.name),
        _ => writeln!(text, "#{} = {}", row.name, row.sample),
    };
}

const ADAPTIVE_TIMEOUT: &str = "limits.adaptive_timeout";
/// The longest configuration file, in bytes.
const LONGEST: u64 = 4 << 20;
