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
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::cause::{Cause, Failure};
use super::found::{How, Saved};
use super::host_crawl::{FetchId, Reply};
use super::policy::Policy;
use super::range::SizeRange;
use super::visitor::Visitor;
use crate::crawl::failure::FailureScope;
use crate::crawl::politeness::Politeness;
use crate::crawl::retry::{Decision, Failed, Others, decide, is_stuck};
use crate::crawl::retry_queue::RetryQueue;
use crate::crawl::work::Body;

mod answer;
mod disk;
mod names;
mod store;
mod task;
#[cfg(test)]
mod tests;

use answer::{Answer, Asked, judge, wrong_length};
pub(super) use disk::Root;
pub(super) use names::Base;
use names::Name;
pub use store::DownloadCounts;
use store::Prepared;
pub(super) use store::{Store, Tally};
pub(super) use task::Wanted;
use task::{Flight, Step, Task};

/// The downloads of one host.
#[derive(Debug)]
pub(super) struct Downloads {
    most_redirects: u32,
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
    pub(super) store: &'a mut Store,
    pub(super) visitor: &'a mut dyn Visitor,
}

impl Downloads {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            most_redirects: policy.limits.redirects,
            queue: RetryQueue::default(),
            in_flight: HashMap::new(),
            next_number: 0,
            journal: None,
        }
    }

    /// Keeps changes from now on, for [`take_changes`](Self::take_changes).
    pub(super) fn keep_journal(&mut self) {
        self.journal.get_or_insert_default();
    }

    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        let journal = self.journal.as_mut();
        journal.map(std::mem::take).unwrap_or_default()
    }

    /// Continues an earlier run that left these files.
    pub(super) fn restore(&mut self, left: Vec<Wanted>, store: &mut Store) {
        for wanted in left {
            self.take_up(wanted, store);
        }
    }

    /// Adds a file.
    pub(super) fn add(&mut self, wanted: Wanted, store: &mut Store) {
        self.note(|| Change::Wanted(wanted.clone()));
        self.take_up(wanted, store);
    }

    fn take_up(&mut self, wanted: Wanted, store: &mut Store) {
        store.tally.counts.wanted += 1;
        let name = Name::of(&wanted.url, store.base.as_ref());
        self.queue.push_last(Task::new(wanted, name));
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
        store: &mut Store,
        refusal: &dyn Fn(&str) -> Option<Arc<Cause>>,
        visitor: &mut dyn Visitor,
    ) -> Option<Get<'_>> {
        let (task, asked, partial) = loop {
            let mut task = self.queue.pop_due(now).or_else(|| self.queue.pop_ready())?;
            if let Some(cause) = refusal(task.url()) {
                self.give_up(&task, &cause, store, visitor);
                continue;
            }
            match store.prepare(&mut task) {
                Ok(Prepared::Ask(asked, partial)) => break (task, asked, partial),
                Ok(Prepared::Kept(length)) => self.saved(&task, length, How::Kept, store, visitor),
                Ok(Prepared::Repeated) => store.tally.counts.wanted -= 1,
                Err(cause) => self.give_up(&task, &cause, store, visitor),
            }
        };
        self.next_number += 1;
        let id = FetchId(self.next_number);
        let flight = Flight::new(task, asked, partial);
        let flight = self.in_flight.entry(id).insert_entry(flight).into_mut();
        flight.task.attempts.handle_sent(now);
        store.tally.requests += 1;
        store.tally.retries += u64::from(flight.task.attempts.is_repeated());
        Some(Get {
            id,
            url: flight.task.url(),
            rest: match &flight.asked {
                Asked::Rest(at, note) => Some((*at, note.validator.as_str())),
                Asked::Whole => None,
            },
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
        let Some(mut flight) = self.in_flight.remove(&id) else {
            return Body::Unwanted;
        };
        if !matches!(head.status, 429 | 503) {
            on.politeness.handle_answer(on.now);
        }
        match judge(head, &flight.asked) {
            Answer::Body { at, length } => match on.store.begin(&mut flight, head, at, length) {
                Ok(None) => {
                    self.in_flight.insert(id, flight);
                    return Body::Wanted;
                }
                Ok(Some(kept)) => self.saved(&flight.task, kept, How::Kept, on.store, on.visitor),
                Err(cause) => self.give_up(&flight.task, &cause, on.store, on.visitor),
            },
            Answer::Later => {
                on.politeness.handle_over();
                let failed = Failed::of_status(head.status, head.retry_after, head.date);
                self.failed(flight.task, failed, Cause::Status(head.status), on);
                return Body::Unwanted;
            }
            Answer::StartOver => self.again(Step::FetchWhole, flight.task),
            Answer::Complete => self.finish(flight, on),
            Answer::Redirect => self.redirect(flight.task, head, on),
            Answer::Refused => {
                self.give_up(
                    &flight.task,
                    &Cause::Status(head.status),
                    on.store,
                    on.visitor,
                );
            }
        }
        on.politeness.handle_over();
        Body::Unwanted
    }

    /// A part of a wanted body arrived. Returns whether the rest is wanted.
    pub(super) fn handle_data(&mut self, id: FetchId, bytes: &[u8], on: &mut Around<'_>) -> Body {
        let Some(flight) = self.in_flight.get_mut(&id) else {
            return Body::Unwanted;
        };
        let Err(cause) = on.store.append(flight, bytes) else {
            on.store.tally.counts.bytes += bytes.len() as u64;
            return Body::Wanted;
        };
        if let Some(flight) = self.in_flight.remove(&id) {
            on.politeness.handle_over();
            self.give_up(&flight.task, &cause, on.store, on.visitor);
        }
        Body::Unwanted
    }

    /// A wanted body has ended.
    pub(super) fn handle_end(&mut self, id: FetchId, on: &mut Around<'_>) {
        let Some(flight) = self.in_flight.remove(&id) else {
            return;
        };
        on.politeness.handle_over();
        on.politeness.handle_body_end();
        let came = flight.came();
        match (flight.length, flight.task.wanted.size) {
            // A server may send less than was asked for (RFC 9110 §15.3.7).
            (Some(length), _) if came < length => {
                let cause = wrong_length(SizeRange::exact(length), came);
                let failed = Failed::new(cause.class(), FailureScope::Request);
                self.go_on(flight, failed, cause, on);
            }
            // Without a length of its own, only the listing can show that an answer is cut.
            (None, Some(size)) if came < size.lo => {
                self.give_up(
                    &flight.task,
                    &wrong_length(size, came),
                    on.store,
                    on.visitor,
                );
            }
            _ => self.finish(flight, on),
        }
    }

    /// A request failed, or a wanted body.
    pub(super) fn handle_failure(&mut self, id: FetchId, failure: Failure, on: &mut Around<'_>) {
        let Some(flight) = self.in_flight.remove(&id) else {
            return;
        };
        on.politeness.handle_over();
        let failed = Failed::new(failure.cause.class(), failure.scope);
        self.go_on(flight, failed, failure.cause, on);
    }

    /// Gives up all files for this cause, because nothing more can be fetched.
    pub(super) fn abandon(&mut self, cause: &Cause, store: &mut Store, visitor: &mut dyn Visitor) {
        let in_flight = std::mem::take(&mut self.in_flight);
        let in_flight = in_flight.into_values().map(|flight| flight.task);
        for task in in_flight.chain(self.queue.take_all()) {
            self.give_up(&task, cause, store, visitor);
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

    /// Queues the next step for a file, without a pause.
    fn again(&mut self, step: Step, mut task: Task) {
        task.step = step;
        task.attempts.discount();
        self.queue.push_next(task);
    }

    fn redirect(&mut self, mut task: Task, head: &Reply<'_>, on: &mut Around<'_>) {
        let to = match task.redirects < self.most_redirects {
            true => on.store.redirect_target(&task, head.location),
            false => Err(Cause::TooManyRedirects(self.most_redirects)),
        };
        match to {
            Ok(to) => {
                task.redirects += 1;
                task.location = Some(to);
                self.again(task.step, task);
            }
            Err(cause) => self.give_up(&task, &cause, on.store, on.visitor),
        }
    }

    fn finish(&mut self, mut flight: Flight, on: &mut Around<'_>) {
        let length = flight.came();
        match on.store.place(&mut flight) {
            Ok(how) => self.saved(&flight.task, length, how, on.store, on.visitor),
            Err(cause) => self.give_up(&flight.task, &cause, on.store, on.visitor),
        }
    }

    fn saved(
        &mut self,
        task: &Task,
        length: u64,
        how: How,
        store: &mut Store,
        visitor: &mut dyn Visitor,
    ) {
        self.note(|| Change::Over(task.wanted.url.clone()));
        let counts = &mut store.tally.counts;
        match how {
            How::Kept => counts.kept += 1,
            How::Fetched | How::Resumed(_) => counts.saved += 1,
        }
        counts.resumed += u64::from(matches!(how, How::Resumed(_)));
        visitor.downloaded(Saved {
            url: &task.wanted.url,
            file: &store.root.path_of(&task.name),
            length,
            how,
            listed: task.wanted.size.filter(|size| !size.contains(length)),
        });
    }

    fn give_up(
        &mut self,
        task: &Task,
        cause: &Cause,
        store: &mut Store,
        visitor: &mut dyn Visitor,
    ) {
        self.note(|| Change::Failed);
        store.tally.counts.failed += 1;
        visitor.not_downloaded(&task.wanted.url, cause);
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }

    /// Resumes an incomplete download. After enough progress, attempts are counted anew.
    fn go_on(&mut self, mut flight: Flight, failed: Failed, cause: Cause, on: &mut Around<'_>) {
        if flight.came().saturating_sub(flight.begun_at) >= PROGRESS {
            flight.task.attempts.start_over(on.now);
        }
        self.failed(flight.task, failed, cause, on);
    }

    /// Handles a failed request for a file: retries it, or gives it up for this cause, alone or with all files that
    /// wait.
    fn failed(&mut self, mut task: Task, failed: Failed, cause: Cause, on: &mut Around<'_>) {
        let others = match is_stuck(&task.attempts) {
            true => self.others(),
            false => Others::default(),
        };
        let decision = decide(on.now, failed, &mut task.attempts, others, on.politeness);
        let (reason, rest) = match decision {
            Decision::RetryAt(due) => return self.queue.postpone(due, task),
            Decision::GiveUp(reason) => (reason, Vec::new()),
            Decision::GiveUpHost(reason) => (reason, self.queue.take_all()),
        };
        let cause = cause.because(reason, on.politeness.retry_policy());
        for task in [task].into_iter().chain(rest) {
            self.give_up(&task, &cause, on.store, on.visitor);
        }
    }

    /// What is known about all other files.
    fn others(&self) -> Others {
        let in_flight = self.in_flight.values().map(|flight| &flight.task);
        let mut left = in_flight.chain(self.queue.postponed());
        let mut postponed = self.queue.postponed();
        Others {
            any_throttled: postponed.any(|task| task.attempts.throttles() > 0),
            all_stuck: self.queue.ready().len() == 0 && left.all(|task| is_stuck(&task.attempts)),
        }
    }
}

fn seconds(time: SystemTime) -> Option<i64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// The largest number of waiting files of one host, of about 300 bytes each. While it is reached, no directories are
/// read.
const MOST_WAITING: usize = 10_000;

/// Progress in bytes after which attempts are counted anew.
const PROGRESS: u64 = 1 << 20;
