//! A check with its inputs and its settings.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use courser::Rate;
use url::Url;

use super::event::Event;
use super::host::Policy;
use super::run;
use super::select::Selection;
use super::sources::{FileId, Input, SourceOptions};
use super::summary::Summary;
use crawl::reporter::{Callback, Reporter, Reports};
use crawl::scope::Scope;
use crawl::settings::Settings;
use crawl::transfer::Transfer;
use plain::random::fresh_seed;
use store::StoreError;

/// A check: its inputs and its settings.
///
/// ```
/// use std::ffi::OsStr;
/// use std::ops::ControlFlow;
///
/// use check::sources::Input;
/// use check::{Checker, Event, Outcome};
/// use crawl::demo::server::Server;
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
    pub(super) inputs: Vec<Input>,
    /// How sources are read. What is selected is [`Checker::selection`].
    pub sources: SourceOptions,
    /// Which URLs are checked.
    pub selection: Selection,
    pub(super) reach: Reach,
    /// What is good, and how URLs are asked. What the settings have, too, is taken from there.
    pub policy: Policy,
    /// Politeness, retries and the network.
    pub settings: Settings,
    /// Which verdicts make the check fail.
    pub tolerance: Tolerance,
    /// What is kept between checks.
    pub keeping: Keeping,
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
#[derive(Clone, Debug, Default)]
pub struct Tolerance {
    /// What redirects of good URLs mean.
    pub redirects: Redirects,
    /// What URLs mean that could not be judged: class `unk`.
    pub blocked: Blocked,
    /// With a [state](Keeping::state): a URL makes the check fail only when it has been failing for this time. Default 0.
    pub fail_after: Duration,
}

/// What is kept between checks.
#[derive(Clone, Debug, Default)]
pub struct Keeping {
    /// What is known about URLs is kept in this file, which is created if necessary. An interrupted check of the same
    /// inputs is continued. Default: nothing is kept, and no database is used.
    pub state: Option<PathBuf>,
    /// With a state: URLs that were good within this time are not asked again. Default 0: all are asked.
    pub max_age: Duration,
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
            settings: Settings {
                host: policy.host.clone(),
                transfer: Transfer {
                    connections: NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN),
                    timeout: policy.timeout,
                    max_body: policy.max_body,
                    lenient: true,
                    ..Transfer::default()
                },
            },
            policy,
            tolerance: Tolerance::default(),
            keeping: Keeping::default(),
        }
    }

    /// Runs the check on this thread. `on_event` gets each result as soon as the guards can no longer void it. If
    /// `on_event` returns `Break`, the check stops and reports nothing more.
    pub fn run(self, mut on_event: impl FnMut(Event<'_>) -> ControlFlow<()>) -> Summary {
        self.run_with(&mut Callback(|event: &Event<'_>| on_event(*event)))
    }

    /// Runs the check on this thread, and reports to `reporter`.
    pub fn run_with(mut self, reporter: &mut dyn Reporter<Self>) -> Summary {
        let (policy, transfer) = (&mut self.policy, &mut self.settings.transfer);
        policy.host = self.settings.host.clone();
        policy.host.seed.get_or_insert_with(fresh_seed);
        policy.timeout = transfer.timeout;
        policy.max_body = transfer.max_body;
        policy.allow_private = transfer.allow_private;
        for url in pages(&self.inputs) {
            transfer.identities.give(url);
        }
        self.sources.selection = Arc::new(self.selection.clone());
        // The work at each host tells which of its calls may dial private addresses.
        transfer.allow_private = true;
        transfer.adaptive = Some(policy.adaptive());
        transfer.breaker = Some(Policy::breaker());
        run::run(self, reporter)
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

    /// Does not read this file in folders: a report that is written there. A file that does not exist is ignored.
    pub fn leave_out(mut self, file: &Path) -> Self {
        self.sources.left_out.extend(FileId::of(file));
        self
    }
}

/// What is good, and how hosts are asked.
impl Checker {
    /// The largest rate of requests to one host; `None`: no limit. Default 10 a second, and no limit for hosts on the
    /// loopback of this machine.
    pub fn rate(mut self, rate: Option<Rate>) -> Self {
        self.policy.spares_loopback = false;
        self.settings.host.rate = rate;
        self
    }

    /// Whether an identity is for given hosts, and no input is a page.
    pub fn has_identity_for_nobody(&self) -> bool {
        self.settings.transfer.identities.has_given() && pages(&self.inputs).next().is_none()
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
    use crate::host::Host;
    use crawl::work::HostWork as _;

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
            let policy = Policy {
                host: checker.settings.host,
                ..checker.policy
            };
            let mut host = Host::new(root, None, Arc::new(policy));
            assert_eq!(host.politeness().rate(), expected);
        }
    }
}
