//! What a program adds before each send: on each hop, at each attempt, after 401.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use courser::net::sim::{Peer, SimNet};
use courser::{
    Call, Config, ErrorKind, HostClient, HostConfig, Misuse, PipelineClient, PipelineConfig,
    Redirects, Request, Response, SendHook,
};

use super::{
    Heard, Script, client_of, field, hear, host_client, near, place, rest, target, told, upstream,
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const DENIED: &str =
    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 5\r\n\r\nnever";

fn client(net: &SimNet, send_hook: Option<SendHook>) -> HostClient<SimNet> {
    let config = HostConfig {
        send_hook,
        ..HostConfig::default()
    };
    host_client(net, config)
}

fn sent(heard: &Heard) -> Vec<String> {
    let told = told(heard, "X-Sent").into_iter();
    told.filter_map(|(_, value)| value).collect()
}

#[test]
fn each_send_has_its_own_headers() {
    let (net, count) = (SimNet::new(1), AtomicUsize::new(0));
    // The second request ends its connection, and is sent again on another one.
    let heard = {
        let came = Arc::new(AtomicUsize::new(0));
        hear(&net, 1, move |peer, _| match came.fetch_add(1, SeqCst) {
            1 => peer.close(),
            _ => peer.send(OK),
        })
    };
    let numbering = SendHook::new(move |outgoing| {
        outgoing.set_header("X-Sent", count.fetch_add(1, SeqCst).to_string());
        Ok(())
    });
    let mut hooked = client(&net, Some(numbering));
    let mut response = Response::new();
    let mut request = Request::get("/");
    request.add_header("X-Sent", "by the caller");
    for _ in 0..3 {
        hooked.call(&mut request, &mut response).unwrap();
    }
    assert_eq!(sent(&heard), ["0", "1", "2", "3"]);
    assert_eq!(request.header("x-sent"), Some(&b"by the caller"[..]));
    // Another client sends what the caller has set.
    client(&net, None)
        .call(&mut request, &mut response)
        .unwrap();
    hooked.call(&mut request, &mut response).unwrap();
    assert_eq!(sent(&heard)[4..], ["by the caller", "4"]);
}

#[test]
fn a_redirect_carries_no_header_of_the_hook_on() {
    let net = SimNet::new(1);
    let heard = hear(&net, 2, |peer, head| {
        peer.send(match target(head) {
            "/from" => "HTTP/1.1 303 See\r\nLocation: http://2.sim/to\r\nContent-Length: 0\r\n\r\n",
            _ => OK,
        });
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut config = Config {
        redirects: Redirects::limit(3),
        ..Config::default()
    };
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
    let mut client = client_of(&net, config);
    // The user of the URL would be sent as `Authorization`, which the hook replaces.
    let mut request = Request::post("http://user:word@1.sim/from", "body");
    request
        .add_header("Content-Type", "text/plain")
        .add_header("Cookie", "a=b")
        .add_header("X-Plain", "1");
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "POST http://user:word@1.sim/from 1.sim Some(4) 0 text/plain a=b 1",
            "GET http://2.sim/to 2.sim Some(0) 1 - - 1",
        ]
    );
    let signed = Some("Signed 1".to_owned());
    assert_eq!(told(&heard, "authorization"), [(1, signed), (2, None)]);
}

#[test]
fn what_a_hook_cannot_set_fails_the_call() {
    let net = SimNet::new(1);
    let heard = hear(&net, 1, |peer, _| peer.send(OK));
    let fixed = "Host user-agent Connection Upgrade Content-Length transfer-encoding Trailer Expect Accept-Encoding Range Cookie Proxy-Authorization";
    let set = |name: &'static str, value: &'static str| {
        let hook = SendHook::new(move |outgoing| {
            outgoing.set_header(name, value).set_header("X-Fine", "1");
            Ok(())
        });
        let error = client(&net, Some(hook)).get("/", &mut Response::new());
        error.unwrap_err().to_string()
    };
    for name in fixed.split(' ') {
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
    let mut client = client(&net, Some(refusing));
    let error = client.get("/secret", &mut Response::new()).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::SendHook(cause)) if cause.to_string() == "no key");
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(heard.borrow().len(), 1);
}

/// A hook that sends a token, and takes the next one after each 401; and how often it was asked.
fn tokens() -> (SendHook, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let (token, count) = (Arc::clone(&asked), Arc::clone(&asked));
    let hook = SendHook::new(move |outgoing| {
        outgoing.set_header("X-Sent", token.load(SeqCst).to_string());
        Ok(())
    });
    let hook = hook.on_unauthorized(move |_, response| {
        assert_eq!(response.header("www-authenticate"), Some(&b"Bearer"[..]));
        count.fetch_add(1, SeqCst);
        true
    });
    (hook, asked)
}

#[test]
fn status_401_is_asked_about_once() {
    let net = SimNet::new(1);
    let heard = hear(&net, 1, |peer, head| {
        peer.send(match field(head, "X-Sent").as_deref() {
            Some("1") => OK,
            _ => DENIED,
        });
    });
    let (hook, asked) = tokens();
    let mut hooked = client(&net, Some(hook));
    let mut response = Response::new();
    let mut request = Request::post("/", "a body");
    let report = hooked.call(&mut request, &mut response).unwrap();
    assert_eq!((response.status(), report.attempts()), (200, 2));
    hooked.get("/", &mut response).unwrap();
    assert_eq!(sent(&heard), ["0", "1", "1"]);
    assert_eq!(asked.load(SeqCst), 1, "the token is kept");
    let bodies = heard.borrow();
    assert!(bodies[..2].iter().all(|(_, text)| text.ends_with("a body")));

    // A token that does not help: the caller gets the second answer.
    let net = SimNet::new(1);
    let heard = hear(&net, 1, |peer, _| peer.send(DENIED));
    let mut hooked = client(&net, Some(tokens().0));
    for _ in 0..2 {
        hooked.get("/", &mut response).unwrap();
        assert_eq!((response.status(), response.body()), (401, &b"never"[..]));
    }
    assert_eq!(sent(&heard), ["0", "1", "1", "2"], "once for each call");

    // A body that can be sent only once.
    let (hook, asked) = tokens();
    let mut request = Request::post("/", "");
    request.body_stream(io::Cursor::new("once"), Some(4));
    let mut hooked = client(&net, Some(hook));
    hooked.call(&mut request, &mut response).unwrap();
    assert_eq!((response.status(), asked.load(SeqCst)), (401, 0));
}

#[test]
fn a_streamed_401_is_left_unread() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, head| {
        peer.send(match field(head, "X-Sent").as_deref() {
            Some("1") => OK.to_owned(),
            _ => DENIED.replace("Length: 5", "Length: 9999999"),
        });
    });
    let mut client = client(&net, Some(tokens().0));
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let body = client.open(&mut request, &mut response).unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(io::read_to_string(body).unwrap(), "ok");
    assert_eq!((client.counters().opened, net.open_streams()), (2, 1));
}

#[test]
fn each_url_of_a_call_has_its_own_401() {
    let net = SimNet::new(1);
    let heard = hear(&net, 1, |peer, head| {
        let token = field(head, "X-Sent");
        peer.send(match (target(head), token.as_deref()) {
            ("/a", Some("1")) => "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
            ("/b", Some("2")) => OK,
            _ => DENIED,
        });
    });
    let (hook, asked) = tokens();
    let mut config = Config {
        redirects: Redirects::limit(3),
        ..Config::default()
    };
    config.host.send_hook = Some(hook);
    let mut response = Response::new();
    let mut client = client_of(&net, config);
    client.get("http://1.sim/a", &mut response).unwrap();
    assert_eq!((response.status(), asked.load(SeqCst)), (200, 2));
    assert_eq!(sent(&heard), ["0", "1", "1", "2"]);
}

#[test]
fn pipelined_calls_have_headers_of_their_own() {
    let net = SimNet::new(1);
    let echo = |peer: &mut Peer<'_>, data: &[u8]| {
        let text = String::from_utf8_lossy(data);
        for head in text.split_terminator("\r\n\r\n") {
            let sent = field(head, "X-Sent").unwrap();
            let length = sent.len();
            peer.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{sent}"
            ));
        }
    };
    net.listen(place(1), near(), Script(echo));
    let mut config = PipelineConfig::default();
    config.host.send_hook = Some(SendHook::new(|outgoing| {
        let target = outgoing.url().to_owned();
        outgoing.set_header("X-Sent", target);
        Ok(())
    }));
    let mut client = PipelineClient::with_net(upstream(), config, net.clone()).unwrap();
    for n in 0..100 {
        client.submit(Call::new(Request::get(format!("/{n}")), Response::new()));
    }
    let ended = rest(&mut client);
    assert_eq!(ended.len(), 100);
    for done in ended {
        done.outcome.unwrap();
        assert_eq!(done.response.body(), done.request.target().as_bytes());
    }
}
