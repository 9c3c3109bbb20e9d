//! One transfer: from a URL to its output, over one engine client for each upstream.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Cursor, IsTerminal as _};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use courser::proto::{BodyMode, Exchange, SendStep};
use courser::{
    Address, Call, CallId, Completion, HostClient, HostConfig, Limits, Read, Report, Request,
    Response, Sent, Timeouts, Upstream, Version,
};
use url::Host;

use super::exit::{Exit, Failure};
use super::output::{Sink, say};
use super::plan::{Composed, Options, Transfer};
use super::target::{Target, without_credentials};
use super::write_out::Facts;
use crate::terminal::{Keep, neutralise_bytes};

/// What lasts from one transfer to the next: connections, and buffers.
pub(super) struct Session {
    clients: HashMap<ClientKey, HostClient>,
    verbose: bool,
    response: Response,
    buffer: Vec<u8>,
}

/// What two transfers must have in common to share connections.
#[derive(Eq, Hash, PartialEq)]
struct ClientKey {
    authority: String,
    unix_socket: Option<PathBuf>,
    connect_timeout: Option<Duration>,
}

impl Session {
    /// Without connections. `verbose` is `-v`.
    pub(super) fn new(verbose: bool) -> Self {
        Self {
            clients: HashMap::new(),
            verbose,
            response: Response::new(),
            buffer: vec![0; BUFFER],
        }
    }

    /// Fetches one URL and writes its output. The facts hold whatever became known, also of a failure.
    pub(super) fn run(
        &mut self,
        transfer: &Transfer,
        urlnum: usize,
    ) -> (Facts, Result<(), Failure>) {
        let start = Instant::now();
        let output = transfer.output.as_deref();
        let mut facts = Facts {
            url: without_credentials(transfer.url.as_bytes()),
            urlnum,
            filename: output.map(|name| name.to_string_lossy().into_owned()),
            ..Facts::default()
        };
        let outcome = self.fetch(transfer, &mut facts);
        facts.times.total = start.elapsed();
        if let Err(failure) = &outcome {
            facts.exit = failure.exit;
            facts.error = Some(failure.to_string());
        }
        (facts, outcome)
    }

    fn fetch(&mut self, transfer: &Transfer, facts: &mut Facts) -> Result<(), Failure> {
        let options = &*transfer.options;
        let target = Target::parse(transfer.url.as_bytes(), options.path_as_is)?;
        let composed = options.compose(&target);
        facts.url_effective = target.effective();
        facts.scheme = "HTTP";
        facts.method.clone_from(&composed.method);
        let client = client(&mut self.clients, &target, options)?;
        let request = request(composed, options.body.as_deref());
        let mut call = Call::new(request, std::mem::take(&mut self.response)).streaming(true);
        if let Some(limit) = options.max_time {
            call = call.timeout(limit);
        }
        let done = complete(client, call)?;
        self.response = done.response;
        let sent = match &done.outcome {
            Err(error) if error.sent() == Sent::Nothing => None,
            _ => Some(sent_head(done.request)),
        };
        if self.verbose {
            show_exchange(&done.report, sent.as_deref(), &self.response);
        }
        note_connection(facts, &done.report);
        if let Some(head) = &sent {
            facts.upload_bytes = options.body.as_ref().map_or(0, |body| body.len() as u64);
            facts.request_bytes = head.len() as u64 + facts.upload_bytes;
        }
        note_response(facts, &self.response);
        let mut output = Output {
            sink: Sink::new(transfer.output.as_deref()),
            options,
            written: &mut facts.download_bytes,
        };
        match done.outcome {
            Ok(()) => {
                let outcome = output.take(client, done.id, &self.response, &mut self.buffer);
                // What is not read to its end is not wanted.
                client.cancel(done.id);
                outcome
            }
            Err(error) => {
                output.take_failed(&self.response)?;
                Err(Failure::from(&error))
            }
        }
    }
}

/// The output of one transfer, and the rules that can end it early.
struct Output<'a> {
    sink: Sink,
    options: &'a Options,
    /// Bytes of the body.
    written: &'a mut u64,
}

enum Wanted {
    HeadOnly,
    Body,
}

impl Output<'_> {
    /// Writes a response whose head is there and whose body is still to come.
    fn take(
        &mut self,
        client: &mut HostClient,
        id: CallId,
        response: &Response,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        if let Wanted::Body = self.head(response)? {
            self.body(client, id, buffer)?;
        }
        self.sink.finish()
    }

    /// Writes what came of a response that failed before its head could be handed out, if its head is whole.
    fn take_failed(&mut self, response: &Response) -> Result<(), Failure> {
        if response.status() == 0 {
            return Ok(());
        }
        match self.head(response)? {
            Wanted::Body if !response.body().is_empty() => self.piece(response.body()),
            _ => Ok(()),
        }
    }

    fn head(&mut self, response: &Response) -> Result<Wanted, Failure> {
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
        if self.options.fail && status >= 400 {
            let cause = format!("the server answered with status {status}");
            return Err(Failure::new(Exit::HttpError, "response", cause));
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
        client: &mut HostClient,
        id: CallId,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        loop {
            match client.read_body(id, buffer) {
                Ok(Read::Data(n)) => self.piece(&buffer[..n])?,
                Ok(Read::Pending) => {
                    client.wait(None).map_err(|error| wait_failed(&error))?;
                    // There is only one body that it can be.
                    client.readable_body();
                }
                Ok(Read::End { trailers, .. }) => return self.trailers(&trailers),
                Err(error) => return Err(Failure::from(&error)),
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

fn too_large(limit: u64) -> Failure {
    Failure::new(
        Exit::TooLarge,
        "response",
        format!("the body has more than {limit} bytes"),
    )
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

/// Runs one call until it completes: for a streaming one, until the head is there.
fn complete(client: &mut HostClient, call: Call) -> Result<Completion, Failure> {
    client.submit(call);
    loop {
        // There is no other call that could complete.
        if let Some(done) = client.wait(None).map_err(|error| wait_failed(&error))? {
            return Ok(done);
        }
    }
}

fn wait_failed(error: &io::Error) -> Failure {
    Failure::new(Exit::Receive, "waiting for events", error)
}

fn note_connection(facts: &mut Facts, report: &Report) {
    let end = |address: Option<&Address>| match address {
        Some(Address::Tcp(address)) => Some((address.ip().to_string(), address.port())),
        Some(Address::Unix(_)) | None => None,
    };
    facts.remote = end(report.remote());
    facts.local = end(report.local());
    let connected = report.timings().queued.filter(|_| report.attempts() > 0);
    let fresh = connected.filter(|_| !report.reused());
    facts.connects = fresh.is_some().into();
    facts.times.connect = fresh.unwrap_or_default();
    facts.times.pretransfer = connected.unwrap_or_default();
    facts.times.starttransfer = report.timings().first_byte.unwrap_or_default();
}

fn note_response(facts: &mut Facts, response: &Response) {
    if response.status() == 0 {
        return;
    }
    facts.status = response.status();
    facts.http_version = Some(match response.version() {
        Version::Http10 => "1",
        Version::Http11 => "1.1",
    });
    let interim: usize = response.interim().map(|head| head.bytes().len()).sum();
    facts.header_bytes = (interim + response.head().len()) as u64;
    let terminal = io::stdout().is_terminal() || io::stderr().is_terminal();
    let shown = |value: &[u8]| {
        if terminal {
            neutralise_bytes(value, Keep::Nothing)
        } else {
            value.to_vec()
        }
    };
    let headers = response.headers();
    facts.headers = headers
        .map(|(name, value)| (name.to_owned(), shown(value)))
        .collect();
}

/// `-v`: which connection served, what was sent on it, and what came back.
fn show_exchange(report: &Report, sent: Option<&[u8]>, response: &Response) {
    if let Some(remote) = report.remote() {
        let what = match (report.reused(), report.attempts()) {
            (_, 0) => "Could not connect",
            (true, _) => "Re-using the connection",
            (false, _) => "Connected",
        };
        say(&format!("* {what} to {remote}"));
    }
    if let Some(head) = sent {
        show_head('>', head);
    }
    for interim in response.interim() {
        show_head('<', interim.bytes());
    }
    show_head('<', response.head());
}

/// The client for that upstream and those limits; there is one for each.
fn client<'a>(
    clients: &'a mut HashMap<ClientKey, HostClient>,
    target: &Target,
    options: &Options,
) -> Result<&'a mut HostClient, Failure> {
    let key = ClientKey {
        authority: target.authority.clone(),
        unix_socket: options.unix_socket.clone(),
        connect_timeout: options.connect_timeout,
    };
    match clients.entry(key) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => {
            let upstream = upstream(target, options)?.with_host(&target.authority);
            let client =
                HostClient::new(upstream, config(options)).map_err(|e| Failure::from(&e))?;
            Ok(entry.insert(client))
        }
    }
}

fn upstream(target: &Target, options: &Options) -> Result<Upstream, Failure> {
    if let Some(path) = &options.unix_socket {
        return Ok(Upstream::unix(path));
    }
    let address = match &target.host {
        Host::Ipv4(ip) => SocketAddr::from((*ip, target.port)),
        Host::Ipv6(ip) => SocketAddr::from((*ip, target.port)),
        Host::Domain(name) if name == "localhost" => {
            let upstream = format!("localhost:{}", target.port).parse();
            return upstream.map_err(|error| Failure::from(&error));
        }
        Host::Domain(name) => {
            let cause =
                format!("{name}: this build knows no names but localhost and address literals");
            return Err(Failure::new(Exit::NotResolved, "resolving", cause));
        }
    };
    Ok(Upstream::tcp([address]))
}

/// No limits but those that were asked for, and the engine's against a hostile head or framing.
fn config(options: &Options) -> HostConfig {
    HostConfig {
        timeouts: Timeouts {
            connect: options.connect_timeout,
            ..Timeouts::none()
        },
        limits: Limits {
            body_bytes: None,
            // curl's own limit.
            head_bytes: 300 * 1024,
            ..Limits::default()
        },
        ..HostConfig::default()
    }
}

/// The engine's form of a composed request. What frames the body is the engine's to say, so that the headers that ask
/// for a framing become settings.
fn request(composed: Composed, body: Option<&[u8]>) -> Request {
    let mut request = Request::new(composed.method, composed.target);
    request.no_user_agent();
    let (mut chunked, length) = (false, body.map(<[u8]>::len).unwrap_or_default().to_string());
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
    match body {
        Some(body) if chunked => request.body_stream(Cursor::new(body.to_vec()), None),
        Some(body) => request.body(body),
        None => &mut request,
    };
    request
}

/// The head that was sent for `request`, as it was encoded.
fn sent_head(mut request: Request) -> Vec<u8> {
    let mut exchange = Exchange::new(&request, BodyMode::Discard);
    let Ok(SendStep::Write([head, _])) = exchange.poll_send(&mut request) else {
        return Vec::new();
    };
    // A small body goes out together with the head.
    let end = memchr::memmem::find(head, b"\r\n\r\n");
    head[..end.map_or(head.len(), |at| at + 4)].to_vec()
}

fn show_head(mark: char, head: &[u8]) {
    for line in head.split_inclusive(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = String::from_utf8_lossy(&neutralise_bytes(line, Keep::Nothing)).into_owned();
        say(&format!("{mark} {}", without_secret(&line)));
    }
}

/// A header line as it may be shown: credentials become `***`, their scheme stays.
fn without_secret(line: &str) -> Cow<'_, str> {
    let Some((name, value)) = line.split_once(':') else {
        return line.into();
    };
    let secret = ["authorization", "proxy-authorization"];
    if !secret.iter().any(|s| name.trim().eq_ignore_ascii_case(s)) {
        return line.into();
    }
    match value.trim().split_once(' ') {
        Some((scheme, _)) => format!("{name}: {scheme} ***").into(),
        None => format!("{name}: ***").into(),
    }
}

/// How long a body is held back for an answer to `Expect: 100-continue`, as in curl.
const EXPECT_WAIT: Duration = Duration::from_secs(1);

/// Bytes read at once.
const BUFFER: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let cases = [
            ("GET / HTTP/1.1", "GET / HTTP/1.1"),
            ("Host: a:80", "Host: a:80"),
            ("Authorization: Basic dTpw", "Authorization: Basic ***"),
            ("AUTHORIZATION:Bearer x y", "AUTHORIZATION: Bearer ***"),
            ("Proxy-Authorization: token", "Proxy-Authorization: ***"),
            ("X-Authorization: a b", "X-Authorization: a b"),
        ];
        for (line, shown) in cases {
            assert_eq!(without_secret(line), shown);
        }
    }

    #[test]
    fn headers_that_ask_for_a_framing_become_settings() {
        let encoded = |headers: &[(&str, &str)], body: Option<&[u8]>| {
            let headers = headers
                .iter()
                .map(|(n, v)| ((*n).into(), v.as_bytes().to_vec()));
            let composed = Composed {
                method: "PUT".into(),
                target: "/".into(),
                headers: headers.collect(),
            };
            let mut request = request(composed, body);
            let checked = request.encode(&courser::proto::Defaults::new("h", None));
            checked.map(|()| String::from_utf8(sent_head(request)).unwrap())
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
