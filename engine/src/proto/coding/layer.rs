//! A decoder for each content coding. Libraries (`flate2`, `brotli_decompressor`, `zstd`) decode the compressed data;
//! this file parses the framing of gzip and deflate, and decides what may follow the end of a coding.
//!
//! | coding | may follow its end |
//! |---|---|
//! | gzip | further members, then zeros (padding, as from tapes and gzip(1)); anything else is an error |
//! | deflate, br | nothing |
//! | zstd | further frames, skippable frames included |

use std::io;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::{Coding, Progress};
use crate::error::{ErrorKind, LimitExceeded, PeerFault};
use crate::proto::Limits;

pub(super) enum LayerDecoder {
    Gzip(Gzip),
    Deflate(Deflate),
    Br(Br),
    Zstd(Zstd),
}

impl LayerDecoder {
    pub(super) fn new(coding: Coding) -> Result<Self, ErrorKind> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(Gzip::new()),
            Coding::Deflate => Self::Deflate(Deflate::new()),
            Coding::Br => Self::Br(Br::new()),
            Coding::Zstd => Self::Zstd(Zstd::new()?),
        })
    }

    /// Sets the limits that hold inside a coding.
    pub(super) fn prepare(&mut self, limits: &Limits) -> Result<(), ErrorKind> {
        match self {
            Self::Zstd(zstd) => zstd.prepare(limits.zstd_window_log),
            Self::Gzip(_) | Self::Deflate(_) | Self::Br(_) => Ok(()),
        }
    }

    pub(super) fn coding(&self) -> Coding {
        match self {
            Self::Gzip(_) => Coding::Gzip,
            Self::Deflate(_) => Coding::Deflate,
            Self::Br(_) => Coding::Br,
            Self::Zstd(_) => Coding::Zstd,
        }
    }

    /// Uses some input, or none, and produces some output. If there is room left in `out`, the coding has no more
    /// output without more input.
    pub(super) fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, ErrorKind> {
        match self {
            Self::Gzip(gzip) => gzip.step(input, out).map_err(ErrorKind::from),
            Self::Deflate(deflate) => deflate.step(input, out).map_err(ErrorKind::from),
            Self::Br(br) => br.step(input, out).map_err(ErrorKind::from),
            Self::Zstd(zstd) => zstd.step(input, out),
        }
    }

    /// Whether the input may end here.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Gzip(gzip) => matches!(gzip.state, GzipState::Between | GzipState::Padding),
            Self::Deflate(deflate) => matches!(deflate.state, DeflateState::Ended),
            Self::Br(br) => br.ended,
            Self::Zstd(zstd) => zstd.state == ZstdState::Between,
        }
    }

    /// Prepares for another body. Returns false if a new decoder costs as little.
    pub(super) fn reset(&mut self) -> bool {
        match self {
            Self::Gzip(gzip) => {
                gzip.begin_member();
                gzip.state = GzipState::Fixed(0);
                true
            }
            Self::Deflate(deflate) => {
                deflate.state = DeflateState::First;
                true
            }
            Self::Br(_) => false,
            Self::Zstd(zstd) => {
                zstd.state = ZstdState::Start;
                zstd.context.reset(ResetDirective::SessionOnly).is_ok()
            }
        }
    }

    /// Bytes of memory that the decoder holds, about.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Gzip(_) | Self::Deflate(_) => INFLATE_MEMORY,
            Self::Br(_) => size_of::<Brotli>(),
            Self::Zstd(zstd) => zstd.context.sizeof(),
        }
    }
}

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
    HeaderCrc,
    HeaderCrcHigh(u8),
    Data,
    /// The byte at this offset of the checksum and the length.
    Trailer(u8),
    /// A member has ended.
    Between,
    /// Zeros after the last member.
    Padding,
}

impl Gzip {
    fn new() -> Self {
        Self {
            state: GzipState::Fixed(0),
            inflate: Decompress::new(false),
            flags: 0,
            header: Crc::new(),
            data: Crc::new(),
        }
    }

    fn begin_member(&mut self) {
        self.inflate.reset(false);
        self.flags = 0;
        self.header.reset();
        self.data.reset();
    }

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, PeerFault> {
        let mut used = 0;
        while self.state != GzipState::Data {
            let Some(&byte) = input.get(used) else {
                return Ok(Progress { used, made: 0 });
            };
            used += 1;
            self.handle_byte(byte)?;
        }
        let (step, ended) = inflate(&mut self.inflate, &input[used..], out)?;
        self.data.update(&out[..step.made]);
        if ended {
            self.state = GzipState::Trailer(0);
        }
        Ok(Progress {
            used: used + step.used,
            made: step.made,
        })
    }

    /// Takes one byte that is not deflated data.
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
            (Fixed(9..), _) => self.state_after(FLAG_START),
            (Fixed(at), _) => Fixed(at + 1),
            (ExtraLength, low) => ExtraLengthHigh(low),
            (ExtraLengthHigh(low), high) => match u16::from_le_bytes([low, high]) {
                0 => self.state_after(FLAG_EXTRA),
                length => Extra(length),
            },
            (Extra(1), _) => self.state_after(FLAG_EXTRA),
            (Extra(left), _) => Extra(left - 1),
            (Name, 0) => self.state_after(FLAG_NAME),
            (Comment, 0) => self.state_after(FLAG_COMMENT),
            (Name | Comment, _) => before,
            (HeaderCrc, low) if low == self.header.sum() as u8 => HeaderCrcHigh(low),
            (HeaderCrcHigh(_), high) if high == (self.header.sum() >> 8) as u8 => Data,
            (HeaderCrc | HeaderCrcHigh(_), _) => return Err(PeerFault::BadContentCoding),
            (Trailer(at), byte) if byte == self.trailer()[usize::from(at & 7)] => match at {
                7.. => Between,
                _ => Trailer(at + 1),
            },
            (Between, 0x1f) => {
                self.begin_member();
                Fixed(1)
            }
            (Between | Padding, 0) => Padding,
            (Trailer(_) | Between | Padding, _) => return Err(PeerFault::BadContentCoding),
            (Data, _) => Data,
        };
        let counts = match before {
            Fixed(_) | Between => true,
            ExtraLength | ExtraLengthHigh(_) | Extra(_) | Name | Comment => {
                self.flags & FLAG_HEADER_CRC != 0
            }
            HeaderCrc | HeaderCrcHigh(_) | Data | Trailer(_) | Padding => false,
        };
        if counts {
            self.header.update(&[byte]);
        }
        Ok(())
    }

    /// The state after this part of the header.
    fn state_after(&self, part: u8) -> GzipState {
        let parts = [
            (FLAG_EXTRA, GzipState::ExtraLength),
            (FLAG_NAME, GzipState::Name),
            (FLAG_COMMENT, GzipState::Comment),
            (FLAG_HEADER_CRC, GzipState::HeaderCrc),
        ];
        // The parts stand in this order. Their flags are numbered in another order: the flag of the checksum is the
        // lowest.
        let from = parts.iter().position(|(flag, _)| *flag == part);
        let later = &parts[from.map_or(0, |from| from + 1)..];
        let next = later.iter().find(|(flag, _)| self.flags & flag != 0);
        next.map_or(GzipState::Data, |(_, state)| *state)
    }

    /// The checksum and the length that must stand after the data.
    fn trailer(&self) -> [u8; 8] {
        let [a, b, c, d] = self.data.sum().to_le_bytes();
        let [e, f, g, h] = self.data.amount().to_le_bytes();
        [a, b, c, d, e, f, g, h]
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
    fn new() -> Self {
        Self {
            state: DeflateState::First,
            inflate: Decompress::new(true),
        }
    }

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, PeerFault> {
        let (mut used, Some(&byte)) = (0, input.first()) else {
            return match self.state {
                DeflateState::Data => self.inflate(input, out),
                _ => Ok(Progress::default()),
            };
        };
        match self.state {
            DeflateState::First => {
                self.state = DeflateState::Second(byte);
                return Ok(Progress { used: 1, made: 0 });
            }
            DeflateState::Second(first) => {
                let is_zlib = first & 0x0f == 8
                    && first >> 4 <= 7
                    && u16::from_be_bytes([first, byte]) % 31 == 0;
                self.inflate.reset(is_zlib);
                self.state = DeflateState::Data;
                // One byte is too short for any output or for an end.
                let (step, _) = inflate(&mut self.inflate, &[first], out)?;
                if step.used != 1 || step.made != 0 {
                    return Err(PeerFault::BadContentCoding);
                }
            }
            DeflateState::Data => {}
            DeflateState::Ended => return Err(PeerFault::BadContentCoding),
        }
        let step = self.inflate(input, out)?;
        used += step.used;
        Ok(Progress {
            used,
            made: step.made,
        })
    }

    fn inflate(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, PeerFault> {
        let (step, ended) = inflate(&mut self.inflate, input, out)?;
        if ended {
            self.state = DeflateState::Ended;
        }
        Ok(step)
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

/// br (RFC 7932), without the large windows, which are not part of it: the window is at most 16 MiB, and memory grows
/// with the data.
pub(super) struct Br {
    state: Box<Brotli>,
    ended: bool,
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

impl Br {
    fn new() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            ended: false,
        }
    }

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, PeerFault> {
        if self.ended {
            return match input {
                [] => Ok(Progress::default()),
                _ => Err(PeerFault::BadContentCoding),
            };
        }
        let input = &input[..input.len().min(MAX_BROTLI_INPUT)];
        let (mut in_left, mut used) = (input.len(), 0);
        let (mut out_left, mut made, mut total) = (out.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut in_left,
            &mut used,
            input,
            &mut out_left,
            &mut made,
            out,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => return Err(PeerFault::BadContentCoding),
            BrotliResult::ResultSuccess => self.ended = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Ok(Progress { used, made })
    }
}

/// zstd (RFC 8878): one or more frames.
pub(super) struct Zstd {
    context: DCtx<'static>,
    state: ZstdState,
    window_log: u8,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ZstdState {
    /// Before the first frame.
    Start,
    InFrame,
    /// A frame has ended, and all its data was delivered.
    Between,
}

impl Zstd {
    fn new() -> Result<Self, ErrorKind> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        Ok(Self {
            context: DCtx::try_create().ok_or_else(out_of_memory)?,
            state: ZstdState::Start,
            window_log: 0,
        })
    }

    fn prepare(&mut self, window_log: u8) -> Result<(), ErrorKind> {
        self.window_log = window_log.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG);
        let parameter = DParameter::WindowLogMax(u32::from(self.window_log));
        let set = self.context.set_parameter(parameter);
        set.map_err(|code| self.error(code)).map(|_| ())
    }

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, ErrorKind> {
        if input.is_empty() && self.state != ZstdState::InFrame {
            return Ok(Progress::default());
        }
        let mut input = InBuffer::around(input);
        let mut out = OutBuffer::around(out);
        self.state = match self.context.decompress_stream(&mut out, &mut input) {
            Ok(0) => ZstdState::Between,
            Ok(_) => ZstdState::InFrame,
            Err(code) => return Err(self.error(code)),
        };
        Ok(Progress {
            used: input.pos(),
            made: out.pos(),
        })
    }

    /// The library returns an error code as its negative.
    fn error(&self, code: usize) -> ErrorKind {
        const WINDOW: usize = ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize;
        const MEMORY: usize = ZSTD_ErrorCode::ZSTD_error_memory_allocation as usize;
        match code.wrapping_neg() {
            WINDOW => LimitExceeded::ZstdWindow(self.window_log).into(),
            MEMORY => io::Error::from(io::ErrorKind::OutOfMemory).into(),
            _ => PeerFault::BadContentCoding.into(),
        }
    }
}

/// Stands before the optional parts of a gzip header.
const FLAG_START: u8 = 0;
const FLAG_HEADER_CRC: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
/// "Must be zero" (RFC 1952 §2.3.1.2).
const FLAGS_RESERVED: u8 = 0b1110_0000;

/// Bytes of deflate's state and window, about.
const INFLATE_MEMORY: usize = 48 * 1024;

/// The br decoder counts its input in 32 bits.
const MAX_BROTLI_INPUT: usize = 1 << 30;

/// The limits on the window that the library accepts, also on 32-bit machines.
const MIN_WINDOW_LOG: u8 = 10;
const MAX_WINDOW_LOG: u8 = 30;
