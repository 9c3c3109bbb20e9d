//! The downloads of one host: which file is next, what a response means, and when to retry. No sockets and no clock:
//! like the host crawl, it speaks `poll_*` and `handle_*`, so that both share the connections to the host. Reads and
//! writes only the downloaded files.
//!
//! A file is written to a partial file, and renamed when it is complete: when its length agrees with the head of the
//! response and with the listing. An interrupted download is resumed, in this or a later run, if a strong validator
//! shows that the server's file is unchanged; otherwise it starts over. Existing files are compared with the server's
//! and replaced only on demand.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::cause::{Cause, Failure};
use super::fault::Fault;
use super::found::{How, Saved};
use super::host_crawl::FetchId;
use super::policy::Policy;
use super::range::SizeRange;
use super::visitor::Visitor;
use crate::crawl::failure::FailureScope;
use crate::crawl::politeness::Politeness;
use crate::crawl::retry::{Decision, Failed, Others, decide, is_stuck};
use crate::crawl::retry_queue::RetryQueue;
use crate::crawl::work::Body;

mod answer;
mod checks;
mod counts;
mod disk;
mod lists;
mod look;
mod mirror;
mod names;
mod place;
mod prepare;
mod receive;
mod store;
mod sums;
mod task;
#[cfg(test)]
mod tests;

pub(super) use answer::Head;
use answer::{Answer, Asked};
pub use counts::DownloadCounts;
pub(super) use counts::Tally;
pub(super) use mirror::{About, Outcome, Sighting};
pub use mirror::{MirrorEvent, MostDeleted, Refusal};
pub(super) use names::Base;
use names::Name;
use place::Placed;
use prepare::{Prepared, prepare};
use receive::{append, begin, redirect_target, wrong_length};
pub(super) use store::{Destination, FileRules, Store};
pub(super) use sums::is_list;
pub(super) use task::Wanted;
use task::{ActiveDownload, Purpose, Step, Task};

/// The downloads of one host.
#[derive(Debug)]
pub(super) struct Downloads {
    policy: Policy,
    queue: RetryQueue<Task>,
    in_flight: HashMap<FetchId, ActiveDownload>,
    next_number: u64,
    /// Files whose list of checksums is being read, by the URL of the list.
    parked: HashMap<String, Vec<Task>>,
    /// Lists of checksums that could not be read, which the store does not know yet.
    failed_lists: Vec<String>,
    /// Files that wait for the deletion of something that is in their way.
    blocked: Vec<Task>,
    /// Files that were given up because too many are blocked; a later run takes them.
    crowded: u64,
    counts: DownloadCounts,
    requests: u64,
    retries: u64,
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
    /// The file of this URL was given up. A later run may ask for it again.
    Failed(String),
}

/// A request to send.
#[derive(Debug)]
pub(super) struct Get<'a> {
    pub(super) id: FetchId,
    pub(super) method: &'static str,
    pub(super) url: &'a str,
    /// The request is for the listing of the directory, whose answer is passed to [`Downloads::handle_listing`].
    pub(super) is_listing: bool,
    /// The offset of the first byte, and the value of `If-Range`.
    pub(super) rest: Option<(u64, &'a str)>,
    /// The value of `If-None-Match`.
    pub(super) none_match: Option<&'a str>,
    /// The value of `If-Modified-Since`.
    pub(super) modified_since: Option<&'a str>,
}

impl Downloads {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            policy: policy.clone(),
            queue: RetryQueue::default(),
            in_flight: HashMap::new(),
            parked: HashMap::new(),
            failed_lists: Vec::new(),
            blocked: Vec::new(),
            crowded: 0,
            next_number: 0,
            counts: DownloadCounts::default(),
            requests: 0,
            retries: 0,
            journal: None,
        }
    }

    /// Keeps changes from now on, for [`take_changes`](Self::take_changes).
    pub(super) fn keep_journal(&mut self) {
        self.journal.get_or_insert_default();
    }

    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        self.journal
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Continues an earlier run that left these files.
    pub(super) fn restore(&mut self, tally: Tally, left: Vec<Wanted>, store: &Store) {
        self.counts = DownloadCounts {
            wanted: tally.counts.over(),
            left: 0,
            unsized_left: 0,
            ..tally.counts
        };
        self.requests = tally.requests;
        self.retries = tally.retries;
        for wanted in left {
            self.take_up(wanted, store);
        }
    }

    /// The progress to save for the next run.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            counts: self.counts,
            requests: self.requests,
            retries: self.retries,
        }
    }

    /// Adds a file.
    pub(super) fn add(&mut self, wanted: Wanted, store: &Store) {
        if let Some(journal) = &mut self.journal {
            journal.push(Change::Wanted(wanted.clone()));
        }
        self.take_up(wanted, store);
    }

    fn take_up(&mut self, wanted: Wanted, store: &Store) {
        self.counts.wanted += 1;
        let name = Name::of(&wanted.url, store.base.as_ref());
        let task = Task::new(wanted, Purpose::File, name, Step::Begin);
        self.counts.add_left(task.left);
        self.queue.push_last(task);
    }

    /// Whether so many files wait that no more should be found.
    pub(super) fn is_full(&self) -> bool {
        let parked = self.parked.values().map(Vec::len).sum::<usize>();
        self.queue.len() + parked >= MOST_WAITING
    }

    /// Whether there is nothing to do now. Files may still wait for deletions; see [`unblock`](Self::unblock).
    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(super) fn counts(&self) -> DownloadCounts {
        DownloadCounts {
            under_way: self.in_flight.len() as u64,
            ..self.counts
        }
    }

    /// Requests, and how many of them were repetitions.
    pub(super) fn requests(&self) -> (u64, u64) {
        (self.requests, self.retries)
    }

    /// The next request. Handles files on the way that need no request, and gives up files whose URL `refusal` refuses.
    pub(super) fn poll_request(
        &mut self,
        now: Instant,
        store: &mut Store,
        refusal: &dyn Fn(&str) -> Option<Arc<Cause>>,
        visitor: &mut dyn Visitor,
    ) -> Option<Get<'_>> {
        for list in self.failed_lists.drain(..) {
            store.checks.take(list, None);
        }
        let (task, asked, partial) = loop {
            let mut task = self.queue.pop_due(now).or_else(|| self.queue.pop_ready())?;
            if let Step::LookAgain { whole } = task.step {
                task.has_looked = true;
                let may_look = task.directory().is_some_and(|url| refusal(url).is_none());
                if may_look {
                    break (task, Asked::Listing, None);
                }
                task.step = Step::after_look(whole);
            }
            if let Some(cause) = refusal(task.url()) {
                self.give_up(&task, &cause, visitor);
                continue;
            }
            match prepare(&mut task, store) {
                Ok(Prepared::Ask(asked, partial)) => break (task, asked, partial),
                Ok(Prepared::Kept(length)) => self.saved(&task, length, How::Kept, store, visitor),
                Ok(Prepared::Needs(list)) => self.park(task, list, store),
                Ok(Prepared::Blocked) if self.blocked.len() < MOST_WAITING => {
                    self.blocked.push(task);
                }
                Ok(Prepared::Blocked) => {
                    self.crowded += 1;
                    let path = store.to.root.path_of(&task.name);
                    self.give_up(&task, &Cause::Download(Fault::Exists(path)), visitor);
                }
                Ok(Prepared::Planned) => self.planned(&task, store, visitor),
                Ok(Prepared::Repeated) => {
                    self.counts.wanted -= 1;
                    self.counts.take_left(task.left);
                }
                Err(cause) => self.give_up(&task, &cause, visitor),
            }
        };
        self.next_number += 1;
        let id = FetchId(self.next_number);
        self.requests += 1;
        let flight = ActiveDownload {
            begun_at: partial.as_ref().map_or(0, |partial| partial.length()),
            task,
            asked,
            partial,
            length: None,
            modified: None,
            etag: None,
            date: None,
            sum: None,
            text: Vec::new(),
        };
        let flight = self.in_flight.entry(id).insert_entry(flight).into_mut();
        flight.task.attempts.handle_sent(now);
        self.retries += u64::from(flight.task.attempts.is_repeated());
        let known = flight.task.known.as_ref();
        let known = known.filter(|_| flight.asked == Asked::IfChanged);
        Some(Get {
            id,
            method: if flight.asked == Asked::Head {
                "HEAD"
            } else {
                "GET"
            },
            url: match flight.asked {
                Asked::Listing => flight.task.directory().unwrap_or_default(),
                _ => flight.task.url(),
            },
            is_listing: flight.asked == Asked::Listing,
            rest: match &flight.asked {
                Asked::Rest(at, note) => Some((*at, note.validator.as_str())),
                Asked::Head | Asked::Whole | Asked::IfChanged | Asked::Listing => None,
            },
            none_match: known.and_then(|known| known.etag.as_deref()),
            modified_since: known.and_then(|known| known.date.as_deref()),
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

    /// The head of a response arrived.
    pub(super) fn handle_head(
        &mut self,
        now: Instant,
        id: FetchId,
        head: &Head<'_>,
        politeness: &mut Politeness,
        store: &mut Store,
        visitor: &mut dyn Visitor,
    ) -> Body {
        let Some(mut flight) = self.in_flight.remove(&id) else {
            return Body::Unwanted;
        };
        if !matches!(head.status, 429 | 503) {
            politeness.handle_answer(now);
        }
        match head.judge(&flight.asked) {
            Answer::Body { length, .. } if flight.asked == Asked::Head => {
                self.compare(flight.task, head, length, store, visitor);
            }
            Answer::Same if let Some(known) = flight.task.doubted() => {
                // The listing shows another size: the file is compared without validators.
                (known.etag, known.date) = (None, None);
                let step = flight.task.step;
                self.again(step, flight.task);
            }
            Answer::Same => self.unchanged(&flight.task, store, visitor),
            Answer::Body { length, .. } if place::is_known(&flight, head, length) => {
                self.unchanged(&flight.task, store, visitor);
            }
            Answer::Body { .. } if flight.task.purpose == Purpose::List => {
                if self.begin_list(&flight.task, head, visitor) {
                    self.in_flight.insert(id, flight);
                    return Body::Wanted;
                }
            }
            Answer::Body {
                length: Some(length),
                ..
            } if flight.task.differs(length, store) => {
                self.again(Step::LookAgain { whole: false }, flight.task);
            }
            Answer::Body { at, length } => match begin(&mut flight, head, at, length, store) {
                Ok(()) => {
                    let rest = length.map(|length| length.saturating_sub(at));
                    self.counts.take_left(flight.task.left);
                    flight.task.left = rest.or(flight.task.left);
                    self.counts.add_left(flight.task.left);
                    self.in_flight.insert(id, flight);
                    return Body::Wanted;
                }
                Err(cause) => self.give_up(&flight.task, &cause, visitor),
            },
            Answer::Later => {
                politeness.handle_over();
                let cause = Cause::Status(head.status);
                self.failed(now, flight.task, head.failed(), cause, politeness, visitor);
                return Body::Unwanted;
            }
            Answer::StartOver => self.again(Step::FetchWhole, flight.task),
            Answer::Complete => self.finish(flight, store, visitor),
            Answer::Redirect => self.redirect(flight.task, head, store, visitor),
            // Some servers refuse HEAD for files that they have.
            Answer::Refused if flight.asked == Asked::Head && head.status != 404 => {
                self.differs(flight.task, store, visitor);
            }
            Answer::Refused => self.give_up(&flight.task, &Cause::Status(head.status), visitor),
        }
        politeness.handle_over();
        Body::Unwanted
    }

    /// A part of a wanted body arrived. Returns whether the rest is wanted.
    pub(super) fn handle_data(
        &mut self,
        id: FetchId,
        bytes: &[u8],
        politeness: &mut Politeness,
        store: &mut Store,
        visitor: &mut dyn Visitor,
    ) -> Body {
        let Some(flight) = self.in_flight.get_mut(&id) else {
            return Body::Unwanted;
        };
        if flight.task.purpose == Purpose::List {
            return self.list_data(id, bytes, politeness, store);
        }
        let appended = append(flight, bytes, store);
        if let Some(Cause::Download(Fault::Length { received, .. })) = appended
            && flight.task.differs(received, store)
            && let Some(flight) = self.in_flight.remove(&id)
        {
            politeness.handle_over();
            self.again(Step::LookAgain { whole: true }, flight.task);
            return Body::Unwanted;
        }
        let Some(flight) = self.in_flight.get_mut(&id) else {
            return Body::Unwanted;
        };
        let Some(cause) = appended else {
            let came = bytes.len() as u64;
            self.counts.bytes += came;
            self.counts.take_left(flight.task.left);
            flight.task.left = flight.task.left.map(|left| left.saturating_sub(came));
            self.counts.add_left(flight.task.left);
            return Body::Wanted;
        };
        if let Some(flight) = self.in_flight.remove(&id) {
            politeness.handle_over();
            self.give_up(&flight.task, &cause, visitor);
        }
        Body::Unwanted
    }

    /// A wanted body has ended.
    pub(super) fn handle_end(
        &mut self,
        now: Instant,
        id: FetchId,
        politeness: &mut Politeness,
        store: &mut Store,
        visitor: &mut dyn Visitor,
    ) {
        let Some(flight) = self.in_flight.remove(&id) else {
            return;
        };
        politeness.handle_over();
        politeness.handle_body_end();
        if flight.task.purpose == Purpose::List {
            return self.list_read(&flight.task.wanted.url, Some(&flight.text), store);
        }
        let came = flight
            .partial
            .as_ref()
            .map_or(0, |partial| partial.length());
        if let Some(length) = flight.length.filter(|length| came < *length) {
            // A server may send less than was asked for (RFC 9110 §15.3.7).
            let cause = wrong_length(SizeRange::exact(length), came);
            let failed = Failed::new(cause.class(), FailureScope::Request);
            return self.go_on(now, flight, failed, cause, politeness, visitor);
        }
        let needs_size = store.rules.strict_sizes || flight.length.is_none();
        let listed = flight.task.wanted.size.filter(|_| needs_size);
        match listed.filter(|size| came < size.lo) {
            Some(_) if flight.task.differs(came, store) => {
                self.again(Step::LookAgain { whole: true }, flight.task);
            }
            Some(size) => self.give_up(&flight.task, &wrong_length(size, came), visitor),
            None => self.finish(flight, store, visitor),
        }
    }

    /// A request failed, or a wanted body.
    pub(super) fn handle_failure(
        &mut self,
        now: Instant,
        id: FetchId,
        failure: Failure,
        politeness: &mut Politeness,
        visitor: &mut dyn Visitor,
    ) {
        let Some(flight) = self.in_flight.remove(&id) else {
            return;
        };
        politeness.handle_over();
        if let Step::LookAgain { whole } = flight.task.step {
            // What the listing says now stays unknown.
            return self.again(Step::after_look(whole), flight.task);
        }
        let scope = match failure.scope {
            // A failure of another host says nothing about this host.
            FailureScope::Host if flight.task.is_elsewhere() => FailureScope::Request,
            FailureScope::HostFinal if flight.task.is_elsewhere() => FailureScope::Final,
            scope => scope,
        };
        let failed = Failed::new(failure.cause.class(), scope);
        self.go_on(now, flight, failed, failure.cause, politeness, visitor);
    }
}

impl Downloads {
    /// Gives up all files for this cause, because nothing more can be fetched.
    pub(super) fn abandon(&mut self, cause: &Cause, visitor: &mut dyn Visitor) {
        let in_flight = std::mem::take(&mut self.in_flight);
        let in_flight = in_flight.into_values().map(|flight| flight.task);
        let blocked = std::mem::take(&mut self.blocked);
        for task in in_flight.chain(self.queue.take_all()).chain(blocked) {
            self.give_up(&task, cause, visitor);
        }
    }

    /// Queues the next step for a file, without a pause.
    fn again(&mut self, step: Step, mut task: Task) {
        task.step = step;
        task.attempts.discount();
        self.queue.push_next(task);
    }

    /// Compares the existing file with the head of the server's file.
    fn compare(
        &mut self,
        task: Task,
        head: &Head<'_>,
        length: Option<u64>,
        store: &Store,
        visitor: &mut dyn Visitor,
    ) {
        let Step::Compare(metadata) = task.step else {
            return self.again(Step::Fetch, task);
        };
        let modified = head.modified().and_then(seconds);
        let same_length = length.is_none_or(|length| length == metadata.length);
        let same_time = match modified {
            Some(modified) => modified == metadata.modified,
            None => !task.wanted.is_newer_than(metadata),
        };
        // Without length and time, the files cannot be compared.
        let is_told = length.is_some() || modified.is_some();
        if same_length && same_time && is_told {
            self.saved(&task, metadata.length, How::Kept, store, visitor);
        } else {
            self.differs(task, store, visitor);
        }
    }

    fn differs(&mut self, task: Task, store: &Store, visitor: &mut dyn Visitor) {
        if store.rules.overwrite || task.known.is_some() {
            return self.again(Step::Fetch, task);
        }
        let path = store.to.root.path_of(&task.name);
        self.give_up(&task, &Cause::Download(Fault::Exists(path)), visitor);
    }

    fn redirect(
        &mut self,
        mut task: Task,
        head: &Head<'_>,
        store: &Store,
        visitor: &mut dyn Visitor,
    ) {
        let to = if task.redirects < self.policy.limits.redirects {
            redirect_target(&task, head.location, store)
        } else {
            Err(Cause::TooManyRedirects(self.policy.limits.redirects))
        };
        match to {
            Ok(to) => {
                task.redirects += 1;
                task.location = Some(to);
                let step = task.step;
                self.again(step, task);
            }
            Err(cause) => self.give_up(&task, &cause, visitor),
        }
    }

    fn finish(&mut self, mut flight: ActiveDownload, store: &mut Store, visitor: &mut dyn Visitor) {
        if flight.partial.is_none() {
            return self.again(Step::FetchWhole, flight.task);
        }
        match place::place(&mut flight, store) {
            Ok(Placed { length, how }) => self.saved(&flight.task, length, how, store, visitor),
            Err(cause) => self.give_up(&flight.task, &cause, visitor),
        }
    }

    /// The existing file is the one of the server.
    fn unchanged(&mut self, task: &Task, store: &Store, visitor: &mut dyn Visitor) {
        if let Step::Compare(metadata) = task.step {
            self.saved(task, metadata.length, How::Kept, store, visitor);
        }
    }

    /// In a dry run, the file would be downloaded.
    fn planned(&mut self, task: &Task, store: &Store, visitor: &mut dyn Visitor) {
        self.counts.take_left(task.left);
        self.counts.wanted -= 1;
        visitor.planned(&task.wanted.url, &store.to.root.path_of(&task.name));
    }

    fn saved(
        &mut self,
        task: &Task,
        length: u64,
        how: How,
        store: &Store,
        visitor: &mut dyn Visitor,
    ) {
        self.note_over(&task.wanted.url);
        self.counts.take_left(task.left);
        match how {
            How::Kept => self.counts.kept += 1,
            How::Fetched => self.counts.saved += 1,
            How::Resumed(_) => {
                self.counts.saved += 1;
                self.counts.resumed += 1;
            }
        }
        visitor.downloaded(Saved {
            url: &task.wanted.url,
            file: &store.to.root.path_of(&task.name),
            length,
            how,
            listed: task.wanted.size.filter(|size| !size.contains(length)),
        });
    }

    fn give_up(&mut self, task: &Task, cause: &Cause, visitor: &mut dyn Visitor) {
        let url = task.wanted.url.as_str();
        if task.purpose == Purpose::List {
            return self.list_failed(url, cause, visitor);
        }
        self.counts.take_left(task.left);
        if let Some(journal) = &mut self.journal {
            journal.push(Change::Failed(url.to_owned()));
        }
        self.counts.failed += 1;
        visitor.not_downloaded(url, cause);
    }

    fn note_over(&mut self, url: &str) {
        if let Some(journal) = &mut self.journal {
            journal.push(Change::Over(url.to_owned()));
        }
    }

    /// Resumes an incomplete download. After enough progress, attempts are counted anew.
    fn go_on(
        &mut self,
        now: Instant,
        mut flight: ActiveDownload,
        failed: Failed,
        cause: Cause,
        politeness: &mut Politeness,
        visitor: &mut dyn Visitor,
    ) {
        let came = flight
            .partial
            .as_ref()
            .map_or(0, |partial| partial.length());
        if came.saturating_sub(flight.begun_at) >= PROGRESS {
            flight.task.attempts.start_over(now);
        }
        self.failed(now, flight.task, failed, cause, politeness, visitor);
    }

    /// Handles a failed request for a file: retries it, or gives it up for this cause, alone or with all files that
    /// wait.
    fn failed(
        &mut self,
        now: Instant,
        mut task: Task,
        failed: Failed,
        cause: Cause,
        politeness: &mut Politeness,
        visitor: &mut dyn Visitor,
    ) {
        let others = match is_stuck(&task.attempts) {
            true => self.others(),
            false => Others::default(),
        };
        match decide(now, failed, &mut task.attempts, others, politeness) {
            Decision::RetryAt(due) => self.queue.postpone(due, task),
            Decision::GiveUp(reason) => {
                let cause = cause.because(reason, politeness.retry_policy());
                self.give_up(&task, &cause, visitor);
            }
            Decision::GiveUpHost(reason) => {
                let cause = cause.because(reason, politeness.retry_policy());
                self.give_up(&task, &cause, visitor);
                for task in self.queue.take_all() {
                    self.give_up(&task, &cause, visitor);
                }
            }
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
