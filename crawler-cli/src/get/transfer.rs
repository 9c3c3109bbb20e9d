//! Runs one transfer: from a URL, over its redirects and retries, to its output.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;
use std::time::Instant;

use courser::proto::{ProxyFault, Scheme};
use courser::{Call, CookieJar, Error, ErrorKind, Phase, Response, Sent};
use url::Host;

use super::condition::modified;
use super::exit::{Exit, Failure};
use super::facts::Facts;
use super::link::Links;
use super::local;
use super::output::{Sink, say};
use super::plan::{Options, Transfer};
use super::redirect::Hop;
use super::request::Kind;
use super::response::{IGNORED_IF_DROPPED, Output, announced_length, http_error};
use super::show;
use super::target::{Target, without_credentials};
use super::upload::{OpenUpload, Upload};

/// What all transfers share: connections, cookies and buffers.
pub(super) struct Session {
    links: Links,
    jar: CookieJar,
    verbose: bool,
    /// `-s`: no warnings.
    silent: bool,
    /// Stdin can be read only once, and has been.
    stdin_used: bool,
    response: Response,
    buffer: Vec<u8>,
}

impl Session {
    /// A session without connections. `verbose` is `-v`, `silent` is `-s`.
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

    /// Fetches one URL, with retries, and writes its output. The facts are those of the last attempt, which may have
    /// failed.
    pub(super) fn run(
        &mut self,
        transfer: &Transfer,
        urlnum: usize,
    ) -> (Facts, Result<(), Failure>) {
        let mut retries = transfer.options.retry.begin(Instant::now());
        let mut sink = Sink::new(transfer);
        loop {
            let (mut facts, outcome) = self.run_once(transfer, urlnum, &mut sink);
            facts.retries = transfer.options.retry.limit() - retries.left();
            let Some(delay) = retries.next(Instant::now(), &facts, &outcome) else {
                let path = sink.path().map(|path| path.to_string_lossy().into_owned());
                facts.filename = path.or(facts.filename);
                if outcome.is_err() && transfer.options.files.remove_on_error {
                    sink.remove();
                }
                return (facts, outcome);
            };
            if let Err(failure) = sink.restart() {
                return (facts, Err(failure));
            }
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
            facts.exit = failure.exit;
            facts.error = Some(failure.to_string());
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
        let resume_at = options.files.resume_at(sink.path());
        if resume_at > 0 {
            sink.append();
        }
        if let Some(path) = local::path_of(transfer.url.as_bytes()) {
            return self.fetch_file(transfer, &path?, resume_at, sink, facts);
        }
        let mut first = Target::parse(transfer.url.as_bytes(), options.request.path_as_is)?;
        if let Some(upload) = &transfer.upload {
            upload.name_target(&mut first);
        }
        if let Some(query) = &options.request.query {
            first.push_query(query);
        }
        let deadline = options.max_time.and_then(|limit| start.checked_add(limit));
        sink.open_heads()?;
        options.files.check_etag()?;
        let mut hop = Hop::first(transfer, first.clone());
        hop.resume_at = resume_at;
        while let Some(next) = self.exchange(transfer, &hop, deadline, sink, facts)? {
            let (status, location) = match next {
                Next::Follow(status, location) => (status, location),
                Next::WithoutExpect => {
                    hop.waits = false;
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
                _ => facts.redirects = hop.followed + 1,
            }
            hop = followed?;
            facts.times.redirect = start.elapsed();
            if self.verbose {
                say(&format!("* Following to {}", hop.target.effective()));
            }
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
        if let Some(upload) = &transfer.upload {
            let open = self.open(upload)?;
            facts.method = "PUT".into();
            return local::store(transfer, path, open, upload.file_name(), facts);
        }
        let mut downloaded = 0;
        let mut output = Output {
            sink,
            options: &transfer.options,
            resume_at,
            unchanged: false,
            written: &mut downloaded,
        };
        let unchanged = local::fetch(transfer, path, resume_at, &mut output, facts);
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
        hop: &Hop,
        deadline: Option<Instant>,
        sink: &mut Sink,
        facts: &mut Facts,
    ) -> Result<Option<Next>, Failure> {
        let options = &*transfer.options;
        facts.begin(hop);
        let upload = match &transfer.upload {
            Some(upload) if hop.kind == Kind::Put => Some(self.open(upload)?),
            _ => match &options.request.form {
                Some(form) if hop.kind == Kind::Post => Some(OpenUpload::Form(form.open()?)),
                _ => None,
            },
        };
        let body = options
            .request
            .body
            .as_ref()
            .filter(|_| hop.kind == Kind::Post);
        let length = match (&upload, body) {
            (Some(upload), _) => upload.length(),
            (None, body) => body.map(|body| body.len() as u64),
        };
        let cookie = options.cookies.header(&self.jar, hop);
        let composed = options.request.compose(hop, cookie, length);
        facts.method.clone_from(&composed.method);
        self.links.reset_observed();
        let link = self.links.link(&options.settings, &hop.target)?;
        let target = hop.target.url();
        facts.proxied = link.is_proxied(&hop.target);
        let mut request = composed.request(target, body, upload);
        options.request.frame(&mut request);
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
        let observed = self.links.observed();
        facts.note_connection(&done.report, &observed, begun);
        let (proxy_head, asked_proxy) = (observed.proxy_head.clone(), observed.asked_proxy);
        drop(observed);
        if !matches!(&done.outcome, Err(error) if error.sent() == Sent::Nothing) {
            facts.upload_bytes = length.unwrap_or(0);
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
        if next.is_none() && (300..400).contains(&facts.status) {
            facts.note_location(&self.response);
        }
        let mut output = Output {
            sink,
            options,
            resume_at: match hop.kind {
                Kind::Get => hop.resume_at,
                Kind::Head | Kind::Post | Kind::Put => 0,
            },
            unchanged: false,
            written: &mut facts.download_bytes,
        };
        let link = self.links.link(&options.settings, &hop.target)?;
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
                outcome.map(|()| next)
            }
            Err(error) => {
                output.take_failed(&self.response, proxy_head.as_deref(), next.is_some())?;
                facts.note_error(&error);
                let mut failure = failure(&error, options, &hop.target, asked_proxy);
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

    fn open(&mut self, upload: &Upload) -> Result<OpenUpload, Failure> {
        if *upload == Upload::Stdin && std::mem::replace(&mut self.stdin_used, true) {
            let cause = "stdin is used up and cannot be sent again";
            return Err(Failure::new(Exit::Rewind, "request", cause));
        }
        upload.open()
    }
}

/// The next step after a response that is not the last one.
enum Next {
    /// The status and the location of a redirect.
    Follow(u16, Vec<u8>),
    /// The server rejected `Expect` (417, RFC 9110 §15.5.18): the same request follows without `Expect`.
    WithoutExpect,
}

/// Converts an error of the engine to a failure of this transfer. `asked_proxy`: a CONNECT was sent to a proxy.
fn failure(error: &Error, options: &Options, target: &Target, asked_proxy: bool) -> Failure {
    let mut failure = Failure::from(error);
    match error.kind() {
        // The engine also looks up address literals, and finds no address if the other family is asked for.
        ErrorKind::Dns(_) if !matches!(target.host, Host::Domain(_)) => {
            failure.exit = Exit::NotConnected;
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
