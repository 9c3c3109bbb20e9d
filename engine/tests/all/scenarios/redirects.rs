//! What travels along with a redirect, and what the redirect's own body costs. Where a `Location` leads is in
//! `engine/src/proto/location.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use courser::error::{PeerFault, RedirectFault};
use courser::net::Net as _;
use courser::net::sim::{Peer, SimNet};
use courser::policy::{Redirect, RedirectAction};
use courser::{
    Call, Client, Codings, Config, ErrorKind, Misuse, Phase, Proxies, Redirects, Request, Response,
    Sent,
};

use super::{Heard, Source, client_of, field, hear, place, target, told};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A client that follows redirects, and the hosts `1.sim` and `2.sim`, which answer a target by that function.
fn world(
    answer: impl Fn(&mut Peer<'_>, &str) + Clone + 'static,
) -> (Client<SimNet>, SimNet, Heard) {
    let net = SimNet::new(1);
    let heard = hear(&net, 2, move |peer, head| answer(peer, target(head)));
    let config = Config {
        redirects: Redirects::limit(10),
        ..Config::default()
    };
    let client = client_of(&net, config);
    (client, net, heard)
}

/// Leads from `/from...` to that place, and from `/to/URL` to the URL.
fn leading(location: &str) -> impl Fn(&mut Peer<'_>, &str) + Clone + 'static {
    let location = location.to_owned();
    move |peer, target| {
        let to = match target.strip_prefix("/to/") {
            None if target.starts_with("/from") => &location,
            None | Some("") => return peer.send(OK),
            Some(to) => to,
        };
        peer.send(format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
        ));
    }
}

/// Without a redirect to where it leads, no call ends; with one that leads nowhere, a streamed call ends once, too.
#[test]
fn locations_that_lead_nowhere() {
    // What a server writes is shown, but never as it is, and not all of it.
    let wild = format!("http://a b\u{85}\u{202e}{}/", "x".repeat(5000));
    for location in ["ftp://h/x", "http://user:secret@256.256.256.256/", &wild] {
        for streaming in [false, true] {
            let (mut client, net, heard) = world(leading(location));
            let (mut request, mut response) = (Request::get("http://1.sim/from"), Response::new());
            let error = match streaming {
                false => client.call(&mut request, &mut response).unwrap_err(),
                true => client.open(&mut request, &mut response).err().unwrap(),
            };
            // The server is to blame, not the caller.
            assert_kind!(error, ErrorKind::Redirect { .. });
            assert_eq!(
                (error.phase(), error.sent()),
                (Phase::Head, Sent::ReplyBegun)
            );
            assert_eq!(error.remote(), Some(&place(1)));
            let shown = format!("{error:?} {error}");
            assert!(!shown.contains(['\u{85}', '\u{202e}']) && !shown.contains("secret"));
            assert!(error.what().to_string().len() < 400, "{shown}");
            let io = std::io::Error::from(error);
            assert_eq!(io.kind(), std::io::ErrorKind::InvalidData);
            // What has come is there to look at.
            assert_eq!((response.status(), heard.borrow().len()), (302, 1));
            assert_eq!(client.in_flight(), 0);
            assert!(client.wait(Some(Duration::ZERO)).unwrap().done().is_none());
            assert_eq!(net.open_streams(), client.counters().idle);
        }
    }
}

/// The next body of a request is that of a new call: its source must not wait for what nobody can announce.
#[test]
fn a_request_that_lost_its_body_gets_another() {
    let (mut client, ..) = world(leading("/to"));
    let (mut request, mut response) = (Request::post("http://1.sim/from", "a"), Response::new());
    client.call(&mut request, &mut response).unwrap();
    let source = Source::default();
    request
        .set_target("http://1.sim/to")
        .body_stream(source, None);
    let error = client.call(&mut request, &mut response).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::NotResumable));
}

/// Two that differ lead nowhere, nor does an empty one.
#[test]
fn several_locations() {
    for (fields, hops) in [
        ("Location: /a\r\nLocation: /b", None),
        ("Location: \r\nLocation: /a\r\nLocation: /a", Some(1)),
        ("Location: ", Some(0)),
    ] {
        let (mut client, ..) = world(move |peer, target| match target {
            "/" => peer.send(format!(
                "HTTP/1.1 302 Found\r\n{fields}\r\nContent-Length: 0\r\n\r\n"
            )),
            _ => peer.send(OK),
        });
        match client.get("http://1.sim/", &mut Response::new()) {
            Ok(report) => assert_eq!(Some(report.redirects().len()), hops, "{fields}"),
            Err(error) => {
                assert_kind!(error, ErrorKind::Peer(PeerFault::ConflictingLocation));
                assert_eq!(hops, None, "{fields}");
            }
        }
    }
}

/// What is for one server goes to no other one, and does not come back; on the same origin it stays. So does a host that
/// the caller has named. Which URLs have one origin is in `engine/src/proto/url.rs`.
#[test]
fn credentials_stay_with_their_origin() {
    let away = "http://2.sim/to/http://1.sim/to/";
    for (location, hops, stays) in [("/to/", &[1, 1][..], true), (away, &[1, 2, 1], false)] {
        let (mut client, _, heard) = world(leading(location));
        let mut request = Request::get("http://1.sim/from");
        request
            .add_header("Authorization", "Bearer secret")
            .add_header("Cookie", "session=secret")
            .add_header("Proxy-Authorization", "Basic secret")
            .sensitive_header("X-Api-Key", "secret")
            .sensitive_header("User-Agent", "secret")
            .add_header("Host", "own.example")
            .add_header("X-Open", "open");
        client.call(&mut request, &mut Response::new()).unwrap();
        let heard = heard.borrow();
        let expected = hops.iter().enumerate().map(|(hop, host)| {
            let (secrets, named) = match hop == 0 || stays {
                true => (5, "own.example".to_owned()),
                false => (0, format!("{host}.sim")),
            };
            (*host, secrets, Some(named), Some("open".to_owned()))
        });
        let told = heard.iter().map(|(host, head)| {
            let secrets = head.matches("secret").count();
            (*host, secrets, field(head, "host"), field(head, "x-open"))
        });
        assert!(told.clone().eq(expected), "{:?}", told.collect::<Vec<_>>());
    }
}

/// A hook keeps the method and the credentials, or refuses; a body that can be opened again goes along.
#[test]
fn a_hook_steers() {
    let lead = |status: u16| {
        move |peer: &mut Peer<'_>, target: &str| match target {
            "/to" => peer.send(OK),
            _ => peer.send(format!(
                "HTTP/1.1 {status} Go\r\nLocation: http://2.sim/to\r\nContent-Length: 0\r\n\r\n"
            )),
        }
    };
    let upload = |opened: bool| {
        let mut request = Request::post("http://1.sim/from", "");
        request.add_header("Authorization", "mine");
        match opened {
            true => request.body_opened(|| Ok(&b"abc"[..]), Some(3)),
            false => request.body_stream(&b"abc"[..], Some(3)),
        };
        request
    };
    let keep = |redirect: &mut Redirect<'_>| {
        (redirect.keep_method, redirect.keep_credentials) = (true, true);
        RedirectAction::Follow
    };
    let keeping = || Redirects::limit(1).hook(Arc::new(keep));
    let refusing = || Redirects::limit(1).hook(Arc::new(|_| RedirectAction::Refuse));
    let stopping = |redirect: &mut Redirect<'_>| {
        let (from, to) = (redirect.from, redirect.to);
        assert_eq!((from, to), ("http://1.sim/from", "http://2.sim/to"));
        assert!(redirect.changes_origin && redirect.method == "GET" && redirect.followed == 0);
        assert!(format!("{redirect:?}").contains("302"));
        RedirectAction::Stop
    };
    let asked = |status, opened, redirects: Redirects| {
        let (mut client, _, heard) = world(lead(status));
        let call = Call::new(upload(opened), Response::new()).redirects(redirects);
        let outcome = client.perform(call).into_result();
        let heard = heard.borrow();
        let second = heard.iter().find(|(at, _)| *at == 2);
        let second = second.map(|(_, head)| head.clone());
        (outcome.map(|response| response.status()), second)
    };
    let post = "POST /to HTTP/1.1\r\nHost: 2.sim\r\n";
    for (status, opened, redirects, begins, authorized) in [
        (302, false, Redirects::limit(1), "GET /to", false),
        (307, true, Redirects::limit(1), post, false),
        (302, true, keeping(), post, true),
    ] {
        let (outcome, second) = asked(status, opened, redirects);
        let second = second.unwrap();
        assert_eq!(outcome.unwrap(), 200, "{status} {opened}");
        assert!(second.starts_with(begins), "{status} {opened} {second}");
        let has_own = second.contains("Authorization: mine");
        assert_eq!(has_own, authorized, "{second}");
    }
    let stopped = asked(302, true, Redirects::limit(1).hook(Arc::new(stopping)));
    assert!(matches!(stopped, (Ok(302), None)), "{stopped:?}");
    for (redirects, fault) in [
        (refusing(), RedirectFault::Refused),
        (keeping(), RedirectFault::BodyNotReplayable),
    ] {
        let (outcome, second) = asked(302, false, redirects);
        let error = outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Redirect { fault: of, .. } if *of == fault);
        let shown =
            format!("http://1.sim/from: the server redirected to \"http://2.sim/to\": {fault}");
        assert_eq!((error.to_string(), second), (shown, None));
    }
}

/// Trusted with the caller's credentials, a server gets neither those that a redirect names nor those for a proxy.
#[test]
fn trust_is_no_more_than_that() {
    let trusting = || {
        Redirects::limit(1).hook(Arc::new(|redirect: &mut Redirect<'_>| {
            redirect.keep_credentials = true;
            RedirectAction::Follow
        }))
    };
    let proxied = Proxies::none().http("http://px:pw@1.sim:80".parse().unwrap());
    for (proxies, count) in [(proxied.clone().except("2.sim"), 0), (proxied, 1)] {
        let to = "Location: http://evil:pw@2.sim/to\r\nContent-Length: 0\r\n\r\n";
        let (mut client, _, heard) = world(move |peer, target| match target.ends_with("/from") {
            true => peer.send(format!("HTTP/1.1 302 Found\r\n{to}")),
            false => peer.send(OK),
        });
        let mut request = Request::get("http://user:pass@1.sim/from");
        request.add_header("Proxy-Authorization", "Basic own");
        let call = Call::new(request, Response::new());
        let done = client.perform(call.redirects(trusting()).proxies(proxies));
        done.into_result().unwrap();
        let second = heard.borrow()[1].1.clone();
        let of_proxy = second.matches("Proxy-Authorization");
        assert_eq!(of_proxy.count(), count, "{second}");
        assert!(
            second.contains("\nAuthorization: Basic dXNlcjpwYXNz\r\n"),
            "{second}"
        );
    }
}

/// Nor is anything left of a call that blocks, if a hook panics.
#[test]
fn a_hook_that_panics_ends_the_call() {
    let (mut client, net, _) = world(leading("http://2.sim/to/"));
    let panics = Redirects::limit(1).hook(Arc::new(|_| panic!("on purpose")));
    let call = Call::new(Request::get("http://1.sim/from"), Response::new());
    let opened = AssertUnwindSafe(|| drop(client.open_call(call.redirects(panics))));
    catch_unwind(opened).unwrap_err();
    let left = (client.in_flight(), net.open_streams());
    assert_eq!(left, (0, client.counters().idle));
}

#[test]
fn a_response_that_is_cut_has_its_url() {
    let (mut client, ..) = world(|peer, _| {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        peer.close();
    });
    let mut response = Response::new();
    client.get("http://1.sim/cut", &mut response).unwrap_err();
    assert_eq!(response.url(), Some("http://1.sim/cut"));
}

/// Given by the URL, kept on the same server, and told to no other; a server may give credentials for itself alone.
#[test]
fn user_information() {
    let basic = || Some("Basic dXNlcjpwYXNz".to_owned()); // user:pass
    let auth = |heard: &Heard| told(heard, "authorization");
    for (user, location, expected) in [
        ("user:pass@", "/to/", [(1, basic()), (1, basic())]),
        ("user:pass@", "http://2.sim/to/", [(1, basic()), (2, None)]),
        ("", "http://user:pass@1.sim/to/", [(1, None), (1, basic())]),
        ("", "http://user:pass@2.sim/to/", [(1, None), (2, None)]),
    ] {
        let (mut client, _, heard) = world(leading(location));
        let mut response = Response::new();
        let url = format!("http://{user}1.sim/from");
        let report = client.get(&url, &mut response).unwrap();
        let to = format!("http://{}.sim/to/", expected[1].0);
        assert_eq!(&*report.redirects()[0].url, to);
        assert!(response.url().is_some_and(|url| url.ends_with("sim/to/")));
        assert!(!format!("{report:?} {response:?}").contains("pass"));
        assert_eq!(auth(&heard), expected, "{url} {location}");
    }
    // Nor on the steps after that.
    let (mut client, _, heard) = world(leading("http://user:pass@2.sim/to//to/"));
    client
        .get("http://1.sim/from", &mut Response::new())
        .unwrap();
    assert_eq!(auth(&heard), [(1, None), (2, None), (2, None)]);
    // Nor on the way back.
    let (mut client, _, heard) = world(leading("http://2.sim/to/http://1.sim/to/"));
    let url = "http://user:pass@1.sim/from";
    client.get(url, &mut Response::new()).unwrap();
    assert_eq!(auth(&heard), [(1, basic()), (2, None), (1, None)]);
    // What the caller says goes before the URL, and the URL of one call says nothing for the next one.
    let (mut client, _, heard) = world(leading("/"));
    let mut request = Request::get("http://user:pass@1.sim/");
    request.add_header("Authorization", "Bearer own");
    client.call(&mut request, &mut Response::new()).unwrap();
    request
        .remove_header("Authorization")
        .set_target("http://1.sim/");
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(auth(&heard), [(1, Some("Bearer own".into())), (1, None)]);
}

/// No call waits for the body of a redirect, minds how it is broken, or loses its connection to a small one.
#[test]
fn the_body_of_a_redirect_changes_nothing() {
    let (many, chunks) = ("x".repeat(1 << 20), "5\r\nxxxxx\r\n".repeat(100_000));
    let chunked = "Transfer-Encoding: chunked";
    let coded = "Content-Encoding: gzip\r\nContent-Length: 3";
    let rows = [
        ("Content-Length: 10000", &many[..10_000], false, 1),
        (chunked, "3\r\nabc\r\n0\r\n\r\n", false, 1),
        // Without end, late, and of a size that is worth a short wait.
        ("X: until close", &many, false, 2),
        (chunked, &chunks, false, 2),
        ("Content-Length: 9999999999", "", false, 2),
        ("Content-Length: 10", "abc", false, 2),
        (chunked, "", false, 2),
        // Broken.
        ("Content-Length: 10", "abc", true, 2),
        ("Content-Length: 10", "", true, 2),
        (chunked, "zz\r\n", false, 2),
        (chunked, "3\r\nab", true, 2),
        ("Content-Length: 3", "abcdef", false, 2),
        (coded, "abc", true, 2),
    ];
    for (framing, body, closes, opened) in rows {
        for streaming in [false, true] {
            let reply = format!("HTTP/1.1 302 Found\r\nLocation: ../to\r\n{framing}\r\n\r\n{body}");
            let (mut client, net, heard) = world(move |peer, target| {
                if target.ends_with("/to") {
                    return peer.send(OK);
                }
                peer.send(&*reply);
                if closes {
                    peer.close();
                }
            });
            let began = net.now();
            let mut request = Request::get("http://1.sim/from/a/b");
            request.decode(Codings::all());
            let mut response = Response::new();
            match streaming {
                false => _ = client.call(&mut request, &mut response).unwrap(),
                true => {
                    _ = client
                        .open(&mut request, &mut response)
                        .unwrap()
                        .finish()
                        .unwrap()
                }
            }
            let what = format!("{framing:?} {streaming}");
            assert_eq!(response.status(), 200, "{what}");
            assert!(heard.borrow()[1].1.starts_with("GET /from/to "), "{what}");
            assert!(net.now() - began < Duration::from_secs(1), "{what}");
            assert_eq!(client.counters().opened, opened, "{what}");
            assert_eq!(client.in_flight(), 0);
            client.close_idle();
            assert_eq!(net.open_streams(), 0, "{what}");
        }
    }
}
