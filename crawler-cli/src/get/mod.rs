//! `crawler-cli get`: fetches URLs with curl's option names and exit codes, a small tool to try and examine the engine.
//! Redirects, retries, proxies, credentials and pooling are those of the engine's [`Client`]; this
//! module says what to ask for, and writes what comes.
//!
//! ```text
//!  Args (what was typed) ─▶ Plan (files read, clients open) ─▶ transfer, for each URL ─▶ Facts ─▶ -w, messages, exit code
//! ```
//!
//! What is not as in curl:
//! - Nothing is sent before the whole command line is checked and every file named in it is found.
//! - URLs are sent as typed: no globs, and `/../` stays. Bytes outside ASCII are percent-encoded.
//! - `-m` is one deadline over redirects, retries and the pauses before them. The pauses are random, up to 1, 2, 4… s.
//! - Credentials appear in no message, no head that `-v` shows, and no `-w` variable.
//! - `--max-filesize` also limits bodies without an announced length: the transfer ends at the limit.
//! - After a redirect to another origin, credentials and `-b` are not sent again, even if a later redirect leads back.
//!   304, 305, 306 and unknown 3xx are no redirects, and 300 is none.
//! - A truncated body is an error for every framing that can detect it, and so is a truncated head (exit code 56).

mod exit;
mod log;
mod mask;
pub(crate) mod options;
mod output;
mod request;
mod values;
mod write_out;

use std::env;
use std::io::{self, IsTerminal as _};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use courser::policy::{FailureClass, ProxyKind, RetryOn, RetryRule, Statuses};
use courser::proto::Url;
use courser::{
    Backoff, BodyRead, Call, CallId, Client, ClientCertificate, Config, Destination, DnsConfig,
    HostConfig, Limits, Observer, PemOrDer, Redirects, Response, Retry, Route, Timeouts, TlsConfig,
};

use exit::{Exit, Failure};
use log::{Log, lock, observer, without_user};
use options::{Args, Global, Group, Options, Reach};
use output::{Output, tell, write_stdout};
use request::{Template, typed_or_file};
use write_out::Facts;

use crate::curl_rules::{proxies, trust_only, with_authorities};
use plain::terminal::{Keep, neutralise_bytes};

/// Transfers the URLs and returns curl's exit code for the last transfer.
pub(crate) fn run(args: Args) -> ExitCode {
    let global = args.global;
    let log = Log::default();
    let exit = match Plan::new(args, &log) {
        Ok(mut plan) => plan.run(global, &log),
        Err(failure) => {
            tell(&format!("crawler-cli: ({}) {failure}", failure.exit as u8));
            failure.exit
        }
    };
    exit.into()
}

/// Everything is checked, and all small files are read.
struct Plan {
    /// Groups that reach servers in the same way share a client, and so its connections.
    clients: Vec<(Reach, Client)>,
    groups: Vec<Planned>,
}

/// A group, what its requests are made of, and the text of its `-w`.
struct Planned {
    /// The number of its client.
    client: usize,
    options: Options,
    outputs: Vec<Option<PathBuf>>,
    request: Template,
    format: Option<Vec<u8>>,
}

impl Plan {
    fn new(args: Args, log: &Log) -> Result<Self, Failure> {
        let is_https = |url: &String| url.to_ascii_lowercase().starts_with("https:");
        let uses_tls =
            |Group { options, .. }: &Group| options.location || options.urls.iter().any(is_https);
        let uses_tls = args.groups.iter().any(uses_tls);
        let mut clients: Vec<(Reach, Client)> = Vec::new();
        let mut groups = Vec::new();
        for group in args.groups {
            let Group {
                mut options,
                data,
                outputs,
            } = group;
            let known = clients
                .iter()
                .position(|(reach, _)| *reach == options.reach);
            let client = known.unwrap_or(clients.len());
            if known.is_none() {
                let client = open(&options.reach, uses_tls, observer(log, args.global))?;
                clients.push((options.reach.clone(), client));
            }
            let most = outputs.len().max(options.request.upload_file.len());
            if most > options.urls.len() {
                return Err(Failure::usage("more files (-o, -O, -T) than URLs"));
            }
            let format = options.write_out.as_deref().map(typed_or_file);
            groups.push(Planned {
                client,
                request: Template::new(std::mem::take(&mut options.request), &data)?,
                format: format.transpose()?,
                options,
                outputs,
            });
        }
        Ok(Self { clients, groups })
    }

    /// Runs one transfer after the other. The exit code is that of the last one.
    fn run(&mut self, global: Global, log: &Log) -> Exit {
        let mut exit = Exit::Ok;
        let mut next_start = None;
        for planned in &self.groups {
            let (_, client) = &mut self.clients[planned.client];
            for number in 0..planned.options.urls.len() {
                let now = Instant::now();
                let start = next_start.map_or(now, |start: Instant| start.max(now));
                thread::sleep(start - now);
                next_start = global.interval.map(|interval| start + interval);
                let mut facts = Facts::default();
                let mut outcome = planned.transfer(client, number, log, &mut facts);
                facts.said = std::mem::take(&mut *lock(log));
                facts.total = start.elapsed();
                if global.timing {
                    facts.said.timing().lines().for_each(tell);
                }
                if let Err(failure) = &outcome {
                    show(failure, &facts, global);
                    facts.exit = failure.exit;
                    facts.error = Some(failure.to_string());
                }
                if let Err(failure) = planned.write_out(&facts)
                    && outcome.is_ok()
                {
                    show(&failure, &facts, global);
                    outcome = Err(failure);
                }
                exit = outcome
                    .as_ref()
                    .map_or_else(|failure| failure.exit, |()| Exit::Ok);
                // As in curl, nothing follows a file that cannot be sent.
                let ends = |failure: Failure| failure.reader_gone || failure.exit == Exit::Read;
                if outcome.is_err_and(ends) {
                    return exit;
                }
            }
        }
        exit
    }
}

fn show(failure: &Failure, facts: &Facts, global: Global) {
    if (!global.silent || global.show_error) && !failure.reader_gone {
        let (code, url) = (failure.exit as u8, &facts.url);
        tell(&format!("crawler-cli: ({code}) {url}: {failure}"));
    }
}

impl Planned {
    /// Fetches the URL with this number: the engine follows redirects and retries, and the last answer goes to the
    /// output.
    fn transfer(
        &self,
        client: &mut Client,
        number: usize,
        log: &Log,
        facts: &mut Facts,
    ) -> Result<(), Failure> {
        let url = self.request.url(&self.options.urls[number], number);
        facts.url = without_user(&url);
        let shows_heads = self.options.include || self.request.options.head;
        lock(log).keeps_heads = shows_heads;
        let mut output = Output::new(
            self.output(number, &url)?,
            self.options.max_filesize.filter(|most| *most > 0),
        );
        let request = self.request.request(url, number)?;
        let mut call = Call::new(request, Response::new())
            .streaming(true)
            .redirects(match self.options.location {
                true => Redirects::limit(self.options.max_redirs.unwrap_or(50)),
                false => Redirects::none(),
            })
            .retry(retries(self.options.retry.unwrap_or(0)));
        if let Some(limit) = self.options.max_time.flatten() {
            call = call.timeout(limit);
        }
        let done = client.perform(call);
        let response = &done.response;
        facts.status = response.status();
        facts.redirects = done.report.redirects().len();
        let heads = std::mem::take(&mut lock(log).heads);
        if shows_heads && !heads.is_empty() {
            output.heads(&heads)?;
        }
        let pipe = self.request.pipe(number);
        if let Err(error) = &done.outcome {
            return Err(Failure::from(error));
        }
        let is_due = lock(log).retries < self.options.retry.unwrap_or(0);
        let outcome = match pipe {
            Some(name) if is_due && may_pass().contains(response.status()) => {
                let cause = format_args!(
                    "a retry is due after status {}, and {name} can be sent once",
                    response.status()
                );
                Err(Failure::new(Exit::Rewind, "request", cause))
            }
            _ => self.take(client, done.id, response, &mut output),
        };
        // A body that has not been read to its end is not needed.
        client.cancel(done.id);
        let is_decoded = response.decoded() && outcome.is_ok();
        let received = response.content_length().filter(|_| is_decoded);
        facts.size_download = received.unwrap_or(output.written);
        outcome?;
        output.finish()
    }

    /// Writes the body of an answer as it arrives. Bytes that arrived before an error are written before the error is
    /// returned.
    fn take(
        &self,
        client: &mut Client,
        id: CallId,
        response: &Response,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let failed = |exit, cause: &str| Err(Failure::new(exit, "response", cause));
        let status = response.status();
        if self.options.fail && status >= 400 {
            let cause = format!("the server answered with status {status}");
            return failed(Exit::HttpError, &cause);
        }
        // After a 101 the bytes belong to another protocol.
        if self.request.options.head || status == 101 {
            return Ok(());
        }
        output.check_length(response.content_length())?;
        let coding = response.header("content-encoding").unwrap_or(b"identity");
        let is_unknown =
            self.request.options.compressed && !response.decoded() && coding != b"identity";
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match client.read_body(id, &mut buffer) {
                Ok(BodyRead::Data(_)) if is_unknown => {
                    let cause = format!("unknown content coding {}", coding.escape_ascii());
                    return failed(Exit::BadEncoding, &cause);
                }
                Ok(BodyRead::Data(length)) => output.body(&buffer[..length])?,
                Ok(BodyRead::End { trailers, .. }) => {
                    for (name, value) in trailers.trailers().filter(|_| self.options.include) {
                        output.heads(&[name.as_bytes(), b": ", value, b"\r\n"].concat())?;
                    }
                    return Ok(());
                }
                Ok(BodyRead::Pending) => match client.wait(None) {
                    // Takes the notification: this body is the only one.
                    Ok(_) => drop(client.readable_body()),
                    Err(error) => return failed(Exit::Receive, &error.to_string()),
                },
                Err(error) => return Err(Failure::from(&error)),
            }
        }
    }

    /// Where the answer for the URL with this number goes; `None` is stdout.
    fn output(&self, number: usize, url: &str) -> Result<Option<PathBuf>, Failure> {
        match self.outputs.get(number) {
            None => Ok(None),
            Some(Some(path)) => Ok(Some(path.clone())),
            Some(None) => {
                let path = url.split(['?', '#']).next().unwrap_or_default();
                match path.rsplit_once('/') {
                    Some((host, name)) if !name.is_empty() && !host.ends_with(":/") => {
                        Ok(Some(name.into()))
                    }
                    _ => {
                        let cause = "-O: the URL has no name of a file";
                        Err(Failure::new(Exit::Write, "write", cause))
                    }
                }
            }
        }
    }

    fn write_out(&self, facts: &Facts) -> Result<(), Failure> {
        let Some(format) = &self.format else {
            return Ok(());
        };
        let text = write_out::filled(format, facts);
        match io::stdout().is_terminal() {
            true => write_stdout(&neutralise_bytes(&text, Keep::LineEnds)),
            false => write_stdout(&text),
        }
    }
}

/// Opens a client. Without TLS, as for curl, the files of TLS are not read.
fn open(reach: &Reach, uses_tls: bool, observer: Observer) -> Result<Client, Failure> {
    let var = |name: &str| env::var(name).ok();
    let proxies = proxies(reach.proxy.as_deref(), reach.noproxy.as_deref(), var);
    let proxies = proxies.map_err(Failure::usage)?;
    let any = Url::parse("http://any.example/").ok();
    let proxy = any.and_then(|url| proxies.pick(&url));
    let uses_tls = uses_tls || proxy.is_some_and(|proxy| proxy.kind() == ProxyKind::Https);
    let agent = reach.user_agent.as_deref().unwrap_or(DEFAULT_USER_AGENT);
    let host = HostConfig {
        timeouts: Timeouts {
            resolve: reach.connect_timeout.flatten(),
            connect: reach.connect_timeout.flatten(),
            handshake: reach.connect_timeout.flatten(),
            ..Timeouts::none()
        },
        limits: Limits {
            body_bytes: None,
            decoded_bytes: None,
            decode_ratio: None,
            // curl's own limits.
            head_bytes: 300 * 1024,
            header_line: 100 * 1024 - 1,
            ..Limits::default()
        },
        user_agent: (!agent.is_empty()).then(|| agent.to_owned()),
        tls: match uses_tls {
            true => tls(reach, var),
            false => TlsConfig::default(),
        },
        dns: DnsConfig {
            overrides: reach.resolve.clone(),
            family: reach.family(),
            ..DnsConfig::default()
        },
        observer: Some(observer),
        ignore_invalid_headers: reach.lenient,
        // In the order in which curl tries addresses.
        random_start: false,
        ..HostConfig::default()
    };
    let to_socket = |path: &PathBuf| Route::all(Destination::Unix(path.clone()));
    let config = Config {
        host,
        routes: reach.unix_socket.iter().map(to_socket).collect(),
        proxies,
        ..Config::default()
    };
    Client::new(config).map_err(|error| Failure::from(&error))
}

fn tls(reach: &Reach, var: impl Fn(&str) -> Option<String>) -> TlsConfig {
    let file = |path: &PathBuf| PemOrDer::File(path.clone());
    let chain = reach.cert.as_ref();
    let mut config = TlsConfig {
        insecure: reach.insecure,
        client: chain.map(|chain| ClientCertificate {
            chain: file(chain),
            key: file(reach.key.as_ref().unwrap_or(chain)),
        }),
        ..TlsConfig::default()
    };
    if let Some(path) = &reach.cacert {
        trust_only(&mut config, path.clone());
    }
    with_authorities(config, var).0
}

/// `--retry`: curl's temporary problems, with any method.
fn retries(retries: u32) -> Retry {
    let attempts = NonZeroU32::MIN.saturating_add(retries);
    let classes = [FailureClass::Dns, FailureClass::ConnectTimeout].map(RetryOn::Failure);
    let on = classes.into_iter().chain([RetryOn::Status(may_pass())]);
    let rules = on.map(|on| RetryRule {
        attempts,
        backoff: Backoff {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(600),
            ..Backoff::default()
        },
        any_method: true,
        ..RetryRule::new(on)
    });
    Retry {
        // One more, on a fresh connection, for a kept one that the server had closed.
        max_attempts: attempts.saturating_add(1),
        rules: rules.collect(),
        max_retry_after: Duration::from_secs(6 * 3600),
        ..Retry::default()
    }
}

/// Statuses of problems that may pass, as in curl.
fn may_pass() -> Statuses {
    let statuses = Statuses::none().and(408..=408).and(429..=429);
    statuses.and(500..=500).and(502..=504)
}

const DEFAULT_USER_AGENT: &str = concat!("crawler-cli/", env!("CARGO_PKG_VERSION"));
