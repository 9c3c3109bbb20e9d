//! Whole responses and chunked bodies, for one exchange without a socket. The outcome does not depend on the cuts.

use courser::proto::steps::{BodyMode, Defaults, Exchange, Reuse, SendStep};
use courser::{Limits, Request, Response};
use httparse::{EMPTY_HEADER, Status, parse_chunk_size, parse_headers};

/// A whole exchange. The first four bytes choose the request, the body mode (and whether the peer closes), the limits,
/// and how the rest is cut into reads. The rest is sent by the peer. The outcome does not depend on the cuts.
pub fn response(data: &[u8]) {
    let Some((&[method, mode, limits, cut], input)) = data.split_first_chunk() else {
        return;
    };
    let end = if mode & 0x80 == 0 {
        End::Closed
    } else {
        End::Open
    };
    let mode = match mode % 3 {
        0 => BodyMode::Buffer,
        1 => BodyMode::Stream,
        _ => BodyMode::Discard,
    };
    let limits = match limits % 2 {
        0 => Limits::default(),
        _ => Limits {
            head_bytes: 200,
            header_count: 4,
            body_bytes: Some(64),
            chunk_line: 32,
            chunk_overhead: 64,
            trailer_bytes: 64,
            interim_responses: 2,
            ..Limits::default()
        },
    };
    let feed = |steps| feed(method, mode, &limits, input, steps, end);
    let whole = feed([input.len().max(1); 2]);
    // Pieces of equal size, or a small and a larger one in turn.
    let cut = usize::from(cut);
    for steps in [[cut + 1; 2], [cut % 16 + 1, cut / 16 * 8 + 1]] {
        assert_eq!(whole, feed(steps), "the segmentation changed the outcome");
    }
}

/// Chunked coding (RFC 9112 §7.1). What is taken for a whole body, or for a part of one, is that for httparse, too, with the
/// same bytes; and the input in chunks is a whole body, but no part of it is.
pub fn chunked(data: &[u8]) {
    let got = decode(data);
    let (body, verdict) = judge(data);
    match got.error.as_deref() {
        None => assert!(got.done && got.body == body && verdict == Verdict::Whole),
        Some("Truncated") => assert!(got.body == body && verdict == Verdict::Part, "{got:?}"),
        Some(_) => {}
    }
    let coded = coded(data);
    let whole = decode(&coded);
    assert!(whole.done && whole.body == data, "{whole:?}");
    let cut = data.iter().map(|&byte| usize::from(byte)).sum::<usize>() % coded.len();
    let part = decode(&coded[..cut]);
    assert_eq!(part.error.as_deref(), Some("Truncated"));
}

/// The outcome of these chunks and trailers, after which the connection ends.
fn decode(data: &[u8]) -> Outcome {
    let input = [HEAD, data].concat();
    let limits = Limits {
        chunk_line: usize::MAX,
        chunk_overhead: usize::MAX,
        trailer_bytes: usize::MAX,
        header_count: 1024,
        ..Limits::default()
    };
    let feed = |steps| feed(0, BodyMode::Buffer, &limits, &input, steps, End::Closed);
    let got = feed([7; 2]);
    assert_eq!(
        got,
        feed([input.len(); 2]),
        "the segmentation changed the outcome"
    );
    got
}

#[derive(Eq, PartialEq)]
enum Verdict {
    Whole,
    Part,
    Broken,
}

/// The body of chunks as far as it has come. Bytes may follow the trailers; a trailer that is broken is told at their end.
fn judge(mut rest: &[u8]) -> (Vec<u8>, Verdict) {
    let mut body = Vec::new();
    loop {
        // httparse takes at most 15 digits.
        let zeros = rest.iter().take_while(|&&byte| byte == b'0').count();
        rest = &rest[zeros.saturating_sub(1)..];
        let size = match parse_chunk_size(rest) {
            Ok(Status::Complete((at, size))) => {
                rest = &rest[at..];
                size as usize
            }
            Ok(Status::Partial) => return (body, Verdict::Part),
            Err(_) if rest.iter().take(16).all(u8::is_ascii_hexdigit) => {
                return (body, Verdict::Part);
            }
            Err(_) => return (body, Verdict::Broken),
        };
        if size == 0 {
            return match parse_headers(rest, &mut [EMPTY_HEADER; 1024]) {
                Ok(Status::Complete(_)) => (body, Verdict::Whole),
                _ => (body, Verdict::Part),
            };
        }
        let (data, behind) = rest.split_at(size.min(rest.len()));
        body.extend_from_slice(data);
        rest = match behind {
            [b'\r', b'\n', rest @ ..] => rest,
            [] | [b'\r'] => return (body, Verdict::Part),
            _ => return (body, Verdict::Broken),
        };
    }
}

/// The input in chunks, with extensions and trailers.
fn coded(mut rest: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    while let Some(first) = rest.first() {
        let (data, behind) = rest.split_at(rest.len().min(usize::from(first % 32) + 1));
        let extension = ["", ";a", " ;a=b", ";a=\"x\\\";y\""][usize::from(first % 4)];
        coded.extend_from_slice(format!("{:X}{extension}\r\n", data.len()).as_bytes());
        coded.extend_from_slice(data);
        coded.extend_from_slice(b"\r\n");
        rest = behind;
    }
    coded.extend_from_slice(b"000\r\nA: b\r\nC:\r\n\r\n");
    coded
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What the peer does after its last byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Closed,
    Open,
}

/// The outcome of an exchange.
#[derive(Debug, Eq, PartialEq)]
struct Outcome {
    error: Option<String>,
    done: bool,
    reuse: Option<Reuse>,
    /// The final head, its reason phrase, and whether it is complete.
    head: (Vec<u8>, Vec<u8>, bool),
    /// The status and the fields of every head, the final head last, and then the trailers.
    fields: Vec<(u16, Fields)>,
    body: Vec<u8>,
    received: u64,
}

pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// Feeds `input` in pieces that alternate between the two sizes, and then its end.
fn feed(
    method: u8,
    mode: BodyMode,
    limits: &Limits,
    input: &[u8],
    steps: [usize; 2],
    end: End,
) -> Outcome {
    let mut request = match method % 4 {
        0 => Request::get("/"),
        1 => Request::head("/"),
        2 => Request::new("CONNECT", "h:1"),
        _ => Request::get("/"),
    };
    if method % 4 == 3 {
        request
            .add_header("Connection", "Upgrade")
            .add_header("Upgrade", "x");
    }
    let mut exchange = asked(request, mode);
    let mut response = Response::new();
    let mut error = None;
    let (mut rest, mut sizes) = (input, steps.into_iter().cycle());
    while !rest.is_empty() && error.is_none() {
        let size = sizes.next().map_or(rest.len(), |size| size.min(rest.len()));
        let (piece, behind) = rest.split_at(size);
        rest = behind;
        let before = exchange.done();
        match exchange.handle_read(piece, &mut response, limits) {
            Ok(used) => {
                assert!(used <= piece.len());
                assert!(used == piece.len() || exchange.done().is_some());
                assert!(before.is_none() || used == 0, "read on behind the end");
            }
            Err(kind) => error = Some(format!("{kind:?}")),
        }
        assert!(before.is_none() || exchange.done().is_some());
    }
    let done = error.is_none() && exchange.done().is_some();
    if error.is_none() && !done && end == End::Closed {
        error = exchange
            .handle_eof()
            .err()
            .map(|fault| format!("{fault:?}"));
        assert!(error.is_some() || exchange.done().is_some());
    }
    check(&response, mode, limits, input.len());
    let reuse = exchange.done().filter(|_| error.is_none());
    Outcome {
        done: reuse.is_some(),
        reuse,
        head: (
            response.head().to_vec(),
            response.reason().to_vec(),
            exchange.has_head(),
        ),
        fields: all_fields(&response),
        // How many bytes count as received before an error depends on the reads.
        received: if error.is_none() {
            exchange.received()
        } else {
            0
        },
        error,
        body: body_of(response, input.len()),
    }
}

/// The exchange after the whole request was sent.
pub(crate) fn asked(mut request: Request, mode: BodyMode) -> Exchange {
    request
        .encode(&Defaults::new("h", None))
        .expect("the request is valid");
    let mut exchange = Exchange::new(&request, mode);
    while let Ok(SendStep::Write([head, body])) = exchange.poll_send(&mut request) {
        let n = head.len() + body.len();
        exchange.handle_sent(n);
    }
    exchange
}

pub(crate) fn all_fields(response: &Response) -> Vec<(u16, Fields)> {
    let own = |(name, value): (&str, &[u8])| (name.to_owned(), value.to_owned());
    let interim = response
        .interim()
        .map(|head| (head.status(), head.headers().map(own).collect()));
    let last = [
        (response.status(), response.headers().map(own).collect()),
        (0, response.trailers().map(own).collect()),
    ];
    interim.chain(last).collect()
}

/// Takes the body. Its buffer must grow with the received bytes, not with the announced length.
fn body_of(mut response: Response, fed: usize) -> Vec<u8> {
    let body = Vec::from(response.take_body());
    assert!(body.capacity() <= 4 * fed + 64, "{}", body.capacity());
    body
}

/// Checks the properties of every response, complete or broken.
fn check(response: &Response, mode: BodyMode, limits: &Limits, fed: usize) {
    assert!(
        response.body().len() <= fed,
        "a body of bytes that never came"
    );
    match (mode, limits.body_bytes) {
        (BodyMode::Buffer, Some(limit)) => assert!(response.body().len() as u64 <= limit),
        (BodyMode::Discard, _) => assert!(response.body().is_empty()),
        _ => {}
    }
    assert!(response.interim().count() <= limits.interim_responses);
    let interim = response.interim().flat_map(|head| head.headers());
    for (name, value) in response.headers().chain(response.trailers()).chain(interim) {
        assert!(!name.is_empty());
        let bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        assert!(!value.iter().any(bad), "a line end or a NUL inside a value");
    }
    assert!(response.head().len() <= limits.head_bytes);
    assert!(!response.reason().contains(&b'\n'));
}
