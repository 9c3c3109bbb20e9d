//! The downloads of one host: which file is next, what a response means, and when to retry. No sockets and no clock:
//! like the host crawl, it speaks `poll_*` and `handle_*`, so that both share the connections to the host. Reads and
//! writes only the downloaded files.
//!
//! A file is written to a partial file, and renamed when it is complete: when it has the length in the head of the
//! response; the size in a listing is a hint. An interrupted download is resumed, in this or a later run, if a strong
//! validator shows that the server's file is unchanged; otherwise it starts over. An existing file that agrees with the
//! listing is kept without a request; another one is compared with the head of the answer, and replaced only on demand.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::cause::{Cause, Failure};
use super::found::{How, Saved};
use super::host_crawl::{FetchId, Reply};
use super::visitor::Visitor;
use crate::crawl::politeness::Politeness;
use crate::crawl::retry::{Decision, Failed, Others, decide};
use crate::crawl::retry_queue::{Attempts, RetryQueue};
use crate::crawl::work::Body;

mod answer;
mod disk;
mod names;
mod store;
mod task;
#[cfg(test)]
mod tests;

pub(super) use disk::Root;
pub(super) use names::Base;
use names::Name;
pub use store::DownloadCounts;
pub(super) use store::Store;
use store::{End, Prepared};
pub(super) use task::Wanted;
use task::{Flight, Task};

/// The downloads of one host.
#[derive(Debug, Default)]
pub(super) struct Downloads {
    queue: RetryQueue<Task>,
    in_flight: HashMap<FetchId, Flight>,
    next_number: u64,
    /// The changes since they were last taken; `None` if they are not saved.
    journal: Option<Vec<Change>>,
}

/// A change to save for the next run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Change {
    /// A file was added.
    Wanted(Wanted),
    /// The file of this URL is complete.
    Over(String),
    /// A file was given up. A later run may ask for it again.
    Failed,
}

/// A request to send.
#[derive(Debug)]
pub(super) struct Get<'a> {
    pub(super) id: FetchId,
    pub(super) url: &'a str,
    /// The offset of the first byte, and the value of `If-Range`.
    pub(super) rest: Option<(u64, &'a str)>,
}

/// What an answer is handled with.
pub(super) struct Around<'a> {
    pub(super) now: Instant,
    pub(super) politeness: &'a mut Politeness,
    pub(super) results: Results<'a>,
}

/// Where the files and the results go.
pub(super) struct Results<'a> {
    pub(super) store: &'a mut Store,
    pub(super) visitor: &'a mut dyn Visitor,
}

impl Downloads {
    /// Keeps changes from now on, for [`take_changes`](Self::take_changes).
    pub(super) fn keep_journal(&mut self) {
        self.journal.get_or_insert_default();
    }

    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        let journal = self.journal.as_mut();
        journal.map(std::mem::take).unwrap_or_default()
    }

    /// Adds a file, unless it was added before.
    pub(super) fn add(&mut self, wanted: Wanted, store: &mut Store) {
        let name = Name::of(&wanted.url, store.base.as_ref());
        if store.claim(&name, &wanted.url) {
            self.note(|| Change::Wanted(wanted.clone()));
            store.counts.wanted += 1;
            self.queue.push_last(Task {
                wanted,
                name,
                chain: None,
                attempts: Attempts::default(),
            });
        }
    }

    /// Whether so many files wait that no more should be found.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= MOST_WAITING
    }

    /// Whether there is nothing left to do.
    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The next request. Handles files on the way that need no request, and gives up files whose URL `refusal` refuses.
    pub(super) fn poll_request(
        &mut self,
        now: Instant,
        refusal: &dyn Fn(&str) -> Option<Arc<Cause>>,
        results: &mut Results<'_>,
    ) -> Option<Get<'_>> {
        let (mut task, partial) = loop {
            let task = self.queue.pop_due(now).or_else(|| self.queue.pop_ready())?;
            if let Some(cause) = refusal(task.url()) {
                self.give_up(&task, &cause, results);
                continue;
            }
            match results.store.prepare(&task) {
                Ok(Prepared::Ask(partial)) => break (task, partial),
                Ok(Prepared::Kept(length)) => self.saved(&task, How::Kept, length, results),
                Err(cause) => self.give_up(&task, &cause, results),
            }
        };
        task.attempts.handle_sent(now);
        results.store.counts.requests += 1;
        results.store.counts.retries += u64::from(task.attempts.is_repeated());
        self.next_number += 1;
        let id = FetchId(self.next_number);
        let flight = Flight { task, partial };
        let flight = self.in_flight.entry(id).or_insert(flight);
        let rest = flight.rest();
        Some(Get {
            id,
            url: flight.task.url(),
            rest: rest.and_then(|(at, note)| Some((at, note.validator.as_deref()?))),
        })
    }

    /// When to call [`poll_request`](Self::poll_request) again after it returned `None`, if no response comes before.
    /// `held`: until when the host is not to be requested.
    pub(super) fn poll_timeout(&self, held: Option<Instant>) -> Option<Instant> {
        if self.queue.ready().len() > 0 {
            return held;
        }
        let due = self.queue.next_due()?;
        Some(held.map_or(due, |until| until.max(due)))
    }

    /// The head of a response arrived. Returns whether its body is wanted.
    pub(super) fn handle_head(
        &mut self,
        id: FetchId,
        head: &Reply<'_>,
        on: &mut Around<'_>,
    ) -> Body {
        let Some(flight) = self.in_flight.get_mut(&id) else {
            return Body::Unwanted;
        };
        if !matches!(head.status, 429 | 503) {
            on.politeness.handle_answer(on.now);
        }
        match on.results.store.handle_head(flight, head).transpose() {
            None => Body::Wanted,
            Some(end) => self.end(id, end, on),
        }
    }

    /// A part of a wanted body arrived. Returns whether the rest is wanted.
    pub(super) fn handle_data(&mut self, id: FetchId, bytes: &[u8], on: &mut Around<'_>) -> Body {
        let Some(flight) = self.in_flight.get_mut(&id) else {
            return Body::Unwanted;
        };
        on.politeness.handle_bytes();
        match on.results.store.append(flight, bytes) {
            Ok(()) => Body::Wanted,
            Err(cause) => self.end(id, Err(cause), on),
        }
    }

    /// A wanted body has ended.
    pub(super) fn handle_end(&mut self, id: FetchId, on: &mut Around<'_>) {
        if let Some(flight) = self.in_flight.get_mut(&id) {
            on.politeness.handle_body_end();
            let end = on.results.store.handle_end(flight);
            self.end(id, end, on);
        }
    }

    /// A request failed, or a wanted body.
    pub(super) fn handle_failure(&mut self, id: FetchId, failure: Failure, on: &mut Around<'_>) {
        let failed = Failed::new(failure.cause.class(), failure.scope);
        self.end(id, Ok(End::Failed(failed, failure.cause)), on);
    }

    /// Gives up all files for this cause, because nothing more can be fetched.
    pub(super) fn abandon(&mut self, cause: &Cause, results: &mut Results<'_>) {
        let in_flight = std::mem::take(&mut self.in_flight);
        let in_flight = in_flight.into_values().map(|flight| flight.task);
        for task in in_flight.chain(self.queue.take_all()) {
            self.give_up(&task, cause, results);
        }
    }

    /// Tells the URLs of the files that are not complete.
    pub(super) fn tell_unasked(&self, tell: &mut dyn FnMut(&str)) {
        let in_flight = self.in_flight.values().map(|flight| &flight.task);
        let waiting = self.queue.ready().chain(self.queue.postponed());
        in_flight
            .chain(waiting)
            .for_each(|task| tell(&task.wanted.url));
    }

    /// A request is over: reports its file, or queues the next request for it. The rest of its body is not wanted.
    fn end(&mut self, id: FetchId, end: Result<End, Cause>, on: &mut Around<'_>) -> Body {
        let Some(Flight { mut task, partial }) = self.in_flight.remove(&id) else {
            return Body::Unwanted;
        };
        on.politeness.handle_over();
        match end {
            Ok(End::Saved(how, length)) => self.saved(&task, how, length, &mut on.results),
            Ok(End::Again) => {
                task.attempts.discount();
                self.queue.push_next(task);
            }
            Ok(End::Failed(failed, cause)) => {
                let came = partial.map_or(0, |partial| partial.length - partial.begun_at);
                if came >= PROGRESS {
                    task.attempts.start_over(on.now);
                }
                self.failed(task, failed, cause, on);
            }
            Err(cause) => self.give_up(&task, &cause, &mut on.results),
        }
        Body::Unwanted
    }

    /// Handles a failed request for a file: retries it, or gives it up for this cause, alone or with all files that
    /// wait.
    fn failed(&mut self, mut task: Task, failed: Failed, cause: Cause, on: &mut Around<'_>) {
        let in_flight = self.in_flight.values().map(|flight| &flight.task.attempts);
        let postponed = self.queue.postponed().map(|task| &task.attempts);
        let any_new = || self.queue.ready().len() > 0;
        let others = Others::of(&task.attempts, any_new, in_flight, postponed);
        let decision = decide(on.now, failed, &mut task.attempts, others, on.politeness);
        let (reason, rest) = match decision {
            Decision::RetryAt(due) => return self.queue.postpone(due, task),
            Decision::GiveUp(reason) => (reason, Vec::new()),
            Decision::GiveUpHost(reason) => (reason, self.queue.take_all()),
        };
        let cause = cause.because(reason, on.politeness.retry_policy());
        for task in [task].into_iter().chain(rest) {
            self.give_up(&task, &cause, &mut on.results);
        }
    }

    fn saved(&mut self, task: &Task, how: How, length: u64, results: &mut Results<'_>) {
        self.note(|| Change::Over(task.wanted.url.clone()));
        let counts = &mut results.store.counts;
        counts.kept += u64::from(how == How::Kept);
        counts.saved += u64::from(how != How::Kept);
        counts.resumed += u64::from(matches!(how, How::Resumed(_)));
        results.visitor.downloaded(Saved {
            url: &task.wanted.url,
            file: &results.store.root.path_of(&task.name),
            length,
            how,
            listed: task.wanted.size.filter(|size| !size.contains(length)),
        });
    }

    fn give_up(&mut self, task: &Task, cause: &Cause, results: &mut Results<'_>) {
        self.note(|| Change::Failed);
        results.store.counts.failed += 1;
        results.visitor.not_downloaded(&task.wanted.url, cause);
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }
}

/// The largest number of waiting files of one host, of about 300 bytes each. While it is reached, no directories are
/// read.
const MOST_WAITING: usize = 10_000;

/// Progress in bytes after which attempts are counted anew.
const PROGRESS: u64 = 1 << 20;
