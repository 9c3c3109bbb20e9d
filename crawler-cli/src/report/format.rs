//! One result in the output format. Names can contain any bytes: what is not UTF-8 becomes U+FFFD in JSON, and
//! characters that a terminal would act on are escaped. URLs are always exact.

use jiff::Timestamp;

use check::json::Fields;
use find::Found;
use listing::Shape;
use listing::range::Precision;

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

fn json(found: &Found<'_>, out: &mut Vec<u8>) {
    let (size, time) = (found.size, found.modified);
    // A single moment of an unsure time would be misleading.
    let sure = time.filter(|time| time.precision() < Precision::Unsure);
    let mut fields = Fields::open(out);
    fields.text("url", found.url);
    fields.text("type", found.kind.letter());
    fields.text("path", &String::from_utf8_lossy(found.path));
    fields.text("name", &String::from_utf8_lossy(found.name));
    fields.number("depth", found.depth);
    fields.known("parent", parent(found), Fields::text);
    fields.known("size", size.and_then(|size| size.known()), Fields::number);
    fields.known("size_lo", size.map(|size| size.lo), Fields::number);
    fields.known("size_hi", size.map(|size| size.hi), Fields::number);
    let times = [
        ("mtime", sure.map(|time| time.lo)),
        ("mtime_lo", time.map(|time| time.lo)),
        ("mtime_hi", time.map(|time| time.hi)),
    ];
    for (name, seconds) in times {
        // Outside the years that RFC 3339 can express, a time is not known.
        let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        fields.known(name, time, Fields::quoted);
    }
    let precision = time.map(|time| time.precision().name());
    fields.known("mtime_precision", precision, Fields::text);
    fields.known("listing", found.listing.map(Shape::name), Fields::text);
    fields.known("status", found.status, Fields::number);
    fields.number("attempts", found.attempts);
    fields.number("seconds", format_args!("{:.6}", found.took.as_secs_f64()));
    fields.close();
    out.push(b'\n');
}

/// The URL of the directory that lists the result; `None` for a start.
fn parent<'a>(found: &Found<'a>) -> Option<&'a str> {
    if found.depth == 0 {
        return None;
    }
    let body = found.url.strip_suffix('/').unwrap_or(found.url);
    Some(&body[..=body.rfind('/')?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use find::Kind;
    use listing::range::{SizeRange, TimeRange};

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
    fn a_time_that_is_not_sure_is_a_range() {
        let unsure = Found {
            size: Some(SizeRange::exact(7)),
            modified: Some(TimeRange { lo: 0, hi: 100_000 }),
            ..FOUND
        };
        let json = written(Format::Json, &unsure);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(
            (&json["size"], &json["mtime"]),
            (&7.into(), &serde_json::Value::Null)
        );
        assert_eq!(json["mtime_lo"], "1970-01-01T00:00:00Z");
        assert_eq!(json["mtime_precision"], "unsure");
        assert_eq!(written(Format::Nul, &FOUND), "http://h/a%20%1B/\0");
    }
}
