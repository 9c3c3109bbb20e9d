//! What the work at a host is asked about a URL, and what comes back.

use std::time::Duration;

use encoding_rs::Encoding;
use url::Url;

use super::host::UrlCheck;
use super::links::Link;
use super::sources::ProblemKind;
use verdict::Answer;
use verdict::Verdict;

/// Identifies a URL among all URLs of a run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UrlId(pub u64);

/// A URL to ask.
///
/// ```
/// use check::task::{Reach, Task, UrlId};
///
/// let page = Task {
///     wants_links: true,
///     ..Task::given(UrlId(1), "https://example.com/".parse()?)
/// };
/// assert!(page.given && page.reach == Reach::Any);
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Task {
    /// The name of the URL in its [`Outcome`].
    pub id: UrlId,
    /// The URL: `http` or `https`, without a fragment.
    pub url: Url,
    /// Whether the user, a URL list or a local file names the URL. `Disallow` of robots.txt applies only to other URLs.
    pub given: bool,
    /// Which addresses may be dialled.
    pub reach: Reach,
    /// Whether the links of the page are wanted beside the verdict. This requires a GET with the whole body.
    pub wants_links: bool,
}

/// Which addresses may be dialled for a URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// Any: the URL was given, or the page or redirect that leads to the URL has a private address itself.
    Any,
    /// Public addresses only. With [`Policy::allow_private`](super::host::Policy::allow_private): any.
    Public,
}

/// What the work at the hosts says about a URL. Each [`Task`] has one outcome.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The name of the URL in its task.
    pub id: UrlId,
    /// The last answer, and its verdict.
    pub answer: Answer,
    /// Whether the answer came from a private address. Links of its page may then be asked with [`Reach::Any`].
    pub is_private: bool,
    /// How long the host wants no requests, if the URL was not judged for that reason.
    pub retry_after: Option<Duration>,
    /// The page, if its links are wanted and the last answer is good and has a body that can be read.
    pub page: Option<Box<Page>>,
}

impl Outcome {
    /// What is said about a URL that was not asked.
    pub fn not_asked(id: UrlId, verdict: Verdict, detail: &str) -> Self {
        Self {
            id,
            answer: Answer {
                detail: Some(detail.to_owned()),
                ..Answer::of(verdict)
            },
            is_private: false,
            retry_after: None,
            page: None,
        }
    }
}

impl Task {
    /// A URL that the user, a URL list or a local file names, of which only the verdict is wanted.
    pub fn given(id: UrlId, url: Url) -> Self {
        Self {
            id,
            url,
            given: true,
            reach: Reach::Any,
            wants_links: false,
        }
    }

    /// A URL that was found in a page, of which only the verdict is wanted.
    pub fn found(id: UrlId, url: Url, reach: Reach) -> Self {
        Self {
            given: false,
            reach,
            ..Self::given(id, url)
        }
    }
}

/// What was found in the body of a good answer.
#[derive(Clone, Debug)]
pub struct Page {
    /// What relative links are relative to: the URL of the answer, or the page's `<base href>`.
    pub base: Url,
    /// The encoding of the page, in which the queries of its links are sent.
    pub encoding: &'static Encoding,
    /// Whether it names pages on purpose: a sitemap or a feed, or robots.txt.
    pub is_sitemap: bool,
    /// The links, to be resolved against [`base`](Self::base). At most [`LIMIT`](Self::LIMIT).
    pub links: Vec<Link<'static>>,
    /// Why links may be missing, in words: the body or the number of links exceeded a limit, or the body is malformed.
    pub problem: Option<(ProblemKind, String)>,
}

impl Page {
    /// The most links of one page.
    pub const LIMIT: usize = 100_000;
}

/// A redirect that leads to another host, whose work goes on with the URL.
#[derive(Debug)]
pub struct Hop(pub(super) Box<UrlCheck>);

impl Hop {
    /// Where the redirect leads, without a fragment. [`root_of`](plain::origin::root_of) names the host.
    pub fn url(&self) -> &Url {
        self.0.url()
    }
}
