//! What a request looks like on the wire. More of it, and what of a response is shown, is in `engine/src/proto/tests.rs`.

use courser::{ErrorKind, HostClient, HostConfig, Request, Response, Upstream};
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
fn w02_the_user_agent_is_the_engine_unless_told_otherwise() {
    let server = Server::every(connection().always(OK));
    let nameless = HostConfig {
        user_agent: None,
        ..config()
    };
    let mut response = Response::new();
    client(&server).get("/", &mut response).unwrap();
    client_with(&server, nameless)
        .get("/", &mut response)
        .unwrap();
    let seen = server.requests();
    assert!(seen[0].header("User-Agent")[0].starts_with("courser/"));
    assert!(seen[1].header("User-Agent").is_empty());
}

#[test]
fn w08b_an_upstream_s_host_is_checked_too() {
    let server = Server::every(connection().always(OK));
    let upstream = Upstream::tcp([server.address()]).with_host("a\r\nX: y");
    let refused = HostClient::new(upstream, config())
        .and_then(|mut client| client.get("/", &mut Response::new()))
        .unwrap_err();
    assert_kind!(refused, ErrorKind::Misuse(_));
    assert_eq!(server.accepted(), 0);
}
