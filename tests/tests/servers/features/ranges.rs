//! Range requests (RFC 9110 §14).

use courser::{ErrorKind, HostClient, PeerFault, Response};

use super::bodies::next_is_right;
use super::{present, with_header};
use crate::matrix::{Bench, Outcome};
use crate::quirk::Quirk;
use crate::site;

/// One range (206), and one past the end (416).
pub(crate) fn single(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = client(bench)?;
    let part = ask(&mut client, "bytes=2-40")?;
    if part.status() == 200 {
        assert_eq!(part.body(), site::range());
        return None;
    }
    assert_eq!(part.status(), 206, "{part:?}");
    assert_eq!(part.header("content-range"), Some(&b"bytes 2-40/1000"[..]));
    assert_eq!(part.body(), &site::range()[2..=40]);
    next_is_right(bench, &mut client);

    let mut past = Response::new();
    let mut request = with_header("/range", "Range", "bytes=5000-");
    let outcome = client.call(&mut request, &mut past);
    next_is_right(bench, &mut client);
    if let Err(error) = outcome {
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::Peer(PeerFault::Truncated)),
            "{error:?}"
        );
        assert_eq!((past.status(), past.body()), (416, &b""[..]));
        return Some(Outcome::Copes(Quirk::TruncatesRefusal));
    }
    match (past.status(), past.header("content-range")) {
        (416, Some(range)) => {
            assert_eq!(range, b"bytes */1000");
            Some(Outcome::Works)
        }
        (416, None) => Some(Outcome::Copes(Quirk::UnsatisfiableWithoutLength)),
        (200 | 400, None) => Some(Outcome::Copes(Quirk::RangePastTheEnd)),
        _ => panic!("{past:?}"),
    }
}

/// Two ranges in one answer (`multipart/byteranges`).
pub(crate) fn multipart(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = client(bench)?;
    let response = ask(&mut client, "bytes=0-1,100-102")?;
    next_is_right(bench, &mut client);
    match response.status() {
        206 => {}
        200 => {
            assert_eq!(response.body(), site::range());
            return None;
        }
        416 => return Some(Outcome::Copes(Quirk::RefusesRanges)),
        _ => panic!("{response:?}"),
    }
    let content_type = str::from_utf8(response.header("content-type")?).unwrap();
    let rest = content_type
        .strip_prefix("multipart/byteranges")
        .expect("parts");
    let (_, boundary) = rest.split_once("boundary=").expect("a boundary");
    let parts = split(response.body(), boundary.trim_matches('"'));
    let range = site::range();
    assert_eq!(
        parts,
        [
            ("bytes 0-1/1000".to_owned(), range[0..=1].to_vec()),
            ("bytes 100-102/1000".to_owned(), range[100..=102].to_vec())
        ]
    );
    Some(Outcome::Works)
}

/// A client of a server that has sent the whole page before: caches serve ranges of what they have.
fn client(bench: &Bench<'_>) -> Option<HostClient> {
    let mut client = bench.client()?;
    client.get("/range", &mut Response::new()).unwrap();
    Some(client)
}

fn ask(client: &mut HostClient, range: &str) -> Option<Response> {
    let mut response = Response::new();
    client
        .call(&mut with_header("/range", "Range", range), &mut response)
        .unwrap();
    present(&response)?;
    Some(response)
}

/// The parts of a multipart body: `Content-Range` and content of each.
fn split(body: &[u8], boundary: &str) -> Vec<(String, Vec<u8>)> {
    let text = str::from_utf8(body).unwrap();
    let delimiter = format!("--{boundary}");
    let mut pieces = text.split(&delimiter).skip(1);
    let mut parts = Vec::new();
    for piece in pieces.by_ref().take_while(|piece| !piece.starts_with("--")) {
        let (head, content) = piece.split_once("\r\n\r\n").expect("a head and a content");
        let range = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-range:")
                .map(str::to_owned)
        });
        let content = content
            .strip_suffix("\r\n")
            .expect("a line end before the delimiter");
        parts.push((range.expect("a range").trim().to_owned(), content.into()));
    }
    parts
}
