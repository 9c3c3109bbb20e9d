//! The meaning of a response for a download (RFC 9110 §13.1.5, §14, §15.3.7, §15.5.17): whether the body starts at the
//! beginning or continues the partial file, and whether the file is still the same. No I/O.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser::Response;
use serde_json::{Value, json};

use crate::crawl::retry::Failed;
use crate::find::listing;

/// The fields of a response head that a download needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head<'a> {
    pub(super) status: u16,
    /// `Content-Length`, unless `Transfer-Encoding` frames the body.
    pub(super) length: Option<u64>,
    pub(super) content_range: Option<&'a [u8]>,
    pub(super) etag: Option<&'a [u8]>,
    pub(super) last_modified: Option<&'a [u8]>,
    pub(super) date: Option<&'a [u8]>,
    pub(super) location: Option<&'a [u8]>,
    pub(super) retry_after: Option<&'a [u8]>,
    pub(super) coding: Option<&'a [u8]>,
    pub(super) content_type: Option<&'a [u8]>,
}

/// What was requested.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    /// The head only.
    Head,
    /// The listing of the directory.
    Listing,
    /// The whole file.
    Whole,
    /// The bytes after this offset, if the file is still the one that the note describes.
    Rest(u64, Note),
    /// The whole file, unless it is still the one with known validators (RFC 9110 §13.1.2, §13.1.3).
    IfChanged,
}

/// The meaning of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// The body is the file from this offset on. `length` is the length of the whole file.
    Body { at: u64, length: Option<u64> },
    /// The response does not continue the partial file: the download starts again from the first byte.
    StartOver,
    /// The partial file has all bytes of the file.
    Complete,
    /// The file has not changed.
    Same,
    /// The file is at the URL in `Location`.
    Redirect,
    /// The request is repeated, after the time in `Retry-After` or the usual pause.
    Later,
    /// The server does not send the file.
    Refused,
}

impl<'a> Head<'a> {
    pub(crate) fn of(response: &'a Response) -> Self {
        let chunked = response.header("Transfer-Encoding").is_some();
        let length = response.header("Content-Length").filter(|_| !chunked);
        Self {
            status: response.status(),
            length: length.and_then(number),
            content_range: response.header("Content-Range"),
            etag: response.header("ETag"),
            last_modified: response.header("Last-Modified"),
            date: response.header("Date"),
            location: response.header("Location"),
            retry_after: response.header("Retry-After"),
            coding: response.header("Content-Encoding"),
            content_type: response.header("Content-Type"),
        }
    }

    /// Whether the answer is a page for people.
    pub(super) fn is_page(&self) -> bool {
        self.content_type.is_some_and(listing::is_html)
    }

    pub(super) fn judge(&self, asked: &Asked) -> Answer {
        match (self.status, asked) {
            (200 | 203, _) => Answer::Body {
                at: 0,
                length: self.length,
            },
            (304, Asked::IfChanged) => Answer::Same,
            (206, Asked::Rest(at, note)) => self.judge_partial_content(*at, note),
            (416, Asked::Rest(at, note)) => {
                let total = self.content_range.and_then(ContentRange::parse);
                let is_all = total.is_some_and(|part| part.total == Some(*at));
                if is_all && note.length.is_none_or(|length| length == *at) {
                    Answer::Complete
                } else {
                    Answer::StartOver
                }
            }
            (301 | 302 | 303 | 307 | 308, _) => Answer::Redirect,
            (408 | 410 | 429 | 500.., _) => Answer::Later,
            _ => Answer::Refused,
        }
    }

    /// How the request failed, if it is to be [repeated](Answer::Later).
    pub(super) fn failed(&self) -> Failed {
        Failed::of_status(self.status, self.retry_after, self.date)
    }

    /// Checks that a part is exactly the requested one, and belongs to the file that the note describes.
    fn judge_partial_content(&self, at: u64, note: &Note) -> Answer {
        let Some(part) = self.content_range.and_then(ContentRange::parse) else {
            return Answer::StartOver;
        };
        let Some((first, last)) = part.range else {
            return Answer::StartOver;
        };
        let whole = part.total.or(note.length);
        let fits = first == at
            && self.length.is_none_or(|length| length == last - first + 1)
            && whole.is_none_or(|whole| last < whole)
            && part
                .total
                .is_none_or(|total| note.length.is_none_or(|known| known == total));
        let same = match &note.validator {
            // A part has the tag that the whole would have (RFC 9110 §15.3.7).
            Validator::Tag(tag) => self.etag.is_some_and(|etag| etag == tag.as_bytes()),
            Validator::Date(date) => self.last_modified.is_none_or(|now| now == date.as_bytes()),
        };
        if fits && same {
            Answer::Body { at, length: whole }
        } else {
            Answer::StartOver
        }
    }

    /// The note by which a later request can continue the download. `None` without a strong validator (RFC 9110
    /// §8.8.1).
    pub(super) fn note(&self, url: &str) -> Option<Note> {
        let tag = self.etag.filter(|tag| is_strong_tag(tag)).and_then(text);
        let validator = match tag {
            Some(tag) => Validator::Tag(tag),
            None => Validator::Date(text(
                self.last_modified.filter(|_| self.has_strong_date())?,
            )?),
        };
        Some(Note {
            url: url.to_owned(),
            validator,
            length: self.length,
            modified: self.last_modified.and_then(text),
        })
    }

    /// Whether `Last-Modified` is a strong validator: at least one second earlier than `Date` (RFC 9110 §8.8.2.2).
    fn has_strong_date(&self) -> bool {
        let (Some(changed), Some(sent)) = (self.modified(), self.date.and_then(date)) else {
            return false;
        };
        sent.duration_since(changed)
            .is_ok_and(|age| age >= Duration::from_secs(1))
    }

    /// `ETag`, strong or weak, if it can be sent back.
    pub(super) fn tag(&self) -> Option<String> {
        let is_tag = |tag: &&[u8]| is_strong_tag(tag.strip_prefix(b"W/").unwrap_or(tag));
        self.etag.filter(is_tag).and_then(text)
    }

    /// `Last-Modified`, if it can be sent back.
    pub(super) fn date_text(&self) -> Option<String> {
        self.last_modified
            .filter(|value| date(value).is_some())
            .and_then(text)
    }

    /// The time of the last change of the file.
    pub(super) fn modified(&self) -> Option<SystemTime> {
        self.last_modified.and_then(date)
    }
}

/// The description of a partial file, which is stored beside it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Note {
    pub(super) url: String,
    pub(super) validator: Validator,
    /// The length of the whole file.
    pub(super) length: Option<u64>,
    /// `Last-Modified`.
    pub(super) modified: Option<String>,
}

/// The value of `If-Range`, by which the server recognises whether the file is still the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Validator {
    /// A strong entity tag, with its quotes.
    Tag(String),
    /// A `Last-Modified` that is a strong validator.
    Date(String),
}

impl Validator {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Tag(value) | Self::Date(value) => value,
        }
    }
}

impl Note {
    pub(super) fn modified(&self) -> Option<SystemTime> {
        date(self.modified.as_deref()?.as_bytes())
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let (tag, date) = match &self.validator {
            Validator::Tag(tag) => (Some(tag), None),
            Validator::Date(date) => (None, Some(date)),
        };
        let note = json!({
            "url": self.url,
            "etag": tag,
            "date": date,
            "length": self.length,
            "modified": self.modified,
        });
        note.to_string().into_bytes()
    }

    /// Reads a note. `None` if the bytes are cut, or are not a note.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let note: Value = serde_json::from_slice(bytes).ok()?;
        let field = |name: &str| note[name].as_str().map(str::to_owned);
        let validator = match (field("etag"), field("date")) {
            (Some(tag), None) if is_strong_tag(tag.as_bytes()) => Validator::Tag(tag),
            (None, Some(text)) => {
                date(text.as_bytes())?;
                Validator::Date(text)
            }
            _ => return None,
        };
        Some(Self {
            url: field("url")?,
            validator,
            length: note["length"].as_u64(),
            modified: field("modified"),
        })
    }
}

/// `Content-Range` (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ContentRange {
    /// First and last byte. `None` if the requested range is not satisfiable.
    range: Option<(u64, u64)>,
    total: Option<u64>,
}

impl ContentRange {
    fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let (range, total) = (&rest[..slash], &rest[slash + 1..]);
        let range = match range {
            b"*" => None,
            _ => {
                let dash = range.iter().position(|&byte| byte == b'-')?;
                let (first, last) = (number(&range[..dash])?, number(&range[dash + 1..])?);
                // The length, which is one more than the last byte, has to fit into a u64.
                if first > last || last == u64::MAX {
                    return None;
                }
                Some((first, last))
            }
        };
        let total = match total {
            b"*" => None,
            _ => Some(number(total)?),
        };
        Some(Self { range, total })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits)
        .ok()?
        .parse()
        .ok()
        .filter(|_| is_number)
}

fn date(value: &[u8]) -> Option<SystemTime> {
    let time = httpdate::parse_http_date(str::from_utf8(value).ok()?).ok()?;
    (time >= UNIX_EPOCH).then_some(time)
}

/// Whether this is `"…"` of visible ASCII characters, which can be sent back unchanged.
fn is_strong_tag(tag: &[u8]) -> bool {
    let inner = tag
        .strip_prefix(b"\"")
        .and_then(|tag| tag.strip_suffix(b"\""));
    let is_safe = |byte: &u8| byte.is_ascii_graphic() && *byte != b'"';
    tag.len() <= MOST_TAG_BYTES && inner.is_some_and(|inner| inner.iter().all(is_safe))
}

fn text(value: &[u8]) -> Option<String> {
    str::from_utf8(value).ok().map(str::to_owned)
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
            validator: Validator::Tag("\"v1\"".into()),
            length,
            modified: None,
        }
    }

    #[test]
    fn a_part_must_be_the_requested_one() {
        use Answer::{Body, StartOver};
        const V1: Option<&str> = Some("\"v1\"");
        let of = |range: &'static str, length, etag: Option<&'static str>| {
            let head = Head {
                status: 206,
                length,
                content_range: Some(range.as_bytes()),
                etag: etag.map(str::as_bytes),
                ..Head::default()
            };
            head.judge(&Asked::Rest(10, note(Some(100))))
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
            ("bytes 99-10/100", Some(90), V1, StartOver),
            ("bytes 10-18446744073709551615/*", None, V1, StartOver),
            ("bytes */100", None, V1, StartOver),
            ("bytes=10-99/100", Some(90), V1, StartOver),
            ("bytes 10-/100", Some(90), V1, StartOver),
            ("items 10-99/100", Some(90), V1, StartOver),
            ("", None, V1, StartOver),
        ] {
            assert_eq!(
                of(range, length, etag),
                answer,
                "{range} {length:?} {etag:?}"
            );
        }
        let multipart = Head {
            status: 206,
            ..Head::default()
        };
        assert_eq!(multipart.judge(&Asked::Rest(10, note(None))), StartOver);
        assert_eq!(multipart.judge(&Asked::Whole), Answer::Refused);
    }

    #[test]
    fn other_answers() {
        use Answer::{Body, Complete, Later, Redirect, Refused, StartOver};
        let rest = |length| Asked::Rest(10, note(length));
        let whole = Body {
            at: 0,
            length: Some(7),
        };
        for (status, range, asked, answer) in [
            (200, None, Asked::Whole, whole),
            (200, None, rest(None), whole),
            (416, Some("bytes */10"), rest(None), Complete),
            (416, Some("bytes */10"), rest(Some(10)), Complete),
            (416, Some("bytes */10"), rest(Some(20)), StartOver),
            (416, Some("bytes */9"), rest(None), StartOver),
            (416, None, rest(Some(10)), StartOver),
            (416, Some("bytes */10"), Asked::Whole, Refused),
            (204, None, Asked::Whole, Refused),
            (304, None, Asked::Whole, Refused),
            (304, None, Asked::Head, Refused),
            (304, None, rest(None), Refused),
            (304, None, Asked::IfChanged, Answer::Same),
            (200, None, Asked::IfChanged, whole),
            (404, None, Asked::IfChanged, Refused),
            (404, None, rest(None), Refused),
            (302, None, rest(None), Redirect),
            (429, None, Asked::Head, Later),
            (503, None, Asked::Whole, Later),
            (500, None, Asked::Whole, Later),
            (410, None, Asked::Whole, Later),
            (408, None, Asked::Whole, Later),
        ] {
            let head = Head {
                status,
                length: Some(7),
                content_range: range.map(str::as_bytes),
                ..Head::default()
            };
            assert_eq!(head.judge(&asked), answer, "{status} {range:?}");
        }
    }

    #[test]
    fn only_strong_validators_are_noted() {
        let of = |etag: Option<&'static [u8]>, date: Option<&'static [u8]>| {
            let head = Head {
                etag,
                last_modified: Some(DATE),
                date,
                ..Head::default()
            };
            head.note("http://h/x").map(|note| note.validator)
        };
        let tag = || Some(Validator::Tag("\"v1\"".into()));
        let date = || Some(Validator::Date(String::from_utf8_lossy(DATE).into()));
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
        for validator in [
            Validator::Tag("\"v\\1'\"".into()),
            Validator::Date("Sun, 06 Nov 1994 08:49:37 GMT".into()),
        ] {
            let note = Note {
                url: "http://h/%22x".into(),
                validator,
                length: Some(u64::MAX),
                modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".into()),
            };
            let bytes = note.write();
            for cut in 0..bytes.len() {
                assert_eq!(Note::parse(&bytes[..cut]), None);
            }
            assert!(note.modified().is_some());
            assert_eq!(Note::parse(&bytes), Some(note));
        }
        for bad in [
            &br#"{"url":"u","etag":"W/\"a\""}"#[..],
            br#"{"url":"u","etag":"\"a\r\nX: y\""}"#,
            br#"{"url":"u","date":"soon"}"#,
            br#"{"url":"u"}"#,
            br#"{"etag":"\"a\""}"#,
            b"[]",
        ] {
            assert_eq!(Note::parse(bad), None);
        }
    }
}
