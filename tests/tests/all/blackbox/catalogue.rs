//! The catalogue of faults: how a real connection can end, at every stage of a call, with the error that the call ends in.
//! Each leaves no connection and no descriptor behind, and does not disturb the next call. The other clients, streamed
//! bodies and stalls are in `engine/tests/sim` and `engine/tests/all/scenarios`.
//!
//! What needs more than exact bytes stands below, in a network of its own: ports that run out and packets that are lost.

use std::fs;
use std::io::ErrorKind as Io;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use courser::{
    BatchConfig, Call, Error, ErrorKind, HostConfig, LimitExceeded, Limits, PeerFault, Phase,
    Request, Response, Sent, TimeLimit,
};
use tests::alone::{assert_descriptors, command, descriptors, in_own_network, in_own_process};
use tests::clients::{
    assert_nothing_left, client_with, config, drive_all, drive_until, with_longer_limits,
};
use tests::script::{Gate, Script, Server, connection};

use super::OK;

/// How far a connection comes before something happens to it.
struct Stage {
    name: &'static str,
    script: Script,
    /// Of a long body, of which the server reads the head alone.
    upload: bool,
    /// What the server has sent by then, and what it may repeat without end.
    said: &'static str,
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
    /// A byte now and then.
    Drip,
}

fn stages() -> Vec<Stage> {
    let answering = |name, said, more, phase| Stage {
        name,
        script: connection().request(),
        upload: false,
        said,
        more,
        phase,
    };
    let begun = "HTTP/1.1 200 OK\r\nContent-Le";
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let with_length = "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n01234";
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n012";
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
        answering("in a header", begun, "ng-long-long", Phase::Head),
        answering("behind an interim response", hints, hints, Phase::Head),
        answering("in a body with a length", with_length, "x", Phase::Body),
        answering(
            UNTIL_CLOSE,
            "HTTP/1.1 200 OK\r\n\r\n01234",
            "x",
            Phase::Body,
        ),
        answering("in a chunk", chunk, "x", Phase::Body),
    ]
}

const UNTIL_CLOSE: &str = "in a body without";
/// A head that has no end.
const START: &str = "HTTP/1.1 200 OK\r\nX: y";

/// What a call must end in: an answer with status 200, or an error of one of these kinds.
#[derive(Clone, Debug)]
enum Expected {
    Answer,
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

fn expected(stage: &Stage, end: End) -> Expected {
    let begun = !stage.said.is_empty();
    let unread = stage.upload || stage.name == "accepted, nothing read";
    // RST, as reading or writing hears of it.
    let mut kinds = [Io::ConnectionReset, Io::BrokenPipe].map(Kind::Io).to_vec();
    let (mut phase, mut sent) = match begun {
        true => (stage.phase, Sent::Partial),
        false => (stage.phase, Sent::NoReplyByte),
    };
    match end {
        End::Reset => {}
        // The system may make an RST of it.
        End::Close if unread => kinds.push(Kind::Peer(PeerFault::Empty)),
        End::Close | End::HalfClose if stage.name == UNTIL_CLOSE => return Expected::Answer,
        End::Close | End::HalfClose if begun => kinds = vec![Kind::Peer(PeerFault::Truncated)],
        End::Close | End::HalfClose => kinds = vec![Kind::Peer(PeerFault::Empty)],
        End::Drip => {
            kinds = vec![Kind::Timeout(TimeLimit::Total)];
            phase = if begun { phase } else { Phase::Head };
            sent = Sent::Partial;
        }
    }
    Expected::Failure(kinds, phase, sent)
}

#[test]
fn whatever_happens_at_whatever_stage() {
    in_own_process(
        "blackbox::catalogue::whatever_happens_at_whatever_stage",
        || {
            for stage in stages() {
                for end in [End::Reset, End::Close, End::HalfClose, End::Drip] {
                    with_longer_limits(|limit| happens_within(limit, &stage, end));
                }
            }
        },
    );
}

fn happens_within(limit: Duration, stage: &Stage, end: End) -> bool {
    let gate = Gate::new();
    let said = match end {
        End::Drip if stage.said.is_empty() => START,
        _ => stage.said,
    };
    let script = stage.script.clone().send(said).wait(&gate);
    let mut row = Row {
        script: match end {
            End::Reset => script.reset(),
            End::Close => script.close(),
            End::HalfClose => script.half_close(),
            End::Drip => script.trickle(stage.more.repeat(20_000 / stage.more.len())),
        },
        config: config(),
        request: match stage.upload {
            true => Request::post("/", vec![b'x'; 16 << 20]),
            false => Request::get("/"),
        },
        expected: expected(stage, end),
        gate: Some(gate),
    };
    let began = Instant::now();
    if end == End::Drip {
        row.config.timeouts.total = Some(limit);
    }
    let happened = row.check(&format!("{}: {end:?}", stage.name));
    assert!(end != End::Drip || began.elapsed() >= limit);
    happened
}

/// One call whose connection has a fault, and what it must end in.
struct Row {
    /// Of the first connection; the second one serves as it should.
    script: Script,
    config: HostConfig,
    request: Request,
    expected: Expected,
    /// At which the server waits until what it has said is read.
    gate: Option<Gate>,
}

impl Row {
    /// False if the call ended before the server reached the gate.
    fn check(self, what: &str) -> bool {
        let descriptors = descriptors();
        let server = Server::play([self.script, connection().always(OK)]);
        let mut client = client_with(&server, self.config);
        client.submit(Call::new(self.request, Response::new()));
        let mut opened = false;
        let done = loop {
            let said = self.gate.as_ref().filter(|gate| gate.arrived() > 0);
            if let Some(done) = client.wait(Some(STEP)).expect("poll") {
                break done;
            }
            if let Some(gate) = said
                && !opened
            {
                gate.open();
                opened = true;
            }
        };
        if let Some(gate) = &self.gate {
            gate.open_for_all();
            if !opened {
                return false;
            }
        }
        match (&self.expected, &done.outcome) {
            (Expected::Answer, Ok(())) => assert_eq!(done.response.status(), 200, "{what}"),
            (Expected::Failure(kinds, phase, sent), Err(error)) => {
                let (found, at) = (Kind::of(error), (error.phase(), error.sent()));
                assert!(kinds.contains(&found), "{what}: {error:?}");
                assert_eq!(at, (*phase, *sent), "{what}: {error:?}");
                assert!(error.remote().is_some(), "{what}: {error:?}");
            }
            (expected, outcome) => panic!("{what}: {outcome:?} instead of {expected:?}"),
        }
        assert_eq!(client.counters().open, 0, "{what}");
        // The next call is not affected.
        let mut response = Response::new();
        client.get("/", &mut response).expect(what);
        assert_eq!((response.body(), server.accepted()), (&b"ok"[..], 2));
        assert_nothing_left(client, &server);
        drop(server);
        assert_descriptors(descriptors, what);
        true
    }
}

/// One turn of the client's loop.
const STEP: Duration = Duration::from_millis(1);

// ---- what servers say

/// Servers that go on without end. Each single answer is in the tables of `engine/src/proto/tests.rs`.
#[test]
fn whatever_servers_say() {
    in_own_process("blackbox::catalogue::whatever_servers_say", || {
        let (most, small) = (Limits::default().head_bytes, 100_000);
        for (first, flood, limit, phase) in [
            (
                "HTTP/1.1 200 OK\r\nX: ",
                "x",
                LimitExceeded::HeadBytes(most),
                Phase::Head,
            ),
            (
                "",
                "HTTP/1.1 102 Processing\r\n\r\n",
                LimitExceeded::InterimResponses(100),
                Phase::Head,
            ),
            (
                "HTTP/1.1 200 OK\r\n\r\n",
                "x",
                LimitExceeded::BodyBytes(small),
                Phase::Body,
            ),
        ] {
            let mut config = config();
            config.limits.body_bytes = Some(small);
            let script = connection().request().send(first);
            let row = Row {
                script: script.flood(flood.repeat(1000)),
                config,
                request: Request::get("/"),
                expected: Expected::Failure(vec![Kind::Limit(limit)], phase, Sent::Partial),
                gate: None,
            };
            assert!(row.check(&format!("{limit:?}")));
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
