//! Endless load with a server that misbehaves: a tenth of its connections fail, each in one of many ways. The tool
//! checks that memory and descriptors do not grow, that every submitted call completes, that each response belongs to
//! its request, and that nearly all repeatable calls succeed.
//!
//! The server is another process, so that only the memory of the client is measured.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroUsize};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use courser::net::sim::{Probability, Random};
use courser::policy::{RetryOn, RetryRule, RetryVia, Statuses};
use courser::{Call, HostClient, HostConfig, Request, Response, Retry, Timeouts, Upstream};
use rustix::net::sockopt::set_socket_linger;

use crate::process::{first_line, memory, tool};
use crate::report::{exit_code, median};

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
        failed: 0,
        wrong: 0,
        spare: Vec::new(),
    };
    let (began, length) = (Instant::now(), Duration::from_secs_f64(args.minutes * 60.0));
    let before = descriptors()?;
    let mut samples: Vec<Sample> = Vec::new();
    while began.elapsed() < length {
        while soak.client.in_flight() < 2 * args.connections.get() {
            soak.submit();
        }
        soak.take(Some(Duration::from_millis(100)))?;
        if began.elapsed() >= SAMPLE * samples.len() as u32 {
            samples.push(Sample::now()?);
            if samples.len().is_multiple_of(SAMPLES_OF_LINE) {
                soak.tell(began, samples.last());
            }
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
    let most = samples.iter().map(|sample| sample.descriptors).max();
    let most = most.unwrap_or(0);
    println!("retries: {retries}; descriptors: {before} before, {most} at the most, {after} after");
    let failed = 100.0 * soak.failed as f64 / soak.completed.max(1) as f64;
    let lost = soak.submitted - soak.completed;
    let mut must = vec![
        (lost == 0, format!("{lost} calls were lost")),
        (soak.wrong == 0, format!("{} wrong answers", soak.wrong)),
        (failed < 1.0, format!("{failed:.2} % failed")),
        (retries > 0, "nothing was tried again".to_owned()),
        (left == 0, format!("{left} connections are left")),
        // The descriptors of the event queue exist from the start.
        (
            after <= before,
            format!("{before} descriptors, then {after}"),
        ),
        (
            most <= before + args.connections.get(),
            format!("{most} descriptors"),
        ),
    ];
    match growth(&samples) {
        Some((early, late)) => {
            println!("memory: {early} KiB after the warm-up, {late} KiB at the end");
            let holds = late <= early + early / 20 + 1024;
            must.push((holds, format!("from {early} KiB to {late} KiB")));
        }
        None => println!("too short to tell about memory"),
    }
    let faults = must.iter().filter(|(holds, _)| !holds);
    faults
        .clone()
        .for_each(|(_, fault)| println!("FAILED: {fault}"));
    Ok(exit_code(faults.count() > 0))
}

fn config(connections: NonZeroUsize) -> HostConfig {
    let busy = RetryOn::Status(Statuses::none().and(503..=503));
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
            rules: vec![RetryRule {
                attempts: ATTEMPTS,
                via: RetryVia::Fresh,
                ..RetryRule::new(busy)
            }],
            hook: Some(Arc::new(|failed| {
                failed
                    .request
                    .is_idempotent()
                    .then_some(Duration::from_millis(5))
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
    /// Calls that may be repeated and failed nevertheless.
    failed: u64,
    wrong: u64,
    spare: Vec<Response>,
}

impl Soak {
    fn submit(&mut self) {
        let number = self.submitted;
        self.submitted += 1;
        let response = self.spare.pop().unwrap_or_default();
        let request = match number % POSTS {
            0 => Request::post(format!("/{number}"), vec![b'x'; (number % 3000) as usize]),
            _ => Request::get(format!("/{number}")),
        };
        self.client.submit(Call::new(request, response).tag(number));
    }

    fn take(&mut self, timeout: Option<Duration>) -> Result<(), Box<dyn Error>> {
        let mut next = self.client.wait(timeout)?.done();
        while let Some(done) = next {
            self.completed += 1;
            match &done.outcome {
                Ok(()) if done.response.status() == 200 => {
                    self.wrong += u64::from(done.response.body() != body(done.tag));
                    self.spare.push(done.response);
                }
                // Dropped, not reused: its buffers belong to the caller and may have grown up to the limits.
                Ok(()) | Err(_) => self.failed += u64::from(!done.tag.is_multiple_of(POSTS)),
            }
            next = self.client.next_done();
        }
        Ok(())
    }

    fn tell(&self, began: Instant, sample: Option<&Sample>) {
        let seconds = began.elapsed().as_secs_f64();
        let rate = self.completed as f64 / seconds;
        let (kib, open) = sample.map_or((0, 0), |sample| (sample.kib, sample.descriptors));
        println!(
            "{seconds:5.0} s: {} submitted, {} completed, {rate:.0}/s, {} failed, {kib} KiB, {open} descriptors",
            self.submitted, self.completed, self.failed,
        );
    }
}

/// Memory and descriptors of the process at one time.
struct Sample {
    /// Resident memory in KiB.
    kib: u64,
    descriptors: usize,
}

impl Sample {
    fn now() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
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
    let middle = |samples: &[Sample]| median(samples.iter().map(|sample| sample.kib as f64)) as u64;
    let ends = (&warm[..quarter], &warm[warm.len() - quarter..]);
    (quarter > 0).then(|| (middle(ends.0), middle(ends.1)))
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
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(ExitCode::SUCCESS)
}

/// Answers up to eight requests. A tenth of the connections end with something else than an answer.
fn converse(mut stream: TcpStream, mut random: Random) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let fails = random.roll(Probability::per_mille(100));
    let mut left = random.within(usize::from(!fails)..=8);
    let mut reader = BufReader::new(stream.try_clone()?);
    while left > 0 {
        left -= 1;
        let Some(number) = hear(&mut reader)? else {
            return Ok(());
        };
        let says_close = !fails && left == 0 && random.roll(Probability::per_mille(500));
        let mut answer = answer(number, says_close);
        if fails && left == 0 {
            spoil(&mut answer, &mut random);
        }
        if random.roll(Probability::per_mille(2)) {
            // Slow, but not a failure.
            for piece in answer.chunks(answer.len() / 8 + 1) {
                stream.write_all(piece)?;
                thread::sleep(Duration::from_millis(10));
            }
        } else {
            stream.write_all(&answer)?;
        }
    }
    match random.within(0..=2) {
        // With a linger time of zero, closing sends RST.
        0 if fails => Ok(set_socket_linger(&stream, Some(Duration::ZERO))?),
        // Reads until the client closes the connection.
        1 if fails => io::copy(&mut stream, &mut io::sink()).map(drop),
        _ => Ok(()),
    }
}

/// The answer to the request with this number.
fn answer(number: u64, says_close: bool) -> Vec<u8> {
    let body = body(number);
    let mut answer = b"HTTP/1.1 200 OK\r\n".to_vec();
    if says_close {
        answer.extend_from_slice(b"Connection: close\r\n");
    }
    if number.is_multiple_of(3) {
        answer.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for chunk in body.chunks(1500) {
            answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            answer.extend_from_slice(chunk);
            answer.extend_from_slice(b"\r\n");
        }
        answer.extend_from_slice(b"0\r\n\r\n");
    } else {
        answer.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        answer.extend_from_slice(&body);
    }
    answer
}

/// Makes something else of an answer, or adds to it.
fn spoil(answer: &mut Vec<u8>, random: &mut Random) {
    let head = "HTTP/1.1 200 OK\r\n";
    *answer = match random.within(0..=7) {
        // At least the last byte is missing.
        0 => answer[..random.within(0..=answer.len() - 1)].to_vec(),
        1 => Vec::new(),
        2 => "\x16\x03\x01 this is no HTTP\r\n\r\n".into(),
        3 => format!("{head}Transfer-Encoding: chunked\r\n\r\nxyz\r\n").into(),
        4 => format!("{head}Content-Length: 1x\r\n\r\n").into(),
        5 => {
            let piece = random.pick(&["X: y\r\n", "\r\nHTTP/1.1 102 Wait\r\n"]);
            format!("HTTP/1.1 102 Wait\r\n{}", piece.repeat(MUCH / 6)).into()
        }
        6 => "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".into(),
        _ => [&**answer, head.as_bytes(), b"Content-Length: 0\r\n\r\n"].concat(),
    };
}

/// Reads a request and returns the number in its target. `None` at the end of the connection.
fn hear(reader: &mut BufReader<TcpStream>) -> io::Result<Option<u64>> {
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
            io::copy(&mut reader.take(length), &mut io::sink())?;
            return Ok(number);
        }
    }
}

/// Number of addresses of the server; with a single one the client could not prefer another.
const ADDRESSES: usize = 4;
const ATTEMPTS: NonZeroU32 = NonZeroU32::new(6).expect("not zero");
/// Time limit of the client: ten times the time of a good response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);
/// One call out of this number is a POST, which is not retried automatically.
const POSTS: u64 = 16;
const SAMPLE: Duration = Duration::from_millis(250);
const SAMPLES_OF_LINE: usize = 40;
/// Bytes beyond the limits of the client.
const MUCH: usize = 1 << 20;
