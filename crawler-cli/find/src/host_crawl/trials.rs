//! Whether a directory that lists what one above it lists is a loop of links.
//!
//! HTTP does not show links. A directory whose listing equals that of a directory above it, with the times of files, is
//! a link to that one, or looks like it by chance: the shards of a tree that was made in one go do. In a loop, what is
//! below repeats for ever; in a tree, it ends. So the names that led from the one to the other are followed further
//! down, for some levels, and nothing is reported before that is decided.

use std::collections::HashMap;

use super::HostCrawl;
use super::messages::Reply;
use super::probes::PartialListing;
use super::task::{Task, TaskKind};
use crate::cause::Cause;
use crate::visitor::Turn;
use listing::Directories;

/// The directories that are on trial.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// By the number of the directory's task.
    open: HashMap<u64, Trial>,
    /// What trials have shown: whether a listing that repeats is that of a loop.
    known: HashMap<u64, bool>,
}

#[derive(Debug)]
struct Trial {
    /// The directory, with its entries.
    held: PartialListing,
    /// From the directory above to this one: the names, and the listing below each.
    period: Vec<(String, u64)>,
    /// How many levels below the directory have repeated.
    level: usize,
}

impl Trials {
    /// The directories.
    pub(super) fn held(&self) -> impl Iterator<Item = &Task> {
        self.open.values().map(|trial| &trial.held.task)
    }
}

impl HostCrawl {
    /// Handles a directory whose listing `own` equals that of a directory above it.
    pub(super) fn try_loop(&mut self, turn: &mut Turn<'_>, mut held: PartialListing, own: u64) {
        let known = self.trials.known.get(&own).copied();
        if known == Some(false) {
            return self.entries(turn, held);
        }
        let Some(period) = period(&held, own).filter(|_| known.is_none()) else {
            self.counts.directories_done += 1;
            return self.unread(turn, &held.task.target, &Cause::SameListing);
        };
        self.journal.note_listing(&mut held);
        let trial = Trial {
            held,
            period,
            level: 0,
        };
        self.ask_below(turn, trial);
    }

    /// Asks for the next level of a trial.
    fn ask_below(&mut self, turn: &mut Turn<'_>, trial: Trial) {
        let names = trial.period.iter().map(|(name, _)| name).cycle();
        let mut target = trial.held.task.target.clone();
        for name in names.take(trial.level + 1) {
            target.push_str(name);
            target.push('/');
        }
        if !self.is_allowed(&target) {
            return self.acquit(turn, trial);
        }
        let of = &trial.held.task;
        let task = Task::new(target, TaskKind::Trial, of.start, of.depth);
        // What is written about the directory stays until the trial ends.
        self.queue(Task {
            number: of.number,
            ..task
        });
        self.trials.open.insert(trial.held.task.number, trial);
    }

    /// The answer for a level of a trial.
    pub(super) fn tried(&mut self, turn: &mut Turn<'_>, task: Task, reply: &Reply<'_>) {
        let Some(mut trial) = self.trials.open.remove(&task.number) else {
            return;
        };
        let read = match reply.status {
            200 | 203 | 207 => self.read_page(&task, reply),
            status => Err(Cause::Status(status)),
        };
        let found = read.ok().map(|listing| self.seen.listing(&listing.entries));
        let expected = &trial.period[trial.level % trial.period.len()];
        if found != Some(expected.1) {
            return self.acquit(turn, trial);
        }
        trial.level += 1;
        if trial.level < LEVELS {
            return self.ask_below(turn, trial);
        }
        if let Some((_, own)) = trial.period.last() {
            self.trials.known.insert(*own, true);
        }
        self.counts.directories_done += 1;
        self.unread(turn, &trial.held.task.target, &Cause::SameListing);
    }

    /// The level of a trial cannot be read: the trial has shown nothing.
    pub(super) fn untried(&mut self, turn: &mut Turn<'_>, number: u64) {
        if let Some(trial) = self.trials.open.remove(&number) {
            self.acquit(turn, trial);
        }
    }

    /// The directory is like any other, and so are those with the same listing.
    fn acquit(&mut self, turn: &mut Turn<'_>, trial: Trial) {
        if let Some((_, own)) = trial.period.last() {
            self.trials.known.insert(*own, false);
        }
        self.entries(turn, trial.held);
    }
}

/// The names that lead from the directory above with the same listing to this one, and the listing below each. `None`: it
/// cannot be told, because the names are in queries.
fn period(held: &PartialListing, own: u64) -> Option<Vec<(String, u64)>> {
    if held.task.path.is_some() || held.directories != Directories::Path {
        return None;
    }
    // The first is the directory's own.
    let above: Vec<u64> = held.task.above.iter().skip(1).collect();
    let distance = above.iter().position(|above| *above == own)?;
    let path = held.task.target.trim_end_matches('/');
    let mut names: Vec<String> = path
        .rsplit('/')
        .take(distance + 1)
        .map(str::to_owned)
        .collect();
    names.reverse();
    let listings = above[..distance].iter().rev().chain([&own]);
    (names.len() > distance).then(|| names.into_iter().zip(listings.copied()).collect())
}

/// How many levels below a directory have to repeat: trees of shards have fewer.
const LEVELS: usize = 8;
