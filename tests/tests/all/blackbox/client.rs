//! The client of any URL: which connection serves which call, the caps over all hosts, cookies, settings of single calls,
//! and texts that are not URLs.

use std::io::Write;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::{
    Call, Client, Codings, Completion, Config, ConnectTo, CookieJar, ErrorKind, LimitExceeded,
    Limits, Misuse, PeerFault, Phase, Redirects, Request, Response, Retry, Sent, TimeLimit,
    Timeouts, WaitPolicy,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use tests::clients::{any_client, any_config, assert_none_left, config, look_away, run_any};
use tests::script::{Gate, PATIENCE, Script, Server, connection, refused};
use tests::tls::Authority;

use super::{CLOSING, OK, response};

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.address())
}

fn get(client: &mut Client, url: &str) {
    let mut response = Response::new();
    client.get(url, &mut response).unwrap();
    assert_eq!(response.status(), 200);
}

fn call(url: impl Into<String>) -> Call {
    Call::new(Request::get(url), Response::new())
}

fn run_one(client: &mut Client, call: Call) -> Completion {
    run_any(client, [call]).remove(0)
}

fn capped(total: usize, per_host: usize) -> Config {
    let mut config = any_config();
    config.max_connections = NonZeroUsize::new(total).unwrap();
    config.host.max_connections = NonZeroUsize::new(per_host).unwrap();
    config
}

/// Drives the client until `done` holds, without taking completions.
fn drive_until(client: &mut Client, what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        client.maintain(Duration::from_millis(1)).unwrap();
    }
}

// ---- which host

#[test]
fn one_host_however_it_is_written() {
    let server = Server::every(connection().always(OK));
    let mut config = any_config();
    config.connect_to = vec![ConnectTo {
        host: String::new(),
        port: Some(80),
        to_host: "127.0.0.1".into(),
        to_port: Some(server.address().port()),
    }];
    let mut client = any_client(config);
    for url in [
        "http://h.test",
        "http://h.test/",
        "http://h.test:80/",
        "http://h.test:/",
        "HTTP://H.TEST:80?q",
        "http://user:pass@h.test/#fragment",
        "http://other@h.test:080/",
    ] {
        get(&mut client, url);
    }
    assert_eq!(server.accepted(), 1);
    let requests = server.requests();
    let hosts: Vec<_> = requests.iter().flat_map(|r| r.header("host")).collect();
    assert!(
        hosts.iter().all(|host| host.eq_ignore_ascii_case("h.test")),
        "{hosts:?}"
    );
    let targets: Vec<_> = requests.iter().map(|r| r.target()).collect();
    assert_eq!(targets, ["/", "/", "/", "/", "/?q", "/", "/"]);
    // Another name has another connection, whatever it leads to.
    get(&mut client, "http://g.test/");
    assert_eq!(server.accepted(), 2);
    assert_none_left(client, [&server]);
}

#[test]
fn ports_are_hosts_of_their_own() {
    let (one, other) = (
        Server::every(connection().always(OK)),
        Server::every(connection().always(OK)),
    );
    let mut client = any_client(any_config());
    for _ in 0..3 {
        get(&mut client, &url(&one, "/one"));
        get(&mut client, &url(&other, "/other"));
    }
    for (server, path) in [(&one, "/one"), (&other, "/other")] {
        assert_eq!(server.accepted(), 1);
        assert!(
            server
                .requests()
                .iter()
                .all(|request| request.target() == path)
        );
        assert_eq!(
            server.requests()[0].header("host"),
            [server.address().to_string()]
        );
    }
    assert_eq!(client.counters().idle, 2);
    assert_none_left(client, [&one, &other]);
}

#[test]
fn targets_arrive_as_they_were_written() {
    let server = Server::every(connection().always(OK));
    let mut client = any_client(any_config());
    let targets = [
        "/",
        "/encoded/Y%2BY%2FY%3D/stuff",
        "/a/../b/./c//d",
        "/a%2e%2e/b?x=%20&y=/../&z=?",
        "/*;p=1,2!$'()~-_.:@",
    ];
    for target in targets {
        get(&mut client, &url(&server, target));
    }
    let seen: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.target())
        .collect();
    assert_eq!(seen, targets);
    get(&mut client, &url(&server, "?only=query"));
    assert_eq!(server.requests().last().unwrap().target(), "/?only=query");
    assert_none_left(client, [&server]);
}

#[test]
fn what_is_no_url_is_told_without_its_password() {
    let mut client = any_client(any_config());
    for url in [
        "",
        "/",
        "/path",
        "127.0.0.1",
        "h:80/",
        "ftp://user:secret@h/",
        "unix:/x",
        "http:/user:secret@h/",
        "http://",
        "http://:80/",
        "http://user:secret@/",
        "http://user:secret@h:99999/",
        "http://user:secret@h:0/",
        "http://user:secret@h:x/",
        "http://user:sec ret@h/",
        "http://user:secret@[::1/",
        "http://user:secret@[fe80::1%25eth0]/",
        "http://user:secret@1.2.3/",
        "http://user:secret@h/a b",
        "http://user:secret@h/\r\nX-Injected: 1",
        "http://user:secret@h/?\0",
        "http://user:secret@h h/",
        "http://user:secret@h\r\n/",
        "http://user:secret/with/slash@h h/",
        "http://user:secret@a..b/",
    ] {
        for streaming in [false, true] {
            let done = run_one(&mut client, call(url).streaming(streaming));
            let error = done.outcome.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Misuse(Misuse::Url { .. })),
                "{url:?}: {error:?}"
            );
            assert_eq!(error.sent(), Sent::Nothing);
            let told = format!("{error} {error:?}");
            assert!(
                !told.contains("secret") && !told.contains("sec ret"),
                "{told}"
            );
            assert_eq!(done.request.target(), url);
        }
    }
    assert_eq!(client.counters().opened, 0);
    // A tunnel that the caller asks for has no URL.
    let done = run_one(
        &mut client,
        Call::new(
            Request::new("CONNECT", "http://127.0.0.1:1/"),
            Response::new(),
        ),
    );
    assert!(matches!(
        done.outcome.unwrap_err().kind(),
        ErrorKind::Misuse(Misuse::TargetForm)
    ));
}

#[test]
fn user_information_becomes_basic_authentication() {
    let server = Server::every(connection().always(OK));
    let at = server.address();
    let mut client = any_client(any_config());
    for (user, expected) in [
        ("user:pass@", Some("Basic dXNlcjpwYXNz")),
        ("foo:@", Some("Basic Zm9vOg==")),
        ("user@", Some("Basic dXNlcjo=")),
        ("a%40b:p%3Aq@", Some("Basic YUBiOnA6cQ==")),
        ("", None),
    ] {
        get(&mut client, &format!("http://{user}{at}/"));
        let seen = server.requests().pop().unwrap();
        assert_eq!(
            seen.header("authorization"),
            Vec::from_iter(expected),
            "{user}"
        );
        assert_eq!(
            (seen.header("host"), seen.target()),
            (vec![at.to_string()], "/".into())
        );
    }
    // The same buffers for another user, and for none.
    let mut request = Request::get(format!("http://one@{at}/"));
    client.call(&mut request, &mut Response::new()).unwrap();
    request.set_target(&format!("http://{at}/"));
    client.call(&mut request, &mut Response::new()).unwrap();
    assert!(
        server
            .requests()
            .pop()
            .unwrap()
            .header("authorization")
            .is_empty()
    );
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_user_agent_of_ones_own_or_none() {
    let server = Server::every(connection().always(OK));
    for (given, expected) in [
        (Some("I'm not courser"), vec!["I'm not courser"]),
        (None, vec![]),
    ] {
        let mut config = any_config();
        config.host.user_agent = given.map(str::to_owned);
        get(&mut any_client(config), &url(&server, "/"));
        assert_eq!(
            server.requests().pop().unwrap().header("user-agent"),
            expected
        );
    }
    get(&mut any_client(any_config()), &url(&server, "/"));
    let seen = server.requests().pop().unwrap().header("user-agent");
    assert!(
        seen.len() == 1 && seen[0].starts_with("courser/"),
        "{seen:?}"
    );
}

// ---- caps

#[test]
fn no_more_connections_than_the_cap_over_all_hosts() {
    const HOSTS: usize = 10;
    let gate = Gate::new();
    let servers: Vec<Server> = (0..HOSTS)
        .map(|_| {
            Server::every(
                connection()
                    .request()
                    .wait(&gate)
                    .send(OK)
                    .request()
                    .wait(&gate)
                    .send(OK),
            )
        })
        .collect();
    let accepted = || servers.iter().map(Server::accepted).sum::<usize>();
    let mut client = any_client(capped(2, 100));
    for round in 0..2 {
        for (tag, server) in servers.iter().enumerate() {
            client.submit(call(url(server, &format!("/{round}"))).tag(tag as u64));
        }
    }
    let mut seen = vec![0; HOSTS];
    for answered in 0..2 * HOSTS {
        // That many calls are at the gate, each on a connection of its own, and nothing else is under way.
        let arrived = (answered + 2).min(2 * HOSTS);
        drive_until(&mut client, "calls are at the gate", || {
            gate.arrived() >= arrived
        });
        for _ in 0..3 {
            client.maintain(Duration::from_millis(1)).unwrap();
            assert!(client.counters().open <= 2, "{:?}", client.counters());
        }
        assert_eq!(gate.arrived(), arrived);
        assert!(accepted() <= answered + 2);
        gate.open();
        let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
        done.outcome.unwrap();
        seen[done.tag as usize] += 1;
    }
    assert_eq!(seen, [2; HOSTS]);
    assert_none_left(client, &servers);
}

#[test]
fn many_calls_to_many_hosts_through_few_connections() {
    let servers: Vec<Server> = (0..10)
        .map(|n: usize| Server::answer(move |request| response(format!("{n}{}", request.target()))))
        .collect();
    for (total, per_host) in [(1, 1), (2, 1), (2, 2), (3, 100), (15, 2)] {
        let mut client = any_client(capped(total, per_host));
        let count = 300;
        for tag in 0..count {
            let server = &servers[tag as usize % 10];
            client.submit(call(url(server, &format!("/{tag}"))).tag(tag));
        }
        for _ in 0..count {
            let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
            done.outcome.unwrap();
            let expected = format!("{}/{}", done.tag % 10, done.tag);
            assert_eq!(done.response.body(), expected.as_bytes());
            let counters = client.counters();
            assert!(counters.open <= total.min(10 * per_host), "{counters:?}");
        }
        assert_none_left(client, &servers);
    }
}

#[test]
fn the_connection_idle_for_longest_makes_room() {
    let servers: Vec<Server> = (0..3)
        .map(|_| Server::every(connection().always(OK)))
        .collect();
    let mut client = any_client(capped(2, 2));
    let mut get = |n: usize| {
        get(&mut client, &url(&servers[n], "/"));
        let accepted: Vec<_> = servers.iter().map(Server::accepted).collect();
        (accepted, client.counters().open)
    };
    assert_eq!(get(0), (vec![1, 0, 0], 1));
    assert_eq!(get(1), (vec![1, 1, 0], 2));
    assert_eq!(get(0), (vec![1, 1, 0], 2));
    // The second one has been idle for longest.
    assert_eq!(get(2), (vec![1, 1, 1], 2));
    servers[1].wait_ended(1);
    assert_eq!(get(0), (vec![1, 1, 1], 2));
    assert_eq!(get(1), (vec![1, 2, 1], 2));
    servers[2].wait_ended(1);
    assert_eq!(servers[0].ended(), 0);
    assert_none_left(client, &servers);
}

#[test]
fn a_busy_host_does_not_starve_another() {
    let gate = Gate::new();
    let busy = Server::every(connection().request().wait(&gate).send(OK).times(100));
    let other = Server::every(connection().always(OK));
    let mut client = any_client(capped(2, 2));
    for _ in 0..50 {
        client.submit(call(url(&busy, "/")));
    }
    drive_until(&mut client, "the cap is reached", || gate.arrived() == 2);
    client.submit(call(url(&other, "/")).tag(1));
    client.maintain(Duration::from_millis(1)).unwrap();
    assert_eq!(other.accepted(), 0);
    // The next connection that is given back goes to the host that has none, before any of the 48 others.
    gate.open();
    client
        .wait(Some(PATIENCE))
        .unwrap()
        .unwrap()
        .outcome
        .unwrap();
    let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
    assert_eq!(done.tag, 1);
    done.outcome.unwrap();
    assert_eq!(busy.requests().len(), 2);
    gate.open_for_all();
    let mut rest = 0;
    while let Some(done) = client.wait(Some(PATIENCE)).unwrap() {
        done.outcome.unwrap();
        rest += 1;
    }
    assert_eq!(rest, 49);
    assert_none_left(client, [&busy, &other]);
}

#[test]
fn two_busy_hosts_share_the_cap() {
    // Without end on both sides, each one gets on.
    let servers = [
        Server::every(connection().always(OK)),
        Server::every(connection().always(OK)),
    ];
    let mut client = any_client(capped(1, 1));
    let mut counts = [0; 2];
    for n in [0, 1, 0, 1] {
        client.submit(call(url(&servers[n], "/")).tag(n as u64));
    }
    while counts.iter().any(|count| *count < 50) {
        let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
        done.outcome.unwrap();
        let n = done.tag as usize;
        counts[n] += 1;
        assert!(counts.iter().sum::<usize>() < 10_000, "{counts:?}");
        client.submit(call(url(&servers[n], "/")).tag(n as u64));
    }
    while let Some(done) = client.wait(Some(PATIENCE)).unwrap() {
        done.outcome.unwrap();
    }
    assert_none_left(client, &servers);
}

#[test]
fn each_host_has_a_cap_of_its_own() {
    let gate = Gate::new();
    let held = || Server::every(connection().request().wait(&gate).send(OK).times(10));
    let servers = [held(), held()];
    let mut client = any_client(capped(100, 1));
    for n in 0..6 {
        client.submit(call(url(&servers[n % 2], "/")));
    }
    drive_until(&mut client, "both are busy", || gate.arrived() == 2);
    assert_eq!(client.counters().waiting, 4);
    gate.open_for_all();
    for done in run_any(&mut client, []) {
        done.outcome.unwrap();
    }
    assert_eq!((servers[0].accepted(), servers[1].accepted()), (1, 1));
    assert_none_left(client, &servers);
    // At once, where waiting is not wanted.
    let mut config = capped(100, 1);
    config.host.wait = WaitPolicy::FailFast;
    let mut client = any_client(config);
    let calls = (0..2).map(|n| call(url(&servers[0], "/")).tag(n));
    let done = run_any(&mut client, calls);
    assert!(done[0].outcome.is_ok());
    let error = done[1].outcome.as_ref().unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Limit(LimitExceeded::Connections(_))
        ),
        "{error:?}"
    );
    assert_none_left(client, [&servers[0]]);
}

#[test]
fn a_host_that_is_down_keeps_nobody_from_the_others() {
    let server = Server::every(connection().always(OK));
    let down = refused();
    let mut client = any_client(capped(1, 1));
    let calls = (0..100).map(|tag| match tag % 2 {
        0 => call(url(&server, "/")).tag(tag),
        _ => call(format!("http://{down}/")).tag(tag),
    });
    for done in run_any(&mut client, calls) {
        match done.tag % 2 {
            0 => done.outcome.unwrap(),
            _ => {
                let error = done.outcome.unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error:?}");
                assert_eq!(error.remote().unwrap().to_string(), down.to_string());
            }
        }
    }
    assert_none_left(client, [&server]);
}

#[test]
fn calls_that_wait_for_room_end_by_their_deadline() {
    let gate = Gate::new();
    let held = Server::every(connection().request().wait(&gate).send(OK));
    let other = Server::every(connection().always(OK));
    let mut client = any_client(capped(1, 1));
    client.submit(call(url(&held, "/")));
    drive_until(&mut client, "the only connection is busy", || {
        gate.arrived() == 1
    });
    let limit = Duration::from_millis(50);
    client.submit(call(url(&other, "/")).tag(1).timeout(limit));
    let cancelled = client.submit(call(url(&other, "/")).tag(2));
    let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
    assert_eq!(done.tag, 1);
    let error = done.outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
        "{error:?}"
    );
    assert!(client.cancel(cancelled));
    assert_eq!(client.wait(Some(PATIENCE)).unwrap().unwrap().tag, 2);
    gate.open();
    client
        .wait(Some(PATIENCE))
        .unwrap()
        .unwrap()
        .outcome
        .unwrap();
    assert_eq!(other.accepted(), 0);
    // The room is not lost.
    get(&mut client, &url(&other, "/"));
    assert_none_left(client, [&held, &other]);
}

// ---- stale connections, as with one host

#[test]
fn a_connection_that_was_closed_while_idle_is_not_used() {
    let server = Server::play([
        connection().request().send(OK).close(),
        connection().request().send(OK).request().close(),
        connection().request().send(OK),
    ]);
    let mut client = any_client(any_config());
    get(&mut client, &url(&server, "/1"));
    server.wait_ended(1);
    look_away();
    let mut post = Request::post(url(&server, "/2"), "once");
    client.call(&mut post, &mut Response::new()).unwrap();
    // Closed while it is used: what is idempotent is sent again.
    get(&mut client, &url(&server, "/3"));
    assert_eq!(server.served_by(), [0, 1, 1, 2]);
    assert_none_left(client, [&server]);
}

#[test]
fn a_stream_is_read_beside_other_calls() {
    let gate = Gate::new();
    let slow = Server::every(
        connection()
            .request()
            .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            .wait(&gate)
            .send("cd"),
    );
    let other = Server::every(connection().always(OK));
    let mut client = any_client(any_config());
    let done = run_one_streamed(&mut client, &url(&slow, "/"));
    let body = done.body.unwrap();
    for _ in 0..3 {
        get(&mut client, &url(&other, "/"));
    }
    gate.open();
    let (mut text, mut buffer) = (Vec::new(), [0; 16]);
    loop {
        match client.read_body(body, &mut buffer).unwrap() {
            courser::Read::Data(n) => text.extend_from_slice(&buffer[..n]),
            courser::Read::Pending => assert!(client.wait(Some(PATIENCE)).unwrap().is_none()),
            courser::Read::End { .. } => break,
        }
    }
    assert_eq!(text, b"abcd");
    assert_none_left(client, [&slow, &other]);
}

fn run_one_streamed(client: &mut Client, url: &str) -> Completion {
    client.submit(call(url).streaming(true));
    client.wait(Some(PATIENCE)).unwrap().unwrap()
}

// ---- one call's own rules

#[test]
fn what_one_call_says_holds_for_it_alone() {
    let gate = Gate::new();
    let server = Server::answer({
        let gate = gate.clone();
        move |request| match request.target().as_str() {
            "/slow" => {
                gate.wait();
                OK.into()
            }
            "/large" => response("x".repeat(1000)),
            _ => OK.into(),
        }
    });
    let mut client = any_client(any_config());
    let short = Duration::from_millis(50);
    let own = Timeouts {
        first_byte: Some(short),
        ..config().timeouts
    };
    let began = Instant::now();
    let done = run_one(&mut client, call(url(&server, "/slow")).timeouts(own));
    let error = done.outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::FirstByte)),
        "{error:?}"
    );
    assert!(began.elapsed() >= short);
    let own = Timeouts {
        total: Some(short),
        ..Timeouts::none()
    };
    let done = run_one(&mut client, call(url(&server, "/slow")).timeouts(own));
    let error = done.outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
        "{error:?}"
    );
    gate.open_for_all();
    assert!(
        run_one(&mut client, call(url(&server, "/slow")))
            .outcome
            .is_ok()
    );

    let own = Limits {
        body_bytes: Some(999),
        ..Limits::default()
    };
    let done = run_one(&mut client, call(url(&server, "/large")).limits(own));
    let error = done.outcome.unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Limit(LimitExceeded::BodyBytes(999))
        ),
        "{error:?}"
    );
    assert!(
        run_one(&mut client, call(url(&server, "/large")))
            .outcome
            .is_ok()
    );
    assert_none_left(client, [&server]);
}

#[test]
fn one_calls_own_retry() {
    let server = Server::play([
        connection().request().close(),
        connection().request().close(),
        connection().request().send(OK),
        connection().request().close(),
    ]);
    let mut client = any_client(any_config());
    let retry = Retry {
        max_attempts: NonZeroU32::new(3).unwrap(),
        hook: Some(Arc::new(|failed| {
            failed.request.is_idempotent().then_some(Duration::ZERO)
        })),
        ..Retry::default()
    };
    let mut request = Request::get(url(&server, "/"));
    request.header("Connection", "close");
    let done = run_one(
        &mut client,
        Call::new(request, Response::new()).retry(retry),
    );
    done.outcome.unwrap();
    assert_eq!(done.report.attempts(), 3);
    let done = run_one(&mut client, Call::new(done.request, done.response));
    let error = done.outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Peer(PeerFault::Empty)),
        "{error:?}"
    );
    assert_eq!(server.requests().len(), 4);
    assert_none_left(client, [&server]);
}

#[test]
fn codings_are_taken_off_behind_a_redirect() {
    let coded = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let server = Server::answer(move |request| {
        let (start, body) = match request.target().as_str() {
            "/from" => ("302 Found\r\nLocation: /to", coded("on the way")),
            _ => ("200 OK", coded("the answer")),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {start}\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
        );
        [head.into_bytes(), body].concat()
    });
    let mut config = any_config();
    config.redirects = Redirects::limit(1);
    config.host.codings = Codings::all();
    let mut client = any_client(config);
    let mut response = Response::new();
    client.get(&url(&server, "/from"), &mut response).unwrap();
    assert_eq!(
        (response.body(), response.decoded()),
        (&b"the answer"[..], true)
    );
    for request in server.requests() {
        assert_eq!(request.header("accept-encoding").len(), 1);
    }
    let mut request = Request::get(url(&server, "/from"));
    let body = client.open(&mut request, &mut response).unwrap();
    let text = std::io::read_to_string(body).unwrap();
    assert_eq!(text, "the answer");
    assert_none_left(client, [&server]);
}

// ---- cookies

#[test]
fn cookies_are_kept_from_call_to_call_and_along_redirects() {
    let server = Server::answer(|request| {
        let head = match request.target().as_str() {
            "/login" => {
                "302 Found\r\nLocation: /home\r\nSet-Cookie: session=1; HttpOnly\r\nSet-Cookie: path=2; Path=/home"
            }
            "/logout" => "200 OK\r\nSet-Cookie: session=; Max-Age=0",
            _ => "200 OK",
        };
        format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n").into()
    });
    let cookies = |server: &Server| server.requests().last().unwrap().header("cookie");
    let jar = CookieJar::new();
    let mut config = any_config();
    config.redirects = Redirects::limit(5);
    config.cookies = Some(jar.clone());
    let mut client = any_client(config.clone());
    for streaming in [false, true] {
        jar.clear();
        let request = Request::get(url(&server, "/login"));
        client.submit(Call::new(request, Response::new()).streaming(streaming));
        let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
        done.outcome.unwrap();
        if let Some(body) = done.body {
            client.cancel(body);
        }
        let seen = server.requests();
        assert!(seen[seen.len() - 2].header("cookie").is_empty());
        assert_eq!(cookies(&server), ["path=2; session=1"]);
        get(&mut client, &url(&server, "/other"));
        assert_eq!(cookies(&server), ["session=1"]);
    }
    // Beside the caller's own.
    let mut request = Request::get(url(&server, "/other"));
    request.header("Cookie", "own=3");
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(cookies(&server), ["own=3; session=1"]);
    // In one line (RFC 6265 §5.4), however many the caller has; the caller's value goes before the jar's.
    let mut several = Request::get(url(&server, "/other"));
    several
        .header("Cookie", "a=1; session=own")
        .header("X-Between", "x")
        .header("cookie", "b=2");
    client.call(&mut several, &mut Response::new()).unwrap();
    assert_eq!(cookies(&server), ["a=1; session=own; b=2"]);
    let mut several = Request::get(url(&server, "/home"));
    several.header("Cookie", "a=1").header("Cookie", "b=2");
    client.call(&mut several, &mut Response::new()).unwrap();
    assert_eq!(cookies(&server), ["a=1; b=2; path=2; session=1"]);
    // A cookie knows hosts, not ports (RFC 6265 §8.5); another name of the same address is another host.
    let other = Server::every(connection().always(OK));
    get(&mut client, &url(&other, "/"));
    assert_eq!(cookies(&other), ["session=1"]);
    get(
        &mut client,
        &format!("http://localhost:{}/", other.address().port()),
    );
    assert!(cookies(&other).is_empty());
    // Another client with the same jar has them too; without them, after the server took them back.
    let mut second = any_client(config);
    get(&mut second, &url(&server, "/logout"));
    assert_eq!(cookies(&server), ["session=1"]);
    get(&mut client, &url(&server, "/other"));
    assert!(cookies(&server).is_empty());
    // The same request, sent again, does not keep what is gone.
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(cookies(&server), ["own=3"]);
}

#[test]
fn a_call_without_cookies_sends_none_and_keeps_none() {
    let server = Server::answer(|_| {
        "HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n".into()
    });
    let mut config = any_config();
    config.cookies = Some(CookieJar::new());
    let mut client = any_client(config);
    let mut run = |without: bool| {
        let mut call = call(url(&server, "/"));
        if without {
            call = call.without_cookies();
        }
        run_one(&mut client, call).outcome.unwrap();
        server.requests().last().unwrap().header("cookie")
    };
    assert!(run(true).is_empty());
    assert!(run(false).is_empty()); // the first kept none; this one does
    assert!(run(true).is_empty());
    assert_eq!(run(false), ["a=1"]);
    assert_none_left(client, [&server]);
}

#[test]
fn cookies_of_one_host_do_not_follow_to_another() {
    let there = Server::every(connection().always(OK));
    let to = format!("http://localhost:{}/", there.address().port());
    let here = Server::answer(move |_| {
        let head = format!(
            "302 Found\r\nLocation: {to}\r\nSet-Cookie: session=1\r\nSet-Cookie: far=2; Domain=localhost"
        );
        format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n").into()
    });
    let mut config = any_config();
    config.redirects = Redirects::limit(5);
    config.cookies = Some(CookieJar::new());
    let mut client = any_client(config);
    for _ in 0..2 {
        get(&mut client, &url(&here, "/"));
    }
    assert_eq!(here.requests()[1].header("cookie"), ["session=1"]);
    for request in there.requests() {
        assert!(request.header("cookie").is_empty());
    }
}

// ---- the report

#[test]
fn the_report_tells_of_the_last_connection() {
    let server = Server::every(
        connection()
            .request()
            .send(OK)
            .request()
            .send(CLOSING)
            .close(),
    );
    let mut client = any_client(any_config());
    let first = client
        .get(&url(&server, "/"), &mut Response::new())
        .unwrap();
    assert!(!first.reused() && first.timings().connect.is_some());
    // A literal address needs no resolver.
    assert_eq!(client.dns_counters().asked, 0);
    let second = client
        .get(&url(&server, "/"), &mut Response::new())
        .unwrap();
    assert!(second.reused() && second.timings().connect.is_none());
    for report in [&first, &second] {
        assert_eq!(
            report.remote().unwrap().to_string(),
            server.address().to_string()
        );
        assert!(
            report
                .local()
                .unwrap()
                .to_string()
                .starts_with("127.0.0.1:")
        );
        assert_eq!(report.attempts(), 1);
    }
    assert_none_left(client, [&server]);
}

// ---- scenarios that fasthttp's client has for several hosts

#[test]
fn t01_a_deadline_in_the_past_causes_no_lookup_and_no_traffic() {
    let server = Server::every(connection().always(OK));
    let mut config = any_config();
    config
        .host
        .dns
        .resolve("a.example", None, [server.address().ip()]);
    let mut client = any_client(config);
    let past = Instant::now();
    look_away();
    for host in ["a.example", "b.example", "127.0.0.1"] {
        let target = format!("http://{host}:{}/", server.address().port());
        for late in [
            call(&*target).timeout(Duration::ZERO),
            call(&*target).deadline(past),
        ] {
            let error = run_one(&mut client, late).outcome.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
                "{error:?}"
            );
            assert_eq!((error.phase(), error.sent()), (Phase::Queue, Sent::Nothing));
        }
    }
    client.maintain(Duration::from_millis(5)).unwrap();
    assert_eq!((server.accepted(), client.counters().opened), (0, 0));
    assert_eq!(client.dns_counters().asked, 0);
    assert_none_left(client, []);
}

/// Ten servers, every other one over TLS, with GETs and POSTs to all of them at the same time.
#[test]
fn p11_p12_calls_to_plain_and_secure_hosts_never_cross() {
    const CALLS: u64 = 300;
    let authority = Authority::new("authority");
    let acceptor = authority.leaf(&["127.0.0.1"]).acceptor();
    let servers: Vec<Server> = (0..10u8)
        .map(|n| {
            // Each answers with its own number.
            let numbered = |script: Script| {
                (0..CALLS).fold(script, |script, _| {
                    script.request().send(response(format!("server {n}")))
                })
            };
            match n % 2 {
                0 => Server::every(numbered(connection())),
                _ => Server::every(numbered(connection().tls(&acceptor))),
            }
        })
        .collect();
    let mut config = capped(12, 3);
    config.host.tls = authority.trusted();
    let mut client = any_client(config);
    for tag in 0..CALLS {
        let n = tag as usize % 10;
        let scheme = if n.is_multiple_of(2) { "http" } else { "https" };
        let target = format!("{scheme}://{}/{tag}", servers[n].address());
        let request = match tag % 3 {
            0 => Request::post(target, format!("body {tag}")),
            _ => Request::get(target),
        };
        client.submit(Call::new(request, Response::new()).tag(tag));
    }
    for _ in 0..CALLS {
        let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
        done.outcome.unwrap();
        let expected = format!("server {}", done.tag % 10);
        assert_eq!(done.response.body(), expected.as_bytes());
        assert!(client.counters().open <= 12);
    }
    for (n, server) in servers.iter().enumerate() {
        let mut seen: Vec<u64> = Vec::new();
        for request in server.requests() {
            let tag = request.target().trim_start_matches('/').parse().unwrap();
            seen.push(tag);
            let (method, body) = match tag % 3 {
                0 => ("POST", format!("body {tag}")),
                _ => ("GET", String::new()),
            };
            assert!(request.line().starts_with(method), "{request:?}");
            assert_eq!(request.body(), body.as_bytes());
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq((n as u64..CALLS).step_by(10)));
    }
    assert_none_left(client, &servers);
}
