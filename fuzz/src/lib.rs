//! Fuzz targets: the protocol core, whole clients on the simulated network, and the parsers of listings and links. Each target
//! is a function that panics if a property does not hold.
//!
//! `fuzz/run 600` runs all targets with libFuzzer; a single one runs with
//! `cargo +nightly fuzz run --fuzz-dir fuzz --features libfuzzer response`. The tests of this package run the committed
//! corpus and random bytes on the stable toolchain.

mod coding;
mod exchange;
mod fields;
mod links;
mod listing;
mod pipeline;
mod url;

pub use self::listing::listing;
pub use coding::coding;
pub use exchange::exchange;
pub use fields::fields;
pub use links::links;
pub use pipeline::pipeline;
pub use url::{cookies, proxy, url};

use courser::proto::{BodyMode, Defaults, Exchange, Reuse, SendStep};
use courser::{Limits, Request, Response};

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

/// Chunked coding (RFC 9112 §7.1), compared with a simple decoder of the same grammar.
pub fn chunked(data: &[u8]) {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut input = head.to_vec();
    input.extend_from_slice(data);
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
    let (body, verdict) = reference::decode(data);
    assert_eq!(got.body, body);
    match verdict {
        reference::Verdict::Complete => assert!(got.error.is_none() && got.done, "{got:?}"),
        reference::Verdict::Incomplete => assert!(got.error.is_some() && !got.done, "{got:?}"),
        reference::Verdict::Broken => {
            assert!(
                got.error
                    .as_deref()
                    .is_some_and(|error| error != "Truncated"),
                "{got:?}"
            );
        }
    }
}

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

type Fields = Vec<(String, Vec<u8>)>;

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
            .header("Connection", "Upgrade")
            .header("Upgrade", "x");
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
    assert!(exchange.received() <= input.len() as u64);
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
fn asked(mut request: Request, mode: BodyMode) -> Exchange {
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

fn all_fields(response: &Response) -> Vec<(u16, Fields)> {
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

/// A simple reference decoder for RFC 9112 §7.1. Its only limit is that on bodies; it cannot resume.
mod reference {
    use Verdict::{Broken, Complete, Incomplete};

    pub(super) enum Verdict {
        Complete,
        Incomplete,
        Broken,
    }

    /// The data up to the end, or up to the first error.
    pub(super) fn decode(mut rest: &[u8]) -> (Vec<u8>, Verdict) {
        let mut body = Vec::new();
        loop {
            let size = match line(&mut rest) {
                Some(line) => match size(line) {
                    Some(size) => size,
                    None => return (body, Broken),
                },
                None if could_be_size(rest) => return (body, Incomplete),
                None => return (body, Broken),
            };
            if size == 0 {
                return (body, trailers(rest));
            }
            if size > (64 << 20) - body.len() as u64 {
                return (body, Broken); // over the limit on bodies
            }
            let (data, behind) = rest.split_at(rest.len().min(size as usize));
            body.extend_from_slice(data);
            rest = match behind {
                _ if data.len() < size as usize => return (body, Incomplete),
                [b'\r', b'\n', tail @ ..] => tail,
                [] | [b'\r'] => return (body, Incomplete),
                _ => return (body, Broken),
            };
        }
    }

    /// Whether a piece without a line end can be the start of a valid size line.
    fn could_be_size(start: &[u8]) -> bool {
        let endings: [&[u8]; 6] = [b"", b"\r", b"0\r", b";\r", b"\"\r", b"x\"\r"];
        endings
            .iter()
            .any(|ending| size(&[start, ending].concat()).is_some())
    }

    /// Takes the bytes before the next LF, and the LF.
    fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        let (line, tail) = rest.split_at(end);
        *rest = &tail[1..];
        Some(line)
    }

    fn size(line: &[u8]) -> Option<u64> {
        let line = line.strip_suffix(b"\r")?;
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let text = std::str::from_utf8(&line[..digits]).ok()?;
        let size = u64::from_str_radix(text, 16).ok()?;
        let blanks = line[digits..]
            .iter()
            .take_while(|b| b" \t".contains(b))
            .count();
        match line[digits + blanks..] {
            [] if blanks == 0 => Some(size),
            [b';', ref extension @ ..] => extension_ends(extension).then_some(size),
            _ => None,
        }
    }

    /// Whether an extension has no control characters except HTAB, and all its quoted strings end.
    fn extension_ends(extension: &[u8]) -> bool {
        let (mut quoted, mut escaped) = (false, false);
        for &byte in extension {
            if byte != b'\t' && (byte < b' ' || byte == 0x7f) {
                return false;
            }
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => {}
            }
        }
        !quoted
    }

    /// Checks a trailer section. An invalid line is an error at the end of the section; a wrong line end is one at
    /// once.
    fn trailers(mut rest: &[u8]) -> Verdict {
        let mut broken = false;
        loop {
            let Some(line) = line(&mut rest) else {
                return if rest_is_plain(rest) {
                    Incomplete
                } else {
                    Broken
                };
            };
            let Some(line) = line.strip_suffix(b"\r") else {
                return Broken;
            };
            if line.contains(&b'\r') {
                return Broken;
            }
            if line.is_empty() {
                return if broken { Broken } else { Complete };
            }
            let name = line.iter().take_while(|b| is_token(**b)).count();
            let text = |b: &u8| *b == b'\t' || (*b >= b' ' && *b != 0x7f);
            broken |= name == 0 || line.get(name) != Some(&b':') || !line[name..].iter().all(text);
        }
    }

    /// Whether the rest has no CR, or only a final one, which can still become a line end.
    fn rest_is_plain(rest: &[u8]) -> bool {
        rest.iter()
            .position(|&byte| byte == b'\r')
            .is_none_or(|at| at + 1 == rest.len())
    }

    fn is_token(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
    }
}
