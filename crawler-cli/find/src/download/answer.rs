//! The meaning of a response for a download (RFC 9110 §13.1.5, §14, §15.3.7, §15.5.17): whether the body starts at the
//! beginning or continues the partial file, and whether the file is still the same. No I/O.

use courser::proto::is_redirect;
use serde::{Deserialize, Serialize};

use crate::host_crawl::{Reply, http_date};

/// The meaning of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// The body is the file from this offset on. `length` is the length of the whole file.
    Body { at: u64, length: Option<u64> },
    /// The response does not continue the partial file: the download starts again from the first byte.
    StartOver,
    /// The partial file has all bytes of the file.
    Complete,
    /// The file is at the URL in `Location`.
    Redirect,
    /// The request is repeated, after the time in `Retry-After` or the usual pause.
    Later,
    /// The server does not send the file.
    Refused,
}

/// What a head means after a request for the whole file, or for the bytes after an offset if the file is still the one
/// that the note describes.
pub(super) fn judge(head: &Reply<'_>, rest: Option<(u64, &Note)>) -> Answer {
    match (head.status, rest) {
        (200 | 203, _) => Answer::Body {
            at: 0,
            length: head.length(),
        },
        (206, Some((at, note))) => judge_part(head, at, note).unwrap_or(Answer::StartOver),
        (416, Some((at, note))) => {
            let part = head.content_range();
            let is_all = part.is_some_and(|(_, total)| total == Some(at));
            // A server may ignore If-Range: the file may be another one of this length.
            let is_same = match head.etag {
                Some(tag) => note.validator.as_deref().map(str::as_bytes) == Some(tag),
                None => note.length == Some(at),
            };
            match is_all && is_same && note.length.is_none_or(|length| length == at) {
                true => Answer::Complete,
                false => Answer::StartOver,
            }
        }
        (status, _) if is_redirect(status) => Answer::Redirect,
        (408 | 410 | 429 | 500.., _) => Answer::Later,
        _ => Answer::Refused,
    }
}

/// Checks that a part is exactly the requested one, and belongs to the file that the note describes. `None`: it is not.
fn judge_part(head: &Reply<'_>, at: u64, note: &Note) -> Option<Answer> {
    let (range, total) = head.content_range()?;
    let (first, last) = range?;
    // Without it, nobody would notice that a part ends before the file does.
    let length = total.or(note.length)?;
    let is_of_length = |wanted: Option<u64>, is: u64| wanted.is_none_or(|wanted| wanted == is);
    let fits = first == at
        && is_of_length(head.length(), last - first + 1)
        && last < length
        && is_of_length(note.length, length);
    let validator = note.validator.as_deref()?.as_bytes();
    let same = match is_strong_tag(validator) {
        // A part has the tag that the whole would have (RFC 9110 §15.3.7).
        true => head.etag == Some(validator),
        false => head.last_modified.is_none_or(|now| now == validator),
    };
    (fits && same).then_some(Answer::Body {
        at,
        length: Some(length),
    })
}

/// The file that the bytes of a partial file are of. Stored beside the partial file if it has a validator.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Note {
    pub(super) url: String,
    /// The value of `If-Range`, by which the server recognises whether the file is still the same: a strong entity tag
    /// with its quotes, or a `Last-Modified` that is a strong validator. `None`: the download cannot be continued.
    pub(super) validator: Option<String>,
    /// The length of the whole file.
    pub(super) length: Option<u64>,
    /// `Last-Modified` in seconds since 1970.
    pub(super) modified: Option<i64>,
}

impl Note {
    /// The file that a head describes.
    pub(super) fn of(head: &Reply<'_>, url: &str) -> Self {
        // A date is a strong validator if it is at least one second earlier than `Date` (RFC 9110 §8.8.2.2).
        let dates = head.modified().zip(head.date.and_then(http_date));
        let is_strong = dates.is_some_and(|(changed, sent)| changed < sent);
        let date = || head.last_modified.filter(|_| is_strong);
        let tag = head.etag.filter(|tag| is_strong_tag(tag));
        let validator = tag.or_else(date).map(String::from_utf8_lossy);
        Self {
            url: url.to_owned(),
            validator: validator.map(Into::into),
            length: head.length(),
            modified: head.modified(),
        }
    }

    /// Reads a note. `None` if the bytes are cut, or are not a note whose validator can be sent.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let note: Self = serde_json::from_slice(bytes).ok()?;
        let validator = note.validator.as_deref()?.as_bytes();
        (is_strong_tag(validator) || http_date(validator).is_some()).then_some(note)
    }
}

/// Whether this is `"…"` of visible ASCII characters, which can be sent back unchanged.
fn is_strong_tag(tag: &[u8]) -> bool {
    let inner = tag
        .strip_prefix(b"\"")
        .and_then(|tag| tag.strip_suffix(b"\""));
    let is_safe = |byte: &u8| byte.is_ascii_graphic() && *byte != b'"';
    tag.len() <= MOST_TAG_BYTES && inner.is_some_and(|inner| inner.iter().all(is_safe))
}

const MOST_TAG_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &[u8] = b"Sun, 06 Nov 1994 08:49:38 GMT";

    fn note(length: Option<u64>) -> Note {
        Note {
            url: "http://h/x".into(),
            validator: Some("\"v1\"".into()),
            length,
            modified: None,
        }
    }

    #[test]
    fn a_part_must_be_the_requested_one() {
        use Answer::{Body, StartOver};
        const V1: Option<&str> = Some("\"v1\"");
        let of = |range: &'static str, length: Option<u64>, etag: Option<&'static str>| {
            let length = length.map(|length| length.to_string());
            let head = Reply {
                status: 206,
                content_length: length.as_deref().map(str::as_bytes),
                content_range: Some(range.as_bytes()),
                etag: etag.map(str::as_bytes),
                ..Reply::default()
            };
            judge(&head, Some((10, &note(Some(100)))))
        };
        let rest = Body {
            at: 10,
            length: Some(100),
        };
        for (range, length, etag, answer) in [
            ("bytes 10-99/100", Some(90), V1, rest),
            // Without a tag, the part may be of another version.
            ("bytes 10-99/100", Some(90), None, StartOver),
            ("Bytes 10-99/100", None, V1, rest),
            ("bytes 10-99/*", Some(90), V1, rest),
            ("bytes 10-49/100", Some(40), V1, rest),
            ("bytes 0-99/100", Some(100), V1, StartOver),
            ("bytes 11-99/100", Some(89), V1, StartOver),
            ("bytes 10-99/101", Some(90), V1, StartOver),
            ("bytes 10-99/99", Some(90), V1, StartOver),
            ("bytes 10-100/*", Some(91), V1, StartOver),
            ("bytes 10-99/100", Some(91), V1, StartOver),
            ("bytes 10-99/100", Some(90), Some("\"v2\""), StartOver),
            ("bytes 10-99/100", Some(90), Some("W/\"v1\""), StartOver),
            ("bytes 10-18446744073709551615/*", None, V1, StartOver),
            ("bytes */100", None, V1, StartOver),
            ("bytes 10-/100", Some(90), V1, StartOver),
            ("items 10-99/100", Some(90), V1, StartOver),
        ] {
            assert_eq!(
                of(range, length, etag),
                answer,
                "{range} {length:?} {etag:?}"
            );
        }
        let multipart = Reply {
            status: 206,
            ..Reply::default()
        };
        assert_eq!(judge(&multipart, Some((10, &note(None)))), StartOver);
        let endless = Reply {
            content_range: Some(b"bytes 10-49/*"),
            etag: V1.map(str::as_bytes),
            ..multipart
        };
        assert_eq!(judge(&endless, Some((10, &note(None)))), StartOver);
        assert_eq!(judge(&multipart, None), Answer::Refused);
    }

    #[test]
    fn other_answers() {
        use Answer::{Body, Complete, Later, Redirect, Refused, StartOver};
        let rest = |length| Some(note(length));
        let whole = Body {
            at: 0,
            length: Some(7),
        };
        let (v1, v2) = ("\"v1\"", "\"v2\"");
        for (status, range, etag, asked, answer) in [
            (200, None, None, None, whole),
            (200, None, None, rest(None), whole),
            (416, Some("bytes */10"), None, rest(None), StartOver),
            (416, Some("bytes */10"), None, rest(Some(10)), Complete),
            (416, Some("bytes */10"), None, rest(Some(20)), StartOver),
            (416, Some("bytes */10"), Some(v1), rest(None), Complete),
            (416, Some("bytes */10"), Some(v2), rest(Some(10)), StartOver),
            (416, Some("bytes */9"), None, rest(None), StartOver),
            (416, None, None, rest(Some(10)), StartOver),
            (416, Some("bytes */10"), None, None, Refused),
            (204, None, None, None, Refused),
            (304, None, None, None, Refused),
            (304, None, None, rest(None), Refused),
            (404, None, None, rest(None), Refused),
            (302, None, None, rest(None), Redirect),
            (429, None, None, None, Later),
            (503, None, None, None, Later),
            (500, None, None, None, Later),
            (410, None, None, None, Later),
            (408, None, None, None, Later),
        ] {
            let head = Reply {
                status,
                content_length: Some(b"7"),
                content_range: range.map(str::as_bytes),
                etag: etag.map(str::as_bytes),
                ..Reply::default()
            };
            let rest = asked.as_ref().map(|note| (10, note));
            assert_eq!(judge(&head, rest), answer, "{status} {range:?} {etag:?}");
        }
    }

    #[test]
    fn only_strong_validators_are_noted() {
        let of = |etag: Option<&'static [u8]>, date: Option<&'static [u8]>| {
            let head = Reply {
                etag,
                last_modified: Some(DATE),
                date,
                ..Reply::default()
            };
            Note::of(&head, "http://h/x").validator
        };
        let tag = || Some("\"v1\"".to_owned());
        let date = || Some(String::from_utf8_lossy(DATE).into_owned());
        assert_eq!(of(Some(b"\"v1\""), None), tag());
        assert_eq!(of(Some(b"W/\"v1\""), Some(LATER)), date());
        assert_eq!(of(None, Some(LATER)), date());
        assert_eq!(of(None, Some(DATE)), None);
        assert_eq!(of(None, None), None);
        for bad in [
            &b"v1"[..],
            b"\"v1",
            b"\"",
            b"\"a\"b\"",
            b"\"a\rb\"",
            b"\"\xE9\"",
        ] {
            assert_eq!(of(Some(bad), None), None, "{bad:?}");
        }
    }

    #[test]
    fn written_notes_are_read_and_cut_notes_are_rejected() {
        for validator in ["\"v\\1'\"", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            let note = Note {
                url: "http://h/%22x".into(),
                validator: Some(validator.into()),
                length: Some(u64::MAX),
                modified: Some(784_111_777),
            };
            let bytes = serde_json::to_vec(&note).expect("JSON");
            for cut in 0..bytes.len() {
                assert_eq!(Note::parse(&bytes[..cut]), None);
            }
            assert_eq!(Note::parse(&bytes), Some(note));
        }
        for bad in [
            &br#"{"url":"u","validator":"W/\"a\""}"#[..],
            br#"{"url":"u","validator":"\"a\r\nX: y\""}"#,
            br#"{"url":"u","validator":"soon"}"#,
            br#"{"url":"u"}"#,
            br#"{"validator":"\"a\""}"#,
            b"[]",
        ] {
            assert_eq!(Note::parse(bad), None);
        }
    }
}
