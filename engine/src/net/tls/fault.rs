//! Converts the errors of rustls to [`TlsFault`], which separates them by what a user can do about them.

use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, OtherError, PeerMisbehaved};

use crate::error::{ContentlessRecords, TlsAlert, TlsFault};

/// `record_accepted`: a record of the peer was accepted before. `handshaking`: the handshake was not complete.
pub(super) fn from_rustls(error: Error, record_accepted: bool, handshaking: bool) -> TlsFault {
    match error {
        Error::InvalidCertificate(error) => from_certificate(error),
        Error::InvalidMessage(_) if !record_accepted => TlsFault::NotTls,
        Error::NoCertificatesPresented => {
            TlsFault::BadCertificate("the server has sent no certificate".to_owned())
        }
        Error::InvalidCertRevocationList(_) => TlsFault::BadCertificate(error.to_string()),
        Error::PeerIncompatible(why) => {
            TlsFault::ProtocolMismatch(split_words(&format!("{why:?}")))
        }
        Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
            TlsFault::Alpn
        }
        Error::AlertReceived(alert) if handshaking => match alert {
            AlertDescription::NoApplicationProtocol => TlsFault::Alpn,
            AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity => {
                TlsFault::ProtocolMismatch(format!(
                    "the server answered with {}",
                    TlsAlert(alert.into())
                ))
            }
            alert => TlsFault::Alert(TlsAlert(alert.into())),
        },
        Error::AlertReceived(alert) => TlsFault::Alert(TlsAlert(alert.into())),
        Error::InvalidMessage(why) => TlsFault::BadRecord(split_words(&format!("{why:?}"))),
        Error::PeerMisbehaved(why) => match contentless(&why) {
            Some(records) => TlsFault::Contentless(records),
            None => TlsFault::BadRecord(split_words(&format!("{why:?}"))),
        },
        Error::DecryptError => TlsFault::BadRecord("a record cannot be decrypted".to_owned()),
        Error::PeerSentOversizedRecord
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. } => TlsFault::BadRecord(error.to_string()),
        error => TlsFault::Internal(error.to_string()),
    }
}

/// The records of which rustls has counted too many, if that is what the peer did.
fn contentless(why: &PeerMisbehaved) -> Option<ContentlessRecords> {
    Some(match why {
        PeerMisbehaved::TooManyEmptyFragments => ContentlessRecords::Empty,
        PeerMisbehaved::TooManyKeyUpdateRequests => ContentlessRecords::KeyUpdates,
        PeerMisbehaved::TooManyRenegotiationRequests => ContentlessRecords::Renegotiations,
        PeerMisbehaved::TooManyWarningAlertsReceived => ContentlessRecords::Warnings,
        _ => return None,
    })
}

fn from_certificate(error: CertificateError) -> TlsFault {
    // The check of pinned keys says itself what is wrong.
    if let CertificateError::Other(OtherError(error)) = &error
        && let Some(fault) = error.downcast_ref::<TlsFault>()
    {
        return fault.clone();
    }
    let expired = |ago| TlsFault::Expired { ago };
    let not_yet_valid = |ahead| TlsFault::NotYetValid { ahead };
    let outdated_crl = |ago| TlsFault::CrlExpired { ago };
    match error {
        CertificateError::Expired => expired(Duration::ZERO),
        CertificateError::ExpiredContext { time, not_after } => {
            expired(time_between(not_after, time))
        }
        CertificateError::NotValidYet => not_yet_valid(Duration::ZERO),
        CertificateError::NotValidYetContext { time, not_before } => {
            not_yet_valid(time_between(time, not_before))
        }
        CertificateError::NotValidForName => TlsFault::WrongName {
            expected: String::new(),
            presented: Vec::new(),
        },
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => TlsFault::WrongName {
            expected: expected.to_str().into_owned(),
            presented: presented.iter().map(|name| plain_name(name)).collect(),
        },
        CertificateError::UnknownIssuer => TlsFault::UnknownIssuer,
        CertificateError::Revoked => TlsFault::Revoked,
        CertificateError::UnknownRevocationStatus => TlsFault::RevocationUnknown,
        CertificateError::ExpiredRevocationList => outdated_crl(Duration::ZERO),
        CertificateError::ExpiredRevocationListContext { time, next_update } => {
            outdated_crl(time_between(next_update, time))
        }
        error if is_authority_as_server(&error) => TlsFault::BadCertificate(
            "it is self-signed or that of an authority, and is not itself trusted".to_owned(),
        ),
        error => TlsFault::BadCertificate(error.to_string()),
    }
}

/// Whether the server sent a certificate that is marked as that of an authority.
pub(super) fn is_authority_as_server(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else {
        return false;
    };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

fn time_between(earlier: UnixTime, later: UnixTime) -> Duration {
    Duration::from_secs(later.as_secs().saturating_sub(earlier.as_secs()))
}

/// Removes the wrapping in `DnsName("example.com")`, the form in which the verifier shows names.
fn plain_name(name: &str) -> String {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    let inner = inner.unwrap_or(name);
    inner.trim_matches('"').to_owned()
}

/// `NoCipherSuitesInCommon` as `no cipher suites in common`: the names of rustls's variants describe the fault.
fn split_words(name: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_faults() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let not_for = |presented: &[&str]| TlsFault::WrongName {
            expected: "a.example".to_owned(),
            presented: presented.iter().map(|&name| name.to_owned()).collect(),
        };
        let incompatible =
            Error::PeerIncompatible(rustls::PeerIncompatible::NoCipherSuitesInCommon);
        let alert = Error::AlertReceived(AlertDescription::ProtocolVersion);
        for (fault, text) in [
            (
                TlsFault::Expired { ago: days(3) },
                "a certificate expired 3 days ago",
            ),
            (
                TlsFault::NotYetValid {
                    ahead: days(1) / 24,
                },
                "a certificate is not valid for another 1 hour",
            ),
            (
                not_for(&["b", "c", "d", "e", "f", "g"]),
                "the certificate is not for a.example but for b, c, d, e and 2 more",
            ),
            (
                not_for(&[]),
                "the certificate is not for a.example and has no name at all",
            ),
            (
                from_rustls(incompatible, true, true),
                "no TLS in common with the server: no cipher suites in common",
            ),
            (
                from_rustls(alert, true, true),
                "no TLS in common with the server: the server answered with alert 70 (protocol_version)",
            ),
        ] {
            assert_eq!(fault.to_string(), text);
        }
    }
}
