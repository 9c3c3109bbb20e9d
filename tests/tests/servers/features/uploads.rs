//! Large requests.

use std::io::Cursor;

use courser::{Request, Response};
use flate2::Crc;

use super::bodies::next_is_right;
use super::present;
use crate::matrix::{Bench, Outcome};

/// 16 MB with `Content-Length`.
pub(crate) fn sized(bench: &Bench<'_>) -> Option<Outcome> {
    let body = body(LARGE);
    let echo = echoed(&body);
    upload(bench, Request::post("/echo", body), &echo)
}

/// 16 MB in chunks.
pub(crate) fn chunked(bench: &Bench<'_>) -> Option<Outcome> {
    let body = body(LARGE);
    let echo = echoed(&body);
    let mut request = Request::new("POST", "/echo");
    request.body_stream(Cursor::new(body), None);
    upload(bench, request, &echo)
}

/// The server answers before it has read 16 MB, and the client gets the answer.
pub(crate) fn early_answer(bench: &Bench<'_>) -> Option<Outcome> {
    const ROUNDS: usize = 5;
    let mut client = bench.client()?;
    let mut response = Response::new();
    client
        .call(&mut Request::post("/reject", "x"), &mut response)
        .unwrap();
    present(&response)?;
    let body = body(LARGE);
    let mut answered = 0;
    for _ in 0..ROUNDS {
        let mut request = Request::post("/reject", body.clone());
        client.call(&mut request, &mut response).unwrap();
        // The server behind a gateway may end the gateway's upload before the gateway has read the answer.
        let is_lost = response.status() == 502 && response.header("X-Squid-Error").is_some();
        assert!(is_lost || response.status() == 413, "{response:?}");
        answered += usize::from(!is_lost);
        next_is_right(bench, &mut client);
    }
    assert!(answered > 0, "{response:?}");
    Some(Outcome::Works)
}

fn upload(bench: &Bench<'_>, mut request: Request, echo: &[u8]) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut response = Response::new();
    client
        .call(&mut Request::post("/echo", "x"), &mut response)
        .unwrap();
    present(&response)?;
    client.call(&mut request, &mut response).unwrap();
    present(&response)?;
    let text = String::from_utf8_lossy(response.body()).into_owned();
    assert_eq!((response.status(), response.body()), (200, echo), "{text}");
    next_is_right(bench, &mut client);
    Some(Outcome::Works)
}

/// A body of this length that has no period.
pub(crate) fn body(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let bytes = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    bytes.take(length).collect()
}

/// What `/echo` answers: the length of the body, and its CRC-32 in eight digits.
pub(crate) fn echoed(body: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(body);
    format!("{} {:08x}", body.len(), crc.sum()).into_bytes()
}

const LARGE: usize = 16_000_000;
