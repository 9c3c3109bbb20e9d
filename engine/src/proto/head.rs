//! Response heads (RFC 9112 §2-5): finding the end over several reads, the early check of the status line, and parsing.
//! The exchange decides what the head means for the connection.
//!
//! A plain head that comes in one read, as nearly all do, is parsed in place by [`parse_plain`]. Otherwise [`HeadScan`]
//! looks for the end of the head. It remembers its position, so a head that comes byte by byte costs O(n), and
//! `httparse` runs once over the whole head. Lines may end in CRLF or in bare LF. A malformed status line is refused at
//! its first wrong byte.

use std::mem::MaybeUninit;
use std::ops::Range;

use httparse::ParserConfig;

use super::Limits;
use super::response::{Field, HeadParts, Inner, Version};
use super::scan::{is_of_token, text_end, text_stops, token_end, token_stops};
use crate::error::{ErrorKind, LimitExceeded, PeerFault};

/// Finds the empty line that ends a head, over any number of pieces, and refuses a head at its first byte that no
/// valid head has there.
#[derive(Debug)]
pub(crate) struct HeadScan {
    at: HeadAt,
    /// Bytes of the present line that have come.
    line: usize,
    /// Lines that have ended; 0 in the status line.
    lines: u32,
    /// Take lines that the grammar does not permit and that are harmless, and a status line with several blanks.
    lenient: bool,
    /// Such a line has come.
    has_wrong: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum HeadAt {
    /// So many bytes up to the end of the status code have come.
    Status(u8),
    LineStart,
    Name,
    /// A value or a reason phrase.
    Text,
    /// In a line that is dropped.
    Wrong,
    /// Expects the LF that ends a line.
    Lf,
    /// Expects the LF that ends the head.
    LastLf,
}

impl HeadScan {
    pub(crate) fn new(lenient: bool) -> Self {
        Self {
            at: HeadAt::Status(0),
            line: 0,
            lines: 0,
            lenient,
            has_wrong: false,
        }
    }

    /// The offset in `piece` just after the end of the head, if the head ends in `piece`.
    ///
    /// # Errors
    /// A byte that no valid head has there, or a line that is longer than `longest` bytes, with its line end.
    pub(crate) fn handle_piece(
        &mut self,
        piece: &[u8],
        longest: usize,
    ) -> Result<Option<usize>, ErrorKind> {
        let mut at = 0;
        while at < piece.len() {
            let end = match self.at {
                HeadAt::Name => token_end(piece, at),
                HeadAt::Text => text_end(piece, at),
                HeadAt::Wrong => memchr::memchr3(b'\r', b'\n', 0, &piece[at..])
                    .map_or(piece.len(), |stop| at + stop),
                _ => at,
            };
            self.lengthen(end - at, longest)?;
            at = end;
            let Some(&byte) = piece.get(at) else {
                break;
            };
            self.lengthen(1, longest)?;
            self.at = match (self.at, byte) {
                (HeadAt::LastLf | HeadAt::LineStart, b'\n') => return Ok(Some(at + 1)),
                (HeadAt::Status(STATUS_CODE_END) | HeadAt::Text | HeadAt::Wrong, b'\r') => {
                    HeadAt::Lf
                }
                (
                    HeadAt::Status(STATUS_CODE_END) | HeadAt::Text | HeadAt::Wrong | HeadAt::Lf,
                    b'\n',
                ) => {
                    (self.line, self.lines) = (0, self.lines.saturating_add(1));
                    HeadAt::LineStart
                }
                (HeadAt::Status(STATUS_CODE_END), b' ') => HeadAt::Text,
                (HeadAt::Status(n), _) if is_of_status_line(n, byte) => HeadAt::Status(n + 1),
                (HeadAt::Status(9), b' ') if self.lenient => {
                    self.has_wrong = true;
                    HeadAt::Status(9)
                }
                (HeadAt::LineStart, b'\r') => HeadAt::LastLf,
                // The value of the line before goes on (obs-fold, RFC 9112 §5.2).
                (HeadAt::LineStart, b' ' | b'\t') if self.lines > 1 => HeadAt::Text,
                (HeadAt::LineStart, byte) if is_of_token(byte) => HeadAt::Name,
                (HeadAt::Name, b':') => HeadAt::Text,
                // NUL and a bare CR are harmless nowhere: other readers end a line there.
                (HeadAt::LineStart | HeadAt::Name | HeadAt::Text, byte)
                    if self.lenient && byte != 0 && byte != b'\r' =>
                {
                    self.has_wrong = true;
                    match byte {
                        b'\n' => {
                            (self.line, self.lines) = (0, self.lines.saturating_add(1));
                            HeadAt::LineStart
                        }
                        _ => HeadAt::Wrong,
                    }
                }
                (HeadAt::Name, b'\r') if self.lenient => {
                    self.has_wrong = true;
                    HeadAt::Lf
                }
                _ if self.lines == 0 => return Err(PeerFault::BadStatusLine.into()),
                _ => return Err(PeerFault::BadHeader.into()),
            };
            at += 1;
        }
        Ok(None)
    }

    /// Counts bytes of the present line.
    fn lengthen(&mut self, n: usize, longest: usize) -> Result<(), LimitExceeded> {
        self.line += n;
        match self.line > longest {
            true if self.lenient && self.lines > 0 => self.has_wrong = true,
            true => return Err(LimitExceeded::HeaderLine(longest)),
            false => {}
        }
        Ok(())
    }

    /// Parses the complete head in the buffer from `start` on, which this has found the end of. Appends its headers to
    /// the fields, and returns how many of its lines were dropped. Folded values are copied without their line breaks to
    /// the end of the buffer.
    pub(super) fn parse(
        &self,
        inner: &mut Inner,
        start: usize,
        limits: &Limits,
    ) -> Result<u32, ErrorKind> {
        let (first, end) = (inner.fields.len(), inner.buffer.len());
        let (status, reason, dropped) = match self.has_wrong {
            true => parse_wrong_head(inner, start, limits)?,
            false => parse_head(inner, start, limits.header_count)?,
        };
        unfold(inner, first);
        inner.head = HeadParts {
            status,
            version: match inner.buffer.get(start + MINOR_VERSION_AT) {
                Some(b'0') => Version::Http10,
                _ => Version::Http11,
            },
            bytes: start as u32..end as u32,
            reason: reason.start as u32..reason.end as u32,
            fields: first as u32..inner.fields.len() as u32,
        };
        Ok(dropped)
    }
}

/// Whether the beginning of a status line may have this byte at this offset.
fn is_of_status_line(at: u8, byte: u8) -> bool {
    match at {
        0..7 => byte == b"HTTP/1."[usize::from(at)],
        // Any minor version is read as the highest one that is known (RFC 9110 §2.5).
        7 => byte.is_ascii_digit(),
        8 => byte == b' ',
        9 => matches!(byte, b'1'..=b'9'),
        10 | 11 => byte.is_ascii_digit(),
        _ => false,
    }
}

/// Length of `HTTP/1.`.
const MINOR_VERSION_AT: usize = 7;

/// Length of `HTTP/1.1 200`.
const STATUS_CODE_END: u8 = 12;

/// Length of `HTTP/1.1 200 `.
const STATUS_LINE_PREFIX: usize = STATUS_CODE_END as usize + 1;

/// The headers that decide about the body and about the connection (RFC 9112 §6.3, §9.3).
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

impl Framing {
    /// The length of the body, if the head is that of a usual answer and says nothing else about the body and the
    /// connection; else 0.
    pub(super) fn only_length(&self, head: &HeadParts) -> u64 {
        let says_more = self.transfer_encoding != TransferEncoding::Absent
            || self.close
            || self.keep_alive_timeout.is_some();
        match self.content_length {
            Some(Ok(length))
                if head.status == 200 && head.version == Version::Http11 && !says_more =>
            {
                length
            }
            _ => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum TransferEncoding {
    #[default]
    Absent,
    /// Without any coding in it.
    Empty,
    Chunked,
    /// What HTTP/1.1 had in RFC 2616 and has no more.
    Identity,
    Unsupported,
}

/// Parses the head at the start of `input` in one pass, if it is complete and plain: CRLF line ends, one blank in the
/// status line, no folded lines, within the limits, no more fields than there are slots. It must be the first head
/// of its response; its ranges count from the start of an empty buffer. Returns its length. `None` leaves everything
/// else, malformed heads included, to [`HeadScan`] and [`parse_head`], so that the outcome does not depend on how the
/// input is split.
///
/// Accepts nothing that `httparse` refuses, and gives the same fields (property-tested). It costs a fifth of that,
/// because it does not resume and tolerates no variants.
#[inline(always)] // into its only caller
pub(super) fn parse_plain(input: &[u8], limits: &Limits, inner: &mut Inner) -> Option<usize> {
    if input.len() < WINDOW {
        return None;
    }
    let (version, status, reason_end) = match input.starts_with(USUAL_STATUS_LINE) {
        true => (Version::Http11, 200, USUAL_STATUS_LINE.len() - 2),
        false => parse_status_line(input)?,
    };
    let slots = inner.fields.refill();
    let room = slots.len().min(limits.header_count.min(MAX_HEADERS));
    let mut slots = slots[..room].iter_mut();
    let mut at = reason_end + 2;
    loop {
        // Keep this loop small: few values and no calls, so that all of it stays in registers.
        while let Some((colon, end)) = usual_line(input, at) {
            if colon == at {
                return None;
            }
            *slots.next()? = Field {
                name: at as u32,
                name_len: (colon - at) as u32,
                value: (colon + 2) as u32,
                value_len: (end - colon - 2) as u32,
            };
            at = end + 2;
        }
        if input[at..].starts_with(b"\r\n") {
            break;
        }
        let slot = slots.next()?;
        at = other_line(input, at, slot)?;
    }
    let length = at + 2;
    // A head of at most so many bytes needs no look at its single lines, and its offsets fit into 32 bits.
    if length
        > limits
            .head_bytes
            .min(limits.header_line)
            .min(u32::MAX as usize)
    {
        return None;
    }
    let count = room - slots.len();
    inner.fields.set_len(count);
    inner.head = HeadParts {
        status,
        version,
        bytes: 0..length as u32,
        reason: STATUS_LINE_PREFIX as u32..reason_end as u32,
        fields: 0..count as u32,
    };
    Some(length)
}

/// The ends of the name and of the value in the line at `at`, if the line is of the usual form: letters, digits, `-`
/// and `.` (or nothing), a colon, one blank, visible ASCII characters with blanks between them, CRLF.
#[inline(always)]
fn usual_line(input: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let colon = loop {
        let window = window(input, at)?;
        // At most 16, so that the bytes after it are in the window.
        let n = (token_stops(window.first_chunk()?) | 0x1_0000).trailing_zeros() as usize;
        at += n;
        if window[n..n + 2] == *b": " && window[n + 2] > b' ' {
            break at;
        }
        if n < 16 {
            return None;
        }
    };
    at += 1;
    loop {
        // Begins one byte early, so that the byte before the CR is in the same window.
        let window = window(input, at)?;
        let stops = text_stops(window.first_chunk()?);
        if stops == 0 {
            at += 15;
            continue;
        }
        let n = ((stops >> 1) | 0x8000).trailing_zeros() as usize;
        if window[n] > b' ' && window[n + 1..n + 3] == *b"\r\n" {
            return Some((colon, at + n + 1));
        }
        return None;
    }
}

/// The window of `input` at `at`; `None` if it would end after the input. `input` must be at least one window long.
#[inline(always)]
fn window(input: &[u8], at: usize) -> Option<&[u8; WINDOW]> {
    if at > input.len() - WINDOW {
        return None; // lets the compiler leave out the bounds check below
    }
    input[at..].first_chunk()
}

/// Sixteen bytes for the vector, and three after a name that fills them: a colon, a blank and the first byte of the
/// value.
const WINDOW: usize = 19;

/// Parses any plain line at `at`, and returns where the next line begins. Folded lines, which have no name at their
/// start, and malformed lines are left to [`parse_head`].
#[cold]
fn other_line(input: &[u8], at: usize, slot: &mut Field) -> Option<usize> {
    let colon = token_end(input, at);
    if colon == at || input.get(colon) != Some(&b':') {
        return None;
    }
    let end = text_end(input, colon + 1);
    let Some(b"\r\n") = input.get(end..end + 2) else {
        return None;
    };
    *slot = Field::new(input, &input[at..colon], trim(&input[colon + 1..end]));
    Some(end + 2)
}

/// A plain status line: version, status, and the offset of the CRLF.
#[cold]
fn parse_status_line(input: &[u8]) -> Option<(Version, u16, usize)> {
    let start = input.first_chunk::<STATUS_LINE_PREFIX>()?;
    let version = match start.first_chunk()? {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        _ => return None,
    };
    let &[
        ..,
        b' ',
        a @ b'1'..=b'9',
        b @ b'0'..=b'9',
        c @ b'0'..=b'9',
        b' ',
    ] = start
    else {
        return None;
    };
    let status = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
    let end = text_end(input, STATUS_LINE_PREFIX);
    (input.get(end..end + 2)? == b"\r\n").then_some((version, status, end))
}

/// The status line of nearly all responses.
const USUAL_STATUS_LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// The status, the place of the reason phrase in the buffer, and how many lines were dropped.
type StatusLine = (u16, Range<usize>, u32);

/// Parses a complete head, which [`HeadScan`] takes for right.
#[inline(never)] // keeps the large stack frame out of the caller
fn parse_head(
    inner: &mut Inner,
    start: usize,
    max_headers: usize,
) -> Result<StatusLine, ErrorKind> {
    let Inner { buffer, fields, .. } = inner;
    // The parser knows no minor version above 1.
    let minor = buffer.get_mut(start + MINOR_VERSION_AT);
    let minor = minor.filter(|digit| matches!(digit, b'2'..=b'9'));
    let minor = minor.map(|digit| std::mem::replace(digit, b'1'));
    let (head, max_headers) = (&buffer[start..], max_headers.min(MAX_HEADERS));
    let mut slots = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let slots = &mut slots[..max_headers];
    let mut parsed = httparse::Response::new(&mut []);
    ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut parsed, head, slots)
        .map_err(|error| match error {
            httparse::Error::TooManyHeaders => LimitExceeded::HeaderCount(max_headers).into(),
            httparse::Error::Status | httparse::Error::Version | httparse::Error::Token => {
                ErrorKind::from(PeerFault::BadStatusLine)
            }
            _ => PeerFault::BadHeader.into(),
        })?;
    for header in &*parsed.headers {
        fields.push(Field::new(buffer, header.name.as_bytes(), header.value));
    }
    let status = parsed.code.unwrap_or(0);
    // Not taken from `httparse`, which drops a phrase that is not ASCII.
    let reason_end = start + text_end(head, STATUS_CODE_END.into());
    let reason = reason_end.min(start + STATUS_LINE_PREFIX)..reason_end;
    if let Some(digit) = minor {
        buffer[start + MINOR_VERSION_AT] = digit;
    }
    Ok((status, reason, 0))
}

/// Parses a complete head that has lines which the grammar does not permit, as [`parse_head`] does without those lines.
/// [`HeadScan`] has checked the status line.
#[cold]
fn parse_wrong_head(
    inner: &mut Inner,
    start: usize,
    limits: &Limits,
) -> Result<StatusLine, ErrorKind> {
    let head = &inner.buffer[start..];
    let line_end = line_end(head, 0);
    let blanks = head[..line_end].iter().skip(MINOR_VERSION_AT + 1);
    let code_at = MINOR_VERSION_AT + 1 + blanks.take_while(|byte| **byte == b' ').count();
    let (code, reason) = head[code_at..line_end].split_at(3.min(line_end - code_at));
    let status = code.iter().fold(0, |status, digit| {
        status * 10 + u16::from(digit.wrapping_sub(b'0'))
    });
    let reason_at = start + line_end - reason.len().saturating_sub(1);
    let reason = reason_at..reason_at + text_end(reason.get(1..).unwrap_or_default(), 0);
    let dropped = parse_lines(inner, start + line_end, limits, Some(limits.header_line))?;
    Ok((status, reason, dropped.ok_or(PeerFault::BadHeader)?))
}

/// Parses the lines in the buffer from `at` on, up to an empty one, and appends their fields. With a longest line, drops
/// what is longer, and lines that the grammar does not permit, unless they may be meant to frame the body. Returns how
/// many fields were dropped, or `None` for what may not be dropped.
fn parse_lines(
    Inner { buffer, fields, .. }: &mut Inner,
    mut at: usize,
    limits: &Limits,
    drops_beyond: Option<usize>,
) -> Result<Option<u32>, LimitExceeded> {
    let most = limits.header_count.min(MAX_HEADERS);
    let (mut count, mut dropped) = (0, 0);
    while at < buffer.len() && !matches!(buffer[at..], [b'\n', ..] | [b'\r', b'\n', ..]) {
        let mut end = line_end(buffer, at);
        let mut is_long = drops_beyond.is_some_and(|longest| end - at > longest);
        while let Some(b' ' | b'\t') = buffer.get(end) {
            let next = line_end(buffer, end);
            is_long |= drops_beyond.is_some_and(|longest| next - end > longest);
            end = next;
        }
        if count == most {
            return Err(LimitExceeded::HeaderCount(most));
        }
        count += 1;
        let line = &buffer[at..end];
        match split_line(line).filter(|_| !is_long) {
            Some((name, value)) => fields.push(Field::new(buffer, name, value)),
            None if drops_beyond.is_some() && !may_frame(line) => dropped += 1,
            None => return Ok(None),
        }
        at = end;
    }
    Ok(Some(dropped))
}

/// The offset after the line at `at`.
fn line_end(section: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &section[at..]).map_or(section.len(), |lf| at + lf + 1)
}

/// The name and the value of a line, or of several that are folded; `None` if the grammar does not permit them.
fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = line.split_at(token_end(line, 0));
    let value = value.strip_prefix(b":").filter(|_| !name.is_empty())?;
    let mut parts = value.split(|&byte| byte == b'\n');
    parts
        .all(|part| text_end(part, 0) == part.strip_suffix(b"\r").unwrap_or(part).len())
        .then(|| (name, trim(value)))
}

/// Whether a line that is not read as it is written may be meant as `Content-Length` or `Transfer-Encoding`.
fn may_frame(line: &[u8]) -> bool {
    let letters = line.iter().filter(|byte| byte.is_ascii_alphabetic());
    let letters: Vec<u8> = letters.map(u8::to_ascii_lowercase).collect();
    let has = |name| memchr::memmem::find(&letters, name).is_some();
    has(b"contentlength".as_slice()) || has(b"transferencoding")
}

/// Parses the complete trailer section in the buffer from `start` on, and appends the fields that may stand in trailers.
/// Folded values are copied without their line breaks to the end of the buffer. Returns how many lines were dropped.
pub(super) fn parse_trailers(
    inner: &mut Inner,
    start: usize,
    limits: &Limits,
    lenient: bool,
) -> Result<u32, ErrorKind> {
    let first = inner.fields.len();
    let dropped = parse_lines(inner, start, limits, lenient.then_some(usize::MAX))?;
    unfold(inner, first);
    let Inner { buffer, fields, .. } = inner;
    let mut kept = first;
    for at in first..fields.len() {
        let name = &buffer[fields[at].name()];
        let is = |forbidden: &str| name.eq_ignore_ascii_case(forbidden.as_bytes());
        if !FORBIDDEN_TRAILERS.split(' ').any(is) {
            fields[kept] = fields[at];
            kept += 1;
        }
    }
    fields.set_len(kept);
    Ok(dropped.ok_or(PeerFault::BadTrailer)?)
}

impl Framing {
    /// What the fields of one head mean for the framing. Their ranges are offsets into `buffer`. An error of
    /// `content_length` only says that [`content_length`] must look at all fields together.
    #[inline]
    pub(crate) fn of(buffer: &[u8], fields: &[Field]) -> Self {
        let mut framing = Self::default();
        for field in fields {
            // The lengths of `connection` and `keep-alive`, `content-length`, `transfer-encoding`; few other headers
            // have them.
            if matches!(field.name_len, 10 | 14 | 17) {
                framing.handle_header(&buffer[field.name()], &buffer[field.value()]);
            }
        }
        framing
    }

    #[inline(always)]
    fn handle_header(&mut self, name: &[u8], value: &[u8]) {
        if is_name(name, b"content-length") {
            match parse_content_length(value) {
                Ok(length) if self.content_length.is_none() => {
                    self.content_length = Some(Ok(length));
                }
                _ => self.content_length = Some(Err(PeerFault::ConflictingContentLength)),
            }
        } else {
            self.handle_rarer_header(name, value);
        }
    }

    fn handle_rarer_header(&mut self, name: &[u8], value: &[u8]) {
        if is_name(name, b"connection") {
            for token in list(value) {
                self.close |= token.eq_ignore_ascii_case(b"close");
                self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if is_name(name, b"keep-alive") {
            // Several lines are one list (RFC 9110 §5.3).
            let timeout = || list(value).find_map(keep_alive_timeout);
            self.keep_alive_timeout = self.keep_alive_timeout.or_else(timeout);
        } else if is_name(name, b"transfer-encoding") {
            use TransferEncoding::{Absent, Chunked, Empty, Identity, Unsupported};
            if self.transfer_encoding == Absent {
                self.transfer_encoding = Empty;
            }
            // Empty elements do not count (RFC 9110 §5.6.1.2).
            for coding in list(value).filter(|coding| !coding.is_empty()) {
                self.transfer_encoding = match self.transfer_encoding {
                    Absent | Empty if coding.eq_ignore_ascii_case(b"chunked") => Chunked,
                    Absent | Empty if coding.eq_ignore_ascii_case(b"identity") => Identity,
                    _ => Unsupported,
                };
            }
        }
    }
}

/// The length that several fields, or a list in one field, announce. Identical values count as one. Anything else is an
/// error (RFC 9112 §6.3 (5)), also `30` and `030`: two readers may take them for different numbers.
#[cold]
pub(super) fn content_length(buffer: &[u8], fields: &[Field]) -> Result<u64, PeerFault> {
    let mut items = fields
        .iter()
        .filter(|field| is_name(&buffer[field.name()], b"content-length"))
        .flat_map(|field| buffer[field.value()].split(|&byte| byte == b','))
        .map(trim);
    let first = items.next().unwrap_or_default();
    let length = parse_content_length(first)?;
    for item in items {
        parse_content_length(item)?;
        if item != first {
            return Err(PeerFault::ConflictingContentLength);
        }
    }
    Ok(length)
}

/// Whether a token equals the name `lower` (lower-case letters and `-`), ignoring case: no other byte of a token
/// becomes one of these when the bit for lower case is set. Compares eight bytes at a time; the groups may overlap.
#[inline(always)]
fn is_name<const N: usize>(token: &[u8], lower: &[u8; N]) -> bool {
    const { assert!(N >= 8 && N <= 24) };
    let eight = |name: &[u8], at| {
        name[at..]
            .first_chunk()
            .map(|eight| u64::from_le_bytes(*eight))
    };
    let middle = if N > 16 { (N - 8) / 2 } else { 0 };
    token.len() == N
        && [0, middle, N - 8].iter().all(|&at| {
            eight(token, at).map(|eight| eight | u64::from_le_bytes([0x20; 8])) == eight(lower, at)
        })
}

#[inline]
fn parse_content_length(digits: &[u8]) -> Result<u64, PeerFault> {
    let value = digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        let more = value.checked_mul(10)?.checked_add(digit.into());
        more.filter(|_| digit <= 9)
    });
    let value = value.filter(|_| !digits.is_empty());
    value.ok_or(PeerFault::BadContentLength)
}

fn keep_alive_timeout(parameter: &[u8]) -> Option<u32> {
    let (name, value) = parameter.split_at_checked("timeout=".len())?;
    // `parse` would accept a sign.
    let is_number = value.iter().all(u8::is_ascii_digit);
    let is_timeout = is_number && name.eq_ignore_ascii_case(b"timeout=");
    std::str::from_utf8(value)
        .ok()?
        .parse()
        .ok()
        .filter(|_| is_timeout)
}

/// The elements of a comma-separated list, without the whitespace around them.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

fn trim(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

/// Replaces each obs-fold in the fields from `first` on by one SP (RFC 9112 §5.2), in a copy at the end of the buffer.
fn unfold(Inner { buffer, fields, .. }: &mut Inner, first: usize) {
    for field in &mut fields[first..] {
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

/// The most headers in one head, whatever the limits say.
const MAX_HEADERS: usize = 1024;

/// Fields that would change framing, routing or authentication after the head was processed (RFC 9110 §6.5.1).
const FORBIDDEN_TRAILERS: &str = "authorization cache-control connection content-encoding \
    content-length content-range content-type expect host keep-alive max-forwards pragma \
    proxy-authenticate proxy-authorization range set-cookie te trailer transfer-encoding upgrade \
    www-authenticate";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proto::Response;

    fn show(inner: &Inner, buffer: &[u8]) -> String {
        let fields: Vec<_> = inner.fields.iter().map(|f| f.show(buffer)).collect();
        format!("{:?} {fields:?}", inner.head)
    }

    /// Names and values end at every position of their windows, and the input ends at every position after the head.
    #[test]
    fn plain_lines_of_every_length() {
        let (many, limits) = ("x".repeat(40), Limits::default());
        let inner = &mut *Response::new().0;
        for (name, value) in (1..40).flat_map(|name| (0..40).map(move |value| (name, value))) {
            let head = format!(
                "HTTP/1.1 200 OK\r\n{}: {}\r\n\r\n",
                &many[..name],
                &many[..value]
            );
            for behind in 0..24 {
                let input = format!("{head}{}", &many[..behind]);
                let length = parse_plain(input.as_bytes(), &limits, inner);
                assert_eq!(length, Some(head.len()), "{input:?}");
                let shown = format!("{}: {}", &many[..name], &many[..value]);
                assert_eq!(inner.fields[0].show(input.as_bytes()), shown);
                let bytes = inner.head.bytes.clone();
                assert_eq!((inner.fields.len(), bytes), (1, 0..head.len() as u32));
            }
        }
    }

    /// The first head with many fields allocates the slots for the next one.
    #[test]
    fn more_fields_than_slots() {
        let lines: String = (0..200).map(|n| format!("Name: value {n}\r\n")).collect();
        let input = format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes();
        let (inner, limits) = (&mut *Response::new().0, Limits::default());
        assert_eq!(parse_plain(&input, &limits, inner), None);
        assert_eq!((inner.fields.len(), inner.head.status), (0, 0));
        inner.buffer = input.clone();
        HeadScan::new(false).parse(inner, 0, &limits).unwrap();
        let slow = show(inner, &input);
        assert_eq!(parse_plain(&input, &limits, inner), Some(input.len()));
        assert_eq!(show(inner, &input), slow);
        let few = Limits {
            header_count: 199,
            ..limits
        };
        assert_eq!(parse_plain(&input, &few, inner), None);
    }

    proptest! {
        /// What the fast path accepts, `httparse` accepts with the same result. The fast path accepts all plain heads
        /// that are long enough.
        #[test]
        fn the_fast_path_agrees_with_httparse(
            version in "HTTP/1\\.[01] ",
            line in "[1-9][0-9]{2} [ -~\\t\u{e9}]{0,20}",
            headers in prop::collection::vec(("[a-zA-Z0-9-]{1,40}|[!#$%&'*+.^_`|~a-zA-Z0-9-]{0,20}", "[ \\t]{0,2}[ -~\\t\u{e9}]{0,30}| [!-~]{0,50}"), 0..6),
            damage in prop::option::of((any::<prop::sample::Index>(), prop::sample::select(b"\r\n\0 :\x7f\t\x1f\x80(".to_vec()))),
        ) {
            let mut input = format!("{version}{line}\r\n").into_bytes();
            for (name, value) in &headers {
                input.extend(format!("{name}:{value}\r\n").bytes());
            }
            input.extend(b"\r\n");
            if let Some((at, byte)) = &damage {
                let at = at.index(input.len());
                input[at] = *byte;
            }
            let inner = &mut *Response::new().0;
            let fast = parse_plain(&input, &Limits::default(), inner);
            let plain = input.len() >= WINDOW && headers.iter().all(|(name, _)| !name.is_empty());
            prop_assert!(fast.is_some() == plain || damage.is_some());
            if let Some(length) = fast {
                inner.buffer = input[..length].to_vec();
                let fast = show(inner, &inner.buffer);
                inner.fields.set_len(0);
                let slow = HeadScan::new(false).parse(inner, 0, &Limits::default());
                slow.expect("httparse accepts it");
                prop_assert_eq!(fast, show(inner, &inner.buffer));
            }
        }
    }
}
