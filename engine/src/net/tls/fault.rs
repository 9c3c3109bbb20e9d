//! What can go wrong in a TLS session, told apart by what a user can do about it.

use std::fmt;
use std::io;
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, OtherError, PeerMisbehaved};

/// Why a TLS session could not begin or could not go on.
///
/// ```
/// use courser::{TlsAlert, TlsFault};
///
/// let fault = TlsFault::Alert(TlsAlert(40));
/// assert_eq!(fault.to_string(), "the server ended TLS with alert 40 (handshake_failure)");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TlsFault {
    /// A certificate's time is over.
    Expired {
        /// For how long.
        ago: Duration,
    },
    /// A certificate's time has not begun.
    NotYetValid {
        /// How long until it does.
        ahead: Duration,
    },
    /// The certificate is for other names.
    WrongName {
        /// The name that was asked for.
        expected: String,
        /// The names that the certificate has.
        presented: Vec<String>,
    },
    /// No root that we trust has issued the certificate.
    UnknownIssuer,
    /// A given revocation list names the certificate.
    Revoked,
    /// Revocation lists are given, and none covers the certificate.
    RevocationUnknown,
    /// The revocation list that covers the certificate is out of date.
    CrlExpired {
        /// For how long.
        ago: Duration,
    },
    /// The certificate cannot be accepted for another reason, told in words.
    BadCertificate(String),
    /// What the peer said first is no TLS.
    NotTls,
    /// The peer and we have no version, cipher suite or other necessary part of the protocol in common.
    ProtocolMismatch(String),
    /// The peer chose, or insisted on, another application protocol than `http/1.1`.
    Alpn,
    /// The peer ended the session with an alert.
    Alert(TlsAlert),
    /// The peer broke the protocol: a record that cannot be decrypted, a message out of place.
    BadRecord(String),
    /// The connection ended inside the handshake.
    HandshakeEof,
    /// The connection ended without `close_notify`: what came may be incomplete (RFC 9112 §9.8).
    Truncated,
    /// The name is neither a DNS name nor an IP address, so that no certificate can be for it.
    ServerName(String),
    /// Our side failed: no random numbers, no clock, keys used up.
    Internal(String),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired { ago } => {
                write!(f, "a certificate expired {} ago", Rough(*ago))
            }
            Self::NotYetValid { ahead } => {
                write!(
                    f,
                    "a certificate is not valid for another {}",
                    Rough(*ahead)
                )
            }
            Self::WrongName {
                expected,
                presented,
            } => {
                write!(f, "the certificate is not for {expected}")?;
                match presented.split_first() {
                    None => f.write_str(" and has no name at all"),
                    Some((first, rest)) => {
                        write!(f, " but for {first}")?;
                        for name in rest.iter().take(NAMES_SHOWN - 1) {
                            write!(f, ", {name}")?;
                        }
                        match presented.len().saturating_sub(NAMES_SHOWN) {
                            0 => Ok(()),
                            more => write!(f, " and {more} more"),
                        }
                    }
                }
            }
            Self::UnknownIssuer => f.write_str("the certificate's issuer is not trusted"),
            Self::Revoked => f.write_str("a certificate is revoked"),
            Self::RevocationUnknown => {
                f.write_str("no revocation list that was given covers a certificate")
            }
            Self::CrlExpired { ago } => {
                write!(
                    f,
                    "a revocation list has been out of date for {}",
                    Rough(*ago)
                )
            }
            Self::BadCertificate(why) => write!(f, "bad certificate: {why}"),
            Self::NotTls => f.write_str("the server does not speak TLS on this port"),
            Self::ProtocolMismatch(why) => write!(f, "no TLS in common with the server: {why}"),
            Self::Alpn => f.write_str("the server insists on another protocol than http/1.1"),
            Self::Alert(alert) => write!(f, "the server ended TLS with {alert}"),
            Self::BadRecord(why) => write!(f, "the server broke the TLS protocol: {why}"),
            Self::HandshakeEof => f.write_str("the connection ended inside the TLS handshake"),
            Self::Truncated => f.write_str("the connection ended without close_notify"),
            Self::ServerName(name) => {
                write!(f, "{name:?} is neither a DNS name nor an IP address")
            }
            Self::Internal(why) => write!(f, "TLS failed on our side: {why}"),
        }
    }
}

impl std::error::Error for TlsFault {}

/// A stream's error, so that TLS can be treated like any stream; it becomes `ErrorKind::Tls` again.
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

impl TlsFault {
    /// `heard`: a record of the peer was accepted before. `handshaking`: the session was not yet up.
    pub(super) fn from_rustls(error: Error, heard: bool, handshaking: bool) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::from_certificate(error),
            Error::InvalidMessage(_) if !heard => Self::NotTls,
            Error::NoCertificatesPresented => {
                Self::BadCertificate("the server has presented none".to_owned())
            }
            Error::InvalidCertRevocationList(_) => Self::BadCertificate(error.to_string()),
            Error::PeerIncompatible(why) => Self::ProtocolMismatch(words(&format!("{why:?}"))),
            Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
                Self::Alpn
            }
            Error::AlertReceived(alert) if handshaking => match alert {
                AlertDescription::NoApplicationProtocol => Self::Alpn,
                AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity => {
                    Self::ProtocolMismatch(format!(
                        "the server answered with {}",
                        TlsAlert(alert.into())
                    ))
                }
                alert => Self::Alert(TlsAlert(alert.into())),
            },
            Error::AlertReceived(alert) => Self::Alert(TlsAlert(alert.into())),
            Error::InvalidMessage(why) => Self::BadRecord(words(&format!("{why:?}"))),
            Error::PeerMisbehaved(why) => Self::BadRecord(words(&format!("{why:?}"))),
            Error::DecryptError => Self::BadRecord("a record cannot be decrypted".to_owned()),
            Error::PeerSentOversizedRecord
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. } => Self::BadRecord(error.to_string()),
            error => Self::Internal(error.to_string()),
        }
    }

    fn from_certificate(error: CertificateError) -> Self {
        match error {
            CertificateError::Expired => Self::Expired {
                ago: Duration::ZERO,
            },
            CertificateError::ExpiredContext { time, not_after } => Self::Expired {
                ago: between(not_after, time),
            },
            CertificateError::NotValidYet => Self::NotYetValid {
                ahead: Duration::ZERO,
            },
            CertificateError::NotValidYetContext { time, not_before } => Self::NotYetValid {
                ahead: between(time, not_before),
            },
            CertificateError::NotValidForName => Self::WrongName {
                expected: String::new(),
                presented: Vec::new(),
            },
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => Self::WrongName {
                expected: expected.to_str().into_owned(),
                presented: presented.iter().map(|name| plain_name(name)).collect(),
            },
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::Revoked => Self::Revoked,
            CertificateError::UnknownRevocationStatus => Self::RevocationUnknown,
            CertificateError::ExpiredRevocationList => Self::CrlExpired {
                ago: Duration::ZERO,
            },
            CertificateError::ExpiredRevocationListContext { time, next_update } => {
                Self::CrlExpired {
                    ago: between(next_update, time),
                }
            }
            error if is_authority_as_server(&error) => Self::BadCertificate(
                "it is self-signed or an authority's, and not itself among those trusted"
                    .to_owned(),
            ),
            error => Self::BadCertificate(error.to_string()),
        }
    }
}

/// Whether the server showed a certificate that says to be an authority's.
pub(super) fn is_authority_as_server(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else {
        return false;
    };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// The number of a TLS alert (RFC 8446 §6).
///
/// ```
/// assert_eq!(courser::TlsAlert(48).name(), Some("unknown_ca"));
/// assert_eq!(courser::TlsAlert(200).to_string(), "alert 200");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TlsAlert(pub u8);

impl TlsAlert {
    /// Its name in the registry, if it has one.
    pub fn name(self) -> Option<&'static str> {
        ALERTS
            .iter()
            .find(|(number, _)| *number == self.0)
            .map(|(_, name)| *name)
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

/// A duration in the largest unit that it fills.
struct Rough(Duration);

impl fmt::Display for Rough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (count, unit) = match seconds {
            0..60 => (seconds, "second"),
            60..3600 => (seconds / 60, "minute"),
            3600..86_400 => (seconds / 3600, "hour"),
            _ => (seconds / 86_400, "day"),
        };
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{count} {unit}{plural}")
    }
}

fn between(earlier: UnixTime, later: UnixTime) -> Duration {
    Duration::from_secs(later.as_secs().saturating_sub(earlier.as_secs()))
}

/// `DnsName("example.com")` as the verifier writes it, without its wrapping.
fn plain_name(name: &str) -> String {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    let inner = inner.unwrap_or(name);
    inner.trim_matches('"').to_owned()
}

/// `NoCipherSuitesInCommon` as `no cipher suites in common`: the names of rustls's variants say what happened.
fn words(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    let mut before_was_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before_was_lower {
            out.push(' ');
        }
        before_was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// More names of a certificate than this are counted only.
const NAMES_SHOWN: usize = 4;

/// The registry of TLS alerts, those of older versions included.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_well() {
        for (fault, text) in [
            (
                TlsFault::Expired {
                    ago: Duration::from_secs(3 * 86_400),
                },
                "a certificate expired 3 days ago",
            ),
            (
                TlsFault::NotYetValid {
                    ahead: Duration::from_secs(3600),
                },
                "a certificate is not valid for another 1 hour",
            ),
            (
                TlsFault::WrongName {
                    expected: "a.example".to_owned(),
                    presented: ["b", "c", "d", "e", "f", "g"].map(str::to_owned).to_vec(),
                },
                "the certificate is not for a.example but for b, c, d, e and 2 more",
            ),
            (
                TlsFault::WrongName {
                    expected: "a.example".to_owned(),
                    presented: Vec::new(),
                },
                "the certificate is not for a.example and has no name at all",
            ),
            (
                TlsFault::from_rustls(
                    Error::PeerIncompatible(rustls::PeerIncompatible::NoCipherSuitesInCommon),
                    true,
                    true,
                ),
                "no TLS in common with the server: no cipher suites in common",
            ),
            (
                TlsFault::from_rustls(
                    Error::AlertReceived(AlertDescription::ProtocolVersion),
                    true,
                    true,
                ),
                "no TLS in common with the server: the server answered with alert 70 (protocol_version)",
            ),
        ] {
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn an_io_error_gives_its_fault_back() {
        let error = io::Error::from(TlsFault::Truncated);
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let kind = crate::ErrorKind::from(error);
        assert!(matches!(kind, crate::ErrorKind::Tls(TlsFault::Truncated)));
        let kind = crate::ErrorKind::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(kind, crate::ErrorKind::Io(_)));
    }
}
