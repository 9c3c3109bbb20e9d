//! Request bodies that come in pieces, and bodies as the types of other crates.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::task::{Context, Poll};

use courser::{BodyClosed, BodySource, Bytes};
use futures_lite::{AsyncReadExt, StreamExt as _};
use http_body_util::BodyExt;

use super::server::pattern;
use super::*;

/// What the server got, and how it was framed.
fn echoed(client: &Shared<HostClient>, request: Request) -> (Vec<u8>, String) {
    let done = block_on(client.send(Call::new(request, Response::new())));
    done.outcome.unwrap();
    let came = done.response.header("X-Came").unwrap_or_default();
    let came = String::from_utf8_lossy(came).into_owned();
    (done.response.body().to_vec(), came)
}

#[test]
fn a_channel_carries_a_body_from_another_thread() {
    let (_server, client) = started();
    let all = pattern(0..300_000);
    for (length, expected) in [(None, "chunked"), (Some(300_000), "length")] {
        let mut request = Request::put("/echo", "");
        let mut sender = request.body_channel(length, 10_000);
        let pieces: Vec<Bytes> = all.chunks(7_001).map(Bytes::copy_from_slice).collect();
        let writer = thread::spawn(move || {
            for piece in pieces {
                let sent = match length {
                    None => sender.send(piece),
                    Some(_) => block_on(sender.send_async(piece)),
                };
                sent.unwrap();
            }
            sender.finish();
        });
        let (body, came) = echoed(&client, request);
        assert!(body == all, "{} bytes came", body.len());
        assert_eq!(came, expected);
        writer.join().unwrap();
    }
}

#[test]
fn a_sender_that_is_dropped_fails_the_call() {
    let (_server, client) = started();
    for (abort, expected) in [(false, "dropped before its end"), (true, "no more")] {
        let mut request = Request::put("/echo", "");
        let sender = request.body_channel(None, 100);
        sender.send("half").unwrap();
        match abort {
            true => sender.abort(io::Error::other("no more")),
            false => drop(sender),
        }
        let done = block_on(client.send(Call::new(request, Response::new())));
        let error = done.outcome.unwrap_err();
        let ErrorKind::Misuse(Misuse::BodySource(cause)) = error.kind() else {
            panic!("{error}");
        };
        assert!(cause.to_string().contains(expected), "{cause}");
    }
}

#[test]
fn a_call_that_ends_closes_the_channel() {
    let (_server, client) = started();
    let mut request = Request::new("PUT", "/held");
    let sender = request.body_channel(None, 10);
    let sending = client.send(Call::new(request, Response::new()));
    sender.send("first").unwrap();
    // Waits for room until the call is gone.
    let writer = thread::spawn(move || {
        loop {
            if sender.send("more than the room") == Err(BodyClosed) {
                return;
            }
        }
    });
    let ticket = sending.ticket().unwrap();
    ticket.cancel();
    // The request with its body is in the completion.
    drop(block_on(sending));
    writer.join().unwrap();
}

/// A source whose waker is woken by another thread, twice for each piece.
struct Late(u32);

impl BodySource for Late {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        self.0 -= 1;
        if self.0 == 0 {
            return Poll::Ready(Ok(None));
        }
        if self.0.is_multiple_of(2) {
            let waker = context.waker().clone();
            thread::spawn(move || {
                waker.wake_by_ref();
                waker.wake();
            });
            return Poll::Pending;
        }
        // Pieces without bytes are no end.
        let piece = if self.0.is_multiple_of(3) {
            ""
        } else {
            "piece "
        };
        Poll::Ready(Ok(Some(Bytes::from_static(piece.as_bytes()))))
    }
}

#[test]
fn a_source_wakes_its_call() {
    let (_server, client) = started();
    let mut request = Request::put("/echo", "");
    request.body_source(Late(100), None);
    let (body, _) = echoed(&client, request);
    let pieces = (1..100).filter(|number| number % 2 == 1 && number % 3 != 0);
    assert_eq!(body, "piece ".repeat(pieces.count()).as_bytes());
}

#[test]
fn only_empty_pieces_do_not_hold_the_thread() {
    struct Empty;
    impl BodySource for Empty {
        fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
            Poll::Ready(Ok(Some(Bytes::new())))
        }
    }
    let (_server, client) = started();
    let mut request = Request::put("/echo", "");
    request.body_source(Empty, None);
    let endless = client.send(Call::new(request, Response::new()));
    let mut response = Response::new();
    let call = client.call(&mut Request::post("/echo", "x"), &mut response);
    call.unwrap();
    assert_eq!(response.body(), b"x");
    drop(endless);
}

/// A source may not pretend that it would block: the call would wait for ever.
#[test]
fn a_source_that_fails_with_would_block_fails_the_call() {
    struct Blocked;
    impl BodySource for Blocked {
        fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
            Poll::Ready(Err(io::ErrorKind::WouldBlock.into()))
        }
    }
    let (_server, client) = started();
    let mut request = Request::put("/echo", "");
    request.body_source(Blocked, None);
    let error = client.call(&mut request, &mut Response::new()).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::BodySource(_)));
}

/// A reader that has no bytes until the test says so.
struct Gated {
    is_open: Arc<AtomicBool>,
    asked: mpsc::Sender<()>,
    rest: &'static [u8],
}

impl Read for Gated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = self.asked.send(());
        match self.is_open.load(Ordering::SeqCst) {
            true => Read::read(&mut self.rest, buffer),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// A request with such a body, what opens it, and what tells that it was asked for bytes.
fn gated() -> (Request, Arc<AtomicBool>, mpsc::Receiver<()>) {
    let is_open = Arc::<AtomicBool>::default();
    let (asked, was_asked) = mpsc::channel();
    let mut request = Request::put("/echo", "");
    let source = Gated {
        is_open: Arc::clone(&is_open),
        asked,
        rest: b"late",
    };
    request.body_stream(source, Some(4));
    (request, is_open, was_asked)
}

#[test]
fn a_ticket_resumes_a_streamed_upload() {
    let (_server, client) = started();
    let (request, is_open, was_asked) = gated();
    let streaming = client.send_streaming(Call::new(request, Response::new()));
    was_asked.recv().unwrap();
    is_open.store(true, Ordering::SeqCst);
    streaming.ticket().expect("a call in flight").resume();
    let (head, body) = block_on(streaming);
    head.outcome.unwrap();
    let mut text = String::new();
    Read::read_to_string(&mut body.unwrap(), &mut text).unwrap();
    assert_eq!(text, "late");
}

/// Its caller waits, and has no ticket.
#[test]
fn a_call_that_blocks_is_not_resumed() {
    let (_server, client) = started();
    let mut response = Response::new();
    let called = client.call(&mut gated().0, &mut response).map(|_| ());
    let opened = client.open(&mut gated().0, &mut response).map(|_| ());
    for outcome in [called, opened] {
        assert_kind!(
            outcome.unwrap_err(),
            ErrorKind::Misuse(Misuse::NotResumable)
        );
    }
}

/// Without a client of threads, the waker ends the wait of the caller.
#[test]
fn a_source_wakes_a_client_that_the_caller_drives() {
    let server = Server::start();
    let mut client = HostClient::new(server.upstream(), patient()).unwrap();
    let mut request = Request::put("/echo", "");
    request.body_source(Late(20), None);
    let mut response = Response::new();
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(response.body(), "piece ".repeat(7).as_bytes());
}

#[test]
fn streams_and_bodies_of_other_crates_are_sent() {
    let (_server, client) = started();
    let mut request = Request::put("/echo", "");
    let items = ["a", "b", "c"].map(|item| Ok::<_, io::Error>(item.as_bytes().to_vec()));
    request.body_of_stream(futures_lite::stream::iter(items), None);
    assert_eq!(
        echoed(&client, request),
        (b"abc".to_vec(), "chunked".to_owned())
    );

    let mut request = Request::put("/echo", "");
    request.body_of(http_body_util::Full::new(Bytes::from("whole")));
    assert_eq!(
        echoed(&client, request),
        (b"whole".to_vec(), "length".to_owned())
    );

    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", http::HeaderValue::from_static("7"));
    let frames = [
        http_body::Frame::data(Bytes::from("x")),
        http_body::Frame::trailers(trailers),
    ];
    let frames = futures_lite::stream::iter(frames.map(Ok::<_, io::Error>));
    let mut request = Request::put("/echo", "");
    request.body_of(http_body_util::StreamBody::new(frames));
    let error = client.call(&mut request, &mut Response::new()).unwrap_err();
    assert!(
        format!("{error:?}").contains("trailers of its own"),
        "{error:?}"
    );
}

#[test]
fn a_body_is_a_stream_a_reader_and_a_body() {
    let (_server, client) = started();
    let body = async |target: &str| {
        let (head, body) = client.send_streaming(call(target)).await;
        head.outcome.unwrap();
        body.unwrap()
    };
    let all = pattern(0..200_000);
    block_on(async {
        let mut stream = body("/bytes/200000").await;
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk.unwrap());
        }
        assert!(bytes == all);

        let mut bytes = Vec::new();
        let mut reader = body("/bytes/200000").await;
        AsyncReadExt::read_to_end(&mut reader, &mut bytes)
            .await
            .unwrap();
        assert!(bytes == all);

        let mut bytes = Vec::new();
        let mut reader = body("/bytes/200000").await;
        tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut bytes)
            .await
            .unwrap();
        assert!(bytes == all);

        let collected = BodyExt::collect(body("/bytes/200000").await).await.unwrap();
        let trailers = collected.trailers().cloned();
        assert_eq!(trailers.unwrap()["x-sum"], "7");
        assert!(collected.to_bytes() == all);

        // A body that fails gives its error once, and then ends.
        let mut cut = body("/cut").await;
        let (mut failed, mut bytes) = (0, 0);
        while let Some(chunk) = cut.next().await {
            match chunk {
                Ok(chunk) => bytes += chunk.len(),
                Err(_) => failed += 1,
            }
        }
        assert_eq!((bytes, failed), (5, 1));
        assert!(cut.frame().await.is_none());
    });
}
