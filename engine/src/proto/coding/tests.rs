//! Coded bodies through whole exchanges. Each body is fed whole, byte by byte, and split in two at many offsets, under
//! each framing, buffered and streamed with a small buffer. The outcome must be the same each time.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::*;
use crate::proto::{BodyMode, CloseReason, Defaults, Exchange, Request, Response, Reuse, SendStep};

// ---- encoding

fn encode(coding: &str, data: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" | "x-gzip" => gzip(data),
        "deflate" => all_of(ZlibEncoder::new(data, Compression::default())),
        "bare deflate" => bare(data),
        "br" => all_of(::brotli::CompressorReader::new(data, 4096, 5, 18)),
        "zstd" => zstd_frame(data, 0),
        other => panic!("{other}"),
    }
}

fn all_of(mut encoder: impl Read) -> Vec<u8> {
    let mut coded = Vec::new();
    encoder.read_to_end(&mut coded).unwrap();
    coded
}

fn gzip(data: &[u8]) -> Vec<u8> {
    all_of(GzEncoder::new(data, Compression::default()))
}

fn bare(data: &[u8]) -> Vec<u8> {
    all_of(DeflateEncoder::new(data, Compression::default()))
}

/// With a checksum, so that all damage is detected. The window is that of the level if `window_log` is 0.
fn zstd_frame(data: &[u8], window_log: u32) -> Vec<u8> {
    let mut encoder = ::zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    if window_log > 0 {
        encoder.window_log(window_log).unwrap();
    }
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Applies the codings in the order in which `Content-Encoding` lists them.
fn encode_all(codings: &[&str], data: &[u8]) -> Vec<u8> {
    let coded = data.to_vec();
    codings.iter().fold(coded, |data, c| encode(c, &data))
}

/// Text that compresses moderately.
fn text(length: usize) -> Vec<u8> {
    let words = (0u32..).flat_map(|n| {
        let word = n.wrapping_mul(2_654_435_761) >> 20;
        format!("{word:x} lorem ").into_bytes()
    });
    words.take(length).collect()
}

// ---- decoding

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Framed {
    Length,
    Chunked,
    UntilClose,
}

const FRAMINGS: [Framed; 3] = [Framed::Length, Framed::Chunked, Framed::UntilClose];

fn reply(lines: &str, framed: Framed, body: &[u8]) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 200 OK\r\n{lines}").into_bytes();
    match framed {
        Framed::Length => {
            out.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
            out.extend(body);
        }
        Framed::Chunked => {
            out.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in body.chunks(body.len().div_ceil(3).max(1)) {
                out.extend(format!("{:x}\r\n", piece.len()).bytes());
                out.extend(piece);
                out.extend(b"\r\n");
            }
            out.extend(b"0\r\n\r\n");
        }
        Framed::UntilClose => {
            out.extend(b"\r\n");
            out.extend(body);
        }
    }
    out
}

#[derive(Debug)]
struct Outcome {
    result: Result<Reuse, String>,
    body: Vec<u8>,
    decoded: bool,
    /// The longest that the body was at any time.
    longest: usize,
}

/// Feeds the pieces as the reactor does: while decoding has stopped, the consumer takes the body, and nothing is read.
fn run(
    request: &mut Request,
    pieces: &[&[u8]],
    stream: Option<usize>,
    limits: &Limits,
    response: &mut Response,
) -> Outcome {
    response.clear();
    request.encode(&Defaults::new("h", None)).unwrap();
    let mode = if stream.is_some() {
        BodyMode::Stream
    } else {
        BodyMode::Buffer
    };
    let mut exchange = Exchange::new(request, mode);
    exchange.set_stream_buffer(stream.unwrap_or(usize::MAX));
    while let SendStep::Write([a, b]) = exchange.poll_send(request).unwrap() {
        let n = a.len() + b.len();
        exchange.handle_sent(n);
    }
    let (mut body, mut longest) = (Vec::new(), 0);
    let mut take = |response: &mut Response| {
        longest = longest.max(response.body().len());
        if stream.is_some() {
            body.append(response.body_buffer());
        }
    };
    let mut result = Ok(());
    for piece in pieces {
        result = exchange.handle_read(piece, response, limits).map(|_| ());
        while result.is_ok() && exchange.is_held() {
            assert!(exchange.done().is_none(), "done before decoding ended");
            take(response);
            result = exchange.handle_room(response, limits);
        }
        take(response);
        if result.is_err() {
            break;
        }
    }
    if result.is_ok() && exchange.done().is_none() {
        result = exchange.handle_eof().map_err(ErrorKind::from);
    }
    let result = match result {
        Ok(()) => Ok(exchange.done().expect("the end")),
        Err(kind) => Err(format!("{kind:?}")),
    };
    if stream.is_none() {
        body.extend_from_slice(response.body());
    }
    Outcome {
        result,
        body,
        decoded: response.decoded(),
        longest,
    }
}

fn decoding(codings: Codings) -> Request {
    let mut request = Request::get("/");
    request.decode(codings);
    request
}

/// The outcome of a response, in every segmentation and both modes. The bytes before an error may differ.
fn outcome_in_every_segmentation(input: &[u8], limits: &Limits) -> Outcome {
    let request = &mut decoding(Codings::all());
    let response = &mut Response::new();
    let whole = run(request, &[input], None, limits, response);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    let step = (input.len() / 300).max(1);
    let halves = (0..input.len())
        .step_by(step)
        .map(|at| [&input[..at], &input[at..]]);
    let cuts = halves.map(|halves| halves.to_vec());
    for pieces in cuts.chain([bytes, vec![input]]) {
        for stream in [None, Some(7), Some(1000)] {
            let other = run(request, &pieces, stream, limits, response);
            let context = || format!("{} pieces, {stream:?}: {:?}", pieces.len(), other.result);
            assert_eq!(other.result, whole.result, "{}", context());
            assert_eq!(other.decoded, whole.decoded, "{}", context());
            if whole.result.is_ok() {
                assert!(other.body == whole.body, "{}", context());
            }
            assert!(
                other.longest <= stream.unwrap_or(usize::MAX),
                "{}",
                context()
            );
        }
    }
    whole
}

/// The outcome of a coded body under one framing.
fn decode(listed: &str, framed: Framed, body: &[u8]) -> Outcome {
    let lines = format!("Content-Encoding: {listed}\r\n");
    outcome_in_every_segmentation(&reply(&lines, framed, body), &Limits::default())
}

/// The outcomes of a response that comes at once and byte by byte, buffered and streamed with that buffer.
fn outcomes(input: &[u8], buffer: usize, limits: &Limits) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for size in [input.len(), 1] {
        let pieces: Vec<&[u8]> = input.chunks(size).collect();
        for stream in [None, Some(buffer)] {
            let request = &mut decoding(Codings::all());
            let outcome = run(request, &pieces, stream, limits, &mut Response::new());
            outcomes.push(outcome);
        }
    }
    outcomes
}

/// The outcome of a response that comes at once.
fn outcome(input: &[u8], limits: &Limits) -> Outcome {
    let request = &mut decoding(Codings::all());
    run(request, &[input], None, limits, &mut Response::new())
}

#[track_caller]
fn assert_broken(outcome: &Outcome) {
    assert_eq!(outcome.result, Err("Peer(BadContentCoding)".to_owned()));
}

#[track_caller]
fn assert_decoded(outcome: &Outcome, expected: &[u8]) {
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    assert!(outcome.decoded);
    assert!(outcome.body == expected, "{} bytes", outcome.body.len());
}

// ---- what is decoded

#[test]
fn stacks_over_lists_and_lines() {
    let data = text(300);
    let coded = encode_all(&["gzip", "br", "zstd"], &data);
    for lines in [
        "Content-Encoding: gzip, br, zstd\r\n",
        "content-encoding: GZIP,BR,,\tZSTD ,\r\n",
        "Content-Encoding: x-gzip\r\nVary: a\r\nContent-Encoding: br\r\nCONTENT-ENCODING: zstd\r\n",
        "Content-Encoding: identity, gzip\r\nContent-Encoding:\r\nContent-Encoding: br, Identity, zstd\r\n",
    ] {
        for framed in [Framed::Length, Framed::Chunked] {
            let outcome =
                outcome_in_every_segmentation(&reply(lines, framed, &coded), &Limits::default());
            assert_decoded(&outcome, &data);
        }
    }
}

#[test]
fn five_codings_and_no_more() {
    let data = text(100);
    let five = ["gzip", "deflate", "br", "zstd", "gzip"];
    let outcome = decode(&five.join(", "), Framed::Length, &encode_all(&five, &data));
    assert_decoded(&outcome, &data);
    let six = [&five[..], &["br"]].concat();
    let outcome = decode(&six.join(", "), Framed::Length, &encode_all(&six, &data));
    assert_eq!(outcome.result.unwrap_err(), "Limit(ContentCodings(5))");
    assert!(outcome.body.is_empty());
}

#[test]
fn unknown_or_unwanted_codings_are_not_decoded() {
    let coded = gzip(b"hello");
    for (listed, codings) in [
        ("gzip", None),
        ("gzip", Some(Codings::none())),
        ("gzip", Some(Codings::BR | Codings::DEFLATE | Codings::ZSTD)),
        ("compress", Some(Codings::all())),
        ("x-compress", Some(Codings::all())),
        ("gzip, compress", Some(Codings::all())),
        ("compress, gzip", Some(Codings::all())),
        ("zstd, gzip", Some(Codings::GZIP)),
        ("gzip;q=1", Some(Codings::all())),
        ("gzip gzip", Some(Codings::all())),
        (
            "a, gzip, gzip, gzip, gzip, gzip, gzip",
            Some(Codings::all()),
        ),
        ("identity", Some(Codings::all())),
        ("", Some(Codings::all())),
    ] {
        let lines = format!("Content-Encoding: {listed}\r\n");
        let input = reply(&lines, Framed::Length, &coded);
        let request = &mut codings.map_or_else(|| Request::get("/"), decoding);
        let (limits, response) = (&Limits::default(), &mut Response::new());
        let outcome = run(request, &[&input], None, limits, response);
        assert_eq!(outcome.result, Ok(Reuse::Keep), "{listed}");
        assert!(!outcome.decoded && outcome.body == coded, "{listed}");
    }
}

/// Responses without a body, or with a part of a body.
#[test]
fn responses_without_a_whole_body_are_not_decoded() {
    let gzip = "Content-Encoding: gzip\r\n";
    let part = "Content-Range: bytes 3-6/99\r\nContent-Length: 4\r\n\r\npart";
    let empty = "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    // Headers of interim responses have no effect.
    let early = "HTTP/1.1 103 Early Hints\r\n";
    let late = "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let length = "Content-Length: 9\r\n\r\n";
    let none = "Content-Length: 0\r\n\r\n";
    for (method, start, rest, decoded, body) in [
        ("HEAD", "HTTP/1.1 200 OK\r\n", length, false, ""),
        ("GET", "HTTP/1.1 204 No Content\r\n", "\r\n", false, ""),
        ("GET", "HTTP/1.1 304 Not Modified\r\n", length, false, ""),
        ("GET", "HTTP/1.1 200 OK\r\n", none, false, ""),
        ("GET", "HTTP/1.1 200 OK\r\n", empty, true, ""),
        ("GET", "HTTP/1.1 206 Partial\r\n", part, false, "part"),
        ("GET", early, late, false, "hi"),
    ] {
        let input = format!("{start}{gzip}{rest}");
        for size in [1, input.len()] {
            let pieces: Vec<&[u8]> = input.as_bytes().chunks(size).collect();
            let mut request = Request::new(method, "/");
            request.decode(Codings::all());
            let limits = &Limits::default();
            let outcome = run(&mut request, &pieces, None, limits, &mut Response::new());
            assert_eq!(outcome.result, Ok(Reuse::Keep), "{input}");
            let got = (outcome.decoded, &*outcome.body);
            assert_eq!(got, (decoded, body.as_bytes()), "{input}");
        }
    }
}

/// Only the end of the connection frames this body, so an empty one cannot be told from a lost one.
#[test]
fn an_empty_coded_body_until_close_is_an_error() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        assert_broken(&decode(coding, Framed::UntilClose, b""));
    }
}

#[test]
fn gzip_headers_members_and_padding() {
    let deflated = bare(b"hello");
    let mut crc = flate2::Crc::new();
    crc.update(b"hello");
    let member = |flags: u8, parts: &[u8]| {
        let mut header = vec![0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 255];
        header.extend(parts);
        if flags & 2 != 0 {
            let mut crc = flate2::Crc::new();
            crc.update(&header);
            header.extend(&crc.sum().to_le_bytes()[..2]);
        }
        let trailer = [crc.sum().to_le_bytes(), 5u32.to_le_bytes()].concat();
        [header, deflated.clone(), trailer].concat()
    };
    let all = b"\x03\x00abcname\0comment\0";
    let good = [
        member(0, b""),
        member(1, b""),
        member(2, b""),
        member(4, b"\x00\x00"),
        member(4, b"\x02\x00ab"),
        member(8, b"name\0"),
        member(8, b"\0"),
        member(16, b"comment\0"),
        member(2 | 8, b"name\0"),
        member(1 | 2 | 4 | 8 | 16, all),
    ];
    for member in &good {
        assert_decoded(&decode("gzip", Framed::Length, member), b"hello");
        let two = [&member[..], member].concat();
        assert_decoded(&decode("gzip", Framed::Length, &two), b"hellohello");
        let padded = [&member[..], member, &[0; 20]].concat();
        assert_decoded(&decode("gzip", Framed::Length, &padded), b"hellohello");
        // Neither a member nor padding.
        for tail in [
            &b"x"[..],
            b"\x1f",
            b"\x1f\x8b\x08\0\0\0",
            b"\0\0x",
            b"\0\x1f\x8b",
        ] {
            assert_broken(&decode("gzip", Framed::Length, &[member, tail].concat()));
        }
    }
    let mut bad_header_crc = member(1 | 2 | 4 | 8 | 16, all);
    bad_header_crc[15] ^= 1; // in the name
    let mut bad_crc = member(0, b"");
    let at = bad_crc.len() - 8;
    bad_crc[at] ^= 1;
    let mut bad_length = member(0, b"");
    *bad_length.last_mut().unwrap() ^= 1;
    for bad in [
        member(0x20, b""),
        member(0x80, b""),
        bad_header_crc,
        bad_crc,
        bad_length,
        [&b"\0"[..], &member(0, b"")].concat(),
    ] {
        assert_broken(&decode("gzip", Framed::Length, &bad));
    }
}

#[test]
fn bytes_after_deflate_and_br_are_an_error() {
    for coding in ["deflate", "bare deflate", "br"] {
        let listed = coding.trim_start_matches("bare ");
        for tail in [&b"\0"[..], b"x", &encode(coding, b"again")] {
            let coded = [&encode(coding, b"hello"), tail].concat();
            for framed in FRAMINGS {
                assert_broken(&decode(listed, framed, &coded));
            }
        }
    }
}

#[test]
fn several_zstd_frames() {
    let (a, b) = (zstd_frame(b"hello ", 0), zstd_frame(b"world", 0));
    let skippable = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
    for coded in [
        [&a[..], &b].concat(),
        [skippable, &a[..], skippable, &b, skippable].concat(),
    ] {
        assert_decoded(&decode("zstd", Framed::Length, &coded), b"hello world");
    }
    assert_decoded(&decode("zstd", Framed::Length, skippable), b"");
    let cut = [&a[..], &skippable[..9]].concat();
    let tail = [&a[..], b"x"].concat();
    for broken in [cut, tail] {
        assert_broken(&decode("zstd", Framed::Length, &broken));
    }
}

/// A byte behind a body, also while decoding waits for the consumer.
#[test]
fn bytes_behind_a_body_are_surplus() {
    let coded = gzip(&text(5000));
    let whole = reply("Content-Encoding: gzip\r\n", Framed::Length, &coded);
    let outcome = outcome_in_every_segmentation(&[&whole[..], b"x"].concat(), &Limits::default());
    assert_eq!(outcome.result, Ok(Reuse::Close(CloseReason::Surplus)));
}

// ---- broken bodies

/// A coded body that is cut anywhere, under any framing that is itself complete, is an error and never a short body.
#[test]
fn truncated_at_every_byte() {
    let data = text(200);
    for codings in [
        &["gzip"][..],
        &["deflate"],
        &["bare deflate"],
        &["br"],
        &["zstd"],
        &["br", "gzip"],
        &["gzip", "zstd", "deflate"],
    ] {
        let coded = encode_all(codings, &data);
        let listed = codings.join(", ").replace("bare ", "");
        let lines = format!("Content-Encoding: {listed}\r\n");
        for framed in FRAMINGS {
            for at in 1..coded.len() {
                let input = reply(&lines, framed, &coded[..at]);
                for outcome in outcomes(&input, 50, &Limits::default()) {
                    assert_broken(&outcome);
                }
            }
        }
    }
}

/// If the framing is cut, the error is that of the framing, whatever the state of the coding.
#[test]
fn cut_framing_is_a_truncated_response() {
    let coded = gzip(b"hello");
    for framed in [Framed::Length, Framed::Chunked] {
        let input = reply("Content-Encoding: gzip\r\n", framed, &coded);
        let outcome = outcome_in_every_segmentation(&input[..input.len() - 1], &Limits::default());
        assert_eq!(outcome.result.unwrap_err(), "Peer(Truncated)");
    }
}

/// Damage at every byte gives the same data or an error, and no panic.
#[test]
fn corrupted_at_every_byte() {
    let data = text(300);
    for coding in ["gzip", "deflate", "bare deflate", "br", "zstd"] {
        let coded = encode(coding, &data);
        let lines = format!(
            "Content-Encoding: {}\r\n",
            coding.trim_start_matches("bare ")
        );
        let checked = matches!(coding, "gzip" | "deflate" | "zstd");
        for at in 0..coded.len() {
            for change in [1, 0x80, 0xff] {
                let mut coded = coded.clone();
                coded[at] ^= change;
                let input = reply(&lines, Framed::Length, &coded);
                for outcome in outcomes(&input, 100, &Limits::default()) {
                    let same = !checked || outcome.body == data;
                    assert!(outcome.result.is_err() || same, "{coding} {change} at {at}");
                }
            }
        }
    }
}

// ---- limits

/// A body of zeros, as gzip members of 1 MiB each.
fn zeros(length: usize) -> Vec<u8> {
    gzip(&vec![0; 1 << 20]).repeat(length >> 20)
}

#[test]
fn a_bomb_stops_at_the_limits() {
    let bomb = zeros(1 << 30);
    let input = reply("Content-Encoding: gzip\r\n", Framed::Length, &bomb);
    let request = &mut decoding(Codings::all());
    let limit = |decode_ratio, decoded_bytes| Limits {
        decode_ratio,
        decoded_bytes,
        ..Limits::default()
    };
    let (ratio, size) = ("Limit(DecodeRatio(1000))", "Limit(DecodedBytes(5000000))");
    for (limits, error, longest) in [
        (limit(Some(1000), Some(64 << 20)), ratio, 2 << 20),
        (limit(None, Some(5_000_000)), size, 5_000_000),
    ] {
        for size in [1000, 65_536, input.len()] {
            let pieces: Vec<&[u8]> = input.chunks(size).collect();
            let mut response = Response::new();
            let outcome = run(request, &pieces, None, &limits, &mut response);
            assert_eq!(outcome.result.unwrap_err(), error);
            assert!(outcome.body.len() <= longest, "{}", outcome.body.len());
            assert!(Vec::from(response.take_body()).capacity() <= 4 * longest);
        }
    }
    // In a streamed body, only the ratio is limited. Without that limit, no more waits than the consumer allows.
    let pieces: Vec<&[u8]> = input.chunks(65_536).collect();
    let limits = limit(Some(1000), Some(1));
    let response = &mut Response::new();
    let outcome = run(request, &pieces, Some(10_000), &limits, response);
    assert_eq!(outcome.result.unwrap_err(), ratio);
    assert!(outcome.longest <= 10_000);
}

#[test]
fn the_decoded_limit_is_exact() {
    let data = text(1000);
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let lines = format!("Content-Encoding: {coding}\r\n");
        let input = reply(&lines, Framed::Length, &encode(coding, &data));
        for limit in [999, 1000] {
            let limits = Limits {
                decoded_bytes: Some(limit),
                ..Limits::default()
            };
            // Of a streamed body, only the ratio is limited.
            for outcome in outcomes(&input, 1000, &limits).iter().step_by(2) {
                assert_eq!(outcome.body, data[..limit as usize]);
                assert_eq!(outcome.result.is_ok(), limit == 1000, "{coding}");
            }
        }
    }
}

/// Between two codings, data is compressed already. Blocks, frames and members without content would make the second
/// decoder work for nothing.
#[test]
fn the_data_between_two_codings_has_its_ratio() {
    let outcome = |between: &[u8], second: &str| {
        let lines = format!("Content-Encoding: {second}, zstd\r\n");
        let input = reply(&lines, Framed::Length, &encode("zstd", between));
        outcome(&input, &Limits::default()).result
    };
    for (coding, part) in [
        ("gzip", gzip(b"")),
        ("zstd", b"\x50\x2a\x4d\x18\0\0\0\0".to_vec()),
        ("zstd", b"\x28\xb5\x2f\xfd\x20\0\x01\0\0".to_vec()),
    ] {
        let parts = |bytes| part.repeat(bytes / part.len());
        let few = outcome(&parts(250_000), coding);
        assert_eq!(few, Ok(Reuse::Keep), "{coding}");
        let many = outcome(&parts(1 << 20), coding);
        assert_eq!(many.unwrap_err(), "Limit(DecodeRatio(16))", "{coding}");
    }
    let twice = outcome(&gzip(&text(3 << 20)), "gzip");
    assert_eq!(twice, Ok(Reuse::Keep));
}

#[test]
fn the_coded_form_has_its_limit_too() {
    let coded = gzip(&text(5000));
    let limits = Limits {
        body_bytes: Some(coded.len() as u64 - 1),
        ..Limits::default()
    };
    for framed in FRAMINGS {
        let input = reply("Content-Encoding: gzip\r\n", framed, &coded);
        let error = format!("Limit(BodyBytes({}))", coded.len() - 1);
        assert_eq!(outcome(&input, &limits).result, Err(error), "{framed:?}");
    }
}

#[test]
fn a_zstd_window_above_the_limit_is_refused() {
    let data = text(100);
    let lines = "Content-Encoding: zstd\r\n";
    for (log, max_log, good) in [
        (23, 23, true),
        (24, 23, false),
        (24, 24, true),
        (20, 19, false),
    ] {
        let input = reply(lines, Framed::Chunked, &zstd_frame(&data, log));
        let limits = Limits {
            zstd_window_log: max_log,
            ..Limits::default()
        };
        let outcome = outcome_in_every_segmentation(&input, &limits);
        if good {
            assert_decoded(&outcome, &data);
        } else {
            assert_eq!(
                outcome.result.unwrap_err(),
                format!("Limit(ZstdWindow({max_log}))")
            );
        }
    }
}

/// The large windows of brotli's own tools are not part of RFC 7932.
#[test]
fn a_large_window_of_br_is_refused() {
    let params = ::brotli::enc::BrotliEncoderParams {
        large_window: true,
        lgwin: 28,
        ..Default::default()
    };
    let mut coded = Vec::new();
    ::brotli::BrotliCompress(&mut &text(1000)[..], &mut coded, &params).unwrap();
    assert_broken(&decode("br", Framed::Length, &coded));
}

// ---- memory

/// A response keeps the memory of decoding within its cap, and no state of one body gets into the next.
#[test]
fn decoders_are_used_again() {
    let limits = &Limits::default();
    let request = &mut decoding(Codings::all());
    let mut response = Response::new();
    let data = text(3000);
    for round in 0..3 {
        for codings in [
            &["gzip"][..],
            &["zstd"],
            &["deflate"],
            &["bare deflate"],
            &["br"],
            &["gzip", "gzip"],
        ] {
            let listed = codings.join(", ").replace("bare ", "");
            let lines = format!("Content-Encoding: {listed}\r\n");
            let coded = encode_all(codings, &data);
            let cut = reply(&lines, Framed::Length, &coded[..coded.len() / 2]);
            let outcome = run(request, &[&cut], None, limits, &mut response);
            assert_broken(&outcome);
            let input = reply(&lines, Framed::Length, &coded);
            for _ in 0..2 {
                let outcome = run(request, &[&input], None, limits, &mut response);
                assert_decoded(&outcome, &data);
                // Headers stay as received.
                let coding = response.header("content-encoding");
                assert_eq!(coding, Some(listed.as_bytes()));
                let kept = response.0.decoder.as_ref().unwrap().idle_memory();
                assert!(kept > 0 || codings == ["br"], "{round} {listed}");
                assert!(kept <= 4 << 20, "{kept}");
            }
        }
    }
    response.set_retained(1000);
    response.clear();
    assert!(response.0.decoder.is_none());
}

// ---- the request

#[test]
fn accept_encoding_of_requests() {
    let head = |request: &mut Request, defaults: &Defaults| {
        request.encode(defaults).unwrap();
        String::from_utf8(request.encoded_head().to_vec()).unwrap()
    };
    let plain = Defaults::new("h", Some("ua"));
    let all = plain.clone().with_codings(Codings::all());
    let start = "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: ua\r\n";
    let mut request = Request::get("/");
    assert_eq!(head(&mut request, &plain), format!("{start}\r\n"));
    // The same request, encoded again with other defaults.
    let offer = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
    assert_eq!(head(&mut request, &all), format!("{start}{offer}\r\n"));
    assert_eq!(request.codings(), Codings::all());
    request.decode(Codings::none());
    assert_eq!(head(&mut request, &all), format!("{start}\r\n"));
    assert!(request.codings().is_empty());
    request.decode(Codings::BR | Codings::GZIP);
    let offer = "Accept-Encoding: gzip, br\r\n";
    assert_eq!(head(&mut request, &plain), format!("{start}{offer}\r\n"));
    // The caller's own headers have precedence, and a range refers to the coded body that the caller gets.
    for (name, value) in [("accept-encoding", "br;q=1"), ("Range", "bytes=0-9")] {
        request.add_header(name, value);
        assert_eq!(
            head(&mut request, &all),
            format!("{start}{name}: {value}\r\n\r\n")
        );
        assert_eq!(request.codings(), Codings::BR | Codings::GZIP);
        request.clear_headers();
    }
    assert_eq!(head(&mut request, &plain), format!("{start}{offer}\r\n"));
}

proptest! {
    #[test]
    fn round_trips(
        data in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..3000),
            prop::collection::vec(prop::sample::select(b"ab \n".to_vec()), 0..3000),
            (any::<u8>(), 0usize..200_000).prop_map(|(byte, length)| vec![byte; length]),
        ],
        codings in prop::collection::vec(prop::sample::select(vec!["gzip", "x-gzip", "deflate", "bare deflate", "br", "zstd"]), 1..=5),
        framed in prop::sample::select(FRAMINGS.to_vec()),
        size in 1usize..5000,
        stream in prop::option::of(1usize..5000),
    ) {
        let lines = format!("Content-Encoding: {}\r\n", codings.join(", ").replace("bare ", ""));
        let input = reply(&lines, framed, &encode_all(&codings, &data));
        let pieces: Vec<&[u8]> = input.chunks(size).collect();
        let limits = Limits { decode_ratio: None, ..Limits::default() };
        let request = &mut decoding(Codings::all());
        let outcome = run(request, &pieces, stream, &limits, &mut Response::new());
        prop_assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        prop_assert_eq!(outcome.result == Ok(Reuse::Keep), framed != Framed::UntilClose);
        prop_assert!(outcome.decoded && outcome.body == data);
        prop_assert!(outcome.longest <= stream.unwrap_or(usize::MAX));
    }
}
