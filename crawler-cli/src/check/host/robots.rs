//! The robots.txt of a host (RFC 9309). Its delays apply to all requests; `Disallow` only to URLs that were not given.
//! Where sitemaps are wanted and it names none, `/sitemap.xml` is read after it, in the same way.

use courser::Response;
use url::{Position, Url};

use super::body::BodyStart;
use crate::crawl::redirect;
use crate::crawl::retry_queue::Attempts;
use crate::crawl::robots::{Access, READ};

/// The request for robots.txt, or for the sitemap.
#[derive(Debug)]
pub(super) struct RobotsFetch {
    pub(super) target: String,
    pub(super) is_sitemap: bool,
    pub(super) attempts: Attempts,
    redirects: u32,
    pub(super) content_type: Option<String>,
    pub(super) body: BodyStart,
}

/// How far the work is with robots.txt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RobotsStage {
    /// Not needed for one URL that was given.
    NotNeeded,
    /// To be requested before anything else.
    Wanted,
    /// Requested for the first time: everything waits.
    Asked,
    /// The first request has failed: only URLs that were not given wait.
    Failing,
    /// The rules are known.
    Known,
}

impl RobotsFetch {
    pub(super) fn new() -> Self {
        Self {
            target: "/robots.txt".to_owned(),
            is_sitemap: false,
            attempts: Attempts::default(),
            redirects: 0,
            content_type: None,
            body: BodyStart::new(READ as u64),
        }
    }

    pub(super) fn sitemap(max_body: u64) -> Self {
        Self {
            target: SITEMAP.to_owned(),
            is_sitemap: true,
            body: BodyStart::new(max_body),
            ..Self::new()
        }
    }

    /// What the head of the response means.
    pub(super) fn access(&self, status: u16) -> Access {
        Access::of_status(status, self.redirects)
    }

    /// The next attempt reads the body from its beginning.
    pub(super) fn start_over(&mut self) {
        self.body = self.body.emptied();
    }

    /// Follows a redirect on this host. Redirects to other hosts are not followed: the rules would be those of another
    /// server.
    pub(super) fn redirected(&self, root: &Url, response: &Response) -> Option<Self> {
        let from = root.join(&self.target).ok()?;
        let to = redirect::target(&from, response.header("location")).ok()?;
        let target = &to[Position::BeforePath..Position::AfterQuery];
        let is_here = to.origin() == root.origin() && target != self.target;
        is_here.then(|| Self {
            target: target.to_owned(),
            is_sitemap: self.is_sitemap,
            redirects: self.redirects + 1,
            attempts: self.attempts,
            content_type: None,
            body: self.body.emptied(),
        })
    }
}

/// Where the sitemap of a host is if nothing names one.
pub(super) const SITEMAP: &str = "/sitemap.xml";
