//! The causes for which a URL could not be read, as reported to users, and failures of requests.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use courser::error::LimitExceeded;
use courser::{ErrorKind, Response};

use super::fault::Fault;
use crawl::failure::{FailureScope, is_opening};
use crawl::policy::RetryPolicy;
use crawl::redirect::NotFollowed;
use crawl::retry::Reason;
use crawl::stats::Class;
use listing::{LeftOut, Shape, WebPage};
use plain::text;

/// Why a URL could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The exchange failed: connection, protocol, limit or timeout. Holds the error of the engine.
    Transfer(Box<dyn Error + Send + Sync>),
    /// The proxy with this name could not be reached, or could not reach the host. Holds the error of the engine.
    Proxy(String, Box<dyn Error + Send + Sync>),
    /// The server answered with this status.
    Status(u16),
    /// The server answered with this status, and asked for a wait that ends later than the patience.
    LongWait {
        /// The status.
        status: u16,
        /// The wait in `Retry-After`.
        wait: Duration,
        /// The longest time between the first request for a URL and a retry.
        patience: Duration,
    },
    /// The server answered with this status, and has answered all requests with 429 or 503 for as long as the patience.
    OnlyRefusals {
        /// The status.
        status: u16,
        /// The longest time between the first request for a URL and a retry.
        patience: Duration,
    },
    /// The page ended before the marker that ends every page of this shape.
    CutShort(Shape),
    /// The page has this content type.
    NotHtml(String),
    /// The page lists no directory.
    WebPage(Box<WebPage>),
    /// The page has this content coding, which was not requested.
    Encoded(String),
    /// The page has more links than this.
    TooManyLinks(usize),
    /// The page has more bytes than the limit. The length is as the server says, of a page that is not encoded.
    TooLarge { limit: u64, length: Option<u64> },
    /// Of the answer, fewer bytes came within this time.
    Slow { least: u64, limit: Duration },
    /// The URLs in the page have more than this number of bytes together.
    TooLongLinks(usize),
    /// Entries of the page were left out because their URLs are longer than the limit in bytes.
    OverlongLinks(LeftOut, usize),
    /// A redirect to this URL, which is not a directory below the start.
    Elsewhere(String),
    /// A redirect without a `Location`, or with one that is not a URL.
    NoLocation,
    /// A redirect that is not followed, for this reason.
    NotFollowed(NotFollowed),
    /// A redirect to the URL itself.
    RedirectLoop,
    /// A redirect to this directory above the URL, which does not have what the URL should have.
    RedirectUp(String),
    /// More redirects in a row than this.
    TooManyRedirects(u32),
    /// Deeper below the start than this.
    TooDeep(u32),
    /// One name occurs more often in the path than this: a loop of symbolic links.
    Loop(usize),
    /// The page lists exactly what one of its ancestors lists: a loop of symbolic links.
    SameListing,
    /// Disallowed by the host's robots.txt.
    Robots,
    /// Robots.txt could not be read, for this cause, so nothing may be requested.
    RobotsUnread(String),
    /// Entries of the page were left out because their names cannot be a segment of a URL.
    Nameless(LeftOut),
    /// Links of a listing that lead elsewhere, and may stand for entries.
    LeftOut(LeftOut),
    /// Objects of a bucket that are not below the prefix that was asked for.
    Outside(LeftOut),
    /// The listing says that it goes on, and no further page has more.
    NoProgress,
    /// More further pages of directories on one host than this.
    TooManyPages(usize),
    /// Links lead to more pages of one host than this.
    TooManyLinkedPages(u64),
    /// More directories on one host than this.
    TooManyDirectories(usize),
    /// URLs of this scheme cannot be fetched.
    Scheme(String),
    /// The host has this address, which is private and belongs to no given host.
    Private(IpAddr),
    /// Neither the listing nor the server says the size or the time that the expression needs.
    Undecided,
    /// The search was stopped before.
    NotReached,
    /// Links lead to more hosts than this.
    TooManyHosts(usize),
    /// A wanted file could not be downloaded.
    Download(Fault),
}

impl Cause {
    /// Why a URL is given up for `reason`, after a failure with this cause.
    pub(super) fn because(self, reason: Reason, policy: &RetryPolicy) -> Self {
        match (reason, self) {
            (Reason::LongWait(wait), Self::Status(status)) => Self::LongWait {
                status,
                wait,
                patience: policy.patience,
            },
            (Reason::OnlyRefusals, Self::Status(status)) => Self::OnlyRefusals {
                status,
                patience: policy.patience,
            },
            (_, cause) => cause,
        }
    }

    /// What was left out of a page that was read.
    pub fn left_out(&self) -> Option<&LeftOut> {
        match self {
            Self::OverlongLinks(left_out, _)
            | Self::Nameless(left_out)
            | Self::LeftOut(left_out)
            | Self::Outside(left_out) => Some(left_out),
            _ => None,
        }
    }

    /// Whether the cause may be gone at another time.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Transfer(_) | Self::Proxy(..) | Self::LongWait { .. } => true,
            Self::OnlyRefusals { .. } | Self::RobotsUnread(_) => true,
            Self::Status(status) => matches!(status, 408 | 429 | 500..),
            _ => false,
        }
    }

    /// The class of the failure, for statistics.
    pub fn class(&self) -> Class {
        match self {
            Self::Transfer(error) => match error.downcast_ref() {
                Some(error) => Class::of_error(error),
                None => Class::Other,
            },
            Self::Proxy(..) => Class::Proxy,
            Self::Status(status)
            | Self::LongWait { status, .. }
            | Self::OnlyRefusals { status, .. } => Class::Status(*status),
            Self::CutShort(_) | Self::Slow { .. } | Self::NoProgress => Class::CutShort,
            Self::NotHtml(_) | Self::WebPage(_) | Self::Encoded(_) => Class::NotListing,
            Self::Elsewhere(_)
            | Self::NoLocation
            | Self::NotFollowed(_)
            | Self::RedirectLoop
            | Self::RedirectUp(_)
            | Self::TooManyRedirects(_) => Class::Redirect,
            Self::Nameless(_)
            | Self::LeftOut(_)
            | Self::Outside(_)
            | Self::TooLarge { .. }
            | Self::TooManyPages(_)
            | Self::TooManyLinks(_)
            | Self::TooLongLinks(_)
            | Self::OverlongLinks(..)
            | Self::TooDeep(_)
            | Self::Loop(_)
            | Self::Private(_)
            | Self::SameListing
            | Self::TooManyHosts(_)
            | Self::TooManyLinkedPages(_)
            | Self::TooManyDirectories(_) => Class::Limit,
            Self::Robots | Self::RobotsUnread(_) => Class::Robots,
            Self::Download(_) => Class::Download,
            Self::Scheme(_) | Self::Undecided | Self::NotReached => Class::Other,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transfer(error) => f.write_str(&what(&**error)),
            Self::Proxy(proxy, error) => {
                write!(f, "through {proxy}: {}", what(&**error))
            },
            Self::Status(407) => f.write_str("the proxy asks for credentials (status 407)"),
            Self::Status(status) => write!(f, "the server answered {status}"),
            Self::LongWait {
                status,
                wait,
                patience,
            } => write!(
                f,
                "the server answered {status} and asks to wait {} s, which ends after the patience of {} s",
                wait.as_secs(),
                patience.as_secs_f64()
            ),
            Self::OnlyRefusals { status, patience } => write!(
                f,
                "the server answered {status}, and only 429 and 503 until the patience of {} s ended",
                patience.as_secs_f64()
            ),
            Self::CutShort(Shape::Page) => {
                f.write_str("the page was cut short: the connection closed before </html>")
            }
            Self::CutShort(Shape::Generic) => {
                f.write_str("the listing was cut short: the connection closed before its end")
            }
            Self::CutShort(shape) => {
                let end = shape.end();
                write!(
                    f,
                    "the listing was cut short: a page of {shape} without {end}"
                )
            }
            Self::NotHtml(content_type) => {
                write!(
                    f,
                    "not a directory listing: its content type is {content_type}"
                )
            }
            Self::WebPage(page) => write!(f, "not a directory listing: {page}"),
            Self::NoProgress => f.write_str(
                "the listing is incomplete: it says that it goes on, and no further page has more",
            ),
            Self::Encoded(coding) => write!(f, "content coding {coding} was not requested"),
            Self::TooLarge { limit, length } => {
                write!(f, "the page has more than {limit} bytes: --max-body ")?;
                match length {
                    Some(length) => write!(f, "{} reads it", in_units(*length)),
                    None => write!(f, "{} may read it", in_units(limit.saturating_mul(2))),
                }
            }
            Self::Slow { least, limit } => write!(
                f,
                "the answer came too slowly: less than {} KiB in {} s",
                least >> 10,
                limit.as_secs_f64()
            ),
            Self::TooManyLinks(limit) => write!(f, "the page has more than {limit} links"),
            Self::TooLongLinks(limit) => {
                write!(f, "the URLs in the page exceed {limit} bytes together")
            }
            Self::OverlongLinks(left_out, limit) => {
                let count = text::count(left_out.len() as u64, "entry", "entries");
                write!(f, "{count} left out, whose URLs exceed {limit} bytes: ")?;
                left_out.fmt(f)
            }
            Self::Elsewhere(to) => {
                write!(
                    f,
                    "redirects to {to}, which is not a directory below the start"
                )
            }
            Self::NotFollowed(why) => why.fmt(f),
            Self::NoLocation => f.write_str("redirects without a usable Location"),
            Self::RedirectLoop => f.write_str("redirects to itself"),
            Self::RedirectUp(to) => write!(f, "redirects to {to}, a directory above it"),
            Self::TooManyRedirects(limit) => write!(f, "more than {limit} redirects in a row"),
            Self::TooDeep(limit) => write!(f, "not read: deeper than {limit} below the start"),
            Self::Loop(limit) => write!(
                f,
                "not read: one name occurs more than {limit} times in the path, probably a loop of links"
            ),
            Self::SameListing => f.write_str(
                "not read: it lists exactly what a directory above it lists, probably a loop of links",
            ),
            Self::Robots => f.write_str("not read: robots.txt disallows it"),
            Self::RobotsUnread(cause) => write!(f, "not read: robots.txt could not be read: {cause}"),
            Self::Nameless(left_out) => {
                let count = text::count(left_out.len() as u64, "entry", "entries");
                write!(f, "{count} left out, whose names cannot be part of a path: ")?;
                left_out.fmt(f)
            }
            Self::LeftOut(left_out) => {
                let count = text::count(left_out.len() as u64, "link", "links");
                write!(f, "{count} left out, which lead elsewhere: ")?;
                left_out.fmt(f)
            }
            Self::Outside(left_out) => {
                let count = text::count(left_out.len() as u64, "object", "objects");
                write!(f, "{count} left out, which are not below the prefix that was asked for: ")?;
                left_out.fmt(f)
            }
            Self::TooManyPages(limit) => {
                write!(f, "not read: more than {limit} further pages on this host")
            }
            Self::TooManyLinkedPages(limit) => write!(
                f,
                "not read, like all further pages: links lead to more than {limit} pages of this host (--max-pages)"
            ),
            Self::TooManyDirectories(limit) => {
                write!(f, "not read: more than {limit} directories on this host")
            }
            Self::Scheme(scheme) => {
                write!(f, "{scheme} URLs are not supported, only http and https")
            }
            Self::Private(ip) => write!(f, "{ip} is a private address that belongs to no start"),
            Self::Undecided => f.write_str(
                "UNDECIDED: neither its listing nor the server says its size or its time exactly enough",
            ),
            Self::NotReached => f.write_str("not reached: the search was stopped"),
            Self::TooManyHosts(limit) => write!(f, "not read: links to more than {limit} hosts"),
            Self::Download(fault) => fault.fmt(f),
        }
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` already shows the error of the engine.
            Self::Transfer(error) | Self::Proxy(_, error) => error.source(),
            Self::Download(fault) => fault.source(),
            _ => None,
        }
    }
}

/// A failed request.
#[derive(Debug)]
pub struct Failure {
    /// The error.
    pub cause: Cause,
    /// What the error says about further attempts.
    pub scope: FailureScope,
}

/// What went wrong: the URL is shown beside the cause.
fn what(error: &(dyn Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref::<courser::Error>() {
        Some(error) => error.what().to_string(),
        None => error.to_string(),
    }
}

impl Failure {
    /// The failure of a request that went through `proxy`, if any. `part`: what arrived of the response.
    pub fn of(error: courser::Error, proxy: Option<&str>, part: Option<&Response>) -> Self {
        let scope = FailureScope::of(&error);
        if let ErrorKind::Denied(ip) = error.kind() {
            let cause = Cause::Private(*ip);
            return Self { cause, scope };
        }
        let cause = match (proxy, error.kind()) {
            (_, ErrorKind::Limit(LimitExceeded::BodyBytes(n) | LimitExceeded::DecodedBytes(n))) => {
                let length = part.and_then(plain_length).filter(|length| length > n);
                Cause::TooLarge { limit: *n, length }
            }
            (Some(proxy), _) if is_opening(error.phase()) => {
                Cause::Proxy(proxy.to_owned(), Box::new(error))
            }
            _ => Cause::Transfer(Box::new(error)),
        };
        Self { cause, scope }
    }
}

/// The length of a page whose bytes are not encoded.
fn plain_length(part: &Response) -> Option<u64> {
    let is_plain = part.header("Content-Encoding").is_none();
    part.content_length().filter(|_| is_plain)
}

/// The value of `--max-body` for at least this many bytes.
fn in_units(bytes: u64) -> String {
    let units = [("G", 30), ("M", 20)];
    let unit = units.into_iter().find(|(_, shift)| bytes >> shift >= 100);
    let (unit, shift) = unit.unwrap_or(("K", 10));
    format!("{}{unit}", bytes.div_ceil(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_too_large_is_named_with_what_would_do() {
        const MIB: u64 = 1 << 20;
        for (limit, length, expected) in [
            (2048, Some(2049), "2048 bytes: --max-body 3K reads it"),
            (2048, None, "2048 bytes: --max-body 4K may read it"),
            (
                64 * MIB,
                None,
                "67108864 bytes: --max-body 128M may read it",
            ),
            (
                64 * MIB,
                Some(100 * MIB + 1),
                "67108864 bytes: --max-body 101M reads it",
            ),
            (
                64 * MIB,
                Some(200 << 30),
                "67108864 bytes: --max-body 200G reads it",
            ),
        ] {
            let text = Cause::TooLarge { limit, length }.to_string();
            assert_eq!(text, format!("the page has more than {expected}"));
        }
    }
}
