//! zstd (RFC 8878, RFC 9659), by the crate of that name.

use std::io;

use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::{CodingDecoder, Progress};
use crate::error::{ErrorKind, LimitExceeded, PeerFault};
use crate::proto::Limits;

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
    pub(super) fn begin() -> Result<Box<dyn CodingDecoder>, ErrorKind> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        Ok(Box::new(Self {
            context: DCtx::try_create().ok_or_else(out_of_memory)?,
            state: ZstdState::Start,
            window_log: 0,
        }))
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

impl CodingDecoder for Zstd {
    fn prepare(&mut self, limits: &Limits) -> Result<(), ErrorKind> {
        self.window_log = limits.zstd_window_log.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG);
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

    fn is_complete(&self) -> bool {
        self.state == ZstdState::Between
    }

    fn reset(&mut self) -> bool {
        self.state = ZstdState::Start;
        self.context.reset(ResetDirective::SessionOnly).is_ok()
    }

    fn memory(&self) -> usize {
        self.context.sizeof()
    }
}

/// The limits on the window that the library accepts, also on 32-bit machines.
const MIN_WINDOW_LOG: u8 = 10;
const MAX_WINDOW_LOG: u8 = 30;
