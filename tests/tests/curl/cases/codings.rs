//! Content codings, with and without `--compressed`.

use std::io::Write as _;

use super::{reply, sized};
use crate::peer::Step::{Close, Send, SendRaw, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let text: Vec<u8> = b"hello, hello, hello, world. ".repeat(400);
    let single: Vec<(&str, &str, Vec<u8>)> = vec![
        ("gzip", "gzip", gzip(&text)),
        ("x-gzip", "x-gzip", gzip(&text)),
        ("deflate", "deflate", zlib(&text)),
        ("deflate-raw", "deflate", raw_deflate(&text)),
        ("br", "br", brotli(&text)),
        ("zstd", "zstd", zstd(&text)),
        ("identity", "identity", text.clone()),
        ("upper", "GZIP", gzip(&text)),
        ("unknown", "rot13", text.clone()),
        ("empty-name", "", text.clone()),
        ("none", "none", text.clone()),
        ("two", "gzip, br", brotli(&gzip(&text))),
        (
            "two-lines",
            "deflate\r\nContent-Encoding: gzip",
            gzip(&zlib(&text)),
        ),
        ("three", "gzip, deflate, br", brotli(&zlib(&gzip(&text)))),
        (
            "five",
            "gzip, gzip, gzip, gzip, gzip",
            (0..5).fold(text.clone(), |b, _| gzip(&b)),
        ),
        (
            "six",
            "gzip, gzip, gzip, gzip, gzip, gzip",
            (0..6).fold(text.clone(), |b, _| gzip(&b)),
        ),
        ("members", "gzip", [gzip(&text), gzip(&text)].concat()),
        ("gzip-empty", "gzip", gzip(b"")),
        ("gzip-nothing", "gzip", Vec::new()),
        ("br-nothing", "br", Vec::new()),
        ("zstd-nothing", "zstd", Vec::new()),
        ("deflate-nothing", "deflate", Vec::new()),
        ("gzip-plain", "gzip", text.clone()),
        ("deflate-plain", "deflate", text.clone()),
        ("br-plain", "br", text.clone()),
        ("zstd-plain", "zstd", text.clone()),
        ("gzip-cut", "gzip", half(gzip(&text))),
        ("gzip-cut-trailer", "gzip", without_end(gzip(&text), 4)),
        ("deflate-cut", "deflate", half(zlib(&text))),
        ("br-cut", "br", half(brotli(&text))),
        ("zstd-cut", "zstd", half(zstd(&text))),
        ("gzip-crc", "gzip", flipped(gzip(&text), 8)),
        ("deflate-crc", "deflate", flipped(zlib(&text), 4)),
        ("gzip-middle", "gzip", flipped_middle(gzip(&text))),
        (
            "gzip-surplus",
            "gzip",
            [gzip(&text), b"surplus".to_vec()].concat(),
        ),
        (
            "br-surplus",
            "br",
            [brotli(&text), b"surplus".to_vec()].concat(),
        ),
        (
            "zstd-surplus",
            "zstd",
            [zstd(&text), b"surplus".to_vec()].concat(),
        ),
    ];
    let mut all = Vec::new();
    for (name, coding, body) in single {
        let header = format!("Content-Encoding: {coding}");
        let bytes = sized("200 OK", &[&header], &body);
        for (how, args) in [("decoded", &["--compressed"][..]), ("as-is", &[])] {
            all.push(
                Scenario::new(format!("coding/{name}/{how}"))
                    .play([Take, SendRaw(bytes.clone())])
                    .args([args, &["http://{A}/"]].concat()),
            );
        }
    }
    let body = gzip(&text);
    let header = "Content-Encoding: gzip";
    let chunks: Vec<u8> = body
        .chunks(7)
        .flat_map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())
        .chain(b"0\r\n\r\n".iter().copied())
        .collect();
    let length = format!("Content-Length: {}", body.len());
    let extra: Vec<(&str, Vec<u8>, bool, &[&str])> = vec![
        (
            "chunked",
            reply("200 OK", &[header, "Transfer-Encoding: chunked"], chunks),
            false,
            &[],
        ),
        ("close", reply("200 OK", &[header], &body), true, &[]),
        (
            "head",
            reply("200 OK", &[header, &length], ""),
            false,
            &["-I"],
        ),
        ("204", reply("204 No Content", &[header], ""), false, &[]),
        (
            "304",
            reply("304 Not Modified", &[header, &length], ""),
            false,
            &[],
        ),
        ("404", sized("404 No", &[header], &body), false, &[]),
        (
            "sizes",
            sized("200 OK", &[header], &body),
            false,
            &["-o", "out", "-w", "%{size_download}"],
        ),
        ("shown", sized("200 OK", &[header], &body), false, &["-i"]),
        (
            "filesize",
            sized("200 OK", &[header], &body),
            false,
            &["--max-filesize", "1000"],
        ),
        (
            "accept",
            sized("200 OK", &[header], &body),
            false,
            &["-H", "Accept-Encoding: gzip"],
        ),
        (
            "accept-removed",
            sized("200 OK", &[header], &body),
            false,
            &["-H", "Accept-Encoding:"],
        ),
        ("plain", sized("200 OK", &[], "hello"), false, &["-v"]),
        (
            "transfer",
            reply("200 OK", &["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n"),
            false,
            &[],
        ),
    ];
    for (name, bytes, close, args) in extra {
        let mut steps = vec![Take, SendRaw(bytes)];
        steps.extend(close.then_some(Close));
        all.push(
            Scenario::new(format!("coding/with/{name}"))
                .play(steps)
                .args([&["--compressed"], args, &["http://{A}/"]].concat()),
        );
    }
    all.push(
        Scenario::new("coding/with/redirect")
            .play([
                Take,
                Send(sized(
                    "302 Found",
                    &["Location: /to", "Content-Encoding: gzip"],
                    "moved",
                )),
                Take,
                SendRaw(sized("200 OK", &[header], &body)),
            ])
            .args(["-L", "--compressed", "http://{A}/from"]),
    );
    all
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4096, 5, 20);
    encoder.write_all(bytes).expect("memory");
    drop(encoder);
    encoded
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).expect("memory")
}

fn half(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 2);
    bytes
}

fn without_end(mut bytes: Vec<u8>, count: usize) -> Vec<u8> {
    bytes.truncate(bytes.len() - count);
    bytes
}

fn flipped(mut bytes: Vec<u8>, from_end: usize) -> Vec<u8> {
    let at = bytes.len() - from_end;
    bytes[at] ^= 0x55;
    bytes
}

fn flipped_middle(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.len() / 2;
    bytes[at] ^= 0xff;
    bytes
}
