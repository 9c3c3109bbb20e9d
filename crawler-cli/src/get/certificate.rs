//! What `-v` says about a TLS connection, in curl's words.

use courser::TlsInfo;
use jiff::Timestamp;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::name::Name;
use x509_cert::time::Time;

/// The lines, without their `* `. `insecure`: the certificate was not checked (`-k`).
pub(super) fn lines(tls: &TlsInfo, insecure: bool) -> Vec<String> {
    let resumed = if tls.resumed { ", resumed" } else { "" };
    // rustls marks the suites of TLS 1.3 in its names; curl and the registry do not.
    let suite = tls.cipher_suite.replacen("TLS13_", "TLS_", 1);
    let version = tls.version;
    let mut lines = vec![
        format!("SSL connection using {version} / {suite}{resumed}"),
        match &tls.alpn {
            Some(protocol) => {
                format!(
                    "ALPN: server accepted {}",
                    String::from_utf8_lossy(protocol)
                )
            }
            None => "ALPN: server did not agree on a protocol. Uses default.".to_owned(),
        },
    ];
    if let Some(der) = tls.certificates.first() {
        lines.push("Server certificate:".to_owned());
        lines.extend(of_certificate(der));
        lines.push(match insecure {
            true => " SSL certificate verification is off (-k), continuing anyway.".to_owned(),
            false => " SSL certificate verify ok.".to_owned(),
        });
    }
    lines
}

/// Subject, validity and issuer. None of a certificate that cannot be read.
fn of_certificate(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else {
        return Vec::new();
    };
    let certificate = certificate.tbs_certificate();
    let validity = certificate.validity();
    vec![
        format!(" subject: {}", name(certificate.subject())),
        format!(" start date: {}", date(validity.not_before)),
        format!(" expire date: {}", date(validity.not_after)),
        format!(" issuer: {}", name(certificate.issuer())),
    ]
}

/// In the order of the certificate: `C=US; O=Example; CN=example.com`.
fn name(name: &Name) -> String {
    let parts: Vec<String> = name.iter_rdn().map(ToString::to_string).collect();
    parts.join("; ")
}

/// `Nov  5 22:53:05 2026 GMT`
fn date(time: Time) -> String {
    match Timestamp::UNIX_EPOCH.checked_add(time.to_unix_duration()) {
        Ok(at) => at.strftime("%b %e %H:%M:%S %Y GMT").to_string(),
        Err(_) => time.to_string(),
    }
}
