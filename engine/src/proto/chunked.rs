//! Chunked transfer decoding (RFC 9112 §7.1) up to the last chunk's size line. Bytes in, byte counts out; no I/O, no
//! allocation. The trailer section that follows is read by the exchange, with the header limits.
//!
//! Line ends are CRLF only here: bare LF and unchecked bytes after the data are how two readers come to see different
//! bodies. Sizes are hexadecimal digits only. Extensions are checked against their grammar as far as finding their
//! end needs (quoted strings hide a `;`), bounded, and dropped.

use super::Limits;
use crate::error::{ErrorKind, LimitExceeded, PeerFault};

/// The decoder of one chunked body.
#[derive(Debug)]
pub(crate) struct ChunkDecoder {
    state: State,
    /// Size of the chunk whose line is being read, or bytes left of the one whose data is.
    size: u64,
    /// Bytes of the current size line so far.
    line: usize,
    /// Framing bytes so far, line ends included.
    overhead: u64,
    /// Data bytes announced so far.
    data: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// The first digit of a size.
    Size,
    /// More digits, or the end of the size.
    SizeDigits,
    /// Blanks after the size: only an extension may follow (`BWS ";"`).
    SizeBlank,
    Extension,
    ExtensionQuoted,
    /// The byte after a backslash in a quoted string.
    ExtensionEscaped,
    LineLf,
    Data,
    DataCr,
    DataLf,
    Last,
}

/// What the decoder found next.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Chunk {
    /// That many bytes of data; the position is now behind them.
    Data(usize),
    /// All input is used; the body goes on.
    More,
    /// The size line of the last chunk is read; the trailer section follows.
    Last,
}

impl ChunkDecoder {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Size,
            size: 0,
            line: 0,
            overhead: 0,
            data: 0,
        }
    }

    /// Reads on from `input[*pos..]` to the next piece of data, and moves `pos`. `body_limit` is checked against the
    /// size that a chunk announces, before its data comes.
    pub(crate) fn next(
        &mut self,
        input: &[u8],
        pos: &mut usize,
        limits: &Limits,
        body_limit: Option<u64>,
    ) -> Result<Chunk, ErrorKind> {
        loop {
            if self.state == State::Last {
                return Ok(Chunk::Last);
            }
            let Some(&byte) = input.get(*pos) else {
                return Ok(Chunk::More);
            };
            if self.state == State::Data {
                let left = usize::try_from(self.size).unwrap_or(usize::MAX);
                let n = left.min(input.len() - *pos);
                *pos += n;
                self.size -= n as u64;
                if self.size == 0 {
                    self.state = State::DataCr;
                }
                return Ok(Chunk::Data(n));
            }
            *pos += 1;
            self.handle_framing(byte, limits, body_limit)?;
        }
    }

    fn handle_framing(
        &mut self,
        byte: u8,
        limits: &Limits,
        body_limit: Option<u64>,
    ) -> Result<(), ErrorKind> {
        self.overhead += 1;
        self.line += 1;
        if self.line > limits.chunk_line {
            return Err(LimitExceeded::ChunkLine(limits.chunk_line).into());
        }
        self.state = match (self.state, byte) {
            (State::Size | State::SizeDigits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.push_digit(byte)?;
                State::SizeDigits
            }
            (State::SizeDigits | State::Extension, b'\r') => State::LineLf,
            (State::SizeDigits | State::SizeBlank, b';') => State::Extension,
            (State::SizeDigits | State::SizeBlank, b' ' | b'\t') => State::SizeBlank,
            (State::Extension, b'"') => State::ExtensionQuoted,
            (State::ExtensionQuoted, b'"') => State::Extension,
            (State::ExtensionQuoted, b'\\') => State::ExtensionEscaped,
            (State::ExtensionEscaped, b'\t' | b' '..=b'~' | 0x80..) => State::ExtensionQuoted,
            (State::Extension | State::ExtensionQuoted, b'\t' | b' '..=b'~' | 0x80..) => self.state,
            (State::LineLf, b'\n') => self.end_line(limits, body_limit)?,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => {
                self.line = 0;
                State::Size
            }
            _ => return Err(PeerFault::BadChunk.into()),
        };
        Ok(())
    }

    fn push_digit(&mut self, digit: u8) -> Result<(), PeerFault> {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            _ => (digit | 0x20) - b'a' + 10,
        };
        if self.size >> 60 != 0 {
            return Err(PeerFault::BadChunk); // the next shift would lose a digit
        }
        self.size = self.size << 4 | u64::from(value);
        Ok(())
    }

    fn end_line(&mut self, limits: &Limits, body_limit: Option<u64>) -> Result<State, ErrorKind> {
        self.data = self
            .data
            .checked_add(self.size)
            .ok_or(PeerFault::BadChunk)?;
        if let Some(limit) = body_limit
            && self.data > limit
        {
            return Err(LimitExceeded::BodyBytes(limit).into());
        }
        // The data of this chunk counts only once it is the previous one's: else a huge announced size would excuse
        // any extension.
        let earned = (self.data - self.size).saturating_mul(OVERHEAD_PER_BYTE);
        if self.overhead > earned.saturating_add(limits.chunk_overhead as u64) {
            return Err(LimitExceeded::ChunkOverhead(limits.chunk_overhead).into());
        }
        self.line = 0;
        Ok(if self.size == 0 {
            State::Last
        } else {
            State::Data
        })
    }
}

/// Framing bytes that a byte of data may bring: a chunk of one byte has five.
const OVERHEAD_PER_BYTE: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `input` in pieces of `step` bytes.
    fn decode(input: &[u8], step: usize, limits: &Limits) -> Result<Vec<u8>, String> {
        let mut decoder = ChunkDecoder::new();
        let mut body = Vec::new();
        for piece in input.chunks(step) {
            let mut pos = 0;
            loop {
                match decoder.next(piece, &mut pos, limits, Some(1 << 30)) {
                    Ok(Chunk::Data(n)) => body.extend_from_slice(&piece[pos - n..pos]),
                    Ok(Chunk::More) => break,
                    Ok(Chunk::Last) => return Ok(body),
                    Err(kind) => return Err(format!("{kind:?}")),
                }
            }
        }
        Err("unfinished".into())
    }

    #[test]
    fn sizes_and_extensions() {
        let long = format!("3;{}\r\nabc\r\n0\r\n", "x".repeat(5000));
        let cases: &[(&str, Result<&str, &str>)] = &[
            ("0\r\n", Ok("")),
            ("3\r\nabc\r\n0\r\n", Ok("abc")),
            ("00000000000000000003\r\nabc\r\n0\r\n", Ok("abc")),
            (
                "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n",
                Ok("01234567890123456789"),
            ),
            ("3;a=b;c=\";\\\"\"\r\nabc\r\n0;x\r\n", Ok("abc")),
            ("3 ;ext\r\nabc\r\n0\r\n", Ok("abc")),
            ("3;\r\nabc\r\n0\r\n", Ok("abc")),
            ("3 \r\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("3;a=\"\r\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("\r\n", Err("Peer(BadChunk)")),
            (";x\r\n", Err("Peer(BadChunk)")),
            ("+3\r\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("0x3\r\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("3\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("3\r\nabc\n0\r\n", Err("Peer(BadChunk)")),
            ("3\r\nabcd\r\n0\r\n", Err("Peer(BadChunk)")),
            ("10000000000000005\r\nabc", Err("Peer(BadChunk)")),
            ("ffffffffffffffff\r\n", Err("Limit(BodyBytes(1073741824))")),
            (&long, Err("Limit(ChunkLine(4096))")),
            ("3\r\nab", Err("unfinished")),
        ];
        for (input, expected) in cases {
            for step in 1..=input.len() {
                let got = decode(input.as_bytes(), step, &Limits::default());
                let got = got.as_deref().map_err(String::as_str);
                assert_eq!(got, expected.map(str::as_bytes), "{input:.40?} by {step}");
            }
        }
    }

    #[test]
    fn one_byte_chunks_pass_and_padded_ones_do_not() {
        let plain = "1\r\nx\r\n".repeat(100_000) + "0\r\n";
        assert_eq!(
            decode(plain.as_bytes(), 4096, &Limits::default()).map(|b| b.len()),
            Ok(100_000)
        );
        let padded = format!("1;{}\r\nx\r\n", "p".repeat(1000)).repeat(100) + "0\r\n";
        assert_eq!(
            decode(padded.as_bytes(), 4096, &Limits::default()),
            Err("Limit(ChunkOverhead(16384))".into())
        );
    }
}
