//! How many connections there are, and how long they live: that the options reach the pool. What it does with them is in
//! `engine/src/policy/pool/tests.rs`, beside a model.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use courser::{Call, HostClient, HostConfig, LatePolicy, Request, Response, Timeouts, Upstream};
use tests::clients::{
    assert_nothing_left, client, client_with, config, drive_all, drive_until, unix_client,
};
use tests::script::{Behaviour, Gate, PATIENCE, Server, Transport, connection, eventually};

use super::{OK, response};

#[test]
fn p08b_a_connection_serves_no_more_than_its_requests() {
    let server = Server::every(connection().always(OK));
    let config = HostConfig {
        max_requests: NonZeroU64::new(3),
        ..config()
    };
    let mut client = client_with(&server, config);
    for _ in 0..7 {
        client.get("/", &mut Response::new()).unwrap();
    }
    assert_eq!(server.served_by(), [0, 0, 0, 1, 1, 1, 2]);
    assert_nothing_left(client, &server);
}

#[test]
fn p08d_the_server_s_keep_alive_timeout_is_honoured() {
    let hinted = "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1, max=5\r\nContent-Length: 0\r\n\r\n";
    let server = Server::every(connection().always(hinted));
    let config = HostConfig {
        idle_timeout: Duration::from_secs(3600),
        ..config()
    };
    let mut client = client_with(&server, config);
    client.get("/", &mut Response::new()).unwrap();
    drive_until(&mut client, "it has expired", |client, _| {
        client.counters().idle == 0
    });
    assert_nothing_left(client, &server);
}

#[test]
fn p15_the_same_over_a_unix_socket() {
    let server = echo(Transport::Unix);
    let client = unix_client(&server);
    one_response_serves_call_after_call(client, &server);
    let hosts: Vec<String> = server
        .requests()
        .iter()
        .flat_map(|r| r.header("Host"))
        .collect();
    assert!(hosts.iter().all(|host| host == "localhost"), "{hosts:?}");
}

#[test]
fn p15b_a_unix_upstream_can_be_told_its_host() {
    let server = echo(Transport::Unix);
    let upstream = Upstream::unix(server.path()).with_host("api.example:8080");
    let mut client = HostClient::new(upstream, config()).unwrap();
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.requests()[0].header("Host"), ["api.example:8080"]);
    assert_nothing_left(client, &server);
}

#[test]
fn late_answers_are_drained_and_counted_meanwhile() {
    let (server, gate) = late_answers();
    let mut config = late(LatePolicy::Drain { up_to: PATIENCE });
    config.max_connections = NonZeroUsize::MIN;
    let mut client = client_with(&server, config);
    let error = client.get("/late", &mut Response::new()).unwrap_err();
    assert!(error.is_timeout());
    let counters = client.counters();
    assert_eq!((counters.draining, counters.open), (1, 1));
    // The cap of one counts the draining connection: this call waits for it.
    client.submit(Call::new(Request::get("/next"), Response::new()).timeout(PATIENCE));
    drive_until(&mut client, "it waits", |client, _| {
        client.counters().waiting == 1
    });
    gate.open_for_all();
    let completions = drive_all(&mut client);
    assert_eq!(completions[0].response.body(), b"/next");
    assert_eq!(server.served_by(), [0, 0]);
    assert_nothing_left(client, &server);
}

#[test]
fn dropping_a_client_closes_everything_it_holds() {
    let gate = Gate::new();
    let server = Server::play([connection().always(OK), connection().request().wait(&gate)]);
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    client.submit(post(0));
    client.submit(post(1));
    eventually("both are asked", || {
        client.wait(Some(Duration::from_millis(1))).unwrap();
        server.requests().len() == 3
    });
    drop(client);
    gate.open_for_all();
    server.wait_all_ended();
}

fn late(late: LatePolicy) -> HostConfig {
    HostConfig {
        late,
        timeouts: Timeouts {
            // Long enough to be answered late, on a busy machine too.
            total: Some(Duration::from_secs(1)),
            ..Timeouts::default()
        },
        ..config()
    }
}

/// A server whose first answer on each connection waits at the gate; answers are the targets.
fn late_answers() -> (Server, Gate) {
    let gate = Gate::new();
    let server = Server::start(
        Transport::Tcp,
        Behaviour::Answer(Box::new({
            let gate = gate.clone();
            move |request| {
                if request.target() == "/late" {
                    gate.wait();
                }
                response(request.target())
            }
        })),
    );
    (server, gate)
}

fn echo(transport: Transport) -> Server {
    let answer = |request: &tests::script::Request| match request.body() {
        b"" => response(request.target()),
        body => response(body),
    };
    Server::start(transport, Behaviour::Answer(Box::new(answer)))
}

fn one_response_serves_call_after_call(mut client: HostClient, server: &Server) {
    let mut response = Response::new();
    for number in 0..100 {
        let target = format!("/get?{number}");
        client.get(&target, &mut response).unwrap();
        assert_eq!(response.body(), target.as_bytes());
    }
    for number in 0..100 {
        let body = format!("body {number}");
        let mut request = Request::post("/", body.clone());
        client.call(&mut request, &mut response).unwrap();
        assert_eq!(response.body(), body.as_bytes());
    }
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, server);
}

fn post(tag: u64) -> Call {
    Call::new(Request::post(format!("/{tag}"), "bar"), Response::new()).tag(tag)
}
