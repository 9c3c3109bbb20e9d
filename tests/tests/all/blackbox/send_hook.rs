//! What a program adds before each send: on each hop, at each attempt, after 401.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use courser::{
    Call, ErrorKind, HostConfig, Misuse, PipelineClient, PipelineConfig, Redirects, Request,
    Response, SendHook, Upstream,
};
use tests::clients::{
    any_client, any_config, assert_none_left, assert_nothing_left, client_with, config, run_any,
};
use tests::script::{PATIENCE, Server, connection};

use super::OK;

const DENIED: &str =
    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 5\r\n\r\nnever";

fn numbering() -> SendHook {
    let sent = AtomicUsize::new(0);
    SendHook::new(move |outgoing| {
        outgoing.set_header("X-Sent", sent.fetch_add(1, SeqCst).to_string());
        Ok(())
    })
}

fn hooked(hook: SendHook) -> HostConfig {
    HostConfig {
        send_hook: Some(hook),
        ..config()
    }
}

fn sent(server: &Server) -> Vec<String> {
    let requests = server.requests();
    requests.iter().flat_map(|it| it.header("X-Sent")).collect()
}

#[test]
fn each_send_has_its_own_headers() {
    // The first connection ends without an answer to its second request, which is sent again on another connection.
    let server = Server::play([
        connection().request().send(OK).request().close(),
        connection().request().send(OK).times(3),
    ]);
    let mut client = client_with(&server, hooked(numbering()));
    let mut response = Response::new();
    let mut request = Request::get("/");
    request.header("X-Sent", "by the caller");
    for _ in 0..3 {
        client.call(&mut request, &mut response).unwrap();
    }
    assert_eq!(sent(&server), ["0", "1", "2", "3"]);
    assert_eq!(request.header_value("x-sent"), Some(&b"by the caller"[..]));

    // Another client sends what the caller has set.
    let other = Server::answer(|_| OK.into());
    let mut plain = client_with(&other, config());
    plain.call(&mut request, &mut response).unwrap();
    assert_eq!(sent(&other), ["by the caller"]);
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(sent(&server).last().unwrap(), "4");
    assert_nothing_left(plain, &other);
    assert_nothing_left(client, &server);
}

#[test]
fn a_redirect_carries_no_header_of_the_hook_on() {
    let other = Server::answer(|_| OK.into());
    let to = format!("http://{}/to", other.address());
    let moved = format!("HTTP/1.1 303 See\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let server = Server::answer(move |_| moved.clone().into());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut config = any_config();
    config.redirects = Redirects::limit(3);
    config.host.send_hook = Some(SendHook::new({
        let seen = Arc::clone(&seen);
        move |outgoing| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            let headers = ["Content-Type", "cookie", "x-plain"];
            let headers = headers.map(|name| outgoing.header(name).map_or("-".into(), text));
            seen.lock().unwrap().push(format!(
                "{} {} {} {:?} {} {}",
                outgoing.method(),
                outgoing.url(),
                text(outgoing.host()),
                outgoing.body().map(<[u8]>::len),
                outgoing.attempt(),
                headers.join(" ")
            ));
            if !outgoing.is_other_origin() {
                outgoing.set_header("Authorization", "Signed 1");
                assert_eq!(outgoing.header("authorization"), Some(&b"Signed 1"[..]));
            }
            Ok(())
        }
    }));
    let mut client = any_client(config);
    // The user of the URL would be sent as `Authorization`, which the hook replaces.
    let from = format!("http://user:word@{}/from", server.address());
    let mut request = Request::post(&from, "body");
    request
        .header("Content-Type", "text/plain")
        .header("Cookie", "a=b")
        .header("X-Plain", "1");
    client.call(&mut request, &mut Response::new()).unwrap();
    let (here, there) = (server.address(), other.address());
    assert_eq!(
        *seen.lock().unwrap(),
        [
            format!("POST {from} {here} Some(4) 0 text/plain a=b 1"),
            format!("GET {to} {there} Some(0) 1 - - 1"),
        ]
    );
    assert_eq!(server.requests()[0].header("Authorization"), ["Signed 1"]);
    assert!(other.requests()[0].header("Authorization").is_empty());
    assert_none_left(client, [&server, &other]);
}

#[test]
fn what_a_hook_cannot_set_fails_the_call() {
    let server = Server::answer(|_| OK.into());
    let fixed = [
        "Host",
        "user-agent",
        "Connection",
        "Upgrade",
        "Content-Length",
        "transfer-encoding",
        "Trailer",
        "Expect",
        "Accept-Encoding",
        "Range",
        "Cookie",
        "Proxy-Authorization",
    ];
    let set = |name: &'static str, value: &'static str| {
        let hook = SendHook::new(move |outgoing| {
            outgoing.set_header(name, value).set_header("X-Fine", "1");
            Ok(())
        });
        let error = client_with(&server, hooked(hook)).get("/", &mut Response::new());
        error.unwrap_err().to_string()
    };
    for name in fixed {
        let error = set(name, "x").to_lowercase();
        let end = format!("{} cannot be set by a send hook", name.to_lowercase());
        assert!(error.ends_with(&end), "{error}");
    }
    // No second header.
    assert!(set("X-A", "b\r\nX-C: d").contains("invalid byte 0x0d"));
    assert!(set("X A", "b").contains("a header name"));
    assert!(set("", "b").contains("a header name is empty"));

    let refusing = SendHook::new(|outgoing| match outgoing.url() {
        "/secret" => Err(io::Error::other("no key")),
        _ => Ok(()),
    });
    let mut client = client_with(&server, hooked(refusing));
    let error = client.get("/secret", &mut Response::new()).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::SendHook(cause)) if cause.to_string() == "no key");
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.lines(), ["GET / HTTP/1.1"]);
    assert_nothing_left(client, &server);
}

/// A hook that sends a token, and takes the next one after each 401; and how often it was asked.
fn tokens() -> (SendHook, Arc<AtomicUsize>) {
    let (token, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let hook = SendHook::new({
        let token = Arc::clone(&token);
        move |outgoing| {
            outgoing.set_header("X-Sent", token.load(SeqCst).to_string());
            Ok(())
        }
    });
    let count = Arc::clone(&asked);
    let hook = hook.on_unauthorized(move |_, response| {
        assert_eq!(response.header("www-authenticate"), Some(&b"Bearer"[..]));
        count.fetch_add(1, SeqCst);
        token.fetch_add(1, SeqCst);
        true
    });
    (hook, asked)
}

#[test]
fn status_401_is_asked_about_once() {
    let (hook, asked) = tokens();
    let server = Server::answer(|request| match request.header("X-Sent")[0].as_str() {
        "1" => OK.into(),
        _ => DENIED.into(),
    });
    let mut client = client_with(&server, hooked(hook));
    let mut response = Response::new();
    let report = client
        .call(&mut Request::post("/", "a body"), &mut response)
        .unwrap();
    assert_eq!((response.status(), report.attempts()), (200, 2));
    assert_eq!(sent(&server), ["0", "1"]);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.body() == b"a body")
    );
    client.get("/", &mut response).unwrap();
    assert_eq!(asked.load(SeqCst), 1, "the token is kept");

    // A token that does not help: the caller gets the second answer.
    let mut refused = Server::answer(|_| DENIED.into());
    let mut client = client_with(&refused, hooked(tokens().0));
    client.get("/", &mut response).unwrap();
    assert_eq!((response.status(), response.body()), (401, &b"never"[..]));
    assert_eq!(sent(&refused), ["0", "1"]);
    client.get("/", &mut response).unwrap();
    assert_eq!(sent(&refused), ["0", "1", "1", "2"], "once for each call");
    assert_nothing_left(client, &refused);

    // A body that can be sent only once.
    refused = Server::answer(|_| DENIED.into());
    let (hook, asked) = tokens();
    let mut client = client_with(&refused, hooked(hook));
    let mut request = Request::post("/", "");
    request.body_stream(io::Cursor::new("once"), Some(4));
    client.call(&mut request, &mut response).unwrap();
    assert_eq!((response.status(), asked.load(SeqCst)), (401, 0));
    assert_nothing_left(client, &refused);
}

#[test]
fn a_streamed_401_is_left_unread() {
    let (hook, _) = tokens();
    let endless = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 9999999\r\n\r\nnever";
    let server = Server::play([
        connection().request().send(endless),
        connection().request().send(OK),
    ]);
    let mut client = client_with(&server, hooked(hook));
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let body = client.open(&mut request, &mut response).unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(io::read_to_string(body).unwrap(), "ok");
    server.wait_ended(1);
    assert_nothing_left(client, &server);
}

#[test]
fn each_url_of_a_call_has_its_own_401() {
    let (hook, asked) = tokens();
    let server = Server::answer(|request| {
        let token = request.header("X-Sent").remove(0);
        match (request.target().as_str(), token.as_str()) {
            ("/a", "1") => {
                b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n".to_vec()
            }
            ("/b", "2") => OK.into(),
            _ => DENIED.into(),
        }
    });
    let mut config = any_config();
    config.redirects = Redirects::limit(3);
    config.host.send_hook = Some(hook);
    let mut client = any_client(config);
    let request = Request::get(format!("http://{}/a", server.address()));
    let done = run_any(&mut client, [Call::new(request, Response::new())]);
    assert_eq!(done[0].response.status(), 200);
    assert_eq!(sent(&server), ["0", "1", "1", "2"]);
    assert_eq!(asked.load(SeqCst), 2);
    assert_none_left(client, [&server]);
}

#[test]
fn many_calls_at_once_have_headers_of_their_own() {
    let server = Server::answer(|request| super::response(request.header("X-Sent").remove(0)));
    let by_target = SendHook::new(|outgoing| {
        let target = outgoing.url().to_owned();
        outgoing.set_header("X-Sent", target);
        Ok(())
    });
    let config = PipelineConfig {
        host: hooked(by_target),
        ..PipelineConfig::default()
    };
    let upstream = Upstream::tcp([server.address()]);
    let mut client = PipelineClient::new(upstream, config).unwrap();
    for n in 0..100 {
        client.submit(Call::new(Request::get(format!("/{n}")), Response::new()));
    }
    let mut ended = 0;
    while let Some(done) = client.wait(Some(PATIENCE)).unwrap() {
        done.outcome.unwrap();
        assert_eq!(done.response.body(), done.request.target().as_bytes());
        ended += 1;
    }
    assert_eq!(ended, 100);
}
