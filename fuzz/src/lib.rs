//! Fuzz targets of the protocol core. Their bodies are plain functions that panic when a property is broken:
//! `cargo +nightly fuzz run --fuzz-dir fuzz --features libfuzzer response` (or `chunked`) lets libFuzzer drive them, and
//! the tests of this package replay the committed corpus, and random bytes, on the stable toolchain.

use courser::proto::{BodyMode, Defaults, Exchange, Reuse, SendStep};
use courser::{Limits, Request, Response};

/// A whole exchange: the first four bytes choose the request, the mode, the limits and how the rest, which is what the
/// peer sends, is cut into reads. However it is cut, the outcome is the same.
pub fn response(data: &[u8]) {
    let Some((&[method, mode, limits, cut], input)) = data.split_first_chunk() else {
        return;
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
        },
    };
    let whole = exchange(method, mode, &limits, input, input.len().max(1));
    let pieces = exchange(method, mode, &limits, input, usize::from(cut) + 1);
    assert_eq!(whole, pieces, "the segmentation changed the outcome");
}

/// Chunked coding, against a plain decoder of the same grammar.
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
    let got = exchange(0, BodyMode::Buffer, &limits, &input, 7);
    match reference::decode(data) {
        reference::Decoded::Body(body) => {
            assert!(
                got.error.is_none() && got.done,
                "{got:?} where {body:?} was expected"
            );
            assert_eq!(got.body, body);
        }
        reference::Decoded::Incomplete => assert!(got.error.is_some() || !got.done, "{got:?}"),
        reference::Decoded::Broken => assert!(got.error.is_some(), "{got:?}"),
    }
}

/// What came of an exchange.
#[derive(Debug, Eq, PartialEq)]
struct Outcome {
    error: Option<String>,
    done: bool,
    reuse: Option<Reuse>,
    status: u16,
    fields: usize,
    body: Vec<u8>,
}

/// Feeds `input` in pieces of `step` bytes and then the end of the connection.
fn exchange(method: u8, mode: BodyMode, limits: &Limits, input: &[u8], step: usize) -> Outcome {
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
    request
        .encode(&Defaults::new("h", None))
        .expect("the request is valid");
    let mut exchange = Exchange::new(&request, mode);
    while let Ok(SendStep::Write([head, body])) = exchange.poll_send(&mut request) {
        let n = head.len() + body.len();
        exchange.handle_sent(n);
    }
    let mut response = Response::new();
    let mut error = None;
    for piece in input.chunks(step) {
        match exchange.handle_read(piece, &mut response, limits) {
            Ok(used) => {
                assert!(used <= piece.len());
                assert!(used == piece.len() || exchange.done().is_some());
            }
            Err(kind) => {
                error = Some(format!("{kind:?}"));
                break;
            }
        }
    }
    let done = error.is_none() && exchange.done().is_some();
    if error.is_none() && !done {
        error = exchange
            .handle_eof()
            .err()
            .map(|fault| format!("{fault:?}"));
    }
    check(&response, mode, limits, input.len());
    Outcome {
        done,
        reuse: exchange.done().filter(|_| error.is_none()),
        error,
        status: response.status(),
        fields: response.headers().count() + response.trailers().count(),
        body: response.body().to_vec(),
    }
}

/// What holds for every response, whole or broken.
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

/// A decoder of RFC 9112 §7.1 written for reading: no limits, no resuming.
mod reference {
    pub(super) enum Decoded {
        Body(Vec<u8>),
        Incomplete,
        Broken,
    }

    pub(super) fn decode(mut rest: &[u8]) -> Decoded {
        let mut body = Vec::new();
        loop {
            let size = match line(&mut rest) {
                Some(line) => match size(line) {
                    Some(size) => size,
                    None => return Decoded::Broken,
                },
                // What can still become a size line is a matter of the first bad byte; not judged here.
                None => return Decoded::Incomplete,
            };
            if size == 0 {
                return trailers(rest, body);
            }
            if size > (64 << 20) - body.len() as u64 {
                return Decoded::Broken; // over the limit on bodies
            }
            let size = size as usize;
            if rest.len() < size {
                return Decoded::Incomplete;
            }
            body.extend_from_slice(&rest[..size]);
            rest = &rest[size..];
            match rest {
                [b'\r', b'\n', tail @ ..] => rest = tail,
                [] | [b'\r'] => return Decoded::Incomplete,
                _ => return Decoded::Broken,
            }
        }
    }

    /// The bytes before the next LF, which it takes along.
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

    /// Whether an extension has no control but HTAB, and all its quoted strings end.
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

    fn trailers(mut rest: &[u8], body: Vec<u8>) -> Decoded {
        loop {
            let Some(line) = line(&mut rest) else {
                return Decoded::Incomplete;
            };
            let Some(line) = line.strip_suffix(b"\r") else {
                return Decoded::Broken;
            };
            if line.is_empty() {
                return Decoded::Body(body);
            }
            let name = line.iter().take_while(|b| is_token(**b)).count();
            let text = |b: &u8| *b == b'\t' || (*b >= b' ' && *b != 0x7f);
            if name == 0 || line.get(name) != Some(&b':') || !line[name..].iter().all(text) {
                return Decoded::Incomplete; // judged when the section is complete
            }
        }
    }

    fn is_token(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
    }
}
