//! What is known of a URL that is still to be asked for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::messages::FetchKind;
use crate::crawl::retry_queue::Attempts;
use crate::find::expr::Memo;
use crate::find::link::Ancestors;
use crate::find::listing::{self, Entry, Shape};
use crate::find::range::{ListedTime, SizeRange};

/// One URL to ask for.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Names it in the journal; 0 before it is there.
    pub(super) number: u64,
    /// The path, percent-encoded, and of a further page the query. The path ends in `/` when it is a directory.
    pub(super) target: String,
    /// The directory that it lists, where that is not its own path: a bucket's listings are told apart by queries.
    pub(super) path: Option<String>,
    pub(super) kind: TaskKind,
    /// Index of the innermost start that holds it.
    pub(super) start: usize,
    pub(super) depth: u32,
    pub(super) attempts: Attempts,
    pub(super) redirects: u32,
    /// `HEAD` has failed; see [`FetchKind::First`].
    pub(super) by_get: bool,
    /// Of a link: it leads to a page, by its name or by what the server said.
    pub(super) is_page: bool,
    /// Of a link: it was found by what embeds it, and only the links in it are wanted.
    pub(super) is_found: bool,
    /// What its listing said, if the expression wants to know more.
    pub(super) open: Option<Box<UndecidedEntry>>,
    /// What the directories above it list; after redirects from elsewhere, the URLs that led here.
    pub(super) above: Option<Arc<Ancestors>>,
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
            by_get: false,
            open: None,
            above: None,
        }
    }

    /// How it is asked for next; `heads` tells whether the server can be trusted with `HEAD`, `dav` whether directories
    /// are listed by WebDAV.
    pub(super) fn fetch_kind(&self, heads: bool, dav: bool) -> FetchKind {
        match self.kind {
            TaskKind::Robots => FetchKind::Robots,
            TaskKind::Sitemap => FetchKind::Sitemap,
            TaskKind::Link if self.is_page => FetchKind::Page,
            TaskKind::Start | TaskKind::Directory | TaskKind::Page if self.is_directory() => {
                if dav {
                    FetchKind::Properties
                } else {
                    FetchKind::List
                }
            }
            _ if heads && !self.by_get => FetchKind::Probe,
            _ => FetchKind::First,
        }
    }

    fn is_directory(&self) -> bool {
        self.path.is_some() || self.target.ends_with('/')
    }

    /// The path of a directory.
    pub(super) fn directory(&self) -> &str {
        self.path.as_deref().unwrap_or(&self.target)
    }

    /// The same, at the end of a chain of redirects.
    pub(super) fn redirected(mut self, chain: Option<Arc<Ancestors>>) -> Self {
        let redirects = Ancestors::listings(chain.as_ref()).count();
        self.redirects = u32::try_from(redirects).unwrap_or(u32::MAX);
        self.above = chain;
        self
    }

    /// What is listed in this directory.
    pub(super) fn below(&self, segment: &str, kind: TaskKind) -> Self {
        let target = format!("{}{segment}", self.directory());
        let mut task = Self::new(target, kind, self.start, self.depth + 1);
        task.above.clone_from(&self.above);
        task
    }

    /// By what page it was listed, if only the kind of task remembers.
    pub(super) fn shape(&self) -> Option<Shape> {
        match self.kind {
            TaskKind::Unknown(shape) => Some(shape),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum TaskKind {
    /// robots.txt, which comes first.
    Robots,
    /// A start, whose existence nothing has shown yet. As it was given, with or without a final `/`.
    Start,
    /// A directory.
    Directory,
    /// A further page of a directory.
    Page,
    /// A name that may be one, listed by a page of this shape.
    Unknown(Shape),
    /// A file of which the expression wants to know more than its listing says.
    File,
    /// A start or a link of a crawl that follows pages.
    Link,
    /// A sitemap.
    Sitemap,
}

/// What a listing said of an entry about which the expression has not decided.
#[derive(Clone, Debug)]
pub(super) struct UndecidedEntry {
    /// How far the expression has come.
    pub(super) memo: Memo,
    pub(super) listing: Option<Shape>,
    pub(super) size: Option<SizeRange>,
    pub(super) modified: Option<ListedTime>,
}

impl UndecidedEntry {
    /// As the listing has it.
    pub(super) fn of(entry: &Entry, memo: Memo, shape: Shape) -> Self {
        Self {
            memo,
            listing: Some(shape),
            size: entry.size,
            modified: entry.modified,
        }
    }
}
