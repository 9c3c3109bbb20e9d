//! Which URLs a command concerns: URLs, a host, a set, a state, or all.

use super::list::each;
use super::verb::{ConfigFile, not_watched, state};
use crate::cli::usage::{Failure, usage};
use plain::terminal::{neutralise, say};
use verdict::life::State;
use watch::control::{Command, Target};

/// What was typed about them.
#[derive(clap::Args)]
pub(super) struct Which {
    /// URLs, files with a URL in each line, or - for standard input
    #[arg(value_name = "URL|FILE|-")]
    operands: Vec<String>,
    /// Only URLs of this host
    ///
    /// Only URLs of this host: a name, perhaps with a port, or a URL of the host. A name means the host over HTTP and
    /// over HTTPS.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only URLs in this state
    ///
    /// Only URLs in this state: NEW, ALIVE, SUSPECT, BROKEN, UNREACHABLE, QUARANTINED, GONE or PRUNED.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<State>,
    /// All URLs
    #[arg(long = "all")]
    is_all: bool,
}

/// What a command concerns.
pub(super) struct Chosen {
    pub(super) targets: Vec<Target>,
    /// Whether all URLs that were named are known; those that are not were said.
    pub(super) is_whole: bool,
}

/// What the operands and options choose: exactly one kind of them. An operand is a URL, a file or `-`.
pub(super) fn chosen(config: &ConfigFile, which: &Which) -> Result<Chosen, Failure> {
    chosen_by(config, which, None, false)
}

/// The same for a command that takes sets, and hosts and sets as operands, too.
pub(super) fn chosen_by_name(
    config: &ConfigFile,
    which: &Which,
    set: Option<&str>,
) -> Result<Chosen, Failure> {
    chosen_by(config, which, set, true)
}

fn chosen_by(
    config: &ConfigFile,
    which: &Which,
    set: Option<&str>,
    by_name: bool,
) -> Result<Chosen, Failure> {
    let kinds = [
        !which.operands.is_empty(),
        which.host.is_some(),
        set.is_some(),
        which.state.is_some(),
        which.is_all,
    ];
    match kinds.into_iter().filter(|is_given| *is_given).count() {
        0 => return Err(usage("nothing says which URLs")),
        1 => {}
        _ => return Err(usage("more than one option says which URLs")),
    }
    let targets = match (which, set) {
        (_, Some(set)) => match config.reader()?.has_set(set)? {
            true => vec![Target::Set(set.to_owned())],
            false => return Err(Failure::Failed(format!("{set}: no such set"))),
        },
        (Which { is_all: true, .. }, _) => vec![Target::All],
        (which, _) => match (&which.host, which.state) {
            (Some(host), _) => {
                let roots = config.known_roots(host)?;
                roots.into_iter().map(Target::Host).collect()
            }
            (None, Some(state)) => vec![Target::State(state.name().to_owned())],
            (None, None) => return urls(config, &which.operands, by_name),
        },
    };
    Ok(Chosen {
        targets,
        is_whole: true,
    })
}

/// The URLs of the operands that the store knows, in batches; and if operands may be names, hosts and sets.
fn urls(config: &ConfigFile, operands: &[String], by_name: bool) -> Result<Chosen, Failure> {
    let mut reader = config.reader()?;
    let (mut targets, mut batch) = (Vec::new(), Vec::new());
    let (mut bytes, mut unknown) = (0, 0);
    each(operands, &mut |given| {
        if reader.host_of(&given.url)?.is_none() {
            // A URL with a slip in it does not mean all of its host.
            if by_name && given.place.is_none() && !given.url.contains("://") {
                let hosts = reader.roots(&given.url)?;
                targets.extend(hosts.iter().cloned().map(Target::Host));
                if hosts.is_empty() && reader.has_set(&given.url)? {
                    targets.push(Target::Set(given.url));
                } else if hosts.is_empty() {
                    return Err(not_watched(&given.url));
                }
                return Ok(());
            }
            unknown += 1;
            if unknown <= MOST_NAMED {
                say(format_args!("{}: not watched", neutralise(&given.url)));
            }
            return Ok(());
        }
        bytes += given.url.len();
        batch.push(given.url);
        if batch.len() >= Command::MOST_URLS || bytes >= BATCH_BYTES {
            targets.push(Target::Urls(std::mem::take(&mut batch)));
            bytes = 0;
        }
        Ok(())
    })?;
    if !batch.is_empty() {
        targets.push(Target::Urls(batch));
    }
    if unknown > MOST_NAMED {
        let more = unknown - MOST_NAMED;
        say(format_args!("and {more} more are not watched"));
    }
    Ok(Chosen {
        targets,
        is_whole: unknown == 0,
    })
}

/// How many bytes of URLs one command has.
const BATCH_BYTES: usize = 128 * 1024;
/// How many URLs that are not watched are named.
const MOST_NAMED: u64 = 20;
