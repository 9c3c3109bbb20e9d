//! `watch show` and `watch status`: what is known, and why something is not asked.

use jiff::Timestamp;

use super::verb::{ConfigFile, Json, not_watched, print};
use crate::cli::usage::Failure;

/// Show a URL with its whole history
///
/// Shows all that is known about a URL: its state, why it is not asked right now, when it is asked next, its last answer
/// and its last 8 statuses, its sets, its dead letters, and its history: first as a strip over time in which each sign
/// stands for the worst state of its time, then as changes of state.
#[derive(clap::Args)]
pub(super) struct Show {
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let url = &*self.url;
        let mut reader = self.config.reader()?;
        let Some(root) = reader.host_of(url)? else {
            return Err(Failure::Failed(format!("{url}: not watched")));
        };
        let live = self.config.live(Some(root))?;
        match reader.show(url, live, Timestamp::now(), self.json.shape())? {
            Some(page) => print(&page),
            None => Err(Failure::Failed(format!("{url}: not watched"))),
        }
    }
}

/// Tell how the service fares, and why something is not asked
///
/// Tells how the service and its store fare: whether URLs are asked and what keeps them from it, how many are late, the
/// last cycle of reconciling, states, holds, hosts that wait, pauses, dead letters, jobs, sets and schedules.
///
/// With a URL or a host, tells why it is not asked right now: paused, held, not due yet, after Retry-After, because of a
/// rate, in no set, and so on. With a set, tells how many URLs it has, and when its source was read.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch status                    how everything fares
  crawler-cli watch status www.example.com    why a host is not asked")]
pub(super) struct Status {
    #[arg(value_name = "URL|HOST|SET")]
    name: Option<String>,
    /// The services that share the store
    ///
    /// Tell which services share the store, how many hosts each of them has at the moment, and when each gave its last
    /// sign of life. For stores in PostgreSQL.
    #[arg(long = "fleet", conflicts_with = "name")]
    is_fleet: bool,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

impl Status {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (config, shape) = (&self.config, self.json.shape());
        if self.is_fleet {
            return print(&config.reader()?.fleet_status(shape)?);
        }
        let Some(name) = &self.name else {
            let live = config.live(None)?;
            let mut reader = config.reader()?;
            return print(&reader.status(live, Timestamp::now(), shape)?);
        };
        let mut reader = config.reader()?;
        let mut pages = Vec::new();
        if let Some(root) = reader.host_of(name)? {
            let live = config.live(Some(root))?;
            pages.extend(reader.status_of_url(name, live, Timestamp::now(), shape)?);
        }
        // A URL that is not watched may be on a host that is.
        if pages.is_empty() {
            for root in reader.roots(name)? {
                let live = config.live(Some(root.clone()))?;
                let page = reader.status_of_host(&root, live, Timestamp::now(), shape)?;
                pages.extend(page);
            }
        }
        if pages.is_empty() {
            pages.extend(reader.status_of_set(name, Timestamp::now(), shape)?);
        }
        match pages.is_empty() {
            true => Err(not_watched(name)),
            false => print(&pages.join(if self.json.is_asked { "" } else { "\n" })),
        }
    }
}
