//! Whole exchanges as bytes. Every input is fed whole, byte by byte, and split in two at every offset, and must have
//! the same outcome each time.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;

use super::*;
use crate::error::{ErrorKind, Misuse, Part, PeerFault};

/// The outcome of an exchange in one line: `STATUS reuse "body"`, `error E`, or `incomplete`. The response may have been
/// used; a lenient reading says how many lines it has dropped.
fn outcome_of(
    request: &mut Request,
    response: &mut Response,
    pieces: &[&[u8]],
    eof: bool,
    limits: &Limits,
    lenient: bool,
) -> String {
    response.clear();
    let mut exchange = Exchange::new(request, BodyMode::Buffer);
    if lenient {
        exchange.ignore_invalid_headers();
    }
    send_all(&mut exchange, request);
    for piece in pieces {
        if let Err(kind) = exchange.handle_read(piece, response, limits) {
            let body = String::from_utf8_lossy(response.body()).into_owned();
            return format!("error {kind:?} after {} {body:?}", response.status());
        }
    }
    if exchange.done().is_none()
        && eof
        && let Err(fault) = exchange.handle_eof()
    {
        return format!(
            "error Peer({fault:?}) after {} {:?}",
            response.status(),
            String::from_utf8_lossy(response.body())
        );
    }
    let Some(reuse) = exchange.done() else {
        return "incomplete".into();
    };
    let reuse = match reuse {
        Reuse::Keep => "keep".into(),
        Reuse::Close(reason) => format!("{reason:?}"),
    };
    let mut line = String::new();
    for head in response.interim() {
        line += &format!("{} ", head.status());
    }
    line += &format!(
        "{} {reuse} {:?}",
        response.status(),
        String::from_utf8_lossy(response.body())
    );
    for (name, value) in response.trailers() {
        line += &format!(" {name}={}", String::from_utf8_lossy(value));
    }
    match response.dropped_lines() {
        0 => line,
        dropped => format!("{line} dropped {dropped}"),
    }
}

/// The response to a GET.
pub(crate) fn response_of(text: &str) -> Response {
    let mut request = Request::get("/");
    let mut response = Response::new();
    let mut exchange = Exchange::new(&request, BodyMode::Buffer);
    send_all(&mut exchange, &mut request);
    let read = exchange.handle_read(text.as_bytes(), &mut response, &Limits::default());
    read.expect("a valid response");
    assert!(exchange.done().is_some(), "{text:?} is not complete");
    response
}

fn send_all(exchange: &mut Exchange, request: &mut Request) {
    request
        .encode(&Defaults::new("example.com", None))
        .expect("a valid request");
    while let Ok(SendStep::Write([a, b])) = exchange.poll_send(request) {
        let n = a.len() + b.len();
        exchange.handle_sent(n);
    }
}

/// The outcome of a response, which must be the same for every segmentation.
fn outcome_in_every_segmentation(method: &str, input: &[u8], eof: bool, limits: &Limits) -> String {
    let lenient = method.starts_with("LENIENT ");
    let request = &mut match method.trim_start_matches("LENIENT ") {
        "UPGRADE" => {
            let mut request = Request::get("/");
            request
                .add_header("Connection", "Upgrade")
                .add_header("Upgrade", "h2c");
            request
        }
        "CONNECT" => Request::new("CONNECT", "example.com:443"),
        "SAYS CLOSE" => {
            let mut request = Request::get("/");
            request.add_header("Connection", "foo, Close");
            request
        }
        "KEEPS CHUNKS" => {
            let mut request = Request::get("/");
            request.keep_chunks();
            request
        }
        "IGNORES LENGTH" => {
            let mut request = Request::get("/");
            request.ignore_content_length();
            request
        }
        method => Request::new(method, "/"),
    };
    let mut response = Response::new();
    let mut outcome =
        |pieces: &[&[u8]]| outcome_of(request, &mut response, pieces, eof, limits, lenient);
    let whole = outcome(&[input]);
    assert_eq!(outcome(&[input]), whole, "again in the same response");
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(
        outcome(&bytes),
        whole,
        "byte by byte: {:.200?}",
        String::from_utf8_lossy(input)
    );
    let step = (input.len() / 2048).max(1);
    for at in (0..input.len()).step_by(step) {
        let (a, b) = input.split_at(at);
        assert_eq!(
            outcome(&[a, b]),
            whole,
            "split at {at}: {:.200?}",
            String::from_utf8_lossy(input)
        );
    }
    whole
}

/// Runs a table with a row in each line: method, input, `=>`, expected outcome. `¶` stands for CRLF, `∎` for the end of the
/// connection, and `…` at the end of an outcome for any rest; `\n`, `\r`, `\t`, `\0`, `\x01` are as in Rust.
fn check_table(table: &str) {
    check_table_within(table, &Limits::default());
}

/// The same, under these limits. `x*25` in an input stands for so many of that letter.
fn check_table_within(table: &str, limits: &Limits) {
    let rows = table.lines().map(str::trim_start);
    for row in rows.filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let (method, rest) = row.split_once("  ").expect("a method");
        let (input, expected) = rest.rsplit_once(" => ").expect("an outcome");
        let eof = input.ends_with('∎');
        let mut input = input.trim_start().trim_end_matches('∎').to_owned();
        for (sign, bytes) in [
            ("¶", "\r\n"),
            ("\\n", "\n"),
            ("\\r", "\r"),
            ("\\t", "\t"),
            ("\\0", "\0"),
            ("\\x01", "\x01"),
            ("\\x03", "\x03"),
            ("\\x15", "\x15"),
            ("\\x7f", "\x7f"),
        ] {
            input = input.replace(sign, bytes);
        }
        while let Some((before, after)) = input.split_once("x*") {
            let digits = after.find(|c: char| !c.is_ascii_digit());
            let (count, rest) = after.split_at(digits.unwrap_or(after.len()));
            let many = "x".repeat(count.parse().expect("a number"));
            input = [before, &many, rest].concat();
        }
        let got = outcome_in_every_segmentation(method, input.as_bytes(), eof, limits);
        assert!(
            got == expected
                || (expected.ends_with('…') && got.starts_with(expected.trim_end_matches('…'))),
            "{method} {input:?}\n     got {got}\nexpected {expected}"
        );
    }
}

/// The requirements of RFC 9112 and RFC 9110 on a client, by section.
#[test]
fn requirements_of_the_rfcs() {
    check_table(
        r#"
        # 9112 §2.2: line ends, bare CR, blank-led first line.
        GET      HTTP/1.1 200 OK\nContent-Length: 2\n\nhi => 200 keep "hi"
        GET      HTTP/1.1 200 OK¶Content-Length: 2\n¶hi => 200 keep "hi"
        GET      HTTP/1.1 200 OK¶A: b\rc¶Content-Length: 0¶¶ => error Peer(BadHeader)…
        GET      HTTP/1.1 200 OK¶ Content-Length: 0¶¶ => error Peer(BadHeader)…
        # §2.3: versions, at the first impossible byte.
        GET      HTTP/2 => error Peer(BadStatusLine)…
        GET      ICY 200 => error Peer(BadStatusLine)…
        GET      http/1.1 => error Peer(BadStatusLine)…
        GET      SSH-2.0-OpenSSH_9 => error Peer(BadStatusLine)…
        GET      \x15\x03\x01 => error Peer(BadStatusLine)…
        # §4: status line.
        GET      HTTP/1.1 200¶Content-Length: 0¶¶ => 200 keep ""
        GET      HTTP/1.1 200 ¶Content-Length: 0¶¶ => 200 keep ""
        GET      HTTP/1.1 200 \tOK ¶Content-Length: 0¶¶ => 200 keep ""
        GET      HTTP/1.1 20 OK¶¶ => error Peer(BadStatusLine)…
        GET      HTTP/1.1 2000 OK¶¶ => error Peer(BadStatusLine)…
        GET      HTTP/1.1 200 O\0K¶¶ => error Peer(BadStatusLine)…
        GET      HTTP/1.1 999 ?¶Content-Length: 0¶¶ => 999 keep ""
        GET      HTTP/1.1 099 ?¶ => error Peer(BadStatusLine)…
        # fasthttp accepts these three; one SP, and no empty line or version 0.9 before a response.
        GET      HTTP/1.1   200 OK¶Content-Length: 0¶¶ => error Peer(BadStatusLine)…
        GET      ¶HTTP/1.1 200 OK¶Content-Length: 0¶¶ => error Peer(BadStatusLine)…
        GET      HTTP/0.9 300 OK¶Content-Length: 0¶¶ => error Peer(BadStatusLine)…
        # §5.1, 9110 §5.5: names and values.
        GET      HTTP/1.1 200 OK¶A : b¶Content-Length: 0¶¶ => error Peer(BadHeader)…
        GET      HTTP/1.1 200 OK¶A: b\0c¶Content-Length: 0¶¶ => error Peer(BadHeader)…
        GET      HTTP/1.1 200 OK¶A¶Content-Length: 0¶¶ => error Peer(BadHeader)…
        # §6.1: Transfer-Encoding in HTTP/1.0.
        GET      HTTP/1.0 200 OK¶Transfer-Encoding: chunked¶¶0¶¶ => error Peer(UnsupportedTransferEncoding)…
        # §6.3 (1): no body whatever the headers say.
        HEAD     HTTP/1.1 200 OK¶Content-Length: 5¶¶ => 200 keep ""
        HEAD     HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶ => 200 keep ""
        HEAD     HTTP/1.1 200 OK¶¶ => 200 keep ""
        HEAD     HTTP/1.1 200 OK¶Content-Length: x¶¶ => 200 AmbiguousFraming ""
        HEAD     HTTP/1.1 200 OK¶Content-Length: 2¶¶hi => 200 Surplus ""
        GET      HTTP/1.1 204 No Content¶Content-Length: 5¶¶ => 204 AmbiguousFraming ""
        GET      HTTP/1.1 204 No Content¶Content-Length: 0¶¶ => 204 keep ""
        GET      HTTP/1.1 204 OK¶Transfer-Encoding: chunked¶¶0¶¶ => 204 AmbiguousFraming ""
        GET      HTTP/1.1 304 Not Modified¶Content-Length: 5¶¶ => 304 keep ""
        GET      HTTP/1.1 103 Early Hints¶Content-Length: 5¶¶HTTP/1.1 200 OK¶Content-Length: 0¶¶ => 103 200 keep ""
        # §6.3 (2): CONNECT.
        CONNECT  HTTP/1.1 200 OK¶Content-Length: 5¶¶ => 200 HandedOver ""
        CONNECT  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶tunnel => 200 HandedOver ""
        CONNECT  HTTP/1.1 407 Auth¶Content-Length: 2¶¶no => 407 keep "no"
        # §6.3 (3, 4): Transfer-Encoding.
        GET      HTTP/1.1 200 OK¶Content-Length: 9¶Transfer-Encoding: chunked¶¶2¶hi¶0¶¶ => 200 AmbiguousFraming "hi"
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: gzip, chunked¶¶0¶¶ => error Peer(UnsupportedTransferEncoding)…
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked, identity¶¶0¶¶ => error Peer(UnsupportedTransferEncoding)…
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶Transfer-Encoding: chunked¶¶0¶¶ => error Peer(UnsupportedTransferEncoding)…
        GET      HTTP/1.1 200 OK¶Transfer-Encoding:¶¶0¶¶ => error Peer(UnsupportedTransferEncoding)…
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: identity¶¶ => error Peer(UnsupportedTransferEncoding)…
        GET      HTTP/1.1 200 OK¶Content-Length: nope¶Transfer-Encoding: chunked¶¶0¶¶ => error Peer(BadContentLength)…
        # §6.3 (5): Content-Length.
        GET      HTTP/1.1 200 OK¶Content-Length: 2, 2¶Content-Length: 2¶¶hi => 200 keep "hi"
        GET      HTTP/1.1 200 OK¶Content-Length: 002¶¶hi => 200 keep "hi"
        GET      HTTP/1.1 200 OK¶Content-Length: 2¶Content-Length: 3¶¶hi => error Peer(ConflictingContentLength)…
        GET      HTTP/1.1 200 OK¶Content-Length: 5, 6¶¶ => error Peer(ConflictingContentLength)…
        # RFC 9110 §8.6: only repeated identical values may count as one.
        GET      HTTP/1.1 200 OK¶Content-Length: 2¶Content-Length: 02¶¶hi => error Peer(ConflictingContentLength)…
        GET      HTTP/1.1 200 OK¶Content-Length: 2, 02¶¶hi => error Peer(ConflictingContentLength)…
        GET      HTTP/1.1 200 OK¶Content-Length: 02, 02¶content-length: 02¶¶hi => 200 keep "hi"
        GET      HTTP/1.1 200 OK¶Content-Length: 2, x¶Content-Length: 3¶¶hi => error Peer(BadContentLength)…
        GET      HTTP/1.1 204 No Content¶Content-Length: 5¶Content-Length: 6¶¶ => error Peer(ConflictingContentLength)…
        GET      HTTP/1.1 304 Not Modified¶Content-Length: 5, 6¶¶ => error Peer(ConflictingContentLength)…
        HEAD     HTTP/1.1 304 Not Modified¶Content-Length: 5¶Content-Length: 6¶¶ => error Peer(ConflictingContentLength)…
        # Refused at the digit that makes the size more than any body has.
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶ffffffffffffffff => error Peer(BadChunk)…
        GET      HTTP/1.1 200 OK¶Content-Length: +5¶¶ => error Peer(BadContentLength)…
        GET      HTTP/1.1 200 OK¶Content-Length: 5a¶¶ => error Peer(BadContentLength)…
        GET      HTTP/1.1 200 OK¶Content-Length:¶¶ => error Peer(BadContentLength)…
        GET      HTTP/1.1 200 OK¶Content-Length: 18446744073709551616¶¶ => error Peer(BadContentLength)…
        # §6.3 (6, 8): exact, cut, until close.
        GET      HTTP/1.1 200 OK¶Content-Length: 3¶¶hi∎ => error Peer(Truncated) after 200 "hi"
        GET      HTTP/1.1 200 OK¶Content-Length: 2¶¶hi! => 200 Surplus "hi"
        GET      HTTP/1.1 200 OK¶¶hi∎ => 200 UntilClose "hi"
        GET      HTTP/1.1 200 OK¶¶hi => incomplete
        # §7.1: chunks (the decoder has its own table).
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2¶hi\n0¶¶ => error Peer(BadChunk)…
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶10000000000000005¶ => error Peer(BadChunk)…
        # §7.1.2: trailers.
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2¶hi¶0¶A: b¶Content-Length: 7¶¶ => 200 keep "hi" A=b
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶0¶A: b\n¶ => error Peer(BadTrailer)…
        GET      HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶0¶nocolon¶¶ => error Peer(BadTrailer)…
        # §8: incomplete; all stages are in `an_end_at_every_byte_is_truncation`.
        GET      ∎ => error Peer(Empty)…
        GET      HTTP/1.1 100 Continue¶¶∎ => error Peer(Truncated)…
        # §9.3: persistence.
        GET      HTTP/1.1 200 OK¶Connection: Close¶Content-Length: 0¶¶ => 200 ResponseSaidClose ""
        GET      HTTP/1.1 200 OK¶Connection: keep-alive, CLOSE¶Content-Length: 0¶¶ => 200 ResponseSaidClose ""
        GET      HTTP/1.1 200 OK¶Connection: x¶Connection: close¶Content-Length: 0¶¶ => 200 ResponseSaidClose ""
        GET      HTTP/1.1 200 OK¶Connection: close¶Connection: keep-alive¶Content-Length: 0¶¶ => 200 ResponseSaidClose ""
        GET      HTTP/1.1 200 OK¶Connection: closed¶Content-Length: 0¶¶ => 200 keep ""
        GET      HTTP/1.1 200 OK¶Proxy-Connection: close¶Content-Length: 0¶¶ => 200 keep ""
        GET      HTTP/1.0 200 OK¶Connection: foo, keep-alive¶Content-Length: 0¶¶ => 200 keep ""
        GET      HTTP/1.0 200 OK¶Connection: keep-alive, close¶Content-Length: 0¶¶ => 200 ResponseSaidClose ""
        GET      HTTP/1.0 200 OK¶Content-Length: 0¶¶ => 200 Http10 ""
        GET      HTTP/1.0 200 OK¶Connection: Keep-Alive¶Content-Length: 0¶¶ => 200 keep ""
        SAYS CLOSE  HTTP/1.1 200 OK¶Content-Length: 0¶¶ => 200 RequestSaidClose ""
        # 9110 §15.2: 101 with and without a request for it.
        GET      HTTP/1.1 101 Switching¶Upgrade: h2c¶¶ => error Peer(UnexpectedUpgrade)…
        UPGRADE  HTTP/1.1 101 Switching¶Upgrade: h2c¶¶PRI => 101 HandedOver ""
        UPGRADE  HTTP/1.1 200 OK¶Content-Length: 2¶¶hi => 200 keep "hi"
        "#,
    );
}

#[test]
fn an_end_at_every_byte_is_truncation() {
    let whole =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: t\r\n\r\n";
    for cut in 1..whole.len() {
        let input = &whole.as_bytes()[..cut];
        let got = outcome_in_every_segmentation("GET", input, true, &Limits::default());
        assert!(got.starts_with("error Peer(Truncated)"), "{cut}: {got}");
    }
}

/// Where the answers of other parsers' tests were refused, or noticed only by a timeout, and nothing follows.
#[test]
fn what_other_parsers_read_or_refuse() {
    check_table(
        r#"
        # A head that is broken already is refused before it ends.
        GET  HTTP/1.1 200 OK¶no colon here¶ => error Peer(BadHeader)…
        GET  HTTP/1.1 200 OK¶no colon  => error Peer(BadHeader)…
        GET  HTTP/1.1 200 OK¶: => error Peer(BadHeader)…
        GET  HTTP/1.1 200 OK¶A: b\0 => error Peer(BadHeader)…
        GET  HTTP/1.1 200 OK¶A: \x7f => error Peer(BadHeader)…
        GET  HTTP/1.1 200 OK¶A: b\rc => error Peer(BadHeader)…
        GET  HTTP/1.1 200 OK¶A: b¶\r\r => error Peer(BadHeader)…
        GET  HTTP/1.1 200 OK¶ A: b => error Peer(BadHeader)…
        GET  HTTP/1.1 200 \0 => error Peer(BadStatusLine)…
        GET  HTTP/1.1 103 H¶¶HTTP/1.1 200 OK¶A => incomplete
        GET  HTTP/1.1 103 H¶¶HTTP/1.1 200 OK¶A b => error Peer(BadHeader)…
        # RFC 9110 §5.6.1.2: empty elements of a list do not count.
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked,¶¶2¶ok¶0¶¶ => 200 keep "ok"
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: , ,chunked¶¶2¶ok¶0¶¶ => 200 keep "ok"
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶Transfer-Encoding:¶¶2¶ok¶0¶¶ => 200 keep "ok"
        GET  HTTP/1.1 200 OK¶Transfer-Encoding:¶Transfer-Encoding: chunked¶¶2¶ok¶0¶¶ => 200 keep "ok"
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: ,¶¶2¶ok¶0¶¶ => error Peer(UnsupportedTransferEncoding)…
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: ,identity¶¶2¶ok¶0¶¶ => error Peer(UnsupportedTransferEncoding)…
        # RFC 9112 §5.2: a folded line is joined, in trailers, too.
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶0¶A: b¶ c¶\t d¶E:¶ f¶¶ => 200 keep "" A=b c d E=f
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶0¶ A: b¶¶ => error Peer(BadTrailer)…
        # RFC 9110 §2.5: a higher minor version is read as the highest that is known.
        GET  HTTP/1.2 200 OK¶Content-Length: 2¶¶ok => 200 keep "ok"
        GET  HTTP/1.9 200 OK¶A: b¶ c¶Content-Length: 2¶¶ok => 200 keep "ok"
        GET  HTTP/1.10 2 => error Peer(BadStatusLine)…
        "#,
    );
}

/// Lines that are wrong and harmless, as browsers read them.
#[test]
fn a_lenient_reading_drops_lines_and_counts_them() {
    let with_length = |line: &str| format!("HTTP/1.1 200 OK¶{line}¶Content-Length: 2¶¶ok");
    let one = "200 AmbiguousFraming \"ok\" dropped 1";
    for (line, expected) in [
        ("PHP Notice: extension was not found on line 3", one),
        ("Set-Cookie: view=list; domain=\x7fshop\x7f.example", one),
        ("A: b\x01", one),
        ("no colon here", one),
        (": no name", one),
        ("Größe: 5", one),
        ("A : b", one),
        (" A: b", one),
        ("A b: c¶ folded", one),
        ("A: b¶ folded\x08", one),
        ("A: b\\0", BAD_HEADER),
        ("A: b\\rc", BAD_HEADER),
        ("\\r", BAD_HEADER),
        ("Content-Length : 2", BAD_HEADER),
        ("Content Length: 2", BAD_HEADER),
        ("Content-Length\x08: 2", BAD_HEADER),
        ("Transfer-Encoding : chunked", BAD_HEADER),
        ("A b: c¶ Transfer-Encoding: chunked", BAD_HEADER),
    ] {
        check_table(&format!("LENIENT GET  {} => {expected}", with_length(line)));
    }
    check_table(
        r#"
        LENIENT GET  HTTP/1.1  200 OK¶Content-Length: 2¶¶ok => 200 keep "ok"
        LENIENT GET  HTTP/1.0   404\n: x\nContent-Length: 2\n\nok => 404 AmbiguousFraming "ok" dropped 1
        LENIENT GET  HTTP/1.2 200 OK¶x¶Content-Length: 2¶¶ok => 200 AmbiguousFraming "ok" dropped 1
        LENIENT GET  HTTP/1.1 200 O\x01K¶Content-Length: 2¶¶ok => 200 keep "ok"
        LENIENT GET  HTTP/1.1 103 H¶x¶¶HTTP/1.1 200 OK¶y y¶Content-Length: 2¶¶ok => 103 200 AmbiguousFraming "ok" dropped 2
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2  ¶ok¶0¶¶ => 200 keep "ok"
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2\t¶ok¶0 ¶a b¶A: b¶¶ => 200 AmbiguousFraming "ok" A=b dropped 1
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶0¶A: b\0¶¶ => error Peer(BadTrailer)…
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2 \nok¶0¶¶ => error Peer(BadChunk)…
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2 x¶ok¶0¶¶ => error Peer(BadChunk)…
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: identity¶Content-Length: 2¶¶ok => 200 AmbiguousFraming "ok"
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: identity¶¶ok∎ => 200 AmbiguousFraming "ok"
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: identity, chunked¶¶ok => error Peer(UnsupportedTransferEncoding)…
        LENIENT GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked\x01¶¶ok => error Peer(BadHeader)…
        LENIENT GET  HTTP/1.1 200 OK¶Content-Length: 2\x01¶¶ok => error Peer(BadHeader)…
        LENIENT GET  HTTP/1.1 200 OK¶Content-Length: +2¶¶ok => error Peer(BadContentLength)…
        "#,
    );
    // A line that is longer than the limit on lines, within the limit on heads; more lines than the limit on their number.
    let limits = Limits {
        header_line: 20,
        header_count: 3,
        ..Limits::default()
    };
    check_table_within(
        r#"
        LENIENT GET  HTTP/1.1 200 OK¶A: x*30¶Content-Length: 2¶¶ok => 200 AmbiguousFraming "ok" dropped 1
        LENIENT GET  HTTP/1.1 200 OK¶A: b¶ x*30¶Content-Length: 2¶¶ok => 200 AmbiguousFraming "ok" dropped 1
        LENIENT GET  HTTP/1.1 200 OK¶A b: c¶A b: d¶A b: e¶Content-Length: 2¶¶ok => error Limit(HeaderCount(3))…
        LENIENT GET  HTTP/1.1 200 x*30 => error Limit(HeaderLine(20))…
        LENIENT GET  HTTP/1.1 200 OK¶Content-Length: 000000000000000000000000000002¶Content-Length: 2¶¶ok => error Peer(BadHeader)…
        "#,
        &limits,
    );
}

/// Bytes that came before the request are no tunnel that it asked for.
#[test]
fn an_early_answer_hands_nothing_over() {
    for (request, reply) in [
        (Request::new("CONNECT", "h:1"), "HTTP/1.1 200 OK\r\n\r\n"),
        (
            Request::get("/"),
            "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n",
        ),
    ] {
        let mut request = request;
        if reply.contains("101") {
            request
                .add_header("Connection", "upgrade")
                .add_header("Upgrade", "h2c");
        }
        let mut exchange = Exchange::new(&request, BodyMode::Buffer);
        exchange.expect_early();
        send_all(&mut exchange, &mut request);
        let limits = &Limits::default();
        let outcome = exchange.handle_read(reply.as_bytes(), &mut Response::new(), limits);
        assert!(
            matches!(outcome, Err(ErrorKind::Peer(PeerFault::Unsolicited))),
            "{outcome:?}"
        );
    }
}

const BAD_HEADER: &str = "error Peer(BadHeader)…";

#[test]
fn interim_responses_are_limited() {
    let hints = |n: usize| {
        "HTTP/1.1 103 H\r\n\r\n".repeat(n) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    };
    let outcome = |n| {
        let limits = Limits::default();
        outcome_in_every_segmentation("GET", hints(n).as_bytes(), false, &limits)
    };
    assert!(outcome(100).ends_with("103 200 keep \"\""));
    assert!(outcome(101).starts_with("error Limit(InterimResponses(100))"));
}

/// Responses on which the tests of other clients agree; see `tests/data/README.md`.
#[test]
fn responses_of_other_clients_tests() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/");
    for file in ["h11-client.jsonl", "llhttp-response.jsonl"] {
        let text = std::fs::read_to_string(format!("{data}{file}")).expect("the test data");
        for line in text.lines() {
            let case: serde_json::Value = serde_json::from_str(line).expect("a case");
            check_case(&case);
        }
    }
}

fn check_case(case: &serde_json::Value) {
    let field = |value: &serde_json::Value, name: &str| value[name].as_str().map(decode_base64);
    let input = field(case, "response_b64").expect("a response");
    let method = case["request"]["method"].as_str().expect("a method");
    let eof = case["close_after"].as_bool().expect("a bool");
    let got = outcome_in_every_segmentation(method, &input, eof, &Limits::default());
    let matches = |expect: &serde_json::Value| {
        if expect["ok"] == false {
            return got.starts_with("error");
        }
        let body = field(expect, "body_b64");
        let body = body.map(|b| format!("{:?}", String::from_utf8_lossy(&b)));
        let status = expect["status"].as_u64().map(|s| s.to_string());
        !got.starts_with("error")
            && got != "incomplete"
            && status.is_none_or(|s| got.split(' ').any(|word| word == s))
            && body.is_none_or(|b| got.ends_with(&b) || got.contains(&format!(" {b} ")))
    };
    let level = case["level"].as_str().expect("a level");
    let alternatives = case["expect_alt"].as_array().into_iter().flatten();
    let tolerated = level != "should" && alternatives.into_iter().any(matches);
    assert!(
        matches(&case["expect"]) || tolerated,
        "{}: {got}\n{case:#}",
        case["id"]
    );
    if case["no_reuse"] == true {
        assert!(!got.contains(" keep "), "{}: {got}", case["id"]);
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).expect("base64")
}

/// A line may be so long with its line end, in every segmentation, and whether or not the head is read at once.
#[test]
fn the_limit_of_a_line() {
    let limits = Limits {
        head_bytes: 90,
        header_line: 30,
        ..Limits::default()
    };
    check_table_within(
        r#"
        GET  HTTP/1.1 200 OK¶A: x*25¶Content-Length: 0¶¶ => 200 keep ""
        GET  HTTP/1.1 200 OK¶A: x*26¶Content-Length: 0¶¶ => error Limit(HeaderLine(30))…
        GET  HTTP/1.1 200 OK\nA: x*26\nContent-Length: 0\n\n => 200 keep ""
        # Without its end.
        GET  HTTP/1.1 200 OK¶A: x*28 => error Limit(HeaderLine(30))…
        # The status line, interim heads, and each line of a folded value.
        GET  HTTP/1.1 200 x*16¶Content-Length: 0¶¶ => error Limit(HeaderLine(30))…
        GET  HTTP/1.1 103 H¶A: x*26¶¶HTTP/1.1 200 OK¶Content-Length: 0¶¶ => error Limit(HeaderLine(30))…
        GET  HTTP/1.1 200 OK¶A: x*20¶ x*20¶Content-Length: 0¶¶ => 200 keep ""
        # The head as a whole comes first when it ends first.
        GET  HTTP/1.1 200 OK¶A: x*16¶A: x*16¶A: x*16¶C: x*27 => error Limit(HeadBytes(90))…
        GET  HTTP/2 x*30 => error Peer(BadStatusLine)…
        "#,
        &limits,
    );
}

/// Each limit has its own error, in every segmentation.
#[test]
fn limits() {
    let limits = Limits {
        head_bytes: 60,
        header_count: 2,
        body_bytes: Some(4),
        trailer_bytes: 20,
        ..Limits::default()
    };
    check_table_within(
        r#"
        GET  HTTP/1.1 200 OK¶A: b¶B: c¶Content-Length: 0¶¶ => error Limit(HeaderCount(2))…
        GET  HTTP/1.1 200 OK¶A: x*60¶¶ => error Limit(HeadBytes(60))…
        GET  HTTP/1.1 200 OK¶A: x*60 => error Limit(HeadBytes(60))…
        GET  HTTP/1.1 103 H¶¶HTTP/1.1 103 H¶¶HTTP/1.1 103 H¶¶HTTP/1.1 200 OK¶¶ => error Limit(HeadBytes(60))…
        GET  HTTP/1.1 200 OK¶A: b¶Content-Length: 0¶¶ => 200 keep ""
        GET  HTTP/1.1 200 OK¶A: x*17¶Content-Length: 0¶¶ => 200 keep ""
        GET  HTTP/1.1 200 OK¶A: x*18¶Content-Length: 0¶¶ => error Limit(HeadBytes(60))…
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2¶ab¶2¶cd¶0¶A: b¶¶ => 200 keep "abcd" A=b
        GET  HTTP/1.1 200 OK¶Content-Length: 5¶¶ => error Limit(BodyBytes(4))…
        GET  HTTP/1.1 200 OK¶Content-Length: 4¶¶abcd => 200 keep "abcd"
        GET  HTTP/1.1 200 OK¶Content-Length: 5000000000¶¶ => error Limit(BodyBytes(4))…
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2¶ab¶3¶cde¶0¶¶ => error Limit(BodyBytes(4)) after 200 "ab"…
        GET  HTTP/1.1 200 OK¶¶abcde => error Limit(BodyBytes(4)) after 200 "abcd"…
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶0¶A: 0123456789abcdef¶¶ => error Limit(TrailerBytes(20))…
        GET  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶0¶A:b¶B:c¶C:d¶¶ => error Limit(HeaderCount(2))…
        "#,
        &limits,
    );
}

/// A promised length costs no memory before its bytes come.
#[test]
fn a_promised_length_costs_no_memory() {
    let limits = Limits {
        body_bytes: None,
        ..Limits::default()
    };
    let mut request = Request::get("/");
    let mut exchange = Exchange::new(&request, BodyMode::Buffer);
    send_all(&mut exchange, &mut request);
    let mut response = Response::new();
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n";
    exchange
        .handle_read(head, &mut response, &limits)
        .expect("a head");
    assert_eq!(response.0.body.capacity(), 0);
    assert_eq!(exchange.body_left(), Some(5 << 30));
}

#[test]
fn memory_above_the_cap_is_given_back() {
    let mut response = response_of(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{}",
        "x".repeat(100_000)
    ));
    response.set_retained(1000);
    response.clear();
    assert!(response.0.body.capacity() <= 1000);
}

#[test]
fn a_response_that_repeats_is_held_to_the_limits_of_its_own_call() {
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let input = b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\nhi".as_slice();
    let mut read =
        |limits| outcome_of(&mut request, &mut response, &[input], false, &limits, false);
    assert_eq!(read(Limits::default()), "200 keep \"hi\"");
    for limits in [
        Limits {
            header_count: 1,
            ..Limits::default()
        },
        Limits {
            header_line: 10,
            ..Limits::default()
        },
        Limits {
            head_bytes: 10,
            ..Limits::default()
        },
        Limits {
            body_bytes: Some(1),
            ..Limits::default()
        },
    ] {
        assert!(read(limits).starts_with("error Limit("));
        assert_eq!(read(Limits::default()), "200 keep \"hi\"");
    }
}

#[test]
fn a_response_that_was_cleared_before_its_trailers_keeps_no_head() {
    let (request, mut response, limits) = (Request::get("/"), Response::new(), Limits::default());
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for _ in 0..2 {
        let mut exchange = Exchange::new(&request, BodyMode::Stream);
        exchange.handle_read(head, &mut response, &limits).unwrap();
        let coding = response.header("transfer-encoding");
        assert_eq!(coding, Some(b"chunked".as_slice()));
        response.clear();
        let trailer = b"0\r\nA: trailer\r\n\r\n";
        exchange
            .handle_read(trailer, &mut response, &limits)
            .unwrap();
        response.clear();
    }
}

#[test]
fn a_response_may_be_cleared_inside_a_head_or_trailers() {
    let (request, mut response, limits) = (Request::get("/"), Response::new(), Limits::default());
    let early = "HTTP/1.1 103 E\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: t";
    for pieces in [
        [early, early, "HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
        [early, chunked, "\r\n\r\n"],
    ] {
        let mut exchange = Exchange::new(&request, BodyMode::Stream);
        for piece in pieces {
            exchange
                .handle_read(piece.as_bytes(), &mut response, &limits)
                .unwrap();
            if piece != early || response.interim().count() == 2 {
                response.clear();
            }
        }
        assert!(exchange.done().is_some());
    }
}

/// A head that comes byte by byte is scanned once: twice the bytes cost twice the work.
#[test]
fn a_head_byte_by_byte_costs_linear_time() {
    let limits = Limits {
        head_bytes: 1 << 22,
        header_line: usize::MAX,
        ..Limits::default()
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nA: {}\r\nContent-Length: 0\r\n\r\n",
        "x".repeat(2_000_000)
    );
    let (request, response) = (&mut Request::get("/"), &mut Response::new());
    let bytes: Vec<&[u8]> = head.as_bytes().chunks(1).collect();
    // Quadratic scanning would take 2·10^12 steps here and not end within the test run.
    let outcome = outcome_of(request, response, &bytes, false, &limits, false);
    assert_eq!(outcome, "200 keep \"\"");
}

#[test]
fn folded_and_repeated_headers() {
    let input = "HTTP/1.1 200 OK\r\nFold: a  b\r\n \tc \r\n\t\r\n d\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nEmpty:\r\nContent-Length: 0\r\n\r\n";
    let response = response_of(input);
    assert_eq!(response.header("fold"), Some(&b"a  b c d"[..]));
    assert_eq!(
        response.header_all("SET-COOKIE").collect::<Vec<_>>(),
        [b"a=1", b"b=2"]
    );
    assert_eq!(response.header("empty"), Some(&b""[..]));
    assert_eq!(
        response.headers().map(|h| h.0).collect::<Vec<_>>(),
        [
            "Fold",
            "Set-Cookie",
            "set-cookie",
            "Empty",
            "Content-Length"
        ]
    );
    assert_eq!(response.reason(), b"OK");
    assert_eq!(response.head(), input.as_bytes());
}

#[test]
fn version_status_and_reason_are_shown_as_sent() {
    for (start, status, version, reason) in [
        ("HTTP/1.1 404", 404, Version::Http11, ""),
        (
            "HTTP/1.0 599 \tm\u{e9}h?",
            599,
            Version::Http10,
            "\tm\u{e9}h?",
        ),
        ("HTTP/1.1 999 Blocked", 999, Version::Http11, "Blocked"),
    ] {
        let response = response_of(&format!("{start}\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!((response.status(), response.version()), (status, version));
        assert_eq!(response.reason(), reason.as_bytes());
    }
}

// ---- requests

#[test]
fn framing_that_is_kept_or_ignored_on_request() {
    check_table(
        r#"
        KEEPS CHUNKS    HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶3;x=y¶abc¶0¶T: 1¶¶ => 200 keep "3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n" T=1
        KEEPS CHUNKS    HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶3¶abcd => error Peer(BadChunk) after 200 …
        KEEPS CHUNKS    HTTP/1.1 200 OK¶Content-Length: 2¶¶hi => 200 keep "hi"
        IGNORES LENGTH  HTTP/1.1 200 OK¶Content-Length: 2¶¶hi there∎ => 200 UntilClose "hi there"
        IGNORES LENGTH  HTTP/1.1 200 OK¶Content-Length: 0¶¶hi∎ => 200 UntilClose "hi"
        IGNORES LENGTH  HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2¶hi¶0¶¶ => 200 keep "hi"
        "#,
    );
}

#[test]
fn keep_alive_timeout_of_the_server() {
    for (lines, expected) in [
        ("Keep-Alive: timeout=5, max=100", Some(5)),
        ("Keep-Alive: max=100, Timeout=5", Some(5)),
        // Several lines are one list (RFC 9110 §5.3). The first `timeout` counts.
        ("Keep-Alive: timeout=5\r\nKeep-Alive: max=100", Some(5)),
        ("Keep-Alive: timeout=5\r\nKeep-Alive:", Some(5)),
        ("Keep-Alive: timeout=5\r\nKeep-Alive: timeout=9", Some(5)),
        ("Keep-Alive: timeout=x, timeout=9", Some(9)),
        ("Keep-Alive: timeout=+5", None),
        ("Keep-Alive: timeout=4294967296", None),
        ("Keep-Alive: timeout=", None),
        ("Connection: keep-alive", None),
    ] {
        let mut request = Request::get("/");
        request.encode(&Defaults::new("h", None)).expect("sound");
        let mut exchange = Exchange::new(&request, BodyMode::Buffer);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n\r\n");
        exchange
            .handle_read(head.as_bytes(), &mut Response::new(), &Limits::default())
            .expect("sound");
        let timeout = exchange.keep_alive_timeout();
        assert_eq!(timeout, expected.map(Duration::from_secs), "{lines}");
    }
}

fn encoded(request: &mut Request) -> Result<String, Misuse> {
    request.encode(&Defaults::new("example.com", Some("probe/1")))?;
    let mut exchange = Exchange::new(request, BodyMode::Buffer);
    let mut out = Vec::new();
    loop {
        let n = match exchange.poll_send(request)? {
            SendStep::Write([a, b]) => {
                out.extend_from_slice(a);
                out.extend_from_slice(b);
                a.len() + b.len()
            }
            SendStep::AwaitContinue(_) => {
                out.extend_from_slice(b"<wait>");
                exchange.handle_continue_timeout();
                0
            }
            SendStep::AwaitSource => return Ok("pending".into()),
            SendStep::Done => break,
        };
        exchange.handle_sent(n);
    }
    Ok(String::from_utf8_lossy(&out).replace("\r\n", "¶"))
}

/// Makes a request of `GET`.
type Build = fn(&mut Request) -> &mut Request;

#[test]
fn requests_on_the_wire() {
    let wire = |build: Build| {
        let mut request = Request::get("/a%2Fb?c=d e".replace(' ', "+"));
        build(&mut request);
        encoded(&mut request).expect("a valid request")
    };
    assert!(wire(|r| r.send_target("x?y#z")).starts_with("GET x?y#z HTTP/1.1¶Host: example.com¶"));
    let rows: [(Build, &str); 2] = [
        (|r| r, "Host: example.com¶User-Agent: probe/1¶¶"),
        (
            |r| {
                let r = r.add_header("foo-BAR", "x").add_header("host", "other");
                r.add_header("b", "").add_header("User-agent", "me")
            },
            "Host: other¶User-Agent: me¶foo-BAR: x¶b: ¶¶",
        ),
    ];
    for (build, expected) in rows {
        let line = "GET /a%2Fb?c=d+e HTTP/1.1¶";
        assert_eq!(wire(build), format!("{line}{expected}"));
    }
    // What follows the target, without `User-Agent`.
    let rows: [(Build, &str, &str); 10] = [
        (|r| r, "GET /", "¶"),
        (|r| r.set_method("POST"), "POST /", "Content-Length: 0¶¶"),
        (|r| r.set_method("DELETE"), "DELETE /", "¶"),
        (
            |r| r.set_method("PUT").body(""),
            "PUT /",
            "Content-Length: 0¶¶",
        ),
        (
            |r| r.set_method("OPTIONS").set_target("*"),
            "OPTIONS *",
            "¶",
        ),
        (|r| r.body("test"), "GET /", "Content-Length: 4¶¶test"),
        (
            |r| r.body("test").expect_continue(Duration::from_secs(1)),
            "GET /",
            "Content-Length: 4¶Expect: 100-continue¶¶<wait>test",
        ),
        (
            |r| r.body_stream(&b"test"[..], Some(4)),
            "GET /",
            "Content-Length: 4¶¶test",
        ),
        (
            |r| r.body_stream(&b"test"[..], None).trailer("A", "b"),
            "GET /",
            "Transfer-Encoding: chunked¶Trailer: A¶¶000004¶test¶0¶A: b¶¶",
        ),
        (
            |r| r.body_stream(&b""[..], None),
            "GET /",
            "Transfer-Encoding: chunked¶¶0¶¶",
        ),
    ];
    for (build, line, rest) in rows {
        let mut request = Request::get("");
        build(request.no_user_agent());
        let got = encoded(&mut request).expect("a valid request");
        assert_eq!(got, format!("{line} HTTP/1.1¶Host: example.com¶{rest}"));
    }
    let large = "x".repeat(100_000);
    assert!(
        wire(|r| r.body("x".repeat(100_000)))
            .ends_with(&format!("Content-Length: 100000¶¶{large}"))
    );
}

#[test]
fn invalid_requests_name_the_part() {
    let misuse = |build: Build| {
        let mut request = Request::get("/");
        build(&mut request);
        format!("{:?}", encoded(&mut request).expect_err("a misuse"))
    };
    use Part::{HeaderName, HeaderValue, Host, Method, Target, TrailerValue, UserAgent};
    let rows: [(Build, Part, usize, u8); 10] = [
        (|r| r.set_method("GET /\r\nX:"), Method, 3, b' '),
        (|r| r.set_target("/ HTTP/1.1\r\nX: y"), Target, 1, b' '),
        (|r| r.set_target("/a#b"), Target, 2, b'#'),
        (|r| r.set_target("/\u{e9}"), Target, 1, 0xc3),
        (|r| r.add_header("A\n", "b"), HeaderName, 1, b'\n'),
        (|r| r.add_header("A", "b\0"), HeaderValue, 1, 0),
        (|r| r.add_header("A", "b\r\nC: d"), HeaderValue, 1, b'\r'),
        (|r| r.add_header("Host", "a\nb"), Host, 1, b'\n'),
        (|r| r.add_header("User-Agent", "a\nb"), UserAgent, 1, b'\n'),
        (
            |r| r.body_stream(&b""[..], None).trailer("a", "\r"),
            TrailerValue,
            0,
            b'\r',
        ),
    ];
    for (build, part, at, byte) in rows {
        let name = match part {
            HeaderName | HeaderValue => "A",
            TrailerValue => "a",
            _ => "",
        };
        let part = format!("part: {part:?}, name: {name:?}");
        let expected = format!("Invalid {{ {part}, at: {at}, byte: {byte} }}");
        assert_eq!(misuse(build), expected);
    }
    let rows: [(Build, &str); 10] = [
        (
            |r| r.body_stream(&b""[..], None).trailer("", "x"),
            "Empty(TrailerName)",
        ),
        (|r| r.set_method(""), "Empty(Method)"),
        (|r| r.add_header("", "x"), "Empty(HeaderName)"),
        (
            |r| r.add_header("content-length", "5"),
            "FramingHeader(\"Content-Length\")",
        ),
        (
            |r| r.add_header("Transfer-Encoding", "chunked"),
            "FramingHeader(\"Transfer-Encoding\")",
        ),
        (|r| r.set_target("x"), "TargetForm"),
        (|r| r.set_target("*"), "TargetForm"),
        (|r| r.set_method("CONNECT"), "TargetForm"),
        (|r| r.trailer("A", "b"), "TrailersWithoutChunked"),
        (
            |r| r.body_stream(&b"abc"[..], Some(4)),
            "BodyLength { declared: 4, produced: 3 }",
        ),
    ];
    for (build, expected) in rows {
        assert_eq!(misuse(build), expected);
    }
}

#[test]
fn a_100_releases_the_body_and_a_final_status_does_not() {
    let begin = || {
        let mut request = Request::post("/", "body");
        request.expect_continue(Duration::from_secs(1));
        request.encode(&Defaults::new("h", None)).expect("valid");
        let mut exchange = Exchange::new(&request, BodyMode::Buffer);
        let Ok(SendStep::Write([head, _])) = exchange.poll_send(&mut request) else {
            panic!("a head")
        };
        let n = head.len();
        exchange.handle_sent(n);
        assert!(matches!(
            exchange.poll_send(&mut request),
            Ok(SendStep::AwaitContinue(_))
        ));
        (request, exchange)
    };
    let read = |exchange: &mut Exchange, head: &str| {
        let (text, limits) = (format!("HTTP/1.1 {head}\r\n\r\n"), Limits::default());
        let read = exchange.handle_read(text.as_bytes(), &mut Response::new(), &limits);
        read.expect("a valid part of a response");
    };
    let (mut request, mut exchange) = begin();
    read(&mut exchange, "103 Hints");
    let step = exchange.poll_send(&mut request);
    assert!(matches!(step, Ok(SendStep::AwaitContinue(_))));
    read(&mut exchange, "100 Continue");
    let step = exchange.poll_send(&mut request);
    assert!(matches!(step, Ok(SendStep::Write([b"body", _]))));
    exchange.handle_sent(4);
    let step = exchange.poll_send(&mut request);
    assert!(matches!(step, Ok(SendStep::Done)));
    read(&mut exchange, "200 OK\r\nContent-Length: 0");
    assert_eq!(exchange.done(), Some(Reuse::Keep));

    let (_request, mut exchange) = begin();
    read(&mut exchange, "417 No\r\nContent-Length: 0");
    let early = Reuse::Close(CloseReason::EarlyResponse);
    assert_eq!(exchange.done(), Some(early));

    // Not even when the body of the refusal is late.
    let (mut request, mut exchange) = begin();
    read(&mut exchange, "417 No\r\nContent-Length: 2");
    exchange.handle_continue_timeout();
    let step = exchange.poll_send(&mut request);
    assert!(!matches!(step, Ok(SendStep::Write(_))), "{step:?}");
}

#[test]
fn a_stream_is_read_once() {
    let mut request = Request::get("/");
    request.body_stream(&b"x"[..], None);
    assert!(encoded(&mut request).is_ok());
    assert!(matches!(
        encoded(&mut request),
        Err(Misuse::BodyNotReplayable)
    ));
    assert!(!request.is_replayable());
}

#[test]
fn a_body_that_can_be_opened_is_read_again() {
    let mut request = Request::get("/");
    request.body_opened(|| Ok(&b"x"[..]), None);
    let sent = encoded(&mut request).expect("a body");
    assert_eq!(encoded(&mut request).expect("a body"), sent);
    assert_eq!(encoded(&mut request.clone()).expect("a body"), sent);
    request.body_opened(|| Err::<&[u8], _>(std::io::Error::other("gone")), None);
    let error = encoded(&mut request).expect_err("no body");
    assert!(matches!(error, Misuse::BodySource(_)), "{error}");
}

// ---- properties

fn token() -> impl Strategy<Value = String> {
    let framing = "content-length transfer-encoding connection keep-alive upgrade";
    "[A-Za-z][A-Za-z0-9-]{0,12}".prop_filter("framing headers have their own tests", move |name| {
        let name = name.to_ascii_lowercase();
        framing.split(' ').all(|other| other != name)
    })
}

proptest! {
    /// What a server writes is what the caller gets.
    #[test]
    fn parsed_responses_equal_what_was_written(
        status in prop_oneof![200u16..204, 205u16..304, 305u16..1000],
        headers in prop::collection::vec((token(), "[!-~]([ -~]{0,20}[!-~])?"), 0..8),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
        chunked in any::<bool>(),
        trailer in prop::option::of("[!-~]{1,9}"),
    ) {
        let body = pieces.concat();
        let mut input = format!("HTTP/1.1 {status} Some Reason\r\n").into_bytes();
        for (name, value) in &headers {
            input.extend(format!("{name}: {value}\r\n").bytes());
        }
        if chunked {
            input.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in &pieces {
                input.extend(format!("{:x}\r\n", piece.len()).bytes());
                input.extend(piece);
                input.extend(b"\r\n");
            }
            input.extend(b"0\r\n");
            if let Some(value) = &trailer {
                input.extend(format!("X-Sum: {value}\r\n").bytes());
            }
            input.extend(b"\r\n");
        } else {
            input.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
            input.extend(&body);
        }
        outcome_in_every_segmentation("GET", &input, false, &Limits::default());
        let mut request = Request::get("/");
        let mut exchange = Exchange::new(&request, BodyMode::Buffer);
        send_all(&mut exchange, &mut request);
        let mut response = Response::new();
        let used = exchange.handle_read(&input, &mut response, &Limits::default());
        prop_assert_eq!(used.expect("a valid response"), input.len());
        prop_assert_eq!(exchange.done(), Some(Reuse::Keep));
        prop_assert_eq!(response.status(), status);
        prop_assert_eq!(response.body(), &body);
        let seen: Vec<_> = response.headers().map(|(n, v)| (n.to_owned(), String::from_utf8_lossy(v).into_owned())).collect();
        prop_assert_eq!(&seen[..headers.len()], &headers[..]);
        if chunked {
            let sum = response.trailers().next().map(|(_, v)| String::from_utf8_lossy(v).into_owned());
            prop_assert_eq!(sum, trailer);
        }
    }

    /// Damaged responses have the same outcome in every segmentation.
    #[test]
    fn damaged_responses_have_the_same_outcome_in_every_segmentation(
        base in prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n0\r\nA: b\r\n\r\n",
            "HTTP/1.1 100 C\r\n\r\nHTTP/1.0 404 No\nConnection: keep-alive\nContent-Length: 1\n\nx",
        ]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"\r\n\0 :;,0159azAZ\"\\\x80".to_vec()), 0u8..3), 0..5),
        eof in any::<bool>(),
    ) {
        let mut input = base.as_bytes().to_vec();
        for (at, byte, kind) in edits {
            let at = at.index(input.len());
            match kind {
                0 => input[at] = byte,
                1 => input.insert(at, byte),
                _ => drop(input.remove(at)),
            }
        }
        // What the strict reading takes, the lenient one takes alike.
        let limits = Limits::default();
        let strict = outcome_in_every_segmentation("GET", &input, eof, &limits);
        let lenient = outcome_in_every_segmentation("LENIENT GET", &input, eof, &limits);
        if !strict.starts_with("error") && strict != "incomplete" {
            prop_assert_eq!(lenient, strict);
        }
    }
}
