//! `-printf` and `-ls`: the text for an entry, in the formats of GNU find.
//!
//! Unknown values are shown as `?`. A size or a part of a time that is not exactly known is shown as the best estimate
//! with a `~` in front; but `%s` is always a plain number, so that sums work, and `%b` shows the interval.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::found::{Found, Kind};
use listing::range::TimeRange;
use plain::terminal::{self, Keep};

/// A parsed format of `-printf`.
#[derive(Clone, Debug)]
pub struct Format {
    pieces: Vec<Piece>,
    zone: TimeZone,
}

/// The current time and the time zone, which `-ls` needs.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Seconds since 1970.
    pub(super) now: i64,
    pub(super) zone: TimeZone,
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(Vec<u8>),
    Field(FieldSpec, Field),
    /// `\c`
    Stop,
}

/// Flags, width and precision between the `%` and the letter.
#[derive(Clone, Debug, Default)]
struct FieldSpec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    width: usize,
    precision: Option<usize>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Field {
    /// `%p`
    Url,
    /// `%P`
    RelativePath,
    /// `%f`
    Name,
    /// `%h`
    Parent,
    /// `%H`
    Start,
    /// `%s`
    Bytes,
    /// `%k`
    Kilobytes,
    /// `%b`
    Blocks,
    /// `%d`
    Depth,
    /// `%y` and `%Y`
    Kind,
    /// `%t`, and `%T` with its letter: the `strftime` format, and the [`period`] of its output in seconds.
    Time(String, i64),
    /// `%T@`
    Seconds,
}

impl Format {
    /// Parses a format.
    ///
    /// # Errors
    /// The reason why the format is not valid, as a text for users.
    pub(super) fn parse(format: &[u8], zone: TimeZone) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = format;
        while let [first, tail @ ..] = rest {
            rest = tail;
            let piece = match first {
                b'%' if tail.first() == Some(&b'%') => {
                    rest = &tail[1..];
                    literal.push(b'%');
                    continue;
                }
                b'%' => directive(&mut rest)?,
                b'\\' if tail.first() == Some(&b'c') => {
                    rest = &[];
                    Piece::Stop
                }
                b'\\' => {
                    literal.push(escape(&mut rest)?);
                    continue;
                }
                byte => {
                    literal.push(*byte);
                    continue;
                }
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(piece);
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self { pieces, zone })
    }

    pub(super) fn shows_time(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Field(_, Field::Time(..) | Field::Seconds)))
    }

    /// Writes the text for an entry. For a terminal, control characters in names are escaped.
    pub(super) fn write(&self, found: &Found<'_>, terminal: bool, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Field(spec, Field::Depth) => spec.number(found.depth, out),
                Piece::Field(spec, field) => {
                    let text = self.field(field, found, terminal);
                    spec.text(&text, out);
                }
                Piece::Stop => return,
            }
        }
    }

    fn field(&self, field: &Field, found: &Found<'_>, terminal: bool) -> Vec<u8> {
        let name = |name: &[u8]| match terminal {
            true => terminal::neutralise_bytes(name, Keep::Nothing),
            false => name.to_vec(),
        };
        match field {
            Field::Url => found.url.into(),
            Field::RelativePath => name(found.path.strip_prefix(found.start).unwrap_or_default()),
            Field::Name => name(found.name),
            Field::Parent => parent(found.url).into(),
            Field::Start => start(found).into(),
            Field::Bytes => bytes(found).into(),
            Field::Kilobytes => size(found, 1024).into(),
            Field::Blocks => blocks(found).into(),
            Field::Depth => found.depth.to_string().into(),
            Field::Kind => found.kind.letter().into(),
            Field::Time(form, period) => {
                let show = |seconds, zone: &_| strftime(seconds, form, zone);
                time(found.modified, *period, &self.zone, show)
            }
            Field::Seconds => {
                let show = |seconds, _: &_| Some(format!("{seconds}{FRACTION}"));
                time(found.modified, i64::MAX, &self.zone, show)
            }
        }
    }
}

/// Writes the line of `ls -dils` for an entry: inode, kilobytes, type and mode, links, owner, group, size, time, URL.
/// Servers do not report inode, mode, links, owner and group.
pub(super) fn write_ls(found: &Found<'_>, clock: &Clock, out: &mut Vec<u8>) {
    let letter = match found.kind {
        Kind::File => '-',
        Kind::Directory => 'd',
    };
    let show = |seconds, zone: &_| {
        let recent = seconds > clock.now - HALF_A_YEAR && seconds <= clock.now + AN_HOUR;
        let form = if recent { "%b %e %H:%M" } else { "%b %e  %Y" };
        strftime(seconds, form, zone)
    };
    let date = time(found.modified, i64::MAX, &clock.zone, show);
    let line = format!(
        "{:>9} {:>6} {letter}????????? {:>3} {:<8} {:<8} {:>8} {:>12} {}\n",
        "?",
        size(found, 1024),
        "?",
        "?",
        "?",
        size(found, 1),
        String::from_utf8_lossy(&date),
        found.url
    );
    out.extend_from_slice(line.as_bytes());
}

impl FieldSpec {
    /// `%s` of C's `printf`.
    fn text(&self, text: &[u8], out: &mut Vec<u8>) {
        let text = &text[..text.len().min(self.precision.unwrap_or(text.len()))];
        self.pad(text, out);
    }

    /// `%d` of C's `printf`.
    fn number(&self, number: u32, out: &mut Vec<u8>) {
        let sign = match (self.plus, self.space) {
            (true, _) => "+",
            (false, true) => " ",
            (false, false) => "",
        };
        let digits = match self.precision {
            Some(0) if number == 0 => String::new(),
            Some(least) => format!("{number:0least$}"),
            None if self.zero && !self.left => {
                let least = self.width.saturating_sub(sign.len());
                format!("{number:0least$}")
            }
            None => number.to_string(),
        };
        self.pad(format!("{sign}{digits}").as_bytes(), out);
    }

    fn pad(&self, text: &[u8], out: &mut Vec<u8>) {
        let padding = self.width.saturating_sub(text.len());
        if self.left {
            out.extend_from_slice(text);
        }
        out.extend(std::iter::repeat_n(b' ', padding));
        if !self.left {
            out.extend_from_slice(text);
        }
    }
}

/// Parses a directive; `rest` starts after the `%`.
fn directive(rest: &mut &[u8]) -> Result<Piece, String> {
    let mut spec = FieldSpec::default();
    while let [flag @ (b'-' | b'+' | b' ' | b'#' | b'0'), tail @ ..] = *rest {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'0' => spec.zero = true,
            // `#` changes only octal numbers, which no directive here prints.
            _ => {}
        }
        *rest = tail;
    }
    spec.width = digits(rest)?.unwrap_or(0);
    if let [b'.', tail @ ..] = *rest {
        *rest = tail;
        spec.precision = Some(digits(rest)?.unwrap_or(0));
    }
    let letter = next(rest).ok_or("the format ends in a lone %")?;
    let field = match letter {
        'p' => Field::Url,
        'P' => Field::RelativePath,
        'f' => Field::Name,
        'h' => Field::Parent,
        'H' => Field::Start,
        's' => Field::Bytes,
        'k' => Field::Kilobytes,
        'b' => Field::Blocks,
        'd' => Field::Depth,
        'y' | 'Y' => Field::Kind,
        't' => Field::Time(CTIME.to_owned(), i64::MAX),
        'T' => match next(rest).ok_or("the letter after %T is missing")? {
            '@' => Field::Seconds,
            letter => {
                let form = time_form(letter);
                let form =
                    form.ok_or_else(|| format!("%T{letter} is not a known part of a time"))?;
                Field::Time(form, period(letter))
            }
        },
        'a' | 'A' | 'c' | 'C' | 'B' => {
            return Err(format!(
                "%{letter}: a web server reports only the time of the last change, which is %T"
            ));
        }
        'D' | 'F' | 'g' | 'G' | 'i' | 'l' | 'm' | 'M' | 'n' | 'S' | 'u' | 'U' | 'Z' => {
            return Err(format!("%{letter}: a web server does not report this"));
        }
        letter => return Err(format!("%{letter} is not a known directive")),
    };
    Ok(Piece::Field(spec, field))
}

fn digits(rest: &mut &[u8]) -> Result<Option<usize>, String> {
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, tail) = rest.split_at(len);
    *rest = tail;
    if digits.is_empty() {
        return Ok(None);
    }
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|d| d.parse().ok());
    match number.filter(|number| *number <= WIDEST) {
        Some(number) => Ok(Some(number)),
        None => Err(format!("a width or precision is larger than {WIDEST}")),
    }
}

/// The next character; a byte that is not UTF-8 is U+FFFD.
fn next(rest: &mut &[u8]) -> Option<char> {
    let chunk = rest.utf8_chunks().next()?;
    let c = chunk
        .valid()
        .chars()
        .next()
        .unwrap_or(char::REPLACEMENT_CHARACTER);
    let len = if chunk.valid().is_empty() {
        1
    } else {
        c.len_utf8()
    };
    *rest = &rest[len..];
    Some(c)
}

/// Parses an escape; `rest` starts after the backslash.
fn escape(rest: &mut &[u8]) -> Result<u8, String> {
    let octal: Vec<u8> = rest
        .iter()
        .copied()
        .take(3)
        .take_while(|byte| matches!(byte, b'0'..=b'7'))
        .collect();
    if !octal.is_empty() {
        *rest = &rest[octal.len()..];
        let value = octal
            .iter()
            .fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
        // As in C, only the low eight bits count.
        return Ok((value & 0xff) as u8);
    }
    let c = next(rest).ok_or("the format ends in a lone backslash")?;
    Ok(match c {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        c => {
            return Err(format!(
                "\\{c} is not a known escape; a backslash is written \\\\"
            ));
        }
    })
}

/// The `strftime` format for `%T` with this letter, in the C locale.
fn time_form(letter: char) -> Option<String> {
    let form = match letter {
        letter if AS_STRFTIME.contains(letter) => return Some(format!("%{letter}")),
        'S' => "%S.0000000000",
        'R' => "%H:%M",
        'r' => "%I:%M:%S %p",
        'T' | 'X' => "%H:%M:%S.0000000000",
        'h' => "%b",
        'c' => "%a %b %e %H:%M:%S %Y",
        'D' | 'x' => "%m/%d/%y",
        'F' => "%Y-%m-%d",
        '+' => "%Y-%m-%d+%H:%M:%S.0000000000",
        _ => return None,
    };
    Some(form.to_owned())
}

/// The period of the output of `%T` with this letter, in seconds: two times that are closer together and have the same
/// output also have the same output in between.
fn period(letter: char) -> i64 {
    match letter {
        'S' => 60,
        'M' => AN_HOUR,
        'I' | 'l' | 'p' | 'P' => A_DAY / 2,
        'H' | 'k' | 'r' | 'R' | 'T' | 'X' => A_DAY,
        // Of the other letters, days of the week have the shortest period.
        _ => 7 * A_DAY,
    }
}

fn strftime(seconds: i64, form: &str, zone: &TimeZone) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?.to_zoned(zone.clone());
    jiff::fmt::strtime::format(form, &time).ok()
}

/// The output of `show`, if it is the same for the whole interval; else the output for the earliest time with a `~`. A
/// time of a listing whose zone is not known is shown as the listing has it, with a `~` unless it is the same in all zones.
fn time(
    range: Option<TimeRange>,
    period: i64,
    zone: &TimeZone,
    show: impl Fn(i64, &TimeZone) -> Option<String>,
) -> Vec<u8> {
    let shown = range.and_then(|range| {
        let (lo, hi) = (show(range.lo, zone)?, show(range.hi, zone)?);
        let exact = lo == hi && range.hi.saturating_sub(range.lo) < period;
        let text = match range.as_listed() {
            Some(listed) => show(listed, &TimeZone::UTC)?,
            None => lo.clone(),
        };
        Some(match exact && text == lo {
            true => text,
            false => format!("~{text}"),
        })
    });
    shown.unwrap_or_else(|| UNKNOWN.to_owned()).into()
}

fn size(found: &Found<'_>, unit: u64) -> String {
    match found.size {
        Some(range) if found.kind == Kind::File => {
            let (lo, hi) = (range.lo.div_ceil(unit), range.hi.div_ceil(unit));
            if lo == hi {
                lo.to_string()
            } else {
                format!("~{}", lo.midpoint(hi))
            }
        }
        _ => UNKNOWN.to_owned(),
    }
}

/// The best estimate, without a mark.
fn bytes(found: &Found<'_>) -> String {
    size(found, 1).trim_start_matches('~').to_owned()
}

/// All numbers of blocks that the size can mean.
fn blocks(found: &Found<'_>) -> String {
    let text = size(found, 512);
    match found.size {
        Some(range) if text.starts_with('~') => {
            let (lo, hi) = (range.lo.div_ceil(512), range.hi.div_ceil(512));
            format!("~{lo}-{hi}")
        }
        _ => text,
    }
}

/// The URL of the start: the URL of the entry without its last `depth` segments.
fn start<'a>(found: &Found<'a>) -> &'a str {
    let mut url = found.url;
    for _ in 0..found.depth {
        let body = url.strip_suffix('/').unwrap_or(url);
        url = match body.rfind('/') {
            Some(at) => &body[..=at],
            None => body,
        };
    }
    url
}

/// The URL of the parent directory, without a final `/`.
fn parent(url: &str) -> &str {
    let body = url.strip_suffix('/').unwrap_or(url);
    let authority = body.find("//").map_or(0, |at| at + 2);
    match body[authority..].rfind('/') {
        Some(at) => &body[..authority + at],
        None => body,
    }
}

const UNKNOWN: &str = "?";

/// Largest accepted width and precision; larger ones are certainly mistakes.
const WIDEST: usize = 4096;

const HALF_A_YEAR: i64 = 31_556_952 / 2;
const AN_HOUR: i64 = 60 * 60;
const A_DAY: i64 = 24 * AN_HOUR;

/// Servers report whole seconds; GNU find shows ten decimal places.
const FRACTION: &str = ".0000000000";
const CTIME: &str = "%a %b %e %H:%M:%S.0000000000 %Y";

/// The letters of `%T` that mean what they mean for `strftime`.
const AS_STRFTIME: &str = "HIklpPZzMsaAbBmdeuwjUWVGgYyC";

#[cfg(test)]
mod tests {
    use super::*;
    use listing::range::SizeRange;

    const FOUND: Found<'_> = Found {
        url: "http://h:1/pub/a%20b/c%1B.iso",
        path: b"/pub/a b/c\x1b.iso",
        name: b"c\x1b.iso",
        depth: 2,
        start: b"/pub/",
        ..Found::FILE
    };

    fn shown(format: &str, found: &Found<'_>, terminal: bool) -> String {
        let format = Format::parse(format.as_bytes(), TimeZone::UTC).expect("a valid format");
        let mut out = Vec::new();
        format.write(found, terminal, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn urls_are_encoded_and_names_are_not() {
        let directory = Found {
            kind: Kind::Directory,
            ..FOUND
        };
        let of = |url: &'static str, path: &'static str, name: &'static str, depth| Found {
            url,
            path: path.as_bytes(),
            name: name.as_bytes(),
            depth,
            ..directory
        };
        let root = Found {
            start: b"/",
            ..of("http://h:1/", "/", "/", 0)
        };
        let below = of("http://h:1/pub/a/b/", "/pub/a/b", "b", 2);
        let start = of("http://h:1/pub/", "/pub", "pub", 0);
        for (found, expected) in [
            (
                FOUND,
                "http://h:1/pub/a%20b/c%1B.iso|http://h:1/pub/a%20b|http://h:1/pub/|a b/c\u{1b}.iso|c\u{1b}.iso|2",
            ),
            (start, "http://h:1/pub/|http://h:1|http://h:1/pub/||pub|0"),
            (root, "http://h:1/|http://h:1|http://h:1/||/|0"),
            (
                below,
                "http://h:1/pub/a/b/|http://h:1/pub/a|http://h:1/pub/|a/b|b|2",
            ),
        ] {
            assert_eq!(shown("%p|%h|%H|%P|%f|%d", &found, false), expected);
        }
        let on_terminal = shown("%P|%f", &FOUND, true);
        assert_eq!(on_terminal, "a b/c\\u{1b}.iso|c\\u{1b}.iso");
    }

    #[test]
    fn inexact_values_are_marked() {
        let huge = format!("{}|{}|{}", u64::MAX - 1, 1u64 << 54, 1u64 << 55);
        for (lo, hi, expected) in [
            (5, 5, "5|1|1"),
            (1000, 1100, "1050|~1|~2-3"),
            (1000, 1020, "1010|1|2"),
            (u64::MAX - 1, u64::MAX, &*huge),
        ] {
            let found = Found {
                size: Some(SizeRange { lo, hi }),
                ..FOUND
            };
            assert_eq!(shown("%s|%k|%b", &found, false), expected);
            let directory = Found {
                kind: Kind::Directory,
                ..found
            };
            assert_eq!(shown("%s|%5k", &directory, false), "?|    ?");
        }
        let timed = |lo, hi, format| {
            let modified = Some(TimeRange { lo, hi });
            shown(format, &Found { modified, ..FOUND }, false)
        };
        // The listing has 1970-01-02 10:17, in a zone that is not known.
        let (first, last) = (123_420 - 14 * 3600, 123_479 + 12 * 3600);
        let unsure = "~1970-01-02|~10:17|~00.0000000000";
        for (lo, hi, at, expected) in [
            (86_400, 86_400, "86400", "1970-01-02|00:00|00.0000000000"),
            (86_400, 86_459, "~86400", "1970-01-02|00:00|~00.0000000000"),
            (
                86_399,
                86_459,
                "~86399",
                "~1970-01-01|~23:59|~59.0000000000",
            ),
            (i64::MIN, 0, "~-9223372036854775808", "?|?|?"),
            (first, last, "~123420", unsure),
        ] {
            let expected = format!("{at}.0000000000|{expected}");
            assert_eq!(timed(lo, hi, "%T@|%TF|%TR|%TS"), expected);
        }
        // The day depends on the zone, and the year does not.
        let (lo, hi) = (1_710_497_820 - 14 * 3600, 1_710_497_879 + 12 * 3600);
        let day = timed(lo, hi, "%TY-%Tm-%Td %TH:%TM");
        assert_eq!(day, "2024-03-~15 ~10:~17");
        let whole = "~1710497820.0000000000 ~Fri Mar 15 10:17:00.0000000000 2024";
        assert_eq!(timed(lo, hi, "%T@ %t"), whole);
        assert_eq!(shown("%s|%t|%T@", &FOUND, false), "?|?|?");
    }

    #[test]
    fn ls_shows_recent_times_and_old_years() {
        let clock = Clock {
            now: 1_000_000_000,
            zone: TimeZone::UTC,
        };
        for (modified, date) in [
            (Some(1_000_000_000 - 86_400), "Sep  8 01:46"),
            (Some(1_000_000_000 + 7200), "Sep  9  2001"),
            (Some(0), "Jan  1  1970"),
            (None, "           ?"),
        ] {
            let found = Found {
                modified: modified.map(TimeRange::exact),
                size: Some(SizeRange::exact(1025)),
                ..FOUND
            };
            let mut out = Vec::new();
            write_ls(&found, &clock, &mut out);
            let line = "        ?      2 -?????????   ? ?        ?            1025";
            let expected = format!("{line} {date} {}\n", FOUND.url);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}
