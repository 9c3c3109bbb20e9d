//! Redirects (RFC 9110 §15.4), from the first request to what the last server sees. Where a `Location` leads is in
//! `engine/src/proto/location.rs`; what stays with its origin is in `tls.rs`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::{
    Call, Client, Completion, Config, ErrorKind, Observer, ObserverEvent, Phase, Redirects,
    Request, Response, Sent,
};
use tests::clients::{any_client, any_config, assert_none_left};
use tests::script::{self, Gate, PATIENCE, Server, connection};

use super::OK;

fn following() -> Config {
    Config {
        redirects: Redirects::limit(10),
        ..any_config()
    }
}

fn moved(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into()
}

fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.address())
}

/// A server that leads from `/from...` to that location, and answers everything else.
fn leading(status: u16, location: impl Into<String>) -> Server {
    let location = location.into();
    Server::answer(move |request| match request.target().starts_with("/from") {
        true => moved(status, &location),
        false => OK.into(),
    })
}

fn send(client: &mut Client, request: Request, streaming: bool) -> Completion {
    let call = Call::new(request, Response::new()).streaming(streaming);
    let mut done = run_call(client, call);
    if let Some(body) = done.body {
        let mut buffer = [0; 4096];
        loop {
            match client.read_body(body, &mut buffer).unwrap() {
                courser::Read::Data(_) => {}
                courser::Read::Pending => assert!(client.wait(Some(PATIENCE)).unwrap().is_none()),
                courser::Read::End { report, .. } => {
                    done.report = report;
                    break;
                }
            }
        }
    }
    done
}

fn run_call(client: &mut Client, call: Call) -> Completion {
    client.submit(call);
    client.wait(Some(PATIENCE)).unwrap().expect("a completion")
}

// ---- which request is sent

#[test]
fn framing_goes_with_the_body() {
    let server = leading(303, "/to");
    let mut client = any_client(following());
    let mut request = Request::new("POST", url(&server, "/from"));
    request
        .body_stream(&b"streamed"[..], None)
        .trailer("X-Sum", "1")
        .header("Content-Encoding", "gzip")
        .header("Content-Type", "text/plain")
        .header("X-Own", "kept");
    client.call(&mut request, &mut Response::new()).unwrap();
    // The caller's request is as it was.
    assert_eq!(request.method(), "POST");
    assert_eq!(request.target(), url(&server, "/from"));
    let seen = server.requests();
    assert_eq!(seen[1].header("x-own"), ["kept"]);
    assert_eq!(seen[0].header("transfer-encoding"), ["chunked"]);
    assert_eq!(seen[1].line(), "GET /to HTTP/1.1");
    for name in [
        "transfer-encoding",
        "trailer",
        "content-encoding",
        "content-type",
        "content-length",
        "expect",
    ] {
        assert!(seen[1].header(name).is_empty(), "{name}");
    }
    // Bytes that wait for `100 Continue` go the same way.
    let mut request = Request::post(url(&server, "/from"), "held back");
    request.expect_continue(Duration::ZERO);
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(server.lines().last().unwrap(), "GET /to HTTP/1.1");
    assert!(
        server
            .requests()
            .last()
            .unwrap()
            .header("expect")
            .is_empty()
    );
    assert_none_left(client, [&server]);
}

// ---- where to

#[test]
fn locations_that_lead_nowhere() {
    // Without one, the response is the result.
    let without = "HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::every(connection().always(without));
    let mut client = any_client(following());
    let mut response = Response::new();
    let report = client.get(&url(&server, "/"), &mut response).unwrap();
    assert_eq!(
        (response.status(), response.body(), report.redirects().len()),
        (302, &b"ok"[..], 0)
    );
    assert_none_left(client, [&server]);

    for location in [
        "ftp://127.0.0.1/x",
        "javascript:alert(1)",
        "data:,x",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://127.0.0.1:99999/",
        "http://user:secret@256.256.256.256/",
        "//",
    ] {
        for streaming in [false, true] {
            let server = leading(302, location);
            let mut client = any_client(following());
            let request = Request::get(url(&server, "/from"));
            let done = run_call(
                &mut client,
                Call::new(request, Response::new()).streaming(streaming),
            );
            let error = done.outcome.as_ref().unwrap_err();
            // The server is to blame, not the caller.
            let ErrorKind::Location { value, .. } = error.kind() else {
                panic!("{location}: {error:?}");
            };
            assert!(!value.contains("secret") && !format!("{error:?} {error}").contains("secret"));
            assert_eq!((error.phase(), error.sent()), (Phase::Head, Sent::Partial));
            let (address, remote) = (server.address(), error.remote());
            assert_eq!(remote.map(ToString::to_string), Some(address.to_string()));
            let io = std::io::Error::from(done.outcome.unwrap_err());
            assert_eq!(io.kind(), std::io::ErrorKind::InvalidData);
            // What has come is there to look at.
            assert_eq!(done.response.status(), 302, "{location}");
            assert_eq!(done.response.header("location"), Some(location.as_bytes()));
            assert_eq!(server.requests().len(), 1);
            assert_none_left(client, [&server]);
        }
    }
}

// ---- what travels along

#[test]
fn what_was_left_behind_does_not_come_back() {
    // From here to there and back again.
    let there = Server::answer(|request| moved(302, request.target().trim_start_matches('/')));
    let to = there.address();
    let here = Server::answer(move |request| match request.target().as_str() {
        "/from" => {
            let host = request.header("host").remove(0);
            moved(302, &format!("http://{to}/http://{host}/to"))
        }
        _ => OK.into(),
    });
    let mut client = any_client(following());
    let mut request = Request::get(format!("http://user:secret@{}/from", here.address()));
    request.header("Cookie", "secret=1");
    let report = client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(report.redirects().len(), 2);
    let seen = here.requests();
    assert_eq!(
        (
            seen[0].header("cookie").len(),
            seen[0].header("authorization").len()
        ),
        (1, 1)
    );
    assert_eq!(
        (
            seen[1].header("cookie").len(),
            seen[1].header("authorization").len()
        ),
        (0, 0)
    );
}

#[test]
fn user_information() {
    const BASIC: &str = "Basic dXNlcjpwYXNz"; // user:pass
    let other = Server::every(connection().always(OK));
    let there = other.address();
    // Given by the URL, kept on the same server, and told to no other.
    let server = leading(302, "/to");
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut config = following();
    config.host.observer = Some(Observer::new({
        let told = told.clone();
        move |event| {
            if let ObserverEvent::Redirected { url, .. } = event {
                told.lock().unwrap().push((*url).to_owned());
            }
        }
    }));
    let mut client = any_client(config);
    let with = |server: &Server, path| format!("http://user:pass@{}{path}", server.address());
    let report = client
        .get(&with(&server, "/from"), &mut Response::new())
        .unwrap();
    for request in server.requests() {
        assert_eq!(request.header("authorization"), [BASIC], "{request:?}");
    }
    assert_eq!(&*report.redirects()[0].url, url(&server, "/to"));
    let told = told.lock().unwrap().clone();
    assert_eq!(told, [url(&server, "/to")]);
    let server = leading(302, format!("http://{there}/"));
    client
        .get(&with(&server, "/from"), &mut Response::new())
        .unwrap();
    assert_eq!(server.requests()[0].header("authorization"), [BASIC]);
    assert!(other.requests()[0].header("authorization").is_empty());
    // A server may give credentials for itself, and for no other server.
    let server = Server::answer(|request| match request.target().as_str() {
        "/from" => {
            let host = request.header("host").remove(0);
            moved(302, &format!("http://user:pass@{host}/to"))
        }
        _ => OK.into(),
    });
    let report = client
        .get(&url(&server, "/from"), &mut Response::new())
        .unwrap();
    assert!(server.requests()[0].header("authorization").is_empty());
    assert_eq!(server.requests()[1].header("authorization"), [BASIC]);
    assert_eq!(&*report.redirects()[0].url, url(&server, "/to"));
    let server = leading(302, format!("http://user:pass@{there}/"));
    let report = client
        .get(&url(&server, "/from"), &mut Response::new())
        .unwrap();
    assert!(server.requests()[0].header("authorization").is_empty());
    assert!(other.requests()[1].header("authorization").is_empty());
    assert_eq!(&*report.redirects()[0].url, format!("http://{there}/"));
    // Nor on the steps after that.
    let further = leading(302, "/to");
    let at = further.address();
    let server = leading(302, format!("http://user:pass@{at}/from"));
    client
        .get(&url(&server, "/from"), &mut Response::new())
        .unwrap();
    assert_eq!(further.requests().len(), 2);
    for request in further.requests() {
        assert!(request.header("authorization").is_empty());
    }
    // What the caller says goes before the URL.
    let mut request = Request::get(with(&other, "/"));
    request.header("Authorization", "Bearer own");
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(other.requests()[2].header("authorization"), ["Bearer own"]);
}

// ---- bodies, connections and time

#[test]
fn a_redirect_with_a_small_body_costs_no_connection() {
    let script = |request: &script::Request| {
        match request.target().as_str() {
        "/from" => {
            let body = "x".repeat(10_000);
            format!("HTTP/1.1 302 Found\r\nLocation: /to\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into()
        }
        "/chunked" => b"HTTP/1.1 302 Found\r\nLocation: /to\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".into(),
        _ => OK.into(),
    }
    };
    for streaming in [false, true] {
        let server = Server::answer(script);
        let mut client = any_client(following());
        for _ in 0..3 {
            let done = send(&mut client, Request::get(url(&server, "/from")), streaming);
            done.outcome.unwrap();
            assert_eq!(done.response.status(), 200);
            assert!(!streaming || done.response.body().is_empty() || done.response.body() == b"ok");
        }
        assert_eq!(server.accepted(), 1, "{streaming}");
        assert_none_left(client, [&server]);
    }
    // The length of a chunked body is not known before its end; the call does not depend on it.
    let server = Server::answer(script);
    let mut client = any_client(following());
    let done = send(&mut client, Request::get(url(&server, "/chunked")), true);
    done.outcome.unwrap();
    assert_none_left(client, [&server]);
}

#[test]
fn a_call_does_not_wait_for_the_body_of_a_redirect() {
    let endless = "HTTP/1.1 302 Found\r\nLocation: /to\r\n\r\n";
    let huge = "HTTP/1.1 302 Found\r\nLocation: /to\r\nContent-Length: 9999999999\r\n\r\n";
    let chunks = "HTTP/1.1 302 Found\r\nLocation: /to\r\nTransfer-Encoding: chunked\r\n\r\n";
    let small = "HTTP/1.1 302 Found\r\nLocation: /to\r\nContent-Length: 10\r\n\r\nabc";
    let (many, chunk) = ("x".repeat(10_000), "5\r\nxxxxx\r\n".repeat(1000));
    let cases = [
        (endless, Rest::Flood(&many)),
        (huge, Rest::Flood(&many)),
        (chunks, Rest::Flood(&chunk)),
        (endless, Rest::Silence),
        (huge, Rest::Silence),
        // Rests that are worth a short wait, and do not come.
        (small, Rest::Silence),
        (chunks, Rest::Silence),
        (chunks, Rest::Trickle(&chunk)),
    ];
    for (head, rest) in cases {
        for streaming in [false, true] {
            let never = Gate::new();
            let first = connection().request().send(head);
            let first = match rest {
                Rest::Flood(bytes) => first.flood(bytes),
                Rest::Trickle(bytes) => first.trickle(bytes),
                Rest::Silence => first.wait(&never),
            };
            let server = Server::play([first, connection().request().send(OK)]);
            let mut client = any_client(following());
            let request = Request::get(url(&server, "/from"));
            let done = send(&mut client, request, streaming);
            done.outcome.unwrap();
            assert_eq!(done.response.status(), 200);
            assert_eq!(server.served_by(), [0, 1]);
            never.open();
            assert_none_left(client, [&server]);
        }
    }
}

/// What a server sends after the head of a redirect.
#[derive(Clone, Copy)]
enum Rest<'a> {
    Flood(&'a str),
    Trickle(&'a str),
    Silence,
}

#[test]
fn a_call_does_not_mind_a_broken_body_of_a_redirect() {
    let head =
        |framing: &str| format!("HTTP/1.1 302 Found\r\nLocation: ../to\r\n{framing}\r\n\r\n");
    let broken = [
        (head("Content-Length: 10"), "abc"),
        (head("Content-Length: 10"), ""),
        (head("Transfer-Encoding: chunked"), "zz\r\n"),
        (head("Transfer-Encoding: chunked"), "3\r\nab"),
        (head("Content-Length: 3"), "abcdef"),
        (head("Content-Encoding: gzip\r\nContent-Length: 3"), "abc"),
    ];
    for (head, body) in broken {
        let gate = Gate::new();
        let at_once = connection().request().send(format!("{head}{body}")).close();
        let later = connection()
            .request()
            .send(&head)
            .wait(&gate)
            .send(body)
            .reset();
        for (script, streaming) in [
            (at_once.clone(), true),
            (later.clone(), true),
            (at_once, false),
            (later, false),
        ] {
            gate.open_for_all();
            let server = Server::play([script, connection().request().send(OK)]);
            let mut client = any_client(following());
            let mut request = Request::get(url(&server, "/from/a/b"));
            request.decode(courser::Codings::all());
            let done = send(&mut client, request, streaming);
            assert!(done.outcome.is_ok(), "{head}{body}: {done:?}");
            assert_eq!(server.requests()[1].target(), "/from/to", "{head}{body}");
            assert_eq!(
                (done.report.redirects().len(), done.response.status()),
                (1, 200)
            );
            assert_eq!(server.accepted(), 2);
            assert!(client.wait(Some(Duration::ZERO)).unwrap().is_none());
            assert_none_left(client, [&server]);
        }
    }
}

/// What a server writes is shown, but never as it is, and not all of it.
#[test]
fn a_bad_location_is_shown_shortened_and_escaped() {
    let location = format!("http://a b\u{85}\u{202e}{}/", "x".repeat(5000));
    let server = leading(302, location);
    let mut client = any_client(following());
    let error = client
        .get(&url(&server, "/from"), &mut Response::new())
        .unwrap_err();
    let shown = error.what().to_string();
    assert!(shown.starts_with(r#"the server redirected to "http://a b\u{85}"#));
    assert!(shown.len() < 400, "{shown}");
    assert!(!shown.contains('\u{85}') && !shown.contains('\u{202e}'));
    assert_none_left(client, [&server]);
}

#[test]
fn a_redirect_that_cannot_be_followed_ends_a_streamed_call_once() {
    let head = "HTTP/1.1 302 Found\r\nLocation: ftp://h/\r\n";
    for rest in [
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 2\r\n\r\nok",
        "Content-Length: 9\r\n\r\nok",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let server = Server::every(connection().request().send(format!("{head}{rest}")).close());
        let mut client = any_client(following());
        // What one call leaves behind, another one would meet.
        for tag in 0..3 {
            let request = Request::get(url(&server, "/from"));
            let call = Call::new(request, Response::new()).streaming(true).tag(tag);
            let done = run_call(&mut client, call);
            assert_eq!(done.tag, tag);
            let error = done.outcome.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Location { .. }),
                "{error:?}"
            );
        }
        assert_none_left(client, [&server]);
    }
}
