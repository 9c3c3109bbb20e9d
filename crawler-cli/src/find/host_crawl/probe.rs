//! Entries that their listing leaves undecided: the server is asked about a file by `HEAD`, a directory is read. And
//! what time zone the server's listings are in, which the first such file tells.

use std::mem;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::vec;

use super::messages::{FetchKind, Reply};
use super::task::{Task, TaskKind, UndecidedEntry};
use super::{Answered, Finding, HostCrawl, Item, Sink};
use crate::find::cause::Cause;
use crate::find::expr::{Memo, Verdict};
use crate::find::found::Kind;
use crate::find::listing::{Directories, Entry, EntryKind, Shape};
use crate::find::path;
use crate::find::range::{ListedTime, SizeRange, TimeRange};

/// A listing that was read, with the entries that were not looked at yet.
#[derive(Debug)]
pub(super) struct PartialListing {
    pub(super) task: Task,
    pub(super) shape: Shape,
    /// How its directories are asked for.
    pub(super) directories: Directories,
    pub(super) entries: vec::IntoIter<Entry>,
    /// As many as there were in the journal.
    pub(super) entries_len: usize,
    pub(super) is_written: bool,
    /// The entry before them, which waits for the time zone, and how far the expression has come with it.
    pub(super) first: Option<(Entry, Memo)>,
}

/// What is known about the clock of a server's listings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Clock {
    /// Nothing, and nobody wanted to know.
    Unknown,
    /// A request is under way that will tell.
    Asked,
    /// It is so many seconds ahead of UTC.
    Ahead(i64),
    /// The server does not tell.
    Silent,
}

impl Clock {
    pub(super) fn ahead(self) -> Option<i64> {
        match self {
            Self::Ahead(seconds) => Some(seconds),
            Self::Unknown | Self::Asked | Self::Silent => None,
        }
    }

    /// After an answer that was to tell.
    pub(super) fn unanswered(self) -> Self {
        match self {
            Self::Asked => Self::Silent,
            known => known,
        }
    }
}

/// What a server said about one URL, beyond its listing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeResult {
    pub(super) status: Option<u16>,
    pub(super) size: Option<SizeRange>,
    pub(super) modified: Option<i64>,
}

impl ProbeResult {
    /// By the answer to a request of that kind.
    pub(super) fn by(reply: &Reply<'_>, fetch: FetchKind) -> Self {
        let text = |value: Option<&'_ [u8]>| {
            value.and_then(|value| str::from_utf8(value).ok().map(str::to_owned))
        };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let size = match (fetch, reply.status) {
            // A coding changes the length.
            _ if reply.content_encoding.is_some() => None,
            (FetchKind::First, 206) => {
                text(reply.content_range).and_then(|range| number(range.rsplit_once('/')?.1))
            }
            (FetchKind::First | FetchKind::Probe, 200) => {
                text(reply.content_length).and_then(|n| number(&n))
            }
            _ => None,
        };
        let modified = text(reply.last_modified)
            .and_then(|date| httpdate::parse_http_date(date.trim()).ok())
            .map(seconds);
        Self {
            status: Some(reply.status),
            size: size.map(SizeRange::exact),
            modified,
        }
    }

    /// By an answer that is about something else.
    pub(super) fn nothing(reply: &Reply<'_>) -> Self {
        Self {
            status: Some(reply.status),
            ..Self::default()
        }
    }
}

fn seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
    }
}

impl HostCrawl {
    /// Looks at the entries of a directory until one of them must wait for an answer.
    pub(super) fn entries(&mut self, now: Instant, mut held: PartialListing, sink: Sink<'_>) {
        let told = Answered::of(now, &held.task);
        if let Some((entry, memo)) = held.first.take()
            && let Some(waiting) = self.file(now, &held, entry, memo, told, sink)
        {
            held.first = Some(waiting);
            return self.hold(held);
        }
        while self.undecided < MOST_UNDECIDED {
            let Some(entry) = held.entries.next() else {
                self.counts.directories_done += u64::from(held.task.kind != TaskKind::Page);
                return;
            };
            match entry.kind {
                EntryKind::Directory => {
                    let mut task = held.task.below(&entry.segment, TaskKind::Directory);
                    task.target.push('/');
                    if let Some(query) = held.directories.query_of(&entry) {
                        task.path = Some(std::mem::replace(&mut task.target, query));
                    }
                    let open = UndecidedEntry::of(&entry, Memo::new(), held.shape);
                    self.directory(now, task, open, told, sink);
                }
                EntryKind::Unknown => {
                    let task = held
                        .task
                        .below(&entry.segment, TaskKind::Unknown(held.shape));
                    let limit = self.policy.limits.directories;
                    if sink(Finding::Named(&self.url(&task.target))) == Verdict::Prune {
                        continue;
                    }
                    if self.queue.ready().len() >= limit {
                        self.unread(&task.target, &Cause::TooManyDirectories(limit), sink);
                    } else if !self.is_allowed(&task.target) {
                        self.unread(&task.target, &Cause::Robots, sink);
                    } else {
                        self.queue(task);
                    }
                }
                EntryKind::File => {
                    self.counts.files += 1;
                    if let Some(waiting) = self.file(now, &held, entry, Memo::new(), told, sink) {
                        held.first = Some(waiting);
                        break;
                    }
                }
            }
        }
        self.hold(held);
    }

    /// A listed file; gives it back if it has to wait until the clock of the listings is known.
    fn file(
        &mut self,
        now: Instant,
        held: &PartialListing,
        entry: Entry,
        mut memo: Memo,
        told: Answered,
        sink: Sink<'_>,
    ) -> Option<(Entry, Memo)> {
        // Without a task: most files are decided at once.
        let mut target = mem::take(&mut self.spelled);
        target.clear();
        target.push_str(held.task.directory());
        target.push_str(&entry.segment);
        let found = self.has_sitemaps.then(|| path::canonical(&target));
        if found.as_deref().is_some_and(|found| self.is_known(found)) {
            self.spelled = target;
            self.counts.files -= 1;
            return None;
        }
        let item = Item {
            depth: held.task.depth + 1,
            listing: Some(held.shape),
            size: entry.size,
            modified: self.placed(entry.modified),
            answered: told,
            ..Item::of(&target, Kind::File, held.task.start)
        };
        let local = entry.modified.is_some_and(|time| !time.utc);
        let verdict = match self.clock {
            // The first one tells it to all.
            Clock::Unknown | Clock::Asked if local && self.policy.clock => Verdict::Head,
            _ => self.look(item, &mut memo, sink),
        };
        self.spelled = target;
        let waits = verdict == Verdict::Head && self.clock == Clock::Asked && local;
        if let Some(found) = found.filter(|_| !waits) {
            self.know(&found);
        }
        if verdict != Verdict::Head {
            return None;
        }
        match self.clock {
            Clock::Asked if local => return Some((entry, memo)),
            Clock::Unknown if local => self.clock = Clock::Asked,
            _ => {}
        }
        let mut task = held.task.below(&entry.segment, TaskKind::File);
        task.open = Some(Box::new(UndecidedEntry::of(&entry, memo, held.shape)));
        self.ask_about(now, task, sink);
        None
    }

    /// The server is to tell more about a file.
    pub(super) fn ask_about(&mut self, now: Instant, task: Task, sink: Sink<'_>) {
        self.undecided += 1;
        match self.is_allowed(&task.target) {
            true => self.queue(task),
            false => self.give_up(now, task, &Cause::Robots, sink),
        }
    }

    /// The server was asked about a file, and this is what it said.
    pub(super) fn inspected(
        &mut self,
        now: Instant,
        mut task: Task,
        told: ProbeResult,
        sink: Sink<'_>,
    ) {
        if let Some(open) = &task.open
            && let Some(listed) = open.modified.filter(|time| !time.utc)
            && let Some(modified) = told.modified
            && self.clock.ahead().is_none()
        {
            self.clock = ahead(listed, modified).map_or(Clock::Silent, Clock::Ahead);
        }
        self.settle(now, &mut task, Kind::File, told, None, sink);
    }

    /// Nothing more will be known of what the expression has left open, or of a start: it looks for the last time.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        task: &mut Task,
        kind: Kind,
        told: ProbeResult,
        empty: Option<bool>,
        sink: Sink<'_>,
    ) -> Verdict {
        let open = task.open.take();
        if task.kind == TaskKind::File {
            self.undecided = self.undecided.saturating_sub(1);
            self.clock = self.clock.unanswered();
        }
        let (mut memo, listing, size, modified) = match open {
            Some(open) => (open.memo, open.listing, open.size, open.modified),
            None => (Memo::new(), task.shape(), None, None),
        };
        let answered = Answered {
            status: told.status,
            ..Answered::of(now, task)
        };
        let item = Item {
            depth: task.depth,
            listing,
            size: told.size.or(size).filter(|_| kind == Kind::File),
            modified: told
                .modified
                .map(TimeRange::exact)
                .or(self.placed(modified)),
            asked: true,
            empty,
            answered,
            ..Item::of(&task.target, kind, task.start)
        };
        self.look(item, &mut memo, sink)
    }

    /// Goes on with the listings that waited, if they can go on.
    pub(super) fn resume(&mut self, now: Instant, sink: Sink<'_>) {
        for _ in 0..self.partial.len() {
            if !self.can_resume() {
                return;
            }
            if let Some(held) = self.partial.pop_front() {
                let outer = self.set_aside();
                self.begin(held.task.number);
                self.entries(now, held, sink);
                self.end();
                self.take_up(outer);
            }
        }
    }

    /// Whether listings that wait can go on.
    pub(super) fn can_resume(&self) -> bool {
        self.clock != Clock::Asked && self.undecided < MOST_UNDECIDED / 2
    }

    /// The entries that no answer will come for any more, as their listings have them.
    pub(super) fn give_up_held(&mut self, now: Instant, sink: Sink<'_>) {
        self.clock = self.clock.unanswered();
        self.resume(now, sink);
    }

    /// The moments that a listed time can stand for.
    pub(super) fn placed(&self, time: Option<ListedTime>) -> Option<TimeRange> {
        time.map(|time| time.range(self.clock.ahead()))
    }
}

/// What the clock of a listing is ahead of UTC, by a file's time in both: a quarter of an hour more or less, as zones
/// are. `None` if that cannot be: then the file has changed meanwhile.
fn ahead(listed: ListedTime, modified: i64) -> Option<i64> {
    let ahead = listed.seconds.checked_sub(modified)?;
    let zone = (ahead + QUARTER / 2).div_euclid(QUARTER) * QUARTER;
    let fits = (0..i64::from(listed.span.max(1))).contains(&(modified + zone - listed.seconds));
    (fits && (-12 * HOUR..=14 * HOUR).contains(&zone)).then_some(zone)
}

const HOUR: i64 = 60 * 60;
const QUARTER: i64 = 15 * 60;

/// Files that may wait for an answer before no more listings are looked at.
const MOST_UNDECIDED: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_quarters_of_an_hour() {
        let listed = |seconds, span| ListedTime {
            seconds,
            span,
            utc: false,
        };
        for (time, modified, expected) in [
            (listed(3600, 60), 0, Some(3600)),
            (listed(3600, 60), 59, Some(3600)),
            (listed(3600, 60), 60, None),
            (listed(0, 60), 3600, Some(-3600)),
            (listed(20_700, 1), 0, Some(20_700)),
            (listed(20_701, 1), 0, None),
            (listed(60, 60), 61, Some(0)),
            (listed(15 * 3600, 60), 0, None),
        ] {
            assert_eq!(ahead(time, modified), expected, "{time:?} {modified}");
        }
    }
}
