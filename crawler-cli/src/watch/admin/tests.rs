//! The server, over real connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use url::Url;

use super::served::Served;
use super::*;
use crate::store::StoreHandle as _;
use crate::watch::control::{By, Command, Reply, Schedules, perform};
use crate::watch::hands::Live;

#[test]
fn health_and_readiness_are_answered() {
    let served = Served::start();
    for path in ["/healthz", "/readyz"] {
        let answer = served.get(path);
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n"),
            "{answer}"
        );
    }
    served.vitals.note_store(Some("no space left"));
    let answer = served.get("/readyz");
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("no space left"),
        "{answer}"
    );
    assert!(served.get("/healthz").starts_with("HTTP/1.1 200 "));
    served.vitals.note_store(None);
    served.vitals.drain();
    assert!(served.get("/readyz").starts_with("HTTP/1.1 503 "));
    let metrics = served.get("/metrics");
    assert!(
        metrics.contains("application/openmetrics-text") && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    assert!(served.get("/version").contains(env!("CARGO_PKG_VERSION")));
    assert!(served.get("/nothing").starts_with("HTTP/1.1 404 "));
}

#[test]
fn requests_by_other_names_or_methods_are_refused() {
    let served = Served::start();
    let status = |request: &str| {
        let request = format!("{request}Connection: close\r\n\r\n");
        served
            .exchange(request)
            .get(9..12)
            .unwrap_or_default()
            .to_owned()
    };
    for (request, expected) in [
        ("GET /healthz HTTP/1.1\r\nHost: localhost:80\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: LOCALHOST\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: [::1]:9\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: 127.9.9.9\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n", "421"),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost.evil.example\r\n",
            "421",
        ),
        ("GET /healthz HTTP/1.1\r\nHost: 10.0.0.1\r\n", "421"),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
            "400",
        ),
        ("GET /healthz HTTP/1.1\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost:\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost:x\r\n", "421"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost:123456\r\n", "421"),
        ("GET /healthz HTTP/1.1\r\nHost: [::1\r\n", "421"),
        (
            "GET /healthz HTTP/1.1\r\nHost: [::1]evil.example\r\n",
            "421",
        ),
        (
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n",
            "405",
        ),
        ("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n", "405"),
    ] {
        assert_eq!(status(request), expected, "{request}");
    }
    let head =
        served.exchange("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n",
        "x".repeat(17 << 10)
    );
    assert_eq!(status(&long), "431");
}

/// Waits for the end of a connection that gets no answer.
#[track_caller]
fn is_cut_off(mut client: TcpStream) {
    let mut rest = Vec::new();
    let end = client.read_to_end(&mut rest);
    let is_timeout = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    assert!(!end.as_ref().is_err_and(is_timeout), "it is still open");
    assert!(
        end.is_err() || rest.is_empty() || rest.starts_with(b"HTTP/1.1 4"),
        "{end:?} {rest:?}"
    );
}

#[test]
fn a_slow_client_is_cut_off() {
    let limits = AdminLimits {
        head: Duration::from_secs(2),
        patience: Duration::from_secs(600),
        ..AdminLimits::default()
    };
    let served = Served::with(limits, "");
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut fresh = served.connect();
    fresh.write_all(&request[..30]).expect("sent");
    let silent = served.connect();
    // So is one that had an answer; the wait between two requests may be longer.
    let mut used = served.connect();
    used.write_all(request).expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok\n") {
        let mut byte = [0];
        used.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    used.write_all(&request[..30]).expect("sent");
    [fresh, silent, used].into_iter().for_each(is_cut_off);
}

#[test]
fn slow_clients_keep_nobody_from_an_answer() {
    let limits = AdminLimits {
        connections: 8,
        head: Duration::from_secs(600),
        whole: Duration::from_secs(600),
        patience: Duration::from_secs(600),
    };
    let served = Served::with(limits, "");
    let mut slow = Vec::new();
    for _ in 0..30 {
        let mut client = served.connect();
        client.write_all(b"GET /hea").expect("sent");
        slow.push(client);
    }
    for path in ["/healthz", "/metrics"] {
        assert!(served.get(path).starts_with("HTTP/1.1 200 "));
    }
    // There were 8 places, and the answered ones are free again.
    let last = slow.split_off(24);
    slow.truncate(22);
    slow.into_iter().for_each(is_cut_off);
    for mut client in last {
        let rest = b"lthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        client.write_all(rest).expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("answered");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// Runs what a request would do.
pub(super) fn with_runtime<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("built");
    runtime.block_on(future)
}

fn add(url: &str) -> Command {
    Command::Add {
        set: "docs".to_owned(),
        urls: vec![url.to_owned()],
    }
}

#[test]
fn commands_are_performed_and_read_again() {
    let (site, served) = Served::site("");
    let url = "https://example.com/";
    let root = with_runtime(async {
        let reply = site.perform("me".to_owned(), add(url)).await;
        assert!(
            matches!(reply, Ok(Reply::Added { new: 1, .. })),
            "{reply:?}"
        );
        site.read(move |reader| reader.host_of(url)).await
    });
    assert_eq!(root.expect("read").as_deref(), Some(url));
    drop(served);
}

#[test]
fn the_core_is_asked_once_however_many_ask() {
    let (site, served) = Served::site("");
    let since = std::time::Instant::now();
    with_runtime(async {
        for _ in 0..1_000 {
            let live = site.live().await;
            assert!(matches!(live, Live::Running(_)), "{live:?}");
        }
    });
    // Once a second, however slow the machine is.
    let asked = served.asked.load(Ordering::Relaxed);
    assert!(
        (1..=1 + since.elapsed().as_secs()).contains(&(asked as u64)),
        "{asked}"
    );
}

#[test]
fn the_core_tells_how_hosts_wait() {
    let (site, _served) = Served::site("");
    let root: Url = "https://example.com/".parse().expect("a URL");
    let hosts = with_runtime(site.hosts(vec![root.clone(); 2]));
    assert_eq!(hosts.len(), 2);
    assert_eq!(hosts[1].waits.root, root.as_str());
}

#[test]
fn what_is_read_is_of_one_moment() {
    let (site, served) = Served::site("");
    let store = served.store.clone();
    let seen = with_runtime(site.read(move |reader| {
        let before = reader.host_of("https://a.example/")?;
        store.call(|engine| {
            let by = By {
                who: "me".to_owned(),
                now: jiff::Timestamp::UNIX_EPOCH,
            };
            let schedules = Schedules::default();
            perform(engine, &add("https://a.example/"), &by, &schedules)
        })?;
        Ok((before, reader.host_of("https://a.example/")?))
    }));
    assert_eq!(seen.expect("read"), (None, None));
    let later = with_runtime(site.read(|reader| reader.host_of("https://a.example/")));
    assert!(later.expect("read").is_some());
}

#[test]
fn commands_that_wait_are_counted() {
    let (site, served) = Served::site("");
    let site = Arc::new(site);
    // The writer does nothing else until it is told.
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let store = served.store.clone();
    let blocked = thread::spawn(move || {
        store.call(move |_| {
            begun.send(()).expect("awaited");
            // Ends when the other end is dropped.
            let _ = wait.recv();
            Ok(())
        })
    });
    has_begun.recv().expect("begun");
    with_runtime(async {
        let mut commands = Vec::new();
        for number in 0..9 {
            let site = Arc::clone(&site);
            let command = add(&format!("https://example.com/{number}"));
            commands.push(tokio::spawn(async move {
                site.perform("me".to_owned(), command).await
            }));
            tokio::task::yield_now().await;
        }
        let tenth = site.perform("me".to_owned(), add("https://example.com/10"));
        assert!(matches!(tenth.await, Err(Trouble::Busy)));
        // Readers do not wait for the writer.
        let known = site
            .read(|reader| reader.host_of("https://example.com/1"))
            .await;
        assert_eq!(known.expect("read"), None);
        drop(go_on);
        for command in commands {
            let reply = command.await.expect("no panic");
            assert!(matches!(reply, Ok(Reply::Added { .. })), "{reply:?}");
        }
        let more = site.perform("me".to_owned(), add("https://example.com/10"));
        assert!(matches!(more.await, Ok(Reply::Added { new: 1, .. })));
    });
    blocked.join().expect("no panic").expect("called");
}
