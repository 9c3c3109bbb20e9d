//! What the operating system refuses: local addresses, routes. Each is a clear error of the call concerned, and the
//! client goes on. Descriptors are in `scarce`.

use std::io;
use std::net::SocketAddr;

use courser::{
    Call, ErrorKind, HostClient, HostConfig, Phase, Request, Response, Sent, SocketOptions,
    Upstream,
};
use tests::clients::{assert_nothing_left, client, client_with, config, run};
use tests::script::{Server, connection};

use crate::OK;

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
