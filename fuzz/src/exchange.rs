//! A whole client on the simulated network. The input chooses its policies, its calls, and the behaviour of its
//! servers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::rc::Rc;
use std::time::{Duration, Instant};

use courser::net::sim::{Faults, Link, Peer, Probability, SimNet, SimServer};
use courser::net::{Address, Net as _};
use courser::policy::{
    BreakerConfig, FailureClass, LatePolicy, RetryBudget, RetryOn, RetryRule, RetryVia, ReuseOrder,
    Statuses, WaitPolicy,
};
use courser::{
    Backoff, Call, CallId, Codings, Completion, Error, ErrorKind, HostClient, HostConfig, Limits,
    Read, Request, Response, Retry, Timeouts, Upstream,
};

/// The start of `data` chooses the policies of the client, the calls and the links to the servers. The rest is the
/// scripts of the servers, one for each connection in turn.
pub fn exchange(data: &[u8]) {
    let mut choices = Choices(data);
    let plan = Plan::draw(&mut choices);
    let mut scripts = scripts(choices);
    if plan.is_plain {
        // Without this, the order of a request and the first bytes of the server would be a matter of time.
        for script in &mut scripts {
            script.insert(0, Step::AwaitHead);
        }
    }
    let ends = run(&plan, &scripts, plan.segment);
    // For one call over a link without faults, only the bytes of the servers decide, not how they are cut. (A reset
    // overtakes bytes that were sent before it, so that time matters too.)
    let resets = scripts.iter().flatten().any(|step| *step == Step::Reset);
    if plan.is_plain && !resets {
        for segment in [usize::MAX, 1] {
            assert_eq!(ends, run(&plan, &scripts, segment), "pieces of {segment}");
        }
    }
}

/// Reads choices from bytes, and zeros after their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

struct Plan {
    is_plain: bool,
    seed: u64,
    addresses: u8,
    faults: Faults,
    latency: Duration,
    segment: usize,
    config: HostConfig,
    calls: Vec<Planned>,
}

#[derive(Clone, Copy)]
struct Planned {
    method: &'static str,
    body: usize,
    streaming: bool,
    timeout: Duration,
    /// The time after which the caller cancels the call.
    cancel: Option<Duration>,
    /// The time that the caller waits before the next call.
    pause: Duration,
}

impl Plan {
    fn draw(choices: &mut Choices<'_>) -> Self {
        let is_plain = choices.byte().is_multiple_of(3);
        let seed = u64::from(choices.byte());
        let addresses = choices.byte() % 3 + 1;
        let mut odds = || Probability::per_mille(choices.of(&[0, 0, 0, 20, 200, 700]));
        let faults = Faults {
            no_descriptor: odds(),
            refused: odds(),
            unreachable: odds(),
            black_hole: odds(),
            reset: odds(),
            stall: odds(),
            short_read: odds(),
            short_write: odds(),
            would_block: odds(),
            spurious: odds(),
            ..Faults::default()
        };
        let latency = choices.of(&[0, 0, 1, 40, 900]) * MS;
        let segment = usize::from(choices.byte()) + 1;
        let config = config(choices);
        let count = choices.byte() % 6 + 1;
        let calls: Vec<_> = (0..count).map(|_| Planned::draw(choices)).collect();
        let drawn = Self {
            is_plain,
            seed,
            addresses,
            faults,
            latency,
            segment,
            config,
            calls,
        };
        if !is_plain {
            return drawn;
        }
        let one = Planned {
            // A response can overtake the rest of a request body.
            body: 0,
            cancel: None,
            ..drawn.calls[0]
        };
        Self {
            addresses: 1,
            faults: Faults::default(),
            latency: Duration::ZERO,
            calls: vec![one],
            ..drawn
        }
    }
}

impl Planned {
    fn draw(choices: &mut Choices<'_>) -> Self {
        let flags = choices.byte();
        Self {
            method: choices.of(&["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]),
            body: choices.of(&[0, 1, 100, 5000]),
            streaming: flags & 1 != 0,
            timeout: choices.of(&[1, 20, 1_000, 10_000, 100_000]) * MS,
            cancel: (flags & 6 == 6).then(|| choices.of(&[0, 1, 50, 5_000]) * MS),
            pause: choices.of(&[0, 0, 1, 100, 6_000]) * MS,
        }
    }
}

fn config(choices: &mut Choices<'_>) -> HostConfig {
    let number = |n: u8| NonZeroU32::MIN.saturating_add(u32::from(n % 4));
    let mut limit = || match choices.of(&[0, 0, 5, 100, 3_000]) {
        0 => None,
        ms => Some(ms * MS),
    };
    let timeouts = Timeouts {
        queue: limit(),
        connect: limit(),
        write: limit(),
        first_byte: limit(),
        between_bytes: limit(),
        ..Timeouts::none()
    };
    let flags = choices.byte();
    let limits = match flags & 1 {
        0 => Limits::default(),
        _ => Limits {
            head_bytes: 120,
            header_count: 3,
            body_bytes: Some(40),
            chunk_line: 12,
            chunk_overhead: 20,
            trailer_bytes: 20,
            interim_responses: 1,
            decoded_bytes: Some(100),
            ..Limits::default()
        },
    };
    HostConfig {
        max_connections: NonZeroUsize::MIN.saturating_add(usize::from(choices.byte() % 3)),
        max_waiting: usize::from(choices.of(&[0u8, 1, 100])),
        wait: match flags & 2 {
            0 => WaitPolicy::Wait,
            _ => WaitPolicy::FailFast,
        },
        reuse: match flags & 4 {
            0 => ReuseOrder::default(),
            _ => ReuseOrder::Fifo,
        },
        min_idle: usize::from(flags & 24 == 24),
        late: match flags & 32 {
            0 => LatePolicy::Close,
            _ => LatePolicy::Drain { up_to: 500 * MS },
        },
        codings: match flags & 64 {
            0 => Codings::none(),
            _ => Codings::all(),
        },
        timeouts,
        limits,
        stream_buffer: usize::from(choices.of(&[1u8, 10, 255])),
        retry: retry(choices),
        retry_budget: (choices.byte() & 1 == 0).then(RetryBudget::default),
        breaker: (choices.byte() & 3 == 3).then(|| BreakerConfig {
            min_volume: number(choices.byte()),
            consecutive: Some(number(choices.byte())),
            ..BreakerConfig::default()
        }),
        ..HostConfig::default()
    }
}

fn retry(choices: &mut Choices<'_>) -> Retry {
    let on = [
        RetryOn::Failure(FailureClass::Refused),
        RetryOn::Failure(FailureClass::Reset),
        RetryOn::Failure(FailureClass::ConnectTimeout),
        RetryOn::Failure(FailureClass::FirstByteTimeout),
        RetryOn::Failure(FailureClass::ReadTimeout),
        RetryOn::Failure(FailureClass::Truncated),
        RetryOn::Status(Statuses::none().and(429..=429).and(502..=504)),
    ];
    let (wanted, how) = (choices.byte(), choices.byte());
    let rules = on.into_iter().enumerate();
    let rules = rules.filter(|(at, _)| wanted >> at & 1 == 1);
    let rules = rules.map(|(_, on)| RetryRule {
        attempts: NonZeroU32::MIN.saturating_add(u32::from(how % 5)),
        backoff: match how & 8 {
            0 => Backoff::NONE,
            _ => Backoff::default(),
        },
        via: [RetryVia::Any, RetryVia::Fresh][usize::from(how & 16 != 0)],
        ..RetryRule::new(on)
    });
    Retry {
        max_attempts: NonZeroU32::MIN.saturating_add(u32::from(how >> 5)),
        stale: wanted & 128 == 0,
        rules: rules.collect(),
        ..Retry::default()
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Step {
    /// Waits for the next head of a request.
    AwaitHead,
    Send(Vec<u8>),
    Wait(Duration),
    Shutdown,
    Close,
    Reset,
    StopReading,
    StartReading,
}

/// Splits the rest of the input into scripts, one for each connection in turn.
fn scripts(mut choices: Choices<'_>) -> Vec<Vec<Step>> {
    let mut scripts = vec![Vec::new()];
    while !choices.0.is_empty() {
        let code = choices.byte();
        let step = match code {
            0..=95 => Step::Send(PIECES[usize::from(code) % PIECES.len()].into()),
            96..=199 => Step::Send(choices.take(usize::from(code % 52) + 1)),
            200..=227 => Step::AwaitHead,
            228..=236 => Step::Wait(choices.of(&[1, 30, 800, 7_000]) * MS),
            237..=239 => Step::Shutdown,
            240..=242 => Step::Close,
            243..=245 => Step::Reset,
            246 => Step::StopReading,
            247 => Step::StartReading,
            248..=255 => {
                scripts.push(Vec::new());
                continue;
            }
        };
        scripts.last_mut().expect("there is one").push(step);
    }
    scripts
}

/// Runs the plan. Returns the outcome of each call as text.
fn run(plan: &Plan, scripts: &[Vec<Step>], segment: usize) -> Vec<String> {
    let net = SimNet::new(plan.seed);
    net.set_tracing(false);
    let addresses: Vec<SocketAddr> = (1..=plan.addresses)
        .map(|last| ([10, 0, 0, last], 80).into())
        .collect();
    let arrivals = Rc::default();
    for (at, address) in addresses.iter().enumerate() {
        let link = Link {
            latency: plan.latency..=plan.latency,
            segment: segment..=segment,
            faults: plan.faults.clone(),
            ..Link::default()
        };
        let server = Server {
            scripts: scripts.to_vec(),
            next: at,
            conversations: BTreeMap::new(),
            arrivals: Rc::clone(&arrivals),
        };
        net.listen(Address::Tcp(*address), link, server);
    }
    let client = HostClient::with_net(Upstream::tcp(addresses), plan.config.clone(), net.clone());
    let mut run = Run {
        plan,
        net: net.clone(),
        client: client.expect("there are addresses"),
        calls: BTreeMap::new(),
    };
    for (number, planned) in plan.calls.iter().enumerate() {
        run.submit(number, planned);
        run.drive(Some(planned.pause));
    }
    run.drive(None);
    let ends = run.calls.values().map(|call| call.end.clone());
    let ends = ends.collect::<Option<Vec<_>>>();
    let ends = ends.expect("every call ended");
    // Time for connections that outlive their calls, draining or idle.
    run.client.maintain(10_000 * MS).expect("a simulation");
    run.client.close_idle();
    let counters = run.client.counters();
    assert_eq!((counters.busy, counters.waiting), (0, 0), "{counters:?}");
    drop(run);
    assert_eq!(net.open_streams(), 0, "streams were leaked");
    ends
}

struct Run<'p> {
    plan: &'p Plan,
    net: SimNet,
    client: HostClient<SimNet>,
    calls: BTreeMap<CallId, Running<'p>>,
}

struct Running<'p> {
    planned: &'p Planned,
    tag: u64,
    begun: Instant,
    /// Status and body so far, once the head was received.
    body: Option<(u16, Vec<u8>)>,
    cancelled: bool,
    end: Option<String>,
}

impl<'p> Run<'p> {
    fn submit(&mut self, number: usize, planned: &'p Planned) {
        let mut request = Request::new(planned.method, format!("/{number}"));
        if planned.body > 0 {
            request.body(vec![b'x'; planned.body]);
        }
        let call = Call::new(request, Response::new())
            .tag(number as u64)
            .timeout(planned.timeout)
            .streaming(planned.streaming);
        let id = self.client.submit(call);
        let running = Running {
            planned,
            tag: number as u64,
            begun: self.net.now(),
            body: None,
            cancelled: false,
            end: None,
        };
        assert!(self.calls.insert(id, running).is_none(), "one id twice");
    }

    /// Drives the client for a time, or until all calls have ended.
    fn drive(&mut self, time: Option<Duration>) {
        let until = time.map(|time| self.net.now() + time);
        loop {
            self.cancel_due();
            let now = self.net.now();
            let cancels = self.calls.values().filter_map(Running::cancel_at);
            let next = cancels.chain(until).min();
            let timeout = next.map(|next| next.saturating_duration_since(now));
            match self.client.wait(timeout).expect("a simulation").done() {
                Some(done) => self.complete(done),
                None if self.read_bodies() => {}
                None if self.client.in_flight() == 0 => {
                    if let Some(until) = until {
                        let left = until.saturating_duration_since(self.net.now());
                        self.client.maintain(left).expect("a simulation");
                    }
                    return;
                }
                None => {}
            }
            self.check();
            if until.is_some_and(|until| self.net.now() >= until) {
                return;
            }
        }
    }

    fn cancel_due(&mut self) {
        let now = self.net.now();
        for (id, call) in &mut self.calls {
            if call.cancel_at().is_some_and(|at| at <= now) {
                call.cancelled = true;
                let was_open = self.client.cancel(*id);
                // A cancelled body reports nothing more; every other call completes.
                if call.body.is_some() {
                    assert!(was_open, "a body that ended by itself");
                    call.end = Some("dropped".to_owned());
                }
            }
        }
    }

    fn complete(&mut self, done: Completion) {
        let call = self.calls.get_mut(&done.id).expect("a call of ours");
        assert!(call.end.is_none() && call.body.is_none(), "it ended before");
        assert_eq!(done.tag, call.tag);
        assert_eq!(done.request.method(), call.planned.method);
        let most = self.plan.config.retry.max_attempts.get();
        assert!(done.report.attempts() <= most, "{:?}", done.report);
        let status = done.response.status();
        call.check_time(self.net.now());
        match (done.outcome, done.body) {
            (Ok(()), Some(_)) if call.cancelled => call.end = Some("dropped".to_owned()),
            (Ok(()), Some(_)) => call.body = Some((status, Vec::new())),
            (Ok(()), None) => {
                assert!(!call.planned.streaming);
                call.end = Some(format!("{status} {:?}", done.response.body()));
            }
            (Err(error), body) => {
                assert!(body.is_none(), "the body of a failed call");
                call.end = Some(format!("{} after {status}", words(&error)));
            }
        }
    }

    /// Reads all bodies with new bytes. False if there is none.
    fn read_bodies(&mut self) -> bool {
        let mut any = false;
        while let Some(id) = self.client.readable_body() {
            any = true;
            let call = self.calls.get_mut(&id).expect("a call of ours");
            let mut buf = [0; 7];
            loop {
                let (status, body) = call.body.as_mut().expect("its head was given");
                match self.client.read_body(id, &mut buf) {
                    Ok(Read::Data(n)) => body.extend_from_slice(&buf[..n]),
                    Ok(Read::Pending) => break,
                    Ok(Read::End { .. }) => {
                        call.end = Some(format!("{status} {body:?}"));
                        break;
                    }
                    Err(error) => {
                        call.end = Some(format!("{status} {body:?} {}", words(&error)));
                        break;
                    }
                }
            }
            call.check_time(self.net.now());
        }
        any
    }

    fn check(&self) {
        let counters = self.client.counters();
        assert_eq!(counters.open, self.net.open_streams(), "{counters:?}");
        let cap = self.plan.config.max_connections.get();
        assert!(self.net.peak_streams() <= cap, "over {cap}");
    }
}

impl Running<'_> {
    /// The time at which the caller cancels the call, if it has not done so yet.
    fn cancel_at(&self) -> Option<Instant> {
        let after = self
            .planned
            .cancel
            .filter(|_| self.end.is_none() && !self.cancelled)?;
        Some(self.begun + after)
    }

    /// Checks the time limit of the call, which starts when the call is submitted.
    fn check_time(&self, now: Instant) {
        let taken = now - self.begun;
        assert!(taken <= self.planned.timeout, "over after {taken:?}");
    }
}

fn words(error: &Error) -> String {
    match error.kind() {
        // The time in the error differs between runs.
        ErrorKind::BreakerOpen(..) => "BreakerOpen".to_owned(),
        kind => format!("{kind:?}"),
    }
}

/// A server that plays one script for each connection. A script that waits for requests starts again at its end.
struct Server {
    scripts: Vec<Vec<Step>>,
    /// Index of the script for the next connection.
    next: usize,
    conversations: BTreeMap<u64, Conversation>,
    /// Number of arrivals at all servers of each request that must not be repeated, by its request line.
    arrivals: Rc<RefCell<BTreeMap<Vec<u8>, u32>>>,
}

struct Conversation {
    script: Vec<Step>,
    at: usize,
    /// The received bytes since the last request line.
    received: Vec<u8>,
    tail: [u8; 4],
}

impl SimServer for Server {
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        let script = self.scripts[self.next % self.scripts.len()].clone();
        self.next += 1;
        let conversation = Conversation {
            script,
            at: 0,
            received: Vec::new(),
            tail: [0; 4],
        };
        let entry = self.conversations.entry(peer.connection());
        entry.or_insert(conversation).play(peer);
    }

    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let Some(conversation) = self.conversations.get_mut(&peer.connection()) else {
            return;
        };
        for &byte in data {
            conversation.received.push(byte);
            if conversation.received.ends_with(b" HTTP/1.1\r\n") {
                let line = std::mem::take(&mut conversation.received);
                let posts = line.windows(7).rposition(|at| at.starts_with(b"POST /"));
                let patches = line.windows(7).rposition(|at| at.starts_with(b"PATCH /"));
                if let Some(at) = posts.max(patches) {
                    let mut arrivals = self.arrivals.borrow_mut();
                    let times = arrivals.entry(line[at..].to_vec()).or_default();
                    *times += 1;
                    assert!(*times == 1, "sent again: {:?}", &line[at..]);
                }
            }
            let tail = [
                conversation.tail[1],
                conversation.tail[2],
                conversation.tail[3],
                byte,
            ];
            conversation.tail = tail;
            if tail == *b"\r\n\r\n" {
                conversation.at +=
                    usize::from(conversation.script.get(conversation.at) == Some(&Step::AwaitHead));
                conversation.play(peer);
            }
        }
    }

    fn on_close(&mut self, peer: &mut Peer<'_>) {
        self.conversations.remove(&peer.connection());
    }
}

impl Conversation {
    /// Plays the script up to the next step that waits for the client.
    fn play(&mut self, peer: &mut Peer<'_>) {
        if self.at == self.script.len() && self.script.contains(&Step::AwaitHead) {
            self.at = 0;
        }
        while let Some(step) = self.script.get(self.at) {
            match step {
                Step::AwaitHead => return,
                Step::Send(bytes) => peer.send(&bytes[..]),
                Step::Wait(time) => peer.wait(*time),
                Step::Shutdown => peer.shutdown(),
                Step::Close => peer.close(),
                Step::Reset => peer.reset(),
                Step::StopReading => peer.stop_reading(),
                Step::StartReading => peer.start_reading(),
            }
            self.at += 1;
        }
    }
}

const PIECES: [&[u8]; 24] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nContent-Length: 3\r\n\r\nbye",
    b"HTTP/1.1 204 Nothing\r\n\r\n",
    b"HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"0\r\nT: 1\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\nKeep-Alive: timeout=1\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Retry-After: 7\r\n",
    b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:39 GMT\r\n",
    b"\r\n",
    b"hello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n",
    b"HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\n",
];

const MS: Duration = Duration::from_millis(1);
