//! The cookies of a client of any URL, from call to call and along redirects. Which cookie goes where is in
//! `engine/src/client/cookies/tests.rs`.

use courser::{
    Call, Client, CookieJar, Redirects, Request, Response, RetryOn, RetryRule, Statuses,
};
use tests::clients::{any_client, any_config, assert_none_left, run_any};
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
    let mut client = any_client(config);
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
    // The same request, sent again, does not keep what is gone.
    get(&mut client, &url(&server, "/logout"));
    client.call(&mut request, &mut Response::new()).unwrap();
    assert_eq!(cookies(&server), ["own=3"]);
}

/// A cookie counts from its head on (RFC 6265 §3), whatever becomes of the answer.
#[test]
fn cookies_are_kept_of_answers_that_are_retried_or_cut() {
    let retried = "HTTP/1.1 503 Full\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n";
    let cut = "HTTP/1.1 200 OK\r\nSet-Cookie: b=2\r\nContent-Length: 9\r\n\r\ncut";
    let first = connection().request().send(retried).request();
    let server = Server::play([first.send(cut).close(), connection().always(OK)]);
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
    let cookies = [0, 1, 2].map(|at: usize| seen[at].header("cookie"));
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
        let mut call = Call::new(Request::get(url(&server, "/")), Response::new());
        if without {
            call = call.without_cookies();
        }
        run_any(&mut client, [call]).remove(0).outcome.unwrap();
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
