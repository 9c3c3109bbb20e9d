//! TLS, with verification against the certificate of the site.

use courser::{Client, Config, Response, TlsVersion};
use tests::clients::{any_client, any_config};

use crate::matrix::{Bench, Outcome};

pub(crate) fn version_1_2(bench: &Bench<'_>) -> Option<Outcome> {
    version(bench, TlsVersion::V1_2)
}

pub(crate) fn version_1_3(bench: &Bench<'_>) -> Option<Outcome> {
    version(bench, TlsVersion::V1_3)
}

/// Two calls with this version.
fn version(bench: &Bench<'_>, version: TlsVersion) -> Option<Outcome> {
    let url = format!("{}/hello", bench.secure_url()?);
    let (mut client, mut response) = (any(bench, version), Response::new());
    for _ in 0..2 {
        let report = client.get(&url, &mut response).unwrap();
        bench.assert_hello(&response);
        if let Some(tls) = report.tls() {
            assert_eq!(tls.version, version);
        }
    }
    Some(Outcome::Works)
}

/// A client of any URL, with this version.
fn any(bench: &Bench<'_>, version: TlsVersion) -> Client {
    any_client(Config {
        host: bench.secure(version),
        ..any_config()
    })
}

/// With each version, a second connection resumes the session of the first one.
pub(crate) fn resumption(bench: &Bench<'_>) -> Option<Outcome> {
    let mut resumed = 0;
    let versions = [TlsVersion::V1_2, TlsVersion::V1_3];
    for version in versions {
        let url = format!("{}/hello", bench.secure_url()?);
        let mut client = any(bench, version);
        assert!(!is_resumed(bench, &mut client, &url));
        resumed += usize::from(is_resumed(bench, &mut client, &url));
    }
    match resumed {
        0 => None,
        _ => {
            assert_eq!(resumed, versions.len());
            Some(Outcome::Works)
        }
    }
}

/// Whether a call on a new connection resumes a session.
fn is_resumed(bench: &Bench<'_>, client: &mut Client, url: &str) -> bool {
    client.close_idle();
    let mut response = Response::new();
    let report = client.get(url, &mut response).unwrap();
    bench.assert_hello(&response);
    report.tls().expect("a new connection").resumed
}
