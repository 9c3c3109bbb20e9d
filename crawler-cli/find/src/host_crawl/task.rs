//! The tasks of a host crawl: URLs to request, with what is known about each.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::messages::FetchKind;
use crate::download::Wanted;
use crate::expr::Memo;
use crate::found::{Found, Kind};
use crate::link::Ancestors;
use crawl::retry_queue::Attempts;
use listing::range::{ListedTime, SizeRange};
use listing::{self, Entry, Shape};

/// One URL to request. The journal has it as JSON, without what another run finds out anew.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    /// Identifies the task in the journal; 0 until it is written there.
    #[serde(skip)]
    pub(super) number: u64,
    /// The request target: the percent-encoded path, for a further page with the query. The path of a directory ends in
    /// `/`.
    pub(super) target: String,
    /// The directory that the URL lists, if that differs from its path: the listings of a bucket differ in their
    /// queries.
    pub(super) path: Option<String>,
    pub(super) kind: TaskKind,
    /// Index of the innermost start that contains the URL.
    pub(super) start: usize,
    pub(super) depth: u32,
    #[serde(skip)]
    pub(super) attempts: Attempts,
    pub(super) redirects: u32,
    /// For a further page of a directory: how many pages in a row before it have no entries.
    pub(super) empty_pages: u32,
    /// The URL of the page that has the link to it.
    #[serde(with = "shared_text")]
    pub(super) from: Option<Arc<str>>,
    /// Whether `HEAD` failed; see [`FetchKind::First`].
    #[serde(skip)]
    pub(super) by_get: bool,
    /// For a link: whether it leads to a page, by its name or by the server's reply.
    pub(super) is_page: bool,
    /// For a link: whether its target was already reported, and only the links in it are needed.
    pub(super) is_found: bool,
    /// The page to ask first, which is expected to set a cookie.
    #[serde(skip)]
    pub(super) gate: Option<Box<Gate>>,
    /// A gate let the task pass: a further redirect is none.
    #[serde(skip)]
    pub(super) is_past_gate: bool,
    /// What the listing said, if the expression is undecided.
    pub(super) open: Option<Box<UndecidedEntry>>,
    /// What is known about a file to download.
    pub(crate) wanted: Option<Box<Wanted>>,
    /// Hashes of the listings of its ancestors; after redirects from elsewhere, of the URLs of the chain.
    pub(super) above: Ancestors,
}

impl Task {
    pub(super) fn new(target: String, kind: TaskKind, start: usize, depth: u32) -> Self {
        Self {
            number: 0,
            is_page: listing::is_page_name(&target),
            is_found: false,
            target,
            path: None,
            kind,
            start,
            depth,
            attempts: Attempts::default(),
            redirects: 0,
            empty_pages: 0,
            from: None,
            by_get: false,
            gate: None,
            is_past_gate: false,
            open: None,
            wanted: None,
            above: Ancestors::default(),
        }
    }

    /// A file to download. `target`: its request target.
    pub(super) fn of_file(target: String, wanted: Wanted) -> Self {
        Self {
            wanted: Some(Box::new(wanted)),
            ..Self::new(target, TaskKind::Wanted, 0, 0)
        }
    }

    /// Reads a task of the journal.
    ///
    /// # Errors
    /// The text, if it is not a task.
    pub(super) fn parse(number: u64, text: &str) -> Result<Self, String> {
        let task: Self = serde_json::from_str(text).map_err(|_| text.to_owned())?;
        Ok(Self { number, ..task })
    }

    /// The kind of the next request. `heads`: the server supports `HEAD`.
    pub(super) fn fetch_kind(&self, heads: bool) -> FetchKind {
        match self.kind {
            _ if self.gate.is_some() => FetchKind::Page,
            TaskKind::Robots => FetchKind::Robots,
            TaskKind::Link if self.is_page => FetchKind::Page,
            TaskKind::Start | TaskKind::Directory | TaskKind::Page | TaskKind::Trial
                if self.is_directory() =>
            {
                FetchKind::List
            }
            _ if heads && !self.by_get => FetchKind::Probe,
            _ => FetchKind::First,
        }
    }

    /// What is requested next for the task.
    pub(super) fn next_target(&self) -> &str {
        self.gate.as_ref().map_or(&self.target, |gate| &gate.target)
    }

    fn is_directory(&self) -> bool {
        self.path.is_some() || self.target.ends_with('/')
    }

    /// The path of the directory.
    pub(super) fn directory(&self) -> &str {
        self.path.as_deref().unwrap_or(&self.target)
    }

    /// The task at the end of a chain of redirects.
    pub(super) fn redirected(mut self, chain: Ancestors) -> Self {
        let redirects = chain.iter().count();
        self.redirects = u32::try_from(redirects).unwrap_or(u32::MAX);
        self.above = chain;
        self
    }

    /// The task after a further redirect that leads back to it.
    pub(super) fn followed(self) -> Self {
        Self {
            redirects: self.redirects + 1,
            ..self
        }
    }

    /// A task for an entry of this directory.
    pub(super) fn below(&self, segment: &str, kind: TaskKind) -> Self {
        let target = format!("{}{segment}", self.directory());
        let mut task = Self::new(target, kind, self.start, self.depth + 1);
        task.above.clone_from(&self.above);
        task
    }

    /// An entry that the last request of this task has shown.
    pub(super) fn shows(&self, now: Instant, kind: Kind, depth: u32) -> Found<'static> {
        Found {
            attempts: self.attempts.made(),
            took: self.attempts.took(now),
            ..Found::new(kind, depth)
        }
    }

    /// What the listing said.
    pub(super) fn take_open(&mut self) -> UndecidedEntry {
        let listing = match self.kind {
            TaskKind::Unknown(shape) => Some(shape),
            _ => None,
        };
        let unknown = || UndecidedEntry {
            listing,
            ..UndecidedEntry::default()
        };
        self.open.take().map_or_else(unknown, |open| *open)
    }
}

/// A page that a URL redirects to, and that redirects back when it has set a cookie.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// The request target.
    pub(super) target: String,
    /// A redirect on the way to it has set a cookie.
    pub(super) has_cookie: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum TaskKind {
    /// robots.txt, which is requested first.
    Robots,
    /// A start as it was given, with or without a final `/`. Nothing has shown yet that it exists.
    Start,
    /// A directory.
    Directory,
    /// A further page of a directory.
    Page,
    /// A level below a directory that may be a loop; the number is that of the directory's task.
    Trial,
    /// A name that may be a directory, listed by a page of this shape.
    Unknown(Shape),
    /// A file about which the expression is undecided after its listing.
    File,
    /// A start or a link of a crawl that follows pages.
    Link,
    /// A file to download.
    Wanted,
}

impl TaskKind {
    /// Whether a directory, or a page with links, is done when the task is.
    pub(super) fn is_of_directory(self) -> bool {
        matches!(self, Self::Start | Self::Directory | Self::Link)
    }
}

/// What a listing said about an entry about which the expression is undecided.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct UndecidedEntry {
    /// The state of the expression.
    pub(super) memo: Memo,
    pub(super) listing: Option<Shape>,
    pub(super) size: Option<SizeRange>,
    pub(super) modified: Option<ListedTime>,
}

impl UndecidedEntry {
    /// The entry as listed.
    pub(super) fn of(entry: &Entry, memo: Memo, shape: Shape) -> Self {
        Self {
            memo,
            listing: Some(shape),
            size: entry.size,
            modified: entry.modified,
        }
    }
}

/// A text that several tasks share, as a text of its own for each.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &Option<Arc<str>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Into::into))
    }
}
