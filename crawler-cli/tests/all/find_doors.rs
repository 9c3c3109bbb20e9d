//! What `crawler-cli find` does so that nobody is locked out: credentials, cookies, gates, starts as users type them; and
//! how it ends when its output cannot be written.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::common::authority::{Authority, path_of};
use crate::common::{Script, crawler, find, lines, page, response, stderr};

fn tree(request: &str) -> Vec<u8> {
    match request {
        "GET /pub/" => page(&["a/", "x.iso"]),
        "GET /pub/a/" => page(&["y.iso"]),
        _ => response(404, "", ""),
    }
}

#[test]
fn a_start_needs_no_scheme() {
    let server = Script::start(tree);
    let output = find(&[&format!("{}/pub/", server.address)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output.stdout)[0], server.url("/pub/"));
    let path = find(&["./pub"]);
    assert_eq!(path.status.code(), Some(2));
    assert!(
        stderr(&path).contains("./pub: not an absolute URL"),
        "{}",
        stderr(&path)
    );
}

#[test]
fn a_page_with_a_query_is_a_start_where_links_are_followed() {
    let server = Script::start(|request| match request {
        "GET /pub/list?of=all" => {
            response(200, "Content-Type: text/html\r\n", "<a href=x.iso>x</a>")
        }
        _ => response(200, "", ""),
    });
    let start = server.url("/pub/list?of=all");
    for args in [
        &[&start, "--links", "page"][..],
        &["--links", "page", &start],
    ] {
        let output = find(args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(
            lines(&output.stdout),
            [start.clone(), server.url("/pub/x.iso")]
        );
    }
    let output = find(&[&start]);
    assert_eq!(output.status.code(), Some(2));
    let message = format!("{start}: a start with a query needs --links page");
    assert!(stderr(&output).contains(&message), "{}", stderr(&output));
}

#[test]
fn a_start_may_move_on_its_host() {
    let server = Script::start(|request| match request {
        "GET /latest/" => response(302, "Location: /releases/7/\r\n", ""),
        "GET /releases/7/" => page(&["x.iso"]),
        _ => response(404, "", ""),
    });
    let output = find(&[&server.url("/latest/")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = ["/releases/7/", "/releases/7/x.iso"].map(|path| server.url(path));
    assert_eq!(lines(&output.stdout), expected);
    // The text of the redirect may have a password.
    let away = Script::start(|_| {
        response(
            302,
            "Location: http://joe:secret@other.example/pub/\r\n",
            "",
        )
    });
    let output = find(&[&away.url("/pub/")]);
    let text = stderr(&output);
    assert!(
        text.contains("redirects to http://other.example/pub/"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn a_gate_that_sets_a_cookie_opens() {
    let gate = |head: &str| match head.contains("\r\nCookie: pass=1\r\n") {
        true => match head.lines().next().unwrap_or_default() {
            "GET /pub/ HTTP/1.1" => page(&["x.iso"]),
            _ => response(404, "", ""),
        },
        false => response(302, "Set-Cookie: pass=1\r\nLocation: /pub/\r\n", ""),
    };
    let server = Script::start_with_heads(gate);
    let start = server.url("/pub/");
    for links in ["listing", "page"] {
        let output = find(&[&start, "--links", links, "-maxdepth", "0"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(lines(&output.stdout), std::slice::from_ref(&start));
    }
}

/// A page of the host sets the cookie: by a redirect back, or as a page of its own.
#[test]
fn a_gate_on_another_page_opens() {
    for gate in [
        response(302, "Set-Cookie: pass=1\r\nLocation: /pub/\r\n", ""),
        response(200, "Set-Cookie: pass=1\r\n", "accepted"),
    ] {
        let server = Script::start_with_heads(move |head| {
            let line = head.lines().next().unwrap_or_default();
            match (line, head.contains("\r\nCookie: pass=1\r\n")) {
                ("GET /gate?to=/pub/ HTTP/1.1", _) => gate.clone(),
                ("GET /pub/ HTTP/1.1", true) => page(&["a/", "x.iso"]),
                ("GET /pub/a/ HTTP/1.1", true) => page(&["y.iso"]),
                _ => response(302, "Location: /gate?to=/pub/\r\n", ""),
            }
        });
        let output = find(&[&server.url("/pub/")]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let all = ["", "a/", "a/y.iso", "x.iso"].map(|path| server.url(&format!("/pub/{path}")));
        assert_eq!(lines(&output.stdout), all);
        let gates = server.requests();
        let gates = gates.iter().filter(|request| request.contains("gate"));
        assert_eq!(gates.count(), 1, "the cookie is kept");
    }
    let pages = Script::start_with_heads(|head| {
        let line = head.lines().next().unwrap_or_default();
        match (line, head.contains("\r\nCookie: pass=1\r\n")) {
            ("GET / HTTP/1.1", true) => {
                response(200, "Content-Type: text/html\r\n", "<a href=b>b</a>")
            }
            ("GET /gate HTTP/1.1", _) => response(302, "Set-Cookie: pass=1\r\nLocation: /\r\n", ""),
            (_, true) => response(200, "", ""),
            _ => response(302, "Location: /gate\r\n", ""),
        }
    });
    let output = find(&[&pages.url("/"), "--links", "page"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        lines(&output.stdout),
        ["/", "/b"].map(|path| pages.url(path))
    );
    // Without a cookie, it is a redirect like any other.
    let closed = Script::start(|request| match request {
        "GET /pub/" => response(302, "Location: /login\r\n", ""),
        _ => response(200, "", "who are you?"),
    });
    let output = find(&[&closed.url("/pub/")]);
    assert_eq!(output.status.code(), Some(1));
    let told = format!("redirects to {}, which is not", closed.url("/login"));
    assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    let endless = Script::start(|request| match request {
        "GET /pub/" => response(302, "Location: /gate\r\n", ""),
        _ => response(302, "Set-Cookie: a=1\r\nLocation: /pub/\r\n", ""),
    });
    let output = find(&[&endless.url("/pub/")]);
    assert_eq!(output.status.code(), Some(1));
    let told = "more than 5 redirects in a row";
    assert!(stderr(&output).contains(told), "{}", stderr(&output));
}

#[test]
fn variables_name_the_authorities_as_for_curl() {
    let authority = Authority::new("ours");
    let server = Script::start_tls(authority.server("127.0.0.1"), tree);
    let (ours, start) = (authority.file(), server.url("/pub/"));
    let other = Authority::new("another one").file();
    for (ssl, curl, status) in [
        (path_of(&ours), "", 0),
        (path_of(&other), path_of(&ours), 0),
        (path_of(&ours), path_of(&other), 1),
        ("/no/such.pem", "", 2),
    ] {
        let mut search = crawler(&["find", &start, "--retries", "0"]);
        search.env("SSL_CERT_FILE", ssl);
        if !curl.is_empty() {
            search.env("CURL_CA_BUNDLE", curl);
        }
        let output = search.output().expect("runs");
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    }
    let mut search = crawler(&["find", &start, "--cacert", path_of(&ours)]);
    let output = search
        .env("SSL_CERT_FILE", path_of(&other))
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// As for curl.
#[test]
fn a_variable_that_names_no_file_matters_only_for_tls() {
    let server = Script::start(tree);
    let run = |words: &[&str]| {
        let mut command = crawler(words);
        let output = command.env("CURL_CA_BUNDLE", "/no/such.pem").output();
        output.expect("runs")
    };
    let output = run(&["find", &server.url("/pub/")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = run(&["get", "-s", &server.url("/pub/")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for words in [
        &["find", "https://127.0.0.1:1/pub/"][..],
        &["get", "https://127.0.0.1:1/pub/"],
    ] {
        let output = run(words);
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        let told = "roots in /no/such.pem: No such file";
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
}

// ---- output that nobody gets

#[test]
fn a_full_or_closed_output_is_an_error() {
    let server = Script::start(tree);
    let start = server.url("/pub/");
    let program = env!("CARGO_BIN_EXE_crawler-cli");
    for words in [
        &["find", &start, "--robots", "off"][..],
        &["find", "--help"],
        &["get", "--help"],
        &["get", "-s", &start],
        &["check", "--man"],
        &["completions", "bash"],
        &["--version"],
    ] {
        let mut full = Command::new(program);
        full.args(words)
            .stdout(File::create("/dev/full").expect("there"));
        let mut closed = Command::new("sh");
        closed.args(["-c", "exec \"$0\" \"$@\" >&-", program]);
        closed.args(words);
        for (mut command, error) in [(full, "No space left"), (closed, "Bad file descriptor")] {
            let output = command.stderr(Stdio::piped()).output().expect("runs");
            assert!(!output.status.success(), "{words:?}");
            if words[0] != "get" || words[1] == "--help" {
                assert!(
                    stderr(&output).contains(error),
                    "{words:?}: {}",
                    stderr(&output)
                );
            }
        }
    }
    // Nothing is written: nothing is lost.
    let mut quiet = Command::new("sh");
    quiet.args(["-c", "exec \"$0\" \"$@\" >&-", program]);
    quiet.args(["find", &start, "--robots", "off", "-name", "none"]);
    assert!(quiet.output().expect("runs").status.success());
}
