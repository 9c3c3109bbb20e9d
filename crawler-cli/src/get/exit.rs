//! curl's exit codes, and the mapping of the engine's errors to them.

use std::error::Error as _;
use std::fmt;
use std::process::ExitCode;

use courser::proto::{ProxyFault, UrlError};
use courser::{ErrorKind, LimitExceeded, Misuse, PeerFault, Phase, TlsFault, TlsPart};

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
    UploadFailed = 25,
    Read = 26,
    Timeout = 28,
    Range = 33,
    TlsHandshake = 35,
    BadResume = 36,
    FileNotRead = 37,
    Aborted = 42,
    BadArgument = 43,
    Interface = 45,
    TooManyRedirects = 47,
    BadOption = 49,
    Empty = 52,
    Send = 55,
    Receive = 56,
    ClientCertificate = 58,
    Cipher = 59,
    ServerCertificate = 60,
    BadEncoding = 61,
    TooLarge = 63,
    Rewind = 65,
    LoginDenied = 67,
    Authorities = 77,
    RevocationList = 82,
    PinnedKey = 90,
    Proxy = 97,
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

/// The exit code for an error of the engine with this cause in this phase.
fn exit_for(kind: &ErrorKind, phase: Phase) -> Exit {
    match kind {
        ErrorKind::Misuse(Misuse::BodySource(_) | Misuse::BodyLength { .. }) => Exit::Read,
        ErrorKind::Misuse(Misuse::TlsConfig(error)) => match error.part() {
            TlsPart::Roots => Exit::Authorities,
            TlsPart::ClientCertificate | TlsPart::ClientKey => Exit::ClientCertificate,
            TlsPart::Crl => Exit::RevocationList,
            TlsPart::CipherSuites | TlsPart::KeyExchange => Exit::Cipher,
            _ => Exit::TlsHandshake,
        },
        ErrorKind::Misuse(Misuse::ChunkedInHttp10) => Exit::UploadFailed,
        // Other parts of the URL were checked before.
        ErrorKind::Misuse(Misuse::Url { .. }) => Exit::NotResolved,
        ErrorKind::Misuse(Misuse::Proxy { error, .. }) => match error {
            UrlError::Scheme(_) => Exit::NotConnected,
            _ => Exit::ProxyNotResolved,
        },
        ErrorKind::Misuse(_) => Exit::Usage,
        ErrorKind::Dns(_) => Exit::NotResolved,
        ErrorKind::Tls(fault) => exit_for_tls(fault, phase),
        ErrorKind::Proxy(fault) => exit_for_proxy(fault),
        ErrorKind::Denied(_) | ErrorKind::DeniedName(_) | ErrorKind::Shortage(_) => {
            Exit::NotConnected
        }
        ErrorKind::Peer(PeerFault::BadContentCoding) => Exit::BadEncoding,
        ErrorKind::Limit(
            LimitExceeded::ContentCodings(_)
            | LimitExceeded::DecodedBytes(_)
            | LimitExceeded::DecodeRatio(_)
            | LimitExceeded::ZstdWindow(_),
        ) => Exit::BadEncoding,
        ErrorKind::Peer(PeerFault::Empty) => Exit::Empty,
        ErrorKind::Peer(PeerFault::Truncated) if phase == Phase::Body => Exit::Partial,
        ErrorKind::Peer(PeerFault::UnsupportedTransferEncoding) => Exit::BadEncoding,
        // curl takes such a response for HTTP/0.9 or for an unsupported version.
        ErrorKind::Peer(PeerFault::BadStatusLine) => Exit::UnsupportedProtocol,
        ErrorKind::Peer(
            PeerFault::BadHeader
            | PeerFault::BadContentLength
            | PeerFault::ConflictingContentLength
            | PeerFault::UnexpectedUpgrade,
        ) => Exit::WeirdReply,
        ErrorKind::Limit(LimitExceeded::BodyBytes(_) | LimitExceeded::HeldBytes(_)) => {
            Exit::TooLarge
        }
        ErrorKind::Timeout(_) => Exit::Timeout,
        ErrorKind::Cancelled => Exit::Aborted,
        ErrorKind::Limit(LimitExceeded::Waiting(_) | LimitExceeded::Connections(_)) => {
            Exit::NotConnected
        }
        ErrorKind::Io(_) if matches!(phase, Phase::Queue | Phase::Connect) => Exit::NotConnected,
        ErrorKind::Io(_) if phase == Phase::Tls => Exit::TlsHandshake,
        ErrorKind::Io(_) if phase == Phase::Send => Exit::Send,
        // Everything else: curl's "failure in receiving network data".
        _ => Exit::Receive,
    }
}

fn exit_for_tls(fault: &TlsFault, phase: Phase) -> Exit {
    match fault {
        TlsFault::Expired { .. }
        | TlsFault::NotYetValid { .. }
        | TlsFault::WrongName { .. }
        | TlsFault::UnknownIssuer
        | TlsFault::Revoked
        | TlsFault::RevocationUnknown
        | TlsFault::CrlExpired { .. }
        | TlsFault::BadCertificate(_) => Exit::ServerCertificate,
        TlsFault::PinnedKey => Exit::PinnedKey,
        _ if matches!(phase, Phase::Tls | Phase::Proxy) => Exit::TlsHandshake,
        _ if phase == Phase::Send => Exit::Send,
        _ => Exit::Receive,
    }
}

fn exit_for_proxy(fault: &ProxyFault) -> Exit {
    match fault {
        ProxyFault::Name(_) => Exit::ProxyNotResolved,
        ProxyFault::NotSocks5(_)
        | ProxyFault::NoMethod
        | ProxyFault::UnofferedMethod(_)
        | ProxyFault::Credentials
        | ProxyFault::Inexpressible
        | ProxyFault::Socks(_)
        | ProxyFault::BadSocksReply => Exit::Proxy,
        // The bytes before the handshake are not TLS.
        ProxyFault::Surplus => Exit::TlsHandshake,
        _ => Exit::Receive,
    }
}

/// OpenSSL's number for a fault of a certificate: the value of `%{ssl_verify_result}`.
pub(super) fn verify_result(fault: &TlsFault) -> u16 {
    match fault {
        TlsFault::Expired { .. } => 10,
        TlsFault::NotYetValid { .. } => 9,
        TlsFault::UnknownIssuer => 20,
        TlsFault::Revoked => 23,
        TlsFault::RevocationUnknown => 3,
        TlsFault::CrlExpired { .. } => 12,
        // OpenSSL's X509_V_ERR_UNSPECIFIED.
        TlsFault::WrongName { .. } | TlsFault::BadCertificate(_) => 1,
        _ => 0,
    }
}

/// Why a transfer failed. `Display` is one line without the URL: the phase and the cause.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    phase: String,
    cause: String,
    /// What the user could do about it.
    pub(super) hint: &'static str,
    /// The reader of stdout closed the pipe: the command prints no error and starts no further transfer.
    pub(super) reader_gone: bool,
}

impl Failure {
    pub(super) fn new(exit: Exit, phase: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self {
            exit,
            phase: phase.into(),
            cause: cause.to_string(),
            hint: "",
            reader_gone: false,
        }
    }

    /// The same failure, with what it is about before its cause.
    pub(super) fn about(mut self, what: &str) -> Self {
        self.cause = format!("{what}: {}", self.cause);
        self
    }

    /// A failed write to `place`.
    pub(super) fn write(place: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Exit::Write, "write", format_args!("{place}: {error}"))
    }

    /// A failed write to stdout.
    pub(super) fn stdout(error: &std::io::Error) -> Self {
        Self {
            reader_gone: error.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::write("stdout", error)
        }
    }
}

impl From<&courser::Error> for Failure {
    fn from(error: &courser::Error) -> Self {
        let phase = match (error.kind(), error.phase(), error.remote()) {
            (ErrorKind::Misuse(_), ..) => "request".into(),
            (_, Phase::Connect, Some(remote)) => format!("{CONNECTING}{remote}"),
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
        let exit = exit_for(error.kind(), error.phase());
        let hint = match (exit, error.phase()) {
            (Exit::ServerCertificate, Phase::Proxy) => {
                "; --proxy-cacert FILE trusts its authority, --proxy-insecure any certificate"
            }
            (Exit::ServerCertificate, _) => {
                "; --cacert FILE trusts its authority, -k any certificate"
            }
            _ => "",
        };
        Self {
            hint,
            ..Self::new(exit, phase, cause)
        }
    }
}

impl Failure {
    /// The same failure; if a connection failed, the message says that its address is a proxy's.
    pub(super) fn at_proxy(mut self) -> Self {
        if let Some(address) = self.phase.strip_prefix(CONNECTING) {
            self.phase = format!("connecting to the proxy {address}");
        }
        self
    }
}

/// Precedes an address in the phase of a failure.
const CONNECTING: &str = "connecting to ";

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.phase, self.cause)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use courser::{Part, Shortage, TimeLimit};

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
        let invalid = Misuse::Invalid {
            part: Part::Method,
            at: 0,
            byte: 0,
        };
        // In the order of `PHASES`.
        let cases: [(ErrorKind, [u8; 6]); 28] = [
            (io(), [7, 7, 55, 56, 56, 56]),
            (TimeLimit::Total.into(), [28; 6]),
            (TimeLimit::Queue.into(), [28; 6]),
            (TimeLimit::Connect.into(), [28; 6]),
            (TimeLimit::BetweenBytes.into(), [28; 6]),
            (invalid.into(), [2; 6]),
            (Misuse::FramingHeader("Expect").into(), [2; 6]),
            (
                Misuse::BodySource(io::ErrorKind::NotFound.into()).into(),
                [26; 6],
            ),
            (Empty.into(), [52; 6]),
            (Truncated.into(), [56, 56, 56, 56, 56, 18]),
            (BadStatusLine.into(), [1; 6]),
            (BadHeader.into(), [8; 6]),
            (BadContentLength.into(), [8; 6]),
            (ConflictingContentLength.into(), [8; 6]),
            (UnexpectedUpgrade.into(), [8; 6]),
            (UnsupportedTransferEncoding.into(), [61; 6]),
            (BadChunk.into(), [56; 6]),
            (BadTrailer.into(), [56; 6]),
            (BodyBytes(1).into(), [63; 6]),
            (HeldBytes(1).into(), [63; 6]),
            (ErrorKind::Shortage(Shortage::Memory), [7; 6]),
            (HeadBytes(1).into(), [56; 6]),
            (HeaderCount(1).into(), [56; 6]),
            (ChunkLine(1).into(), [56; 6]),
            (InterimResponses(1).into(), [56; 6]),
            (Waiting(1).into(), [7; 6]),
            (Connections(1).into(), [7; 6]),
            (ErrorKind::Cancelled, [42; 6]),
        ];
        for (kind, codes) in &cases {
            for (phase, code) in PHASES.into_iter().zip(codes) {
                let exit = exit_for(kind, phase);
                assert_eq!(exit.code(), *code, "{kind:?} while {phase}");
            }
        }
    }

    #[test]
    fn only_a_closed_stdout_is_quiet() {
        let broken = || io::ErrorKind::BrokenPipe.into();
        assert!(Failure::stdout(&broken()).reader_gone);
        assert!(!Failure::write("fifo", &broken()).reader_gone);
        let full = Failure::stdout(&io::ErrorKind::StorageFull.into());
        assert!(!full.reader_gone);
        assert_eq!(full.exit, Exit::Write);
        assert_eq!(full.to_string(), "write: stdout: no storage space");
    }
}
