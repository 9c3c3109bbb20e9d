//! The chunked transfer coding (RFC 9112 §7.1), decoded up to the size line of the last chunk. Bytes in, byte counts
//! out; no I/O, no allocation. The exchange reads the trailer section that follows, with the limits of headers.
//!
//! Line ends must be CRLF. Bare LF and unchecked bytes after the data let two readers see different bodies. Sizes are
//! hexadecimal digits only. Of an extension, only what is needed to find its end is checked (a quoted string can hold a
//! `;`). Extensions are limited in length and dropped.

use super::Limits;
use crate::error::{ErrorKind, LimitExceeded, PeerFault};

/// The decoder of one chunked body.
#[derive(Debug)]
pub(crate) struct ChunkDecoder {
    state: ChunkState,
    /// Size of the chunk while its size line is read; bytes that are left while its data is read.
    size: u64,
    /// Bytes of the current size line that have come. Small, because each call has one of these values.
    line: u32,
    /// Framing bytes that have come in this body, line ends included.
    overhead: u64,
    /// Data bytes that the chunks so far have announced.
    data: u64,
    /// The most bytes of data that the chunks may announce.
    most: u64,
    /// Take blanks between a size and its line end.
    lenient: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChunkState {
    /// Expects the first digit of a size.
    Size,
    /// Expects another digit, or the end of the size.
    SizeDigits,
    /// Blanks came after the size: only an extension may follow (`BWS ";"`), unless the decoder is lenient.
    SizeBlank,
    Extension,
    ExtensionQuoted,
    /// Expects the byte after a backslash in a quoted string.
    ExtensionEscaped,
    LineLf,
    Data,
    DataCr,
    DataLf,
    Last,
}

/// What the decoder found.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Chunk {
    /// So many bytes of data, which end at the new position.
    Data(usize),
    /// All input is used; the body continues.
    More,
    /// The size line of the last chunk was read; the trailer section follows.
    Last,
}

impl ChunkDecoder {
    /// A chunk whose announced size would take the body above `most` bytes will be refused before its data comes.
    pub(crate) fn new(lenient: bool, most: Option<u64>) -> Self {
        Self {
            state: ChunkState::Size,
            size: 0,
            line: 0,
            overhead: 0,
            data: 0,
            most: most.unwrap_or(u64::MAX),
            lenient,
        }
    }

    /// Changes how many bytes of data the chunks may announce.
    pub(crate) fn limit_data(&mut self, most: u64) {
        self.most = most;
    }

    /// Reads `input` from `*pos` on, up to the end of the next piece of data, and advances `pos`.
    pub(crate) fn next(
        &mut self,
        input: &[u8],
        pos: &mut usize,
        limits: &Limits,
    ) -> Result<Chunk, ErrorKind> {
        loop {
            if self.state == ChunkState::Last {
                return Ok(Chunk::Last);
            }
            let Some(&byte) = input.get(*pos) else {
                return Ok(Chunk::More);
            };
            if self.state == ChunkState::Data {
                let left = usize::try_from(self.size).unwrap_or(usize::MAX);
                let n = left.min(input.len() - *pos);
                *pos += n;
                self.size -= n as u64;
                if self.size == 0 {
                    self.state = ChunkState::DataCr;
                }
                return Ok(Chunk::Data(n));
            }
            *pos += 1;
            self.handle_framing(byte, limits)?;
        }
    }

    fn handle_framing(&mut self, byte: u8, limits: &Limits) -> Result<(), ErrorKind> {
        use ChunkState::*;
        self.overhead += 1;
        self.line = self.line.saturating_add(1);
        if self.line as usize > limits.chunk_line {
            return Err(LimitExceeded::ChunkLine(limits.chunk_line).into());
        }
        self.state = match (self.state, byte) {
            (Size | SizeDigits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.push_digit(byte)?;
                SizeDigits
            }
            (SizeDigits | Extension, b'\r') => LineLf,
            (SizeBlank, b'\r') if self.lenient => LineLf,
            (SizeDigits | SizeBlank, b';') => Extension,
            (SizeDigits | SizeBlank, b' ' | b'\t') => SizeBlank,
            (Extension, b'"') => ExtensionQuoted,
            (ExtensionQuoted, b'"') => Extension,
            (ExtensionQuoted, b'\\') => ExtensionEscaped,
            (ExtensionEscaped, b'\t' | b' '..=b'~' | 0x80..) => ExtensionQuoted,
            (Extension | ExtensionQuoted, b'\t' | b' '..=b'~' | 0x80..) => self.state,
            (LineLf, b'\n') => self.end_line(limits)?,
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => {
                self.line = 0;
                Size
            }
            _ => return Err(PeerFault::BadChunk.into()),
        };
        Ok(())
    }

    fn push_digit(&mut self, digit: u8) -> Result<(), PeerFault> {
        let value = char::from(digit).to_digit(16).unwrap_or_default();
        if self.size >> (MAX_SIZE_BITS - 4) != 0 {
            return Err(PeerFault::BadChunk);
        }
        self.size = self.size << 4 | u64::from(value);
        Ok(())
    }

    fn end_line(&mut self, limits: &Limits) -> Result<ChunkState, ErrorKind> {
        let data = self.data.checked_add(self.size);
        self.data = data.ok_or(PeerFault::BadChunk)?;
        if self.data > self.most {
            return Err(LimitExceeded::BodyBytes(self.most).into());
        }
        // The data of this chunk does not count yet. Otherwise a huge announced size would permit any length of
        // extensions.
        let allowed = (self.data - self.size).saturating_mul(OVERHEAD_PER_BYTE);
        if self.overhead > allowed.saturating_add(limits.chunk_overhead as u64) {
            return Err(LimitExceeded::ChunkOverhead(limits.chunk_overhead).into());
        }
        self.line = 0;
        Ok(match self.size {
            0 => ChunkState::Last,
            _ => ChunkState::Data,
        })
    }
}

/// Bits of the size of a chunk. No body has 2^63 bytes: such a size is an overflow elsewhere, or an attack (curl refuses
/// it, too).
const MAX_SIZE_BITS: u32 = 63;

/// Framing bytes allowed for each byte of data. A chunk of one byte has five.
const OVERHEAD_PER_BYTE: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `input` in pieces of `step` bytes.
    fn decode(input: &[u8], step: usize, limits: &Limits) -> Result<Vec<u8>, String> {
        let mut decoder = ChunkDecoder::new(false, Some(1 << 30));
        let mut body = Vec::new();
        for piece in input.chunks(step) {
            let mut pos = 0;
            loop {
                match decoder.next(piece, &mut pos, limits) {
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
            ("3\r\nabc\r\n0\r\n", Ok("abc")),
            ("00000000000000000003\r\nabc\r\n0\r\n", Ok("abc")),
            (
                "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n",
                Ok("01234567890123456789"),
            ),
            ("3;a=b;c=\";\\\"\"\r\nabc\r\n0;x\r\n", Ok("abc")),
            ("3 ;ext\r\nabc\r\n0\r\n", Ok("abc")),
            ("3 \r\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("3;a=\"\r\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("\r\n", Err("Peer(BadChunk)")),
            (";x\r\n", Err("Peer(BadChunk)")),
            ("0x3\r\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("3\nabc\r\n0\r\n", Err("Peer(BadChunk)")),
            ("3\r\nabcd\r\n0\r\n", Err("Peer(BadChunk)")),
            ("10000000000000005\r\nabc", Err("Peer(BadChunk)")),
            ("ffffffffffffffff", Err("Peer(BadChunk)")),
            (
                "000000007fffffffffffffff\r\n",
                Err("Limit(BodyBytes(1073741824))"),
            ),
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
    fn one_byte_chunks_pass_and_padded_chunks_are_refused() {
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
