//! Runs one transfer: from a URL, over its redirects and retries, to its output.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use courser::proto::{ProxyFault, Scheme};
use courser::{Bytes, Call, CookieJar, Error, ErrorKind, Phase, Response, Sent};
use url::Host;

use super::auth::Keys;
use super::condition::modified;
use super::exit::{Exit, Failure};
use super::facts::Facts;
use super::link::Links;
use super::local;
use super::output::{Sink, say};
use super::plan::{Options, Transfer};
use super::pool::Pool;
use super::progress::{Counter, Progress, View};
use super::redirect::Hop;
use super::request::Kind;
use super::response::{IGNORED_IF_DROPPED, Output, announced_length, http_error};
use super::retry::Step;
use super::show::Trace;
use super::target::{Target, has_user, without_credentials};
use super::upload::{OpenUpload, Upload};

/// What all transfers share: connections, cookies and buffers.
pub(super) struct Session {
    links: Links,
    jar: CookieJar,
    trace: Trace,
    /// `-s`: no warnings.
    silent: bool,
    shared: SharedState,
    progress: Progress,
    response: Response,
    buffer: Vec<u8>,
}

/// What the sessions of one command share, if transfers run at the same time.
#[derive(Clone, Default)]
pub(super) struct SharedState {
    /// The clients that serve all sessions; `None`: this session is the only one, and has its own.
    pub(super) pool: Option<Arc<Pool>>,
    /// Stdin can be read only once, and has been.
    pub(super) stdin_used: Arc<AtomicBool>,
}

impl Session {
    /// A session without connections. `silent` is `-s`.
    pub(super) fn new(trace: Trace, silent: bool, jar: CookieJar, shared: SharedState) -> Self {
        Self {
            links: Links::new(trace.clone(), shared.pool.clone()),
            jar,
            trace,
            silent,
            shared,
            progress: Progress::new(View::Nothing, None, Instant::now()),
            response: Response::new(),
            buffer: vec![0; BUFFER],
        }
    }

    /// Fetches one URL, with retries, and writes its output. The facts are those of the last attempt, which may have
    /// failed.
    pub(super) fn run(
        &mut self,
        transfer: &Transfer,
        urlnum: usize,
        progress: Progress,
    ) -> (Facts, Result<(), Failure>) {
        self.progress = progress;
        let mut retries = transfer.options.retry.begin(Instant::now());
        let mut sink = Sink::new(transfer);
        loop {
            let (mut facts, outcome) = self.run_once(transfer, urlnum, &mut sink);
            facts.retries = transfer.options.retry.limit() - retries.left();
            let step = retries.next(Instant::now(), &facts, &outcome);
            self.tell(step, &facts, &outcome, retries.left());
            let Step::Again { delay, .. } = step else {
                let path = sink.path().map(|path| path.to_string_lossy().into_owned());
                facts.filename = path.or(facts.filename);
                if outcome.is_err() && transfer.options.files.remove_on_error {
                    sink.remove();
                }
                return (facts, outcome);
            };
            let waited = sink.restart().and_then(|()| self.progress.pause(delay));
            if let Err(failure) = waited {
                facts.note_failure(&failure);
                return (facts, Err(failure));
            }
        }
    }

    /// Warns about an attempt that is repeated, or is not although the server asks for it.
    fn tell(&self, step: Step, facts: &Facts, outcome: &Result<(), Failure>, left: u32) {
        if self.silent {
            return;
        }
        let plan = match step {
            Step::End => return,
            Step::Again { delay, asked } => {
                let asked = asked.map_or(String::new(), |asked| {
                    format!(", although the server asks for {} s", asked.as_secs())
                });
                let seconds = delay.as_secs_f64();
                format!("again in {seconds} s{asked}, {left} retries left")
            }
            Step::TooLong(asked) => {
                let seconds = asked.as_secs();
                format!(
                    "no retry: the server asks for {seconds} s, which end after --retry-max-time"
                )
            }
        };
        let cause = match outcome {
            Err(failure) => failure.to_string(),
            Ok(()) => format!("the server answered with status {}", facts.status),
        };
        say(&format!("Warning: {cause}; {plan}"));
    }

    fn run_once(
        &mut self,
        transfer: &Transfer,
        urlnum: usize,
        sink: &mut Sink,
    ) -> (Facts, Result<(), Failure>) {
        let start = Instant::now();
        let output = transfer.output.as_deref();
        let mut facts = Facts {
            url: without_credentials(transfer.url.as_bytes()),
            urlnum,
            filename: output.map(|name| name.to_string_lossy().into_owned()),
            referer: transfer
                .options
                .request
                .referer
                .as_ref()
                .map(|url| String::from_utf8_lossy(url).into_owned()),
            ..Facts::default()
        };
        let outcome = self.fetch(transfer, start, sink, &mut facts);
        facts.times.total = start.elapsed();
        if let Err(failure) = &outcome {
            facts.note_failure(failure);
        }
        (facts, outcome)
    }

    fn fetch(
        &mut self,
        transfer: &Transfer,
        start: Instant,
        sink: &mut Sink,
        facts: &mut Facts,
    ) -> Result<(), Failure> {
        let options = &*transfer.options;
        let typed = transfer.url.as_bytes();
        if options.request.no_user_in_url && has_user(typed) {
            return Err(user_in_url());
        }
        let resume_at = options.files.resume_at(sink.path());
        if resume_at > 0 {
            sink.append();
        }
        let deadline = options.max_time.and_then(|limit| start.checked_add(limit));
        sink.begin(deadline);
        if let Some(path) = local::path_of(typed) {
            options.protocols.check("file", false)?;
            return self.fetch_file(transfer, &path?, resume_at, sink, facts);
        }
        let mut first = Target::parse(typed, options.request.path_as_is)?;
        if let Some(upload) = &transfer.upload {
            upload.name_target(&mut first);
        }
        if let Some(query) = &options.request.query {
            first.push_query(query);
        }
        options.protocols.check(first.scheme.as_str(), false)?;
        sink.open_heads()?;
        options.files.check_etag()?;
        let mut hop = Hop::first(transfer, first.clone());
        hop.resume_at = resume_at;
        loop {
            if options.request.user.is_none() {
                options.netrc.amend(&mut hop);
            }
            let next = self.exchange(transfer, &mut hop, deadline, sink, facts);
            self.progress.end(Instant::now());
            let Some(next) = next? else { break };
            let (status, location) = match next {
                Next::Follow(status, location) => (status, location),
                Next::WithoutExpect => {
                    hop.waits = false;
                    continue;
                }
                Next::Authenticate => {
                    if hop.asked > 0 {
                        facts.times.redirect = start.elapsed();
                    }
                    continue;
                }
            };
            let followed = hop.follow(
                &options.follow,
                &first,
                status,
                &location,
                options.request.path_as_is,
            );
            match &followed {
                Err(failure) if failure.exit == Exit::TooManyRedirects => {
                    facts.note_location(&self.response);
                }
                _ => facts.redirects = hop.followed + hop.asked + 1,
            }
            hop = followed?;
            options.protocols.check(hop.target.scheme.as_str(), true)?;
            if options.request.no_user_in_url && hop.target.user.is_some() {
                return Err(user_in_url());
            }
            facts.times.redirect = start.elapsed();
            self.trace
                .info(|| format!("Following to {}", hop.target.effective()));
        }
        if facts.status == 304 {
            // What is there already stays.
            return Ok(());
        }
        sink.finish()?;
        if options.files.remote_time
            && let Some(time) = modified(facts.header("last-modified"))
        {
            sink.set_time(time);
        }
        Ok(())
    }

    /// Transfers a local file.
    fn fetch_file(
        &mut self,
        transfer: &Transfer,
        path: &Path,
        resume_at: u64,
        sink: &mut Sink,
        facts: &mut Facts,
    ) -> Result<(), Failure> {
        facts.scheme = "FILE";
        facts.url_effective.clone_from(&facts.url);
        facts.method = if transfer.options.request.head_only {
            "HEAD"
        } else {
            "GET"
        }
        .into();
        sink.open_heads()?;
        self.progress.begin(None, Instant::now());
        if let Some(upload) = &transfer.upload {
            let deadline = sink.deadline();
            let open = self.open(upload, deadline)?;
            facts.method = "PUT".into();
            return local::store(transfer, path, open, upload.file_name(), deadline, facts);
        }
        let mut downloaded = 0;
        let mut output = Output {
            sink,
            options: &transfer.options,
            resume_at,
            unchanged: false,
            written: &mut downloaded,
            progress: &mut self.progress,
            trace: &self.trace,
        };
        let unchanged = local::fetch(transfer, path, resume_at, &mut output, facts);
        self.progress.end(Instant::now());
        facts.download_bytes = downloaded;
        if unchanged? {
            return Ok(());
        }
        sink.finish()
    }

    /// Sends one request and handles its response. Returns the next step, or `None` after the last response.
    fn exchange(
        &mut self,
        transfer: &Transfer,
        hop: &mut Hop,
        deadline: Option<Instant>,
        sink: &mut Sink,
        facts: &mut Facts,
    ) -> Result<Option<Next>, Failure> {
        let options = &*transfer.options;
        facts.begin(hop);
        let settings = options.settings.for_target(&hop.target)?;
        let link = self.links.link(&settings, &hop.target)?;
        let keys = Keys::new(
            &options.request,
            hop,
            link.proxy_key(&hop.target, &settings),
        );
        let has_body = matches!(hop.kind, Kind::Post | Kind::Put);
        // As in curl, a body that is sure to be refused is sent after the challenge; until then it is empty.
        let withheld = has_body && keys.await_challenge(hop);
        let empty = Bytes::new();
        let upload = match &transfer.upload {
            Some(upload) if hop.kind == Kind::Put && !withheld => {
                Some(self.open(upload, deadline)?)
            }
            _ => match &options.request.form {
                Some(form) if hop.kind == Kind::Post && !withheld => {
                    Some(OpenUpload::Form(form.open()?))
                }
                _ => None,
            },
        };
        let body = match &options.request.body {
            _ if withheld => Some(&empty),
            body => body.as_ref().filter(|_| hop.kind == Kind::Post),
        };
        let length = match (&upload, body) {
            (Some(upload), _) => upload.length(),
            (None, body) => body.map(|body| body.len() as u64),
        };
        let cookie = options.cookies.header(&self.jar, hop);
        let method = options.request.method(hop.kind);
        let hashed = match upload {
            Some(_) => None,
            None => Some(body.map_or(&b""[..], |body| body)),
        };
        let authorizations = keys.authorizations(hop, method, hashed);
        let composed = options.request.compose(hop, authorizations, cookie, length);
        facts.method.clone_from(&composed.method);
        self.links.reset_observed();
        let link = self.links.link(&settings, &hop.target)?;
        let target = hop.target.url();
        facts.proxied = link.is_proxied(&hop.target);
        self.progress.begin(length, Instant::now());
        self.trace.begin();
        let counter = Counter {
            counts: self.progress.counts(),
            trace: self.trace.clone(),
            is_used: self.progress.is_watched(),
        };
        let mut request = composed.request(target, body, upload, counter);
        options.request.frame(&mut request);
        let mut call = Call::new(request, std::mem::take(&mut self.response)).streaming(true);
        if let Some(deadline) = deadline {
            call = call.deadline(deadline);
        }
        let begun = Instant::now();
        let done = link.complete(call, &mut self.progress)?;
        self.response = done.response;
        self.trace.response(&self.response);
        let observed = self.links.observed();
        facts.note_connection(&done.report, &observed, begun);
        let (proxy_head, tunnel) = (observed.proxy_head.clone(), observed.tunnel.clone());
        drop(observed);
        if !matches!(&done.outcome, Err(error) if error.sent() == Sent::Nothing) {
            facts.upload_bytes = length.unwrap_or(0);
            if done.outcome.is_ok() && body.is_some() {
                self.progress.all_sent(facts.upload_bytes);
            }
            facts.request_bytes += done.request.encoded_head().len() as u64 + facts.upload_bytes;
        }
        facts.note_response(&self.response, proxy_head.as_deref());
        options.cookies.store(&self.jar, hop, &self.response);
        let mut next = options
            .follow
            .location(&self.response)
            .map(|location| Next::Follow(self.response.status(), location.to_vec()));
        let waited = hop.waits && options.request.waits(hop, length);
        if waited && self.response.status() == 417 && transfer.upload != Some(Upload::Stdin) {
            next = Some(Next::WithoutExpect);
        }
        if keys.ask_again(hop, &self.response, withheld) {
            next = Some(Next::Authenticate);
        }
        if let Err(error) = &done.outcome
            && matches!(error.kind(), ErrorKind::Proxy(ProxyFault::Status(407)))
            && let (Some(head), Some(tunnel)) = (&proxy_head, &tunnel)
            && let Some(value) = keys.for_tunnel(hop, head, tunnel)
        {
            self.links
                .authorize_tunnel(&settings, &hop.target, &value)?;
            next = Some(Next::Authenticate);
        }
        self.tell_unanswered(hop);
        // As in curl, a server that asks counts as one that redirects; a proxy that opens no tunnel does not.
        if matches!(next, Some(Next::Authenticate)) && done.outcome.is_ok() {
            hop.asked += 1;
            facts.redirects = hop.followed + hop.asked;
        }
        if next.is_none() && (300..400).contains(&facts.status) {
            facts.note_location(&self.response);
        }
        self.progress.expect(announced_length(&self.response));
        let mut output = Output {
            sink,
            options,
            resume_at: match hop.kind {
                Kind::Get => hop.resume_at,
                Kind::Head | Kind::Post | Kind::Put => 0,
            },
            unchanged: false,
            written: &mut facts.download_bytes,
            progress: &mut self.progress,
            trace: &self.trace,
        };
        let link = self.links.link(&settings, &hop.target)?;
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
                // A body that has not been read to its end is not needed.
                link.cancel(done.id);
                if output.unchanged {
                    // As if the server had said so, as in curl.
                    facts.status = 304;
                }
                if outcome.is_ok() && self.response.decoded() {
                    // `size_download` counts the bytes as received, before decoding.
                    let announced = announced_length(&self.response);
                    facts.download_bytes = announced.unwrap_or(facts.download_bytes);
                }
                if options.output.fail_with_body && next.is_none() && facts.status >= 400 {
                    outcome = outcome.and_then(|()| Err(http_error(facts.status)));
                }
                if outcome.is_ok() && next.is_none() {
                    // Of a whole response: what is incomplete is to be fetched again.
                    options.files.save_etag(self.response.header("etag"))?;
                }
                outcome.map(|()| next)
            }
            Err(error) => {
                output.take_failed(&self.response, proxy_head.as_deref(), next.is_some())?;
                facts.note_error(&error);
                if let Some(Next::Authenticate) = next
                    && error.sent() == Sent::Nothing
                {
                    return Ok(next);
                }
                let mut failure = failure(&error, options, &hop.target, tunnel.is_some());
                if facts.proxied {
                    failure = failure.at_proxy();
                }
                match next {
                    // An error in the body of a redirect does not matter.
                    Some(next) if IGNORED_IF_DROPPED.contains(&failure.exit) => Ok(Some(next)),
                    _ => Err(failure),
                }
            }
        }
    }

    /// Shows why Digest challenges were not answered.
    fn tell_unanswered(&self, hop: &mut Hop) {
        let mut all = hop.auth.take_unanswered();
        all.extend(hop.proxy_auth.take_unanswered());
        for why in all {
            self.trace
                .info(|| format!("A Digest challenge is not answered: {why}"));
        }
    }

    fn open(&mut self, upload: &Upload, deadline: Option<Instant>) -> Result<OpenUpload, Failure> {
        let used = || self.shared.stdin_used.swap(true, Ordering::Relaxed);
        if *upload == Upload::Stdin && used() {
            let cause = "stdin is used up and cannot be sent again";
            return Err(Failure::new(Exit::Rewind, "request", cause));
        }
        upload.open(deadline)
    }
}

/// The next step after a response that is not the last one.
enum Next {
    /// The status and the location of a redirect.
    Follow(u16, Vec<u8>),
    /// The server or the proxy asked for credentials (401, 407): the same request follows with other ones.
    Authenticate,
    /// The server rejected `Expect` (417, RFC 9110 §15.5.18): the same request follows without `Expect`.
    WithoutExpect,
}

/// `--disallow-username-in-url`
fn user_in_url() -> Failure {
    Failure::new(
        Exit::LoginDenied,
        "URL",
        "a user name in the URL is not allowed",
    )
}

/// Converts an error of the engine to a failure of this transfer. `asked_proxy`: a CONNECT was sent to a proxy.
fn failure(error: &Error, options: &Options, target: &Target, asked_proxy: bool) -> Failure {
    let mut failure = Failure::from(error);
    match error.kind() {
        // The engine also looks up address literals, and finds no address if the other family is asked for.
        ErrorKind::Dns(_) if !matches!(target.host, Host::Domain(_)) => {
            failure.exit = Exit::NotConnected;
        }
        // Only these options bind a socket to what may not be there or be in use.
        ErrorKind::Io(cause)
            if error.phase() == Phase::Connect && options.settings.fails_to_bind(cause) =>
        {
            failure.exit = Exit::Interface;
        }
        ErrorKind::Proxy(ProxyFault::Closed) if options.settings.speaks_socks() => {
            failure.exit = Exit::Proxy;
        }
        // The TLS handshake with the proxy failed.
        ErrorKind::Io(_)
            if error.phase() == Phase::Proxy
                && !asked_proxy
                && !options.settings.speaks_socks() =>
        {
            failure.exit = Exit::TlsHandshake;
        }
        // Only a host that was reached can reset a connection.
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

/// The largest number of bytes read at once.
const BUFFER: usize = 64 * 1024;
