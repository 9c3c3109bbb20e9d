//! A second resolver, which confirms that a name does not exist.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use courser::{DnsError, Reply as Answered, Resolver};

use super::keeping::{Outlet, Reply};
use crate::check::task::Outcome;
use crate::store::DueUrl;

/// Asks a second resolver about names that the first one does not know.
pub(super) struct Second {
    /// `None`: a missing name never counts towards "gone".
    resolver: Option<Box<dyn Resolver>>,
    outlet: Outlet,
    /// What waits for the answer about a name, since when.
    waiting: BTreeMap<String, (Instant, Vec<(DueUrl, Outcome)>)>,
    /// What was answered lately.
    known: HashMap<String, (Instant, bool)>,
}

impl Second {
    pub(super) fn new(outlet: Outlet) -> Self {
        Self {
            resolver: None,
            outlet,
            waiting: BTreeMap::new(),
            known: HashMap::new(),
        }
    }

    pub(super) fn set_resolver(&mut self, resolver: Box<dyn Resolver>) {
        self.resolver = Some(resolver);
    }

    /// Asks about the name of a URL's host. Returns whether the name does not exist there, either; `None` if the answer
    /// comes later.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        name: &str,
        due: DueUrl,
        outcome: Outcome,
    ) -> Option<(bool, DueUrl, Outcome)> {
        let Some(resolver) = &mut self.resolver else {
            return Some((false, due, outcome));
        };
        if let Some((at, agrees)) = self.known.get(name)
            && now.saturating_duration_since(*at) < KNOWN
        {
            return Some((*agrees, due, outcome));
        }
        if let Some((_, waiting)) = self.waiting.get_mut(name) {
            if waiting.len() >= MOST_OF_A_NAME {
                return Some((false, due, outcome));
            }
            waiting.push((due, outcome));
            return None;
        }
        if self.waiting.len() >= MOST_NAMES {
            return Some((false, due, outcome));
        }
        let waiting = vec![(due, outcome)];
        self.waiting.insert(name.to_owned(), (now, waiting));
        let (outlet, own) = (self.outlet.clone(), name.to_owned());
        let reply = Answered::new(move |answer| {
            let agrees = matches!(answer.addresses, Err(DnsError::NotFound));
            outlet.send(Reply::SecondOpinion { name: own, agrees });
        });
        resolver.lookup(name, reply);
        None
    }

    /// Whether outcomes wait for the answer about a name.
    pub(super) fn waits_for(&self, name: &str) -> bool {
        self.waiting.contains_key(name)
    }

    /// The answer about a name. Returns what waited for it.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        name: String,
        agrees: bool,
    ) -> Vec<(DueUrl, Outcome)> {
        if self.known.len() >= MOST_NAMES {
            self.known.clear();
        }
        let waited = self.waiting.remove(&name);
        self.known.insert(name, (now, agrees));
        waited.map_or_else(Vec::new, |(_, waited)| waited)
    }

    /// When the first wait for an answer has lasted long enough.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let since = self.waiting.values().map(|(since, _)| *since).min()?;
        since.checked_add(LONGEST)
    }

    /// Takes out what has waited for an answer for long enough.
    pub(super) fn give_up(&mut self, now: Instant) -> Vec<(DueUrl, Outcome)> {
        let is_late = |since: Instant| now.saturating_duration_since(since) >= LONGEST;
        let late = self
            .waiting
            .iter()
            .filter(|(_, (since, _))| is_late(*since));
        let names: Vec<String> = late.map(|(name, _)| name.clone()).collect();
        let mut late = Vec::new();
        for name in names {
            if let Some(resolver) = &mut self.resolver {
                resolver.cancel(&name);
            }
            late.extend(
                self.waiting
                    .remove(&name)
                    .into_iter()
                    .flat_map(|(_, waited)| waited),
            );
        }
        late
    }

    /// Takes out everything that waits, and forgets all answers.
    pub(super) fn take_all(&mut self) -> Vec<(DueUrl, Outcome)> {
        self.known.clear();
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_values()
            .flat_map(|(_, waited)| waited)
            .collect()
    }
}

/// The longest wait for an answer: what the C library does by default, with two attempts at three servers. An answer that
/// comes later holds for later questions.
const LONGEST: Duration = Duration::from_secs(30);

/// How long an answer holds.
const KNOWN: Duration = Duration::from_secs(600);

/// Names that are being asked about, and URLs that wait for one of them. Beyond that, a missing name does not count.
const MOST_NAMES: usize = 1_000;
const MOST_OF_A_NAME: usize = 100;
