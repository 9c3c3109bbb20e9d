//! The `Link` field (RFC 8288 §3), which can name the next page of a listing.

/// The URI reference of the first link with `rel=next` in the value of a `Link` field. It is not resolved.
pub fn next_link(value: &[u8]) -> Option<&[u8]> {
    split(value, b',').find_map(|link| {
        let link = link.trim_ascii().strip_prefix(b"<")?;
        let end = memchr::memchr(b'>', link)?;
        is_next(&link[end + 1..]).then(|| link[..end].trim_ascii())
    })
}

/// Whether these parameters have the relation `next`. Only the first `rel` counts (RFC 8288 §3.3). A link with an
/// `anchor` belongs to another page and does not count.
fn is_next(parameters: &[u8]) -> bool {
    let mut rel = None;
    for parameter in split(parameters, b';') {
        let mut halves = parameter.splitn(2, |&byte| byte == b'=');
        let name = halves.next().unwrap_or(b"").trim_ascii();
        let value = halves.next().unwrap_or(b"").trim_ascii();
        if name.eq_ignore_ascii_case(b"anchor") {
            return false;
        }
        if name.eq_ignore_ascii_case(b"rel") {
            rel.get_or_insert(value);
        }
    }
    let value = rel.unwrap_or(b"");
    let quoted = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""));
    let mut types = quoted.unwrap_or(value).split(u8::is_ascii_whitespace);
    types.any(|name| name.eq_ignore_ascii_case(b"next"))
}

/// Splits at separators that are neither in quotes nor in a `<reference>`.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut inside, mut escaped) = (None, false);
    text.split(move |&byte| {
        let is_escaped = std::mem::take(&mut escaped);
        match (inside, byte) {
            (Some(b'"'), b'\\') => escaped = !is_escaped,
            (Some(end), _) if byte == end && !is_escaped => inside = None,
            (Some(_), _) => {}
            (None, b'"') => inside = Some(b'"'),
            (None, b'<') => inside = Some(b'>'),
            (None, _) => return byte == separator,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_links() {
        for (value, next) in [
            ("<?page=2>; rel=\"next\"", Some("?page=2")),
            ("< ?page=2 >;REL=Next", Some("?page=2")),
            ("<?a>; rel=prev, <?b>; rel=next", Some("?b")),
            ("<?a,b;c>; rel = \"last next\" ; title=x", Some("?a,b;c")),
            ("<?a>; title=\"a, \\\"b; rel=next\"; rel=prev", None),
            ("<?a>; title=\"\\\\\"; rel=next", Some("?a")),
            ("<?a>; rel=prev; rel=next", None),
            ("<?a>; rel=next; anchor=\"#x\"", None),
            ("<?a>; rel=nextish", None),
            ("<?a>; rel*=next", None),
            ("?a; rel=next", None),
            ("<?a; rel=next", None),
            (",,;<", None),
        ] {
            let found = next_link(value.as_bytes());
            assert_eq!(found, next.map(str::as_bytes), "{value}");
        }
    }
}
