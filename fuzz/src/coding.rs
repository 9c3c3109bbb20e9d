//! Content codings (RFC 9110 §8.4). The reference for a complete body is the whole input, decoded at once by `flate2`,
//! `brotli` and `zstd`.

use std::io::{Read, Write};

use courser::proto::steps::BodyMode;
use courser::{Codings, ErrorKind, Limits, Request, Response};

use crate::response::asked;

const NAMES: [&str; 5] = ["gzip", "deflate", "br", "zstd", "identity"];

/// Largest decoded body, in bytes.
const MOST: u64 = 1 << 20;

/// Decodes any bytes with any stack of codings. The first bytes choose the stack, the framing, how the rest is cut into
/// reads, and whether the rest is the coded body, or a payload that is coded here and gets one fault.
pub fn coding(data: &[u8]) {
    let Some((&[depth, picks, more_picks, choice, cut, fault], payload)) = data.split_first_chunk()
    else {
        return;
    };
    let picks = u16::from_le_bytes([picks, more_picks]);
    let stack: Vec<&str> = (0..u32::from(depth % 7))
        .map(|at| NAMES[usize::from(picks >> (2 * at)) % NAMES.len()])
        .collect();
    let body = if choice & 1 == 0 {
        payload.to_vec()
    } else {
        with_fault(encode(&stack, payload), choice >> 1 & 3, fault)
    };
    let framing = match choice >> 3 & 3 {
        0 => Framing::Chunked,
        1 => Framing::UntilClose,
        _ => Framing::Length,
    };
    let input = reply(&stack, &body, framing);
    let limits = Limits {
        decoded_bytes: Some(MOST),
        decode_ratio: None,
        ..Limits::default()
    };
    let cut = usize::from(cut);
    let all = input.len().max(1);
    let whole = decode(&input, Mode::Buffer, &limits, [all; 2]);
    // How much is decoded before an error depends on the reads; whether there is an error does not.
    for steps in [[cut + 1; 2], [cut % 16 + 1, cut / 16 * 8 + 1]] {
        let other = decode(&input, Mode::Buffer, &limits, steps);
        assert_eq!(whole.done, other.done, "by the segmentation");
        assert_eq!(whole.decoded, other.decoded);
        assert!(!whole.done || whole.body == other.body, "another body");
    }
    // Streamed bodies have no limit on their total size. A slow consumer changes nothing.
    if !whole.over {
        for hold in [cut + 1, usize::MAX] {
            let streamed = decode(&input, Mode::Stream(hold), &limits, [all, cut + 1]);
            assert_eq!(whole.done, streamed.done, "streamed by {hold}");
            assert!(!whole.done || whole.body == streamed.body, "another body");
        }
    }
    assert!(whole.body.len() as u64 <= MOST);
    if !whole.done {
        return;
    }
    if whole.decoded {
        let expected = reference(&stack, &body);
        assert!(
            expected.is_some_and(|expected| expected == whole.body),
            "a body that is not whole was taken for one"
        );
    } else {
        assert_eq!(whole.body, body);
    }
    // The limit on the ratio holds, except below its threshold and for the output of one piece.
    let strict = Limits {
        decode_ratio: Some(2),
        ..limits
    };
    let bounded = decode(&input, Mode::Buffer, &strict, [all; 2]);
    let most = 2 * body.len() as u64 + (1 << 20) + 64 * 1024;
    assert!(bounded.body.len() as u64 <= most);
}

#[derive(Clone, Copy)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
}

fn reply(stack: &[&str], body: &[u8], framing: Framing) -> Vec<u8> {
    let mut reply = b"HTTP/1.1 200 OK\r\n".to_vec();
    for coding in stack {
        reply.extend(format!("Content-Encoding: {coding}\r\n").bytes());
    }
    match framing {
        Framing::Length => {
            reply.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
            reply.extend(body);
        }
        Framing::Chunked => {
            reply.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for piece in body.chunks(100) {
                reply.extend(format!("{:x}\r\n", piece.len()).bytes());
                reply.extend(piece);
                reply.extend(b"\r\n");
            }
            reply.extend(b"0\r\n\r\n");
        }
        Framing::UntilClose => {
            reply.extend(b"\r\n");
            reply.extend(body);
        }
    }
    reply
}

fn encode(stack: &[&str], payload: &[u8]) -> Vec<u8> {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    stack.iter().fold(payload.to_vec(), |data, coding| {
        let encoded = match *coding {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&data).and_then(|()| encoder.finish())
            }
            "deflate" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&data).and_then(|()| encoder.finish())
            }
            "br" => {
                let mut out = Vec::new();
                let written = brotli::CompressorWriter::new(&mut out, 4096, 1, 16).write_all(&data);
                written.map(|()| out)
            }
            "zstd" => zstd::encode_all(&data[..], 1),
            _ => Ok(data),
        };
        encoded.expect("memory takes everything")
    })
}

/// Leaves the body unchanged, cuts it, changes a byte, or repeats it.
fn with_fault(mut coded: Vec<u8>, kind: u8, place: u8) -> Vec<u8> {
    let at = coded.len() * usize::from(place) / 256;
    match kind {
        1 => coded.truncate(at),
        2 => {
            if let Some(byte) = coded.get_mut(at) {
                *byte ^= 1 << (place % 8);
            }
        }
        3 => coded.extend_from_within(..),
        _ => {}
    }
    coded
}

/// The body mode. Streamed: how many bytes may wait for the consumer.
enum Mode {
    Buffer,
    Stream(usize),
}

#[derive(Debug)]
struct Outcome {
    done: bool,
    /// A limit was exceeded.
    over: bool,
    decoded: bool,
    body: Vec<u8>,
}

/// Feeds `input` in pieces that alternate between the two sizes, and then its end.
fn decode(input: &[u8], mode: Mode, limits: &Limits, steps: [usize; 2]) -> Outcome {
    let mut request = Request::get("/");
    request.decode(Codings::all());
    let (body_mode, hold) = match mode {
        Mode::Buffer => (BodyMode::Buffer, usize::MAX),
        Mode::Stream(hold) => (BodyMode::Stream, hold),
    };
    let mut exchange = asked(request, body_mode);
    if body_mode == BodyMode::Stream {
        exchange.set_stream_buffer(hold);
    }
    let mut response = Response::new();
    let mut body = Vec::new();
    let mut failed = None;
    let (mut rest, mut sizes) = (input, steps.into_iter().cycle());
    let mut ended = false;
    while failed.is_none() && !ended {
        let size = sizes.next().map_or(rest.len(), |size| size.min(rest.len()));
        let (piece, behind) = rest.split_at(size);
        rest = behind;
        let fed = if !piece.is_empty() {
            exchange
                .handle_read(piece, &mut response, limits)
                .map(|used| {
                    assert!(used == piece.len() || exchange.done().is_some());
                })
        } else {
            ended = true;
            match exchange.done() {
                Some(_) => Ok(()),
                None => exchange.handle_eof().map_err(Into::into),
            }
        };
        failed = fed.err();
        // The consumer takes the waiting bytes and the bytes that this makes room for. Nothing is read during this.
        if body_mode == BodyMode::Buffer {
            continue;
        }
        loop {
            let taken = response.take_body();
            if exchange.has_head() && response.decoded() {
                assert!(
                    taken.len() <= hold,
                    "{} bytes wait, not {hold}",
                    taken.len()
                );
            }
            body.extend(taken);
            assert!(
                body.len() as u64 <= 64 * MOST,
                "the streamed body has no end"
            );
            if failed.is_some() || !exchange.is_held() {
                break;
            }
            failed = exchange.handle_room(&mut response, limits).err();
        }
    }
    if body_mode == BodyMode::Buffer {
        body = response.take_body().into();
    }
    Outcome {
        done: failed.is_none() && exchange.done().is_some(),
        over: matches!(failed, Some(ErrorKind::Limit(_))),
        decoded: response.decoded(),
        body,
    }
}

/// Removes the codings, the last one first. `None` if the body is not complete.
fn reference(stack: &[&str], body: &[u8]) -> Option<Vec<u8>> {
    if body.is_empty() {
        return Some(Vec::new()); // servers send empty bodies
    }
    let mut data = body.to_vec();
    for coding in stack.iter().rev() {
        let mut out = Vec::new();
        let read = match *coding {
            "gzip" => {
                // Zeros after the last member are padding.
                let end = data
                    .iter()
                    .rposition(|&byte| byte != 0)
                    .map_or(0, |at| at + 1);
                let padded = data.len() - end;
                let mut read = Err(std::io::ErrorKind::UnexpectedEof.into());
                // Checksum and length of the member decide which zeros belong to it: an empty member ends with nine.
                for own in 0..=padded.min(16) {
                    out.clear();
                    let mut decoder = flate2::read::MultiGzDecoder::new(&data[..end + own]);
                    read = decoder.read_to_end(&mut out);
                    if read.is_ok() {
                        break;
                    }
                }
                read
            }
            "deflate" => {
                let mut zlib = flate2::read::ZlibDecoder::new(&data[..]);
                zlib.read_to_end(&mut out).or_else(|_| {
                    out.clear();
                    flate2::read::DeflateDecoder::new(&data[..]).read_to_end(&mut out)
                })
            }
            "br" => brotli::Decompressor::new(&data[..], 4096).read_to_end(&mut out),
            "zstd" => match zstd::Decoder::new(&data[..]) {
                Ok(mut decoder) => decoder.read_to_end(&mut out),
                Err(error) => Err(error),
            },
            _ => continue,
        };
        read.ok()?;
        data = out;
    }
    Some(data)
}
