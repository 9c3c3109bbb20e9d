//! `-z` and `--etag-compare`: requests whose response has a body only if the resource has changed (RFC 9110 §13).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::exit::{Exit, Failure};

/// `-z`
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Condition {
    kind: Kind,
    time: SystemTime,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Modified,
    /// `-`
    Unmodified,
    /// `=`: a header that only responses should have. curl sends it, and so does this.
    LastModified,
}

impl Condition {
    /// Reads a date, or takes the time of the file with that name. `None`: the text is neither. A new download has no
    /// file yet, so that this is no error.
    pub(super) fn read(typed: &OsStr) -> Option<Self> {
        let (kind, typed) = match typed.as_bytes() {
            [b'-', rest @ ..] => (Kind::Unmodified, rest),
            [b'=', rest @ ..] => (Kind::LastModified, rest),
            [b'+', rest @ ..] | rest => (Kind::Modified, rest),
        };
        let of_file = || fs::metadata(OsStr::from_bytes(typed)).ok()?.modified().ok();
        let text = std::str::from_utf8(typed).ok().map(str::trim);
        let text = text.filter(|text| !text.is_empty());
        let exact = text.and_then(|text| httpdate::parse_http_date(text).ok());
        // A file may have a name that is understood as a date, such as `now`: the name of a file is more likely.
        let time = exact
            .or_else(of_file)
            .or_else(|| text.and_then(compact_date))
            .or_else(|| text.and_then(date))?;
        Some(Self { kind, time })
    }

    /// The header of the request.
    pub(super) fn header(self) -> (&'static str, Option<Vec<u8>>) {
        let name = match self.kind {
            Kind::Modified => "If-Modified-Since",
            Kind::Unmodified => "If-Unmodified-Since",
            Kind::LastModified => "Last-Modified",
        };
        (name, Some(httpdate::fmt_http_date(self.time).into_bytes()))
    }

    /// Whether a resource with this `Last-Modified` is not wanted. Servers may ignore the header of the request.
    pub(super) fn is_unmet(self, modified: Option<SystemTime>) -> bool {
        let Some(modified) = modified else {
            return false;
        };
        match self.kind {
            Kind::Modified | Kind::LastModified => seconds(modified) <= seconds(self.time),
            // curl wants an older file; RFC 9110 §13.1.4 also one of the same second.
            Kind::Unmodified => seconds(modified) >= seconds(self.time),
        }
    }
}

/// HTTP's dates have no fractions of seconds.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// `20011231`, as curl reads it.
fn compact_date(text: &str) -> Option<SystemTime> {
    if text.len() != 8 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = text.split_at(4);
    let (month, day) = rest.split_at(2);
    date(&format!("{year}-{month}-{day}"))
}

/// Dates as GNU date reads them. Without a time zone the time is UTC, as in curl.
fn date(text: &str) -> Option<SystemTime> {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let parsed = parse_datetime::parse_datetime_at_date(now, text).ok()?;
    let seconds = u64::try_from(parsed.unix_epoch_second()).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// The `Last-Modified` of a response.
pub(super) fn modified(value: Option<&[u8]>) -> Option<SystemTime> {
    let value = std::str::from_utf8(value?).ok()?;
    httpdate::parse_http_date(value.trim()).ok()
}

/// `--etag-compare`: the `ETag` in a file that `--etag-save` wrote, or `""`. `may_lack`: the file need not exist yet.
pub(super) fn read_etag(name: &OsStr, may_lack: bool) -> Result<Vec<u8>, Failure> {
    let text = match fs::read(name) {
        Err(error) if may_lack && error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let cause = format_args!("{}: {error}", name.display());
            return Err(Failure::new(Exit::Read, "read", cause));
        }
        Ok(text) => text,
    };
    let kept = text.into_iter().filter(|b| !matches!(b, b'\r' | b'\n' | 0));
    let etag: Vec<u8> = kept.collect();
    Ok(if etag.is_empty() {
        b"\"\"".to_vec()
    } else {
        etag
    })
}
