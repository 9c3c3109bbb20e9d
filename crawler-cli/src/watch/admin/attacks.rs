//! What an attacker would try, over real connections: to pass for somebody else, or to lead a request elsewhere.

use jiff::Timestamp;

use super::served::Served;
use super::*;
use crate::watch::control::{Command, RefusalKind, Reply, TokenDeed};

/// The value of `csrf` in a page.
fn csrf(page: &str) -> &str {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a form");
    rest.split('"').next().expect("its value")
}

#[test]
fn only_names_of_the_service_are_answered() {
    let served = Served::with(
        AdminLimits::default(),
        "[http]\nnames = ['watch.example.org']\n",
    );
    for (request, expected) in [
        ("GET /healthz HTTP/1.1\r\nHost: watch.example.org\r\n", 200),
        (
            "GET /healthz HTTP/1.1\r\nHost: Watch.Example.ORG:443\r\n",
            200,
        ),
        ("GET /healthz HTTP/1.1\r\nHost: example.org\r\n", 421),
        (
            "GET /healthz HTTP/1.1\r\nHost: a.watch.example.org\r\n",
            421,
        ),
        ("GET /healthz HTTP/1.1\r\nHost: 192.0.2.1\r\n", 421),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
            400,
        ),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n",
            200,
        ),
        (
            "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n",
            421,
        ),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n",
            421,
        ),
    ] {
        assert_eq!(served.status(request), expected, "{request}");
    }
}

#[test]
fn pages_of_other_sites_have_nothing_done() {
    let served = Served::start();
    let page = served.get("/login");
    let form = format!("csrf={}&token=x", csrf(&page));
    // Taken: the token is wrong, but the request is not.
    for fields in [
        "",
        "Origin: http://localhost\r\n",
        "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n",
        "Sec-Fetch-Site: none\r\n",
    ] {
        let answer = served.post("/login", fields, &form);
        assert!(answer.contains("This is no token"), "{fields}: {answer}");
    }
    for fields in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://localhost:1\r\n",
        "Origin: http://localhost\r\nOrigin: http://evil.example\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        let answer = served.post("/login", fields, &form);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{fields}: {answer}");
        assert!(answer.contains("another site"), "{fields}: {answer}");
    }
    for wrong in ["token=x", "csrf=&token=x", "csrf=abc&token=x"] {
        let answer = served.post("/login", "", wrong);
        assert!(answer.contains("form is not of this service"), "{answer}");
    }
    // That of another process.
    let other = Served::start();
    let foreign = format!("csrf={}&token=x", csrf(&other.get("/login")));
    let answer = served.post("/login", "", &foreign);
    assert!(answer.contains("form is not of this service"), "{answer}");
}

#[test]
fn the_api_takes_no_forms_and_answers_with_problems() {
    let served = Served::start();
    let post = "POST /api/v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n";
    for kind in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
    ] {
        assert_eq!(served.status(&format!("{post}{kind}")), 415, "{kind}");
    }
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    assert_eq!(served.status(&format!("{post}{json}")), 404);
    let answer = served.get("/api/v1/nothing");
    assert!(answer.contains("application/problem+json"), "{answer}");
    assert!(answer.contains("urn:courser:problem:not-found"), "{answer}");
    let options = "OPTIONS /login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n";
    let answer = served.exchange(format!("{options}Connection: close\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.to_lowercase().contains("\r\nallow: "), "{answer}");
    assert!(
        !answer.to_lowercase().contains("access-control"),
        "{answer}"
    );
}

#[test]
fn paths_lead_nowhere_else() {
    let served = Served::start();
    for path in [
        "/../metrics",
        "/x/../metrics",
        "/%2e%2e/metrics",
        "//metrics",
        "/metrics/",
        "/metrics%00",
        "/%6detrics",
        "/assets/..%2f..%2fetc%2fpasswd",
    ] {
        let answer = served.get(path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
    for back in [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "",
        "/a\nb",
    ] {
        assert_eq!(body::checked_back(back), "/", "{back}");
    }
    assert_eq!(body::checked_back("/url?url=x"), "/url?url=x");
}

#[test]
fn nothing_is_added_from_elsewhere() {
    let served = Served::start();
    let json = r#"{"urls":["http://a.example/"]}"#;
    let length = json.len();
    let post = |path: &str, host: &str, fields: &str| {
        served.exchange(format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n{fields}\r\n{json}"
        ))
    };
    let kind = "Content-Type: application/json\r\n";
    let urls = "/api/v1/urls";
    for (host, fields, status) in [
        // What a form of another site can send without being asked for.
        ("localhost", "Content-Type: text/plain\r\n".to_owned(), 415),
        (
            "localhost",
            "Content-Type: text/plain;application/json\r\n".to_owned(),
            415,
        ),
        ("localhost", format!("{kind}{kind}"), 415),
        (
            "localhost",
            "Content-Type: multipart/form-data; boundary=application/json\r\n".to_owned(),
            415,
        ),
        ("localhost", String::new(), 415),
        (
            "localhost",
            format!("{kind}Origin: http://evil.example\r\n"),
            403,
        ),
        ("localhost", format!("{kind}Origin: null\r\n"), 403),
        (
            "localhost",
            format!("{kind}Sec-Fetch-Site: cross-site\r\n"),
            403,
        ),
        (
            "localhost",
            format!("{kind}Sec-Fetch-Site: same-site\r\n"),
            403,
        ),
        ("evil.example", kind.to_owned(), 421),
        ("evil.example:80", kind.to_owned(), 421),
        ("localhost.evil.example", kind.to_owned(), 421),
    ] {
        let answer = post(urls, host, &fields);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{host} {fields}: {answer}"
        );
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
    for path in [
        "//api/v1/urls",
        "/api//v1/urls",
        "/api/v1/urls/",
        "/api/v1/urls%00",
        "/api/v1/%75rls",
        "/%61pi/v1/urls",
        "/api/v1/hosts/../urls",
        "/api/v1/hosts/%2e%2e/urls",
        "/api/v1/hosts/..%2furls",
        "/api/v2/urls",
        "/API/v1/urls",
    ] {
        let answer = post(path, "localhost", kind);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
    let list = served.get("/api/v1/urls");
    assert!(list.ends_with("{\"items\":[]}\n"), "{list}");
    // The same request is taken when it is not from elsewhere.
    let answer = post(urls, "localhost", kind);
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
}

#[test]
fn all_answers_have_the_fields_that_protect_a_browser() {
    let served = Served::start();
    let get = |path: &str| served.get(path).to_lowercase();
    for answer in [
        get("/login"),
        get("/metrics"),
        get("/nothing"),
        get("/api/v1/nothing"),
        served.post("/login", "", "x").to_lowercase(),
        served
            .exchange("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            .to_lowercase(),
    ] {
        for field in [
            "content-security-policy: default-src 'none'; ",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: same-origin",
            "x-frame-options: deny",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(answer.contains(field), "{field}: {answer}");
        }
    }
}

/// The statuses of a reading with this token, and of a change.
fn with_token(served: &Served, token: &str) -> (u16, u16) {
    let read =
        format!("GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
    let change = format!(
        "POST /api/v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 0\r\nAuthorization: bearer {token}\r\n"
    );
    (served.status(&read), served.status(&change))
}

#[test]
fn tokens_open_what_they_allow_until_they_end() {
    let served = Served::start();
    let version = "GET /version HTTP/1.1\r\nHost: localhost\r\n";
    assert_eq!(served.status(version), 200);
    let read = served.token("read", false, None);
    let write = served.token("write", true, None);
    let past = Timestamp::now() - jiff::SignedDuration::from_secs(1);
    let over = served.token("over", true, Some(past));
    assert_eq!(served.status(version), 401);
    for path in ["/metrics", "/api/v1/status"] {
        let answer = served.get(path);
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains("Bearer realm=\"courser\""), "{answer}");
    }
    for path in ["/healthz", "/readyz", "/login"] {
        assert!(served.get(path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    // There is no such route, but who may change something gets to it.
    assert_eq!(with_token(&served, &write), (200, 404));
    assert_eq!(with_token(&served, &read), (200, 403));
    let (_, head, _) = served.api("urls", &format!("Authorization: Bearer {read}\r\n"), "{}");
    assert!(
        head.contains("error=\"insufficient_scope\", scope=\"write\""),
        "{head}"
    );
    let (_, head, _) = served.api("urls", "Authorization: Bearer x\r\n", "{}");
    assert!(head.contains("error=\"invalid_token\""), "{head}");
    let (begin, last) = read.split_at(read.len() - 1);
    let other = if last == "A" { "B" } else { "A" };
    for wrong in [&*over, "", "x", "courser_", &format!("{begin}{other}")] {
        assert_eq!(with_token(&served, wrong), (401, 401), "{wrong}");
    }
    let remove = |name: &str| Command::Token {
        deed: TokenDeed::Remove {
            name: name.to_owned(),
        },
    };
    assert_eq!(served.operator.perform(remove("read"), "me"), Reply::Done);
    assert_eq!(with_token(&served, &read), (401, 401));
    assert_eq!(with_token(&served, &write), (200, 404));
    // The last token stays while others reach the service.
    served.operator.perform(remove("over"), "me");
    let mut public = served.operator.clone();
    public.is_public = true;
    let reply = public.perform(remove("write"), "me");
    assert!(
        matches!(&reply, Reply::Refused(refusal) if refusal.kind == RefusalKind::Wrong),
        "{reply:?}"
    );
    assert_eq!(with_token(&served, &write), (200, 404));
    assert_eq!(served.operator.perform(remove("write"), "me"), Reply::Done);
    assert_eq!(served.status(version), 200);
}

#[test]
fn a_session_stands_for_its_token() {
    let served = Served::start();
    let token = served.token("page", true, None);
    let browser = "GET /version HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n";
    let answer = served.exchange(format!("{browser}Connection: close\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
    assert!(answer.contains("/login?back=%2Fversion"), "{answer}");
    let page = served.get("/login?back=%2Fversion");
    let form = format!("csrf={}&back=/version&token={token}", csrf(&page));
    let answer = served.post("/login", "", &form);
    assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
    let cookie = answer
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .expect("a cookie");
    let (session, flags) = cookie.split_once("; ").expect("flags");
    assert_eq!(flags, "HttpOnly; SameSite=Strict; Path=/; Max-Age=43200");
    let status = |cookie: &str| {
        served.status(&format!(
            "GET /version HTTP/1.1\r\nHost: localhost\r\nCookie: a=b; {cookie}\r\n"
        ))
    };
    assert_eq!(status(session), 200);
    // The API takes no changes by a cookie.
    let change = format!(
        "POST /api/v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 0\r\nCookie: {session}\r\n"
    );
    assert_eq!(served.status(&change), 401);
    let parts: Vec<&str> = session.split('.').collect();
    let later = format!("{}.{}0.{}", parts[0], parts[1], parts[2]);
    for forged in [
        &*later,
        "courser=",
        "courser=..",
        &session[..session.len() - 2],
    ] {
        assert_eq!(status(forged), 401, "{forged}");
    }
    // Who logs out ends the session, and no other one.
    let again = served.post("/login", "", &form);
    let again = again
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let (other_session, _) = again
        .and_then(|cookie| cookie.split_once("; "))
        .expect("flags");
    let page = served.exchange(format!(
        "GET /holds HTTP/1.1\r\nHost: localhost\r\nCookie: {session}\r\nConnection: close\r\n\r\n"
    ));
    let fields = format!("Cookie: {session}\r\n");
    let out = served.post("/logout", &fields, &format!("csrf={}", csrf(&page)));
    assert!(out.starts_with("HTTP/1.1 303 "), "{out}");
    assert_eq!((status(session), status(other_session)), (401, 200));
    // Another process knows no session of this one.
    let other = Served::start();
    other.token("page", true, None);
    let request =
        format!("GET /version HTTP/1.1\r\nHost: localhost\r\nCookie: {other_session}\r\n");
    assert_eq!(other.status(&request), 401);
    let deed = TokenDeed::Remove {
        name: "page".to_owned(),
    };
    served.token("another", false, None);
    served.operator.perform(Command::Token { deed }, "me");
    assert_eq!(status(other_session), 401);
}

#[test]
fn a_token_is_needed_beyond_this_machine() {
    let all = SocketAddr::from(([0, 0, 0, 0], 0));
    let (site, _served) = Served::site("");
    let refused = Admin::start(all, AdminLimits::default(), site);
    assert_eq!(
        refused.expect_err("refused").kind(),
        io::ErrorKind::PermissionDenied
    );
    let (site, served) = Served::site("");
    served.token("read", false, None);
    assert!(Admin::start(all, AdminLimits::default(), site).is_ok());
}
