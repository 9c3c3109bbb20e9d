//! curl's exit codes, and which of them an error of the engine is.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::process::ExitCode;

use courser::error::{LimitExceeded, PeerFault, RedirectFault, TlsFault, TlsPart};
use courser::proto::{ProxyFault, UrlError};
use courser::{ErrorKind, Misuse, Phase};

/// How a transfer, or the whole command, ended: the numbers of curl's manual.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Exit {
    #[default]
    Ok = 0,
    UnsupportedProtocol = 1,
    Usage = 2,
    MalformedUrl = 3,
    ProxyNotResolved = 5,
    NotResolved = 6,
    NotConnected = 7,
    WeirdReply = 8,
    Partial = 18,
    HttpError = 22,
    Write = 23,
    Read = 26,
    Timeout = 28,
    TlsHandshake = 35,
    TooManyRedirects = 47,
    Empty = 52,
    Send = 55,
    Receive = 56,
    ClientCertificate = 58,
    ServerCertificate = 60,
    BadEncoding = 61,
    TooLarge = 63,
    Rewind = 65,
    Authorities = 77,
    Proxy = 97,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

/// The exit code for an error of the engine with this cause in this phase.
fn exit_for(kind: &ErrorKind, phase: Phase) -> Exit {
    match kind {
        ErrorKind::Misuse(misuse) => match misuse {
            Misuse::BodySource(_) | Misuse::BodyLength { .. } => Exit::Read,
            Misuse::BodyNotReplayable => Exit::Rewind,
            Misuse::TlsConfig(error) => match error.part() {
                TlsPart::Roots => Exit::Authorities,
                TlsPart::ClientCertificate | TlsPart::ClientKey => Exit::ClientCertificate,
                _ => Exit::TlsHandshake,
            },
            Misuse::Url { error, .. } => exit_for_url(error),
            _ => Exit::Usage,
        },
        ErrorKind::Redirect { fault, .. } => match fault {
            RedirectFault::Url(error) => exit_for_url(error),
            RedirectFault::BodyNotReplayable => Exit::Rewind,
            _ => Exit::Receive,
        },
        ErrorKind::Dns(_) => Exit::NotResolved,
        ErrorKind::Shortage(_) => Exit::NotConnected,
        ErrorKind::Timeout(_) => Exit::Timeout,
        ErrorKind::Limit(LimitExceeded::Redirects(_)) => Exit::TooManyRedirects,
        ErrorKind::Limit(LimitExceeded::ContentCodings(_) | LimitExceeded::ZstdWindow(_)) => {
            Exit::BadEncoding
        }
        ErrorKind::Peer(fault) => match fault {
            PeerFault::Empty => Exit::Empty,
            PeerFault::Truncated if phase == Phase::Body => Exit::Partial,
            PeerFault::BadContentCoding | PeerFault::UnsupportedTransferEncoding => {
                Exit::BadEncoding
            }
            // curl takes such an answer for HTTP/0.9 or for an unsupported version.
            PeerFault::BadStatusLine => Exit::UnsupportedProtocol,
            PeerFault::BadHeader
            | PeerFault::BadContentLength
            | PeerFault::ConflictingContentLength
            | PeerFault::UnexpectedUpgrade => Exit::WeirdReply,
            _ => Exit::Receive,
        },
        ErrorKind::Proxy(ProxyFault::Name(_)) => Exit::ProxyNotResolved,
        ErrorKind::Proxy(
            ProxyFault::Status(_) | ProxyFault::Http(_) | ProxyFault::Surplus | ProxyFault::Closed,
        ) => Exit::Receive,
        ErrorKind::Proxy(_) => Exit::Proxy,
        ErrorKind::Tls(
            TlsFault::Expired { .. }
            | TlsFault::NotYetValid { .. }
            | TlsFault::WrongName { .. }
            | TlsFault::UnknownIssuer
            | TlsFault::BadCertificate(_),
        ) => Exit::ServerCertificate,
        ErrorKind::Tls(_) if phase == Phase::Proxy => Exit::TlsHandshake,
        ErrorKind::Io(_) if matches!(phase, Phase::Queue | Phase::Connect) => Exit::NotConnected,
        ErrorKind::Io(_) | ErrorKind::Tls(_) if phase == Phase::Tls => Exit::TlsHandshake,
        ErrorKind::Io(_) | ErrorKind::Tls(_) if phase == Phase::Send => Exit::Send,
        // Everything else: curl's "failure in receiving network data".
        _ => Exit::Receive,
    }
}

fn exit_for_url(error: &UrlError) -> Exit {
    match error {
        UrlError::Scheme(_) => Exit::UnsupportedProtocol,
        // As in curl, which asks a name server for such a name.
        UrlError::HostName | UrlError::HostNumber => Exit::NotResolved,
        _ => Exit::MalformedUrl,
    }
}

/// Why a transfer failed. `Display` is one line without the URL: the phase and the cause.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    phase: String,
    cause: String,
    /// The reader of stdout closed the pipe: the command prints no error and starts no further transfer.
    pub(super) reader_gone: bool,
}

impl Failure {
    pub(super) fn new(exit: Exit, phase: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self {
            exit,
            phase: phase.into(),
            cause: cause.to_string(),
            reader_gone: false,
        }
    }

    pub(super) fn usage(cause: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, "options", cause)
    }

    /// A file that cannot be read.
    pub(super) fn read(name: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(Exit::Read, "read", format_args!("{name}: {error}"))
    }

    /// A failed write to `place`.
    pub(super) fn write(place: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(Exit::Write, "write", format_args!("{place}: {error}"))
    }

    /// A failed write to stdout.
    pub(super) fn stdout(error: &io::Error) -> Self {
        Self {
            reader_gone: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::write("stdout", error)
        }
    }
}

impl From<&courser::Error> for Failure {
    fn from(error: &courser::Error) -> Self {
        let phase = match (error.kind(), error.phase(), error.remote()) {
            (ErrorKind::Misuse(_), ..) => "request".into(),
            (_, Phase::Connect, Some(remote)) => format!("connecting to {remote}"),
            (_, phase, _) => phase.to_string(),
        };
        let cause = match error.kind() {
            // The `Display` of these two errors repeats the phase; their causes do not.
            ErrorKind::Io(error) => error.to_string(),
            ErrorKind::Timeout(limit) => format!("timed out ({limit})"),
            _ => match error.source() {
                Some(source) => format!("{}: {source}", error.what()),
                None => error.what().to_string(),
            },
        };
        Self::new(exit_for(error.kind(), error.phase()), phase, cause)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.phase, self.cause)
    }
}

#[cfg(test)]
mod tests {
    use courser::error::{Part, Shortage, TimeLimit};

    use super::*;

    const PHASES: [Phase; 6] = [
        Phase::Queue,
        Phase::Connect,
        Phase::Send,
        Phase::FirstByte,
        Phase::Head,
        Phase::Body,
    ];

    #[test]
    fn codes_by_cause_and_phase() {
        use LimitExceeded::*;
        use PeerFault::*;
        let io = || ErrorKind::Io(io::ErrorKind::ConnectionReset.into());
        let url = |error| {
            let text = String::new();
            ErrorKind::from(Misuse::Url { text, error })
        };
        let invalid = Misuse::Invalid {
            part: Part::Method,
            name: "".into(),
            at: 0,
            byte: 0,
        };
        let source = Misuse::BodySource(io::ErrorKind::NotFound.into());
        // In the order of `PHASES`.
        let cases: [(ErrorKind, [u8; 6]); 25] = [
            (io(), [7, 7, 55, 56, 56, 56]),
            (TimeLimit::Total.into(), [28; 6]),
            (TimeLimit::Connect.into(), [28; 6]),
            (url(UrlError::NoHost), [3; 6]),
            (url(UrlError::HostName), [6; 6]),
            (invalid.into(), [2; 6]),
            (Misuse::FramingHeader("Expect").into(), [2; 6]),
            (source.into(), [26; 6]),
            (Misuse::BodyNotReplayable.into(), [65; 6]),
            (Truncated.into(), [56, 56, 56, 56, 56, 18]),
            (BadStatusLine.into(), [1; 6]),
            (BadHeader.into(), [8; 6]),
            (BadContentLength.into(), [8; 6]),
            (ConflictingContentLength.into(), [8; 6]),
            (UnexpectedUpgrade.into(), [8; 6]),
            (UnsupportedTransferEncoding.into(), [61; 6]),
            (BadContentCoding.into(), [61; 6]),
            (BadChunk.into(), [56; 6]),
            (BadTrailer.into(), [56; 6]),
            (ErrorKind::Shortage(Shortage::Memory), [7; 6]),
            (ZstdWindow(1).into(), [61; 6]),
            (HeadBytes(1).into(), [56; 6]),
            (HeaderCount(1).into(), [56; 6]),
            (ChunkLine(1).into(), [56; 6]),
            (InterimResponses(1).into(), [56; 6]),
        ];
        for (kind, codes) in &cases {
            for (phase, code) in PHASES.into_iter().zip(codes) {
                let exit = exit_for(kind, phase);
                assert_eq!(exit as u8, *code, "{kind:?} while {phase}");
            }
        }
    }
}
