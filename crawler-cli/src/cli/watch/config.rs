//! `crawler-cli watch config`: checks, shows and explains the configuration.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::verb::{ConfigFile, load, print};
use crate::cli::usage::Failure;
use jobs::Cancel;
use plain::terminal;
use watch::config::{Loaded, ScheduleConfig, example};
use watch::sets::Private;

/// Check, show and explain the configuration
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch config example > watch.toml
  crawler-cli watch config check
  crawler-cli watch config show --origin --config /etc/courser/watch.toml")]
pub(super) struct Config {
    #[command(subcommand)]
    action: Action,
    /// With show: where each value comes from
    ///
    /// With show: after each value, show where it comes from: the file with line and column, the profile, or the default.
    #[arg(long, global = true)]
    origin: bool,
    #[command(flatten)]
    file: ConfigFile,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Report everything that is wrong
    ///
    /// Reads the configuration and reports everything that is wrong with it, with lines and columns. If it is good, says
    /// how many URLs of each set are never asked because they are at private addresses, and when each schedule fires
    /// next.
    Check,
    /// Print the configuration as the service uses it, with all defaults
    Show,
    /// Print a configuration with all keys, their defaults and what they mean
    Example,
}

impl Config {
    pub(super) fn run(self) -> Result<(), Failure> {
        let loaded = || load(&self.file.path()?).map_err(Failure::Wrong);
        match self.action {
            Action::Example => print(&example()),
            Action::Show => print(&loaded()?.shown(self.origin)),
            Action::Check => print(&checked(&loaded()?, Timestamp::now())),
        }
    }
}

/// What `check` says of a good configuration: what it has, and when its schedules fire next.
fn checked(loaded: &Loaded, now: Timestamp) -> String {
    let config = &loaded.config;
    let file = loaded.file().display().to_string();
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let mut text = format!(
        "{}: good: {}, {}, {}\n",
        terminal::neutralise(&file),
        count(config.sets.len(), "set"),
        count(config.schedules.len(), "schedule"),
        count(config.hosts.len(), "host rule"),
    );
    for set in &config.sets {
        // A file that is not there yet is not wrong.
        if let Ok(private) = Private::of(&set.source, &Cancel::new())
            && private.urls > 0
            && !config.limits.allow_private
        {
            let _ = writeln!(
                text,
                "set {}: {}",
                set.name,
                terminal::neutralise(&private.to_string())
            );
        }
    }
    for schedule in &config.schedules {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "schedule {}: next at {}",
            schedule.name,
            next(schedule, now)
        );
    }
    text
}

/// The next three firings, in the zone of the schedule.
fn next(schedule: &ScheduleConfig, now: Timestamp) -> String {
    // The jitter is left out: the store fixes it.
    let firings = schedule
        .schedule("")
        .map(|schedule| schedule.next_firings(now, 3));
    let firings = firings.unwrap_or_default().into_iter();
    let firings = firings.map(|at| {
        let at = at.to_zoned(schedule.timezone.clone());
        at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
    });
    firings.collect::<Vec<_>>().join(", ")
}
