//! The errors of a TLS session, separated by what a user can do about them, and the errors of the TLS configuration.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a TLS session could not be established or had to end.
///
/// ```
/// use courser::error::{TlsAlert, TlsFault};
///
/// let fault = TlsFault::Alert(TlsAlert(40));
/// assert_eq!(fault.to_string(), "the server ended TLS with alert 40 (handshake_failure)");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TlsFault {
    /// A certificate has expired.
    Expired {
        /// The time since that moment.
        ago: Duration,
    },
    /// A certificate is not valid yet.
    NotYetValid {
        /// The time until that moment.
        ahead: Duration,
    },
    /// The certificate is for other names than the requested one.
    WrongName {
        /// The requested name.
        expected: String,
        /// The names that the certificate has.
        presented: Vec<String>,
    },
    /// The certificate was issued by no trusted root.
    UnknownIssuer,
    /// A configured revocation list names the certificate.
    Revoked,
    /// There are revocation lists, and none of them covers the certificate.
    RevocationUnknown,
    /// The revocation list that covers the certificate is out of date.
    CrlExpired {
        /// The time since that moment.
        ago: Duration,
    },
    /// The public key of the certificate is none of those in [`TlsConfig::pinned_keys`](crate::TlsConfig).
    PinnedKey,
    /// The certificate cannot be accepted for another reason, which the text states.
    BadCertificate(String),
    /// The first bytes of the peer are not TLS.
    NotTls,
    /// The peer and the client have no version, cipher suite or other necessary part of the protocol in common.
    ProtocolMismatch(String),
    /// The peer chose, or insisted on, another application protocol than `http/1.1`.
    Alpn,
    /// The peer ended the session with an alert.
    Alert(TlsAlert),
    /// The peer violated the protocol: a record that cannot be decrypted, an unexpected message.
    BadRecord(String),
    /// The peer sent too many records that bring no content.
    Contentless(ContentlessRecords),
    /// The connection ended during the handshake.
    HandshakeEof,
    /// The connection ended without `close_notify`: the data before may be incomplete (RFC 9112 §9.8).
    Truncated,
    /// The name is neither a DNS name nor an IP address. No certificate can be for it.
    ServerName(String),
    /// The client failed: no random numbers, no clock, keys used up.
    Internal(String),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired { ago } => write!(f, "a certificate expired {} ago", rounded(*ago)),
            Self::NotYetValid { ahead } => {
                let ahead = rounded(*ahead);
                write!(f, "a certificate is not valid for another {ahead}")
            }
            Self::WrongName {
                expected,
                presented,
            } => {
                write!(f, "the certificate is not for {expected}")?;
                let shown = &presented[..presented.len().min(MAX_SHOWN_NAMES)];
                match presented.len() - shown.len() {
                    _ if shown.is_empty() => f.write_str(" and has no name at all"),
                    0 => write!(f, " but for {}", shown.join(", ")),
                    more => write!(f, " but for {} and {more} more", shown.join(", ")),
                }
            }
            Self::UnknownIssuer => f.write_str("the certificate's issuer is not trusted"),
            Self::Revoked => f.write_str("a certificate is revoked"),
            Self::RevocationUnknown => {
                f.write_str("no configured revocation list covers a certificate")
            }
            Self::CrlExpired { ago } => {
                let ago = rounded(*ago);
                write!(f, "a revocation list has been out of date for {ago}")
            }
            Self::PinnedKey => f.write_str("the public key of the certificate is not a pinned one"),
            Self::BadCertificate(why) => write!(f, "bad certificate: {why}"),
            Self::NotTls => f.write_str("the server does not speak TLS on this port"),
            Self::ProtocolMismatch(why) => write!(f, "no TLS in common with the server: {why}"),
            Self::Alpn => f.write_str("the server requires another protocol than http/1.1"),
            Self::Alert(alert) => write!(f, "the server ended TLS with {alert}"),
            Self::BadRecord(why) => write!(f, "the server violated the TLS protocol: {why}"),
            Self::Contentless(records) => write!(f, "the server sent too many {records}"),
            Self::HandshakeEof => f.write_str("the connection ended during the TLS handshake"),
            Self::Truncated => f.write_str("the connection ended without close_notify"),
            Self::ServerName(name) => {
                write!(f, "{name:?} is neither a DNS name nor an IP address")
            }
            Self::Internal(why) => write!(f, "TLS failed in the client: {why}"),
        }
    }
}

impl std::error::Error for TlsFault {}

/// An error of a stream, so that TLS can be used like any stream. It is converted to `ErrorKind::Tls` again.
impl From<TlsFault> for io::Error {
    fn from(fault: TlsFault) -> Self {
        let kind = match fault {
            TlsFault::Truncated | TlsFault::HandshakeEof => io::ErrorKind::UnexpectedEof,
            TlsFault::ServerName(_) => io::ErrorKind::InvalidInput,
            TlsFault::Internal(_) => io::ErrorKind::Other,
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, fault)
    }
}

/// Records of TLS that bring no content, of which a peer sent too many. Each costs the client work, so a peer that sends
/// them without end would get a share of the client for nothing.
///
/// The limits are fixed, and far above what servers send: most send two session tickets, some a few dozen.
///
/// ```
/// use courser::error::{ContentlessRecords, TlsFault};
///
/// let fault = TlsFault::Contentless(ContentlessRecords::Tickets);
/// assert_eq!(fault.to_string(), "the server sent too many TLS session tickets");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ContentlessRecords {
    /// Session tickets (RFC 8446 §4.6.1): more than 256 on one connection.
    Tickets,
    /// Records with no byte in them: more than 32 one after the other.
    Empty,
    /// Changes of the key (RFC 8446 §4.6.3): more than 32 since the last content.
    KeyUpdates,
    /// Requests for a new handshake (RFC 5246 §7.4.1.1), which the client declines: more than one.
    Renegotiations,
    /// Alerts that are mere warnings (RFC 5246 §7.2): more than four.
    Warnings,
    /// Records of any kind: more than 256 KiB since the last content, or in the handshake.
    Any,
}

impl fmt::Display for ContentlessRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tickets => "TLS session tickets",
            Self::Empty => "empty TLS records",
            Self::KeyUpdates => "TLS key updates",
            Self::Renegotiations => "requests to renegotiate TLS",
            Self::Warnings => "TLS warnings",
            Self::Any => "TLS records without content",
        })
    }
}

/// The number of a TLS alert (RFC 8446 §6).
///
/// ```
/// assert_eq!(courser::error::TlsAlert(48).name(), Some("unknown_ca"));
/// assert_eq!(courser::error::TlsAlert(200).to_string(), "alert 200");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TlsAlert(pub u8);

impl TlsAlert {
    /// The name of the alert in the IANA registry, if it has one.
    pub fn name(self) -> Option<&'static str> {
        let alert = ALERTS.iter().find(|(number, _)| *number == self.0);
        alert.map(|(_, name)| *name)
    }
}

impl fmt::Display for TlsAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "alert {}", self.0)?;
        match self.name() {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a [`TlsConfig`](crate::TlsConfig).
///
/// ```
/// use courser::error::TlsPart;
/// use courser::{ClientCertificate, TlsConfig};
///
/// let config = TlsConfig {
///     client: Some(ClientCertificate {
///         chain: b"neither PEM nor DER".to_vec().into(),
///         key: b"as little".to_vec().into(),
///     }),
///     ..TlsConfig::default()
/// };
/// let error = config.build().unwrap_err();
/// assert_eq!(error.part(), TlsPart::ClientCertificate);
/// assert_eq!(error.to_string(), "client certificate: nothing found");
/// ```
#[derive(Debug)]
pub struct TlsConfigError {
    part: TlsPart,
    path: Option<PathBuf>,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl TlsConfigError {
    #[cfg(feature = "tls")]
    pub(crate) fn new(
        part: TlsPart,
        path: Option<&Path>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            part,
            path: path.map(Path::to_owned),
            cause: cause.into(),
        }
    }

    /// The part of the configuration that is wrong.
    pub fn part(&self) -> TlsPart {
        self.part
    }

    /// The file that is wrong, if the part was read from a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.fmt(f)?;
        if let Some(path) = &self.path {
            write!(f, " in {}", path.display())?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl std::error::Error for TlsConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let cause = self.cause.downcast_ref::<io::Error>();
        cause.map(|error| error as &(dyn std::error::Error + 'static))
    }
}

/// A part of a [`TlsConfig`](crate::TlsConfig).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TlsPart {
    /// The trusted authorities.
    Roots,
    /// The certificate of the client.
    ClientCertificate,
    /// The private key of the client.
    ClientKey,
    /// The revocation lists.
    Crl,
    /// The versions.
    Versions,
    /// The cipher suites.
    CipherSuites,
    /// The groups of the key exchange.
    KeyExchange,
    /// The name that replaces that of the host.
    ServerName,
    /// The file that the keys are written to.
    KeyLog,
    /// The sessions that are remembered.
    Resumption,
    /// The keys that a server may have.
    PinnedKeys,
    /// The configuration of rustls that the caller has made.
    Rustls,
}

impl fmt::Display for TlsPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Roots => "roots",
            Self::ClientCertificate => "client certificate",
            Self::ClientKey => "client key",
            Self::Crl => "revocation list",
            Self::Versions => "TLS versions",
            Self::CipherSuites => "cipher suites",
            Self::KeyExchange => "key exchange groups",
            Self::ServerName => "server name",
            Self::KeyLog => "key log",
            Self::Resumption => "remembered sessions",
            Self::PinnedKeys => "pinned keys",
            Self::Rustls => "configuration of rustls",
        })
    }
}

/// A duration in whole units, the largest one that fits.
fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// How many names of a certificate are shown; the others are only counted.
const MAX_SHOWN_NAMES: usize = 4;

/// The registered TLS alerts, also those of older versions.
const ALERTS: &[(u8, &str)] = &[
    (0, "close_notify"),
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (21, "decryption_failed"),
    (22, "record_overflow"),
    (30, "decompression_failure"),
    (40, "handshake_failure"),
    (41, "no_certificate"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (60, "export_restriction"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (86, "inappropriate_fallback"),
    (90, "user_canceled"),
    (100, "no_renegotiation"),
    (109, "missing_extension"),
    (110, "unsupported_extension"),
    (112, "unrecognized_name"),
    (113, "bad_certificate_status_response"),
    (115, "unknown_psk_identity"),
    (116, "certificate_required"),
    (120, "no_application_protocol"),
];
