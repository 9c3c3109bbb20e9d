//! Response heads (RFC 9112 §2-5): finding the end across reads, the early check of the status line, and parsing.
//!
//! A head that comes in one read, as nearly all do, is parsed where it is. Else its end is searched with a scanner that
//! remembers where it was, so that a head dripped byte by byte costs O(n), and `httparse` runs once over the whole.
//! Lines may end in CRLF or bare LF. A status line that cannot become one is refused at its first impossible byte.

use std::mem::MaybeUninit;
use std::ops::Range;

use httparse::ParserConfig;

use super::response::{Field, Version, offset_in};
use crate::error::{ErrorKind, LimitExceeded, PeerFault};

/// Finds the empty line that ends a head, over any number of pieces.
#[derive(Debug, Default)]
pub(crate) struct HeadScan {
    /// What the bytes seen so far end with.
    tail: Tail,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Tail {
    #[default]
    InLine,
    Lf,
    LfCr,
}

impl HeadScan {
    /// The offset in `piece` just behind the end of the head, if it is in there.
    pub(crate) fn handle_piece(&mut self, piece: &[u8]) -> Option<usize> {
        match (self.tail, piece) {
            (Tail::InLine, _) | (_, []) => {}
            (Tail::Lf, [b'\n', ..]) | (Tail::LfCr, [b'\n', ..]) => return Some(1),
            (Tail::Lf, [b'\r', b'\n', ..]) => return Some(2),
            (Tail::Lf, b"\r") => {
                self.tail = Tail::LfCr;
                return None;
            }
            _ => {}
        }
        for lf in memchr::memchr_iter(b'\n', piece) {
            match piece[lf + 1..] {
                [b'\n', ..] => return Some(lf + 2),
                [b'\r', b'\n', ..] => return Some(lf + 3),
                _ => {}
            }
        }
        self.tail = match piece {
            [.., b'\n'] => Tail::Lf,
            [.., b'\n', b'\r'] => Tail::LfCr,
            [] => self.tail,
            _ => Tail::InLine,
        };
        None
    }
}

/// Refuses the beginning of a status line that no further byte can mend.
pub(crate) fn check_status_line(start: &[u8]) -> Result<(), PeerFault> {
    let fits = |(at, &byte): (usize, &u8)| match at {
        0..7 => byte == b"HTTP/1."[at],
        7 => matches!(byte, b'0' | b'1'),
        8 => byte == b' ',
        9 => matches!(byte, b'1'..=b'9'),
        10 | 11 => byte.is_ascii_digit(),
        12 => matches!(byte, b' ' | b'\r' | b'\n'),
        _ => true,
    };
    if start.iter().take(STATUS_LINE_PREFIX).enumerate().all(fits) {
        Ok(())
    } else {
        Err(PeerFault::BadStatusLine)
    }
}

/// Length of `HTTP/1.1 200 `: what [`check_status_line`] can judge.
pub(crate) const STATUS_LINE_PREFIX: usize = 13;

/// A parsed head: the status line, and what its headers say about framing and the connection.
#[derive(Debug)]
pub(crate) struct ParsedHead {
    /// Bytes of the head, its empty line included.
    pub(crate) length: usize,
    pub(crate) version: Version,
    pub(crate) status: u16,
    /// In `buffer`.
    pub(crate) reason: Range<u32>,
    pub(crate) framing: Framing,
}

/// The headers that decide about the body and the connection (RFC 9112 §6.3, §9.3).
#[derive(Debug, Default)]
pub(crate) struct Framing {
    pub(crate) content_length: Option<Result<u64, PeerFault>>,
    pub(crate) transfer_encoding: TransferEncoding,
    /// `Connection` lists `close`.
    pub(crate) close: bool,
    /// `Connection` lists `keep-alive`.
    pub(crate) keep_alive: bool,
    /// `Keep-Alive: timeout=N`, in seconds.
    pub(crate) keep_alive_timeout: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum TransferEncoding {
    #[default]
    Absent,
    Chunked,
    Unsupported,
}

/// Parses the head at the start of `input` if it is all there and there is nothing unusual about it,.
/// `base` is where it will be in the response's buffer. `None` leaves everything, faults too, to
/// [`HeadScan`] and [`parse_head`], so that the outcome does not depend on how the input is cut.
#[inline]
pub(crate) fn parse_whole(
    input: &[u8],
    base: usize,
    max_headers: usize,
    fields: &mut Vec<Field>,
) -> Option<ParsedHead> {
    if input.first() != Some(&b'H') {
        return None; // httparse would skip empty lines
    }
    let mut slots = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; COMMON_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let complete = ParserConfig::default().parse_response_with_uninit_headers(
        &mut parsed,
        input,
        &mut slots[..max_headers.min(COMMON_HEADERS)],
    );
    let Ok(httparse::Status::Complete(length)) = complete else {
        return None;
    };
    let status = parsed.code.filter(|code| *code >= 100)?;
    let reason = match parsed.reason {
        Some("") | None => reason(input, base),
        Some(text) => {
            let start = base + offset_in(input, text.as_bytes());
            start as u32..(start + text.len()) as u32
        }
    };
    let mut framing = Framing::default();
    fields.extend(parsed.headers.iter().map(|header| {
        framing.handle_header(header.name, header.value);
        Field::new(input, base, header.name.as_bytes(), header.value)
    }));
    Some(ParsedHead {
        length,
        version: version(parsed.version),
        status,
        reason,
        framing,
    })
}

/// Parses the complete head that `buffer` ends with, from `start` on, and appends its headers to `fields`. Folded values are unfolded into
/// new bytes at the end of `buffer`.
pub(crate) fn parse_head(
    buffer: &mut Vec<u8>,
    start: usize,
    max_headers: usize,
    fields: &mut Vec<Field>,
) -> Result<ParsedHead, ErrorKind> {
    let head = &buffer[start..];
    check_status_line(head)?;
    let mut framing = Framing::default();
    let mut slots = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(
            &mut parsed,
            head,
            &mut slots[..max_headers.min(MOST_HEADERS)],
        )
        .map_err(|error| match error {
            httparse::Error::TooManyHeaders => LimitExceeded::HeaderCount(max_headers).into(),
            httparse::Error::Status | httparse::Error::Version | httparse::Error::Token => {
                ErrorKind::from(PeerFault::BadStatusLine)
            }
            _ => PeerFault::BadHeader.into(),
        })?;
    fields.extend(parsed.headers.iter().map(|header| {
        framing.handle_header(header.name, header.value);
        Field::new(head, start, header.name.as_bytes(), header.value)
    }));
    let (version, status) = (version(parsed.version), parsed.code.unwrap_or(0));
    let (length, reason) = (head.len(), reason(head, start));
    unfold(buffer, fields);
    Ok(ParsedHead {
        length,
        version,
        status,
        reason,
        framing,
    })
}

fn version(minor: Option<u8>) -> Version {
    match minor {
        Some(0) => Version::Http10,
        _ => Version::Http11,
    }
}

/// Parses a complete trailer section at `buffer[range]` and appends the fields that may stand there.
pub(crate) fn parse_trailers(
    buffer: &[u8],
    range: Range<usize>,
    max_headers: usize,
    fields: &mut Vec<Field>,
) -> Result<(), ErrorKind> {
    let mut slots = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let slots = &mut slots[..max_headers.min(MOST_HEADERS)];
    let section = &buffer[range.clone()];
    match httparse::parse_headers(section, slots) {
        Ok(httparse::Status::Complete((_, headers))) => {
            let allowed = headers.iter().filter(|header| {
                !FORBIDDEN_TRAILERS
                    .iter()
                    .any(|f| header.name.eq_ignore_ascii_case(f))
            });
            fields.extend(
                allowed.map(|h| Field::new(section, range.start, h.name.as_bytes(), h.value)),
            );
            Ok(())
        }
        Err(httparse::Error::TooManyHeaders) => Err(LimitExceeded::HeaderCount(max_headers).into()),
        _ => Err(PeerFault::BadTrailer.into()),
    }
}

impl Framing {
    fn handle_header(&mut self, name: &str, value: &[u8]) {
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                for token in list(value) {
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            10 if name.eq_ignore_ascii_case("keep-alive") => {
                self.keep_alive_timeout = list(value).find_map(keep_alive_timeout);
            }
            14 if name.eq_ignore_ascii_case("content-length") => self.handle_content_length(value),
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                let chunked = trim(value).eq_ignore_ascii_case(b"chunked");
                self.transfer_encoding = match self.transfer_encoding {
                    TransferEncoding::Absent if chunked => TransferEncoding::Chunked,
                    _ => TransferEncoding::Unsupported,
                };
            }
            _ => {}
        }
    }

    /// Equal values collapse into one, over lists and over lines; anything else is an error (RFC 9112 §6.3 (5)).
    fn handle_content_length(&mut self, value: &[u8]) {
        for item in value.split(|&byte| byte == b',') {
            let parsed = parse_content_length(trim(item));
            self.content_length = Some(match (self.content_length, parsed) {
                (None, parsed) => parsed,
                (Some(Ok(before)), Ok(now)) if before != now => {
                    Err(PeerFault::ConflictingContentLength)
                }
                (Some(Err(fault)), _) | (_, Err(fault)) => Err(fault),
                (Some(same), _) => same,
            });
        }
    }
}

fn parse_content_length(digits: &[u8]) -> Result<u64, PeerFault> {
    if digits.is_empty() {
        return Err(PeerFault::BadContentLength);
    }
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(PeerFault::BadContentLength);
        }
        value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit)))
            .ok_or(PeerFault::BadContentLength)
    })
}

fn keep_alive_timeout(parameter: &[u8]) -> Option<u32> {
    let (name, value) = parameter.split_at_checked("timeout=".len())?;
    if !name.eq_ignore_ascii_case(b"timeout=") {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The members of a comma-separated list, without blanks around them.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

fn trim(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

/// The reason phrase of the head that starts at `start` in its buffer. `httparse` drops one that is not ASCII.
fn reason(head: &[u8], start: usize) -> Range<u32> {
    let line_end = memchr::memchr(b'\n', head).unwrap_or(head.len());
    let end = match head[..line_end] {
        [.., b'\r'] => line_end - 1,
        _ => line_end,
    };
    let from = STATUS_LINE_PREFIX.min(end);
    (start + from) as u32..(start + end) as u32
}

/// Replaces each obs-fold by one SP (RFC 9112 §5.2), in a copy at the end of `buffer`.
fn unfold(buffer: &mut Vec<u8>, fields: &mut [Field]) {
    for field in fields {
        let range = field.value();
        if memchr::memchr(b'\n', &buffer[range.clone()]).is_none() {
            continue;
        }
        let start = buffer.len();
        let mut at = range.start;
        while at < range.end {
            if !matches!(buffer[at], b'\r' | b'\n') {
                buffer.push(buffer[at]);
                at += 1;
                continue;
            }
            drop_blank_end(buffer, start);
            while at < range.end && is_blank(buffer[at]) {
                at += 1;
            }
            if buffer.len() > start {
                buffer.push(b' ');
            }
        }
        drop_blank_end(buffer, start);
        field.set_value(start..buffer.len());
    }
}

fn drop_blank_end(buffer: &mut Vec<u8>, start: usize) {
    while buffer.len() > start && buffer.last().is_some_and(|&byte| is_blank(byte)) {
        buffer.pop();
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Heads with more headers than this take the slower way.
const COMMON_HEADERS: usize = 64;

/// The most headers that a head can have, whatever the limits say.
const MOST_HEADERS: usize = 1024;

/// Fields that would change framing, routing or authentication after the fact (RFC 9110 §6.5.1).
const FORBIDDEN_TRAILERS: &[&str] = &[
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "www-authenticate",
];
