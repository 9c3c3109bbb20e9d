//! Content codings (RFC 9110 §8.4).

use courser::{Codings, Request, Response};

use super::bodies::next_is_right;
use super::present;
use crate::matrix::{Bench, Outcome};
use crate::site;

pub(crate) fn gzip(bench: &Bench<'_>) -> Option<Outcome> {
    decoded(bench, Codings::GZIP, b"gzip")
}

pub(crate) fn brotli(bench: &Bench<'_>) -> Option<Outcome> {
    decoded(bench, Codings::BR, b"br")
}

pub(crate) fn zstd(bench: &Bench<'_>) -> Option<Outcome> {
    decoded(bench, Codings::ZSTD, b"zstd")
}

/// The server compresses, and the client gives out what was compressed.
fn decoded(bench: &Bench<'_>, coding: Codings, name: &[u8]) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut request = Request::get("/text.txt");
    request.decode(coding);
    let mut response = Response::new();
    client.call(&mut request, &mut response).unwrap();
    present(&response)?;
    assert_eq!(response.status(), 200);
    assert!(response.body() == site::text(), "{:?}", response.head());
    next_is_right(bench, &mut client);
    if !response.decoded() {
        assert_eq!(response.header("content-encoding"), None);
        return None;
    }
    assert_eq!(response.header("content-encoding"), Some(name));
    Some(Outcome::Works)
}
