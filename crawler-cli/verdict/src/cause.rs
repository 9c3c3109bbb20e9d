//! The classes of verdicts, and the causes within each class.

use std::borrow::Cow;

/// What a verdict says about a URL. Only [`Negative`](Self::Negative) can ever lead to "gone".
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// The URL is good.
    Ok,
    /// The server, or the name servers, say that the resource does not exist.
    Negative,
    /// The server could not be reached, or failed.
    Network,
    /// The answer says nothing about the resource: authentication, bot protection, throttling.
    Unknown,
    /// The answer is good, but the content is probably not what the link means; or the link itself is wrong.
    Soft,
    /// Taken while a guard was on: says nothing.
    Void,
}

impl Class {
    /// All classes, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Negative,
        Self::Network,
        Self::Unknown,
        Self::Soft,
        Self::Void,
    ];

    /// The name in JSON output: `ok neg net unk soft void`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Negative => "neg",
            Self::Network => "net",
            Self::Unknown => "unk",
            Self::Soft => "soft",
            Self::Void => "void",
        }
    }
}

/// Why a URL is not good.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// Status 404, confirmed by GET.
    Status404,
    /// Status 410, confirmed by GET.
    Status410,
    /// The name does not exist.
    DnsNxdomain,
    /// The connection was refused.
    Refused,
    /// There is no way to the host: this machine, or a router, knows none.
    Unreachable,
    /// The connection was reset or closed before an answer.
    Reset,
    /// No connection within the time limit.
    ConnectTimeout,
    /// No byte of the answer within the time limit.
    FirstByteTimeout,
    /// The whole request took too long.
    Timeout,
    /// The certificate has expired.
    TlsExpired,
    /// The certificate is not valid yet.
    TlsNotYetValid,
    /// The certificate is for another name.
    TlsName,
    /// The certificate is not signed by a trusted authority.
    TlsUntrusted,
    /// Another failure of TLS.
    Tls,
    /// The name servers failed or did not answer.
    DnsServfail,
    /// The body ended too early.
    Truncated,
    /// The answer was not HTTP.
    Protocol,
    /// A redirect leads to a URL that has redirected before.
    RedirectLoop,
    /// More redirects than are followed.
    TooManyRedirects,
    /// Status 500 to 599: the number.
    Status5xx(u16),
    /// Status 401 or 407: the resource exists, but asks for credentials.
    Auth,
    /// The server refuses programs: 403, 451, 999, challenge pages.
    Blocked,
    /// The server asks for fewer requests, for longer than the patience: 429, or 503 with Retry-After.
    Throttled,
    /// robots.txt disallows the request.
    Robots,
    /// A redirect or a link of a public page leads to a private address.
    PrivateAddress,
    /// Another status from 400 to 499: the number.
    Status4xx(u16),
    /// The page or file has no element with the name of the fragment.
    FragmentMissing,
    /// There is no such file.
    FileMissing,
    /// The link is no valid URL.
    InvalidUrl,
}

impl Cause {
    /// The class of verdicts with this cause.
    pub fn class(self) -> Class {
        match self {
            Self::Status404 | Self::Status410 | Self::DnsNxdomain => Class::Negative,
            Self::Refused
            | Self::Unreachable
            | Self::Reset
            | Self::ConnectTimeout
            | Self::FirstByteTimeout
            | Self::Timeout
            | Self::TlsExpired
            | Self::TlsNotYetValid
            | Self::TlsName
            | Self::TlsUntrusted
            | Self::Tls
            | Self::DnsServfail
            | Self::Truncated
            | Self::Protocol
            | Self::RedirectLoop
            | Self::TooManyRedirects
            | Self::Status5xx(_) => Class::Network,
            Self::Auth
            | Self::Blocked
            | Self::Throttled
            | Self::Robots
            | Self::PrivateAddress
            | Self::Status4xx(_) => Class::Unknown,
            Self::FragmentMissing | Self::FileMissing | Self::InvalidUrl => Class::Soft,
        }
    }

    /// The name in JSON output, such as `status_404`, `status_503` or `tls_expired`. Statuses from 400 to 499 without a
    /// name of their own are `status_4xx`.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Status404 => "status_404",
            Self::Status410 => "status_410",
            Self::DnsNxdomain => "dns_nxdomain",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Reset => "reset",
            Self::ConnectTimeout => "connect_timeout",
            Self::FirstByteTimeout => "first_byte_timeout",
            Self::Timeout => "timeout",
            Self::TlsExpired => "tls_expired",
            Self::TlsNotYetValid => "tls_not_yet_valid",
            Self::TlsName => "tls_name",
            Self::TlsUntrusted => "tls_untrusted",
            Self::Tls => "tls",
            Self::DnsServfail => "dns_servfail",
            Self::Truncated => "truncated",
            Self::Protocol => "protocol",
            Self::RedirectLoop => "redirect_loop",
            Self::TooManyRedirects => "too_many_redirects",
            Self::Status5xx(status) => return Cow::Owned(format!("status_{status}")),
            Self::Auth => "auth",
            Self::Blocked => "blocked",
            Self::Throttled => "throttled",
            Self::Robots => "robots",
            Self::PrivateAddress => "private_address",
            Self::Status4xx(_) => "status_4xx",
            Self::FragmentMissing => "fragment_missing",
            Self::FileMissing => "file_missing",
            Self::InvalidUrl => "invalid_url",
        })
    }
}

/// What one check says about a URL.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// The URL is good.
    Ok,
    /// The URL is not good, or could not be judged.
    Failed(Cause),
    /// Taken while a guard was on. The cause is what was seen, if the URL was not good.
    Void(Option<Cause>),
}

impl Verdict {
    /// The class.
    pub fn class(self) -> Class {
        match self {
            Self::Ok => Class::Ok,
            Self::Failed(cause) => cause.class(),
            Self::Void(_) => Class::Void,
        }
    }

    /// Why the URL is not good; `None` if it is.
    pub fn cause(self) -> Option<Cause> {
        match self {
            Self::Ok => None,
            Self::Failed(cause) => Some(cause),
            Self::Void(cause) => cause,
        }
    }
}
