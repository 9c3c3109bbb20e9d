//! `crawler-cli find --download`: the files on disk after good and bad behaviour of servers, disks and signals.

use crate::common::{Acceptor, crawler, find, index, read_head, response, stderr};
use find::expr::Parser;
use find::{Ending, Event, Find};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

// ---- a server of files

/// A request with field names in lower case.
struct Asked {
    line: String,
    fields: BTreeMap<String, String>,
}

impl Asked {
    fn parse(head: &str) -> Self {
        let mut lines = head.lines();
        let line = lines
            .next()
            .unwrap_or("")
            .trim_end_matches(" HTTP/1.1")
            .to_owned();
        let fields = lines.filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Self {
            line,
            fields: fields.collect(),
        }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// A server on a free loopback port that runs until it is dropped. One exchange for each connection.
struct Files {
    acceptor: Acceptor,
    log: Arc<Mutex<Vec<String>>>,
    most_at_once: Arc<AtomicUsize>,
}

impl Files {
    /// Starts the server. `answer` gets the request and the connection, to which it writes the response.
    fn start(answer: impl Fn(&Asked, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let most_at_once = Arc::new(AtomicUsize::new(0));
        let (all, most) = (Arc::clone(&log), Arc::clone(&most_at_once));
        let at_once = Arc::new(AtomicUsize::new(0));
        let acceptor = Acceptor::start("127.0.0.1", move |stream| {
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            UNDER_WAY.set(Some(UnderWay(Arc::clone(&at_once))));
            let mut reader = BufReader::new(stream);
            let asked = Asked::parse(&read_head(&mut reader));
            if !asked.line.is_empty() {
                let range = asked.field("range").unwrap_or("");
                let line = format!("{} {range}", asked.line).trim_end().to_owned();
                all.lock().expect("no test panicked here").push(line);
                let mut stream = reader.into_inner();
                answer(&asked, &mut stream);
            }
            UNDER_WAY.set(None);
        });
        Self {
            acceptor,
            log,
            most_at_once,
        }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.acceptor.address)
    }

    /// The requests since the last call, each with its range, in order of arrival.
    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().expect("no test panicked here"))
    }
}

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const MODIFIED_SECONDS: u64 = 784_111_777;

/// A response with a file or a part of it, and a validator, by the rules of RFC 9110 §13.2 and §14.
fn file(asked: &Asked, body: &[u8], etag: &str) -> Vec<u8> {
    let same = asked.field("if-range").is_none_or(|tag| tag == etag);
    let range = asked.field("range").filter(|_| same);
    let first = range.map(|range| {
        let first = range.trim_start_matches("bytes=").trim_end_matches('-');
        first.parse::<usize>().expect("a number")
    });
    let fields = format!("ETag: {etag}\r\nLast-Modified: {MODIFIED}\r\n");
    let total = body.len();
    match first {
        Some(first) if first >= total => {
            response(416, &format!("Content-Range: bytes */{total}\r\n"), "")
        }
        Some(first) => {
            let last = total - 1;
            let range = format!("Content-Range: bytes {first}-{last}/{total}\r\n{fields}");
            response(206, &range, &body[first..])
        }
        None => response(200, &fields, body),
    }
}

/// A page with these links.
fn page(hrefs: &[&str]) -> Vec<u8> {
    response(200, "Content-Type: text/html\r\n", index(hrefs))
}

fn send(stream: &mut TcpStream, bytes: &[u8]) {
    // After the last byte, the client may send its next request before this thread ends, so that the exchange ends
    // first.
    let (most, last) = bytes.split_at(bytes.len().saturating_sub(1));
    // The client may have closed the connection.
    let _ = stream.write_all(most);
    UNDER_WAY.set(None);
    let _ = stream.write_all(last);
}

thread_local! {
    /// The exchange of this thread, which is counted until the value is dropped.
    static UNDER_WAY: Cell<Option<UnderWay>> = const { Cell::new(None) };
}

/// A running exchange.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server with one file, `x.iso`.
fn one_file(answer: impl Fn(&Asked, &mut TcpStream) + Send + Sync + 'static) -> Files {
    Files::start(move |asked, stream| match asked.line.as_str() {
        "GET /" => send(stream, &page(&["x.iso"])),
        _ => answer(asked, stream),
    })
}

// ---- a directory

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn download(server: &Files, to: &Path, more: &[&str]) -> Output {
    let url = server.url();
    let mut args = vec![url.as_str(), "-type", "f", "--download", text(to)];
    args.extend(more);
    find(&args)
}

/// All files below a directory, including hidden ones, with their contents; links with their targets.
fn files(below: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, at: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(at).expect("a directory") {
            let path = entry.expect("an entry").path();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            if meta.is_dir() {
                walk(root, &path, all);
                continue;
            }
            let name = path.strip_prefix(root).expect("below").to_owned();
            let bytes = if meta.is_symlink() {
                let to = fs::read_link(&path).expect("a link");
                to.into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).expect("readable")
            };
            all.insert(name, bytes);
        }
    }
    let mut all = BTreeMap::new();
    walk(below, below, &mut all);
    all
}

fn only(name: &str, bytes: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
    BTreeMap::from([(name.into(), bytes.to_vec())])
}

#[track_caller]
fn assert_done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

#[track_caller]
fn assert_failed(output: &Output, cause: &str) {
    let stderr = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(cause), "{cause} in {stderr}");
}

// ---- output

/// The limit is for all files together. A test that is too slow does not fail.
#[test]
fn all_transfers_together_keep_to_the_limit() {
    let server = Files::start(|asked, stream| {
        let answer = match asked.line.as_str() {
            "GET /" => page(&["1", "2", "3", "4"]),
            _ => file(asked, &[7; 100 << 10], "\"v1\""),
        };
        send(stream, &answer);
    });
    let to = directory();
    let began = Instant::now();
    assert_done(&download(&server, to.path(), &["--limit-rate", "200K"]));
    let took = began.elapsed();
    // 400 KiB, of which a burst comes at once.
    assert!(took >= Duration::from_millis(1500), "{took:?}");
    assert_eq!(files(to.path()).len(), 4);
}

/// A peer that sends a byte now and then keeps each pause short, and would hold the search for ever.
#[test]
fn a_download_that_drips_ends_the_search() {
    let server = one_file(|_, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: {}\r\n\r\n",
            1 << 30
        );
        let mut written = stream.write_all(head.as_bytes());
        while written.is_ok() {
            thread::sleep(Duration::from_millis(20));
            written = stream.write_all(b"x");
        }
    });
    let to = directory();
    let output = download(&server, to.path(), &["--timeout", "2", "--retries", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let why = "x.iso: the answer came too slowly: less than 30 KiB in 2 s";
    assert!(said.contains(why), "{said}");
    let asked = server.requests();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[2].starts_with("GET /x.iso bytes="), "{asked:?}");
}

// ---- complete downloads

/// Files of many sizes in directories. Their names have to be decoded exactly once.
fn tree() -> BTreeMap<&'static str, Vec<u8>> {
    let bytes = |length: usize| (0..length).map(|at| (at * 7 + at / 256) as u8).collect();
    BTreeMap::from([
        ("/empty", bytes(0)),
        ("/one", bytes(1)),
        ("/a/large", bytes(1_500_000)),
        ("/a/b/a%20b%2520c", bytes(100)),
        ("/a/b/caf%C3%A9", bytes(65_536)),
        ("/a/b/plus+", bytes(65_537)),
    ])
}

fn tree_server() -> Files {
    let tree = tree();
    Files::start(move |asked, stream| {
        let (_, path) = asked.line.split_once(' ').expect("a request line");
        let answer = match path {
            "/" => page(&["a/", "empty", "one"]),
            "/a/" => page(&["b/", "large"]),
            "/a/b/" => page(&["a%20b%2520c", "caf%C3%A9", "plus+"]),
            _ => file(asked, &tree[path], "\"v1\""),
        };
        send(stream, &answer);
    })
}

#[test]
fn a_tree_is_on_the_disk_as_it_is_on_the_server() {
    let server = tree_server();
    let (to, reports) = (directory(), directory());
    let json = reports.path().join("summary");
    let output = download(
        &server,
        to.path(),
        &["--summary", &format!("json:{}", text(&json))],
    );
    assert_done(&output);
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(&json).expect("written")).expect("JSON");
    let downloads = &summary["summary"]["downloads"];
    for (name, value) in [
        ("wanted", 6),
        ("saved", 6),
        ("kept", 0),
        ("bytes", 1_631_174),
    ] {
        assert_eq!(downloads[name], value, "{name}");
    }
    let wanted: BTreeMap<PathBuf, Vec<u8>> = tree()
        .into_iter()
        .map(|(path, bytes)| {
            let path = path[1..]
                .replace("%20", " ")
                .replace("%25", "%")
                .replace("%C3%A9", "\u{e9}");
            (path.into(), bytes)
        })
        .collect();
    assert!(files(to.path()) == wanted);
    let modified = fs::metadata(to.path().join("one"))
        .expect("a file")
        .modified();
    let since = modified
        .expect("a time")
        .duration_since(UNIX_EPOCH)
        .expect("later");
    assert_eq!(since, Duration::from_secs(MODIFIED_SECONDS));

    // A second run: the heads of the answers show that all files are there.
    let output = download(&server, to.path(), &[]);
    assert_done(&output);
    assert!(
        stderr(&output).contains("0 files downloaded (0 bytes), 6 there already"),
        "{}",
        stderr(&output)
    );
    assert!(files(to.path()) == wanted);
}

/// Fails if downloads have connections in addition to those of the listings.
#[test]
fn pages_and_files_share_the_connections() {
    for connections in ["1", "2", "3"] {
        let server = tree_server();
        let to = directory();
        assert_done(&download(&server, to.path(), &["-j", connections]));
        assert_eq!(files(to.path()).len(), 6);
        let most = server.most_at_once.load(Ordering::SeqCst);
        assert!(most <= connections.parse().expect("a number"), "{most}");
    }
}

// ---- interrupted downloads

const BODY: &[u8] = b"forty bytes that are not all alike, 0123";

/// Sends only a part of the first response, and closes the connection.
fn cutting(cut: usize) -> impl Fn(&Asked, &mut TcpStream) {
    let first = AtomicUsize::new(0);
    move |asked, stream| {
        let whole = file(asked, BODY, "\"v1\"");
        let end = match first.fetch_add(1, Ordering::SeqCst) {
            0 => whole.len() - BODY.len() + cut,
            _ => whole.len(),
        };
        send(stream, &whole[..end]);
    }
}

#[test]
fn a_download_cut_at_any_byte_continues() {
    for cut in 0..BODY.len() {
        let server = one_file(cutting(cut));
        let to = directory();
        assert_failed(
            &download(&server, to.path(), &["--retries", "0"]),
            "/x.iso: ",
        );
        let left = files(to.path());
        if cut == 0 {
            assert!(left.is_empty(), "nothing to go on with: {left:?}");
        } else {
            assert_eq!(left[Path::new(".x.iso.courser-part")], BODY[..cut]);
            assert_eq!(left.len(), 2, "the part and its note");
        }
        let rest = match cut {
            0 => "GET /x.iso".to_owned(),
            _ => format!("GET /x.iso bytes={cut}-"),
        };
        assert_eq!(server.requests(), ["GET /", "GET /x.iso"]);
        assert_done(&download(&server, to.path(), &["--retries", "0"]));
        assert_eq!(server.requests(), ["GET /".to_owned(), rest]);
        assert_eq!(files(to.path()), only("x.iso", BODY));
    }
}

/// SIGKILL while the body arrives.
#[test]
fn after_a_kill_the_next_run_continues() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let times = AtomicUsize::new(0);
    let server = one_file(move |asked, stream| {
        let whole = file(asked, BODY, "\"v1\"");
        if times.fetch_add(1, Ordering::SeqCst) == 0 {
            send(stream, &whole[..whole.len() - 10]);
            // An error means that the test has ended.
            let _ = gate.lock().expect("not poisoned").recv();
        } else {
            send(stream, &whole);
        }
    });
    let to = directory();
    let mut child = crawler(&["find", &server.url(), "--download", text(to.path())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let part = to.path().join(".x.iso.courser-part");
    while fs::metadata(&part).map_or(0, |meta| meta.len()) < 30 {
        assert_eq!(child.try_wait().expect("a child"), None, "it still runs");
        thread::sleep(Duration::from_millis(1));
    }
    // While the first process runs, another one cannot write to the file.
    assert_failed(
        &download(&server, to.path(), &[]),
        "another process is downloading ",
    );
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    drop(open);
    server.requests();
    assert_done(&download(&server, to.path(), &[]));
    assert_eq!(server.requests(), ["GET /", "GET /x.iso bytes=30-"]);
    assert_eq!(files(to.path()), only("x.iso", BODY));
}

/// Fails if a file that was found before the kill is not found again and its download is lost.
#[test]
fn after_a_kill_a_search_with_state_fetches_the_files_it_had_found() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let times = AtomicUsize::new(0);
    let server = Files::start(move |asked, stream| {
        if asked.line == "GET /" {
            return send(stream, &page(&["x.iso", "y.iso", "z.iso"]));
        }
        let whole = file(asked, BODY, "\"v1\"");
        if times.fetch_add(1, Ordering::SeqCst) < 2 {
            send(stream, &whole[..whole.len() - 10]);
            // An error means that the test is over.
            let _ = gate.lock().expect("not poisoned").recv();
        } else {
            send(stream, &whole);
        }
    });
    let (to, other) = (directory(), directory());
    let state = other.path().join("state");
    let url = server.url();
    let args = ["find", &url, "-j", "2", "-type", "f"];
    let kept = ["--download", text(to.path()), "--state", text(&state)];
    let mut child = crawler(&[&args[..], &kept].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let parts = ["x.iso", "y.iso"].map(|name| to.path().join(format!(".{name}.courser-part")));
    let length = |part: &PathBuf| fs::metadata(part).map_or(0, |meta| meta.len());
    while parts.iter().any(|part| length(part) < 30) {
        assert_eq!(child.try_wait().expect("a child"), None, "it still runs");
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    drop(open);
    server.requests();
    let output = crawler(&[&args[..], &kept].concat()).output();
    assert_done(&output.expect("the program runs"));
    let mut requests = server.requests();
    requests.sort();
    let wanted = ["GET /x.iso bytes=30-", "GET /y.iso bytes=30-", "GET /z.iso"];
    assert_eq!(requests, wanted);
    let all = ["x.iso", "y.iso", "z.iso"].map(|name| (PathBuf::from(name), BODY.to_vec()));
    assert_eq!(files(to.path()), BTreeMap::from(all));
    assert!(!state.exists());
}

// ---- errors

#[test]
fn disallowed_files_are_found_and_not_fetched() {
    let server = Files::start(|asked, stream| match asked.line.as_str() {
        "GET /robots.txt" => send(
            stream,
            &response(200, "", "User-agent: *\nDisallow: /*.iso"),
        ),
        "GET /" => send(stream, &page(&["x.iso", "y"])),
        _ => send(stream, &file(asked, BODY, "\"v1\"")),
    });
    let to = directory();
    let output = find(&[
        &server.url(),
        "--robots=on",
        "-type",
        "f",
        "--download",
        text(to.path()),
    ]);
    assert_failed(&output, "x.iso: not read: robots.txt disallows it");
    assert_eq!(
        output.stdout,
        format!("{0}x.iso\n{0}y\n", server.url()).as_bytes()
    );
    assert_eq!(server.requests(), ["GET /robots.txt", "GET /", "GET /y"]);
    assert_eq!(files(to.path()), only("y", BODY));
}

#[test]
fn files_found_before_the_end_are_downloaded() {
    let server = tree_server();
    let to = directory();
    assert_done(&find(&[
        &server.url(),
        "--download",
        text(to.path()),
        "-name",
        "large",
        "-print",
        "-quit",
    ]));
    assert_eq!(files(to.path()), only("a/large", &tree()["/a/large"]));
}

/// Fails if a directory that waits for its next attempt keeps the ended search busy.
#[test]
fn a_search_that_has_ended_sleeps_while_its_last_file_comes() {
    let (turn, turns) = mpsc::channel();
    let turns = Mutex::new(turns);
    let server = Files::start(move |asked, stream| match asked.line.as_str() {
        "GET /" => send(stream, &page(&["a", "bad/", "c/"])),
        "GET /bad/" => send(stream, &response(500, "", "")),
        "GET /c/" => send(stream, &page(&["last"])),
        "GET /last" => send(stream, &response(200, "", BODY)),
        _ => {
            let turns = turns.lock().expect("no test panicked here");
            for _ in 0..20 {
                turns.recv().expect("the search goes on");
            }
            send(stream, &file(asked, BODY, "\"v1\""));
        }
    });
    let words = ["-name", "last", "-quit", "-o", "-type", "f", "-print"];
    let mut words = words.into_iter().map(OsString::from);
    let mut parser = Parser::new(SystemTime::now());
    while let Some(word) = words.next() {
        assert!(parser.take(&word, &mut words).expect("it is valid"));
    }
    let to = directory();
    let mut find = Find::new()
        .start(&server.url())
        .expect("a URL")
        .expression(parser.finish().expect("it is valid"))
        .download(to.path())
        .expect("a directory");
    let mut ended = None;
    find.settings.host.robots = false;
    find.run(|event| {
        if let Event::Progress(summary) = event
            && summary.ending == Ending::Quit
        {
            ended.get_or_insert_with(Instant::now);
            // The server receives only 20 of these messages.
            let _ = turn.send(());
        }
        ControlFlow::Continue(())
    });
    // An iteration takes 100 ms, and the directory waits for 500 ms.
    let ended = ended.expect("it has ended");
    assert!(ended.elapsed() >= Duration::from_secs(1));
    assert_eq!(files(to.path()), only("a", BODY));
}

/// A listing is older than its files now and then.
#[test]
fn a_file_of_another_size_than_in_the_listing_is_taken_with_a_warning() {
    // Its times are in UTC, so that no file is asked for the time zone.
    let listing =
        r#"[{"name":"x.iso","type":"file","mtime":"Sun, 22 Nov 2026 10:00:00 GMT","size":7}]"#;
    let server = |answer: Vec<u8>| {
        Files::start(move |asked, stream| {
            send(
                stream,
                &match asked.line.as_str() {
                    "GET /" => response(200, "Content-Type: application/json\r\n", listing),
                    _ => answer.clone(),
                },
            );
        })
    };
    for body in ["abc", "more than seven bytes"] {
        let server = server(response(200, "", body));
        let to = directory();
        let output = download(&server, to.path(), &[]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(files(to.path()), only("x.iso", body.as_bytes()));
        let warning = format!(
            "x.iso: warning: {} bytes, where the listing has 7\n",
            body.len()
        );
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(&warning), "{told}");
    }
    // Without a length, nothing shows that an answer is complete, or that it ends.
    for body in ["abc", "more than seven bytes"] {
        let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}");
        let server = server(answer.into_bytes());
        let to = directory();
        let output = download(&server, to.path(), &["--retries", "0"]);
        assert_failed(&output, "x.iso: the size should be 7 bytes, not ");
    }
}

// ---- existing files

#[test]
fn existing_files_are_replaced_only_on_demand() {
    let server = one_file(|asked, stream| send(stream, &file(asked, BODY, "\"v1\"")));
    let to = directory();
    for other in [
        &b"mine"[..],
        &b"mine, and as long as the server's file is"[..40],
    ] {
        fs::write(to.path().join("x.iso"), other).expect("written");
        assert_failed(
            &download(&server, to.path(), &[]),
            "x.iso exists and differs from the server's file; it was left as it is",
        );
        assert_eq!(files(to.path()), only("x.iso", other));
    }
    assert_done(&download(&server, to.path(), &["--overwrite"]));
    assert_eq!(files(to.path()), only("x.iso", BODY));
}

#[test]
fn links_in_the_directory_are_not_followed() {
    let server = Files::start(|asked, stream| match asked.line.as_str() {
        "GET /" => send(stream, &page(&["sub/", "x.iso", "y.iso", "z.iso"])),
        "GET /sub/" => send(stream, &page(&["w.iso"])),
        _ => send(stream, &file(asked, BODY, "\"v1\"")),
    });
    let (to, outside) = (directory(), directory());
    let victim = outside.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    let link = |at: &str, to_what: &Path| symlink(to_what, to.path().join(at)).expect("a link");
    link("sub", outside.path());
    link("x.iso", &victim);
    link(".y.iso.courser-part", &victim);
    fs::hard_link(&victim, to.path().join(".z.iso.courser-part")).expect("a link");
    for more in [&[][..], &["--overwrite"]] {
        let output = download(&server, to.path(), more);
        for name in ["sub/w.iso", "x.iso", "y.iso", "z.iso"] {
            assert_failed(&output, &format!("{}{name}: ", server.url()));
        }
        assert_eq!(files(outside.path()), only("victim", b"precious"));
    }
}

#[test]
fn a_directory_that_cannot_be_used_is_wrong_usage() {
    let to = directory();
    let occupied = to.path().join("file");
    fs::write(&occupied, "").expect("written");
    let output = find(&["http://127.0.0.1:1/", "--download", text(&occupied)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--download "),
        "{}",
        stderr(&output)
    );
}

/// A full disk ends the run at the first write that fails. With free space, the same command continues.
#[test]
#[ignore = "needs root, to mount a small file system"]
fn a_full_disk_is_named_and_received_bytes_are_kept() {
    let server = Files::start(|asked, stream| match asked.line.as_str() {
        "GET /" => send(stream, &page(&["1", "2", "3", "4"])),
        _ => send(stream, &file(asked, &[7; 100_000], "\"v1\"")),
    });
    let to = directory();
    let mount = |options: &str| {
        let args = ["-t", "tmpfs", "-o", options, "none", text(to.path())];
        let status = std::process::Command::new("mount").args(args).status();
        assert!(status.expect("mount runs").success());
    };
    mount("size=192k");
    let output = download(&server, to.path(), &["-j", "1"]);
    assert_failed(&output, "No space left on device");
    let asked = server.requests();
    assert!(asked.len() <= 4, "{asked:?}");
    let said = stderr(&output);
    assert!(said.contains("; STOPPED early"), "{said}");
    assert!(said.contains("; 3 NOT DOWNLOADED"), "{said}");
    mount("remount,size=1m");
    let output = download(&server, to.path(), &["-j", "1"]);
    let done = files(to.path());
    let unmounted = std::process::Command::new("umount").arg(to.path()).status();
    assert!(unmounted.expect("umount runs").success());
    assert_done(&output);
    assert_eq!(done.len(), 4);
    assert!(done.values().all(|bytes| *bytes == [7; 100_000]));
    let resumed = server
        .requests()
        .iter()
        .filter(|line| line.contains("bytes="))
        .count();
    assert_eq!(resumed, 1);
}

/// How many files have their names, while more of them come.
fn complete(below: &Path) -> usize {
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    let counts = entries.map(|entry| match entry.path() {
        path if path.is_dir() => complete(&path),
        path => usize::from(
            path.file_name()
                .is_some_and(|name| name.as_encoded_bytes()[0] == b'f'),
        ),
    });
    counts.sum()
}

/// The trap: ten hosts whose files do not come take all the room, and the files of a fast host wait for good.
#[test]
fn slow_hosts_do_not_keep_a_fast_one_from_its_files() {
    const FILES: usize = 40;
    let names: Vec<String> = (0..FILES).map(|n| format!("f{n}")).collect();
    let serve = |is_fast: bool| {
        let names = names.clone();
        Files::start(move |asked, stream| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match asked.line.as_str() {
                "GET /" => send(stream, &page(&names)),
                _ if is_fast => send(stream, &file(asked, BODY, "\"v1\"")),
                // Nothing comes before the client closes the connection.
                _ => drop(std::io::copy(stream, &mut std::io::sink())),
            }
        })
    };
    let slow: Vec<Files> = (0..10).map(|_| serve(false)).collect();
    let fast = serve(true);
    let to = directory();
    let urls: Vec<String> = slow.iter().chain([&fast]).map(Files::url).collect();
    let mut args = vec!["find"];
    args.extend(urls.iter().map(String::as_str));
    // The slow ones do not make room by being given up.
    args.extend(["--timeout", "3600", "--download", text(to.path())]);
    let mut command = crawler(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    let began = Instant::now();
    while complete(to.path()) < FILES {
        assert!(began.elapsed() < Duration::from_secs(60), "it starves");
        thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("it was just begun");
}
