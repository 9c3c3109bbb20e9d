//! Cookies from call to call and along redirects. Which cookie goes where is in `engine/src/client/cookies/tests.rs`.

use std::cell::Cell;

use courser::net::sim::{Peer, SimNet};
use courser::policy::{RetryOn, RetryRule, Statuses};
use courser::{Client, Config, CookieJar, Redirects, Request, Response};

use super::{Heard, call, client_of, hear, target, told};

/// A client with this jar that follows redirects, and two hosts that answer a target with that status and these headers.
fn world(
    jar: &CookieJar,
    answer: impl Fn(&str) -> &'static str + Clone + 'static,
) -> (Client<SimNet>, Heard) {
    let net = SimNet::new(1);
    let heard = hear(&net, 2, move |peer, head| {
        let head = answer(target(head));
        peer.send(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"));
    });
    let config = Config {
        redirects: Redirects::limit(5),
        cookies: Some(jar.clone()),
        ..Config::default()
    };
    (client_of(&net, config), heard)
}

fn last(heard: &Heard) -> Option<String> {
    told(heard, "cookie").pop().unwrap().1
}

#[test]
fn cookies_are_kept_from_call_to_call_and_along_redirects() {
    let jar = CookieJar::new();
    let (mut client, heard) = world(&jar, |target| match target {
        "/login" => {
            "302 Found\r\nLocation: /home\r\nSet-Cookie: session=1; HttpOnly\r\nSet-Cookie: path=2; Path=/home"
        }
        "/logout" => "200 OK\r\nSet-Cookie: session=; Max-Age=0",
        _ => "200 OK",
    });
    let mut response = Response::new();
    for streaming in [false, true] {
        jar.clear();
        let mut request = Request::get("http://1.sim/login");
        match streaming {
            false => _ = client.call(&mut request, &mut response).unwrap(),
            true => drop(client.open(&mut request, &mut response).unwrap()),
        }
        assert_eq!(last(&heard).unwrap(), "path=2; session=1");
        client.get("http://1.sim/other", &mut response).unwrap();
        assert_eq!(last(&heard).unwrap(), "session=1");
    }
    // In one line (RFC 6265 §5.4), however many the caller has; the caller's value goes before the jar's.
    let mut request = Request::get("http://1.sim/home");
    request
        .add_header("Cookie", "a=1; session=own")
        .add_header("X-Between", "x")
        .add_header("cookie", "b=2");
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(last(&heard).unwrap(), "a=1; session=own; b=2; path=2");
    // The same request, sent again, does not keep what is gone.
    let mut request = Request::get("http://1.sim/other");
    request.add_header("Cookie", "own=3");
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(last(&heard).unwrap(), "own=3; session=1");
    client.get("http://1.sim/logout", &mut response).unwrap();
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(last(&heard).unwrap(), "own=3");
}

/// A cookie counts from its head on (RFC 6265 §3), whatever becomes of the answer.
#[test]
fn cookies_are_kept_of_answers_that_are_retried_or_cut() {
    let (net, answers) = (SimNet::new(1), Cell::new(0));
    let heard = hear(&net, 1, move |peer: &mut Peer<'_>, _| {
        answers.set(answers.get() + 1);
        match answers.get() {
            1 => peer.send("HTTP/1.1 503 Full\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n"),
            2 => {
                peer.send("HTTP/1.1 200 OK\r\nSet-Cookie: b=2\r\nContent-Length: 9\r\n\r\ncut");
                peer.close();
            }
            _ => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        }
    });
    let mut config = Config {
        cookies: Some(CookieJar::new()),
        ..Config::default()
    };
    let full = RetryOn::Status(Statuses::none().and(503..=503));
    config.host.retry.rules = vec![RetryRule::new(full)];
    let mut client = client_of(&net, config);
    let mut response = Response::new();
    client.get("http://1.sim/", &mut response).unwrap_err();
    client.get("http://1.sim/", &mut response).unwrap();
    let cookies = [None, Some("a=1".to_owned()), Some("a=1; b=2".to_owned())];
    assert_eq!(told(&heard, "cookie"), cookies.map(|cookie| (1, cookie)));
}

#[test]
fn a_call_without_cookies_sends_none_and_keeps_none() {
    let (mut client, heard) = world(&CookieJar::new(), |_| "200 OK\r\nSet-Cookie: a=1");
    let mut run = |without: bool| {
        let mut call = call("http://1.sim/");
        if without {
            call = call.without_cookies();
        }
        client.perform(call).outcome.unwrap();
        last(&heard)
    };
    assert_eq!(run(true), None);
    assert_eq!(run(false), None); // the first kept none; this one does
    assert_eq!(run(true), None);
    assert_eq!(run(false).unwrap(), "a=1");
}

#[test]
fn cookies_of_one_host_do_not_follow_to_another() {
    let (mut client, heard) = world(&CookieJar::new(), |target| match target {
        "/from" => {
            "302 Found\r\nLocation: http://2.sim/to\r\nSet-Cookie: session=1\r\nSet-Cookie: far=2; Domain=2.sim"
        }
        _ => "200 OK",
    });
    for _ in 0..2 {
        client
            .get("http://1.sim/from", &mut Response::new())
            .unwrap();
    }
    let own = Some("session=1".to_owned());
    let expected = [(1, None), (2, None), (1, own), (2, None)];
    assert_eq!(told(&heard, "cookie"), expected);
}

/// The jar is the client's, and what it has put into a request is gone when another client sends that.
#[test]
fn a_request_takes_no_cookies_along_to_another_client() {
    let net = SimNet::new(1);
    let heard = hear(&net, 1, |peer: &mut Peer<'_>, _| {
        peer.send("HTTP/1.1 200 OK\r\nSet-Cookie: sid=secret\r\nContent-Length: 0\r\n\r\n");
    });
    let client = |cookies| {
        let config = Config {
            cookies,
            ..Config::default()
        };
        client_of(&net, config)
    };
    let (mut request, mut response) = (Request::get("http://1.sim/"), Response::new());
    let mut first = client(Some(CookieJar::new()));
    for _ in 0..2 {
        first.call(&mut request, &mut response).unwrap();
    }
    // To the same URL, so that nothing but the client differs: one without a jar, one with an empty one.
    for other in [None, Some(CookieJar::new())] {
        client(other).call(&mut request, &mut response).unwrap();
        first.call(&mut request, &mut response).unwrap();
    }
    let told = told(&heard, "cookie");
    let told: Vec<_> = told.iter().map(|(_, cookie)| cookie.is_some()).collect();
    assert_eq!(told, [false, true, false, true, false, true]);
}
