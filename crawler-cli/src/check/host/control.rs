//! Control probes: what the host sends for a path that cannot exist. At most two requests a host, and only if a verdict
//! depends on them.

use courser::Response;
use url::Url;

use super::body::{BodyStart, EXCERPT};
use super::url_check::UrlCheck;
use crate::check::verdict::{Fingerprint, is_home, is_redirect};
use crate::crawl::retry_queue::Attempts;

/// What is known about paths that do not exist.
#[derive(Debug, Default)]
pub(super) enum Control {
    /// Nothing.
    #[default]
    Unknown,
    /// The answer is awaited by these URLs, whose own answers were good.
    Asked(Vec<UrlCheck>),
    /// The host tells which paths do not exist, or nothing can be said.
    Honest,
    /// The host answers any path with this page.
    CatchAll(ControlPage),
}

/// The page for paths that do not exist.
#[derive(Clone, Debug)]
pub(super) struct ControlPage {
    /// Where redirects from such paths lead.
    redirected_to: Option<Url>,
    /// `None` if the page was not read.
    fingerprint: Option<Fingerprint>,
}

/// What to do with a URL whose answer is good.
pub(super) enum Comparison {
    /// The page is a page of its own.
    Own,
    /// The page is the one for paths that do not exist.
    ControlPage,
    /// The body of the page is needed.
    NeedsBody,
    /// The host has to be asked first.
    NeedsControl,
}

impl Control {
    /// Compares a good answer with the control page.
    pub(super) fn compare(&self, check: &UrlCheck) -> Comparison {
        if is_home(&check.task.url) || is_home(check.url()) {
            return Comparison::Own;
        }
        let page = match self {
            Self::Unknown | Self::Asked(_) => return Comparison::NeedsControl,
            Self::Honest => return Comparison::Own,
            Self::CatchAll(page) => page,
        };
        if page.redirected_to.as_ref() == Some(check.url()) && check.task.url != *check.url() {
            return Comparison::ControlPage;
        }
        match (page.fingerprint, check.fingerprint) {
            (None, _) => Comparison::Own,
            (Some(_), None) if !check.is_compared() => Comparison::NeedsBody,
            (Some(control), Some(own)) if control.resembles(&own) => Comparison::ControlPage,
            _ => Comparison::Own,
        }
    }

    /// Whether a URL that was not asked yet is asked by GET with its body, because the comparison will need it.
    pub(super) fn needs_body(&self, url: &Url) -> bool {
        match self {
            Self::CatchAll(page) => page.fingerprint.is_some() && !is_home(url),
            _ => false,
        }
    }

    /// Lets a URL wait for the answer. Returns the request, if it is the first such URL.
    pub(super) fn hold(&mut self, check: Box<UrlCheck>, random: u64) -> Option<Box<ControlFetch>> {
        if let Self::Asked(waiting) = self {
            waiting.push(*check);
            return None;
        }
        *self = Self::Asked(vec![*check]);
        Some(Box::new(ControlFetch::new(random)))
    }

    /// How many URLs wait.
    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Asked(waiting) => waiting.len(),
            _ => 0,
        }
    }

    /// The answer is known, or there is none. Returns the URLs that waited.
    pub(super) fn decide(&mut self, control: Self) -> Vec<UrlCheck> {
        match std::mem::replace(self, control) {
            Self::Asked(waiting) => waiting,
            _ => Vec::new(),
        }
    }
}

/// A request for a path that cannot exist, or for the page to which the path redirects.
#[derive(Debug)]
pub(super) struct ControlFetch {
    pub(super) target: String,
    pub(super) attempts: Attempts,
    redirected_to: Option<Url>,
    pub(super) body: BodyStart,
}

/// What the head of the answer to a control request means.
pub(super) enum ControlAnswer {
    /// The answer decides.
    Decided(Control),
    /// The page is to be read.
    Read,
    /// The second request of the host: the page to which the first one redirects.
    Follow(Box<ControlFetch>),
}

impl ControlFetch {
    fn new(random: u64) -> Self {
        Self {
            target: format!("/{random:016x}"),
            attempts: Attempts::default(),
            redirected_to: None,
            body: BodyStart::new(EXCERPT),
        }
    }

    pub(super) fn answer(&self, root: &Url, response: &Response) -> ControlAnswer {
        let page = |redirected_to| {
            ControlAnswer::Decided(Control::CatchAll(ControlPage {
                redirected_to,
                fingerprint: None,
            }))
        };
        match response.status() {
            200..=299 => ControlAnswer::Read,
            status if is_redirect(status) => {
                let location = response.header("location");
                let location = location.and_then(|value| std::str::from_utf8(value).ok());
                let from = root.join(&self.target).ok();
                let to = from.and_then(|from| from.join(location?).ok());
                let Some(mut to) = to else {
                    return ControlAnswer::Decided(Control::Honest);
                };
                to.set_fragment(None);
                if self.redirected_to.is_some() {
                    return page(self.redirected_to.clone());
                }
                if to.origin() != root.origin() {
                    return page(Some(to));
                }
                ControlAnswer::Follow(Box::new(Self {
                    target: to[url::Position::BeforePath..].to_owned(),
                    redirected_to: Some(to),
                    ..Self::new(0)
                }))
            }
            _ => ControlAnswer::Decided(Control::Honest),
        }
    }

    /// The page was read.
    pub(super) fn page(&self, root: &Url) -> Control {
        let url = root.join(&self.target).unwrap_or_else(|_| root.clone());
        Control::CatchAll(ControlPage {
            redirected_to: self.redirected_to.clone(),
            fingerprint: Some(Fingerprint::of(&url, self.body.bytes())),
        })
    }
}
