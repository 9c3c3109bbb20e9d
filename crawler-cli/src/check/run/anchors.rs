//! What fragments can refer to in a page, as the store keeps it: the fragment of the last redirect that has one, and the
//! anchors.

use crate::check::links::Anchors;

/// As bytes.
pub(super) fn encode(anchors: &Anchors, redirected: Option<&str>) -> Box<[u8]> {
    let fragment = redirected.unwrap_or_default().as_bytes();
    let fragment = &fragment[..fragment.len().min(LONGEST)];
    // At most `LONGEST`.
    let mut bytes = (fragment.len() as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(fragment);
    bytes.extend_from_slice(&anchors.to_bytes());
    bytes.into()
}

/// The fragment, if the page has nothing that it means. The fragment of a redirect replaces that of the link (RFC 9110
/// §10.2.2).
pub(super) fn missing(known: &[u8], fragment: &str) -> Option<String> {
    let (length, rest) = known.split_first_chunk::<2>()?;
    let (redirected, anchors) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let redirected = String::from_utf8_lossy(redirected);
    let fragment = match redirected.is_empty() {
        true => fragment,
        false => &redirected,
    };
    let has = Anchors::from_bytes(anchors)?.has(fragment);
    (!has).then(|| fragment.to_owned())
}

/// The longest fragment in bytes that is kept. A page with a name that long is hardly meant.
const LONGEST: usize = u16::MAX as usize;
