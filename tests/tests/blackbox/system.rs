//! What the operating system refuses: descriptors, local addresses, routes. Each is a clear error of the call
//! concerned, and the client goes on.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::process::Command;

use courser::{
    Call, ErrorKind, HostClient, HostConfig, Phase, Request, Response, Sent, SocketOptions,
    Upstream,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tests::alone::descriptors;
use tests::clients::{assert_nothing_left, client, client_with, config, run};
use tests::script::{Server, connection};

use crate::OK;

#[test]
fn fault_35_running_out_of_descriptors() {
    let server = Server::every(connection().always(OK));
    // The limit is per process, so the client gets a process of its own: this very program, told to run one test.
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "system::client_with_few_descriptors",
            "--ignored",
        ])
        .env(ADDRESS_VARIABLE, server.address().to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "the child process of fault_35"]
fn client_with_few_descriptors() {
    let Ok(address) = env::var(ADDRESS_VARIABLE) else {
        return;
    };
    let address: SocketAddr = address.parse().unwrap();
    let mut client = HostClient::new(Upstream::tcp([address]), config()).unwrap();
    let open = descriptors() as u64;
    let limit = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(open + 8),
        ..limit
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let call = |tag| Call::new(Request::get("/"), Response::new()).tag(tag);
    let completions = run(&mut client, (0..64).map(call));
    assert_eq!(completions.len(), 64);
    let (served, refused): (Vec<_>, Vec<_>) =
        completions.into_iter().partition(|c| c.outcome.is_ok());
    assert!(served.len() >= 8, "{} served", served.len());
    for completion in refused {
        let error = completion.outcome.unwrap_err();
        assert_eq!(
            (error.phase(), error.sent()),
            (Phase::Connect, Sent::Nothing)
        );
        match error.kind() {
            ErrorKind::Io(error) => assert_eq!(error.raw_os_error(), Some(EMFILE)),
            other => panic!("{other:?}"),
        }
    }
    client.close_idle();
    assert_eq!(
        descriptors(),
        open as usize,
        "nothing is left of those that failed"
    );
    // With descriptors again, it is as if nothing had been.
    setrlimit(Resource::Nofile, limit).unwrap();
    let completions = run(&mut client, (0..64).map(call));
    assert!(completions.iter().all(|c| c.outcome.is_ok()));
    let counters = client.counters();
    assert_eq!(
        (counters.busy, counters.connecting, counters.waiting),
        (0, 0, 0)
    );
}

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
fn a_dead_address_does_not_stop_the_others() {
    let server = Server::every(connection().always(OK));
    let dead: SocketAddr = "224.0.0.1:80".parse().unwrap();
    let upstream = Upstream::tcp([dead, server.address()]);
    let mut client = HostClient::new(upstream, config()).unwrap();
    for _ in 0..4 {
        client
            .call(&mut Request::post("/", "x"), &mut Response::new())
            .unwrap();
    }
    assert_nothing_left(client, &server);
}

#[test]
fn idle_connections_and_calls_leave_no_descriptor_behind() {
    let server = Server::every(connection().request().close());
    let mut client = client(&server);
    for _ in 0..200 {
        client.get("/", &mut Response::new()).unwrap_err();
    }
    let counters = client.counters();
    assert_eq!((counters.open, counters.opened), (0, 200));
    assert_nothing_left(client, &server);
}

const ADDRESS_VARIABLE: &str = "COURSER_TEST_SERVER";
const EMFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();
