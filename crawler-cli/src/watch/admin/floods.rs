//! What an attacker would try, over real connections: too much, too slowly, or all the time.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use axum::body::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::served::Served;
use super::tests::with_runtime;
use super::*;

#[test]
fn bodies_end_at_the_limit() {
    let served = Served::start();
    let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let declared = format!("{head}Content-Length: {}\r\n\r\n", 1u64 << 30);
    let answer = served.exchange(declared);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // Chunks without an end.
    let mut client = served.connect();
    let begin = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    client.write_all(begin.as_bytes()).expect("sent");
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let mut sent = 0u64;
    while client.write_all(chunk.as_bytes()).is_ok() {
        sent += 0x1000;
        assert!(sent < 1 << 30, "the server takes all");
    }
    let fields = "a=b&".repeat(100);
    let answer = served.post("/login", "", &fields);
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[test]
fn batches_end_at_the_limit() {
    let served = Served::start();
    let head =
        "POST /api/v1/urls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let declared = format!("{head}Content-Length: {}\r\n\r\n", (8 << 20) + 1);
    let answer = served.exchange(declared);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("urn:courser:problem:too-large"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    let mut client = served.connect();
    let begin = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    client.write_all(begin.as_bytes()).expect("sent");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let mut sent = 0u64;
    while client.write_all(chunk.as_bytes()).is_ok() {
        sent += 0x10000;
        assert!(sent < 1 << 30, "the server takes all");
    }
    // Lists in lists, and a body that says less than it has.
    let deep = "[".repeat(1 << 20);
    let (status, _, problem) = served.api("urls", "", &deep);
    assert_eq!(status, 422, "{problem}");
    let short = format!("{head}Content-Length: 20\r\n\r\n{{\"urls\"");
    let mut client = served.connect();
    client.write_all(short.as_bytes()).expect("sent");
    client.shutdown(std::net::Shutdown::Write).expect("shut");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("answered");
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    assert!(served.get("/api/v1/urls").ends_with("{\"items\":[]}\n"));
}

#[test]
fn requests_without_a_pause_delay_others_by_one() {
    const BUSY: usize = 5_000;
    let (site, _served) = Served::site("");
    let request = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Clients and server take turns on one thread: how long a turn takes does not matter.
    let answered = with_runtime(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let listener = Limited::new(listener, AdminLimits::default());
        let service = router(Arc::new(site)).into_make_service_with_connect_info::<Slot>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        let connect = || async {
            tokio::net::TcpStream::connect(address)
                .await
                .expect("connected")
        };
        let (mut reader, mut writer) = connect().await.into_split();
        tokio::spawn(async move { writer.write_all(request.repeat(BUSY).as_bytes()).await });
        let answered = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&answered);
        tokio::spawn(async move {
            let mut part = [0; 1 << 16];
            while let Ok(count @ 1..) = reader.read(&mut part).await {
                // Only this header field has the letters, and only once.
                let answers = part[..count]
                    .windows(6)
                    .filter(|part| part == b"nosnif")
                    .count();
                counted.fetch_add(answers, Ordering::Relaxed);
            }
        });
        // The busy client has begun.
        while answered.load(Ordering::Relaxed) == 0 {
            yield_now().await;
        }
        let mut other = connect().await;
        for _ in 0..20 {
            other.write_all(request.as_bytes()).await.expect("sent");
            let count = other.read(&mut [0; 4096]).await.expect("answered");
            assert!(count > 0);
        }
        answered.load(Ordering::Relaxed)
    });
    assert!(
        answered < BUSY / 2,
        "{answered} of the other client were answered before"
    );
}

#[test]
fn few_large_bodies_are_read_at_a_time() {
    let (site, _served) = Served::site("");
    let large = || Request::new(Body::from(vec![b'x'; 100 << 10]));
    let read = |most| with_runtime(body::read_body(&site, large(), most));
    assert_eq!(read(8 << 20).map(|sent| sent.content.len()), Ok(100 << 10));
    let status = |most| read(most).map(drop).map_err(|refused| refused.status);
    assert_eq!(status(64 << 10), Err(StatusCode::PAYLOAD_TOO_LARGE));
    let places = [site.large(), site.large()];
    assert_eq!(status(8 << 20), Err(StatusCode::TOO_MANY_REQUESTS));
    drop(places);
    assert!(status(8 << 20).is_ok());
}

#[test]
fn clients_that_send_a_byte_now_and_then_delay_nobody() {
    /// Ends the slow clients, also when the test fails.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let limits = AdminLimits {
        connections: 16,
        ..AdminLimits::default()
    };
    let served = Served::with(limits, "");
    let mut slow: Vec<_> = (0..200).map(|_| served.connect()).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for client in &mut slow {
                    // Those that were cut off cannot be written to.
                    let _ = client.write_all(b"G");
                }
            }
        });
        for _ in 0..50 {
            let since = Instant::now();
            let answer = served.get("/healthz");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(since.elapsed() < Duration::from_secs(60));
        }
    });
}

#[test]
fn a_body_that_comes_slowly_gives_way_and_an_answer_does_not() {
    let slot = slot::Slot::default();
    assert!(slot.waits_since().is_some());
    let answering = slot.answers();
    assert_eq!(slot.waits_since(), None);
    slot.reads_body(true);
    assert!(slot.waits_since().is_some());
    slot.reads_body(false);
    assert_eq!(slot.waits_since(), None);
    drop(answering);
    assert!(slot.waits_since().is_some());
    // The place of a client whose body does not come is given to another one.
    let limits = AdminLimits {
        connections: 1,
        ..AdminLimits::default()
    };
    let served = Served::with(limits, "");
    let mut slow = served.connect();
    let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\
                Content-Type: application/x-www-form-urlencoded\r\n\r\n";
    slow.write_all(head.as_bytes()).expect("sent");
    assert!(served.get("/healthz").starts_with("HTTP/1.1 200 "));
    let mut rest = Vec::new();
    // The end may be a reset.
    let _ = slow.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 2"), "{rest:?}");
}
