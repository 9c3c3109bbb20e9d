//! What the work at all hosts shares: the statistics, and what the hosts hand to the caller.

use std::mem;
use std::sync::Arc;

use courser::AddressPolicy;
use jiff::Timestamp;
use url::Url;

use super::body::BodyStart;
use super::observe::{Observe, Purpose};
use crate::check::guard::LocalSign;
use crate::check::task::{Hop, Outcome, Page, UrlId};
use crate::crawl::stats::Stats;

/// What the work at all hosts shares: the statistics, and what the hosts hand to the caller.
#[derive(Debug)]
pub struct Shared {
    /// The statistics of the run.
    pub stats: Stats,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) hops: Vec<Hop>,
    pub(super) sites: Vec<(Url, Page)>,
    signs: Vec<LocalSign>,
    /// The bytes of the bodies that are being read.
    held: usize,
    pub(super) observer: Option<Box<dyn Observe>>,
    /// One value for all calls that may dial only public addresses, so that they share connections.
    pub(super) public: Arc<AddressPolicy>,
}

impl Shared {
    /// Nothing to hand over yet.
    pub fn new(stats: Stats) -> Self {
        Self {
            stats,
            outcomes: Vec::new(),
            hops: Vec::new(),
            sites: Vec::new(),
            signs: Vec::new(),
            held: 0,
            observer: None,
            public: Arc::new(AddressPolicy::deny_private()),
        }
    }

    /// Tells this observer of each request from now on.
    pub fn set_observer(&mut self, observer: Box<dyn Observe>) {
        self.observer = Some(observer);
    }

    pub(super) fn note_sent(&self, task: Option<UrlId>, method: &'static str, purpose: Purpose) {
        if let Some(observer) = &self.observer {
            observer.sent(task, method, purpose);
        }
    }

    /// The outcomes since the last call, in the order in which the URLs were judged. They are as many as requests have
    /// ended, plus the tasks of hosts that were given up. `now` becomes the time of those that were asked.
    pub fn take_outcomes(&mut self, now: Timestamp) -> Vec<Outcome> {
        for outcome in &mut self.outcomes {
            outcome.checked_at = outcome.method.is_some().then_some(now);
        }
        mem::take(&mut self.outcomes)
    }

    /// The redirects since the last call that lead to other hosts.
    pub fn take_hops(&mut self) -> Vec<Hop> {
        mem::take(&mut self.hops)
    }

    /// What robots.txt and `/sitemap.xml` of hosts name since the last call, with their URLs.
    pub fn take_sites(&mut self) -> Vec<(Url, Page)> {
        mem::take(&mut self.sites)
    }

    /// The signs since the last call that this machine or its network is at fault, each once.
    pub fn take_signs(&mut self) -> Vec<LocalSign> {
        mem::take(&mut self.signs)
    }

    /// Adds a part to a body. Returns whether more is wanted: not if the bodies that are being read are too long together.
    pub(super) fn add_to_body(&mut self, body: &mut BodyStart, part: &[u8]) -> bool {
        let before = body.bytes().len();
        let goes_on = body.add(part, MOST_HELD - self.held);
        self.held += body.bytes().len() - before;
        goes_on
    }

    /// A body is no longer being read.
    pub(super) fn end_body(&mut self, body: &BodyStart) {
        self.held -= body.bytes().len();
    }

    pub(super) fn note_sign(&mut self, sign: LocalSign) {
        if !self.signs.contains(&sign) {
            self.signs.push(sign);
        }
    }
}

/// The most bytes of all bodies that are being read at a time. What comes beyond is not read.
const MOST_HELD: usize = 256 << 20;
