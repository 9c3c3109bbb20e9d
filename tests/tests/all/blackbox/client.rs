//! The client of any URL: its user information, codings and cookies along redirects. Which host a URL names is in
//! `engine/src/proto/url.rs`; caps, queues and the settings of single calls are in `engine/tests/sim` and
//! `engine/tests/all/scenarios/hosts.rs`.

use std::io::Write;
use std::time::{Duration, Instant};

use courser::{
    Call, Client, Codings, Completion, CookieJar, ErrorKind, Phase, Redirects, Request, Response,
    RetryOn, RetryRule, Sent, Statuses, TimeLimit,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use tests::clients::{any_client, any_config, assert_none_left, look_away, run_any};
use tests::script::{PATIENCE, Server, connection};

use super::OK;

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

// ---- user information

/// Which value it becomes is in `engine/src/proto/auth.rs`.
#[test]
fn user_information_is_that_of_each_url() {
    let server = Server::every(connection().always(OK));
    let at = server.address();
    let mut client = any_client(any_config());
    let mut request = Request::get("/");
    for (user, expected) in [("a%40b:p%3Aq@", Some("Basic YUBiOnA6cQ==")), ("", None)] {
        request.set_target(&format!("http://{user}{at}/"));
        client.call(&mut request, &mut Response::new()).unwrap();
        let seen = server.requests().pop().unwrap();
        assert_eq!(seen.header("authorization"), Vec::from_iter(expected));
        assert_eq!(seen.header("host"), [at.to_string()]);
    }
}

// ---- one call's own rules

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

/// A cookie counts from its head on (RFC 6265 §3), whatever becomes of the answer.
#[test]
fn cookies_are_kept_of_answers_that_are_retried_or_cut() {
    let retried = "HTTP/1.1 503 Full\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n";
    let cut = "HTTP/1.1 200 OK\r\nSet-Cookie: b=2\r\nContent-Length: 9\r\n\r\ncut";
    let server = Server::play([
        connection()
            .request()
            .send(retried)
            .request()
            .send(cut)
            .close(),
        connection().always(OK),
    ]);
    let mut config = any_config();
    config.cookies = Some(CookieJar::new());
    config.host.retry.rules = vec![RetryRule::new(RetryOn::Status(
        Statuses::none().and(503..=503),
    ))];
    let mut client = any_client(config);
    let outcome = client.get(&url(&server, "/"), &mut Response::new());
    assert!(outcome.is_err());
    get(&mut client, &url(&server, "/"));
    let seen = server.requests();
    let cookies: Vec<_> = seen
        .iter()
        .map(|request| request.header("cookie"))
        .collect();
    assert_eq!(cookies, [vec![], vec!["a=1"], vec!["a=1; b=2"]]);
    assert_none_left(client, [&server]);
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
