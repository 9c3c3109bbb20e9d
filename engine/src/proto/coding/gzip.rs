//! gzip (RFC 1952) and deflate (RFC 1950, RFC 1951): the framing here, the compressed data by `flate2`.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{CodingDecoder, Progress};
use crate::error::{ErrorKind, PeerFault};

/// gzip (RFC 1952): one or more members, each with a header, deflated data and a checksum.
pub(super) struct Gzip {
    state: GzipState,
    inflate: Decompress,
    flags: u8,
    header: Crc,
    data: Crc,
}

/// What is read next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GzipState {
    /// The byte at this offset of the ten fixed bytes of a header.
    Fixed(u8),
    ExtraLength,
    ExtraLengthHigh(u8),
    Extra(u16),
    Name,
    Comment,
    /// The byte at this offset of the checksum of the header.
    HeaderCrc(u8),
    Data,
    /// The byte at this offset of the checksum and the length.
    Trailer(u8),
    /// A member has ended.
    Between,
    /// Zeros after the last member.
    Padding,
}

impl Gzip {
    pub(super) fn begin() -> Result<Box<dyn CodingDecoder>, ErrorKind> {
        Ok(Box::new(Self {
            state: GzipState::Fixed(0),
            inflate: Decompress::new(false),
            flags: 0,
            header: Crc::new(),
            data: Crc::new(),
        }))
    }

    fn begin_member(&mut self) {
        self.inflate.reset(false);
        self.flags = 0;
        self.header.reset();
        self.data.reset();
    }

    fn handle_byte(&mut self, byte: u8) -> Result<(), PeerFault> {
        use GzipState::*;
        let before = self.state;
        self.state = match (before, byte) {
            (Fixed(0), 0x1f) => Fixed(1),
            (Fixed(1), 0x8b) => Fixed(2),
            (Fixed(2), 8) => Fixed(3),
            (Fixed(3), flags) if flags & FLAGS_RESERVED == 0 => {
                self.flags = flags;
                Fixed(4)
            }
            (Fixed(0..4), _) => return Err(PeerFault::BadContentCoding),
            (Fixed(9..), _) => self.next_part(0),
            (Fixed(at), _) => Fixed(at + 1),
            (ExtraLength, low) => ExtraLengthHigh(low),
            (ExtraLengthHigh(low), high) => match u16::from_le_bytes([low, high]) {
                0 => self.next_part(1),
                length => Extra(length),
            },
            (Extra(1), _) => self.next_part(1),
            (Extra(left), _) => Extra(left - 1),
            (Name, 0) => self.next_part(2),
            (Comment, 0) => self.next_part(3),
            (Name | Comment, _) => before,
            (HeaderCrc(0), low) if low == self.header.sum() as u8 => HeaderCrc(1),
            (HeaderCrc(1), high) if high == (self.header.sum() >> 8) as u8 => Data,
            (Trailer(at), byte) if byte == self.trailer()[usize::from(at & 7)] => match at {
                7.. => Between,
                _ => Trailer(at + 1),
            },
            (Between, 0x1f) => {
                self.begin_member();
                Fixed(1)
            }
            (Between | Padding, 0) => Padding,
            (HeaderCrc(_) | Trailer(_) | Between | Padding, _) => {
                return Err(PeerFault::BadContentCoding);
            }
            (Data, _) => Data,
        };
        // Whether the header has a checksum is known only after its first bytes.
        if !matches!(before, HeaderCrc(_) | Data | Trailer(_) | Padding) {
            self.header.update(&[byte]);
        }
        Ok(())
    }

    /// What is read next: the first of the parts of the header from this one on that the flags announce, or the data.
    fn next_part(&self, from: usize) -> GzipState {
        let mut parts = PARTS[from..].iter();
        let next = parts.find(|(flag, _)| self.flags & flag != 0);
        next.map_or(GzipState::Data, |(_, state)| *state)
    }

    /// The checksum and the length that must stand after the data.
    fn trailer(&self) -> [u8; 8] {
        let (sum, length) = (self.data.sum(), self.data.amount());
        (u64::from(length) << 32 | u64::from(sum)).to_le_bytes()
    }
}

impl CodingDecoder for Gzip {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, ErrorKind> {
        let mut used = 0;
        while self.state != GzipState::Data {
            let Some(&byte) = input.get(used) else {
                return Ok(Progress { used, made: 0 });
            };
            used += 1;
            self.handle_byte(byte)?;
        }
        let (mut step, ended) = inflate(&mut self.inflate, &input[used..], out)?;
        self.data.update(&out[..step.made]);
        if ended {
            self.state = GzipState::Trailer(0);
        }
        step.used += used;
        Ok(step)
    }

    fn is_complete(&self) -> bool {
        matches!(self.state, GzipState::Between | GzipState::Padding)
    }

    fn reset(&mut self) -> bool {
        self.begin_member();
        self.state = GzipState::Fixed(0);
        true
    }

    fn memory(&self) -> usize {
        INFLATE_MEMORY
    }
}

/// deflate in zlib's format, as RFC 9110 §8.4.1.2 defines it, or bare, as some servers send it. The first two bytes
/// show which: a bare stream that begins like zlib's header would be a stored block with bits set that encoders leave
/// zero.
pub(super) struct Deflate {
    state: DeflateState,
    inflate: Decompress,
}

#[derive(Clone, Copy, Debug)]
enum DeflateState {
    First,
    /// Expects the second byte; this is the first one.
    Second(u8),
    Data,
    Ended,
}

impl Deflate {
    pub(super) fn begin() -> Result<Box<dyn CodingDecoder>, ErrorKind> {
        Ok(Box::new(Self {
            state: DeflateState::First,
            inflate: Decompress::new(true),
        }))
    }
}

impl CodingDecoder for Deflate {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, ErrorKind> {
        match (self.state, input.first()) {
            (DeflateState::Data, _) => {}
            (_, None) => return Ok(Progress::default()),
            (DeflateState::First, Some(&byte)) => {
                self.state = DeflateState::Second(byte);
                return Ok(Progress { used: 1, made: 0 });
            }
            (DeflateState::Second(first), Some(&byte)) => {
                let is_zlib = first & 0x0f == 8
                    && first >> 4 <= 7
                    && u16::from_be_bytes([first, byte]) % 31 == 0;
                self.inflate.reset(is_zlib);
                self.state = DeflateState::Data;
                // One byte is too short for any output or for an end.
                let (step, _) = inflate(&mut self.inflate, &[first], out)?;
                if step.used != 1 || step.made != 0 {
                    return Err(PeerFault::BadContentCoding.into());
                }
            }
            (DeflateState::Ended, Some(_)) => return Err(PeerFault::BadContentCoding.into()),
        }
        let (step, ended) = inflate(&mut self.inflate, input, out)?;
        if ended {
            self.state = DeflateState::Ended;
        }
        Ok(step)
    }

    fn is_complete(&self) -> bool {
        matches!(self.state, DeflateState::Ended)
    }

    fn reset(&mut self) -> bool {
        self.state = DeflateState::First;
        true
    }

    fn memory(&self) -> usize {
        INFLATE_MEMORY
    }
}

/// One step of deflate. Returns also whether the end of the data was reached.
fn inflate(
    inflate: &mut Decompress,
    input: &[u8],
    out: &mut [u8],
) -> Result<(Progress, bool), PeerFault> {
    let (total_in, total_out) = (inflate.total_in(), inflate.total_out());
    let status = inflate
        .decompress(input, out, FlushDecompress::None)
        .map_err(|_| PeerFault::BadContentCoding)?;
    let step = Progress {
        used: (inflate.total_in() - total_in) as usize,
        made: (inflate.total_out() - total_out) as usize,
    };
    Ok((step, status == Status::StreamEnd))
}

/// The optional parts of a gzip header with their flags, in the order in which they stand.
const PARTS: [(u8, GzipState); 4] = [
    (1 << 2, GzipState::ExtraLength),
    (1 << 3, GzipState::Name),
    (1 << 4, GzipState::Comment),
    (HEADER_CRC, GzipState::HeaderCrc(0)),
];

const HEADER_CRC: u8 = 1 << 1;

/// "Must be zero" (RFC 1952 §2.3.1.2).
const FLAGS_RESERVED: u8 = 0b1110_0000;

/// Bytes of deflate's state and window, about.
const INFLATE_MEMORY: usize = 48 * 1024;
