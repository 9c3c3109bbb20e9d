//! Paths of URLs (RFC 3986 §3.3): percent-decoding, one spelling of each segment for requests and output, and a
//! canonical form in which equivalent paths are equal. The `url` crate resolves references.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
/// Percent-decodes a segment or a path.
pub fn decode(encoded: &str) -> Vec<u8> {
    percent_decode_str(encoded).collect()
}

/// [`decode`] into a buffer, which is cleared first.
pub fn decode_into(encoded: &str, out: &mut Vec<u8>) {
    out.clear();
    out.extend(percent_decode_str(encoded));
}

/// The length of the result of [`decode`], in bytes.
pub fn decoded_len(encoded: &str) -> usize {
    percent_decode_str(encoded).count()
}

/// Spells a segment safely; the server decodes it to the same bytes. Escapes get upper-case digits. A `%` that starts
/// no escape and every byte that RFC 3986 does not allow in a segment are escaped. The rest stays as it is.
///
/// Brackets and braces are escaped too, so that curl does not take them for its own URL globbing.
pub fn normalise_segment(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut out = String::with_capacity(segment.len());
    let mut at = 0;
    while at < bytes.len() {
        if let Some([high, low]) = escape_at(bytes, at) {
            out.push('%');
            out.push(char::from(high.to_ascii_uppercase()));
            out.push(char::from(low.to_ascii_uppercase()));
            at += 3;
        } else {
            out.extend(percent_encode(&bytes[at..=at], ESCAPED));
            at += 1;
        }
    }
    out
}

/// Percent-encodes a name as a segment.
pub fn encode(name: &[u8]) -> String {
    Cow::from(percent_encode(name, ESCAPED)).into_owned()
}

/// The canonical spelling: equal for all equivalent spellings of a path.
pub fn canonical(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for (i, segment) in path.split('/').enumerate() {
        if i > 0 {
            out.push('/');
        }
        out.extend(percent_encode(&decode(segment), ESCAPED));
    }
    out
}

/// Splits a path into the parent directory (with its final `/`), the last segment, and whether a `/` follows the
/// segment. `None` for the root, which has no segment.
pub fn split_last(path: &str) -> Option<(&str, &str, bool)> {
    let (body, slash) = match path.strip_suffix('/') {
        Some(body) => (body, true),
        None => (path, false),
    };
    let at = body.rfind('/')?;
    Some((&body[..=at], &body[at + 1..], slash))
}

/// The directories above a path, the innermost first. For a path that ends in `/`, the path itself comes first.
pub fn directories(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(at, _)| &path[..=at])
}

/// The number of segments of `path` below the directory `start`. Either both are canonical or neither is; `start` ends
/// in `/`.
pub fn depth_below(start: &str, path: &str) -> u32 {
    let rest = path.get(start.len()..).unwrap_or("");
    let segments = rest.split('/').filter(|s| !s.is_empty()).count();
    u32::try_from(segments).unwrap_or(u32::MAX)
}

fn escape_at(bytes: &[u8], at: usize) -> Option<[u8; 2]> {
    match bytes.get(at..at + 3)? {
        &[b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            Some([high, low])
        }
        _ => None,
    }
}

/// All bytes except the unreserved ones of RFC 3986 §2.3, which stand for themselves in any part of a URL.
pub const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// All bytes except `pchar` of RFC 3986 §3.3.
const ESCAPED: &AsciiSet = &NOT_UNRESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The number of occurrences of the most frequent segment in a path.
pub fn repeats(path: &str) -> usize {
    let mut segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    segments.sort_unstable();
    segments
        .chunk_by(|a, b| a == b)
        .map(<[_]>::len)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_paths_of_equivalent_spellings_are_equal() {
        assert_eq!(canonical("/caf%c3%a9/%7Ex/"), canonical("/caf%C3%A9/~x/"));
        assert_eq!(canonical("/plus%2B"), canonical("/plus+"));
        assert_ne!(canonical("/a%2Fb"), canonical("/a/b"));
    }
}
