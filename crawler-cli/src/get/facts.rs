//! The facts of a transfer: the values of `-w`, collected while the transfer runs.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use courser::proto::{ProxyFault, Scheme};
use courser::{Address, Error, ErrorKind, Phase, Report, Response, Version};
use url::Url;

use super::exit::{Exit, Failure, verify_result};
use super::link::Observed;
use super::redirect::Hop;
use super::target::without_credentials;
use crate::terminal::{Keep, neutralise_bytes};

/// What is known about one transfer at its end.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) exit: Exit,
    pub(super) error: Option<String>,
    pub(super) url: String,
    pub(super) url_effective: String,
    pub(super) urlnum: usize,
    pub(super) method: String,
    pub(super) filename: Option<String>,
    pub(super) referer: Option<String>,
    /// In upper case, as curl prints it; empty for a URL that could not be parsed.
    pub(super) scheme: &'static str,
    /// 0 without a response.
    pub(super) status: u16,
    /// As curl prints it: `1` or `1.1`.
    pub(super) http_version: Option<&'static str>,
    /// The headers of the final response, in order, as received.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) connects: u32,
    /// The server's certificate chain in DER; the first certificate is the server's own.
    pub(super) certificates: Vec<Vec<u8>>,
    /// How often the transfer was retried.
    pub(super) retries: u32,
    /// Whether the last request went through a proxy.
    pub(super) proxied: bool,
    pub(super) local: Option<(String, u16)>,
    pub(super) remote: Option<(String, u16)>,
    /// Bytes of the heads of all responses, interim responses included.
    pub(super) header_bytes: u64,
    pub(super) request_bytes: u64,
    pub(super) upload_bytes: u64,
    pub(super) download_bytes: u64,
    pub(super) times: Times,
    /// Redirects that were followed.
    pub(super) redirects: u32,
    /// The target of a redirect that was not followed; empty without one.
    pub(super) redirect_url: String,
    /// The status of the last response to CONNECT; 0 without one.
    pub(super) proxy_status: u16,
    /// OpenSSL's number for the fault of the server's certificate; 0 without a fault.
    pub(super) verify_result: u16,
    /// The same number for the certificate of an https proxy.
    pub(super) proxy_verify_result: u16,
}

/// Durations as curl's `%{time_*}`; zero if the transfer failed before that point. `redirect` and `total` count from
/// the start of the transfer; the others are sums over its requests, each measured from the start of the request.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) lookup: Duration,
    pub(super) connect: Duration,
    /// Until the end of the TLS handshake.
    pub(super) handshake: Duration,
    pub(super) pretransfer: Duration,
    /// Until the whole request was sent.
    pub(super) posttransfer: Duration,
    pub(super) starttransfer: Duration,
    /// Until the last request began.
    pub(super) redirect: Duration,
    pub(super) total: Duration,
}

impl Facts {
    /// The value of the first header with this name.
    pub(super) fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// How the transfer failed.
    pub(super) fn note_failure(&mut self, failure: &Failure) {
        self.exit = failure.exit;
        self.error = Some(failure.to_string());
    }

    /// Bytes per second over the whole transfer.
    pub(super) fn speed(&self, bytes: u64) -> u64 {
        let seconds = self.times.total.as_secs_f64();
        if seconds > 0.0 {
            // The cast saturates: values above the range become `u64::MAX`.
            (bytes as f64 / seconds) as u64
        } else {
            bytes
        }
    }

    /// Resets what belongs to one request; sums over requests stay.
    pub(super) fn begin(&mut self, hop: &Hop) {
        self.url_effective = hop.target.effective();
        self.scheme = match hop.target.scheme {
            Scheme::Http => "HTTP",
            Scheme::Https => "HTTPS",
        };
        self.download_bytes = 0;
        self.upload_bytes = 0;
    }

    /// Adds the times of one request to the sums, as curl does.
    pub(super) fn note_connection(&mut self, report: &Report, observed: &Observed, begun: Instant) {
        let end = |address: Option<&Address>| match address {
            Some(Address::Tcp(address)) => Some((address.ip().to_string(), address.port())),
            Some(Address::Unix(_)) | None => None,
        };
        self.remote = end(report.remote().or(observed.remote.as_ref()));
        self.local = end(report.local().or(observed.local.as_ref()));
        let since = |at: Option<Instant>| {
            at.map_or(Duration::ZERO, |at| at.saturating_duration_since(begun))
        };
        let timings = report.timings();
        if !report.reused() {
            self.connects += u32::from(observed.connected.is_some());
            // The report has these times only if a connection became usable; otherwise take the observer's.
            let lookup = timings.resolve.unwrap_or_else(|| since(observed.resolved));
            self.times.lookup += lookup;
            let connect = timings.connect.map(|connect| lookup + connect);
            self.times.connect += connect.unwrap_or_else(|| since(observed.connected));
        }
        let ready = timings.queued.filter(|_| report.attempts() > 0);
        let ready = ready.unwrap_or_default();
        if let Some(tls) = report.tls() {
            self.times.handshake += ready;
            self.certificates.clone_from(&tls.certificates);
        }
        self.times.pretransfer += ready;
        self.times.posttransfer += timings.sent.unwrap_or_default();
        self.times.starttransfer += timings.first_byte.unwrap_or_default();
        if let Some(status) = report.proxy_status() {
            self.proxy_status = status;
        }
    }

    pub(super) fn note_response(&mut self, response: &Response, proxy_head: Option<&[u8]>) {
        self.header_bytes += proxy_head.map_or(0, <[u8]>::len) as u64;
        if response.status() == 0 {
            return;
        }
        self.status = response.status();
        self.http_version = Some(match response.version() {
            Version::Http10 => "1",
            Version::Http11 => "1.1",
        });
        let interim: usize = response.interim().map(|head| head.bytes().len()).sum();
        self.header_bytes += (interim + response.head().len()) as u64;
        let terminal = io::stdout().is_terminal() || io::stderr().is_terminal();
        let shown = |value: &[u8]| {
            if terminal {
                neutralise_bytes(value, Keep::Nothing)
            } else {
                value.to_vec()
            }
        };
        let headers = response.headers();
        self.headers = headers
            .map(|(name, value)| (name.to_owned(), shown(value)))
            .collect();
    }

    /// Notes the target of a redirect that is not followed. The target may be invalid.
    pub(super) fn note_location(&mut self, response: &Response) {
        let location = response.header("location").unwrap_or_default();
        let base = Url::parse(&self.url_effective).ok();
        let joined = base.and_then(|base| base.join(&String::from_utf8_lossy(location)).ok());
        if let Some(url) = joined.filter(|_| !location.is_empty()) {
            self.redirect_url = without_credentials(url.as_str().as_bytes());
        }
    }

    pub(super) fn note_error(&mut self, error: &Error) {
        match error.kind() {
            ErrorKind::Proxy(ProxyFault::Status(status)) => self.proxy_status = *status,
            ErrorKind::Tls(fault) if error.phase() == Phase::Tls => {
                self.verify_result = verify_result(fault);
            }
            ErrorKind::Tls(fault) if error.phase() == Phase::Proxy => {
                self.proxy_verify_result = verify_result(fault);
            }
            _ => {}
        }
    }
}
