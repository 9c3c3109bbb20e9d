//! What is known about the hosts that are asked.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use url::Url;

use super::keeping::{HoldChange, HostRead};
use super::queue::{Kind, QueueId, Queues};
use check::task::Outcome;
use store::{Control, DueUrl, HostFacts, HostId, Ready};
use verdict::guard::{FlipRules, HostFlip, Stops};

/// All hosts that are asked, or about which something has to be kept in mind.
#[derive(Debug)]
pub(super) struct Book {
    /// What counts as a flip.
    flip: FlipRules,
    /// In an order that is the same in each run, as everything that the service goes through.
    hosts: BTreeMap<HostId, HostPage>,
    by_root: HashMap<Url, HostId>,
}

/// One host.
#[derive(Debug)]
pub(super) struct HostPage {
    pub(super) root: Url,
    pub(super) facts: HostFacts,
    /// Whether the facts are to be stored.
    pub(super) is_changed: bool,
    /// How many of its URLs are in a set.
    pub(super) urls: u64,
    /// `None`: the host has too few URLs to flip as a whole.
    pub(super) flip: Option<Box<HostFlip>>,
    /// Whether the store was asked when the host was held.
    pub(super) knows_stops: bool,
    pub(super) sample: Option<Sample>,
    pub(super) ending: Option<HoldChange>,
    /// Whether the beginning or the end of a hold is being written.
    pub(super) is_changing: bool,
    /// Whether a piece of that could not be written, and is to be written again.
    pub(super) has_failed: bool,
    /// Judgements that are not stored yet.
    pub(super) unstored: u32,
    /// The host asked to wait until then.
    pub(super) parked_until: Option<Timestamp>,
    /// Due rows until this time are read.
    pub(super) pass: Timestamp,
    /// Negative outcomes that wait for the control of the host.
    pub(super) awaiting_control: Vec<(DueUrl, Outcome)>,
}

/// A sample of what is held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// How many URLs it asks; `None` while they are being read.
    pub(super) size: Option<u64>,
    pub(super) answered: u64,
    pub(super) alive: u64,
}

impl Book {
    pub(super) fn new(flip: FlipRules) -> Self {
        Self {
            flip,
            hosts: BTreeMap::new(),
            by_root: HashMap::new(),
        }
    }

    /// Uses these rules from now on, for hosts that are held, too.
    pub(super) fn set_flip(&mut self, rules: FlipRules) {
        self.flip = rules;
        for page in self.hosts.values_mut() {
            if let Some(flip) = &mut page.flip {
                flip.set_rules(rules);
            }
            page.set_urls(page.urls, rules);
        }
    }

    /// Opens the page of a host with something due. Returns whether it is new.
    pub(super) fn open(&mut self, ready: Ready) -> Option<bool> {
        let Ready { host, urls, .. } = ready;
        if let Some(page) = self.hosts.get_mut(&host.id) {
            page.set_urls(urls, self.flip);
            return Some(false);
        }
        // The store has only what was parsed before.
        let root = Url::parse(&host.root).ok()?;
        self.by_root.insert(root.clone(), host.id);
        let mut page = HostPage {
            root,
            facts: host.facts,
            is_changed: false,
            urls,
            flip: None,
            knows_stops: false,
            sample: None,
            ending: None,
            is_changing: false,
            has_failed: false,
            unstored: 0,
            parked_until: None,
            pass: Timestamp::MIN,
            awaiting_control: Vec::new(),
        };
        page.set_urls(urls, self.flip);
        self.hosts.insert(host.id, page);
        Some(true)
    }

    /// Takes what was read about a host together with its rows.
    pub(super) fn refresh(&mut self, host: HostId, read: HostRead) {
        let Some(page) = self.hosts.get_mut(&host) else {
            return;
        };
        page.set_urls(read.urls, self.flip);
        if let Some(stops) = read.stops {
            page.set_stops(stops);
        }
    }

    /// How many URLs a host needs to flip as a whole.
    pub(super) fn least_to_flip(&self) -> u64 {
        least_to_flip(self.flip)
    }

    pub(super) fn get(&self, host: HostId) -> Option<&HostPage> {
        self.hosts.get(&host)
    }

    pub(super) fn get_mut(&mut self, host: HostId) -> Option<&mut HostPage> {
        self.hosts.get_mut(&host)
    }

    pub(super) fn at(&self, root: &Url) -> Option<HostId> {
        self.by_root.get(root).copied()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (HostId, &mut HostPage)> {
        self.hosts.iter_mut().map(|(id, page)| (*id, page))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HostId, &HostPage)> {
        self.hosts.iter().map(|(id, page)| (*id, page))
    }

    /// The pages of hosts that must not be looked for: what is due there is known, or may not be asked.
    pub(super) fn is_away(&self, host: HostId, now: Timestamp) -> bool {
        self.hosts
            .get(&host)
            .is_some_and(|page| page.unstored > 0 || page.is_parked(now))
    }

    /// Forgets hosts that are not asked, and about which nothing has to be kept in mind. `is_needed`: whether an outcome of
    /// the host waits.
    pub(super) fn tidy(
        &mut self,
        now: Timestamp,
        fleet: &Queues,
        is_needed: impl Fn(HostId, &HostPage) -> bool,
    ) {
        let by_root = &mut self.by_root;
        self.hosts.retain(|id, page| {
            let knows = |kind| fleet.knows(QueueId { host: *id, kind });
            let is_flip_idle = page.flip.as_mut().is_none_or(|flip| flip.is_idle(now));
            let is_kept = page.unstored > 0
                || page.is_changing
                || page.ending.is_some()
                || !page.awaiting_control.is_empty()
                || page.is_parked(now)
                || !is_flip_idle
                || is_needed(*id, page)
                || Kind::ALL.into_iter().any(knows);
            if !is_kept {
                by_root.remove(&page.root);
            }
            is_kept
        });
    }
}

impl HostPage {
    /// Whether the host asked to wait, and the wait is not over.
    pub(super) fn is_parked(&self, now: Timestamp) -> bool {
        self.parked_until.is_some_and(|until| until > now)
    }

    /// How many URLs the host has now. With enough of them, the host can flip.
    fn set_urls(&mut self, urls: u64, rules: FlipRules) {
        self.urls = urls;
        if self.flip.is_none() && urls >= least_to_flip(rules) {
            self.flip = Some(Box::new(HostFlip::new(rules)));
        }
    }

    /// The times in which the host was held, as the store has them.
    fn set_stops(&mut self, stops: Stops) {
        let is_fresh = |flip: &mut Box<HostFlip>| flip.stops().iter().next().is_none();
        if let Some(flip) = self.flip.take_if(is_fresh) {
            self.flip = Some(Box::new(flip.with_stops(stops)));
        }
        self.knows_stops = self.flip.is_some();
    }

    pub(super) fn is_held(&self) -> bool {
        self.flip.as_ref().is_some_and(|flip| flip.is_held())
    }

    /// The last control, if it says anything about now.
    pub(super) fn control(&self, now: Timestamp) -> Option<Control> {
        let is_recent = |control: &Control| {
            let age = now.duration_since(control.at).abs();
            age <= CONTROL_HOLDS
        };
        self.facts.control.filter(is_recent)
    }
}

fn least_to_flip(rules: FlipRules) -> u64 {
    u64::from(rules.min.max(1))
}

/// A control says something about the minutes before and after it (the reference is the design of the guards).
const CONTROL_HOLDS: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);
