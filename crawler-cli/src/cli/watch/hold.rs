//! `watch hold`: hosts that a guard holds.

use jiff::Timestamp;

use super::verb::{ConfigFile, Json, print};
use crate::cli::usage::Failure;
use plain::text;
use watch::control::{Command, ControlError, HoldDeed, Reply};
use watch::hands::{Shape, shown_url};

/// List, release or confirm hosts that are held
///
/// A host is held when many of its URLs turn negative at once, as when a cache is purged: nothing ages, and only samples
/// are asked. NAME is a URL, which means its host, a host, or a set, which means those of its hosts that are held.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  crawler-cli watch hold release cdn.example.com    the host is fine again")]
pub(super) struct Hold {
    #[command(subcommand)]
    deed: Deed,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(clap::Subcommand)]
enum Deed {
    /// List the hosts that are held
    List,
    /// The host was only disturbed
    ///
    /// Every held URL is asked at once, and what is negative starts from the beginning.
    Release { name: String },
    /// The URLs are really gone
    ///
    /// Every held URL is asked at once, and what is negative goes on where it was.
    Confirm { name: String },
}

impl Hold {
    pub(super) fn run(self) -> Result<(), Failure> {
        match &self.deed {
            Deed::List => {
                let shape = self.json.shape();
                let holds = self.config.reader()?.holds(Timestamp::now(), shape)?;
                match (holds.is_empty(), shape) {
                    (true, Shape::Text) => print("no host is held\n"),
                    _ => print(&holds),
                }
            }
            Deed::Release { name } => end(&self.config, name, HoldDeed::Release),
            Deed::Confirm { name } => end(&self.config, name, HoldDeed::Confirm),
        }
    }
}

fn end(config: &ConfigFile, name: &str, deed: HoldDeed) -> Result<(), Failure> {
    let roots = config.named_roots(name)?;
    let mut hand = config.hand()?;
    let mut ended = 0;
    for root in &roots {
        let command = Command::Hold {
            host: root.clone(),
            deed,
        };
        match hand.send(&command) {
            Ok(Reply::Count { count, .. }) => {
                let done = match deed {
                    HoldDeed::Release => "released",
                    HoldDeed::Confirm => "confirmed",
                };
                let urls = text::count(count, "URL", "URLs");
                print(&format!("{done} {}: {urls}\n", shown_url(root)))?;
                ended += 1;
            }
            Ok(_) => return Err(hand.foreign("not a count").into()),
            // A name may mean two hosts, of which one is held.
            Err(ControlError::Refused(refusal)) if refusal.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    match ended {
        0 => Err(Failure::Failed(format!("{name} is not held"))),
        _ => Ok(()),
    }
}
