//! What a request looks like on the wire, and what of a response is shown to the caller.

use std::io;

use courser::{
    ErrorKind, HostClient, HostConfig, Misuse, Part, Request, Response, Sent, Upstream, Version,
};
use tests::clients::{assert_nothing_left, client, client_with, config};
use tests::script::{Server, connection};

use super::OK;

#[test]
fn w01_the_exact_bytes_of_a_request() {
    let server = Server::every(connection().always(OK));
    let upstream = Upstream::tcp([server.address()]).with_host("foobar");
    let config = HostConfig {
        user_agent: Some("ua/1".to_owned()),
        ..config()
    };
    let mut client = HostClient::new(upstream, config).unwrap();
    let mut request = Request::post("/a/b", "test");
    request
        .header("content-TYPE", "text/plain")
        .header("X-A", "");
    let mut response = Response::new();
    for _ in 0..2 {
        client.call(&mut request, &mut response).unwrap();
    }
    let expected = "POST /a/b HTTP/1.1\r\nHost: foobar\r\nUser-Agent: ua/1\r\n\
        content-TYPE: text/plain\r\nX-A: \r\nContent-Length: 4\r\n\r\ntest";
    for request in server.requests() {
        assert_eq!(String::from_utf8_lossy(&request.bytes), expected);
    }
    client.get("/", &mut response).unwrap();
    assert_eq!(
        server.requests()[2].head(),
        "GET / HTTP/1.1\r\nHost: foobar\r\nUser-Agent: ua/1\r\n\r\n"
    );
    assert_nothing_left(client, &server);
}

#[test]
fn w01b_host_is_the_upstream_s_address_unless_told() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    client.get("/", &mut Response::new()).unwrap();
    let host = server.address().to_string();
    assert_eq!(server.requests()[0].header("Host"), [host]);
    assert_nothing_left(client, &server);
}

#[test]
fn w02_user_agent_default_own_per_request_and_none() {
    let server = Server::every(connection().always(OK));
    let mut response = Response::new();
    let mut with_default = client(&server);
    with_default.get("/", &mut response).unwrap();
    let default = server.requests()[0].header("User-Agent");
    assert_eq!(default.len(), 1);
    assert!(default[0].starts_with("courser/"), "{default:?}");

    let own = |name: Option<&str>| HostConfig {
        user_agent: name.map(str::to_owned),
        ..config()
    };
    let mut named = client_with(&server, own(Some("I'm not courser")));
    named.get("/", &mut response).unwrap();
    named
        .call(
            Request::get("/").header("user-agent", "mine"),
            &mut response,
        )
        .unwrap();
    named
        .call(Request::get("/").no_user_agent(), &mut response)
        .unwrap();
    let mut nameless = client_with(&server, own(None));
    nameless.get("/", &mut response).unwrap();
    let agents: Vec<Vec<String>> = server.requests()[1..]
        .iter()
        .map(|request| request.header("User-Agent"))
        .collect();
    assert_eq!(agents[0], ["I'm not courser"]);
    assert_eq!(agents[1], ["mine"]);
    assert!(agents[2].is_empty() && agents[3].is_empty(), "{agents:?}");
}

#[test]
fn w03_headers_query_and_body_arrive() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let mut request = Request::post("/foo/bar/baz?a=b&cd=12", "body");
    request
        .header("Foo", "bar")
        .header("Host", "foobar.com")
        .header("Content-Type", "application/x")
        .header("a-b-c-d-f", "");
    client.call(&mut request, &mut Response::new()).unwrap();
    let seen = &server.requests()[0];
    assert_eq!(seen.line(), "POST /foo/bar/baz?a=b&cd=12 HTTP/1.1");
    assert_eq!(seen.header("Foo"), ["bar"]);
    assert_eq!(seen.header("Host"), ["foobar.com"]);
    assert_eq!(seen.header("Content-Type"), ["application/x"]);
    assert_eq!(seen.header("a-b-c-d-f"), [""]);
    assert_eq!(seen.header("Content-Length"), ["4"]);
    assert_eq!(seen.body(), b"body");
    assert_nothing_left(client, &server);
}

#[test]
fn w03b_content_length_stands_where_a_body_is_expected() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    for (method, body, expected) in [
        ("GET", None, None),
        ("DELETE", None, None),
        ("POST", None, Some("0")),
        ("PUT", Some(""), Some("0")),
        ("PATCH", Some("x"), Some("1")),
    ] {
        let mut request = Request::new(method, "/");
        if let Some(body) = body {
            request.body(body);
        }
        client.call(&mut request, &mut Response::new()).unwrap();
        let seen = server.requests().pop().unwrap();
        let length = seen.header("Content-Length").pop();
        assert_eq!(length.as_deref(), expected, "{method}");
        assert!(seen.header("Transfer-Encoding").is_empty());
    }
    assert_nothing_left(client, &server);
}

#[test]
fn w04_a_get_may_have_a_body() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    client
        .call(Request::get("/").body("of a GET"), &mut Response::new())
        .unwrap();
    assert_eq!(server.requests()[0].body(), b"of a GET");
    assert_nothing_left(client, &server);
}

#[test]
fn w05_bodies_from_streams_are_framed_by_length_or_chunks() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let mut sized = Request::new("POST", "/");
    sized.body_stream(io::Cursor::new("0123456789"), Some(10));
    client.call(&mut sized, &mut Response::new()).unwrap();
    let mut chunked = Request::new("POST", "/");
    chunked.body_stream(io::Cursor::new("0123456789"), None);
    chunked.trailer("X-Sum", "45");
    client.call(&mut chunked, &mut Response::new()).unwrap();
    let seen = server.requests();
    assert_eq!(seen[0].header("Content-Length"), ["10"]);
    assert_eq!(seen[0].body(), b"0123456789");
    assert_eq!(seen[1].header("Transfer-Encoding"), ["chunked"]);
    assert_eq!(seen[1].header("Trailer"), ["X-Sum"]);
    assert!(seen[1].header("Content-Length").is_empty());
    let body = String::from_utf8_lossy(seen[1].body());
    let (size, rest) = body.split_once("\r\n").unwrap();
    assert_eq!(usize::from_str_radix(size, 16).unwrap(), 10);
    assert_eq!(rest, "0123456789\r\n0\r\nX-Sum: 45\r\n\r\n");
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn w08_bytes_that_would_end_a_line_are_refused_in_every_part() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    for bad in [
        "a\rb",
        "a\nb",
        "a\0b",
        "a\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
    ] {
        let mut header_name = Request::get("/");
        header_name.header(bad, "x");
        let mut header_value = Request::get("/");
        header_value.header("X", bad);
        let mut host = Request::get("/");
        host.header("Host", bad);
        let mut agent = Request::get("/");
        agent.header("User-Agent", bad);
        let mut trailer_value = Request::new("POST", "/");
        trailer_value
            .body_stream(io::empty(), None)
            .trailer("X", bad);
        let mut trailer_name = Request::new("POST", "/");
        trailer_name
            .body_stream(io::empty(), None)
            .trailer(bad, "x");
        let cases = [
            (Part::Method, Request::new(bad, "/")),
            (Part::Target, Request::get(format!("/{bad}"))),
            (Part::HeaderName, header_name),
            (Part::HeaderValue, header_value),
            (Part::Host, host),
            (Part::UserAgent, agent),
            (Part::TrailerName, trailer_name),
            (Part::TrailerValue, trailer_value),
        ];
        for (expected, mut request) in cases {
            let error = client.call(&mut request, &mut Response::new()).unwrap_err();
            match error.kind() {
                ErrorKind::Misuse(Misuse::Invalid { part, .. }) => assert_eq!(*part, expected),
                other => panic!("{expected} {bad:?}: {other:?}"),
            }
            assert_eq!(error.sent(), Sent::Nothing);
        }
    }
    assert_eq!(client.counters().opened, 0);
    assert_nothing_left(client, &server);
    assert_eq!(server.accepted(), 0);
}

#[test]
fn w08b_an_upstream_s_host_is_checked_too() {
    let server = Server::every(connection().always(OK));
    let upstream = Upstream::tcp([server.address()]).with_host("a\r\nX: y");
    let refused = HostClient::new(upstream, config())
        .and_then(|mut client| client.get("/", &mut Response::new()))
        .unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Misuse(_)),
        "{refused:?}"
    );
    assert_eq!(server.accepted(), 0);
}

#[test]
fn w09_framing_headers_are_the_engine_s_business() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    for (name, value) in [("content-length", "5"), ("Transfer-Encoding", "chunked")] {
        let mut request = Request::post("/", "test");
        request.header(name, value);
        let error = client.call(&mut request, &mut Response::new()).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Misuse(Misuse::FramingHeader(_))),
            "{error:?}"
        );
    }
    assert_nothing_left(client, &server);
    assert_eq!(server.accepted(), 0);
}

#[test]
fn w11_response_names_keep_their_case_and_are_found_in_any() {
    let reply = "HTTP/1.1 200 OK\r\nfoo-BAR: baz\r\nFOO-bar: second\r\nContent-Length: 0\r\n\r\n";
    let server = Server::every(connection().always(reply));
    let mut client = client(&server);
    let (mut request, mut response) = (Request::get("/"), Response::new());
    for _ in 0..5 {
        client.call(&mut request, &mut response).unwrap();
        let names: Vec<&str> = response.headers().map(|(name, _)| name).collect();
        assert_eq!(names, ["foo-BAR", "FOO-bar", "Content-Length"]);
        assert_eq!(response.header("Foo-Bar"), Some(&b"baz"[..]));
        assert_eq!(response.header_all("foo-bar").count(), 2);
        assert_eq!(response.head(), reply.as_bytes());
    }
    assert_nothing_left(client, &server);
}

#[test]
fn w11b_lower_case_framing_headers_and_chunks_in_one_write() {
    let (first, second) = ("x".repeat(0x24), "y".repeat(0x1b));
    let reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n\
         24\r\n{first}\r\n1b\r\n{second}\r\n0\r\n\r\n"
    );
    let server = Server::every(connection().always(reply));
    let mut client = client(&server);
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    assert_eq!(response.body(), format!("{first}{second}").as_bytes());
    assert_eq!(client.counters().idle, 1);
    assert_nothing_left(client, &server);
}

#[test]
fn w12_targets_go_out_byte_for_byte() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let mut request = Request::get("");
    let targets = [
        "/encoded/Y%2BY%2FY%3D/stuff",
        "/a//b/../c/./d",
        "/%7Euser/~user",
        "/?",
        "/?a=%20+&b",
        "/%zz%",
        "/;p=1,2",
    ];
    for target in targets {
        request.set_target(target);
        client.call(&mut request, &mut Response::new()).unwrap();
        assert_eq!(server.requests().pop().unwrap().target(), target);
    }
    request.set_target("");
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(server.requests().pop().unwrap().target(), "/");
    request.set_method("OPTIONS").set_target("*");
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(
        server.requests().pop().unwrap().line(),
        "OPTIONS * HTTP/1.1"
    );
    assert_nothing_left(client, &server);
}

#[test]
fn w14_the_report_names_both_ends() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let first = client.get("/", &mut Response::new()).unwrap();
    let second = client.get("/", &mut Response::new()).unwrap();
    let address = server.address().to_string();
    assert_eq!(first.remote().as_ref().unwrap().to_string(), address);
    let local = first.local().as_ref().unwrap().to_string();
    assert!(
        local.starts_with("127.0.0.1:") && local != address,
        "{local}"
    );
    assert_eq!(second.local().unwrap().to_string(), local);
    assert!(!first.reused() && second.reused());
    assert!(first.timings().connect.is_some() && second.timings().connect.is_none());
    assert_nothing_left(client, &server);
}

#[test]
fn w16_version_reason_and_code_are_shown_as_sent() {
    let replies: [(&[u8], u16, Version, &[u8]); 4] = [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            200,
            Version::Http11,
            b"OK",
        ),
        (
            b"HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n",
            404,
            Version::Http11,
            b"",
        ),
        (
            b"HTTP/1.0 599 \tm\xe9h?\r\nContent-Length: 0\r\n\r\n",
            599,
            Version::Http10,
            b"\tm\xe9h?",
        ),
        (
            b"HTTP/1.1 999 Blocked\r\nContent-Length: 0\r\n\r\n",
            999,
            Version::Http11,
            b"Blocked",
        ),
    ];
    for (reply, status, version, reason) in replies {
        let server = Server::play([connection().request().send(reply)]);
        let mut client = client(&server);
        let mut response = Response::new();
        client.get("/", &mut response).unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.version(), version);
        assert_eq!(response.reason(), reason);
        assert_nothing_left(client, &server);
    }
}
