//! Until when certificates are valid.

use jiff::Timestamp;
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
