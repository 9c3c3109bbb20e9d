//! The arguments of `get` as they were typed, without any interpretation: one [`LowArgs`] for a command line.
//! [`plan`](super::plan) combines the options and reads the files that they name.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::time::Duration;

use courser::Family;

use super::auth::{ProxyAuth, Schemes};
use super::files::FileArgs;
use super::form::FormArgs;
use super::netrc::NetrcArgs;
use super::protocols::ProtocolArgs;
use super::rate::Rate;
use super::redirect::Follow;
use super::retry::Retry;
use super::tls::TlsSettings;

/// Everything typed on one command line.
#[derive(Debug, Default)]
pub(crate) struct LowArgs {
    pub(crate) global: Global,
    /// The options and URLs between two `--next`. Invariant: each group has a URL, unless there is a failure in `early`.
    pub(crate) groups: Vec<Group>,
    /// The first failure of an option that has an exit code of its own.
    pub(crate) early: Option<Early>,
}

/// A failure of an option, which is not wrong usage.
#[derive(Debug)]
pub(crate) enum Early {
    /// `-K`: the file, and why it cannot be read.
    Unreadable(String),
    /// `--proto-default`
    UnknownProtocol(String),
}

/// Options that hold for every URL, at any place of the command line.
#[derive(Debug, Default)]
pub(crate) struct Global {
    pub(crate) silent: bool,
    pub(crate) show_error: bool,
    pub(crate) verbose: bool,
    /// `--trace` and `--trace-ascii`: where to.
    pub(crate) trace: Option<(TraceForm, OsString)>,
    pub(crate) trace_time: bool,
    pub(crate) fail_early: bool,
    /// The last option that asked for a newer version of HTTP.
    pub(crate) newer_http: Option<&'static str>,
    pub(crate) rate: Option<Rate>,
    /// `--stderr`
    pub(crate) stderr: Option<OsString>,
    pub(crate) meter: MeterArgs,
    pub(crate) parallel: ParallelArgs,
}

/// How bytes are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceForm {
    Hex,
    Ascii,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeterArgs {
    /// `--no-progress-meter`
    pub(crate) off: bool,
    /// `-#`
    pub(crate) bar: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParallelArgs {
    /// `-Z`
    pub(crate) on: bool,
    /// `--parallel-max`; `None`: the default.
    pub(crate) most: Option<usize>,
}

/// Options that hold for the URLs of one group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) urls: Vec<OsString>,
    /// `-o` and `-O`. `None` means `-O`: the file name is the last segment of the URL's path.
    pub(crate) outputs: Vec<Option<OsString>>,
    /// `-T`
    pub(crate) uploads: Vec<OsString>,
    pub(crate) request: RequestArgs,
    pub(crate) form: FormArgs,
    pub(crate) files: FileArgs,
    pub(crate) result: ResultArgs,
    pub(crate) cookies: CookieArgs,
    pub(crate) follow: Follow,
    pub(crate) retry: Retry,
    pub(crate) connect: ConnectArgs,
    pub(crate) tls: TlsSettings,
    pub(crate) proxy: ProxyArgs,
    pub(crate) netrc: NetrcArgs,
    pub(crate) protocols: ProtocolArgs,
    pub(crate) speed: SpeedArgs,
}

/// `-y` and `-Y`: when a transfer is too slow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpeedArgs {
    /// Bytes per second.
    pub(crate) least: Option<u32>,
    pub(crate) time: Option<Duration>,
}

/// Options about the request.
#[derive(Debug, Default)]
pub(crate) struct RequestArgs {
    pub(crate) method: Option<OsString>,
    pub(crate) head: bool,
    pub(crate) headers: Vec<OsString>,
    pub(crate) data: Vec<Data>,
    pub(crate) json: bool,
    /// `-G`: the data becomes a part of the query.
    pub(crate) get: bool,
    /// `--url-query`
    pub(crate) query: Vec<OsString>,
    pub(crate) referer: Option<OsString>,
    pub(crate) range: Option<OsString>,
    pub(crate) bearer: Option<OsString>,
    pub(crate) user_agent: Option<OsString>,
    pub(crate) user: Option<OsString>,
    pub(crate) auth: Schemes,
    pub(crate) compressed: bool,
    pub(crate) path_as_is: bool,
    /// `--disallow-username-in-url`
    pub(crate) no_user_in_url: bool,
    /// `-0`
    pub(crate) http10: bool,
    /// `--expect100-timeout`
    pub(crate) expect_wait: Option<Duration>,
    /// `-g`: URLs have no globs.
    pub(crate) globoff: bool,
    /// `--request-target`
    pub(crate) target: Option<OsString>,
    /// `--raw`: the codings of the response stay.
    pub(crate) raw: bool,
    /// `--ignore-content-length`
    pub(crate) ignore_length: bool,
    /// `-z`, as typed.
    pub(crate) time: Option<OsString>,
}

/// Options about the response and its output.
#[derive(Debug, Default)]
pub(crate) struct ResultArgs {
    pub(crate) include: bool,
    pub(crate) suppress_connect_headers: bool,
    pub(crate) fail: bool,
    pub(crate) fail_with_body: bool,
    pub(crate) write_out: Option<OsString>,
    pub(crate) max_time: Option<Duration>,
    pub(crate) max_filesize: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct CookieArgs {
    /// `-b`
    pub(crate) cookies: Vec<OsString>,
    /// `-c`
    pub(crate) jar: Option<OsString>,
    /// `-j`: session cookies of the files of `-b` are left out.
    pub(crate) junk_session: bool,
}

/// Options about connections to servers.
#[derive(Debug, Default)]
pub(crate) struct ConnectArgs {
    pub(crate) unix_socket: Option<OsString>,
    /// The name of a Unix socket in the abstract namespace.
    pub(crate) abstract_socket: Option<OsString>,
    pub(crate) interface: Option<OsString>,
    pub(crate) local_ports: Option<RangeInclusive<u16>>,
    pub(crate) name_servers: Option<Vec<SocketAddr>>,
    /// `--no-keepalive`
    pub(crate) no_keepalive: bool,
    pub(crate) keepalive: Option<Duration>,
    /// `--no-tcp-nodelay`
    pub(crate) delay: bool,
    /// `--happy-eyeballs-timeout-ms`
    pub(crate) attempt_delay: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) resolve: Vec<OsString>,
    pub(crate) connect_to: Vec<OsString>,
    pub(crate) family: Option<Family>,
    /// `--limit-rate`: bytes per second in each direction.
    pub(crate) rate: Option<NonZeroU64>,
}

#[derive(Debug, Default)]
pub(crate) struct ProxyArgs {
    pub(crate) proxy: Option<OsString>,
    pub(crate) user: Option<OsString>,
    pub(crate) noproxy: Option<OsString>,
    pub(crate) headers: Vec<OsString>,
    pub(crate) tunnel: bool,
    pub(crate) auth: ProxyAuth,
    /// TLS options for connections to an https proxy.
    pub(crate) tls: TlsSettings,
}

/// One piece of a request body as typed: text, or `@` and a file name.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Data {
    /// `-d`: CR, LF and NUL bytes of a file are removed.
    Ascii(OsString),
    /// `--data-binary`: a file is sent as it is.
    Binary(OsString),
    /// `--data-raw`: an `@` is part of the text.
    Raw(OsString),
    /// `--json`: like `--data-binary`, but joined to the previous piece without `&`.
    Json(OsString),
    /// `--data-urlencode`: percent-encoded, but for a name before `=` or `@`.
    Encoded(OsString),
}
