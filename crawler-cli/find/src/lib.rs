//! find(1) for web directory trees: reads the index pages below a URL and reports the entries that match.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use crawl::demo::server::Server;
//! use find::{Event, Find, Kind};
//!
//! let mirror = Server::start()?;
//! let mut urls = Vec::new();
//! let summary = Find::new()
//!     .start(&format!("{}SIGs/", mirror.url()))?
//!     .name("repomd.xml")
//!     .kind(Kind::File)
//!     .run(|event| {
//!         match event {
//!             Event::Found(found) => urls.push(found.url.to_owned()),
//!             Event::Unread(unread) => eprintln!("{}: {}", unread.url, unread.cause),
//!             Event::Failed(error) => eprintln!("{error}"),
//!             Event::StateFailed(error) => eprintln!("{error}"),
//!             Event::NotReached(_) | Event::Output(_) => {}
//!             Event::Downloaded(_) | Event::Progress(_) => {}
//!         }
//!         ControlFlow::Continue(())
//!     });
//! assert_eq!(urls.len(), 8);
//! assert!(summary.is_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The parts can be used on their own: [`listing`] reads a page, [`host_crawl`] decides what to request next, [`expr`]
//! and [`glob`] decide what matches. None of these uses a socket or a clock. [`Find`] connects them to the engine.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use url::{Position, Url};

mod cause;
pub mod download;
mod event;
pub mod expr;
mod fault;
mod found;
pub mod glob;
mod host;
pub mod host_crawl;
mod link;
mod policy;
mod reference;
mod run;
mod search;
pub mod state;
mod summary;
mod visitor;

pub use cause::{Cause, Failure};
use crawl::reporter::{Callback, Reporter, Reports};
use crawl::scope::Scope;
use crawl::settings::Settings;
use download::{Base, Root, Store};
pub use event::Event;
use expr::Actor;
pub use expr::{ActError, Expression, ParseError};
pub use fault::Fault;
pub use found::{Found, How, Kind, Saved, Unread};
use host::FILE_DESCRIPTORS;
pub use host_crawl::Counts;
pub use link::{Link, LinkKind};
use plain::random::fresh_seed;
pub use policy::{Follow, Limits, Policy};
use run::{Events, Run};
pub use state::{State, StateError};
pub use summary::{DownloadCounts, Ending, Summary};
pub use visitor::{LinkVerdict, Turn, Visitor};

/// A search: its starts, its expression and its settings.
#[derive(Clone, Debug, Default)]
pub struct Find {
    starts: Vec<Url>,
    expression: Expression,
    /// What is followed, and limits. Its politeness and retries are those of the settings.
    pub policy: Policy,
    /// Politeness, retries and the network.
    pub settings: Settings,
    scope: Scope,
    download: Option<Root>,
    /// Whether downloads may replace files that differ from the server's. Default: such files stay and are reported.
    pub overwrite: bool,
}

impl Reports for Find {
    type Event<'a> = Event<'a>;
    type Summary = Summary;
    type StateError = StateError;
}

impl Find {
    /// A search that matches everything, without starts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a start. A final `/` marks a directory; without it, a `HEAD` request finds out.
    ///
    /// # Errors
    /// `url` is not an absolute URL with a host, has credentials, or has a query while links of [listings](Policy::follow)
    /// are followed. Whether the host can be reached is not
    /// checked here.
    pub fn start(mut self, url: &str) -> Result<Self, StartError> {
        self.starts.push(check_start(url, self.policy.follow)?);
        Ok(self)
    }

    /// Sets the tests and actions. Replaces earlier tests; the methods below add tests that must hold as well.
    pub fn expression(mut self, expression: Expression) -> Self {
        self.set_expression(expression);
        self
    }

    /// Sets the tests and actions, as [`expression`](Self::expression) does.
    pub fn set_expression(&mut self, expression: Expression) {
        if let Some(depth) = expression.max_depth() {
            self.policy.max_depth = Some(depth);
        }
        self.expression = expression;
    }

    /// Matches only names that fit the shell pattern; see [`glob`].
    pub fn name(mut self, pattern: &str) -> Self {
        self.expression.and_name(pattern);
        self
    }

    /// Matches only paths that fit the whole regular expression, in the syntax of the `regex` crate. The path is that
    /// of the URL, percent-decoded, without a final `/`.
    ///
    /// # Errors
    /// The regular expression is not valid, or too large.
    pub fn regex(mut self, regex: &str) -> Result<Self, ParseError> {
        self.expression.and_regex(regex)?;
        Ok(self)
    }

    /// Matches only files, or only directories.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.expression.and_kind(kind);
        self
    }

    /// Downloads matching files into this directory, which is created if necessary. With several starts, or for files
    /// outside the directory of the start, files go to subdirectories for host and path. See [`download`].
    ///
    /// # Errors
    /// The directory, or a file in it, cannot be created.
    pub fn download(mut self, directory: &Path) -> io::Result<Self> {
        self.download = Some(Root::open(directory)?);
        self.settings.transfer.reserved = FILE_DESCRIPTORS;
        Ok(self)
    }

    /// Whether actions run commands, or write elsewhere than to the results.
    pub fn writes_elsewhere(&self) -> bool {
        self.expression.writes_files() || self.expression.writes_past_results()
    }

    /// Runs the search on this thread. `on_event` gets each result as soon as it is known. If `on_event` returns
    /// `Break`, the search stops and reports nothing more.
    ///
    /// All starts are searched concurrently. All hosts together have at most 900 requests in flight (644 with downloads),
    /// or [as many as one host](crawl::transfer::Transfer::connections) if that is more.
    pub fn run(self, mut on_event: impl FnMut(Event<'_>) -> ControlFlow<()>) -> Summary {
        let mut reporter = Callback(|event: &Event<'_>| on_event(*event));
        self.run_kept(None, &mut reporter).0
    }

    /// Runs the search on this thread, reports to `reporter`, saves the progress to `state`, and continues from there
    /// if `state` has an interrupted search. Returns the state: [remove](State::remove) it unless another run is to
    /// continue.
    pub fn run_kept(
        mut self,
        state: Option<State>,
        reporter: &mut dyn Reporter<Find>,
    ) -> (Summary, Option<State>) {
        self.policy.host = self.settings.host.clone();
        self.policy.host.seed.get_or_insert_with(fresh_seed);
        self.policy.keeps_cookies = self.settings.transfer.cookies.is_some();
        let mut events = Events::new(reporter, state, self.policy.follow);
        let transfer = &mut self.settings.transfer;
        for start in &self.starts {
            transfer.identities.give(start);
            self.scope.start(start);
        }
        let resolved = reference::resolve(&mut self.expression, transfer, &self.policy);
        let actor = match resolved.and_then(|()| Actor::open(&self.expression)) {
            Ok(actor) => actor,
            Err(error) => {
                events.failed(&error);
                events.summary.ending = Ending::Stopped;
                return events.end();
            }
        };
        // One HEAD about the time zone of the listings saves a request for each file that has not changed.
        self.policy.clock |= self.expression.needs_times() || self.download.is_some();
        let base = match self.starts.as_slice() {
            [start] => Some(Base::of(start, self.policy.follow)),
            _ => None,
        };
        let store = self.download.clone().map(|root| {
            let mut store = Store::new(root);
            store.base = base;
            store.overwrite = self.overwrite;
            store.refuses_tls = self.settings.transfer.tls_fault().is_some();
            store.scope = self.scope.clone();
            store.most_redirects = self.policy.limits.redirects;
            store
        });
        search::search(&self, store, Run::new(&self, actor, events)).finish()
    }
}

/// Why a URL is refused as a start.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StartError {
    /// It is not an absolute URL with a host.
    NotAbsolute(String),
    /// It has a query other than for sorting, and listings are followed: the path alone does not name the directory.
    Query(String),
    /// It has a user name or a password. The text here does not contain them.
    Credentials(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAbsolute(url) => {
                write!(
                    f,
                    "{url}: not an absolute URL such as http://127.0.0.1:8080/pub/"
                )
            }
            Self::Query(url) => write!(f, "{url}: a start with a query needs --links page"),
            Self::Credentials(url) => {
                write!(f, "{url}: user names and passwords are not supported")
            }
        }
    }
}

impl std::error::Error for StartError {}

fn check_url(text: &str) -> Result<Url, StartError> {
    let mut url = match Url::parse(text) {
        Ok(url) if url.has_host() => url,
        _ => return Err(StartError::NotAbsolute(text.to_owned())),
    };
    if !url.username().is_empty() || url.password().is_some() {
        let host = &url[Position::BeforeHost..];
        let hidden = format!("{}://***@{host}", url.scheme());
        return Err(StartError::Credentials(hidden));
    }
    url.set_fragment(None);
    Ok(url)
}

fn check_start(text: &str, follow: Follow) -> Result<Url, StartError> {
    let mut url = check_url(text)?;
    match url.query() {
        _ if follow == Follow::Pages => {}
        Some(query) if listing::is_listing_query(query) => {}
        Some(query) if !listing::is_sort_query(query) => {
            return Err(StartError::Query(text.to_owned()));
        }
        _ => url.set_query(None),
    }
    Ok(url)
}
