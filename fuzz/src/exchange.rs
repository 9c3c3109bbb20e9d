//! A whole client on the simulated network: one call to a server that plays what the input says. Many calls at once, and links
//! with faults, are for the simulation of the engine's tests.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use courser::net::sim::{Link, Peer, SimNet, SimServer};
use courser::net::{Address, Net as _};
use courser::policy::{FailureClass, RetryOn, RetryRule, RetryVia, Statuses};
use courser::{
    Backoff, BodyRead, Call, Codings, HostClient, HostConfig, Limits, Request, Response, Retry,
    Timeouts, Upstream,
};

/// The start of `data` chooses the call and the policies of the client. The rest is the scripts of the server, one for each
/// connection in turn. Only the bytes of the server decide, not how they are cut.
pub fn exchange(data: &[u8]) {
    let mut choices = Choices(data);
    let plan = Plan::draw(&mut choices);
    let scripts = scripts(choices);
    let ends = [usize::MAX, plan.segment, 1].map(|segment| run(&plan, &scripts, segment));
    // A reset overtakes bytes that were sent before it, so that time matters too.
    if !scripts.iter().flatten().any(|step| *step == Step::Reset) {
        assert_eq!(ends[0], ends[1], "pieces of {}", plan.segment);
        assert_eq!(ends[0], ends[2], "single bytes");
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
    method: &'static str,
    streaming: bool,
    timeout: Duration,
    segment: usize,
    config: HostConfig,
}

impl Plan {
    fn draw(choices: &mut Choices<'_>) -> Self {
        Self {
            method: choices.of(&["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]),
            streaming: choices.byte() & 1 != 0,
            timeout: choices.of(&[1, 20, 1_000, 10_000, 100_000]) * MS,
            segment: usize::from(choices.byte()) + 1,
            config: config(choices),
        }
    }
}

fn config(choices: &mut Choices<'_>) -> HostConfig {
    let mut limit = || match choices.of(&[0, 0, 5, 100, 3_000]) {
        0 => None,
        ms => Some(ms * MS),
    };
    let timeouts = Timeouts {
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
        codings: match flags & 2 {
            0 => Codings::none(),
            _ => Codings::all(),
        },
        timeouts,
        limits,
        stream_buffer: usize::from(choices.of(&[1u8, 10, 255])),
        retry: retry(choices),
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
        safe_cases: wanted & 128 == 0,
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
    // Without the wait, the order of a request and the first bytes of the server would be a matter of time.
    let mut scripts = vec![vec![Step::AwaitHead]];
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
                scripts.push(vec![Step::AwaitHead]);
                continue;
            }
        };
        scripts.last_mut().expect("there is one").push(step);
    }
    scripts
}

/// Makes the call. Returns its outcome as text.
fn run(plan: &Plan, scripts: &[Vec<Step>], segment: usize) -> String {
    let net = SimNet::new(1);
    net.set_tracing(false);
    let address = ([10, 0, 0, 1], 80).into();
    let link = Link {
        latency: Duration::ZERO..=Duration::ZERO,
        segment: segment..=segment,
        ..Link::default()
    };
    let arrivals = Rc::default();
    let server = Server {
        scripts: scripts.to_vec(),
        next: 0,
        conversations: BTreeMap::new(),
        arrivals: Rc::clone(&arrivals),
    };
    net.listen(Address::Tcp(address), link, server);
    let client = HostClient::with_net(Upstream::tcp([address]), plan.config.clone(), net.clone());
    let mut client = client.expect("there is an address");
    let call = Call::new(Request::new(plan.method, "/"), Response::new());
    let (began, id) = (
        net.now(),
        client.submit(call.timeout(plan.timeout).streaming(plan.streaming)),
    );
    let done = client.wait(None).expect("a simulation").done();
    let done = done.expect("the call ends");
    let mut body = done.response.body().to_vec();
    let mut is_open = plan.streaming && done.outcome.is_ok();
    assert_eq!(done.streamed().is_some(), is_open);
    let mut error = done.outcome.err();
    while is_open {
        let waited = client.wait(None).expect("a simulation").done();
        assert!(waited.is_none(), "the call ends twice");
        let mut buf = [0; 7];
        let mut has_bytes = client.readable_body() == Some(id);
        while has_bytes && is_open {
            match client.read_body(id, &mut buf) {
                Ok(BodyRead::Data(n)) => body.extend_from_slice(&buf[..n]),
                Ok(BodyRead::Pending) => has_bytes = false,
                Ok(BodyRead::End { .. }) => is_open = false,
                Err(failure) => (is_open, error) = (false, Some(failure)),
            }
        }
    }
    let error = error.map(|error| format!("{:?}", error.kind()));
    let end = format!("{} {body:?} {error:?}", done.response.status());
    assert!(net.now() - began <= plan.timeout, "too late");
    let retry = &plan.config.retry;
    let rules = retry.rules.iter().map(|rule| rule.attempts);
    let most = rules.fold(retry.max_attempts, Ord::max);
    assert!(done.report.attempts() <= most.get());
    if matches!(plan.method, "POST" | "PATCH") {
        assert!(arrivals.get() <= 1, "sent again");
    }
    // Time for connections that outlive the call, draining or idle.
    client.maintain(10_000 * MS).expect("a simulation");
    assert_eq!(client.counters().open, net.open_streams());
    drop(client);
    assert_eq!(net.open_streams(), 0, "streams were leaked");
    end
}

/// A server that plays one script for each connection. A script that waits for requests starts again at its end.
struct Server {
    scripts: Vec<Vec<Step>>,
    /// Index of the script for the next connection.
    next: usize,
    conversations: BTreeMap<u64, Conversation>,
    /// Number of requests that have arrived.
    arrivals: Rc<Cell<u32>>,
}

struct Conversation {
    script: Vec<Step>,
    at: usize,
    /// The last bytes that were received.
    tail: [u8; 4],
}

impl SimServer for Server {
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        let mut conversation = Conversation {
            script: self.scripts[self.next % self.scripts.len()].clone(),
            at: 0,
            tail: [0; 4],
        };
        self.next += 1;
        conversation.play(peer);
        self.conversations.insert(peer.connection(), conversation);
    }

    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let Some(conversation) = self.conversations.get_mut(&peer.connection()) else {
            return;
        };
        for &byte in data {
            let [_, a, b, c] = conversation.tail;
            conversation.tail = [a, b, c, byte];
            if conversation.tail == *b"\r\n\r\n" {
                self.arrivals.set(self.arrivals.get() + 1);
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
