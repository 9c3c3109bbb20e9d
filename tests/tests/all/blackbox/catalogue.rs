//! The catalogue of faults: what can go wrong with a connection, at every stage of a call, with the error that it ends
//! in. Each leaves no connection and no descriptor behind, and does not disturb the next call.
//!
//! What needs more than exact bytes stands below the tables, in a network of its own: ports that run out and packets that
//! are lost.

use std::fs;
use std::io::{self, ErrorKind as Io};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::{Duration, Instant};

use courser::{
    BatchConfig, Call, CallId, Client, Completion, Config, Error, ErrorKind, HostClient,
    HostConfig, LatePolicy, LimitExceeded, Limits, PeerFault, Phase, PipelineClient,
    PipelineConfig, Read, Request, Response, Retry, Sent, TimeLimit, Upstream,
};
use tests::alone::{assert_descriptors, command, descriptors, in_own_network, in_own_process};
use tests::clients::{
    any_client, assert_nothing_left, client_with, config, drive_all, drive_until,
    with_longer_limits,
};
use tests::script::{Behaviour, Gate, PATIENCE, Script, Server, Transport, connection};

use super::OK;

/// How far a connection comes before something happens to it.
struct Stage {
    name: &'static str,
    script: Script,
    /// Of a long body, of which the server reads the head alone.
    upload: bool,
    /// What the server has sent by then, and what it may repeat without end.
    said: String,
    more: &'static str,
    phase: Phase,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// RST.
    Reset,
    /// FIN of both directions, which is RST if something is unread.
    Close,
    /// FIN of the server's direction.
    HalfClose,
    /// Nothing at all.
    Stall,
    /// A byte now and then.
    Drip,
}

const ENDS: [End; 5] = {
    use End::{Close, Drip, HalfClose, Reset, Stall};
    [Reset, Close, HalfClose, Stall, Drip]
};

fn stages() -> Vec<Stage> {
    let answering = |name, said: &str, more, phase| Stage {
        name,
        script: connection().request(),
        upload: false,
        said: said.to_owned(),
        more,
        phase,
    };
    let body = |name, rest: &str, more| {
        answering(
            name,
            &format!("HTTP/1.1 200 OK\r\n{rest}"),
            more,
            Phase::Body,
        )
    };
    let chunks = |name, rest: &str, more| {
        body(
            name,
            &format!("Transfer-Encoding: chunked\r\n\r\n{rest}"),
            more,
        )
    };
    vec![
        Stage {
            script: connection(),
            ..answering("accepted, nothing read", "", START, Phase::FirstByte)
        },
        Stage {
            script: connection().small_buffers().head(),
            upload: true,
            ..answering("in the upload", "", START, Phase::Send)
        },
        answering("the request is read", "", START, Phase::FirstByte),
        answering("in the status line", "HTTP/1.1 2", "00 OKOKOK", Phase::Head),
        answering(
            "in a header",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "ng-long-long",
            Phase::Head,
        ),
        answering("behind an interim response", HINTS, HINTS, Phase::Head),
        body(
            "in a body with a length",
            "Content-Length: 99999\r\n\r\n01234",
            "x",
        ),
        body("in a body without", "\r\n01234", "x"),
        chunks("before the first chunk", "", "1\r\nx\r\n"),
        chunks("in the size of a chunk", "5", ";extension"),
        chunks("in a chunk", "fffff\r\n012", "x"),
        chunks("between chunks", "5\r\n01234\r\n", "1\r\nx\r\n"),
        chunks("in the trailers", "5\r\n01234\r\n0\r\nT: t\r\n", "T: t\r\n"),
    ]
}

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\n\r\n";
/// A head that has no end.
const START: &str = "HTTP/1.1 200 OK\r\nX: y";

/// What a call must end in: an answer with that status, or an error of one of these kinds.
#[derive(Clone, Debug)]
enum Expected {
    Answer(u16),
    Failure(Vec<Kind>, Phase, Sent),
}

/// A kind of error, to be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Peer(PeerFault),
    Limit(LimitExceeded),
    Timeout(TimeLimit),
    Io(Io),
    Other,
}

impl Kind {
    fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Peer(fault) => Self::Peer(*fault),
            ErrorKind::Limit(limit) => Self::Limit(*limit),
            ErrorKind::Timeout(limit) => Self::Timeout(*limit),
            ErrorKind::Io(error) => Self::Io(error.kind()),
            _ => Self::Other,
        }
    }
}

fn failure(kind: Kind, phase: Phase, sent: Sent) -> Expected {
    Expected::Failure(vec![kind], phase, sent)
}

/// RST, as reading or writing hears of it.
fn reset(phase: Phase, sent: Sent) -> Expected {
    let kinds = [Io::ConnectionReset, Io::BrokenPipe].map(Kind::Io);
    Expected::Failure(kinds.into(), phase, sent)
}

fn expected(stage: &Stage, end: End) -> Expected {
    let begun = !stage.said.is_empty();
    let sent = if begun {
        Sent::Partial
    } else {
        Sent::NoReplyByte
    };
    let until_close = stage.name == "in a body without";
    let unread = stage.upload || stage.name == "accepted, nothing read";
    match end {
        End::Reset => reset(stage.phase, sent),
        // The system may make an RST of it.
        End::Close if unread => match reset(stage.phase, sent) {
            Expected::Failure(mut kinds, phase, sent) => {
                kinds.push(Kind::Peer(PeerFault::Empty));
                Expected::Failure(kinds, phase, sent)
            }
            answer => answer,
        },
        End::Close | End::HalfClose if until_close => Expected::Answer(200),
        End::Close | End::HalfClose if begun => {
            failure(Kind::Peer(PeerFault::Truncated), stage.phase, sent)
        }
        End::Close | End::HalfClose => failure(Kind::Peer(PeerFault::Empty), stage.phase, sent),
        End::Stall => {
            let limit = match stage.phase {
                Phase::Send => TimeLimit::Write,
                Phase::FirstByte => TimeLimit::FirstByte,
                _ => TimeLimit::BetweenBytes,
            };
            failure(Kind::Timeout(limit), stage.phase, sent)
        }
        End::Drip => {
            let phase = if begun { stage.phase } else { Phase::Head };
            failure(Kind::Timeout(TimeLimit::Total), phase, Sent::Partial)
        }
    }
}

#[test]
fn whatever_happens_at_whatever_stage() {
    in_own_process(
        "blackbox::catalogue::whatever_happens_at_whatever_stage",
        || {
            for (row, stage) in stages().iter().enumerate() {
                for (column, end) in ENDS.into_iter().enumerate() {
                    // Each end meets each way to call at some stages, and each stage meets each way.
                    let manner = MANNERS[(row + column) % MANNERS.len()];
                    let what = format!("{}: {end:?}, {manner:?}", stage.name);
                    with_longer_limits(|limit| happens_within(limit, &what, stage, end, manner));
                }
            }
        },
    );
}

fn happens_within(limit: Duration, what: &str, stage: &Stage, end: End, manner: Manner) -> bool {
    let gate = Gate::new();
    let said = match end {
        End::Drip if stage.said.is_empty() => START,
        _ => &stage.said,
    };
    let script = stage.script.clone().send(said).wait(&gate);
    let script = match end {
        End::Reset => script.reset(),
        End::Close => script.close(),
        End::HalfClose => script.half_close(),
        // Nor does it read on, until the test is over.
        End::Stall => script.wait(&gate),
        End::Drip => script.trickle(stage.more.repeat(20_000 / stage.more.len())),
    };
    let mut config = config();
    let timeouts = &mut config.timeouts;
    match (end, stage.phase) {
        (End::Stall, Phase::Send) => timeouts.write = Some(limit),
        (End::Stall, Phase::FirstByte) => timeouts.first_byte = Some(limit),
        (End::Stall, _) => timeouts.between_bytes = Some(limit),
        (End::Drip, _) => {
            (timeouts.total, timeouts.total_streamed) = (Some(limit), Some(limit));
        }
        _ => {}
    }
    let request = match stage.upload {
        true => Request::post("/", vec![b'x'; 16 << 20]),
        false => Request::get("/"),
    };
    let row = Row {
        script,
        config,
        request,
        expected: expected(stage, end),
        least: match end {
            End::Stall | End::Drip => limit,
            _ => Duration::ZERO,
        },
        gate: Some(gate),
    };
    row.check(what, manner)
}

/// One call whose connection has a fault, and what it must end in.
struct Row {
    /// Of the first connection; the second one serves as it should.
    script: Script,
    config: HostConfig,
    request: Request,
    expected: Expected,
    /// It does not end before.
    least: Duration,
    /// At which the server waits until what it has said is read.
    gate: Option<Gate>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            script: connection(),
            config: config(),
            request: Request::get("/"),
            expected: Expected::Answer(200),
            least: Duration::ZERO,
            gate: None,
        }
    }
}

impl Row {
    /// False if the call ended before the server reached the gate.
    fn check(self, what: &str, manner: Manner) -> bool {
        let descriptors = descriptors();
        let scripts = [self.script, connection().always(OK)];
        let server = Server::start(Transport::Tcp, Behaviour::List(scripts.into()));
        let mut client = manner.client(&server, self.config);
        let began = Instant::now();
        let mut request = self.request;
        manner.aim(&mut request, &server);
        let call = Call::new(request, Response::new()).streaming(manner.streamed);
        let (outcome, happened) = run(&mut client, call, self.gate.as_ref());
        let took = began.elapsed();
        if let Some(gate) = &self.gate {
            gate.open_for_all();
            if !happened {
                return false;
            }
        }
        match (&self.expected, &outcome) {
            (Expected::Answer(expected), Ok(status)) => assert_eq!(expected, status, "{what}"),
            (Expected::Failure(kinds, phase, sent), Err(error)) => {
                let (found, at) = (Kind::of(error), (error.phase(), error.sent()));
                assert!(kinds.contains(&found), "{what}: {error:?}");
                assert_eq!(at, (*phase, *sent), "{what}: {error:?}");
                assert!(error.remote().is_some(), "{what}: {error:?}");
            }
            (expected, outcome) => panic!("{what}: {outcome:?} instead of {expected:?}"),
        }
        assert!(took >= self.least, "{what}: {took:?}");
        assert_eq!(client.settled(), (0, 0), "{what}");
        println!("{what}: {outcome:?}");

        // The next call is not affected.
        let mut request = Request::get("/");
        manner.aim(&mut request, &server);
        client.submit(Call::new(request, Response::new()).timeout(PATIENCE));
        let done = client.wait(None).expect("poll").expect("a completion");
        done.outcome.expect(what);
        assert_eq!(done.response.body(), b"ok", "{what}");
        assert_eq!(server.accepted(), 2, "{what}");
        assert_eq!(client.close_idle(), (0, 0), "{what}");
        drop(client);
        server.wait_all_ended();
        drop(server);
        assert_descriptors(descriptors, what);
        true
    }
}

/// How a call is made.
#[derive(Clone, Copy, Debug)]
struct Manner {
    by: By,
    streamed: bool,
}

/// Which client makes it.
#[derive(Clone, Copy, Debug)]
enum By {
    HostClient,
    Client,
    PipelineClient,
}

/// All ways to call. Streaming is the same for all clients, and a pipelining client has none.
const MANNERS: [Manner; 4] = [
    Manner::new(By::HostClient, false),
    Manner::new(By::HostClient, true),
    Manner::new(By::Client, false),
    Manner::new(By::PipelineClient, false),
];

impl Manner {
    const fn new(by: By, streamed: bool) -> Self {
        Self { by, streamed }
    }

    fn client(self, server: &Server, host: HostConfig) -> AnyOf {
        let upstream = Upstream::tcp([server.address()]);
        match self.by {
            By::HostClient => AnyOf::Host(client_with(server, host).into()),
            By::Client => AnyOf::Any(Box::new(any_client(Config {
                host,
                ..Config::default()
            }))),
            By::PipelineClient => {
                // It would wait for the answers of calls that have given up.
                let late = LatePolicy::Drain {
                    up_to: Duration::ZERO,
                };
                // And it asks again for what no byte of an answer has come of.
                let retry = Retry {
                    max_attempts: NonZeroU32::MIN,
                    ..Retry::default()
                };
                let config = PipelineConfig {
                    host: HostConfig {
                        late,
                        retry,
                        ..host
                    },
                    ..PipelineConfig::default()
                };
                let client = PipelineClient::new(upstream, config);
                AnyOf::Pipeline(client.expect("a readiness queue").into())
            }
        }
    }

    fn aim(self, request: &mut Request, server: &Server) {
        if let By::Client = self.by {
            let target = format!("http://{}{}", server.address(), request.target());
            request.set_target(&target);
        }
    }
}

/// A client of any kind.
enum AnyOf {
    Host(Box<HostClient>),
    Any(Box<Client>),
    Pipeline(Box<PipelineClient>),
}

/// The same of each of them.
macro_rules! of_each {
    ($any:expr, $client:ident => $then:expr) => {
        match $any {
            AnyOf::Host($client) => $then,
            AnyOf::Any($client) => $then,
            AnyOf::Pipeline($client) => $then,
        }
    };
}

impl AnyOf {
    fn submit(&mut self, call: Call) -> CallId {
        of_each!(self, client => client.submit(call))
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Option<Completion>> {
        of_each!(self, client => client.wait(timeout))
    }

    fn readable_body(&mut self) -> Option<CallId> {
        of_each!(self, client => client.readable_body())
    }

    fn read_body(&mut self, id: CallId, buf: &mut [u8]) -> Result<Read, Error> {
        of_each!(self, client => client.read_body(id, buf))
    }

    /// Calls and connections.
    fn at_work(&self) -> (usize, usize) {
        of_each!(self, client => (client.in_flight(), client.counters().open))
    }

    /// The same, once a pipeline has looked at what it no longer waits for.
    fn settled(&mut self) -> (usize, usize) {
        if let Self::Pipeline(client) = self {
            let began = Instant::now();
            while client.counters().open > 0 && began.elapsed() < PATIENCE {
                client.maintain(STEP).expect("poll");
            }
        }
        self.at_work()
    }

    /// What is at work with the idle connections closed.
    fn close_idle(&mut self) -> (usize, usize) {
        of_each!(self, client => { client.close_idle(); });
        self.at_work()
    }
}

/// Drives a call to its end, a streamed body included. Once what the server has said is there, and read, the gate
/// opens; tells whether it did.
fn run(client: &mut AnyOf, call: Call, gate: Option<&Gate>) -> (Result<u16, Error>, bool) {
    let id = client.submit(call);
    let (mut head, mut opened) = (None, false);
    loop {
        let said = gate.is_some_and(|gate| gate.arrived() > 0);
        if let Some(done) = client.wait(Some(STEP)).expect("poll") {
            match done.outcome {
                Ok(()) if done.body.is_none() => return (Ok(done.response.status()), opened),
                Ok(()) => head = Some(done.response.status()),
                Err(error) => return (Err(error), opened),
            }
        }
        if let Some(status) = head {
            client.readable_body();
            match client.read_body(id, &mut [0; 4096]) {
                Ok(Read::End { .. }) => return (Ok(status), opened),
                Ok(_) => {}
                Err(error) => return (Err(error), opened),
            }
        }
        if let Some(gate) = gate.filter(|_| said && !opened) {
            gate.open();
            opened = true;
        }
    }
}

/// A limit on bodies.
const SMALL: u64 = 100_000;

/// One turn of the client's loop.
const STEP: Duration = Duration::from_millis(1);

// ---- what servers say

/// A server that goes on without end, or says more than it was asked for. Each single answer is in the tables of
/// `engine/src/proto/tests.rs`.
fn sayings() -> Vec<(&'static str, Row)> {
    let at = |script: Script, expected| Row {
        script,
        expected,
        ..Row::default()
    };
    let says = |text: &str| connection().request().send(text);
    let limit = |limit, phase| failure(Kind::Limit(limit), phase, Sent::Partial);
    let small = HostConfig {
        limits: Limits {
            body_bytes: Some(SMALL),
            ..Limits::default()
        },
        ..config()
    };
    vec![
        (
            "an oversized head",
            at(
                says("HTTP/1.1 200 OK\r\nX: ").flood("x".repeat(1000)),
                limit(
                    LimitExceeded::HeadBytes(Limits::default().head_bytes),
                    Phase::Head,
                ),
            ),
        ),
        (
            "endless interim responses",
            at(
                connection()
                    .request()
                    .flood("HTTP/1.1 102 Processing\r\n\r\n".repeat(10)),
                limit(LimitExceeded::InterimResponses(100), Phase::Head),
            ),
        ),
        (
            "an endless body",
            Row {
                config: small,
                ..at(
                    says("HTTP/1.1 200 OK\r\n\r\n").flood("x".repeat(1000)),
                    limit(LimitExceeded::BodyBytes(SMALL), Phase::Body),
                )
            },
        ),
        (
            "an extra answer",
            at(
                connection().request().send([OK, OK].concat()),
                Expected::Answer(200),
            ),
        ),
        (
            "an early answer to an upload, and no more reading",
            Row {
                request: Request::post("/", vec![b'x'; 16 << 20]),
                ..at(
                    connection()
                        .small_buffers()
                        .head()
                        .send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"),
                    Expected::Answer(413),
                )
            },
        ),
    ]
}

#[test]
fn whatever_servers_say() {
    in_own_process("blackbox::catalogue::whatever_servers_say", || {
        for manner in MANNERS {
            // How long a streamed body may be is its consumer's decision.
            let concerns =
                |row: &Row| !manner.streamed || row.config.limits.body_bytes != Some(SMALL);
            for (name, row) in sayings().into_iter().filter(|(_, row)| concerns(row)) {
                assert!(row.check(&format!("{name}, {manner:?}"), manner));
            }
        }
    });
}

// ---- a network of its own

#[test]
#[ignore = "needs a network namespace"]
fn ports_run_out() {
    in_own_network("blackbox::catalogue::ports_run_out", || {
        let gate = Gate::new();
        let held = connection().request().wait(&gate).send(OK).always(OK);
        let server = Server::every(held);
        let mut client = client_with(&server, config());
        let before = descriptors();
        let ports = "/proc/sys/net/ipv4/ip_local_port_range";
        let usual = fs::read_to_string(ports).unwrap();
        fs::write(ports, "40000 40007").unwrap();
        for tag in 0..64 {
            client.submit(Call::new(Request::get("/"), Response::new()).tag(tag));
        }
        drive_until(&mut client, "all ports are in use", |_, _| {
            gate.arrived() == 8
        });
        assert_eq!((client.in_flight(), client.counters().open), (64, 8));
        gate.open_for_all();
        let completions = drive_all(&mut client);
        assert_eq!(completions.len(), 64);
        for done in completions {
            done.outcome.unwrap();
        }
        // With ports again, it is as if nothing had been.
        fs::write(ports, usual).unwrap();
        let calls = (0..64).map(|tag| Call::new(Request::get("/"), Response::new()).tag(tag));
        for (_, done) in client.call_many(calls, BatchConfig::default()) {
            done.outcome.unwrap();
        }
        client.close_idle();
        server.wait_all_ended();
        assert_descriptors(before, "all connections are gone");
        assert_nothing_left(client, &server);
    });
}

#[test]
#[ignore = "needs a network namespace"]
fn packets_vanish() {
    in_own_network("blackbox::catalogue::packets_vanish", || {
        let gate = Gate::new();
        let held = connection()
            .request()
            .send(OK)
            .request()
            .wait(&gate)
            .send(OK);
        let scripts = [held, connection().always(OK)];
        let server = Server::start(Transport::Tcp, Behaviour::List(scripts.into()));
        // Long enough for a call that succeeds, on a busy machine too.
        let limit = Duration::from_secs(3);
        let mut config = config();
        config.timeouts.connect = Some(limit);
        config.timeouts.first_byte = Some(limit);
        let mut client = client_with(&server, config);
        client.get("/", &mut Response::new()).unwrap();
        let before = descriptors();
        let fails = |client: &mut HostClient, by, phase, sent| {
            let began = Instant::now();
            let error = client.get("/", &mut Response::new()).unwrap_err();
            assert_eq!(Kind::of(&error), Kind::Timeout(by), "{error:?}");
            assert_eq!((error.phase(), error.sent()), (phase, sent), "{error:?}");
            assert!(began.elapsed() >= limit);
            assert_eq!(client.counters().open, 0);
        };
        assert!(command("tc qdisc add dev lo root blackhole"));
        // On a kept connection nothing reports that the server cannot be reached any more. On a new one not even SYN is
        // answered.
        let unheard = Sent::NoReplyByte;
        fails(&mut client, TimeLimit::FirstByte, Phase::FirstByte, unheard);
        fails(
            &mut client,
            TimeLimit::Connect,
            Phase::Connect,
            Sent::Nothing,
        );
        fails(
            &mut client,
            TimeLimit::Connect,
            Phase::Connect,
            Sent::Nothing,
        );
        assert_eq!(descriptors(), before - 1, "the client's end is closed");
        assert!(command("tc qdisc del dev lo root"));
        client.get("/", &mut Response::new()).unwrap();
        gate.open_for_all();
        assert_eq!(server.accepted(), 2);
        assert_nothing_left(client, &server);
    });
}

#[test]
#[ignore = "needs a network namespace"]
fn packets_are_lost() {
    in_own_network("blackbox::catalogue::packets_are_lost", || {
        let server = Server::answer(|request| {
            let target = request.target();
            super::response(target.repeat(20_000 / target.len()))
        });
        // One in ten, at random; or, where the system cannot do that, what a short queue before a slow line has no
        // room for.
        let lossy = command("tc qdisc add dev lo root netem loss 10% delay 1ms")
            || command("tc qdisc add dev lo root tbf rate 16mbit burst 4kb limit 6kb");
        assert!(lossy, "tc can lose no packets here");
        let config = HostConfig {
            max_connections: NonZeroUsize::new(16).unwrap(),
            ..config()
        };
        let mut client = client_with(&server, config);
        let before = descriptors();
        let calls = (0..100).map(|n| Call::new(Request::get(format!("/{n:04}")), Response::new()));
        for (number, done) in client.call_many(calls, BatchConfig::default()) {
            done.outcome.unwrap();
            let target = format!("/{number:04}");
            assert_eq!(
                done.response.body(),
                target.repeat(20_000 / target.len()).as_bytes()
            );
        }
        let shown = std::process::Command::new("tc")
            .args("-s qdisc show dev lo".split(' '))
            .output();
        let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
        let (_, dropped) = shown.split_once("dropped ").unwrap();
        let dropped: u64 = dropped.split([',', ' ']).next().unwrap().parse().unwrap();
        println!("{dropped} packets dropped");
        assert!(dropped > 0, "{shown}");
        client.close_idle();
        server.wait_all_ended();
        assert_descriptors(before, "all connections are gone");
        assert_nothing_left(client, &server);
    });
}
