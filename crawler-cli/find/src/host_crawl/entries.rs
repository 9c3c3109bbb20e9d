//! The entries of listings. If the expression cannot decide about a file, the server is asked with `HEAD`; such a
//! directory is read.

use super::HostCrawl;
use super::messages::{FetchKind, Reply};
use super::probes::PartialListing;
use super::task::{Task, TaskKind, UndecidedEntry};
use crate::cause::Cause;
use crate::expr::{Memo, Verdict};
use crate::found::{Found, Kind};
use crate::visitor::Turn;
use listing::range::{SizeRange, TimeRange};
use listing::{Entry, EntryKind};

/// What a server said about one URL, in addition to the listing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeResult {
    pub(super) status: Option<u16>,
    pub(super) size: Option<SizeRange>,
    pub(super) modified: Option<i64>,
}

impl ProbeResult {
    /// The facts in the reply to a request of this kind.
    pub(super) fn by(reply: &Reply<'_>, fetch: FetchKind) -> Self {
        let size = match (fetch, reply.status) {
            // The length of an encoded body is not the size of the file.
            _ if reply.content_encoding.is_some() => None,
            (FetchKind::First, 206) => reply.content_range().and_then(|(_, total)| total),
            (FetchKind::First | FetchKind::Probe, 200) => reply.length(),
            _ => None,
        };
        Self {
            status: Some(reply.status),
            size: size.map(SizeRange::exact),
            modified: reply.modified(),
        }
    }

    /// A reply about something else: only its status counts.
    pub(super) fn nothing(reply: &Reply<'_>) -> Self {
        Self {
            status: Some(reply.status),
            ..Self::default()
        }
    }
}

impl HostCrawl {
    /// Handles the entries of a directory until one of them has to wait for a reply.
    pub(super) fn entries(&mut self, turn: &mut Turn<'_>, mut held: PartialListing) {
        // An entry that has waited was counted before.
        let mut waited = held.memo.take();
        while waited.is_some() || self.probes.has_room() {
            let Some(entry) = held.entries.pop_front() else {
                self.counts.directories_done += u64::from(held.task.kind != TaskKind::Page);
                return;
            };
            if waited.is_none() {
                self.counts.files += u64::from(entry.kind == EntryKind::File);
            }
            let memo = waited.take().unwrap_or_default();
            if let Some((entry, memo)) = self.entry(turn, &held, entry, memo) {
                held.entries.push_front(entry);
                held.memo = Some(memo);
                break;
            }
        }
        self.journal.note_listing(&mut held);
        self.probes.hold(held);
    }

    /// Handles an entry. Returns the entry if it has to wait until the time zone of the listings is known.
    fn entry(
        &mut self,
        turn: &mut Turn<'_>,
        held: &PartialListing,
        entry: Entry,
        memo: Memo,
    ) -> Option<(Entry, Memo)> {
        match entry.kind {
            EntryKind::Directory => {
                let local = entry.modified.is_some_and(|time| !time.utc);
                if local && self.policy.clock && self.probes.is_zone_asked() {
                    return Some((entry, memo));
                }
                let mut task = held.task.below(&entry.segment, TaskKind::Directory);
                task.target.push('/');
                if let Some(query) = held.directories.query_of(&entry) {
                    task.path = Some(std::mem::replace(&mut task.target, query));
                }
                let open = UndecidedEntry::of(&entry, memo, held.shape);
                let found = held.task.shows(turn.now, Kind::Directory, task.depth);
                self.directory(turn, task, open, found);
            }
            EntryKind::Unknown => {
                let task = held
                    .task
                    .below(&entry.segment, TaskKind::Unknown(held.shape));
                let limit = self.policy.limits.directories;
                if self.queue.ready().len() >= limit {
                    self.unread(turn, &task.target, &Cause::TooManyDirectories(limit));
                } else if !self.is_allowed(&task.target) {
                    self.unread(turn, &task.target, &Cause::Robots);
                } else {
                    self.queue(task);
                }
            }
            EntryKind::File => return self.file(turn, held, entry, memo),
        }
        None
    }

    /// Handles a listed file. Returns the file if it has to wait until the time zone of the listings is known.
    fn file(
        &mut self,
        turn: &mut Turn<'_>,
        held: &PartialListing,
        entry: Entry,
        mut memo: Memo,
    ) -> Option<(Entry, Memo)> {
        // No task is created here: most files are decided at once.
        let mut target = self.spelling.take_buffer();
        target.push_str(held.task.directory());
        target.push_str(&entry.segment);
        let task = &held.task;
        let found = Found {
            listing: Some(held.shape),
            size: entry.size,
            modified: self.probes.placed(entry.modified),
            ..task.shows(turn.now, Kind::File, task.depth + 1)
        };
        let local = entry.modified.is_some_and(|time| !time.utc);
        let verdict = match local && self.policy.clock && self.probes.is_zone_open() {
            // One HEAD finds the time zone of the listings for all files.
            true => Verdict::Head,
            false => self.look(turn, &target, task.start, found, &mut memo),
        };
        self.spelling.give_back(target);
        if verdict != Verdict::Head {
            return None;
        }
        if local && self.probes.is_zone_asked() {
            return Some((entry, memo));
        }
        if local {
            self.probes.ask_zone();
        }
        let mut task = held.task.below(&entry.segment, TaskKind::File);
        task.open = Some(Box::new(UndecidedEntry::of(&entry, memo, held.shape)));
        self.ask_about(turn, task);
        None
    }

    /// Asks the server about a file.
    pub(super) fn ask_about(&mut self, turn: &mut Turn<'_>, task: Task) {
        self.probes.add_undecided();
        match self.is_allowed(&task.target) {
            true => self.queue(task),
            false => self.give_up(turn, task, &Cause::Robots),
        }
    }

    /// Nothing more will become known about an undecided entry or a start: the expression makes its final decision.
    pub(super) fn decide(
        &mut self,
        turn: &mut Turn<'_>,
        task: &mut Task,
        kind: Kind,
        probed: ProbeResult,
        empty: Option<bool>,
    ) -> Verdict {
        let mut open = task.take_open();
        if task.kind == TaskKind::File {
            self.probes.handle_decided();
        }
        let modified = probed.modified.map(TimeRange::exact);
        let found = Found {
            listing: open.listing,
            size: probed.size.or(open.size).filter(|_| kind == Kind::File),
            modified: modified.or(self.probes.placed(open.modified)),
            asked: true,
            empty,
            status: probed.status,
            ..task.shows(turn.now, kind, task.depth)
        };
        let verdict = self.look(turn, &task.target, task.start, found, &mut open.memo);
        if verdict == Verdict::Undecided {
            self.unread(turn, &task.target, &Cause::Undecided);
        }
        verdict
    }

    /// Continues the listings that waited, if possible.
    pub(super) fn resume(&mut self, turn: &mut Turn<'_>) {
        for _ in 0..self.probes.waiting() {
            let Some(held) = self.probes.take_resumable() else {
                return;
            };
            let outer = self.journal.begin(held.task.number);
            self.entries(turn, held);
            self.journal.end(outer);
        }
    }
}
