//! One transfer: from a URL over its redirects to its output.

use std::io::{self, Cursor, IsTerminal as _};
use std::os::unix::ffi::OsStrExt as _;
use std::thread;
use std::time::{Duration, Instant};

use courser::proto::{ProxyFault, Scheme};
use courser::{
    Address, Call, CallId, Codings, CookieJar, Error, ErrorKind, Phase, Read, Report, Request,
    Response, Sent, Version,
};
use url::{Host, Url};

use super::exit::{Exit, Failure, verify_result};
use super::link::{Link, Links, Seen};
use super::output::{Sink, say};
use super::plan::{Composed, Kind, Options, Transfer};
use super::redirect::Errand;
use super::show;
use super::target::{Target, without_credentials};
use super::upload::{Opened, Upload};
use super::write_out::Facts;
use crate::terminal::{Keep, neutralise_bytes};

/// What lasts from one transfer to the next: connections, cookies and buffers.
pub(super) struct Session {
    links: Links,
    jar: CookieJar,
    verbose: bool,
    /// Warnings are not wanted.
    silent: bool,
    /// Stdin can be read once.
    stdin_used: bool,
    response: Response,
    buffer: Vec<u8>,
}

impl Session {
    /// Without connections. `verbose` is `-v`, `silent` is `-s`.
    pub(super) fn new(verbose: bool, silent: bool, jar: CookieJar) -> Self {
        Self {
            links: Links::new(verbose),
            jar,
            verbose,
            silent,
            stdin_used: false,
            response: Response::new(),
            buffer: vec![0; BUFFER],
        }
    }

    /// Fetches one URL, more than once if `--retry` says so, and writes its output. The facts hold whatever became
    /// known of the last time, also of a failure.
    pub(super) fn run(
        &mut self,
        transfer: &Transfer,
        urlnum: usize,
    ) -> (Facts, Result<(), Failure>) {
        let mut retries = transfer.options.retry.begin(Instant::now());
        loop {
            let (mut facts, outcome) = self.run_once(transfer, urlnum);
            facts.retries = transfer.options.retry.limit() - retries.left();
            let Some(delay) = retries.next(Instant::now(), &facts, &outcome) else {
                return (facts, outcome);
            };
            if !self.silent {
                let cause = match &outcome {
                    Err(failure) => failure.to_string(),
                    Ok(()) => format!("the server answered with status {}", facts.status),
                };
                let (seconds, left) = (delay.as_secs_f64(), retries.left());
                say(&format!(
                    "Warning: {cause}; again in {seconds} s, {left} retries left"
                ));
            }
            thread::sleep(delay);
        }
    }

    fn run_once(&mut self, transfer: &Transfer, urlnum: usize) -> (Facts, Result<(), Failure>) {
        let start = Instant::now();
        let output = transfer.output.as_deref();
        let mut facts = Facts {
            url: without_credentials(transfer.url.as_bytes()),
            urlnum,
            filename: output.map(|name| name.to_string_lossy().into_owned()),
            referer: transfer
                .options
                .referer
                .as_ref()
                .map(|url| String::from_utf8_lossy(url).into_owned()),
            ..Facts::default()
        };
        let outcome = self.fetch(transfer, start, &mut facts);
        facts.times.total = start.elapsed();
        if let Err(failure) = &outcome {
            facts.exit = failure.exit;
            facts.error = Some(failure.to_string());
        }
        (facts, outcome)
    }

    fn fetch(
        &mut self,
        transfer: &Transfer,
        start: Instant,
        facts: &mut Facts,
    ) -> Result<(), Failure> {
        let options = &*transfer.options;
        let mut first = Target::parse(transfer.url.as_bytes(), options.path_as_is)?;
        if let Some(upload) = &transfer.upload {
            upload.name_target(&mut first);
        }
        let deadline = options.max_time.and_then(|limit| start.checked_add(limit));
        let mut sink = Sink::new(transfer.output.as_deref());
        let mut errand = Errand::first(transfer, first.clone());
        while let Some(next) = self.hop(transfer, &errand, deadline, &mut sink, facts)? {
            let (status, location) = match next {
                Next::Follow(status, location) => (status, location),
                Next::WithoutExpect => {
                    errand.waits = false;
                    continue;
                }
            };
            let followed = errand.follow(
                &options.follow,
                &first,
                status,
                &location,
                options.path_as_is,
            );
            match &followed {
                Err(failure) if failure.exit == Exit::TooManyRedirects => {
                    facts.note_location(&self.response);
                }
                _ => facts.redirects = errand.followed + 1,
            }
            errand = followed?;
            facts.times.redirect = start.elapsed();
            if self.verbose {
                say(&format!("* Following to {}", errand.target.effective()));
            }
        }
        sink.finish()
    }

    /// Sends one request and takes its response; what it leads to, if that is to be followed.
    fn hop(
        &mut self,
        transfer: &Transfer,
        errand: &Errand,
        deadline: Option<Instant>,
        sink: &mut Sink,
        facts: &mut Facts,
    ) -> Result<Option<Next>, Failure> {
        let options = &*transfer.options;
        facts.begin(errand);
        let upload = match &transfer.upload {
            Some(upload) if errand.kind == Kind::Put => Some(self.open(upload)?),
            _ => None,
        };
        let body = options
            .body
            .as_deref()
            .filter(|_| errand.kind == Kind::Post);
        let length = match (&upload, body) {
            (Some(upload), _) => upload.length(),
            (None, body) => body.map(|body| body.len() as u64),
        };
        let cookie = options.cookies.header(&self.jar, errand);
        let composed = options.compose(errand, cookie, length);
        facts.method.clone_from(&composed.method);
        self.links.forget();
        let link = self.links.link(&options.settings, &errand.target)?;
        let target = link.request_target(&errand.target);
        facts.proxied = link.is_proxied(&errand.target);
        let request = request(composed, target, body, upload, options.compressed);
        let mut call = Call::new(request, std::mem::take(&mut self.response)).streaming(true);
        if let Some(deadline) = deadline {
            call = call.deadline(deadline);
        }
        let begun = Instant::now();
        let done = link.complete(call)?;
        self.response = done.response;
        if self.verbose {
            show::response(&self.response);
        }
        let seen = self.links.seen();
        facts.note_connection(&done.report, &seen, begun);
        let (proxy_head, asked_proxy) = (seen.proxy_head.clone(), seen.asked_proxy);
        drop(seen);
        if !matches!(&done.outcome, Err(error) if error.sent() == Sent::Nothing) {
            facts.upload_bytes = length.unwrap_or(0);
            facts.request_bytes += done.request.encoded_head().len() as u64 + facts.upload_bytes;
        }
        facts.note_response(&self.response, proxy_head.as_deref());
        options.cookies.store(&self.jar, errand, &self.response);
        let mut next = options
            .follow
            .location(&self.response)
            .map(|location| Next::Follow(self.response.status(), location.to_vec()));
        let waited = errand.waits && options.waits(errand, length);
        if waited && self.response.status() == 417 && transfer.upload != Some(Upload::Stdin) {
            next = Some(Next::WithoutExpect);
        }
        if next.is_none() && (300..400).contains(&facts.status) {
            facts.note_location(&self.response);
        }
        let mut output = Output {
            sink,
            options,
            written: &mut facts.download_bytes,
        };
        let link = self.links.link(&options.settings, &errand.target)?;
        match done.outcome {
            Ok(()) => {
                let mut outcome = output.take(
                    link,
                    done.id,
                    &self.response,
                    proxy_head.as_deref(),
                    next.is_some(),
                    &mut self.buffer,
                );
                // What is not read to its end is not wanted.
                link.cancel(done.id);
                if outcome.is_ok() && self.response.decoded() {
                    // What came, and not what was made of it.
                    let announced = announced_length(&self.response);
                    facts.download_bytes = announced.unwrap_or(facts.download_bytes);
                }
                if options.fail_with_body && next.is_none() && facts.status >= 400 {
                    outcome = outcome.and_then(|()| Err(http_error(facts.status)));
                }
                outcome.map(|()| next)
            }
            Err(error) => {
                output.take_failed(&self.response, proxy_head.as_deref(), next.is_some())?;
                facts.note_error(&error);
                let mut failure = failure(&error, options, &errand.target, asked_proxy);
                if facts.proxied {
                    failure = failure.at_proxy();
                }
                match next {
                    // Nobody wanted the body.
                    Some(next) if UNMISSED.contains(&failure.exit) => Ok(Some(next)),
                    _ => Err(failure),
                }
            }
        }
    }

    fn open(&mut self, upload: &Upload) -> Result<Opened, Failure> {
        if *upload == Upload::Stdin && std::mem::replace(&mut self.stdin_used, true) {
            let cause = "stdin is used up and cannot be sent again";
            return Err(Failure::new(Exit::Rewind, "request", cause));
        }
        upload.open()
    }
}

/// What comes after a response that is not the last one.
enum Next {
    /// The status, and where it leads.
    Follow(u16, Vec<u8>),
    /// The server does not know `Expect` (RFC 9110 §15.5.18).
    WithoutExpect,
}

/// The output of one transfer, and the rules that can end it early.
struct Output<'a> {
    sink: &'a mut Sink,
    options: &'a Options,
    /// Bytes of the body.
    written: &'a mut u64,
}

enum Wanted {
    HeadOnly,
    Body,
}

impl Output<'_> {
    /// Writes a response whose head is there and whose body is still to come. The body of one that leads elsewhere is
    /// read, for the connection's sake, and dropped.
    fn take(
        &mut self,
        link: &mut Link,
        id: CallId,
        response: &Response,
        proxy_head: Option<&[u8]>,
        leads_on: bool,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        match self.head(response, proxy_head)? {
            Wanted::HeadOnly if !leads_on => Ok(()),
            _ => self.body(link, id, leads_on, buffer),
        }
    }

    /// Writes what came of a response that failed before its head could be handed out, if its head is whole.
    fn take_failed(
        &mut self,
        response: &Response,
        proxy_head: Option<&[u8]>,
        leads_on: bool,
    ) -> Result<(), Failure> {
        if response.status() == 0 {
            return self.proxy_head(proxy_head);
        }
        match self.head(response, proxy_head)? {
            Wanted::Body if !leads_on && !response.body().is_empty() => self.piece(response.body()),
            _ => Ok(()),
        }
    }

    fn proxy_head(&mut self, head: Option<&[u8]>) -> Result<(), Failure> {
        match head {
            Some(head) if self.options.include && self.options.show_connect => {
                self.sink.write_head(head)
            }
            _ => Ok(()),
        }
    }

    fn head(&mut self, response: &Response, proxy_head: Option<&[u8]>) -> Result<Wanted, Failure> {
        self.proxy_head(proxy_head)?;
        if self.options.include {
            for interim in response.interim() {
                self.sink.write_head(interim.bytes())?;
            }
            self.sink.write_head(response.head())?;
        }
        let status = response.status();
        if let Some(limit) = self.options.max_filesize
            && announced_length(response).is_some_and(|length| length > limit)
        {
            return Err(too_large(limit));
        }
        if self.options.compressed
            && !self.options.head_only
            && let Some(coding) = unknown_coding(response)
        {
            let cause = format!("unknown content coding {}", coding.escape_ascii());
            return Err(Failure::new(Exit::BadEncoding, "response", cause));
        }
        if self.options.fail && status >= 400 {
            return Err(http_error(status));
        }
        // What follows 101 is another protocol.
        Ok(if self.options.head_only || status == 101 {
            Wanted::HeadOnly
        } else {
            Wanted::Body
        })
    }

    /// Writes the body as it comes. What arrived before an error is written before the error is returned.
    fn body(
        &mut self,
        link: &mut Link,
        id: CallId,
        dropped: bool,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        loop {
            match link.read_body(id, buffer) {
                Ok(Read::Data(n)) if !dropped => self.piece(&buffer[..n])?,
                Ok(Read::Data(_) | Read::Pending) => {}
                Ok(Read::End { trailers, .. }) => return self.trailers(&trailers),
                // Nobody wanted it.
                Err(failure) if dropped && UNMISSED.contains(&failure.exit) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let limit = self.options.max_filesize.unwrap_or(u64::MAX);
        let room = usize::try_from(limit - *self.written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        self.sink.write(fitting)?;
        *self.written += fitting.len() as u64;
        if fitting.len() < bytes.len() {
            return Err(too_large(limit));
        }
        Ok(())
    }

    fn trailers(&mut self, response: &Response) -> Result<(), Failure> {
        if self.options.include {
            for (name, value) in response.trailers() {
                let line = [name.as_bytes(), b": ", value, b"\r\n"].concat();
                self.sink.write_head(&line)?;
            }
        }
        Ok(())
    }
}

fn http_error(status: u16) -> Failure {
    let cause = format!("the server answered with status {status}");
    Failure::new(Exit::HttpError, "response", cause)
}

fn too_large(limit: u64) -> Failure {
    Failure::new(
        Exit::TooLarge,
        "response",
        format!("the body has more than {limit} bytes"),
    )
}

/// A content coding that is none of those that the engine takes off.
fn unknown_coding(response: &Response) -> Option<&[u8]> {
    let known: [&[u8]; 8] = [
        b"gzip",
        b"x-gzip",
        b"deflate",
        b"br",
        b"zstd",
        b"identity",
        b"none",
        b"",
    ];
    response
        .header_all("content-encoding")
        .flat_map(|value| value.split(|b| *b == b','))
        .map(<[u8]>::trim_ascii)
        .find(|coding| !known.iter().any(|known| coding.eq_ignore_ascii_case(known)))
}

/// The length that frames the body, if there is one.
fn announced_length(response: &Response) -> Option<u64> {
    if response.header("transfer-encoding").is_some() {
        return None;
    }
    let value = std::str::from_utf8(response.header("content-length")?).ok()?;
    // Several equal values may stand in one list.
    value.split(',').next()?.trim().parse().ok()
}

/// What that error is for this target and these options, and whether a proxy had been asked for a tunnel.
fn failure(error: &Error, options: &Options, target: &Target, asked_proxy: bool) -> Failure {
    let mut failure = Failure::from(error);
    match error.kind() {
        // The engine looks addresses up too, and finds none of the other family.
        ErrorKind::Dns(_) if !matches!(target.host, Host::Domain(_)) => {
            failure.exit = Exit::NotConnected;
        }
        ErrorKind::Proxy(ProxyFault::Closed) if options.settings.speaks_socks() => {
            failure.exit = Exit::Proxy;
        }
        // TLS with the proxy was not up.
        ErrorKind::Io(_)
            if error.phase() == Phase::Proxy
                && !asked_proxy
                && !options.settings.speaks_socks() =>
        {
            failure.exit = Exit::TlsHandshake;
        }
        // Only who was reached can do that.
        ErrorKind::Io(cause)
            if error.phase() == Phase::Connect
                && cause.kind() == io::ErrorKind::ConnectionReset =>
        {
            failure.exit = match target.scheme {
                Scheme::Http => Exit::Receive,
                Scheme::Https => Exit::TlsHandshake,
            };
        }
        _ => {}
    }
    failure
}

impl Facts {
    /// Begins a request: what the one before it left is forgotten, but for what is counted together.
    fn begin(&mut self, errand: &Errand) {
        self.url_effective = errand.target.effective();
        self.scheme = match errand.target.scheme {
            Scheme::Http => "HTTP",
            Scheme::Https => "HTTPS",
        };
        self.download_bytes = 0;
        self.upload_bytes = 0;
    }

    /// Times are added up over the requests of a transfer, as in curl.
    fn note_connection(&mut self, report: &Report, seen: &Seen, begun: Instant) {
        let end = |address: Option<&Address>| match address {
            Some(Address::Tcp(address)) => Some((address.ip().to_string(), address.port())),
            Some(Address::Unix(_)) | None => None,
        };
        self.remote = end(report.remote().or(seen.remote.as_ref()));
        self.local = end(report.local().or(seen.local.as_ref()));
        let since = |at: Option<Instant>| {
            at.map_or(Duration::ZERO, |at| at.saturating_duration_since(begun))
        };
        let timings = report.timings();
        if !report.reused() {
            self.connects += u32::from(seen.connected.is_some());
            // The engine tells its times with a connection that can be used; before that there is what was seen.
            let lookup = timings.resolve.unwrap_or_else(|| since(seen.resolved));
            self.times.lookup += lookup;
            let connect = timings.connect.map(|connect| lookup + connect);
            self.times.connect += connect.unwrap_or_else(|| since(seen.connected));
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

    fn note_response(&mut self, response: &Response, proxy_head: Option<&[u8]>) {
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

    /// Where a redirect leads that is not followed. It may be no URL that could be.
    fn note_location(&mut self, response: &Response) {
        let location = response.header("location").unwrap_or_default();
        let base = Url::parse(&self.url_effective).ok();
        let joined = base.and_then(|base| base.join(&String::from_utf8_lossy(location)).ok());
        if let Some(url) = joined.filter(|_| !location.is_empty()) {
            self.redirect_url = without_credentials(url.as_str().as_bytes());
        }
    }

    fn note_error(&mut self, error: &Error) {
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

/// The engine's form of a composed request. What frames the body is the engine's to say, so that the headers that ask
/// for a framing become settings.
fn request(
    composed: Composed,
    target: String,
    body: Option<&[u8]>,
    upload: Option<Opened>,
    compressed: bool,
) -> Request {
    let mut request = Request::new(composed.method, target);
    request.no_user_agent();
    if compressed {
        request.decode(Codings::all());
    }
    let length = match (&upload, body) {
        (Some(upload), _) => upload.length(),
        (None, body) => Some(body.map_or(0, |body| body.len() as u64)),
    };
    let length = length.map(|length| length.to_string()).unwrap_or_default();
    let mut chunked = false;
    for (name, value) in &composed.headers {
        let is = |header: &str, text: &str| {
            name.eq_ignore_ascii_case(header) && value.eq_ignore_ascii_case(text.as_bytes())
        };
        if is("Transfer-Encoding", "chunked") {
            chunked = true;
        } else if is("Expect", "100-continue") {
            request.expect_continue(EXPECT_WAIT);
        } else if !is("Content-Length", &length) {
            request.header(name, value);
        }
    }
    match (upload, body) {
        (Some(upload), _) => upload.fill(&mut request, chunked),
        (None, Some(body)) if chunked => {
            request.body_stream(Cursor::new(body.to_vec()), None);
        }
        (None, Some(body)) => {
            request.body(body);
        }
        (None, None) => {}
    }
    request
}

/// How long a body is held back for an answer to `Expect: 100-continue`, as in curl.
const EXPECT_WAIT: Duration = Duration::from_secs(1);

/// What may be wrong with a body that is dropped.
const UNMISSED: [Exit; 2] = [Exit::Partial, Exit::BadEncoding];

/// Bytes read at once.
const BUFFER: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_ask_for_a_framing_become_settings() {
        let encoded = |headers: &[(&str, &str)], body: Option<&[u8]>| {
            let headers = headers
                .iter()
                .map(|(n, v)| ((*n).into(), v.as_bytes().to_vec()));
            let composed = Composed {
                method: "PUT".into(),
                url: "http://h/".into(),
                headers: headers.collect(),
            };
            let mut request = request(composed, "/".into(), body, None, false);
            let checked = request.encode(&courser::proto::Defaults::new("h", None));
            checked.map(|()| String::from_utf8(request.encoded_head().to_vec()).unwrap())
        };
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[], "Content-Length: 3"),
            (&[("content-length", "3")], "Content-Length: 3"),
            (
                &[("transfer-encoding", "Chunked")],
                "Transfer-Encoding: chunked",
            ),
            (
                &[("Expect", "100-Continue"), ("A", "b")],
                "A: b\r\nContent-Length: 3\r\nExpect: 100-continue",
            ),
        ];
        for (headers, lines) in cases {
            let head = encoded(headers, Some(b"abc")).unwrap();
            assert_eq!(
                head,
                format!("PUT / HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n")
            );
        }
        for refused in [
            ("Content-Length", "4"),
            ("Transfer-Encoding", "gzip"),
            ("Expect", "x"),
        ] {
            assert!(encoded(&[refused], Some(b"abc")).is_err(), "{refused:?}");
        }
    }
}
