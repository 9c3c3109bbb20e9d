//! Receivers that fail, stall and attack. Each delivery ends by itself, and with few bytes read.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::*;

/// A receiver on loopback that treats each connection so, after it has read the request. Its URL, and the requests.
fn receiver(treat: impl Fn(&mut TcpStream) + Send + 'static) -> (Url, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, requests) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.ends_with(BODY) {
                match stream.read(&mut buffer) {
                    Ok(length @ 1..) => request.extend_from_slice(&buffer[..length]),
                    _ => break,
                }
            }
            // The test may have ended.
            let _ = sender.send(String::from_utf8_lossy(&request).into_owned());
            treat(&mut stream);
        }
    });
    let url = format!("http://{address}/hook");
    (url.parse().expect("a URL"), requests)
}

/// What became of a message to this receiver.
fn sent(timeout: Duration, treat: impl Fn(&mut TcpStream) + Send + 'static) -> Sent {
    let (url, _requests) = receiver(treat);
    let target = Target {
        timeout,
        ..target(url)
    };
    send(target, &Cancel::new())
}

fn target(url: Url) -> Target {
    Target {
        url,
        secret: None,
        timeout: LONG,
        allow_private: true,
        user_agent: "test".to_owned(),
    }
}

fn send(target: Target, cancel: &Cancel) -> Sent {
    let mut connection = Connection::new(target).expect("a client");
    let now = Timestamp::from_second(1_614_265_330).expect("a time");
    connection.send("msg_1", BODY, now, cancel)
}

fn failed(sent: Sent) -> Failed {
    match sent {
        Sent::Failed(failed) => failed,
        other => panic!("{other:?}"),
    }
}

/// Writes until the other side has enough.
fn for_ever(stream: &mut TcpStream, head: &str, part: &[u8]) {
    let mut written = stream.write_all(head.as_bytes());
    while written.is_ok() {
        written = stream.write_all(part);
    }
}

fn answer(text: &'static str) -> impl Fn(&mut TcpStream) + Send + 'static {
    move |stream| {
        // The client may have enough.
        let _ = stream.write_all(text.as_bytes());
    }
}

#[test]
fn a_message_is_signed_and_taken() {
    let (url, requests) = receiver(answer("HTTP/1.1 204 No Content\r\n\r\n"));
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a key");
    let signature = secret.sign("msg_1", 1_614_265_330, BODY);
    let target = Target {
        secret: Some(secret),
        ..target(url)
    };
    assert_eq!(send(target, &Cancel::new()), Sent::Delivered(204));
    let request = requests.recv().expect("a request").to_ascii_lowercase();
    for line in [
        "post /hook http/1.1\r\n",
        "content-type: application/json\r\n",
        "webhook-id: msg_1\r\n",
        "webhook-timestamp: 1614265330\r\n",
        &format!("webhook-signature: {signature}\r\n").to_ascii_lowercase(),
    ] {
        assert!(request.contains(line), "{line} {request}");
    }
}

#[test]
fn statuses_say_what_to_do() {
    let of = |text| sent(LONG, answer(text));
    let found = failed(of(
        "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n",
    ));
    assert_eq!(found.why, "HTTP 302: redirects are not followed");
    assert_eq!(
        of("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"),
        Sent::Gone
    );
    let bad = failed(of("HTTP/1.1 400 No\r\nContent-Length: 4\r\n\r\nwhat"));
    assert_eq!(
        (&*bad.why, &*bad.answer, bad.is_refused),
        ("HTTP 400", "what", true)
    );
    let busy = failed(of(
        "HTTP/1.1 503 Busy\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n",
    ));
    assert!(!busy.is_refused);
    let waits = [None, busy.asked].map(|asked| super::super::backoff::wait(1, 0.0, asked));
    assert!(
        waits
            .iter()
            .all(|wait| *wait <= Some(super::super::backoff::LONGEST))
    );
}

#[test]
fn an_answer_without_end_is_cut() {
    // The status is there: what follows is not waited for.
    let body = |stream: &mut TcpStream| {
        for_ever(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            &[b'x'; 4096],
        );
    };
    assert_eq!(sent(LONG, body), Sent::Delivered(200));
    let chunks = |stream: &mut TcpStream| {
        let head = "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n";
        for_ever(stream, head, b"4\r\nxxxx\r\n");
    };
    let chunks = failed(sent(LONG, chunks));
    assert_eq!((&*chunks.why, chunks.answer.len()), ("HTTP 500", KEPT));
    for (head, part) in [
        ("HTTP/1.1 200 OK\r\n", &b"X-More: and more\r\n"[..]),
        ("HTTP/1.1 200 OK\r\nX-Long: ", b"xxxxxxxxxxxxxxxx"),
        ("", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        ("", b"SSH-2.0-OpenSSH_9.2\r\n"),
    ] {
        let why = failed(sent(LONG, move |stream| for_ever(stream, head, part))).why;
        assert!(
            !why.is_empty() && !why.contains("timed out"),
            "{head:?}: {why}"
        );
    }
}

#[test]
fn an_answer_that_does_not_come_is_given_up() {
    let (release, held) = channel::<()>();
    let held = std::sync::Mutex::new(held);
    let silent = move |_: &mut TcpStream| {
        // Until the test is over.
        let _ = held.lock().expect("no panic").recv();
    };
    assert!(failed(sent(SHORT, silent)).why.contains("timed out"));
    drop(release);
    let drip = |stream: &mut TcpStream| {
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: "
            .iter()
            .chain([b'x'].iter().cycle())
        {
            thread::sleep(Duration::from_millis(20));
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
        }
    };
    assert!(failed(sent(SHORT, drip)).why.contains("timed out"));
    // The status has come: the message was taken, however slow the rest is.
    let slow_body = |stream: &mut TcpStream| {
        let mut written = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n");
        while written.is_ok() {
            thread::sleep(Duration::from_millis(20));
            written = stream.write_all(b"x");
        }
    };
    assert_eq!(sent(LONGER, slow_body), Sent::Delivered(200));
    for cut in ["", "HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\nContent-Le"] {
        let why = failed(sent(LONG, answer(cut))).why;
        assert!(!why.is_empty(), "{cut:?}");
    }
    let cut = answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    assert_eq!(sent(LONG, cut), Sent::Delivered(200));
}

#[test]
fn a_stop_does_not_wait_for_the_answer() {
    let cancel = Cancel::new();
    let other = cancel.clone();
    let (url, _requests) = receiver(move |stream| {
        other.set(crate::jobs::CancelReason::Shutdown);
        // Until the client has gone.
        let _ = stream.read(&mut [0; 16]);
    });
    assert_eq!(send(target(url), &cancel), Sent::Stopped);
}

#[test]
fn a_private_address_is_not_dialled_unless_that_is_allowed() {
    let (url, requests) = receiver(answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    let port = url.port().expect("a port");
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let target = Target {
            allow_private: false,
            ..target(format!("http://{host}:{port}/hook").parse().expect("a URL"))
        };
        let why = failed(send(target, &Cancel::new())).why;
        assert!(why.contains("address policy refuses"), "{host}: {why}");
    }
    assert!(requests.try_recv().is_err());
}

const BODY: &[u8] = b"{\"type\":\"test\"}";
/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(60);
/// For answers that begin, and do not end.
const LONGER: Duration = Duration::from_secs(5);
/// For answers that do not come.
const SHORT: Duration = Duration::from_millis(300);
