//! `watch dlq`: dead letters.

use std::io;

use jiff::Timestamp;
use serde_json::json;

use super::verb::{ConfigFile, Json, print};
use crate::cli::usage::{Failure, usage};
use crate::cli::values::{host_name, number, since};
use watch::control::{Command, Letters};
use watch::hands::{Shape, letters_done};

/// List, show, replay or drop dead letters
///
/// A dead letter is what needs you or a change of a rule: a URL that cannot be judged, a job that failed too often, a
/// message that could not be delivered. Without an option, list concerns all dead letters; replay and drop need --all
/// for that.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch dlq list
  crawler-cli watch dlq replay --reason redirect_loop --since 3d --dry-run")]
pub(super) struct Dlq {
    #[command(subcommand)]
    deed: Deed,
    /// Only dead letters with this reason
    #[arg(long, value_name = "REASON", global = true)]
    reason: Option<String>,
    /// Only dead letters of jobs of this queue
    #[arg(long, value_name = "NAME", global = true)]
    queue: Option<String>,
    /// Only dead letters of URLs of this host name
    #[arg(long, value_name = "NAME", global = true, value_parser = host_name)]
    host: Option<String>,
    /// Only what failed since then
    ///
    /// Only what failed then or later: a date or time such as 2026-11-22 or 2026-11-22T10:00:00Z, or a time span such as
    /// 12h or 3d before now.
    #[arg(long, value_name = "TIME", global = true, value_parser = since)]
    since: Option<Timestamp>,
    /// All dead letters
    #[arg(long = "all", global = true)]
    is_all: bool,
    /// Only count what it concerns
    ///
    /// Change nothing; only count what the command would concern.
    #[arg(long = "dry-run", global = true)]
    is_dry_run: bool,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(clap::Subcommand)]
enum Deed {
    /// One line for each
    List,
    /// One of them with its last exchange
    Show {
        #[arg(value_parser = number::<i64>)]
        number: i64,
    },
    /// Try again
    ///
    /// A URL is due now, a job waits in its queue with all of its attempts. What was replayed is not replayed again
    /// until it fails again.
    Replay {
        #[arg(value_parser = number::<i64>)]
        number: Option<i64>,
    },
    /// Forget
    Drop {
        #[arg(value_parser = number::<i64>)]
        number: Option<i64>,
    },
}

impl Dlq {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.deed {
            Deed::List => list(&self, &self.letters(None)),
            Deed::Show { number } => show(&self, number),
            Deed::Replay { number } => change(&self, true, self.chosen(number)?),
            Deed::Drop { number } => change(&self, false, self.chosen(number)?),
        }
    }

    fn letters(&self, number: Option<i64>) -> Letters {
        Letters {
            number,
            reason: self.reason.clone(),
            host: self.host.clone(),
            queue: self.queue.clone(),
            since: self.since,
        }
    }

    /// The letters to change: some that an option names, or all.
    fn chosen(&self, number: Option<i64>) -> Result<Letters, Failure> {
        let letters = self.letters(number);
        let is_limited = letters != Letters::default();
        match (is_limited, self.is_all) {
            (true, true) => Err(usage("--all and another option say which dead letters")),
            (false, false) => Err(usage("nothing says which dead letters; --all means all")),
            _ => Ok(letters),
        }
    }
}

fn list(dlq: &Dlq, letters: &Letters) -> Result<(), Failure> {
    let mut reader = dlq.config.reader()?;
    let mut filter = letters.filter();
    filter.with_replayed = true;
    let shape = dlq.json.shape();
    let count = reader.letters(&filter, Timestamp::now(), shape, &mut io::stdout().lock())?;
    match (count, shape) {
        (0, Shape::Text) => print("no dead letters\n"),
        _ => Ok(()),
    }
}

fn show(dlq: &Dlq, number: i64) -> Result<(), Failure> {
    match dlq
        .config
        .reader()?
        .letter(number, Timestamp::now(), dlq.json.shape())?
    {
        Some(page) => print(&page),
        None => Err(Failure::Failed(format!("{number}: no such dead letter"))),
    }
}

fn change(dlq: &Dlq, is_replay: bool, letters: Letters) -> Result<(), Failure> {
    let done = if is_replay { "replayed" } else { "dropped" };
    let is_one = letters.number.is_some();
    let (count, passed) = if dlq.is_dry_run {
        let mut filter = letters.filter();
        filter.with_replayed = !is_replay;
        (dlq.config.reader()?.count_letters(&filter)?, 0)
    } else {
        dlq.config.hand()?.send_all(|after| match is_replay {
            true => Command::Replay {
                letters: letters.clone(),
                after,
            },
            false => Command::Drop {
                letters: letters.clone(),
            },
        })?
    };
    match dlq.json.is_asked {
        true => {
            let value = json!({ done: count, "passed": passed, "dry_run": dlq.is_dry_run });
            print(&format!("{value}\n"))?;
        }
        false => {
            let would = if dlq.is_dry_run { "would have " } else { "" };
            print(&letters_done(count, passed, &format!("{would}{done}")))?;
        }
    }
    match is_one && count == 0 {
        true => Err(Failure::Failed(format!("nothing to be {done}"))),
        false => Ok(()),
    }
}
