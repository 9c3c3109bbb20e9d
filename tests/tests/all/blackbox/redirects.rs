//! Redirects (RFC 9110 §15.4), from the first request to what the last server sees. Where a `Location` leads is in
//! `engine/src/proto/location.rs`; what stays with its origin is in `tls.rs`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::{
    Call, Client, Completion, Config, ErrorKind, Observer, ObserverEvent, Phase, Redirects,
    Request, Response, Sent,
};
use tests::clients::{any_client, any_config, assert_none_left};
use tests::script::{Gate, PATIENCE, Server, connection};

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

    // What a server writes is shown, but never as it is, and not all of it.
    let wild = format!("http://a b\u{85}\u{202e}{}/", "x".repeat(5000));
    let with_password = "http://user:secret@256.256.256.256/";
    for location in ["ftp://127.0.0.1/x", with_password, &wild] {
        let server = leading(302, location);
        let mut client = any_client(following());
        let request = Request::get(url(&server, "/from"));
        let done = run_call(&mut client, Call::new(request, Response::new()));
        let error = done.outcome.as_ref().unwrap_err();
        // The server is to blame, not the caller.
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::Location { .. }), "{error:?}");
        let shown = format!("{error:?} {error}");
        assert!(!shown.contains(['\u{85}', '\u{202e}']) && !shown.contains("secret"));
        assert!(error.what().to_string().len() < 400, "{shown}");
        assert_eq!((error.phase(), error.sent()), (Phase::Head, Sent::Partial));
        let (address, remote) = (server.address(), error.remote());
        assert_eq!(remote.map(ToString::to_string), Some(address.to_string()));
        let io = std::io::Error::from(done.outcome.unwrap_err());
        assert_eq!(io.kind(), std::io::ErrorKind::InvalidData);
        // What has come is there to look at.
        assert_eq!(done.response.status(), 302, "{location}");
        assert_eq!(server.requests().len(), 1);
        assert_none_left(client, [&server]);
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
    let target = format!("http://{there}/");
    // Given by the URL, kept on the same server, and told to no other; a server may give credentials for itself alone.
    let given = |server: &Server| format!("http://user:pass@{}/from", server.address());
    let to_itself = Server::answer(|request| match request.target().as_str() {
        "/from" => {
            let host = request.header("host").remove(0);
            moved(302, &format!("http://user:pass@{host}/to"))
        }
        _ => OK.into(),
    });
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
    let (here, away) = (leading(302, "/to"), leading(302, &*target));
    let with_password = leading(302, format!("http://user:pass@{there}/"));
    let from = |server: &Server| url(server, "/from");
    for (server, from, at_first, at_last, to) in [
        (&here, given(&here), 1, 1, url(&here, "/to")),
        (&away, given(&away), 1, 0, target.clone()),
        (&to_itself, from(&to_itself), 0, 1, url(&to_itself, "/to")),
        (&with_password, from(&with_password), 0, 0, target.clone()),
    ] {
        let report = client.get(&from, &mut Response::new()).unwrap();
        assert_eq!(&*report.redirects()[0].url, to);
        assert_eq!(told.lock().unwrap().pop(), Some(to.clone()));
        let seen = server.requests();
        let last = seen.get(1).cloned();
        let last = last.unwrap_or_else(|| other.requests().pop().unwrap());
        assert_eq!(seen[0].header("authorization"), vec![BASIC; at_first]);
        assert_eq!(last.header("authorization"), vec![BASIC; at_last], "{to}");
    }
    // Nor on the steps after that.
    let further = leading(302, "/to");
    let at = further.address();
    let server = leading(302, format!("http://user:pass@{at}/from"));
    client.get(&from(&server), &mut Response::new()).unwrap();
    assert_eq!(further.requests().len(), 2);
    for request in further.requests() {
        assert!(request.header("authorization").is_empty());
    }
    // What the caller says goes before the URL.
    let mut request = Request::get(format!("http://user:pass@{there}/"));
    request.header("Authorization", "Bearer own");
    client.call(&mut request, &mut Response::new()).unwrap();
    let seen = other.requests().pop().unwrap();
    assert_eq!(seen.header("authorization"), ["Bearer own"]);
    // The URL of one call says nothing for the next one.
    request.remove_header("Authorization").set_target(&target);
    client.call(&mut request, &mut Response::new()).unwrap();
    let seen = other.requests().pop().unwrap();
    assert!(seen.header("authorization").is_empty());
}

// ---- bodies, connections and time

#[test]
fn a_redirect_with_a_small_body_costs_no_connection() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /to\r\n";
    let body = "x".repeat(10_000);
    let with_length = format!("{moved}Content-Length: 10000\r\n\r\n{body}");
    let chunked = format!("{moved}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    let server = Server::answer(move |request| match request.target().as_str() {
        "/from" => with_length.clone().into(),
        "/chunked" => chunked.clone().into(),
        _ => OK.into(),
    });
    for streaming in [false, true] {
        let mut client = any_client(following());
        let before = server.accepted();
        for _ in 0..3 {
            let done = send(&mut client, Request::get(url(&server, "/from")), streaming);
            done.outcome.unwrap();
            assert_eq!(done.response.status(), 200);
        }
        assert_eq!(server.accepted(), before + 1, "{streaming}");
        // The length of a chunked body is not known before its end; the call does not depend on it.
        let done = send(&mut client, Request::get(url(&server, "/chunked")), true);
        done.outcome.unwrap();
        assert_none_left(client, [&server]);
    }
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
        (chunks, Rest::Flood(&chunk)),
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
        let begun = || connection().request().send(&head);
        let (at_once, later) = (begun().send(body).close(), begun().wait(&gate).send(body));
        let later = later.reset();
        for (script, streaming) in [
            (&at_once, false),
            (&at_once, true),
            (&later, false),
            (&later, true),
        ] {
            gate.open_for_all();
            let server = Server::play([script.clone(), connection().request().send(OK)]);
            let mut client = any_client(following());
            let mut request = Request::get(url(&server, "/from/a/b"));
            request.decode(courser::Codings::all());
            let done = send(&mut client, request, streaming);
            assert!(done.outcome.is_ok(), "{head}{body}: {done:?}");
            assert_eq!(server.requests()[1].target(), "/from/to", "{head}{body}");
            assert_eq!(done.report.redirects().len(), 1);
            assert_eq!((done.response.status(), server.accepted()), (200, 2));
            assert!(client.wait(Some(Duration::ZERO)).unwrap().is_none());
            assert_none_left(client, [&server]);
        }
    }
}

#[test]
fn a_redirect_that_cannot_be_followed_ends_a_streamed_call_once() {
    let head = "HTTP/1.1 302 Found\r\nLocation: ftp://h/\r\n";
    for rest in [
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
            assert_kind!(error, ErrorKind::Location { .. });
        }
        assert_none_left(client, [&server]);
    }
}
