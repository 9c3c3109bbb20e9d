//! One deadline over everything, sub-limits that name their phase, and retries by how far a call got.

use std::io;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser::{
    Call, Completion, ErrorKind, FailedAttempt, HostClient, HostConfig, HttpClient, Misuse,
    PeerFault, Phase, PipelineClient, PipelineConfig, Request, Response, Retry, Sent, Shared,
    SharedConfig, TimeLimit, Timeouts, Upstream,
};
use tests::clients::{
    any_client, any_config, assert_nothing_left, client, client_with, config, drive_all,
    drive_until, run, with_longer_limits,
};
use tests::script::{BlackHole, Gate, PATIENCE, Server, connection, refused};

use super::{OK, response};

#[test]
fn t01_a_deadline_in_the_past_causes_no_traffic() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let call = || Call::new(Request::get("/"), Response::new());
    let past = call().deadline(Instant::now() - Duration::from_secs(1));
    for completion in run(&mut client, [past, call().timeout(Duration::ZERO)]) {
        let error = completion.outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
            "{error:?}"
        );
        assert_eq!(error.sent(), Sent::Nothing);
        assert_eq!(completion.response.status(), 0);
    }
    assert_eq!(client.counters().opened, 0);
    assert_eq!(server.accepted(), 0);
    assert_nothing_left(client, &server);
}

#[test]
fn t02_the_deadline_covers_the_retry() {
    with_longer_limits(|limit| {
        let gate = Gate::new();
        let server = Server::play([
            connection().request().send(OK).request().close(),
            connection().request().wait(&gate),
        ]);
        let mut client = client(&server);
        client.get("/", &mut Response::new()).unwrap();
        let started = Instant::now();
        let call = Call::new(Request::get("/"), Response::new()).timeout(limit);
        let error = run(&mut client, [call]).remove(0).outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
            "{error:?}"
        );
        assert!(started.elapsed() >= limit);
        let retried = gate.arrived() == 1;
        gate.open();
        assert_nothing_left(client, &server);
        retried && error.phase() == Phase::FirstByte
    });
}

#[test]
fn t03c_the_limit_between_bytes_is_for_gaps_not_for_the_whole() {
    with_longer_limits(|limit| {
        let gate = Gate::new();
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n";
        let script = (0..12).fold(connection().request().send(head), |script, _| {
            script.wait(&gate).send("x")
        });
        let server = Server::play([script]);
        let mut config = config();
        config.timeouts.between_bytes = Some(limit);
        let mut client = client_with(&server, config);
        client.submit(Call::new(Request::get("/"), Response::new()));
        let started = Instant::now();
        // 12 bytes, one every eighth of the limit: slower in all than the limit, never silent for as long.
        let mut opened = 0;
        let mut completions = drive_until(&mut client, "all bytes are sent", |_, done| {
            if opened < 12 && started.elapsed() > limit / 8 * opened {
                gate.open();
                opened += 1;
            }
            !done.is_empty()
        });
        let error = completions.remove(0).outcome.unwrap_err();
        assert!(started.elapsed() >= limit);
        assert!(
            matches!(error.kind(), ErrorKind::Timeout(TimeLimit::BetweenBytes)),
            "{error:?}"
        );
        gate.open_for_all();
        assert_nothing_left(client, &server);
        opened == 12 && error.phase() == Phase::Body
    });
}

#[test]
fn t04_calls_with_time_enough_are_not_disturbed_by_it() {
    let server = Server::answer(|request| response(request.target()));
    let mut client = client(&server);
    let call = |tag: u64| {
        Call::new(Request::get(format!("/{tag}")), Response::new())
            .tag(tag)
            .timeout(PATIENCE)
    };
    for tag in 0..100 {
        let completion = run(&mut client, [call(tag)]).remove(0);
        assert_eq!(completion.response.body(), format!("/{tag}").as_bytes());
    }
    for completion in run(&mut client, (0..100).map(call)) {
        completion.outcome.unwrap();
        let body = format!("/{}", completion.tag);
        assert_eq!(completion.response.body(), body.as_bytes());
    }
    assert_nothing_left(client, &server);
}

#[test]
fn t05_every_error_of_a_blocked_server_is_a_timeout() {
    let server = Server::every(connection().request());
    let mut client = client(&server);
    let call = |tag: u64| {
        Call::new(Request::get("/"), Response::new())
            .tag(tag)
            .timeout(Duration::from_millis(1))
    };
    let mut completions = Vec::new();
    for tag in 0..100 {
        completions.extend(run(&mut client, [call(tag)]));
    }
    completions.extend(run(&mut client, (0..100).map(call)));
    assert_eq!(completions.len(), 200);
    for completion in completions {
        assert!(completion.outcome.unwrap_err().is_timeout());
        assert_eq!(completion.response.status(), 0);
    }
    assert_nothing_left(client, &server);
}

#[test]
fn t07_with_a_hook_failures_on_fresh_connections_are_repeated_too() {
    let faults = [
        connection().request().send("invalid response"),
        connection().request().close(),
        connection().request().reset(),
        connection().always("HTTP/1.1 345 OK\r\nContent-Length: 7\r\n\r\n0123456"),
    ];
    let idempotent = |failed: &FailedAttempt<'_>| failed.request.is_idempotent();
    for (method, attempts) in [("GET", 4), ("POST", 1)] {
        let server = Server::play(faults.clone());
        let mut client = client_with(&server, hooked(idempotent));
        let mut response = Response::new();
        let outcome = client.call(&mut Request::new(method, "/"), &mut response);
        if method == "GET" {
            assert_eq!(outcome.unwrap().attempts(), attempts);
            assert_eq!((response.status(), response.body()), (345, &b"0123456"[..]));
        } else {
            outcome.unwrap_err();
        }
        assert_eq!(server.accepted(), attempts as usize);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn t08_the_hook_decides_call_by_call() {
    for (target, attempts) in [("/again", 2), ("/never", 1)] {
        let server = Server::play([connection().request().close(), connection().always(OK)]);
        let again = |failed: &FailedAttempt<'_>| failed.request.target() == "/again";
        let mut client = client_with(&server, hooked(again));
        let mut request = Request::post(target, "x");
        let outcome = client.call(&mut request, &mut Response::new());
        assert_eq!(outcome.is_ok(), attempts == 2, "{outcome:?}");
        assert_eq!(server.lines().len(), attempts);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn t09b_no_hook_makes_a_used_up_body_stream_go_out_again() {
    let server = Server::play([connection().request().close(), connection().always(OK)]);
    let mut client = client_with(&server, hooked(|_| true));
    let mut request = Request::new("PUT", "/");
    request.body_stream(io::Cursor::new("once"), None);
    client.call(&mut request, &mut Response::new()).unwrap_err();
    assert_eq!(server.lines().len(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn t10_the_hook_sees_how_far_the_attempt_got_and_with_whom() {
    let server = Server::play([
        connection().request().send(OK).request().send("H").close(),
        connection().request().send(OK),
    ]);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let config = hooked({
        let seen = Arc::clone(&seen);
        move |failed| {
            seen.lock().unwrap().push(format!(
                "{} {:?} {:?} reused={} {}",
                failed.attempt,
                failed.error.phase(),
                failed.error.sent(),
                failed.reused,
                failed
                    .error
                    .remote()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ));
            failed.attempt < 2
        }
    });
    let mut client = client_with(&server, config);
    client.get("/", &mut Response::new()).unwrap();
    client.get("/", &mut Response::new()).unwrap();
    let expected = format!("1 Head Partial reused=true {}", server.address());
    assert_eq!(*seen.lock().unwrap(), [expected]);
    assert_nothing_left(client, &server);
}

#[test]
fn t10b_attempts_have_an_end_whatever_the_hook_says() {
    let server = Server::every(connection().request().close());
    let mut config = hooked(|_| true);
    config.retry.max_attempts = NonZeroU32::new(3).unwrap();
    let mut client = client_with(&server, config);
    client.get("/", &mut Response::new()).unwrap_err();
    assert_eq!(server.lines().len(), 3);
    assert_nothing_left(client, &server);
}

#[test]
fn t07a_garbage_is_not_retried() {
    let server = Server::play([
        connection().request().send("invalid response"),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Peer(PeerFault::BadStatusLine)),
        "{error:?}"
    );
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn t07b_a_fresh_connection_that_dies_unanswered_is_not_retried_by_default() {
    for method in ["GET", "POST"] {
        let server = Server::play([connection().request().close(), connection().always(OK)]);
        let mut client = client(&server);
        let error = client
            .call(&mut Request::new(method, "/"), &mut Response::new())
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Peer(PeerFault::Empty)),
            "{error:?}"
        );
        assert_eq!(error.sent(), Sent::NoReplyByte);
        assert_eq!(
            error.remote().unwrap().to_string(),
            server.address().to_string()
        );
        assert_eq!(server.lines().len(), 1);
        assert_nothing_left(client, &server);
    }
}

#[test]
fn t07c_a_reused_connection_that_dies_unanswered_is_retried_for_idempotent_methods() {
    let endings = [
        connection().request().send(OK).request().close(),
        connection().request().send(OK).request().reset(),
    ];
    for ending in endings {
        for (method, retried) in [
            ("GET", true),
            ("HEAD", true),
            ("PUT", true),
            ("DELETE", true),
            ("OPTIONS", true),
            ("TRACE", true),
            ("POST", false),
            ("PATCH", false),
        ] {
            let answer = if method == "HEAD" {
                "HTTP/1.1 200 OK\r\n\r\n"
            } else {
                OK
            };
            let server = Server::play([ending.clone(), connection().always(answer)]);
            let mut client = client(&server);
            client.get("/first", &mut Response::new()).unwrap();
            let outcome = client.call(&mut Request::new(method, "/second"), &mut Response::new());
            let asked = server.lines().len() - 1;
            if retried {
                let report = outcome.unwrap();
                assert_eq!((report.attempts(), asked), (2, 2), "{method}");
                assert!(!report.reused(), "{method}");
                assert_eq!(server.served_by(), [0, 0, 1], "{method}");
            } else {
                let error = outcome.unwrap_err();
                assert_eq!((error.sent(), asked), (Sent::NoReplyByte, 1), "{method}");
            }
            assert_nothing_left(client, &server);
        }
    }
}

#[test]
fn t07d_the_retry_goes_to_a_fresh_connection_even_if_others_idle() {
    let gate = Gate::new();
    let dying = connection()
        .request()
        .wait(&gate)
        .send(OK)
        .request()
        .close();
    let mut scripts = vec![dying; 10];
    scripts.push(connection().always(OK));
    let server = Server::play(scripts);
    let mut client = client(&server);
    for _ in 0..10 {
        client.submit(Call::new(Request::get("/"), Response::new()));
    }
    drive_until(&mut client, "all are asked", |_, _| gate.arrived() == 10);
    gate.open_for_all();
    drive_all(&mut client);
    assert_eq!(client.counters().idle, 10);
    let report = client.get("/", &mut Response::new()).unwrap();
    assert_eq!(report.attempts(), 2);
    assert_eq!(server.accepted(), 11);
    assert_nothing_left(client, &server);
}

#[test]
fn t07e_a_reply_byte_ends_all_retries() {
    let server = Server::play([
        connection().request().send(OK).request().send("H").close(),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Peer(PeerFault::Truncated)),
        "{error:?}"
    );
    assert_eq!(error.sent(), Sent::Partial);
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn t07f_an_idle_connection_that_has_not_served_yet_is_retried_like_a_reused_one() {
    let server = Server::play([
        connection().request().close(),
        connection().always(OK),
        connection().always(OK),
        connection().always(OK),
    ]);
    let config = HostConfig {
        min_idle: 1,
        ..config()
    };
    let mut client = client_with(&server, config);
    drive_until(&mut client, "one is warm", |client, _| {
        client.counters().idle == 1
    });
    // How long it had been idle, and whether the server still wanted it, is as unknown as after a call.
    let report = client.get("/", &mut Response::new()).unwrap();
    assert_eq!(report.attempts(), 2);
    assert_eq!(server.served_by()[0], 0);
    assert_nothing_left(client, &server);
}

#[test]
fn t09_a_body_stream_is_never_replayed() {
    let server = Server::play([
        connection().request().send(OK).request().close(),
        connection().always(OK),
    ]);
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    // PUT is idempotent, but its stream is used up by the first attempt.
    let mut request = Request::new("PUT", "/");
    request.body_stream(io::Cursor::new("once"), None);
    client.call(&mut request, &mut Response::new()).unwrap_err();
    assert_eq!(server.lines().len(), 2);
    assert_nothing_left(client, &server);
}

#[test]
fn t11b_connecting_is_bound_by_the_deadline() {
    let hole = BlackHole::new().unwrap();
    let limit = Duration::from_millis(50);
    let timeouts = [
        (
            TimeLimit::Total,
            Timeouts {
                total: Some(limit),
                ..Timeouts::default()
            },
        ),
        (
            TimeLimit::Connect,
            Timeouts {
                connect: Some(limit),
                ..config().timeouts
            },
        ),
    ];
    for (expected, timeouts) in timeouts {
        let config = HostConfig {
            timeouts,
            ..config()
        };
        let mut client = HostClient::new(Upstream::tcp([hole.address()]), config).unwrap();
        let started = Instant::now();
        let error = client.get("/", &mut Response::new()).unwrap_err();
        match error.kind() {
            ErrorKind::Timeout(limit) => assert_eq!(*limit, expected),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            (error.phase(), error.sent()),
            (Phase::Connect, Sent::Nothing)
        );
        assert_eq!(
            error.remote().unwrap().to_string(),
            hole.address().to_string()
        );
        assert!(started.elapsed() >= limit);
        assert_eq!(client.counters().open, 0);
    }
}

#[test]
fn one_black_hole_of_three_addresses_is_passed_over() {
    let hole = BlackHole::new().unwrap();
    let server = Server::every(connection().always(OK));
    let mut config = config();
    config.attempt_delay = Duration::from_millis(50);
    let upstream = Upstream::tcp([hole.address(), refused(), server.address()]);
    let mut client = HostClient::new(upstream, config).unwrap();
    // Nothing was sent, so a POST may go to the next address.
    client
        .call(&mut Request::post("/", "x"), &mut Response::new())
        .unwrap();
    assert_nothing_left(client, &server);
}

#[test]
fn localhost_works_with_a_server_of_one_address_family() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let server = Server::every(connection().request().send(closing).close());
    let name = format!("localhost:{}", server.address().port());
    let mut client = HostClient::new(name.parse().unwrap(), config()).unwrap();
    for _ in 0..4 {
        client
            .call(&mut Request::post("/", "x"), &mut Response::new())
            .unwrap();
    }
    for request in server.requests() {
        assert_eq!(request.header("Host"), [name.as_str()]);
    }
    assert_nothing_left(client, &server);
}

#[test]
fn fault_01_a_refused_connect_names_the_address() {
    let address = refused();
    let mut client = HostClient::new(Upstream::tcp([address]), config()).unwrap();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    match error.kind() {
        ErrorKind::Io(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::Connect, Sent::Nothing)
    );
    assert_eq!(error.remote().unwrap().to_string(), address.to_string());
    assert_eq!(client.counters().open, 0);
}

#[test]
fn fault_01b_a_missing_unix_socket_is_an_error_of_connecting() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nobody.sock");
    let mut client = HostClient::new(Upstream::unix(&path), config()).unwrap();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    match error.kind() {
        ErrorKind::Io(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
        other => panic!("{other:?}"),
    }
    assert_eq!(error.phase(), Phase::Connect);
}

fn hooked(hook: impl Fn(&FailedAttempt<'_>) -> bool + Send + Sync + 'static) -> HostConfig {
    let hook = move |failed: &FailedAttempt<'_>| hook(failed).then_some(Duration::ZERO);
    HostConfig {
        retry: Retry {
            hook: Some(Arc::new(hook)),
            ..Retry::default()
        },
        ..config()
    }
}

/// A call that blocks has its own deadline and its own settings, whatever the client, through the trait of all.
#[test]
fn a_blocking_call_has_a_deadline_of_its_own() {
    let server = Server::every(connection().request());
    let limit = Duration::from_millis(30);
    let call = |target: String| {
        let request = Request::get(target);
        Call::new(request, Response::new()).timeout(limit).tag(7)
    };
    let assert_late = |done: Completion| {
        let error = done.outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
            "{error}"
        );
        assert_eq!(done.tag, 7);
        assert!(done.report.timings().total >= limit);
    };
    let any = format!("http://{}/", server.address());
    let upstream = Upstream::tcp([server.address()]);
    let mut one_host = client(&server);
    let mut any_host = any_client(any_config());
    let mut pipelined = PipelineClient::new(upstream.clone(), PipelineConfig::default()).unwrap();
    let clients: [(&mut dyn HttpClient, &str); 3] = [
        (&mut one_host, "/"),
        (&mut any_host, &any),
        (&mut pipelined, "/"),
    ];
    for (client, target) in clients {
        assert_late(client.perform(call(target.to_owned())));
        assert_eq!(client.in_flight(), 0);
    }
    let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
    let shared = Shared::spawn(SharedConfig::default(), build).unwrap();
    assert_late(shared.perform(call("/".to_owned())));
    let streaming = shared.perform(call("/".to_owned()).streaming(true));
    let error = streaming.outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Misuse(Misuse::Streamed)),
        "{error}"
    );
}
