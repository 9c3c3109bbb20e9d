//! What the operating system refuses: local addresses, routes. Each is a clear error of the call concerned, and the
//! client goes on. Descriptors are in `scarce`.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use courser::{
    Call, ErrorKind, HostClient, HostConfig, Phase, Request, Response, Sent, Shared, SharedConfig,
    SocketHook, SocketOptions, Timeouts, Upstream,
};
use tests::clients::{assert_nothing_left, client_with, config, run};
use tests::script::{BlackHole, PATIENCE, SYN_SENT, Server, connection, sockets_to};

use super::OK;

#[test]
fn fault_36_a_local_address_that_cannot_be_used() {
    let server = Server::every(connection().always(OK));
    let config = HostConfig {
        socket: SocketOptions {
            // No machine has an address of TEST-NET-1; running out of ports fails in the same place.
            bind: Some("192.0.2.1".parse().unwrap()),
            ..SocketOptions::default()
        },
        ..config()
    };
    let mut client = client_with(&server, config);
    for completion in run(
        &mut client,
        (0..3).map(|tag| Call::new(Request::get("/"), Response::new()).tag(tag)),
    ) {
        let error = completion.outcome.unwrap_err();
        assert_eq!(
            (error.phase(), error.sent()),
            (Phase::Connect, Sent::Nothing)
        );
        match error.kind() {
            ErrorKind::Io(error) => assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(server.accepted(), 0);
    assert_nothing_left(client, &server);
}

#[test]
fn fault_36b_a_local_address_that_can_be_used() {
    let server = Server::every(connection().always(OK));
    let config = HostConfig {
        socket: SocketOptions {
            bind: Some("127.0.0.2".parse().unwrap()),
            ..SocketOptions::default()
        },
        ..config()
    };
    let mut client = client_with(&server, config);
    let report = client.get("/", &mut Response::new()).unwrap();
    assert!(
        report
            .local()
            .unwrap()
            .to_string()
            .starts_with("127.0.0.2:")
    );
    assert_nothing_left(client, &server);
}

fn polling_busily(limit: Duration) -> HostConfig {
    HostConfig {
        socket: SocketOptions {
            busy_poll: Some(limit),
            ..SocketOptions::default()
        },
        ..config()
    }
}

/// The kernel counts how often this thread gave its processor away.
#[cfg(target_os = "linux")]
fn sleeps() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_polls_busily_does_not_sleep() {
    let server = Server::every(connection().always(OK));
    let mut client = client_with(&server, polling_busily(PATIENCE));
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    let before = sleeps();
    for _ in 0..100 {
        client.get("/", &mut response).unwrap();
    }
    let slept = sleeps() - before;
    assert!(slept < 50, "slept {slept} times in 100 calls");
    assert_nothing_left(client, &server);
}

#[test]
fn a_client_that_polls_busily_keeps_its_limits_and_wakes() {
    for limit in [Duration::ZERO, Duration::from_micros(1), PATIENCE] {
        let server = Server::play([connection().request().send(OK).request()]);
        let mut client = client_with(&server, polling_busily(limit));
        client.get("/", &mut Response::new()).unwrap();
        let silent = Call::new(Request::get("/"), Response::new());
        let done = run(&mut client, [silent.timeout(Duration::from_millis(30))]).remove(0);
        assert!(done.outcome.unwrap_err().is_timeout());
        assert_nothing_left(client, &server);
        // Calls from another thread end the wait of the driving thread.
        let server = Server::every(connection().always(OK));
        let upstream = Upstream::tcp([server.address()]);
        let build = move |_| HostClient::new(upstream.clone(), polling_busily(limit));
        let shared = Shared::spawn(SharedConfig::default(), build).unwrap();
        for _ in 0..3 {
            let mut response = Response::new();
            shared.get("/", &mut response).unwrap();
            assert_eq!(response.status(), 200);
        }
        drop(shared);
        server.wait_all_ended();
    }
}

/// A hook that opens connections may give any descriptor: what is no connection is an error, in time.
#[test]
fn a_hook_that_gives_no_connection_fails_the_call() {
    let others: [fn() -> io::Result<OwnedFd>; 4] = [
        || Ok(File::open("/dev/null")?.into()),
        || Ok(File::open("/proc/self/stat")?.into()),
        || Ok(UdpSocket::bind("127.0.0.1:0")?.into()),
        || Ok(TcpListener::bind("127.0.0.1:0")?.into()),
    ];
    for (number, open) in others.into_iter().enumerate() {
        let hooked = HostConfig {
            socket: SocketOptions {
                hook: Some(SocketHook::connect(move |_| open())),
                ..SocketOptions::default()
            },
            timeouts: Timeouts {
                connect: Some(Duration::from_millis(50)),
                first_byte: Some(Duration::from_millis(50)),
                ..Timeouts::default()
            },
            ..config()
        };
        let upstream = Upstream::tcp(["192.0.2.1:80".parse().unwrap()]);
        let mut client = HostClient::new(upstream, hooked).unwrap();
        for _ in 0..2 {
            let error = client.get("/", &mut Response::new()).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Io(_) | ErrorKind::Timeout(_)),
                "{number}: {error:?}"
            );
            assert_eq!(error.sent(), Sent::Nothing, "{number}: {error:?}");
        }
        assert_eq!(client.counters().open, 0, "{number}");
    }
}

#[test]
fn fault_37_no_route() {
    // TCP to a multicast address is refused by the system at once.
    let address: SocketAddr = "224.0.0.1:80".parse().unwrap();
    let mut client = HostClient::new(Upstream::tcp([address]), config()).unwrap();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::Connect, Sent::Nothing)
    );
    match error.kind() {
        ErrorKind::Io(error) => assert_eq!(error.kind(), io::ErrorKind::NetworkUnreachable),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.counters().open, 0);
}

#[test]
fn addresses_that_lose_a_race_are_closed() {
    let (hole, server) = (
        BlackHole::new().unwrap(),
        Server::every(connection().always(OK)),
    );
    let delay = Duration::from_millis(30);
    let config = HostConfig {
        attempt_delay: delay,
        random_start: false,
        ..config()
    };
    let upstream = Upstream::tcp([hole.address(), server.address()]);
    let mut client = HostClient::new(upstream, config).unwrap();
    let report = client.get("/", &mut Response::new()).unwrap();
    assert!(report.timings().connect.unwrap() >= delay);
    let counters = client.counters();
    assert_eq!(
        (counters.open, counters.idle, counters.connecting),
        (1, 1, 0)
    );
    // No socket of this process waits for the hole any more.
    assert_eq!(sockets_to(hole.address(), SYN_SENT), 0);
    assert_nothing_left(client, &server);
}
