//! Until when certificates are valid.

use jiff::{SignedDuration, Timestamp};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// The end of validity (RFC 5280 §4.1.2.5) of the certificate that ends first. Certificates that cannot be read are left
/// out.
fn first_end(certificates: &[Vec<u8>]) -> Option<Timestamp> {
    let ends = certificates.iter().filter_map(|der| {
        let certificate = Certificate::from_der(der).ok()?;
        let end = certificate.tbs_certificate().validity().not_after;
        Timestamp::UNIX_EPOCH
            .checked_add(end.to_unix_duration())
            .ok()
    });
    ends.min()
}

/// The end of the certificates that a host sent last. Most answers of a host come with the same certificates.
#[derive(Debug, Default)]
pub(crate) struct CertificateEnds {
    last: Option<(Vec<Vec<u8>>, Option<Timestamp>)>,
}

impl CertificateEnds {
    /// As [`first_end`].
    pub(crate) fn first_end(&mut self, certificates: &[Vec<u8>]) -> Option<Timestamp> {
        match &self.last {
            Some((last, end)) if last == certificates => *end,
            _ => {
                let end = first_end(certificates);
                self.last = Some((certificates.to_vec(), end));
                end
            }
        }
    }
}

/// What to say about a certificate that ends within `days`: `the certificate expires in 5 days`. `None` if it lasts
/// longer.
pub(crate) fn warning(end: Timestamp, now: Timestamp, days: u32) -> Option<String> {
    let left = end.duration_since(now);
    if left >= SignedDuration::from_hours(24 * i64::from(days)) {
        return None;
    }
    let hours = left.as_hours();
    Some(match (hours / 24, hours) {
        _ if left.is_negative() => "the certificate has expired".to_owned(),
        (0, 1) => "the certificate expires in 1 hour".to_owned(),
        (0, hours) => format!("the certificate expires in {hours} hours"),
        (1, _) => "the certificate expires in 1 day".to_owned(),
        (days, _) => format!("the certificate expires in {days} days"),
    })
}
