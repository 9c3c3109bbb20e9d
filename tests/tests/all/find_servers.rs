//! `crawler-cli find` against real servers over a tree full of awkward names: it finds exactly what the server lists,
//! whatever the concurrency, and the server's own log shows one request for each directory and no other.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::time::Duration;

use tests::program::PROGRAM;
use tests::script::Server;
use tests::servers::{Kind, WebServer};
use tests::tree::{Hidden, Paths, Tree, percent_decode};

#[test]
#[ignore = "needs nginx"]
fn nginx() {
    for extra in [
        "",
        "autoindex_exact_size off; autoindex_localtime on;",
        "keepalive_requests 3;",
        "gzip on; gzip_min_length 1;",
    ] {
        let extra = extra.to_owned();
        finds_the_tree(&Kind::Nginx { extra }, Hidden::Dotted);
    }
}

#[test]
#[ignore = "needs apache2"]
fn apache() {
    for (options, extra) in [
        ("", ""),
        ("FancyIndexing", ""),
        ("FancyIndexing NameWidth=* FoldersFirst", ""),
        ("FancyIndexing HTMLTable", ""),
        ("FancyIndexing XHTML IconsAreLinks FoldersFirst", ""),
        ("FancyIndexing TrackModified", "IndexStyleSheet /style.css"),
        ("FancyIndexing UseOldDateFormat", ""),
    ] {
        let kind = Kind::Apache {
            index_options: options.to_owned(),
            extra: extra.to_owned(),
        };
        finds_the_tree(&kind, Hidden::Nothing);
    }
}

#[test]
#[ignore = "needs python3"]
fn python() {
    finds_the_tree(&Kind::Python, Hidden::Nothing);
}

#[test]
#[ignore = "needs nginx"]
fn names_are_matched_as_they_are_on_the_disk() {
    let tree = Tree::awkward().unwrap();
    let server = WebServer::start(Kind::nginx(), tree.path());
    let files = tree.files(Hidden::Dotted).unwrap();
    for name in [
        "%41",
        "a b.txt",
        "q?mark",
        "back\\\\slash",
        "café",
        "line\nbreak",
        "?C=N;O=D",
    ] {
        // In a shell pattern `?` matches itself too, and a backslash is written twice.
        let output = find(&server.url(), &["-name", name, "-type", "f"]);
        let literal = name.replace("\\\\", "\\");
        let expected: Paths = files
            .iter()
            .filter(|path| path.rsplit(|byte| *byte == b'/').next() == Some(literal.as_bytes()))
            .cloned()
            .collect();
        assert!(!expected.is_empty());
        assert_eq!(results(&output, &server.url()), expected, "{name:?}");
    }
}

#[test]
#[ignore = "needs nginx"]
fn a_crawl_stays_below_its_start() {
    let tree = Tree::awkward().unwrap();
    let server = WebServer::start(Kind::nginx(), tree.path());
    let start = format!("{}a%20b.txt/", server.url());
    let output = find(&start, &["-type", "f"]);
    let found = results(&output, &server.url());
    assert!(!found.is_empty());
    assert!(found.iter().all(|path| path.starts_with(b"a b.txt/")));
    let lines = server.stop();
    assert_eq!(
        lines.len(),
        3,
        "robots.txt, the start and its one directory: {lines:?}"
    );
}

/// Too much for it by far, and it says so.
#[test]
#[ignore = "needs nginx"]
fn nginx_that_limits_the_rate() {
    let tree = tempfile::tempdir().unwrap();
    let mut expected = Paths::from([b"".to_vec()]);
    for directory in 0..100 {
        let path = format!("d{directory}/");
        std::fs::create_dir(tree.path().join(&path)).unwrap();
        std::fs::write(tree.path().join(&path).join("f"), b"").unwrap();
        expected.insert(format!("{path}f").into_bytes());
        expected.insert(path.into_bytes());
    }
    for limit in [
        "limit_req zone=requests; limit_req_status 429;",
        "limit_req zone=requests;",
        "limit_req zone=requests burst=20 nodelay; add_header Retry-After 1 always;",
        "limit_req zone=requests burst=20; limit_req_status 429;",
    ] {
        let extra = limit.to_owned();
        let server = WebServer::start(Kind::Nginx { extra }, tree.path());
        let url = server.url();
        let output = find(&url, &["-j", "64"]);
        assert_same(&results(&output, &url), &expected);
        let requests = server.stop().len();
        assert!(requests > 102, "{limit} does not limit");
        assert!(requests < 102 + 150, "{limit}: {requests} requests");
    }
}

#[test]
#[ignore = "needs nginx"]
fn nginx_that_limits_the_connections() {
    // What it asks takes a while, so that there is more than one request at a time.
    let upstream = Server::answer(|request| {
        std::thread::sleep(Duration::from_millis(5));
        let rows: String = match request.target().as_str() {
            "/" => (0..200)
                .map(|n| format!("<a href=\"d{n}/\">d</a>\r\n"))
                .collect(),
            _ => "<a href=\"f\">f</a>\r\n".to_owned(),
        };
        let page = format!(
            "<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n{rows}</pre><hr></body></html>\r\n"
        );
        let length = page.len();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
        format!("{head}Content-Length: {length}\r\n\r\n{page}").into_bytes()
    });
    let extra = format!(
        "location / {{ limit_conn connections 4; proxy_pass http://{}; }}",
        upstream.address()
    );
    let root = tempfile::tempdir().unwrap();
    let server = WebServer::start(Kind::Nginx { extra }, root.path());
    let url = server.url();
    let output = find(&url, &["-j", "64"]);
    assert_eq!(results(&output, &url).len(), 1 + 200 + 200);
    // And robots.txt.
    let answered = upstream.requests().len();
    assert_eq!(answered, 1 + 1 + 200);
    let refused = server.stop().len() - answered;
    assert!((1..150).contains(&refused), "{refused}");
}

fn finds_the_tree(kind: &Kind, hidden: Hidden) {
    println!("{kind:?}");
    let tree = match kind {
        Kind::Python => Tree::awkward_utf8(),
        _ => Tree::awkward(),
    }
    .unwrap();
    let directories = tree.directories(hidden).unwrap();
    let mut expected = tree.files(hidden).unwrap();
    expected.extend(directories.iter().cloned());
    for concurrency in ["1", "8", "64"] {
        let server = WebServer::start(kind.clone(), tree.path());
        let url = server.url();
        let output = find(&url, &["-j", concurrency]);
        assert_same(&results(&output, &url), &expected);
        assert_one_request_each(&server.stop(), &directories);
    }
}

fn find(url: &str, arguments: &[&str]) -> Output {
    let output = Command::new(&*PROGRAM)
        .arg("find")
        .args(["-x", ""])
        .arg(url)
        .args(arguments)
        .output()
        .expect("run crawler-cli");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {errors}", output.status);
    output
}

/// The printed URLs as paths relative to `root`, decoded. A URL printed twice is a fault.
fn results(output: &Output, root: &str) -> Paths {
    let mut paths = Paths::new();
    for line in output.stdout.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let shown = String::from_utf8_lossy(line);
        let relative = line.strip_prefix(root.as_bytes());
        let relative = relative.unwrap_or_else(|| panic!("{shown} is not below {root}"));
        let new = paths.insert(percent_decode(relative));
        assert!(new, "{shown} was printed twice");
    }
    paths
}

fn assert_same(found: &Paths, expected: &Paths) {
    let show = |paths: Vec<&Vec<u8>>| -> Vec<String> {
        let texts = paths
            .into_iter()
            .map(|path| String::from_utf8_lossy(path).into_owned());
        texts.collect()
    };
    let missing = show(expected.difference(found).collect());
    let surplus = show(found.difference(expected).collect());
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing: {missing:#?}\nnot in the tree: {surplus:#?}"
    );
}

/// One for each directory, and one for robots.txt.
fn assert_one_request_each(lines: &[Vec<u8>], directories: &Paths) {
    let mut directories = directories.clone();
    directories.insert(b"robots.txt".to_vec());
    let directories = &directories;
    let mut requests: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for line in lines {
        let target = line
            .strip_prefix(b"GET /")
            .and_then(|rest| rest.strip_suffix(b" HTTP/1.1"));
        let target = target.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(line)));
        *requests.entry(percent_decode(target)).or_default() += 1;
    }
    let repeated: Vec<_> = requests.iter().filter(|(_, count)| **count > 1).collect();
    assert!(
        repeated.is_empty(),
        "asked for more than once: {repeated:?}"
    );
    assert_same(&requests.into_keys().collect(), directories);
}
