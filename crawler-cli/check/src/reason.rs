//! What was seen of a URL, in words for a person.

use std::time::Duration;

use super::host::GIVEN_UP;
use super::{Checked, Standing};
use plain::redirect::Redirect;
use plain::text::rough_span;
use verdict::{Cause, Verdict};

/// Why a URL is not good, or where its redirects lead; `None` if it is good without redirects.
pub fn reason(checked: &Checked) -> Option<String> {
    let detail = checked.answer.detail.as_deref();
    let mut words = match checked.answer.verdict {
        Verdict::Ok => match (redirected(checked), detail) {
            (Some(words), Some(detail)) => format!("{words}, {detail}"),
            (Some(words), None) => words,
            (None, detail) => format!("good, {}", detail?),
        },
        Verdict::Failed(cause) => of_cause(cause, checked.answer.status, detail),
        Verdict::Void(None) => "not judged: the network of this machine seemed to fail".to_owned(),
        Verdict::Void(Some(cause)) => {
            let seen = of_cause(cause, checked.answer.status, detail);
            format!("not judged: the network of this machine seemed to fail ({seen})")
        }
    };
    // Of a good URL, the words say it already. Without a URL, the last answer was that of the URL itself.
    if let (Some(_), Some(url)) = (checked.answer.verdict.cause(), &checked.answer.final_url) {
        words += &format!(" (redirected to {url})");
    }
    match checked.standing {
        Standing::FailsRecently(Some(left)) => {
            // Just after a failure, hardly anything of the time has passed.
            let left = Duration::from_secs(left.as_secs().div_ceil(60) * 60);
            words += &format!(" (fails in {})", rough_span(left));
        }
        Standing::FailsRecently(None) => words += " (not for long enough: --fail-after)",
        _ => {}
    }
    Some(words)
}

/// Whether the URL was not asked to the end, because its host was given up.
pub fn is_of_host_given_up(checked: &Checked) -> bool {
    let words = checked.answer.detail.as_deref().unwrap_or_default();
    // Not what a server says.
    checked.answer.status.is_none() && words.trim_end_matches(')').ends_with(GIVEN_UP)
}

/// Where the redirects of a good URL lead; `None` without redirects.
fn redirected(checked: &Checked) -> Option<String> {
    let last: &Redirect = checked.answer.redirects.last()?;
    let words = match &checked.answer.moved_to {
        Some(url) => format!("moved permanently to {url}"),
        None => format!("redirected to {}", last.url),
    };
    Some(match checked.answer.redirects.len() {
        1 => words,
        n => format!("{words} ({n} redirects)"),
    })
}

/// A detail says more about a status; in all other cases it takes the place of the general words.
fn of_cause(cause: Cause, status: Option<u16>, detail: Option<&str>) -> String {
    let with_status = |status: u16, more: &str| {
        let mut words = match phrase(status) {
            "" => format!("status {status}"),
            phrase => format!("{status} {phrase}"),
        };
        for more in [more, detail.unwrap_or("")] {
            if !more.is_empty() {
                words.push_str(": ");
                words.push_str(more);
            }
        }
        words
    };
    let status_or = |words: &str, more: &str| match status {
        Some(status) if status >= 400 => with_status(status, more),
        _ => detail.unwrap_or(words).to_owned(),
    };
    match cause {
        Cause::Status404 => with_status(404, ""),
        Cause::Status410 => with_status(410, ""),
        Cause::Status5xx(status) | Cause::Status4xx(status) => with_status(status, ""),
        Cause::Auth => status_or("asks for credentials", "asks for credentials"),
        Cause::Blocked => status_or("the server refuses programs", "the server refuses programs"),
        Cause::Throttled => status_or(
            "the server asks for fewer requests",
            "the server asks for fewer requests, for longer than --patience",
        ),
        // No status of RFC 9110.
        Cause::Protocol if let (Some(status), None) = (status, detail) => with_status(status, ""),
        other => detail.unwrap_or(general(other)).to_owned(),
    }
}

/// The words for a cause without a status.
fn general(cause: Cause) -> &'static str {
    match cause {
        Cause::Status404 => "404 Not Found",
        Cause::Status410 => "410 Gone",
        Cause::DnsNxdomain => "there is no host with this name",
        Cause::Refused => "the connection was refused",
        Cause::Unreachable => "there is no way to the host",
        Cause::Reset => "the connection was closed before an answer",
        Cause::ConnectTimeout => "no connection within the time limit",
        Cause::FirstByteTimeout => "no answer within the time limit",
        Cause::Timeout => "the answer took too long",
        Cause::TlsExpired => "the certificate has expired",
        Cause::TlsNotYetValid => "the certificate is not valid yet",
        Cause::TlsName => "the certificate is for another name",
        Cause::TlsUntrusted => "the certificate is not signed by a trusted authority",
        Cause::Tls => "the TLS handshake failed",
        Cause::DnsServfail => "the name servers failed or did not answer",
        Cause::Truncated => "the answer ended too early",
        Cause::Protocol => "the answer was not HTTP",
        Cause::RedirectLoop => "the redirects lead in a circle",
        Cause::TooManyRedirects => "too many redirects",
        Cause::Status5xx(_) => "the server failed",
        Cause::Auth => "asks for credentials",
        Cause::Blocked => "the server refuses programs",
        Cause::Throttled => "the server asks for fewer requests",
        Cause::Robots => "robots.txt disallows the request",
        Cause::PrivateAddress => "leads to a private address; see --allow-private",
        Cause::Status4xx(_) => "the server refuses the request",
        Cause::FragmentMissing => "nothing there has the name of the fragment",
        Cause::FileMissing => "there is no such file",
        Cause::InvalidUrl => "not a valid URL",
    }
}

/// The reason phrase of an error status (IANA's registry); empty if there is none.
fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}
