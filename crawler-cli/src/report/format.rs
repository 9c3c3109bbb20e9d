//! One result in the output format. Names can contain any bytes: what is not UTF-8 becomes U+FFFD in JSON, and
//! characters that a terminal would act on are escaped. URLs are always exact.

use std::time::Duration;

use crate::find::range::Precision;
use crate::find::{Found, Kind};
use crate::terminal;

/// The output format of results.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Format {
    /// One URL per line.
    #[default]
    Lines,
    /// URLs, each terminated by NUL.
    Nul,
    /// One JSON object per line.
    Json,
}

impl Format {
    /// The option that asks for the format.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Lines => "-print",
            Self::Nul => "-0",
            Self::Json => "--json",
        }
    }

    /// Appends a result.
    pub(crate) fn write(self, found: &Found<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Lines => {
                out.extend_from_slice(found.url.as_bytes());
                out.push(b'\n');
            }
            Self::Nul => {
                out.extend_from_slice(found.url.as_bytes());
                out.push(0);
            }
            Self::Json => json(found, out),
        }
    }
}

/// The value of a JSON field.
enum Cell {
    Text(String),
    Number(u64),
    Seconds(Duration),
    Unknown,
}

impl Cell {
    fn number(number: Option<u64>) -> Self {
        number.map_or(Self::Unknown, Self::Number)
    }

    fn text(text: Option<impl Into<String>>) -> Self {
        text.map_or(Self::Unknown, |text| Self::Text(text.into()))
    }
}

/// The names of the fields, in output order.
const NAMES: [&str; 17] = [
    "url",
    "type",
    "path",
    "name",
    "depth",
    "parent",
    "size",
    "size_lo",
    "size_hi",
    "mtime",
    "mtime_lo",
    "mtime_hi",
    "mtime_precision",
    "listing",
    "status",
    "attempts",
    "seconds",
];

fn cells(found: &Found<'_>) -> [Cell; NAMES.len()] {
    let lossy = |bytes| Cell::Text(String::from_utf8_lossy(bytes).into_owned());
    let (size, time) = (found.size, found.modified);
    // A single moment of an unsure time would be misleading.
    let sure = time.filter(|time| time.precision() < Precision::Unsure);
    [
        Cell::Text(found.url.to_owned()),
        Cell::Text(kind(found.kind).to_owned()),
        lossy(found.path),
        lossy(found.name),
        Cell::Number(found.depth.into()),
        Cell::text(parent(found)),
        Cell::number(size.and_then(|size| size.known())),
        Cell::number(size.map(|size| size.lo)),
        Cell::number(size.map(|size| size.hi)),
        Cell::text(sure.and_then(|time| rfc3339(time.lo))),
        Cell::text(time.and_then(|time| rfc3339(time.lo))),
        Cell::text(time.and_then(|time| rfc3339(time.hi))),
        Cell::text(time.map(|time| time.precision().name())),
        Cell::text(found.listing.map(|shape| shape.name())),
        Cell::number(found.status.map(u64::from)),
        Cell::Number(found.attempts.into()),
        Cell::Seconds(found.took),
    ]
}

fn json(found: &Found<'_>, out: &mut Vec<u8>) {
    for (i, (name, cell)) in NAMES.iter().zip(cells(found)).enumerate() {
        out.extend_from_slice(if i == 0 { b"{\"" } else { b",\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        let value = match cell {
            Cell::Text(text) => terminal::json_string(&text),
            Cell::Number(number) => number.to_string(),
            Cell::Seconds(time) => seconds(time),
            Cell::Unknown => "null".to_owned(),
        };
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(b"}\n");
}

fn seconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64())
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "f",
        Kind::Directory => "d",
    }
}

/// The URL of the directory that lists the result; `None` for a start.
fn parent<'a>(found: &Found<'a>) -> Option<&'a str> {
    if found.depth == 0 {
        return None;
    }
    let body = found.url.strip_suffix('/').unwrap_or(found.url);
    Some(&body[..=body.rfind('/')?])
}

/// The time in RFC 3339; `None` outside the years that the format can express.
pub(super) fn rfc3339(seconds: i64) -> Option<String> {
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    Some(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::listing::Shape;
    use crate::find::range::{SizeRange, TimeRange};

    const FOUND: Found<'_> = Found {
        url: "http://h/a%20%1B/",
        path: "/a \u{1b}".as_bytes(),
        name: "a \u{1b}".as_bytes(),
        kind: Kind::Directory,
        listing: Some(Shape::Nginx),
        ..Found::FILE
    };

    fn written(format: Format, found: &Found<'_>) -> String {
        let mut out = Vec::new();
        format.write(found, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn results_have_several_forms() {
        assert_eq!(written(Format::Lines, &FOUND), "http://h/a%20%1B/\n");
        assert_eq!(written(Format::Nul, &FOUND), "http://h/a%20%1B/\0");
        assert_eq!(
            written(Format::Json, &FOUND),
            "{\"url\":\"http://h/a%20%1B/\",\"type\":\"d\",\"path\":\"/a \\u001b\",\"name\":\"a \\u001b\",\
             \"depth\":1,\"parent\":\"http://h/\",\"size\":null,\"size_lo\":null,\"size_hi\":null,\"mtime\":null,\
             \"mtime_lo\":null,\"mtime_hi\":null,\"mtime_precision\":null,\"listing\":\"nginx\",\"status\":null,\"attempts\":1,\"seconds\":0.000000}\n"
        );
    }

    #[test]
    fn what_is_not_exact_is_a_range() {
        let minute = 1_709_251_140;
        let found = Found {
            url: "http://h/x",
            size: Some(SizeRange { lo: 1, hi: 9 }),
            modified: Some(TimeRange {
                lo: minute,
                hi: minute + 59,
            }),
            depth: 0,
            ..FOUND
        };
        let json: serde_json::Value =
            serde_json::from_str(&written(Format::Json, &found)).expect("JSON");
        assert_eq!(json["size"], serde_json::Value::Null);
        assert_eq!((&json["size_lo"], &json["size_hi"]), (&1.into(), &9.into()));
        assert_eq!(json["mtime"], "2024-02-29T23:59:00Z");
        assert_eq!(json["mtime_hi"], "2024-02-29T23:59:59Z");
        assert_eq!(json["mtime_precision"], "minute");
        assert_eq!(json["parent"], serde_json::Value::Null);

        let unsure = Found {
            size: Some(SizeRange::exact(7)),
            modified: Some(TimeRange { lo: 0, hi: 100_000 }),
            ..found
        };
        let json: serde_json::Value =
            serde_json::from_str(&written(Format::Json, &unsure)).expect("JSON");
        assert_eq!(json["size"], 7);
        assert_eq!(json["mtime"], serde_json::Value::Null);
        assert_eq!(json["mtime_lo"], "1970-01-01T00:00:00Z");
        assert_eq!(json["mtime_precision"], "unsure");
    }
}
