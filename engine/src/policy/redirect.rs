//! Which redirects are followed, with which method, and what is not sent again (RFC 9110 §15.4).
//!
//! [`resolve`](crate::proto::resolve) resolves `Location`. A response without `Location` is delivered as it is.

use std::fmt;
use std::sync::Arc;

use crate::error::LimitExceeded;
use crate::hook::Hook;
use crate::proto::{Response, is_redirect, without_userinfo};

/// Whether redirects are followed, how many, and which.
///
/// ```
/// use courser::Redirects;
///
/// assert_eq!(Redirects::default(), Redirects::none());
/// let as_browsers = Redirects::limit(20);
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Redirects {
    /// `None`: redirects are not followed.
    limit: Option<u32>,
    hook: Option<Hook<RedirectFn>>,
}

/// Decides about a redirect that would be followed, and may change how.
pub type RedirectHook = Arc<dyn Fn(&mut Redirect<'_>) -> RedirectAction + Send + Sync>;
type RedirectFn = dyn Fn(&mut Redirect<'_>) -> RedirectAction + Send + Sync;

/// What a [`RedirectHook`] decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RedirectAction {
    /// The redirect is followed.
    Follow,
    /// The response that redirects is the result of the call.
    Stop,
    /// The call fails with [`RedirectFault::Refused`](crate::error::RedirectFault::Refused).
    Refuse,
}

/// A redirect, as passed to a [`RedirectHook`].
#[non_exhaustive]
pub struct Redirect<'a> {
    /// The response that redirects. A part of its body may not have come yet.
    pub response: &'a Response,
    /// The URL that was asked for.
    pub from: &'a str,
    /// The URL that `Location` leads to.
    pub to: &'a str,
    /// The method of the next request, unless the hook [keeps](Self::keep_method) that of the request.
    pub method: &'a str,
    /// How many redirects the call has followed before.
    pub followed: u32,
    /// The schemes, the hosts or the ports of the two URLs differ.
    pub changes_origin: bool,
    /// The redirect leads from `https` to `http`.
    pub leaves_tls: bool,
    /// The hook may set this: the next request has the method and the body of the request, also after 301, 302 and 303.
    pub keep_method: bool,
    /// The hook may set this: the next request has the credentials of the request (`Authorization`, `Cookie`, sensitive
    /// headers, user information of the URL), although another origin gets it.
    pub keep_credentials: bool,
}

impl fmt::Debug for Redirect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redirect")
            .field("response", self.response)
            .field("from", &without_userinfo(self.from))
            .field("to", &without_userinfo(self.to))
            .field("followed", &self.followed)
            .finish_non_exhaustive()
    }
}

impl Redirects {
    /// Redirects are not followed: callers get them as responses. The default.
    pub const fn none() -> Self {
        Self {
            limit: None,
            hook: None,
        }
    }

    /// At most so many redirects are followed in one call; one more is an error.
    pub const fn limit(count: u32) -> Self {
        Self {
            limit: Some(count),
            hook: None,
        }
    }

    /// Asks `hook` about each redirect within the limit.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use courser::policy::{Redirect, RedirectAction};
    /// use courser::{Config, Redirects};
    ///
    /// let steer = |redirect: &mut Redirect<'_>| {
    ///     redirect.keep_method = redirect.response.status() != 303;
    ///     redirect.keep_credentials = redirect.to.starts_with("https://mirror.example/");
    ///     match redirect.leaves_tls {
    ///         true => RedirectAction::Refuse,
    ///         false => RedirectAction::Follow,
    ///     }
    /// };
    /// let config = Config {
    ///     redirects: Redirects::limit(10).hook(Arc::new(steer)),
    ///     ..Config::default()
    /// };
    /// ```
    pub fn hook(mut self, hook: RedirectHook) -> Self {
        self.hook = Some(Hook(hook));
        self
    }

    /// What the hook decides.
    pub(crate) fn steer(&self, redirect: &mut Redirect<'_>) -> RedirectAction {
        let hook = self.hook.as_ref();
        hook.map_or(RedirectAction::Follow, |Hook(hook)| hook(redirect))
    }

    /// What to do with a response, after `followed` redirects.
    pub(crate) fn decide(
        &self,
        status: u16,
        method: &str,
        followed: u32,
    ) -> Result<Follow, LimitExceeded> {
        let follow = follow(status, method);
        match self.limit {
            None => Ok(Follow::No),
            Some(limit) if follow != Follow::No && followed >= limit => {
                Err(LimitExceeded::Redirects(limit))
            }
            Some(_) => Ok(follow),
        }
    }
}

/// How a redirect is followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Follow {
    /// The redirect is not followed: the response is the result.
    No,
    /// With the same method and the same body.
    Same,
    /// With this method, without the body and the headers that describe it.
    WithoutBody(&'static str),
}

fn follow(status: u16, method: &str) -> Follow {
    match (status, method) {
        // A redirect of a tunnel has no meaning.
        (_, "CONNECT") => Follow::No,
        (status, _) if !is_redirect(status) => Follow::No,
        (303, "HEAD") => Follow::WithoutBody("HEAD"),
        (303, _) | (301 | 302, "POST") => Follow::WithoutBody("GET"),
        _ => Follow::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_by_status() {
        use Follow::*;
        let (get, head) = (WithoutBody("GET"), WithoutBody("HEAD"));
        #[rustfmt::skip]
        let table = [
            // status, GET,  HEAD, POST, PUT
            (200,      No,   No,   No,   No),
            (300,      No,   No,   No,   No),
            (301,      Same, Same, get,  Same),
            (302,      Same, Same, get,  Same),
            (303,      get,  head, get,  get),
            (304,      No,   No,   No,   No),
            (305,      No,   No,   No,   No),
            (306,      No,   No,   No,   No),
            (307,      Same, Same, Same, Same),
            (308,      Same, Same, Same, Same),
            (309,      No,   No,   No,   No),
            (399,      No,   No,   No,   No),
            (404,      No,   No,   No,   No),
        ];
        for (status, on_get, on_head, on_post, on_put) in table {
            let decide = |method| Redirects::limit(5).decide(status, method, 0);
            let decided = ["GET", "HEAD", "POST", "PUT", "CONNECT"].map(decide);
            let expected = [on_get, on_head, on_post, on_put, No].map(Ok);
            assert_eq!(decided, expected, "{status}");
            // Methods are case-sensitive (RFC 9110 §9.1): this is not POST.
            if status == 301 {
                assert_eq!(decide("post"), Ok(Same));
            }
        }
    }

    #[test]
    fn only_as_many_as_allowed() {
        let decide = |redirects: Redirects, followed| redirects.decide(302, "GET", followed);
        assert_eq!(decide(Redirects::none(), 0), Ok(Follow::No));
        assert_eq!(decide(Redirects::limit(2), 1), Ok(Follow::Same));
        assert_eq!(
            decide(Redirects::limit(2), 2),
            Err(LimitExceeded::Redirects(2))
        );
        assert_eq!(
            decide(Redirects::limit(0), 0),
            Err(LimitExceeded::Redirects(0))
        );
        // Only redirects count.
        assert_eq!(Redirects::limit(0).decide(200, "GET", 0), Ok(Follow::No));
    }
}
