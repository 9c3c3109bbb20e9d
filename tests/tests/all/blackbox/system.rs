//! What the operating system does not sleep for, and what is no connection. Descriptors are in `scarce`, and the options
//! of sockets in `engine/src/net/os.rs`.

use std::fs::File;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use courser::{
    Call, ErrorKind, HostClient, HostConfig, Request, Response, Sent, Shared, SharedConfig,
    SocketHook, SocketOptions, Timeouts, Upstream,
};
use tests::clients::{assert_none_left, client_with, config, run};
use tests::script::{PATIENCE, Server, connection};

use super::OK;

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
    assert_none_left(client, [&server]);
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
        assert_none_left(client, [&server]);
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
            assert_kind!(error, ErrorKind::Io(_) | ErrorKind::Timeout(_));
            assert_eq!(error.sent(), Sent::Nothing, "{number}: {error:?}");
        }
        assert_eq!(client.counters().open, 0, "{number}");
    }
}
