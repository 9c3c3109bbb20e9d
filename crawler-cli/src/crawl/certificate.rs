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

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["h".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, month, day);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("valid").der().to_vec()
    }

    #[test]
    fn the_certificate_that_ends_first_counts() {
        let chain = [certificate(2052, 1, 1), certificate(2027, 3, 1), vec![1, 2]];
        let end = first_end(&chain).expect("two can be read");
        assert_eq!(end.to_string(), "2027-03-01T00:00:00Z");
        assert_eq!(
            first_end(&[certificate(2052, 1, 1)])
                .map(|end| end.to_string())
                .as_deref(),
            Some("2052-01-01T00:00:00Z")
        );
        assert_eq!(first_end(&[]), None);
        let mut ends = CertificateEnds::default();
        assert_eq!(ends.first_end(&chain), Some(end));
        assert_eq!(ends.first_end(&chain), Some(end));
        assert_ne!(ends.first_end(&chain[..1]), Some(end));
    }

    #[test]
    fn what_is_left_is_said_in_words() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
        for (end, days, expected) in [
            ("2026-12-22T12:00:00Z", 30, None),
            (
                "2026-12-22T11:59:59Z",
                30,
                Some("the certificate expires in 29 days"),
            ),
            (
                "2026-11-24T00:00:00Z",
                30,
                Some("the certificate expires in 1 day"),
            ),
            (
                "2026-11-22T13:30:00Z",
                1,
                Some("the certificate expires in 1 hour"),
            ),
            (
                "2026-11-22T12:30:00Z",
                1,
                Some("the certificate expires in 0 hours"),
            ),
            (
                "2026-11-22T10:30:00Z",
                1,
                Some("the certificate has expired"),
            ),
            ("2026-11-22T12:30:00Z", 0, None),
        ] {
            let end = end.parse().expect("a time");
            assert_eq!(warning(end, now, days).as_deref(), expected, "{end} {days}");
        }
    }
}
