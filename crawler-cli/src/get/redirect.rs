//! `-L`: the request after a redirect, by curl's rules for method, credentials and the number of redirects.

use courser::Response;
use courser::proto::resolve;

use super::auth::Auth;
use super::exit::{Exit, Failure};
use super::plan::Transfer;
use super::request::Kind;
use super::target::Target;

/// The options about redirects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follow {
    pub(crate) on: bool,
    /// `--location-trusted`: credentials are sent to other origins too.
    pub(crate) trusting: bool,
    /// The largest number of redirects in one transfer; `None` is unlimited.
    pub(crate) limit: Option<u32>,
    pub(crate) post301: bool,
    pub(crate) post302: bool,
    pub(crate) post303: bool,
}

impl Default for Follow {
    fn default() -> Self {
        Self {
            on: false,
            trusting: false,
            limit: Some(50),
            post301: false,
            post302: false,
            post303: false,
        }
    }
}

impl Follow {
    /// The `Location` of a response, if the response is a redirect to follow (RFC 9110 §15.4). 304 is about a cached
    /// response, 305 and 306 are withdrawn.
    pub(super) fn location<'a>(&self, response: &'a Response) -> Option<&'a [u8]> {
        if !self.on || !matches!(response.status(), 300..=303 | 307 | 308) {
            return None;
        }
        response
            .header("location")
            .filter(|value| !value.is_empty())
    }

    /// The kind of the request after a response with this status (RFC 9110 §15.4). As curl does: 301 and 302 turn only
    /// POST into GET, 303 turns everything but HEAD into GET.
    fn kind_after(&self, status: u16, kind: Kind) -> Kind {
        let to_get = match (status, kind) {
            (_, Kind::Get | Kind::Head) => false,
            (301, Kind::Post) => !self.post301,
            (302, Kind::Post) => !self.post302,
            (303, Kind::Post) => !self.post303,
            (303, Kind::Put) => true,
            _ => false,
        };
        if to_get { Kind::Get } else { kind }
    }
}

/// One request of a transfer: the first, or one after a redirect.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) target: Target,
    pub(super) kind: Kind,
    /// `user:password` for this server.
    pub(super) user: Option<Vec<u8>>,
    /// Authentication with this server.
    pub(super) auth: Auth,
    /// Authentication with the proxy, if it is negotiated.
    pub(super) proxy_auth: Auth,
    /// Redirects followed so far.
    pub(super) followed: u32,
    /// Requests that were sent again because credentials were asked for.
    pub(super) asked: u32,
    /// `-C`: the first byte to fetch.
    pub(super) resume_at: u64,
    /// Whether a large body may wait for a 100 (Continue).
    pub(super) waits: bool,
    /// Whether this server may see the user's credentials. Invariant: once false, false for all later hops.
    trusted: bool,
    /// Whether no hop has left the origin of the first one.
    at_first_origin: bool,
    /// Whether a redirect has turned the request into one without a body.
    lost_body: bool,
}

impl Hop {
    /// The first hop.
    pub(super) fn first(transfer: &Transfer, target: Target) -> Self {
        let user = transfer
            .options
            .request
            .user
            .as_ref()
            .or(target.user.as_ref());
        Self {
            user: user.cloned(),
            kind: transfer.kind(),
            target,
            auth: Auth::new(transfer.options.request.auth),
            proxy_auth: Auth::new(transfer.options.settings.proxy_schemes()),
            followed: 0,
            asked: 0,
            resume_at: 0,
            waits: true,
            trusted: true,
            at_first_origin: true,
            lost_body: false,
        }
    }

    /// The hop after a redirect with this status to `location`. `first` is the target of the first hop.
    ///
    /// # Errors
    /// Too many redirects, or a location that is not a URL that can be fetched.
    pub(super) fn follow(
        &self,
        follow: &Follow,
        first: &Target,
        status: u16,
        location: &[u8],
        path_as_is: bool,
    ) -> Result<Self, Failure> {
        if follow.limit.is_some_and(|limit| self.followed >= limit) {
            let cause = format!("more than {} redirects", self.followed);
            return Err(Failure::new(Exit::TooManyRedirects, "redirect", cause));
        }
        let target = target_of(&self.target, location, path_as_is)?;
        let at_first_origin = self.at_first_origin && target.same_origin(first);
        let trusted = self.trusted && (follow.trusting || at_first_origin);
        let own = target.user.clone().or_else(|| self.user.clone());
        let kind = follow.kind_after(status, self.kind);
        let user = own.filter(|_| trusted);
        // A nonce is that of one server and one user.
        let goes_on = target.same_origin(&self.target) && user == self.user;
        Ok(Self {
            auth: if goes_on {
                self.auth.clone()
            } else {
                self.auth.anew()
            },
            proxy_auth: self.proxy_auth.clone(),
            user,
            kind,
            followed: self.followed + 1,
            asked: self.asked,
            resume_at: self.resume_at,
            waits: self.waits,
            trusted,
            at_first_origin,
            lost_body: self.lost_body || kind != self.kind,
            target,
        })
    }

    /// Whether this hop may send a `-H` header with this name.
    pub(super) fn may_send(&self, name: &str) -> bool {
        let is = |header: &str| name.eq_ignore_ascii_case(header);
        let is_any = |headers: &[&str]| headers.iter().any(|header| is(header));
        if is("Host") {
            return self.at_first_origin;
        }
        if self.lost_body && is_any(&OF_BODY) {
            return false;
        }
        self.trusted || !is_any(&["Authorization", "Cookie", "Proxy-Authorization"])
    }

    /// Whether this server may see the user's credentials.
    pub(super) fn trusted(&self) -> bool {
        self.trusted
    }
}

/// The URL of `location`, resolved against `base`.
fn target_of(base: &Target, location: &[u8], path_as_is: bool) -> Result<Target, Failure> {
    use courser::proto::UrlError;
    let url = resolve(&base.url(), location).map_err(|error| {
        let exit = match error {
            UrlError::Scheme(_) => Exit::UnsupportedProtocol,
            _ => Exit::MalformedUrl,
        };
        Failure::new(exit, "redirect", error)
    })?;
    let mut target = Target::parse(url.as_bytes(), path_as_is)?;
    target.inherit_zone(base);
    if let Some(at) = location.iter().position(|b| *b == b'#') {
        target.set_fragment(&location[at..]);
    }
    Ok(target)
}

/// The headers that describe a body, and are dropped with it (RFC 9110 §15.4).
const OF_BODY: [&str; 12] = [
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-MD5",
    "Content-Range",
    "Content-Type",
    "Digest",
    "Last-Modified",
    "Repr-Digest",
    "Trailer",
    "Transfer-Encoding",
];
