//! What every content coding offers to the [`Decoder`](super::Decoder). The codings are in files of their own, so that
//! each can be left out of a build. Libraries (`flate2`, `brotli_decompressor`, `zstd`) decode the compressed data; the
//! files parse the framing of gzip and deflate, and decide what may follow the end of a coding.
//!
//! | coding | may follow its end |
//! |---|---|
//! | gzip | further members, then zeros (padding, as from tapes and gzip(1)); anything else is an error |
//! | deflate, br | nothing |
//! | zstd | further frames, skippable frames included |

use super::Progress;
use crate::error::ErrorKind;
use crate::proto::Limits;

/// A decoder for one content coding.
pub(in crate::proto) trait CodingDecoder: Send + Sync {
    /// Sets the limits that hold inside a coding.
    fn prepare(&mut self, _limits: &Limits) -> Result<(), ErrorKind> {
        Ok(())
    }

    /// Uses some input, or none, and produces some output. If there is room left in `out`, the coding has no more
    /// output without more input.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, ErrorKind>;

    /// Whether the input may end here.
    fn is_complete(&self) -> bool;

    /// Prepares for another body. Returns false if a new decoder costs as little.
    fn reset(&mut self) -> bool;

    /// Bytes of memory that the decoder holds, about.
    fn memory(&self) -> usize;
}
