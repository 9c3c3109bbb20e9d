//! `;encoder=` of `-F`: the content transfer encodings of the parts of a form (RFC 2045 §6), as curl makes them.

use std::cmp::Ordering;
use std::io::{self, Read};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// How the content of a part is encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Encoder {
    /// As it is.
    Binary,
    /// As it is.
    EightBit,
    /// As it is, if it is ASCII.
    SevenBit,
    Base64,
    QuotedPrintable,
}

impl Encoder {
    const ALL: [Self; 5] = [
        Self::Binary,
        Self::EightBit,
        Self::SevenBit,
        Self::Base64,
        Self::QuotedPrintable,
    ];

    /// The encoder with this name, in any case.
    pub(super) fn named(typed: &[u8]) -> Option<Self> {
        let is = |encoder: &Self| typed.eq_ignore_ascii_case(encoder.name().as_bytes());
        Self::ALL.into_iter().find(is)
    }

    /// The value of `Content-Transfer-Encoding`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::EightBit => "8bit",
            Self::SevenBit => "7bit",
            Self::Base64 => "base64",
            Self::QuotedPrintable => "quoted-printable",
        }
    }

    /// The length of so many bytes when they are encoded; `None` if it depends on the bytes.
    pub(super) fn length(self, plain: u64) -> Option<u64> {
        match self {
            Self::Binary | Self::EightBit | Self::SevenBit => Some(plain),
            Self::Base64 => {
                let digits = plain.div_ceil(3).checked_mul(4)?;
                let line_ends = plain.div_ceil(OF_LINE as u64).saturating_sub(1);
                digits.checked_add(line_ends.checked_mul(2)?)
            }
            Self::QuotedPrintable => (plain == 0).then_some(0),
        }
    }

    /// Reads what `source` has, and encodes it.
    pub(super) fn read<R: Read>(self, source: R) -> Encoded<R> {
        Encoded {
            encoder: self,
            source,
            plain: Vec::new(),
            at_end: false,
            column: 0,
            encoded: io::Cursor::default(),
        }
    }
}

/// The source of a part, encoded.
pub(super) struct Encoded<R> {
    encoder: Encoder,
    source: R,
    /// Read, and not encoded yet.
    plain: Vec<u8>,
    /// The source has no more.
    at_end: bool,
    /// Characters in the last line.
    column: usize,
    /// Encoded, and not taken yet.
    encoded: io::Cursor<Vec<u8>>,
}

impl<R: Read> Read for Encoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.encoder {
            Encoder::Binary | Encoder::EightBit => self.source.read(buffer),
            Encoder::SevenBit => {
                let count = self.source.read(buffer)?;
                match buffer[..count].iter().find(|byte| !byte.is_ascii()) {
                    None => Ok(count),
                    Some(byte) => {
                        let cause = format!("byte 0x{byte:02x} cannot be sent with encoder=7bit");
                        Err(io::Error::new(io::ErrorKind::InvalidData, cause))
                    }
                }
            }
            Encoder::Base64 => self.read_with(Self::base64, buffer),
            Encoder::QuotedPrintable => self.read_with(Self::quoted_printable, buffer),
        }
    }
}

impl<R: Read> Encoded<R> {
    /// `encode` encodes all that does not depend on bytes that are still to come.
    fn read_with(
        &mut self,
        encode: fn(&mut Self) -> Vec<u8>,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        loop {
            let count = self.encoded.read(buffer)?;
            if count > 0 || buffer.is_empty() || self.at_end {
                return Ok(count);
            }
            let read = (&mut self.source)
                .take(PIECE)
                .read_to_end(&mut self.plain)?;
            self.at_end = read == 0;
            self.encoded = io::Cursor::new(encode(self));
        }
    }

    fn base64(&mut self) -> Vec<u8> {
        let whole = match self.at_end {
            true => self.plain.len(),
            false => self.plain.len() / OF_LINE * OF_LINE,
        };
        let mut encoded = Vec::with_capacity(whole * 3 / 2);
        for line in self.plain[..whole].chunks(OF_LINE) {
            if self.column > 0 {
                encoded.extend_from_slice(b"\r\n");
            }
            let digits = BASE64_STANDARD.encode(line);
            self.column = digits.len();
            encoded.extend_from_slice(digits.as_bytes());
        }
        self.plain.drain(..whole);
        encoded
    }

    fn quoted_printable(&mut self) -> Vec<u8> {
        let mut encoded = Vec::with_capacity(self.plain.len() * 2);
        let mut at = 0;
        while let Some(&byte) = self.plain.get(at) {
            let as_it_is = match byte {
                b'\r' => match self.ends_line(at) {
                    Some(true) => {
                        encoded.extend_from_slice(b"\r\n");
                        self.column = 0;
                        at += 2;
                        continue;
                    }
                    Some(false) => false,
                    None => break,
                },
                // At the end of a line, it would get lost.
                b' ' | b'\t' => match self.ends_line(at + 1) {
                    Some(ends) => !ends,
                    None => break,
                },
                b'!'..=b'<' | b'>'..=b'~' => true,
                _ => false,
            };
            let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            let word = if as_it_is {
                &[byte][..]
            } else {
                &[b'=', high, low]
            };
            let column = self.column + word.len();
            let fits = match column.cmp(&LONGEST_LINE) {
                Ordering::Less => true,
                // The `=` of a line that goes on needs room.
                Ordering::Equal => match self.ends_line(at + 1) {
                    Some(ends) => ends,
                    None => break,
                },
                Ordering::Greater => false,
            };
            if fits {
                encoded.extend_from_slice(word);
                self.column = column;
                at += 1;
            } else {
                encoded.extend_from_slice(b"=\r\n");
                self.column = 0;
            }
        }
        self.plain.drain(..at);
        encoded
    }

    /// Whether a line ends at this place, with CR LF or with the content. `None`: the next bytes decide.
    fn ends_line(&self, at: usize) -> Option<bool> {
        match self.plain.get(at..).unwrap_or_default() {
            [b'\r', b'\n', ..] => Some(true),
            [] if self.at_end => Some(true),
            [] => None,
            [b'\r'] if !self.at_end => None,
            _ => Some(false),
        }
    }
}

/// The longest line (RFC 2045 §6.7, §6.8).
const LONGEST_LINE: usize = 76;
/// The bytes of a line of base64.
const OF_LINE: usize = LONGEST_LINE / 4 * 3;
/// Bytes that are read at once.
const PIECE: u64 = 8 * 1024;
const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
