//! A check with its inputs and its settings.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use courser::{Rate, Statuses};
use regex::Regex;
use url::Url;

use super::event::Event;
use super::host::{HeadUse, Policy};
use super::run;
use super::select::Selection;
use super::sources::{FileId, Input, SourceOptions};
use super::summary::Summary;
use crate::crawl::policy::RetryPolicy;
use crate::crawl::random::fresh_seed;
use crate::crawl::reporter::{Callback, Reporter, Reports};
use crate::crawl::transfer::Transfer;
use crate::find::scope::Scope;
use crate::store::StoreError;

/// A check: its inputs and its settings.
///
/// ```
/// use std::ffi::OsStr;
/// use std::ops::ControlFlow;
///
/// use crawler_cli::check::sources::Input;
/// use crawler_cli::check::{Checker, Event, Outcome};
/// use crawler_cli::demo::server::Server;
///
/// let mirror = Server::start()?;
/// let page = format!("{}SIGs/", mirror.url());
/// let mut urls = Vec::new();
/// let summary = Checker::new()
///     .input(Input::from_argument(OsStr::new(&page))?)
///     .rate(None)
///     .run(|event| {
///         if let Event::Checked(checked) = event {
///             urls.push(checked.url.clone());
///         }
///         ControlFlow::Continue(())
///     });
/// assert!(urls.contains(&page) && urls.len() > 1);
/// assert_eq!(summary.outcome(), Outcome::Good);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Checker {
    inputs: Vec<Input>,
    sources: SourceOptions,
    selection: Selection,
    reach: Reach,
    policy: Policy,
    transfer: Transfer,
    tolerance: Tolerance,
    keeping: Keeping,
}

/// How far a check goes from the pages that are its inputs.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// The depth of the deepest pages whose links are checked; an input has depth 0.
    pub(super) depth: u32,
    /// Where pages deeper than the inputs may be.
    pub(super) scope: Scope,
}

/// Which verdicts make a check fail.
#[derive(Clone, Debug)]
pub(super) struct Tolerance {
    pub(super) redirects: Redirects,
    pub(super) blocked: Blocked,
    pub(super) fail_after: Duration,
}

/// What is kept between checks.
#[derive(Clone, Debug)]
pub(super) struct Keeping {
    pub(super) state: Option<PathBuf>,
    pub(super) max_age: Duration,
}

/// What redirects of good URLs mean.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Redirects {
    /// Nothing.
    Ignore,
    /// They are reported.
    #[default]
    Report,
    /// The check fails.
    Fail,
}

/// What URLs mean that could not be judged, such as those of hosts that refuse programs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Blocked {
    /// Nothing.
    Ignore,
    /// They are warned of.
    #[default]
    Warn,
    /// The check fails.
    Fail,
}

impl Reports for Checker {
    type Event<'a> = Event<'a>;
    type Summary = Summary;
    type StateError = StoreError;
}

impl Default for Checker {
    fn default() -> Self {
        Self::new()
    }
}

impl Checker {
    /// A check without inputs.
    pub fn new() -> Self {
        let policy = Policy {
            spares_loopback: true,
            ..Policy::default()
        };
        Self {
            inputs: Vec::new(),
            sources: SourceOptions::default(),
            selection: Selection::default(),
            reach: Reach {
                depth: 0,
                scope: Scope::new(),
            },
            transfer: Transfer {
                connections: NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN),
                timeout: policy.timeout,
                max_body: policy.max_body,
                // The work at each host tells which of its calls may dial private addresses.
                allow_private: true,
                lenient: true,
                ..Transfer::default()
            },
            policy,
            tolerance: Tolerance {
                redirects: Redirects::default(),
                blocked: Blocked::default(),
                fail_after: Duration::ZERO,
            },
            keeping: Keeping {
                state: None,
                max_age: Duration::ZERO,
            },
        }
    }

    /// Runs the check on this thread. `on_event` gets each result as soon as it is known. If `on_event` returns `Break`,
    /// the check stops and reports nothing more.
    pub fn run(self, mut on_event: impl FnMut(Event<'_>) -> ControlFlow<()>) -> Summary {
        self.run_with(&mut Callback(|event: &Event<'_>| on_event(*event)))
    }

    /// Runs the check on this thread, and reports to `reporter`.
    pub fn run_with(mut self, reporter: &mut dyn Reporter<Self>) -> Summary {
        self.policy.host.seed.get_or_insert_with(fresh_seed);
        for url in pages(&self.inputs) {
            self.transfer.identities.give(url);
        }
        self.sources.selection = Arc::new(self.selection);
        self.transfer.adaptive = Some(self.policy.adaptive());
        self.transfer.breaker = Some(Policy::breaker());
        run::run(
            run::Plan {
                inputs: self.inputs,
                sources: self.sources,
                reach: self.reach,
                policy: self.policy,
                transfer: self.transfer,
                tolerance: self.tolerance,
                keeping: self.keeping,
            },
            reporter,
        )
    }
}

/// What is checked.
impl Checker {
    /// Adds an input: a page, a file or folder, standard input, or a list of URLs.
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// The inputs.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// How deep pages are read: the links of pages at this depth are checked, too. An input has depth 0, a page that it
    /// links to depth 1. Deeper pages are read only [below](Scope::start) the inputs. Default 0.
    pub fn depth(mut self, depth: u32) -> Self {
        self.reach.depth = depth;
        self
    }

    /// Reads all pages [below](Scope::start) the inputs, at any [depth](Self::depth), and the sitemaps of their hosts.
    pub fn recursive(mut self) -> Self {
        self.policy.sitemaps = true;
        self.reach.depth = u32::MAX;
        self
    }

    /// Checks URLs that the expression matches, even if an [excluded](Self::exclude) one does, too; without excluded
    /// ones, no others.
    pub fn include(mut self, pattern: Regex) -> Self {
        self.selection.include.push(pattern);
        self
    }

    /// Leaves out URLs that the expression matches.
    pub fn exclude(mut self, pattern: Regex) -> Self {
        self.selection.exclude.push(pattern);
        self
    }

    /// The base of relative links in files. Default: they are looked up on the disk.
    pub fn base_url(mut self, base: Url) -> Self {
        self.sources.base_url = Some(base);
        self
    }

    /// The folder that links beginning with `/` start from, in files.
    pub fn root_dir(mut self, folder: &Path) -> Self {
        self.sources.root_dir = Some(folder.to_owned());
        self
    }

    /// The field of JSON lines that has the URL. Default `url`.
    pub fn field(mut self, name: &str) -> Self {
        self.sources.field = name.to_owned();
        self
    }

    /// Does not read this file in folders: a report that is written there. A file that does not exist is ignored.
    pub fn leave_out(mut self, file: &Path) -> Self {
        self.sources.left_out.extend(FileId::of(file));
        self
    }

    /// Reads hidden files in folders, too.
    pub fn hidden(mut self) -> Self {
        self.sources.hidden = true;
        self
    }

    /// Whether `.gitignore`, `.ignore` and git's own exclude files are obeyed in folders. Default: yes.
    pub fn ignore_files(mut self, obey: bool) -> Self {
        self.sources.ignore_files = obey;
        self
    }

    /// Checks that files have the elements that fragments of links to them name.
    pub fn fragments(mut self) -> Self {
        self.sources.fragments = true;
        self
    }
}

/// What is good.
impl Checker {
    /// Whether URLs are asked by HEAD first. Default [`HeadUse::Auto`].
    pub fn head(mut self, head: HeadUse) -> Self {
        self.policy.head = head;
        self
    }

    /// Further statuses that are good. 2xx and 304 always are.
    pub fn accept(mut self, statuses: Statuses) -> Self {
        self.policy.accept = statuses;
        self
    }

    /// The most redirects that are followed. Default 10.
    pub fn max_redirects(mut self, most: u32) -> Self {
        self.policy.redirects = most;
        self
    }

    /// What redirects of good URLs mean. Default [`Redirects::Report`].
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.tolerance.redirects = redirects;
        self
    }

    /// What URLs mean that could not be judged: class `unk`. Default [`Blocked::Warn`].
    pub fn blocked(mut self, blocked: Blocked) -> Self {
        self.tolerance.blocked = blocked;
        self
    }
}

/// What is kept between checks.
impl Checker {
    /// Keeps what is known about URLs in this file, which is created if necessary. An interrupted check of the same
    /// inputs is continued. Default: nothing is kept.
    pub fn state(mut self, file: &Path) -> Self {
        self.keeping.state = Some(file.to_owned());
        self
    }

    /// With a [state](Self::state): URLs that were good within this time are not asked again. Default 0: all are asked.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.keeping.max_age = age;
        self
    }

    /// With a [state](Self::state): a URL makes the check fail only when it has been failing for this time. Default 0.
    pub fn fail_after(mut self, time: Duration) -> Self {
        self.tolerance.fail_after = time;
        self
    }
}

/// How hosts are asked.
impl Checker {
    /// The largest number of connections to one host, and of requests in flight to the host. Default 4.
    pub fn connections(mut self, connections: NonZeroUsize) -> Self {
        self.transfer.connections = connections;
        self
    }

    /// The largest rate of requests to one host; `None`: no limit. Default 10 a second, and no limit for hosts on the
    /// loopback of this machine.
    pub fn rate(mut self, rate: Option<Rate>) -> Self {
        self.policy.spares_loopback = false;
        self.policy.host.rate = rate;
        self
    }

    /// Whether robots.txt is requested first. Its delays are obeyed for all URLs, `Disallow` for those that pages link
    /// to. Default: yes.
    pub fn robots(mut self, robots: bool) -> Self {
        self.policy.host.robots = robots;
        self
    }

    /// The limit for one request in all. Default 20 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = timeout;
        self.transfer.timeout = timeout;
        self
    }

    /// The largest number of retries after a network failure or a 5xx status. Default 3.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.host.retry.attempts = NonZeroU32::MIN.saturating_add(retries);
        self
    }

    /// The longest time between the first request for a URL and a retry. Default 60 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.policy.host.retry.patience = patience;
        self
    }

    /// Allows redirects and links of public pages to lead to private addresses. Default: no.
    pub fn allow_private(mut self) -> Self {
        self.policy.allow_private = true;
        self
    }

    /// The `User-Agent` of requests. Its part before the first `/` or blank is the product token in robots.txt.
    /// Default: [`USER_AGENT`](crate::find::USER_AGENT).
    pub fn user_agent(mut self, text: &str) -> Self {
        let token = text.split(['/', ' ']).next().unwrap_or(text);
        self.policy.host.agent = token.to_owned();
        self.transfer.user_agent = text.to_owned();
        self
    }

    /// The largest page in bytes, before and after decoding, whose links are read. Default 64 MiB.
    pub fn max_body(mut self, bytes: u64) -> Self {
        self.policy.max_body = bytes;
        self.transfer.max_body = bytes;
        self
    }

    /// Whether an identity is for given hosts, and no input is a page.
    pub(crate) fn has_identity_for_nobody(&self) -> bool {
        self.transfer.identities.has_given() && pages(&self.inputs).next().is_none()
    }

    /// The settings of the network.
    pub fn transfer(&mut self) -> &mut Transfer {
        &mut self.transfer
    }

    /// When and how often URLs are asked again. By default three times, within 60 s.
    pub fn retry(&mut self) -> &mut RetryPolicy {
        &mut self.policy.host.retry
    }

    /// The seed of the random part of pauses. Default: a different one for each check.
    pub fn seed(mut self, seed: u64) -> Self {
        self.policy.host.seed = Some(seed);
        self
    }
}
/// The URLs of the pages among the inputs.
fn pages(inputs: &[Input]) -> impl Iterator<Item = &Url> {
    inputs.iter().filter_map(|input| match input {
        Input::Page { url, .. } => Some(url),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::check::host::Host;
    use crate::crawl::work::HostWork as _;

    #[test]
    fn the_own_machine_has_a_rate_only_if_one_is_asked_for() {
        let rate = |count| NonZeroU64::new(count).map(Rate::per_second);
        for (checker, root, expected) in [
            (Checker::new(), "http://127.0.0.1:8080/", None),
            (Checker::new(), "http://localhost/", None),
            (Checker::new(), "http://h.example/", rate(10)),
            (Checker::new().rate(rate(7)), "http://[::1]/", rate(7)),
        ] {
            let root = Url::parse(root).expect("a URL");
            let mut host = Host::new(root, None, Arc::new(checker.policy));
            assert_eq!(host.politeness().rate(), expected);
        }
    }
}
