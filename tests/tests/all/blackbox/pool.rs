//! How many connections there are, who gets one, and how long they live.

use std::num::{NonZeroU64, NonZeroUsize};
use std::thread;
use std::time::Duration;

use courser::{
    Call, ErrorKind, HostClient, HostConfig, LatePolicy, LimitExceeded, Phase, Request, Response,
    ReuseOrder, TimeLimit, Timeouts, Upstream, WaitPolicy,
};
use tests::clients::{
    assert_nothing_left, client, client_with, config, drive_all, drive_until, run, unix_client,
};
use tests::script::{
    Behaviour, BlackHole, Gate, PATIENCE, Server, Transport, connection, eventually,
};

use super::{OK, response};

#[test]
fn p01_closing_idle_connections_empties_the_pool() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(client.counters().idle, 1);
    assert_eq!(client.close_idle(), 1);
    assert_eq!(client.counters().idle, 0);
    server.wait_ended(1);
    assert_nothing_left(client, &server);
}

#[test]
fn p02_counters_follow_the_connections() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let counters = client.counters();
    assert_eq!((counters.open, counters.idle), (0, 0));
    client.get("/", &mut Response::new()).unwrap();
    let counters = client.counters();
    assert_eq!((counters.open, counters.idle), (1, 1));
    client.close_idle();
    assert_eq!(client.counters().open, 0);
    assert_nothing_left(client, &server);
}

#[test]
fn p03_calls_in_flight_are_counted() {
    let gate = Gate::new();
    let server = Server::every(connection().request().wait(&gate).send(OK));
    let mut client = client(&server);
    assert_eq!(client.in_flight(), 0);
    for _ in 0..10 {
        client.submit(Call::new(Request::get("/"), Response::new()));
    }
    drive_until(&mut client, "all wait for an answer", |_, _| {
        gate.arrived() == 10
    });
    assert_eq!(client.in_flight(), 10);
    assert_eq!(client.counters().busy, 10);
    gate.open_for_all();
    let completions = drive_all(&mut client);
    assert!(completions.iter().all(|c| c.outcome.is_ok()));
    assert_nothing_left(client, &server);
}

#[test]
fn a_call_whose_own_connection_is_slow_takes_one_that_becomes_free() {
    let gate = Gate::new();
    let server = Server::every(connection().request().wait(&gate).send(OK).always(OK));
    let hole = BlackHole::new().unwrap();
    let upstream = Upstream::tcp([server.address(), hole.address()]);
    let mut client = HostClient::new(upstream, config()).unwrap();
    client.submit(post(0));
    drive_until(&mut client, "one is asked", |_, _| gate.arrived() == 1);
    // The turn of the address that never answers.
    client.submit(post(1));
    drive_until(&mut client, "it connects", |client, _| {
        client.counters().connecting == 1
    });
    gate.open();
    let completions = drive_all(&mut client);
    assert!(completions.iter().all(|c| c.outcome.is_ok()));
    assert_eq!(server.served_by(), [0, 0]);
}

#[test]
fn cancelling_the_only_call_that_waits_for_a_connection_ends_the_attempt() {
    let hole = BlackHole::new().unwrap();
    let mut client = HostClient::new(Upstream::tcp([hole.address()]), config()).unwrap();
    let id = client.submit(post(0));
    drive_until(&mut client, "it connects", |client, _| {
        client.counters().connecting == 1
    });
    assert!(client.cancel(id));
    let error = drive_all(&mut client).remove(0).outcome.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error:?}");
    assert_eq!(client.counters().open, 0);
}

#[test]
fn the_queue_has_a_limit() {
    let gate = Gate::new();
    let server = Server::every(connection().request().wait(&gate).send(OK).always(OK));
    let config = HostConfig {
        max_waiting: 2,
        ..capped(1)
    };
    let mut client = client_with(&server, config);
    for tag in 0..5 {
        client.submit(post(tag));
    }
    let refused = drive_until(&mut client, "two are refused", |_, done| done.len() == 2);
    for completion in refused {
        let error = completion.outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Limit(LimitExceeded::Waiting(2))),
            "{error:?}"
        );
    }
    gate.open();
    assert_eq!(drive_all(&mut client).len(), 3);
    assert_nothing_left(client, &server);
}

#[test]
fn p04_at_the_cap_fail_fast_refuses_at_once() {
    let gate = Gate::new();
    let script = connection().request().wait(&gate).send(OK).always(OK);
    let server = Server::every(script);
    let mut client = client_with(
        &server,
        HostConfig {
            wait: WaitPolicy::FailFast,
            ..capped(1)
        },
    );
    for tag in 0..5 {
        client.submit(post(tag));
    }
    let mut refused = drive_until(&mut client, "four are refused", |_, done| done.len() == 4);
    for completion in &refused {
        let error = completion.outcome.as_ref().unwrap_err();
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::Limit(LimitExceeded::Connections(1))),
            "{error:?}"
        );
    }
    gate.open();
    let mut served = drive_all(&mut client);
    // Calls that were refused are tried again once the connection is free.
    while let Some(completion) = refused.pop() {
        served.extend(run(
            &mut client,
            [Call::new(completion.request, completion.response).tag(completion.tag)],
        ));
    }
    assert_eq!(served.len(), 5);
    assert!(served.iter().all(|c| c.response.body() == b"ok"));
    assert!(server.requests().iter().all(|r| r.body() == b"bar"));
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn p05_at_the_cap_calls_wait_in_line_for_the_one_connection() {
    let server = Server::every(connection().always(OK));
    let mut client = client_with(&server, capped(1));
    let completions = run(&mut client, (0..5).map(post));
    assert!(completions.iter().all(|c| c.response.body() == b"ok"));
    assert_eq!(server.accepted(), 1);
    let order: Vec<String> = server.requests().iter().map(|r| r.target()).collect();
    assert_eq!(order, ["/0", "/1", "/2", "/3", "/4"]);
    assert!(server.requests().iter().all(|r| r.body() == b"bar"));
    assert_eq!(client.counters().waiting, 0);
    assert_nothing_left(client, &server);
}

#[test]
fn p06_the_queue_limit_ends_the_wait() {
    let gate = Gate::new();
    let server = Server::every(connection().request().wait(&gate).send(OK));
    let mut config = capped(1);
    // The first call does not wait in the queue for so long.
    config.timeouts.queue = Some(Duration::from_millis(500));
    let mut client = client_with(&server, config);
    for tag in 0..5 {
        client.submit(post(tag));
    }
    let expired = drive_until(&mut client, "four have waited enough", |_, done| {
        done.len() == 4
    });
    for completion in &expired {
        let error = completion.outcome.as_ref().unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Queue)),
            "{error:?}"
        );
        assert_eq!(error.phase(), Phase::Queue);
    }
    assert_eq!(client.counters().waiting, 0);
    gate.open();
    let served = drive_all(&mut client);
    assert_eq!(served[0].tag, 0);
    assert_eq!(served[0].response.body(), b"ok");
    assert_nothing_left(client, &server);
}

#[test]
fn p07_a_deadline_that_comes_before_the_queue_limit_is_the_one_reported() {
    let gate = Gate::new();
    let server = Server::every(connection().request().wait(&gate).send(OK));
    let mut config = capped(1);
    config.timeouts.queue = Some(PATIENCE);
    let mut client = client_with(&server, config);
    client.submit(post(0));
    for tag in 1..5 {
        client.submit(post(tag).timeout(Duration::from_millis(10)));
    }
    let expired = drive_until(&mut client, "four are late", |_, done| done.len() == 4);
    for completion in expired {
        let error = completion.outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
            "{error:?}"
        );
        assert_eq!(error.phase(), Phase::Queue);
    }
    gate.open();
    drive_all(&mut client).remove(0).outcome.unwrap();
    assert_nothing_left(client, &server);
}

#[test]
fn p08_a_connection_over_its_age_serves_no_further_call() {
    let server = Server::every(connection().always(OK));
    let age = Duration::from_millis(10);
    let config = HostConfig {
        max_age: Some(age),
        ..config()
    };
    let mut client = client_with(&server, config);
    let mut response = Response::new();
    for _ in 0..5 {
        client.get("/", &mut response).unwrap();
        assert_eq!(response.body(), b"ok");
        // Twice the age: older than any jitter allows.
        thread::sleep(age * 2);
    }
    assert_eq!(server.served_by(), [0, 1, 2, 3, 4]);
    assert_nothing_left(client, &server);
}

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
fn p08c_idle_connections_expire() {
    let server = Server::every(connection().always(OK));
    let config = HostConfig {
        idle_timeout: Duration::from_millis(10),
        ..config()
    };
    let mut client = client_with(&server, config);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(client.counters().idle, 1);
    drive_until(&mut client, "it has expired", |client, _| {
        client.counters().idle == 0
    });
    server.wait_ended(1);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
}

#[test]
fn p08e_what_expired_unwatched_is_not_used() {
    let server = Server::every(connection().always(OK));
    let idle_timeout = Duration::from_millis(10);
    let config = HostConfig {
        idle_timeout,
        ..config()
    };
    let mut client = client_with(&server, config);
    for _ in 0..3 {
        client
            .call(&mut Request::post("/", "x"), &mut Response::new())
            .unwrap();
        // The client is not driven meanwhile.
        thread::sleep(idle_timeout * 2);
    }
    assert_eq!(server.served_by(), [0, 1, 2]);
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
fn p09_several_addresses_take_turns() {
    let servers: Vec<Server> = (0..3)
        .map(|_| Server::every(connection().request().close()))
        .collect();
    let upstream = Upstream::tcp(servers.iter().map(Server::address));
    let mut client = HostClient::new(upstream, config()).unwrap();
    for _ in 0..9 {
        client.get("/", &mut Response::new()).unwrap_err();
    }
    for server in &servers {
        assert_eq!(server.accepted(), 3);
    }
}

#[test]
fn p13_many_calls_at_once_never_cross() {
    let server = Server::answer(|request| match request.body() {
        b"" => response(request.target()),
        body => response(body),
    });
    let mut client = client_with(&server, capped(10));
    let gets = (0..300)
        .map(|tag| Call::new(Request::get(format!("/get?{tag}")), Response::new()).tag(tag));
    let posts = (300..400)
        .map(|tag| Call::new(Request::post("/", format!("post {tag}")), Response::new()).tag(tag));
    let completions = run(&mut client, gets.chain(posts));
    assert_eq!(completions.len(), 400);
    for completion in completions {
        completion.outcome.unwrap();
        let tag = completion.tag;
        let expected = if tag < 300 {
            format!("/get?{tag}")
        } else {
            format!("post {tag}")
        };
        assert_eq!(completion.response.body(), expected.as_bytes());
    }
    assert!(server.accepted() <= 10);
    assert_nothing_left(client, &server);
}

#[test]
fn p14_one_response_serves_call_after_call() {
    let server = echo(Transport::Tcp);
    one_response_serves_call_after_call(client(&server), &server);
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
fn lifo_takes_the_connection_used_last_and_fifo_the_one_used_first() {
    for (reuse, expected) in [(ReuseOrder::Lifo, [1, 1]), (ReuseOrder::Fifo, [0, 1])] {
        // The gates make the answers, and so the returns to the pool, come in the order of the connections.
        let gates = [Gate::new(), Gate::new()];
        let server = Server::play(
            gates
                .iter()
                .map(|gate| connection().request().wait(gate).send(OK).always(OK)),
        );
        let mut client = client_with(&server, HostConfig { reuse, ..config() });
        client.submit(Call::new(Request::get("/"), Response::new()));
        client.submit(Call::new(Request::get("/"), Response::new()));
        drive_until(&mut client, "both are asked", |_, _| {
            gates.iter().all(|gate| gate.arrived() == 1)
        });
        for gate in &gates {
            gate.open();
            drive_until(&mut client, "one is answered", |_, done| done.len() == 1);
        }
        for _ in 0..2 {
            client.get("/", &mut Response::new()).unwrap();
        }
        assert_eq!(server.served_by()[2..], expected, "{reuse:?}");
        assert_nothing_left(client, &server);
    }
}

#[test]
fn a_waiter_takes_what_is_free_first() {
    // Both connections are busy; the third call waits, and the first answer frees the connection for it.
    let gates = [Gate::new(), Gate::new()];
    let server = Server::play(
        gates
            .iter()
            .map(|gate| connection().request().wait(gate).send(OK).always(OK)),
    );
    let mut client = client_with(&server, capped(2));
    for tag in 0..3 {
        client.submit(post(tag));
    }
    drive_until(&mut client, "two are asked", |_, _| {
        server.requests().len() == 2
    });
    assert_eq!(client.counters().waiting, 1);
    gates[1].open();
    let done = drive_until(&mut client, "two are answered", |_, done| done.len() == 2);
    assert_eq!(server.served_by()[2], 1);
    assert_eq!(done[1].tag, 2);
    gates[0].open();
    drive_all(&mut client);
    assert_nothing_left(client, &server);
}

#[test]
fn a_freed_slot_wakes_the_oldest_waiter_when_its_connection_dies() {
    // The answer says close: the slot, not the connection, goes to the next in line. No wake-up may be lost.
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::every(connection().request().send(closing).close());
    let mut client = client_with(&server, capped(2));
    let completions = run(&mut client, (0..50).map(post));
    assert!(completions.iter().all(|c| c.outcome.is_ok()));
    assert_eq!(server.accepted(), 50);
    assert_nothing_left(client, &server);
}

#[test]
fn cancelling_ends_a_call_in_any_phase() {
    let gate = Gate::new();
    let server = Server::every(connection().request().wait(&gate).send(OK).always(OK));
    let mut client = client_with(&server, capped(1));
    let busy = client.submit(post(0));
    let waiting = client.submit(post(1));
    let last = client.submit(post(2));
    drive_until(&mut client, "one is asked", |_, _| gate.arrived() == 1);
    assert!(client.cancel(waiting));
    assert!(client.cancel(busy));
    gate.open_for_all();
    let completions = drive_all(&mut client);
    let outcome = |id| {
        let completion = completions.iter().find(|c| c.id == id);
        &completion.expect("a completion for every call").outcome
    };
    for id in [busy, waiting] {
        let error = outcome(id).as_ref().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error:?}");
        assert!(!client.cancel(id), "twice");
    }
    assert!(outcome(last).is_ok());
    assert_eq!(server.lines(), ["POST /0 HTTP/1.1", "POST /2 HTTP/1.1"]);
    assert_nothing_left(client, &server);
}

#[test]
fn late_answers_close_the_connection() {
    let (server, gate) = late_answers();
    let mut config = late(LatePolicy::Close);
    config.max_connections = NonZeroUsize::MIN;
    let mut client = client_with(&server, config);
    let error = client.get("/late", &mut Response::new()).unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(client.counters().open, 0);
    gate.open_for_all();
    let mut response = Response::new();
    let call = Call::new(Request::get("/next"), response).timeout(PATIENCE);
    response = run(&mut client, [call]).remove(0).response;
    assert_eq!(response.body(), b"/next");
    assert_eq!(server.served_by(), [0, 1]);
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
fn draining_has_an_end() {
    let (server, gate) = late_answers();
    let mut client = client_with(
        &server,
        late(LatePolicy::Drain {
            up_to: Duration::from_millis(10),
        }),
    );
    client.get("/late", &mut Response::new()).unwrap_err();
    drive_until(&mut client, "it is given up", |client, _| {
        client.counters().open == 0
    });
    gate.open_for_all();
    server.wait_ended(1);
    assert_nothing_left(client, &server);
}

#[test]
fn warm_connections_outlive_the_idle_limit() {
    let gate = Gate::new();
    let server = Server::every(connection().request().wait(&gate).send(OK).always(OK));
    let config = HostConfig {
        idle_timeout: Duration::from_millis(10),
        min_idle: 2,
        ..config()
    };
    let mut client = client_with(&server, config);
    for tag in 0..5 {
        client.submit(post(tag));
    }
    drive_until(&mut client, "all are asked", |_, _| gate.arrived() == 5);
    gate.open_for_all();
    drive_all(&mut client);
    assert!(client.counters().opened >= 5);
    drive_until(&mut client, "the rest has expired", |client, _| {
        client.counters().idle <= 2
    });
    assert_eq!(client.counters().idle, 2);
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

fn capped(connections: usize) -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::new(connections).unwrap(),
        wait: WaitPolicy::Wait,
        ..config()
    }
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
