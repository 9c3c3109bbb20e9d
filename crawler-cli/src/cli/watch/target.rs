//! Which URLs a command concerns: URLs, a host, a set, a state, or all.

use super::list::each;
use super::verb::{Failure, Values, usage};
use crate::terminal::{neutralise, say};
use crate::watch::control::{Command, Target};

/// What a command concerns.
pub(super) struct Chosen {
    pub(super) targets: Vec<Target>,
    /// Whether all URLs that were named are known; those that are not were said.
    pub(super) is_whole: bool,
}

/// What the operands and options choose: exactly one kind of them. An operand is a URL, a file or `-`.
pub(super) fn chosen(values: &Values) -> Result<Chosen, Failure> {
    chosen_by(values, false)
}

/// The same for a command that takes hosts and sets as operands, too.
pub(super) fn chosen_by_name(values: &Values) -> Result<Chosen, Failure> {
    chosen_by(values, true)
}

fn chosen_by(values: &Values, by_name: bool) -> Result<Chosen, Failure> {
    let kinds = [
        !values.operands.is_empty(),
        values.host.is_some(),
        values.set.is_some(),
        values.state.is_some(),
        values.is_all,
    ];
    match kinds.into_iter().filter(|is_given| *is_given).count() {
        0 => return Err(usage("nothing says which URLs")),
        1 => {}
        _ => return Err(usage("more than one option says which URLs")),
    }
    let targets = match values {
        Values {
            host: Some(host), ..
        } => {
            let roots = values.known_roots(host)?;
            roots.into_iter().map(Target::Host).collect()
        }
        Values { set: Some(set), .. } => match values.reader()?.has_set(set)? {
            true => vec![Target::Set(set.clone())],
            false => return Err(Failure::Failed(format!("{set}: no such set"))),
        },
        Values {
            state: Some(state), ..
        } => vec![Target::State(state.name().to_owned())],
        Values { is_all: true, .. } => vec![Target::All],
        _ => return urls(values, by_name),
    };
    Ok(Chosen {
        targets,
        is_whole: true,
    })
}

/// The URLs of the operands that the store knows, in batches; and if operands may be names, hosts and sets.
fn urls(values: &Values, by_name: bool) -> Result<Chosen, Failure> {
    let mut reader = values.reader()?;
    let (mut targets, mut batch) = (Vec::new(), Vec::new());
    let (mut bytes, mut unknown) = (0, 0);
    each(&values.operands, &mut |given| {
        if reader.host_of(&given.url)?.is_none() {
            // A URL with a slip in it does not mean all of its host.
            if by_name && given.place.is_none() && !given.url.contains("://") {
                let hosts = reader.roots(&given.url)?;
                targets.extend(hosts.iter().cloned().map(Target::Host));
                if hosts.is_empty() && reader.has_set(&given.url)? {
                    targets.push(Target::Set(given.url));
                } else if hosts.is_empty() {
                    return Err(Failure::Failed(format!(
                        "{}: neither a URL, a host nor a set that is watched",
                        given.url
                    )));
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
