//! Which responses have a body, and how it ends.

use courser::error::PeerFault;
use courser::{ErrorKind, HostClient, Request, Response};

use super::{present, says_close, with_header};
use crate::matrix::{Bench, Outcome};
use crate::quirk::Quirk;

/// The answer to HEAD has no body, whatever its headers say.
pub(crate) fn head(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut response = Response::new();
    client
        .call(&mut Request::head("/hello"), &mut response)
        .unwrap();
    present(&response)?;
    assert_eq!((response.status(), response.body()), (200, &b""[..]));
    let closes = says_close(&response);
    let kept = next_is_right(bench, &mut client);
    Some(match (closes, &kept) {
        (false, Kept::Reused) | (true, Kept::Closed) => Outcome::Works,
        (_, Kept::Opened) => Outcome::Copes(Quirk::ClosesAfterHead),
        _ => panic!("{kept:?} after {response:?}"),
    })
}

/// 204 has no body, whatever its headers say.
pub(crate) fn no_content(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut response = Response::new();
    client.get("/empty", &mut response).unwrap();
    present(&response)?;
    assert_eq!((response.status(), response.body()), (204, &b""[..]));
    let closes = says_close(&response);
    let kept = next_is_right(bench, &mut client);
    assert_eq!(closes, !matches!(kept, Kept::Reused), "{response:?}");
    assert_eq!(response.header("transfer-encoding"), None);
    assert_eq!(response.header("content-length"), None);
    if let Kept::Opened = kept {
        return Some(Outcome::Copes(Quirk::ClosesAfterNoContent));
    }
    Some(Outcome::Works)
}

/// A body in chunks.
pub(crate) fn chunked(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut response = Response::new();
    client.get("/chunked", &mut response).unwrap();
    if present(&response).is_some() {
        assert_eq!(response.body(), CHUNKS);
    } else {
        // Servers of files chunk what they compress on the way.
        let mut request = with_header("/text.txt", "Accept-Encoding", "gzip");
        client.call(&mut request, &mut response).unwrap();
    }
    present(&response)?;
    assert_eq!(response.status(), 200);
    let coding = response.header("transfer-encoding")?;
    assert_eq!(coding, b"chunked");
    next_is_right(bench, &mut client);
    Some(Outcome::Works)
}

/// Fields after the last chunk.
pub(crate) fn trailers(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut request = with_header("/trailers", "TE", "trailers");
    request.add_header("Connection", "TE");
    let mut response = Response::new();
    if let Err(error) = client.call(&mut request, &mut response) {
        next_is_right(bench, &mut client);
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::Peer(PeerFault::BadHeader)),
            "{error:?}"
        );
        return Some(Outcome::Copes(Quirk::TrailerInHead));
    }
    present(&response)?;
    assert_eq!(response.status(), 200);
    let trailer = response
        .trailers()
        .find(|(name, _)| name.eq_ignore_ascii_case("x-check"));
    let (_, value) = trailer?;
    assert_eq!(value, b"3");
    next_is_right(bench, &mut client);
    Some(Outcome::Works)
}

/// What became of the connection of the call before.
#[derive(Debug)]
pub(crate) enum Kept {
    /// It served the next call.
    Reused,
    /// The next call has a new connection, which is kept.
    Opened,
    /// The next call has a new connection, which is not kept either.
    Closed,
}

/// The next call gets its own answer. A connection that ended without a word costs it a second attempt.
pub(crate) fn next_is_right(bench: &Bench<'_>, client: &mut HostClient) -> Kept {
    let mut response = Response::new();
    let report = client.get("/hello", &mut response).unwrap();
    bench.assert_hello(&response);
    assert!(report.attempts() <= 2, "{report:?}");
    match (report.reused(), says_close(&response)) {
        (true, _) => Kept::Reused,
        (false, false) => Kept::Opened,
        (false, true) => Kept::Closed,
    }
}

/// The body of `/chunked` and `/trailers`, one line in each chunk.
const CHUNKS: &[u8] = b"chunk 1\nchunk 2\nchunk 3\n";
