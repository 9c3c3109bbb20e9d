//! br (RFC 7932), by `brotli_decompressor`.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{CodingDecoder, Progress};
use crate::error::{ErrorKind, PeerFault};

/// br (RFC 7932), without the large windows, which are not part of it: the window is at most 16 MiB, and memory grows
/// with the data.
pub(super) struct Br {
    state: Box<Brotli>,
    ended: bool,
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

impl Br {
    pub(super) fn begin() -> Result<Box<dyn CodingDecoder>, ErrorKind> {
        let alloc = StandardAlloc::default;
        Ok(Box::new(Self {
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            ended: false,
        }))
    }
}

impl CodingDecoder for Br {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, ErrorKind> {
        if self.ended {
            return match input {
                [] => Ok(Progress::default()),
                _ => Err(PeerFault::BadContentCoding.into()),
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
            BrotliResult::ResultFailure => return Err(PeerFault::BadContentCoding.into()),
            BrotliResult::ResultSuccess => self.ended = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Ok(Progress { used, made })
    }

    fn is_complete(&self) -> bool {
        self.ended
    }

    fn reset(&mut self) -> bool {
        false
    }

    fn memory(&self) -> usize {
        size_of::<Brotli>()
    }
}

/// The br decoder counts its input in 32 bits.
const MAX_BROTLI_INPUT: usize = 1 << 30;
