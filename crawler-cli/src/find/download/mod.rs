//! The downloads of one host: which file is next, what a response means, and when to retry. No sockets and no clock:
//! like the host crawl, it speaks `poll_*` and `handle_*`, so that both share the connections to the host. Reads and
//! writes only the downloaded files.
//!
//! A file is written to a partial file, and renamed when it is complete: when its length agrees with the head of the
//! response and with the listing. An interrupted download is resumed, in this or a later run, if a strong validator
//! shows that the server's file is unchanged; otherwise it starts over. Existing files are compared with the server's
//! and replaced only on demand.

use std::collections::HashMap;
use std::ops::Add;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use url::Url;

use super::cause::{Cause, Failure};
use super::fault::Fault;
use super::found::{Found, How, Saved};
use super::host_crawl::{Counts, FetchId};
use super::path;
use super::policy::Policy;
use super::range::{Precision, SizeRange, TimeRange};
use super::visitor::Visitor;
use crate::crawl::failure::FailureScope;
use crate::crawl::politeness::Politeness;
use crate::crawl::retry::{Decision, Failed, Others, decide, is_stuck};
use crate::crawl::retry_queue::{Attempts, RetryQueue};
use crate::crawl::work::Body;

mod answer;
mod checks;
mod disk;
mod lists;
mod look;
mod mirror;
mod names;
mod place;
mod store;
mod sums;
#[cfg(test)]
mod tests;

use answer::{Answer, Asked};
pub(super) use answer::{Head, validators};
use checks::Lookup;
use disk::{Claim, FileMetadata, Partial};
use mirror::Known;
pub(super) use mirror::{About, Outcome, Sighting};
pub use mirror::{MirrorEvent, MostDeleted, Refusal};
pub(super) use names::Base;
use names::Name;
use place::Placed;
pub(super) use store::{Destination, FileRules, Store};
pub(super) use sums::is_list;
use sums::{Sum, Summing};

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

/// The progress that the next run continues.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Tally {
    counts: DownloadCounts,
    requests: u64,
    retries: u64,
}

impl Tally {
    /// Takes back that files have failed: they are asked for again. Returns whether there were any.
    pub(super) fn retry(&mut self) -> bool {
        std::mem::take(&mut self.counts.failed) > 0
    }

    /// Files and bytes.
    pub(super) fn counts(&self) -> DownloadCounts {
        self.counts
    }

    /// The requests for them.
    pub(super) fn requests(&self) -> Counts {
        Counts {
            requests: self.requests,
            retries: self.retries,
            unread: self.counts.failed,
            ..Counts::default()
        }
    }
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

/// A file to download.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) url: String,
    pub(super) size: Option<SizeRange>,
    pub(super) modified: Option<TimeRange>,
}

impl Wanted {
    pub(super) fn of(found: &Found<'_>) -> Self {
        Self {
            url: found.url.to_owned(),
            size: found.size,
            modified: found.modified,
        }
    }

    /// Whether the listing shows for certain that the server's file was changed after the existing one was written.
    fn is_newer_than(&self, existing: FileMetadata) -> bool {
        let modified = self.modified;
        modified.is_some_and(|time| time.lo > existing.modified)
    }
}

/// The download of one file.
#[derive(Debug)]
struct Task {
    wanted: Wanted,
    purpose: Purpose,
    name: Name,
    step: Step,
    /// What the mirror knows about the existing file, if an earlier run has put it there.
    known: Option<Box<Known>>,
    /// The checksum that the file has to have, once that is known.
    sum: Option<Option<Sum>>,
    /// Bytes to come, if known; included in the sum of the counts.
    left: Option<u64>,
    /// The URL to which redirects led; replaces the URL of the file.
    location: Option<Url>,
    attempts: Attempts,
    redirects: u32,
    /// The listing was looked at again.
    has_looked: bool,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Purpose {
    /// A file that goes to disk.
    File,
    /// A list of checksums, which is needed for files.
    List,
}

impl Task {
    fn new(wanted: Wanted, purpose: Purpose, name: Name, step: Step) -> Self {
        let left = match purpose {
            Purpose::File => wanted.size.map(SizeRange::middle),
            Purpose::List => None,
        };
        Self {
            wanted,
            purpose,
            name,
            step,
            known: None,
            sum: None,
            left,
            location: None,
            attempts: Attempts::default(),
            redirects: 0,
            has_looked: false,
        }
    }

    /// The URL to request.
    fn url(&self) -> &str {
        let location = self.location.as_ref();
        location.map_or(&self.wanted.url, Url::as_str)
    }

    /// What is known about the existing file, if that has not the size in the listing: then it has changed, or one of both
    /// is wrong.
    fn doubted(&mut self) -> Option<&mut Known> {
        let Step::Compare(existing) = self.step else {
            return None;
        };
        let size = self.wanted.size?;
        let known = self.known.as_deref_mut();
        known.filter(|_| !size.contains(existing.length))
    }

    /// Whether redirects led to another host.
    fn is_elsewhere(&self) -> bool {
        let location = self.location.as_ref();
        location.is_some_and(|to| {
            let from = Url::parse(&self.wanted.url);
            from.is_ok_and(|from| from.origin() != to.origin())
        })
    }
}

/// The next step for a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// Take the name.
    Begin,
    /// Look at what exists on disk.
    Look,
    /// Ask whether the server's file is the existing one.
    Compare(FileMetadata),
    /// Fetch the missing part.
    Fetch,
    /// Fetch the whole file.
    FetchWhole,
    /// Look at the listing again, because the file has another size; then fetch the whole file, or what is missing.
    LookAgain { whole: bool },
}

/// A request in flight.
#[derive(Debug)]
struct ActiveDownload {
    task: Task,
    asked: Asked,
    partial: Option<Box<Partial>>,
    /// The length of the partial file at the time of the request.
    begun_at: u64,
    /// The length of the whole file, from the head of the response.
    length: Option<u64>,
    modified: Option<SystemTime>,
    /// The validators in the head of the response.
    etag: Option<String>,
    date: Option<String>,
    /// The checksum of what has arrived, if it is needed.
    sum: Option<Summing>,
    /// What has arrived of a list of checksums.
    text: Vec<u8>,
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

/// The progress of downloads.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DownloadCounts {
    /// Files to download.
    pub wanted: u64,
    /// Files downloaded, in one piece or resumed.
    pub saved: u64,
    /// Downloaded files that were resumed after an interruption, in this run or an earlier one.
    pub resumed: u64,
    /// Files that existed already.
    pub kept: u64,
    /// Files given up, each reported as unread.
    pub failed: u64,
    /// Files being downloaded.
    pub under_way: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Bytes to come, as far as the listing or the head of a response shows them; may be an estimate.
    pub left: u64,
    /// Files to come whose size is not known yet.
    pub unsized_left: u64,
    /// Files of a mirror that were deleted, because they are gone on the server.
    #[serde(default)]
    pub deleted: u64,
    /// Files of a mirror that are gone on the server and were not deleted.
    #[serde(default)]
    pub not_deleted: u64,
}

impl DownloadCounts {
    /// Files that are complete on disk or given up.
    pub fn over(&self) -> u64 {
        self.saved + self.kept + self.failed
    }

    fn add_left(&mut self, left: Option<u64>) {
        match left {
            Some(bytes) => self.left = self.left.saturating_add(bytes),
            None => self.unsized_left += 1,
        }
    }

    fn take_left(&mut self, left: Option<u64>) {
        match left {
            Some(bytes) => self.left = self.left.saturating_sub(bytes),
            None => self.unsized_left = self.unsized_left.saturating_sub(1),
        }
    }
}

impl Add for DownloadCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wanted: self.wanted + other.wanted,
            saved: self.saved + other.saved,
            resumed: self.resumed + other.resumed,
            kept: self.kept + other.kept,
            failed: self.failed + other.failed,
            under_way: self.under_way + other.under_way,
            bytes: self.bytes + other.bytes,
            left: self.left.saturating_add(other.left),
            unsized_left: self.unsized_left + other.unsized_left,
            deleted: self.deleted + other.deleted,
            not_deleted: self.not_deleted + other.not_deleted,
        }
    }
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

/// The result of preparing a file.
enum Prepared {
    Ask(Asked, Option<Box<Partial>>),
    /// The file exists, with this length in bytes.
    Kept(u64),
    /// The file was added before.
    Repeated,
    /// This list of checksums has to be read first.
    Needs(String),
    /// Something is in the way that may be deleted.
    Blocked,
    /// In a dry run: the file would be fetched.
    Planned,
}

fn prepare(task: &mut Task, store: &mut Store) -> Result<Prepared, Cause> {
    if let Some(kind) = store.broken {
        return Err(store.failed(&task.name, kind.into()));
    }
    if task.purpose == Purpose::List {
        return Ok(Prepared::Ask(Asked::Whole, None));
    }
    if task.step == Step::Begin {
        match store
            .claims
            .claim(&store.to.root, &task.name, &task.wanted.url)
        {
            Claim::Granted => task.step = Step::Look,
            Claim::Repeated => return Ok(Prepared::Repeated),
            Claim::Taken => {
                let path = store.to.root.path_of(&task.name);
                return Err(Cause::Download(Fault::NameTaken(path)));
            }
        }
    }
    if task.step == Step::Look {
        match place::look(task, store)? {
            place::Looked::Go(step) => task.step = step,
            place::Looked::Kept(length) => return Ok(Prepared::Kept(length)),
            // What is in the way would be deleted.
            place::Looked::Blocked if store.rules.dry => return Ok(Prepared::Planned),
            place::Looked::Blocked => return Ok(Prepared::Blocked),
        }
    }
    let asked = match task.step {
        Step::Compare(found) if !store.rules.dry && place::has_validators(task, found) => {
            Asked::IfChanged
        }
        Step::Compare(_) => return Ok(Prepared::Ask(Asked::Head, None)),
        _ => Asked::Whole,
    };
    if store.rules.dry {
        return Ok(Prepared::Planned);
    }
    if store.rules.checksums && task.sum.is_none() {
        match store.checks.look_up(&task.wanted.url) {
            Lookup::Known(sum) => task.sum = Some(sum),
            Lookup::Ask(list) => return Ok(Prepared::Needs(list)),
            Lookup::Unread(list) => {
                let fault = Fault::Unchecked(format!("{list} (it has no SHA-256)"));
                return Err(Cause::Download(fault));
            }
        }
    }
    if asked == Asked::IfChanged || task.step == Step::FetchWhole {
        return Ok(Prepared::Ask(asked, None));
    }
    let partial = store.to.root.find_partial(&task.name, &task.wanted.url);
    let partial = partial.map_err(|error| store.not_opened(&task.name, error))?;
    let rest = partial.as_ref().and_then(|partial| partial.rest());
    let asked = match rest {
        Some((at, note)) => Asked::Rest(at, note.clone()),
        None => Asked::Whole,
    };
    Ok(Prepared::Ask(asked, partial.map(Box::new)))
}

/// Whether the file agrees with the listing: the size exactly, and the time at least to the minute.
fn is_as_listed(wanted: &Wanted, metadata: FileMetadata) -> bool {
    let same_size = wanted.size.and_then(SizeRange::known) == Some(metadata.length);
    same_size
        && wanted.modified.is_some_and(|time| {
            time.precision() <= Precision::Minute
                && (time.lo..=time.hi).contains(&metadata.modified)
        })
}

/// Prepares the file for a body that starts at offset `at`.
fn begin(
    flight: &mut ActiveDownload,
    head: &Head<'_>,
    at: u64,
    length: Option<u64>,
    store: &mut Store,
) -> Result<(), Cause> {
    let task = &flight.task;
    if let Some(coding) = head.coding
        && !is_own_coding(coding, task.name.file())
    {
        return Err(Cause::Encoded(coding.escape_ascii().to_string()));
    }
    if let (true, Some(size), Some(length)) = (store.rules.strict_sizes, task.wanted.size, length)
        && !(size.lo..=size.hi).contains(&length)
    {
        return Err(wrong_length(size, length));
    }
    if at == 0 {
        flight.begun_at = 0;
        let note = head.note(&task.wanted.url);
        match &mut flight.partial {
            Some(partial) => {
                let begun = partial.start_over(note);
                begun.map_err(|error| store.failed(&task.name, error))?;
            }
            None => {
                let partial = store.to.root.create(&task.name, note);
                let partial = partial.map_err(|error| store.not_opened(&task.name, error))?;
                flight.partial = Some(Box::new(partial));
            }
        }
    }
    flight.length = length;
    flight.modified = head.modified();
    flight.etag = head.tag();
    flight.date = head.date_text();
    place::begin_sum(flight).map_err(|error| store.failed(&flight.task.name, error))
}

/// Appends bytes to the partial file. Returns why the download cannot continue, if it cannot.
fn append(flight: &mut ActiveDownload, bytes: &[u8], store: &mut Store) -> Option<Cause> {
    let partial = flight.partial.as_mut()?;
    let came = partial.length() + bytes.len() as u64;
    // Without a length of its own, an answer could go on for ever.
    let needs_size = store.rules.strict_sizes || flight.length.is_none();
    if needs_size && let Some(size) = flight.task.wanted.size.filter(|size| came > size.hi) {
        return Some(wrong_length(size, came));
    }
    let written = partial.write(bytes);
    if let Some(sum) = &mut flight.sum {
        sum.update(bytes);
    }
    written
        .err()
        .map(|error| store.failed(&flight.task.name, error))
}

fn redirect_target(task: &Task, location: Option<&[u8]>, store: &Store) -> Result<Url, Cause> {
    let reference = location.and_then(|location| str::from_utf8(location).ok());
    let from = match &task.location {
        Some(location) => Ok(location.clone()),
        None => Url::parse(&task.wanted.url),
    };
    let from = from.map_err(|_| Cause::NoLocation)?;
    let to = reference.and_then(|reference| from.join(reference).ok());
    let mut to = to.ok_or(Cause::NoLocation)?;
    to.set_fragment(None);
    path::forget_credentials(&mut to);
    if let Err(why) = store.scope.judge_redirect(&to) {
        return Err(Cause::Download(Fault::Outside(to.into(), why)));
    }
    if store.rules.refuses_tls && to.scheme() == "https" {
        let text = "the file redirects to https, and the authorities for TLS cannot be read";
        return Err(Cause::Transfer(text.into()));
    }
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(Cause::Download(Fault::Unsafe(to.into())));
    }
    Ok(to)
}

/// Whether a content coding is that of the file itself: some servers send `gzip` for `x.tar.gz`. A coding that was
/// applied only for the transfer would yield another file.
fn is_own_coding(coding: &[u8], name: &[u8]) -> bool {
    let suffixes: &[&[u8]] = match coding.to_ascii_lowercase().as_slice() {
        b"identity" | b"" => return true,
        b"gzip" | b"x-gzip" => &[b"gz", b"tgz", b"svgz", b"taz"],
        b"compress" | b"x-compress" => &[b"Z", b"taZ"],
        b"br" => &[b"br"],
        b"zstd" => &[b"zst", b"tzst"],
        b"x-bzip2" | b"bzip2" => &[b"bz2", b"tbz2", b"tbz"],
        b"x-xz" | b"xz" => &[b"xz", b"txz"],
        _ => &[],
    };
    let extension = name.rsplit(|&byte| byte == b'.').next();
    extension.is_some_and(|extension| suffixes.contains(&extension))
}

fn wrong_length(announced: SizeRange, received: u64) -> Cause {
    Cause::Download(Fault::Length {
        announced,
        received,
    })
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
