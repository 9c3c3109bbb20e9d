//! Conditional requests (RFC 9110 §13).

use courser::{HostClient, Response};

use super::bodies::next_is_right;
use super::{present, with_header};
use crate::matrix::{Bench, Outcome};
use crate::quirk::Quirk;

/// 304 for each validator that the server offers; it has no body.
pub(crate) fn not_modified(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut first = Response::new();
    client.get("/etag", &mut first).unwrap();
    present(&first)?;
    bench.assert_hello(&first);
    let tag = is_heeded(bench, &mut client, "If-None-Match", first.header("etag"));
    let date = first.header("last-modified");
    let date = is_heeded(bench, &mut client, "If-Modified-Since", date);
    match (tag, date) {
        (None, None) => None,
        (Some(true) | None, Some(true) | None) => Some(Outcome::Works),
        (Some(true), Some(false)) => Some(Outcome::Copes(Quirk::IgnoresDates)),
        heeded => panic!("{heeded:?}"),
    }
}

/// Whether the server answers this condition with 304; `None` without a validator.
fn is_heeded(
    bench: &Bench<'_>,
    client: &mut HostClient,
    condition: &str,
    validator: Option<&[u8]>,
) -> Option<bool> {
    let value = str::from_utf8(validator?).unwrap();
    let mut response = Response::new();
    let mut request = with_header("/etag", condition, value);
    client.call(&mut request, &mut response).unwrap();
    if response.status() == 200 {
        bench.assert_hello(&response);
        return Some(false);
    }
    assert_eq!((response.status(), response.body()), (304, &b""[..]));
    next_is_right(bench, client);
    Some(true)
}
