//! How the host treats HEAD. Until two verdicts are known, at most two URLs are asked by HEAD at a time.

use super::url_check::UrlCheck;
use crate::check::verdict::{HeadFacts, HeadVerdict};

/// What is known about HEAD, and the URLs whose answers will tell.
#[derive(Debug, Default)]
pub(super) struct Trial {
    facts: HeadFacts,
    /// URLs whose HEAD verdict is awaited.
    open: usize,
}

impl Trial {
    pub(super) fn new(facts: HeadFacts) -> Self {
        Self { facts, open: 0 }
    }

    pub(super) fn facts(&self) -> &HeadFacts {
        &self.facts
    }

    /// Whether no further URL may be asked by HEAD until a verdict is known.
    pub(super) fn is_full(&self) -> bool {
        let most = match self.facts.is_suspected() {
            // The URL that is asked now decides.
            true => 1,
            false => MOST,
        };
        self.open >= most && !self.facts.is_known()
    }

    /// A URL is about to be asked for the first time here.
    pub(super) fn begin(&mut self, check: &mut UrlCheck) {
        if !self.facts.is_known() && check.uses_head() && !check.is_on_trial {
            check.is_on_trial = true;
            self.open += 1;
        }
    }

    /// Notes what the requests for a URL say about HEAD, if they say something already.
    pub(super) fn note(&mut self, check: &mut UrlCheck) {
        if let Some(verdict) = check.attempt.take_head_verdict() {
            self.facts.note(verdict);
            self.release(check);
        }
    }

    /// Learns what redirects of HEAD were worth.
    pub(super) fn learn(&mut self, verdict: HeadVerdict) {
        self.facts.note(verdict);
    }

    /// The host refused a GET of the first byte of the URL, and not the GET of the whole.
    pub(super) fn note_range_refused(&mut self) {
        self.facts.note_range_refused();
    }

    /// Nothing was answered for the URL, which waits for its next attempt: others may be asked.
    pub(super) fn put_off(&mut self, check: &mut UrlCheck) {
        if check.is_on_trial {
            self.release(check);
        }
    }

    /// No more requests for the URL are sent to this host.
    pub(super) fn end(&mut self, check: &mut UrlCheck) {
        self.note(check);
        if check.is_on_trial {
            self.facts.note(HeadVerdict::Unclear);
            self.release(check);
        }
    }

    fn release(&mut self, check: &mut UrlCheck) {
        self.open -= usize::from(std::mem::take(&mut check.is_on_trial));
    }
}

/// The most URLs that are asked by HEAD at a time until two verdicts are known.
const MOST: usize = 2;
