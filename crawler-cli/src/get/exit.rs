//! curl's exit codes, and which of them a failure of the engine is.

use std::fmt;
use std::process::ExitCode;

/// How a transfer, or the whole command, ended: the numbers of curl's manual.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Exit {
    #[default]
    Ok = 0,
    UnsupportedScheme = 1,
    Usage = 2,
    MalformedUrl = 3,
    NotResolved = 6,
    NotConnected = 7,
    WeirdReply = 8,
    Partial = 18,
    HttpError = 22,
    Write = 23,
    Read = 26,
    Timeout = 28,
    Aborted = 42,
    Empty = 52,
    Send = 55,
    Receive = 56,
    BadEncoding = 61,
    TooLarge = 63,
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a transfer failed. `Display` is one line without the URL: what was being done, and what went wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    phase: &'static str,
    cause: String,
    /// Nobody reads stdout any more: nothing is said about it, and nothing else is worth starting.
    pub(super) reader_gone: bool,
}

impl Failure {
    pub(super) fn new(exit: Exit, phase: &'static str, cause: impl fmt::Display) -> Self {
        Self {
            exit,
            phase,
            cause: cause.to_string(),
            reader_gone: false,
        }
    }

    /// A write to `place` that failed.
    pub(super) fn write(place: impl fmt::Display, error: &std::io::Error) -> Self {
        Self {
            reader_gone: error.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::new(Exit::Write, "write", format_args!("{place}: {error}"))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.phase, self.cause)
    }
}
