//! `watch schedule`: schedules of the configuration.

use jiff::Timestamp;

use super::verb::{ConfigFile, Json, print};
use crate::cli::usage::Failure;
use watch::control::{Command, ScheduleDeed};
use watch::hands::Shape;

/// List, run, pause or resume schedules
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  crawler-cli watch schedule run nightly    do not wait")]
pub(super) struct Schedule {
    #[command(subcommand)]
    deed: Deed,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(clap::Subcommand)]
enum Deed {
    /// List the schedules of the configuration
    ///
    /// When each fires next and has fired last, and how many firings were missed, because no service ran, or skipped,
    /// because the run before had not ended.
    List,
    /// Fire now, besides its times; without a service, when one starts
    Run { name: String },
    /// Do not fire at its times
    Pause { name: String },
    /// Fire again; what was missed meanwhile is subject to catch_up
    Resume { name: String },
}

impl Schedule {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (deed, name, done) = match &self.deed {
            Deed::List => return self.list(),
            Deed::Run { name } => (ScheduleDeed::Run, name, "runs"),
            Deed::Pause { name } => (ScheduleDeed::Pause, name, "is paused"),
            Deed::Resume { name } => (ScheduleDeed::Resume, name, "is resumed"),
        };
        let mut hand = self.config.hand()?;
        hand.send(&Command::Schedule {
            name: name.clone(),
            deed,
        })?;
        let is_run = deed == ScheduleDeed::Run;
        let when = match (is_run, hand.is_service()) {
            (true, false) => " when the service starts",
            (true, true) => " within some seconds",
            (false, _) => "",
        };
        print(&format!("{name} {done}{when}\n"))
    }

    fn list(&self) -> Result<(), Failure> {
        let config = self.config.load()?.config;
        let names = config.schedules.iter().map(|one| one.name.clone());
        let names: Vec<String> = names.collect();
        let (mut reader, shape) = (self.config.reader()?, self.json.shape());
        let rows = reader.schedules(&names, Timestamp::now(), shape)?;
        match (names.is_empty(), shape) {
            (true, Shape::Text) => print("the configuration has no schedules\n"),
            _ => print(&rows),
        }
    }
}
