//! What the verbs of an operator share: the configuration, which names the store, and the ways to the store.

use std::path::{Path, PathBuf};

use crate::cli::find::read_for_job;
use crate::cli::usage::{Failure, usage};
use crate::stdout;
use find::Find;
use serde_json::Value;
use store::Place;
use verdict::life::State;
use watch::config::{JobConfig, Loaded};
use watch::control::{ControlError, Hand, Schedules, live_status};
use watch::hands::{ExportError, Live, Reader, Shape};
use watch::work::read_find;

/// The file of the configuration, as the command line names it.
#[derive(clap::Args)]
pub(super) struct ConfigFile {
    /// The configuration [default: watch.toml, if there is one in the working folder]
    ///
    /// The file with the configuration of the service, which also names the store.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// The file: what was named, or `watch.toml` in the working folder.
    ///
    /// # Errors
    /// No file was named, and there is none in the working folder.
    pub(super) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.config {
            return Ok(path.clone());
        }
        let usual = Path::new(USUAL);
        // A file that cannot be read is wrong, not absent.
        match usual.symlink_metadata() {
            Ok(_) => Ok(usual.to_owned()),
            Err(_) => Err(usage(format!(
                "no --config FILE, and there is no {USUAL} in this folder; 'crawler-cli watch config example > {USUAL}' writes one"
            ))),
        }
    }

    /// The configuration.
    pub(super) fn load(&self) -> Result<Loaded, Failure> {
        Loaded::read(&self.path()?).map_err(Failure::Wrong)
    }

    /// Where the store is.
    pub(super) fn store(&self) -> Result<Place, Failure> {
        Ok(self.load()?.config.store.place)
    }

    /// Opens the store for reading.
    pub(super) fn reader(&self) -> Result<Reader, Failure> {
        Ok(Reader::open(&self.store()?)?)
    }

    /// The way of commands to the store.
    pub(super) fn hand(&self) -> Result<Hand, Failure> {
        let config = self.load()?.config;
        let schedules = Schedules::from(&*config.schedules);
        let hand = Hand::reach(&config.store.place, config.policy.rules, schedules)?;
        Ok(hand)
    }

    /// What the running service says, about the host with this root URL.
    pub(super) fn live(&self, root: Option<String>) -> Result<Live, Failure> {
        Ok(match live_status(&self.store()?, root) {
            Ok(Some(status)) => Live::Running(Box::new(status)),
            Ok(None) => Live::Absent,
            Err(error) => Live::Silent(error.to_string()),
        })
    }

    /// The root URLs of the hosts that an operand means as for `status`: that of a URL, a host, or those of a set.
    pub(super) fn named_roots(&self, name: &str) -> Result<Vec<String>, Failure> {
        let roots = self.reader()?.hosts_named(name, MOST_HOSTS + 1)?;
        match roots.len() {
            0 => Err(not_watched(name)),
            1..=MOST_HOSTS => Ok(roots),
            _ => Err(Failure::Failed(format!(
                "{name}: a set with more than {MOST_HOSTS} hosts"
            ))),
        }
    }

    /// The root URL of the host that `--host` or an operand names, which the store knows.
    pub(super) fn known_roots(&self, name: &str) -> Result<Vec<String>, Failure> {
        let roots = self.reader()?.roots(name)?;
        match roots.is_empty() {
            true => Err(Failure::Failed(format!("{name}: no such host is watched"))),
            false => Ok(roots),
        }
    }
}

/// `--json`
#[derive(clap::Args)]
pub(super) struct Json {
    /// Print JSON, for programs
    ///
    /// Print JSON, one object in a line, instead of text. Times are in RFC 3339.
    #[arg(id = "json", long = "json", global = true)]
    pub(super) is_asked: bool,
}

impl Json {
    pub(super) fn shape(&self) -> Shape {
        match self.is_asked {
            true => Shape::Json,
            false => Shape::Text,
        }
    }

    /// Prints what was done, in one line.
    pub(super) fn say(&self, json: &Value, text: &str) -> Result<(), Failure> {
        match self.is_asked {
            true => print(&format!("{json}\n")),
            false => print(&format!("{text}\n")),
        }
    }
}

/// Reads the configuration of a service, with the arguments of its `find` jobs.
///
/// # Errors
/// Everything that is wrong, one in a line, safe to show on a terminal.
pub(super) fn load(file: &Path) -> Result<Loaded, String> {
    Loaded::read(file)?.check_jobs(|job| match job {
        JobConfig::Find { args, .. } => read_find(read_for_job, Find::new(), args).err(),
        _ => None,
    })
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Output(error) => error.into(),
        }
    }
}

/// The state with this name, in upper or lower case.
pub(super) fn state(name: &str) -> Result<State, String> {
    let is_it = |state: &&State| state.name().eq_ignore_ascii_case(name);
    State::ALL.iter().find(is_it).copied().ok_or_else(|| {
        let names: Vec<_> = State::ALL.iter().map(|state| state.name()).collect();
        format!("not one of {}", names.join(", "))
    })
}

/// A name means nothing that is watched.
pub(super) fn not_watched(name: &str) -> Failure {
    Failure::Failed(format!(
        "{name}: neither a URL, a host nor a set that is watched"
    ))
}

/// Prints a text on standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    Ok(stdout::write(text.as_bytes())?)
}

/// Of a set with more hosts, hosts have to be named one by one.
const MOST_HOSTS: usize = 10_000;
/// The file that is taken when none is named.
const USUAL: &str = "watch.toml";
