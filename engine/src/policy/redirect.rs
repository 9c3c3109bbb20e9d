//! Which responses are followed, with which method, and what must not travel along (RFC 9110 §15.4).
//!
//! What a `Location` stands for is [`resolve`](crate::proto::resolve)'s business; a response without one is given as
//! it is.

use crate::error::LimitExceeded;
use crate::proto::Url;

/// Whether redirects are followed, and how many.
///
/// ```
/// use courser::Redirects;
///
/// assert_eq!(Redirects::default(), Redirects::none());
/// let as_browsers = Redirects::limit(20);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Redirects(Option<u32>);

impl Redirects {
    /// They are not followed: the caller gets them as responses. The default.
    pub const fn none() -> Self {
        Self(None)
    }

    /// At most so many are followed for one call; one more is an error.
    pub const fn limit(count: u32) -> Self {
        Self(Some(count))
    }

    /// What to do about a response, `followed` redirects after the first request. `replayable`: the request has no
    /// body, or one that can be sent again.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "called when redirects reach the client")
    )]
    pub(crate) fn decide(
        self,
        status: u16,
        method: &str,
        replayable: bool,
        followed: u32,
    ) -> Result<Follow, LimitExceeded> {
        let follow = follow(status, method, replayable);
        match self.0 {
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
    /// It is not: the response is the result.
    No,
    /// With the same method and body.
    Same,
    /// With this method, without the body and the headers that [describe it](describes_body).
    WithoutBody(&'static str),
    /// It would be, but the body is a stream and used up: an error.
    NotReplayable,
}

fn follow(status: u16, method: &str, replayable: bool) -> Follow {
    match (status, method) {
        // A tunnel has no other place.
        (_, "CONNECT") => Follow::No,
        (303, "HEAD") => Follow::WithoutBody("HEAD"),
        (303, _) | (301 | 302, "POST") => Follow::WithoutBody("GET"),
        (301 | 302 | 307 | 308, _) if replayable => Follow::Same,
        (301 | 302 | 307 | 308, _) => Follow::NotReplayable,
        // 300 leaves the choice to the user, 304 is about a stored response, 305 and 306 are withdrawn.
        _ => Follow::No,
    }
}

/// Whether headers with credentials must be left out on the way from one URL to the other: any change of scheme, host
/// or port counts.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "called when redirects reach the client")
)]
pub(crate) fn drops_credentials(from: &Url<'_>, to: &Url<'_>) -> bool {
    !from.same_origin(to)
}

/// Whether a header carries credentials by its name.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "called when redirects reach the client")
)]
pub(crate) fn is_credential(name: &str) -> bool {
    ["authorization", "cookie", "proxy-authorization"]
        .iter()
        .any(|credential| credential.eq_ignore_ascii_case(name))
}

/// Whether a header describes the body, and goes with it (RFC 9110 §15.4).
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "called when redirects reach the client")
)]
pub(crate) fn describes_body(name: &str) -> bool {
    // `Content-Type`, `Content-Encoding` and their kin.
    let content = name
        .get(..8)
        .is_some_and(|start| start.eq_ignore_ascii_case("content-"));
    content || OF_BODY.iter().any(|of| of.eq_ignore_ascii_case(name))
}

/// Those that RFC 9110 names, what frames a body, and digests of it (RFC 9530).
const OF_BODY: &[&str] = &[
    "digest",
    "expect",
    "last-modified",
    "repr-digest",
    "trailer",
    "transfer-encoding",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_by_status() {
        use Follow::*;
        let (get, head) = (WithoutBody("GET"), WithoutBody("HEAD"));
        #[rustfmt::skip]
        let table = [
            // status, GET,  HEAD, POST, PUT,  used-up POST, used-up PUT
            (200,      No,   No,   No,   No,   No,           No),
            (300,      No,   No,   No,   No,   No,           No),
            (301,      Same, Same, get,  Same, get,          NotReplayable),
            (302,      Same, Same, get,  Same, get,          NotReplayable),
            (303,      get,  head, get,  get,  get,          get),
            (304,      No,   No,   No,   No,   No,           No),
            (305,      No,   No,   No,   No,   No,           No),
            (306,      No,   No,   No,   No,   No,           No),
            (307,      Same, Same, Same, Same, NotReplayable, NotReplayable),
            (308,      Same, Same, Same, Same, NotReplayable, NotReplayable),
            (309,      No,   No,   No,   No,   No,           No),
            (399,      No,   No,   No,   No,   No,           No),
            (404,      No,   No,   No,   No,   No,           No),
        ];
        for (status, on_get, on_head, on_post, on_put, used_post, used_put) in table {
            let limit = Redirects::limit(5);
            let decide = |method, replayable| limit.decide(status, method, replayable, 0);
            assert_eq!(decide("GET", true), Ok(on_get), "{status} GET");
            assert_eq!(decide("HEAD", true), Ok(on_head), "{status} HEAD");
            assert_eq!(decide("POST", true), Ok(on_post), "{status} POST");
            assert_eq!(decide("PUT", true), Ok(on_put), "{status} PUT");
            assert_eq!(
                decide("POST", false),
                Ok(used_post),
                "{status} POST, used up"
            );
            assert_eq!(decide("PUT", false), Ok(used_put), "{status} PUT, used up");
            assert_eq!(decide("CONNECT", true), Ok(No), "{status} CONNECT");
            // Methods are case-sensitive (RFC 9110 §9.1): this is not POST.
            if status == 301 {
                assert_eq!(decide("post", true), Ok(Same));
            }
        }
    }

    #[test]
    fn only_as_many_as_allowed() {
        let decide = |redirects: Redirects, followed| redirects.decide(302, "GET", true, followed);
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
        assert_eq!(
            Redirects::limit(0).decide(200, "GET", true, 0),
            Ok(Follow::No)
        );
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        let drops =
            |from, to| drops_credentials(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        for to in ["http://H/b", "http://h:80/?c", "HTTP://u:p@h"] {
            assert!(!drops("http://h/a", to), "{to}");
        }
        for to in [
            "https://h/a",
            "http://h:81/a",
            "http://g/a",
            "http://www.h/a",
            "http://h./a",
            "https://h:80/a",
        ] {
            assert!(drops("http://h/a", to), "{to}");
        }
        for name in ["Authorization", "COOKIE", "proxy-authorization"] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["Accept", "Cookies", "WWW-Authenticate"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn headers_of_the_body_go_with_it() {
        for name in [
            "Content-Type",
            "CONTENT-LENGTH",
            "content-md5",
            "Transfer-Encoding",
            "Expect",
            "Repr-Digest",
        ] {
            assert!(describes_body(name), "{name}");
        }
        for name in [
            "Accept",
            "Contents",
            "X-Content-Type",
            "Conten",
            "If-Match",
            "",
        ] {
            assert!(!describes_body(name), "{name}");
        }
    }
}
