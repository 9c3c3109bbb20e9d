//! Endless load with a server that misbehaves: a tenth of its connections fail, each in one of many ways. The tool
//! checks that memory and descriptors do not grow, that every submitted call completes, that each response belongs to
//! its request, and that nearly all repeatable calls succeed.
//!
//! The server is another process, so that only the memory of the client is measured.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroUsize};
use std::process::{ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use courser::net::sim::{Probability, Random};
use courser::policy::{FailureClass, RetryOn, RetryRule, RetryVia, Statuses};
use courser::{
    Backoff, Call, Completion, HostClient, HostConfig, Request, Response, Retry, Timeouts, Upstream,
};

use crate::process::{first_line, memory, tool};
use crate::report::exit_code;

/// Runs the client and its misbehaving server, and fails if the client loses calls, grows, or fails too often.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Duration
    #[arg(short, long, default_value = "1")]
    minutes: f64,

    /// Connections; twice as many calls are in flight
    #[arg(short, long, default_value = "64")]
    connections: NonZeroUsize,

    /// Seed of the faults of the server
    #[arg(long, default_value = "1")]
    seed: u64,
}

/// Runs the tool.
///
/// # Errors
/// The server did not start, or the system cannot report the memory of this process.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let mut server = tool("soak-server")?;
    server.args(["--seed", &args.seed.to_string()]);
    let mut server = server
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (line, _) = first_line(&mut server)?;
    let addresses: Result<Vec<SocketAddr>, _> = line.split_whitespace().map(str::parse).collect();
    let outcome = soak(args, addresses?);
    // The end of its input ends the server.
    drop(server.stdin.take());
    server.wait()?;
    outcome
}

fn soak(args: &Args, addresses: Vec<SocketAddr>) -> Result<ExitCode, Box<dyn Error>> {
    let mut soak = Soak {
        client: HostClient::new(Upstream::tcp(addresses), config(args.connections))?,
        submitted: 0,
        completed: 0,
        repeatable: Tally::default(),
        others: Tally::default(),
        wrong: 0,
        spare: Vec::new(),
    };
    let (began, length) = (Instant::now(), Duration::from_secs_f64(args.minutes * 60.0));
    let before = descriptors()?;
    let mut samples: Vec<Sample> = Vec::new();
    let mut next_line = began + LINE;
    while began.elapsed() < length {
        while soak.client.in_flight() < 2 * args.connections.get() {
            soak.submit();
        }
        soak.take(Some(Duration::from_millis(100)))?;
        let sampled = samples.last().map_or(began, |sample| sample.at);
        if sampled.elapsed() >= SAMPLE {
            samples.push(Sample::now()?);
        }
        if Instant::now() >= next_line {
            next_line += LINE;
            soak.tell(began, samples.last());
        }
    }
    while soak.client.in_flight() > 0 {
        soak.take(None)?;
    }
    let retries = soak.client.stats().retries;
    soak.client.maintain(Duration::from_secs(1))?;
    soak.client.close_idle();
    let left = soak.client.counters().open;
    let after = descriptors()?;
    soak.tell(began, samples.last());
    println!(
        "retries: {retries}; errors of calls that may be repeated: {}",
        soak.repeatable
    );
    println!("errors of POST, which may not: {}", soak.others);

    let mut faults = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            faults.push(what);
        }
    };
    let lost = soak.submitted - soak.completed;
    must(lost == 0, format!("{lost} calls were lost"));
    must(soak.wrong == 0, format!("{} wrong answers", soak.wrong));
    must(
        soak.repeatable.share() < 0.01,
        format!("{:.2} % failed", 100.0 * soak.repeatable.share()),
    );
    must(retries > 0, "nothing was tried again".to_owned());
    must(left == 0, format!("{left} connections are left"));
    // The descriptors of the event queue exist from the start.
    must(
        after <= before,
        format!("{before} descriptors, then {after}"),
    );
    let most = samples.iter().map(|sample| sample.descriptors).max();
    let most = most.unwrap_or(0);
    let cap = before + args.connections.get();
    must(most <= cap, format!("{most} descriptors, over {cap}"));
    match growth(&samples) {
        Some((early, late)) => {
            println!("memory: {early} KiB after the warm-up, {late} KiB at the end");
            let bound = early + early / 20 + 1024;
            must(late <= bound, format!("from {early} KiB to {late} KiB"));
        }
        None => println!("too short to tell about memory"),
    }
    println!("descriptors: {before} before, {most} at the most, {after} after");
    for fault in &faults {
        println!("FAILED: {fault}");
    }
    Ok(exit_code(!faults.is_empty()))
}

fn config(connections: NonZeroUsize) -> HostConfig {
    let on = [
        RetryOn::Failure(FailureClass::Refused),
        RetryOn::Failure(FailureClass::Reset),
        RetryOn::Failure(FailureClass::ConnectTimeout),
        RetryOn::Failure(FailureClass::FirstByteTimeout),
        RetryOn::Failure(FailureClass::ReadTimeout),
        RetryOn::Failure(FailureClass::Truncated),
        RetryOn::Status(Statuses::none().and(503..=503)),
    ];
    let rule = |on| RetryRule {
        attempts: ATTEMPTS,
        backoff: Backoff {
            initial: Duration::from_millis(5),
            max: Duration::from_millis(200),
            ..Backoff::default()
        },
        via: RetryVia::Fresh,
        ..RetryRule::new(on)
    };
    HostConfig {
        max_connections: connections,
        timeouts: Timeouts {
            total: Some(Duration::from_secs(20)),
            first_byte: Some(PATIENCE),
            between_bytes: Some(PATIENCE),
            ..Timeouts::default()
        },
        retry: Retry {
            max_attempts: ATTEMPTS,
            rules: on.into_iter().map(rule).collect(),
            // Invalid responses and exceeded limits have no class.
            hook: Some(std::sync::Arc::new(|failed| {
                failed.request.is_idempotent().then_some(Duration::ZERO)
            })),
            ..Retry::default()
        },
        stats: true,
        ..HostConfig::default()
    }
}

struct Soak {
    client: HostClient,
    submitted: u64,
    completed: u64,
    repeatable: Tally,
    others: Tally,
    wrong: u64,
    spare: Vec<(Request, Response)>,
}

impl Soak {
    fn submit(&mut self) {
        let number = self.submitted;
        self.submitted += 1;
        let (_, response) = self.spare.pop().unwrap_or_default();
        let request = match number % POSTS {
            0 => Request::post(format!("/{number}"), vec![b'x'; (number % 3000) as usize]),
            _ => Request::get(format!("/{number}")),
        };
        self.client.submit(Call::new(request, response).tag(number));
    }

    fn take(&mut self, timeout: Option<Duration>) -> Result<(), Box<dyn Error>> {
        let mut next = self.client.wait(timeout)?.done();
        while let Some(done) = next {
            self.complete(done);
            next = self.client.next_done();
        }
        Ok(())
    }

    fn complete(&mut self, done: Completion) {
        self.completed += 1;
        let tally = match done.tag % POSTS {
            0 => &mut self.others,
            _ => &mut self.repeatable,
        };
        tally.all += 1;
        match &done.outcome {
            Ok(()) if done.response.status() == 200 => {
                self.wrong += u64::from(done.response.body() != body(done.tag));
                self.spare.push((done.request, done.response));
            }
            // Dropped, not reused: its buffers belong to the caller and may have grown up to the limits.
            Ok(()) | Err(_) => tally.failed += 1,
        }
    }

    fn tell(&self, began: Instant, sample: Option<&Sample>) {
        let seconds = began.elapsed().as_secs_f64();
        let rate = self.completed as f64 / seconds;
        let failed = self.repeatable.failed;
        let (kib, open) = sample.map_or((0, 0), |sample| (sample.kib, sample.descriptors));
        println!(
            "{seconds:5.0} s: {} submitted, {} completed, {rate:.0}/s, {failed} failed, {kib} KiB, {open} descriptors",
            self.submitted, self.completed,
        );
    }
}

#[derive(Debug, Default)]
struct Tally {
    all: u64,
    failed: u64,
}

impl Tally {
    fn share(&self) -> f64 {
        self.failed as f64 / self.all.max(1) as f64
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { all, failed } = self;
        write!(f, "{failed} of {all} ({:.3} %)", 100.0 * self.share())
    }
}

/// Memory and descriptors of the process at one time.
struct Sample {
    at: Instant,
    /// Resident memory in KiB.
    kib: u64,
    descriptors: usize,
}

impl Sample {
    fn now() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            at: Instant::now(),
            kib: memory("self", "VmRSS")?,
            descriptors: descriptors()?,
        })
    }
}

/// The number of open descriptors, without the one that this function uses.
fn descriptors() -> Result<usize, Box<dyn Error>> {
    Ok(fs::read_dir("/proc/self/fd")?.count() - 1)
}

/// The medians of the first and of the last quarter after the warm-up. The warm-up is the first fifth of the samples.
fn growth(samples: &[Sample]) -> Option<(u64, u64)> {
    let warm = &samples[samples.len() / 5..];
    let quarter = warm.len() / 4;
    let middle = |samples: &[Sample]| {
        let mut kib: Vec<u64> = samples.iter().map(|sample| sample.kib).collect();
        kib.sort_unstable();
        kib.get(kib.len() / 2).copied()
    };
    Some((
        middle(&warm[..quarter])?,
        middle(&warm[warm.len() - quarter..])?,
    ))
}

/// The body of the response to the request with this number.
fn body(number: u64) -> Vec<u8> {
    let length = number.wrapping_mul(2_654_435_761) % 4_000;
    (0..length).map(|at| (number + at) as u8).collect()
}

// ---- the server

/// The server that misbehaves. Prints its addresses, and ends when its input ends.
#[derive(clap::Parser, Debug)]
pub struct ServerArgs {
    #[arg(long, default_value = "1")]
    seed: u64,
}

/// Runs the server.
///
/// # Errors
/// The system has no free address, or cannot start a thread.
pub fn serve(args: &ServerArgs) -> Result<ExitCode, Box<dyn Error>> {
    let mut random = Random::new(args.seed);
    let mut addresses = Vec::new();
    for _ in 0..ADDRESSES {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        addresses.push(listener.local_addr()?.to_string());
        let mut random = random.fork();
        thread::Builder::new().spawn(move || {
            for stream in listener.incoming().flatten() {
                let random = random.fork();
                // If no thread can be started, the connection is closed at once.
                let _ = thread::Builder::new()
                    .stack_size(128 * 1024)
                    .spawn(move || drop(converse(stream, random)));
            }
        })?;
    }
    println!("{}", addresses.join(" "));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(ExitCode::SUCCESS)
}

/// How a connection fails.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Failure {
    CloseAtOnce,
    ResetAtOnce,
    SilentAtOnce,
    Close,
    Reset,
    Silent,
    HalfHead,
    HalfBody,
    ResetInBody,
    SilentInBody,
    Garbage,
    BadChunk,
    LongHead,
    EndlessInterim,
    Busy,
    Surplus,
}

fn converse(mut stream: TcpStream, mut random: Random) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let failure = random
        .roll(Probability::per_mille(100))
        .then(|| *random.pick(Failure::value_variants()));
    // The number of requests on this connection.
    let last = random.within(1..=8);
    match failure {
        Some(Failure::CloseAtOnce) => return Ok(()),
        Some(Failure::ResetAtOnce) => return reset(&stream),
        Some(Failure::SilentAtOnce) => return silent(&mut stream),
        _ => {}
    }
    let mut reader = BufReader::new(stream.try_clone()?);
    for nth in 1..=last {
        let Some(number) = hear(&mut reader)? else {
            return Ok(());
        };
        let body = body(number);
        let chunked = number % 3 == 0;
        let says_close = nth == last && random.roll(Probability::per_mille(500));
        let mut answer = b"HTTP/1.1 200 OK\r\n".to_vec();
        if says_close {
            answer.extend_from_slice(b"Connection: close\r\n");
        }
        if chunked {
            answer.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            let head = answer.len();
            for chunk in body.chunks(1500) {
                answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                answer.extend_from_slice(chunk);
                answer.extend_from_slice(b"\r\n");
            }
            answer.extend_from_slice(b"0\r\n\r\n");
            if let (Some(Failure::BadChunk), true) = (failure, nth == last) {
                answer.splice(head..head, *b"xyz\r\n");
            }
        } else {
            answer.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            answer.extend_from_slice(&body);
        }
        let Some(failure) = failure.filter(|_| nth == last) else {
            if random.roll(Probability::per_mille(2)) {
                // Slow, but not a failure.
                for piece in answer.chunks(answer.len() / 8 + 1) {
                    stream.write_all(piece)?;
                    thread::sleep(Duration::from_millis(10));
                }
            } else {
                stream.write_all(&answer)?;
            }
            continue;
        };
        // At least the last byte is missing.
        let cut = random.within(18..=answer.len() - 1);
        match failure {
            Failure::Close => {}
            Failure::Reset => return reset(&stream),
            Failure::Silent => return silent(&mut stream),
            Failure::HalfHead => stream.write_all(&answer[..18])?,
            Failure::HalfBody => stream.write_all(&answer[..cut])?,
            Failure::ResetInBody => {
                stream.write_all(&answer[..cut])?;
                return reset(&stream);
            }
            Failure::SilentInBody => {
                stream.write_all(&answer[..cut])?;
                return silent(&mut stream);
            }
            Failure::Garbage => stream.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n")?,
            Failure::LongHead => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nX: ")?;
                while stream.write_all(&[b'x'; 4096]).is_ok() {}
            }
            Failure::EndlessInterim => {
                while stream.write_all(b"HTTP/1.1 102 Wait\r\n\r\n").is_ok() {}
            }
            Failure::Busy => {
                stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")?;
            }
            Failure::Surplus => {
                answer.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(&answer)?;
            }
            Failure::BadChunk if chunked => stream.write_all(&answer)?,
            // The response has no chunks.
            Failure::BadChunk => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n")?
            }
            Failure::CloseAtOnce | Failure::ResetAtOnce | Failure::SilentAtOnce => {}
        }
    }
    Ok(())
}

/// Reads a request and returns the number in its target. `None` at the end of the connection.
fn hear(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<u64>> {
    let (mut line, mut number, mut length) = (String::new(), None, 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if number.is_none() {
            let target = line.split(' ').nth(1).unwrap_or_default();
            number = target.trim_start_matches('/').parse().ok();
        }
        let text = line.trim_end().to_ascii_lowercase();
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if text.is_empty() {
            std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
            return Ok(number);
        }
    }
}

fn reset(stream: &TcpStream) -> std::io::Result<()> {
    // With a linger time of zero, closing sends RST.
    Ok(rustix::net::sockopt::set_socket_linger(
        stream,
        Some(Duration::ZERO),
    )?)
}

/// Reads until the client closes the connection.
fn silent(stream: &mut TcpStream) -> std::io::Result<()> {
    std::io::copy(stream, &mut std::io::sink()).map(drop)
}

/// Number of addresses of the server; with a single one the client could not prefer another.
const ADDRESSES: usize = 4;
const ATTEMPTS: NonZeroU32 = NonZeroU32::new(6).expect("not zero");
/// Time limit of the client: ten times the time of a good response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);
/// One call out of this number is a POST, which is not retried automatically.
const POSTS: u64 = 16;
const SAMPLE: Duration = Duration::from_millis(250);
const LINE: Duration = Duration::from_secs(10);
