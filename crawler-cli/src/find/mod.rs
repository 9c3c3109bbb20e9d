//! find(1) for web directory hierarchies: walks the index pages below a URL and reports what matches.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use crawler_cli::demo::server::Server;
//! use crawler_cli::find::{Event, Find, Kind};
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
//!             Event::Downloaded(_) | Event::Turn(_) => {}
//!         }
//!         ControlFlow::Continue(())
//!     });
//! assert_eq!(urls.len(), 8);
//! assert!(summary.is_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The parts, each usable alone: [`listing`] reads a page, [`frontier`] decides what to ask next, [`filter`] and
//! [`glob`] say what is wanted; none of these knows a socket or a clock. [`Find`] joins them to the engine.

use std::fmt;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use courser::{Proxies, TlsConfig};
use url::Url;

pub mod address;
pub mod cli;
mod crawl;
pub mod download;
pub mod expr;
pub mod filter;
pub mod frontier;
pub mod glob;
pub mod listing;
mod path;
pub mod range;
pub(crate) mod report;
pub mod robots;
pub mod scope;
pub mod stats;

use crawl::Host;
use download::{Destination, DownloadCounts, Outcome, Saved, Store, Wanted};
pub use filter::Filter;
pub use frontier::{Cause, Counts, Found, Kind, Policy, Unread};
use glob::Case;
pub use listing::Shape;
pub use range::{ListedTime, Precision, SizeRange, TimeRange};
use scope::Scope;
use stats::Stats;

/// A search to be made: where to start, what is wanted, how to go about it.
#[derive(Clone, Debug)]
pub struct Find {
    starts: Vec<Url>,
    filter: Filter,
    policy: Policy,
    transfer: Transfer,
    download: Option<Destination>,
    overwrite: bool,
}

/// How pages are fetched.
#[derive(Clone, Debug)]
struct Transfer {
    connections: NonZeroUsize,
    timeout: Duration,
    max_body: u64,
    tls: TlsConfig,
    proxies: Proxies,
}

impl Default for Find {
    fn default() -> Self {
        Self::new()
    }
}

impl Find {
    /// A search that wants everything and starts nowhere yet.
    pub fn new() -> Self {
        Self {
            starts: Vec::new(),
            filter: Filter::default(),
            policy: Policy::default(),
            transfer: Transfer {
                connections: NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN),
                timeout: Duration::from_secs(30),
                max_body: 64 << 20,
                tls: TlsConfig::default(),
                proxies: Proxies::none(),
            },
            download: None,
            overwrite: false,
        }
    }

    /// Adds a start. A final `/` says that it is a directory; without one, the server is asked by a `HEAD` request.
    ///
    /// # Errors
    /// `url` is not an absolute URL with a host, or has a query or credentials. Whether it can be reached shows later.
    pub fn start(mut self, url: &str) -> Result<Self, StartError> {
        self.starts.push(check_start(url)?);
        Ok(self)
    }

    /// Wants only names that fit the shell pattern; see [`glob`].
    pub fn name(mut self, pattern: &str) -> Self {
        self.filter.name(pattern, Case::Sensitive);
        self
    }

    /// As [`name`](Self::name), without regard to case.
    pub fn iname(mut self, pattern: &str) -> Self {
        self.filter.name(pattern, Case::Ignored);
        self
    }

    /// Wants only paths that fit the expression as a whole; see [`Filter::regex`].
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn regex(mut self, expression: &str) -> Result<Self, regex::Error> {
        self.filter.regex(expression)?;
        Ok(self)
    }

    /// Wants only files, or only directories.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.filter.kind(kind);
        self
    }

    /// Wants only what is at least so many levels below its start.
    pub fn min_depth(mut self, depth: u32) -> Self {
        self.filter.min_depth(depth);
        self
    }

    /// Goes no more than so many levels below a start. Default: no limit but [`frontier::Limits::depth`].
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.policy.max_depth = Some(depth);
        self
    }

    /// Connections to one host, and requests to it under way at a time. Default 8.
    pub fn connections(mut self, connections: NonZeroUsize) -> Self {
        self.transfer.connections = connections;
        self
    }

    /// How long one request may take in all. Default 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.transfer.timeout = timeout;
        self
    }

    /// Further attempts after a transport error, 429 or 5xx. Default 3.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.attempts = NonZeroU32::MIN.saturating_add(retries);
        self
    }

    /// What is trusted behind `https`. Default: the authorities that are compiled in.
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.transfer.tls = tls;
        self
    }

    /// Which hosts are reached through which proxy. Default: none; the environment is not read.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.transfer.proxies = proxies;
        self
    }

    /// Largest page in bytes, as sent and without its content codings; a larger one is reported as unread. Default
    /// 64 MiB.
    pub fn max_body(mut self, bytes: u64) -> Self {
        self.transfer.max_body = bytes;
        self
    }

    /// Downloads the files that are wanted into this directory, which is created if it is not there; with several
    /// starts, below a directory for each host. See [`download`].
    ///
    /// # Errors
    /// The directory cannot be created, or no file in it.
    pub fn download(mut self, directory: &Path) -> io::Result<Self> {
        self.download = Some(Destination::open(directory)?);
        Ok(self)
    }

    /// Lets downloads replace files that differ from those of the server. Default: they are left, and reported.
    pub fn overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    /// Replaces the whole policy, the depth and the attempts included.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Makes the search on this thread. `on_event` hears of each result as soon as it is known; when it breaks, the
    /// search stops and nothing more is reported.
    ///
    /// All starts are searched at the same time, but that all hosts together have no more than 900 requests under way,
    /// unless [`connections`](Self::connections) says more.
    pub fn run(self, mut on_event: impl FnMut(Event<'_>) -> ControlFlow<()>) -> Summary {
        let began = Instant::now();
        let mut run = Run {
            filter: &self.filter,
            on_event: &mut on_event,
            began,
            cpu_began: cpu_time(),
            summary: Summary {
                counts: Counts::default(),
                matched: 0,
                elapsed: Duration::ZERO,
                ending: Ending::Finished,
                downloads: DownloadCounts::default(),
                stats: Stats::new(began),
            },
            wanted: Vec::new(),
            downloads: self.download.is_some(),
            stopped: false,
        };
        let proxies = &self.transfer.proxies;
        let hosts = by_host(&self.starts);
        let hosts = hosts
            .iter()
            .map(|(origin, starts)| {
                Host::new(origin, starts, self.policy.clone(), proxies, &mut run)
            })
            .collect();
        let mut scope = Scope::new();
        for start in &self.starts {
            scope.start(start);
        }
        let overwrite = self.overwrite;
        let store = self
            .download
            .map(|to| Store::new(to, overwrite, &self.starts, scope));
        crawl::search(hosts, self.transfer, store, &mut run);
        run.summary
    }
}

/// What [`Find::run`] reports.
#[derive(Debug)]
pub enum Event<'a> {
    /// A wanted file or directory.
    Found(Found<'a>),
    /// A URL that could not be read, whether or not it would have matched.
    Unread(Unread<'a>),
    /// A wanted file is on the disk.
    Downloaded(Saved<'a>),
    /// The search has done what there was to do and will wait now: the time to show progress and to write out what
    /// was gathered. Comes at least ten times a second, and once at the end.
    Turn(&'a Summary),
}

/// How a search went, or how it is going.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What the crawl has seen.
    pub counts: Counts,
    /// What was wanted and reported.
    pub matched: u64,
    /// Time since the search began.
    pub elapsed: Duration,
    /// How the search ended.
    pub ending: Ending,
    /// How far the downloads are.
    pub downloads: DownloadCounts,
    /// What it cost, and what it waited for.
    pub stats: Stats,
}

impl Summary {
    /// Whether everything was read.
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Finished && self.counts.unread == 0
    }

    /// The mean over the time elapsed.
    pub fn requests_per_second(&self) -> u64 {
        let micros = self.elapsed.as_micros().max(1);
        let rate = u128::from(self.counts.requests) * 1_000_000 / micros;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Nothing was left to do, or, in [`Event::Turn`], it goes on.
    Finished,
    /// The callback stopped it.
    Stopped,
}

/// Why a URL cannot be a start.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StartError {
    /// Not an absolute URL with a host.
    NotAbsolute(String),
    /// It has a query that does more than sort: the directory is not named by the path alone.
    Query(String),
    /// It has a user name or a password. These are not in the text here.
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
            Self::Query(url) => write!(f, "{url}: a start with a query is not supported"),
            Self::Credentials(url) => {
                write!(f, "{url}: user names and passwords are not supported")
            }
        }
    }
}

impl std::error::Error for StartError {}

fn check_start(text: &str) -> Result<Url, StartError> {
    let mut url = match Url::parse(text) {
        Ok(url) if url.has_host() => url,
        _ => return Err(StartError::NotAbsolute(text.to_owned())),
    };
    if !url.username().is_empty() || url.password().is_some() {
        let host = &url[url::Position::BeforeHost..];
        let hidden = format!("{}://***@{host}", url.scheme());
        return Err(StartError::Credentials(hidden));
    }
    if !url.query().is_none_or(listing::is_sort_query) {
        return Err(StartError::Query(text.to_owned()));
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// The starts of each host, hosts in the order in which they first appear.
fn by_host(starts: &[Url]) -> Vec<(Url, Vec<Url>)> {
    let mut hosts: Vec<(Url, Vec<Url>)> = Vec::new();
    for start in starts {
        match hosts
            .iter_mut()
            .find(|(origin, _)| same_host(origin, start))
        {
            Some((_, starts)) => starts.push(start.clone()),
            None => hosts.push((start.clone(), vec![start.clone()])),
        }
    }
    hosts
}

fn same_host(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host() == b.host()
        && a.port_or_known_default() == b.port_or_known_default()
}

/// One search under way.
struct Run<'r> {
    filter: &'r Filter,
    on_event: &'r mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    began: Instant,
    /// The thread's processor time then.
    cpu_began: Duration,
    /// As of the last turn; `matched` and `stats` are always up to date.
    summary: Summary,
    /// Files are to be downloaded.
    downloads: bool,
    /// Those that nobody has taken up yet.
    wanted: Vec<Wanted>,
    stopped: bool,
}

impl Run<'_> {
    fn emit(&mut self, event: Event<'_>) {
        if !self.stopped {
            self.stopped = (self.on_event)(event).is_break();
        }
    }

    fn finding(&mut self, finding: frontier::Finding<'_>) {
        match finding {
            frontier::Finding::Found(found) => {
                if self.filter.wants(&found) && !self.stopped {
                    self.summary.matched += 1;
                    if self.downloads && found.kind == Kind::File {
                        self.wanted.push(Wanted::of(&found));
                    }
                    self.emit(Event::Found(found));
                }
            }
            frontier::Finding::Unread(unread) => {
                self.summary.stats.handle_unread(unread.cause);
                self.emit(Event::Unread(unread));
            }
        }
    }

    fn outcome(&mut self, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Saved(saved) => self.emit(Event::Downloaded(saved)),
            Outcome::Failed { url, cause } => {
                self.summary.stats.handle_unread(cause);
                self.emit(Event::Unread(Unread { url, cause }));
            }
        }
    }

    /// A moment to show progress; `counts` is what the crawl has seen.
    fn turn(&mut self, counts: Counts, downloads: DownloadCounts) {
        self.summary.counts = counts;
        self.summary.downloads = downloads;
        self.summary.elapsed = self.began.elapsed();
        let cpu = cpu_time().saturating_sub(self.cpu_began);
        self.summary.stats.handle_cpu(cpu);
        if !self.stopped {
            self.stopped = (self.on_event)(Event::Turn(&self.summary)).is_break();
        }
        if self.stopped {
            self.summary.ending = Ending::Stopped;
        }
    }
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
