//! What is wrong with a configuration is told by part and by file.

use std::io;

use rcgen::{CertificateParams, KeyPair};

use super::*;

/// A certificate that signs itself, and its key.
fn own() -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key)
}

fn bytes(text: &str) -> PemOrDer {
    PemOrDer::Bytes(text.as_bytes().to_vec())
}

fn error(edit: impl FnOnce(&mut TlsConfig)) -> TlsConfigError {
    let mut config = TlsConfig::default();
    edit(&mut config);
    config.build().unwrap_err()
}

fn told(error: &TlsConfigError, part: TlsPart, text: &str) {
    assert_eq!(error.part(), part);
    let shown = error.to_string();
    assert!(shown.starts_with(&part.to_string()), "{shown}");
    assert!(shown.contains(text), "{shown}");
}

const BROKEN: &str = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
const NO_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMAMCAQA=\n-----END CERTIFICATE-----\n";
const NO_LIST: &str = "-----BEGIN X509 CRL-----\nMAMCAQA=\n-----END X509 CRL-----\n";
const ENCRYPTED: &str =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAMCAQA=\n-----END ENCRYPTED PRIVATE KEY-----\n";

#[test]
fn roots_that_are_none() {
    let (_, key) = own();
    let key = key.serialize_pem();
    for (content, text) in [
        ("", "there is none in it"),
        ("neither PEM nor DER", "there is none in it"),
        (&*key, "there is none in it"),
        (BROKEN, ""),
        (NO_CERTIFICATE, ""),
        // The beginning of something in DER.
        ("0\u{3}", ""),
    ] {
        let error = error(|config| config.extra_roots = vec![bytes(content)]);
        told(&error, TlsPart::Roots, text);
        assert_eq!(error.path(), None);
    }
    let nothing_to_trust = error(|config| config.roots = TlsRoots::None);
    told(&nothing_to_trust, TlsPart::Roots, "");
}

/// A good certificate does not hide a bad one, wherever it stands.
#[test]
fn every_root_is_looked_at() {
    let (good, _) = own();
    for content in [
        format!("{good}{NO_CERTIFICATE}"),
        format!("{NO_CERTIFICATE}{good}"),
    ] {
        let error = error(|config| config.extra_roots = vec![bytes(&content)]);
        told(&error, TlsPart::Roots, "");
    }
    let config = TlsConfig {
        roots: TlsRoots::None,
        extra_roots: vec![bytes(&format!("a comment\n{good}another\n{good}"))],
        ..TlsConfig::default()
    };
    config.build().unwrap();
}

#[test]
fn a_file_is_named() {
    let missing = PathBuf::from("/no/such/file.pem");
    let (chain, key) = own();
    let file = || PemOrDer::File(missing.clone());
    let with = |chain, key| Some(ClientCertificate { chain, key });
    for (error, part) in [
        (
            error(|config| config.extra_roots = vec![file()]),
            TlsPart::Roots,
        ),
        (error(|config| config.crls = vec![file()]), TlsPart::Crl),
        (
            error(|config| config.client = with(file(), bytes(&key.serialize_pem()))),
            TlsPart::ClientCertificate,
        ),
        (
            error(|config| config.client = with(bytes(&chain), file())),
            TlsPart::ClientKey,
        ),
    ] {
        told(&error, part, "/no/such/file.pem");
        assert_eq!(error.path(), Some(&*missing));
        let source = std::error::Error::source(&error).unwrap();
        let source = source.downcast_ref::<io::Error>().unwrap();
        assert_eq!(source.kind(), io::ErrorKind::NotFound);
    }
}

#[test]
fn keys_that_are_none_or_not_the_certificate_s() {
    let (chain, key) = own();
    let (_, other) = own();
    let with = |key: PemOrDer| {
        let chain = bytes(&chain);
        move |config: &mut TlsConfig| config.client = Some(ClientCertificate { chain, key })
    };
    for (content, text) in [
        ("", "there is none in it"),
        (&*chain, "there is none in it"),
        (ENCRYPTED, "encrypted keys cannot be read"),
        ("0\u{3}", ""),
    ] {
        told(&error(with(bytes(content))), TlsPart::ClientKey, text);
    }
    let mismatch = error(with(bytes(&other.serialize_pem())));
    told(&mismatch, TlsPart::ClientCertificate, "");
    // In DER, and in one file with the chain.
    for key in [
        PemOrDer::Bytes(key.serialize_der()),
        bytes(&format!("{chain}{}", key.serialize_pem())),
    ] {
        let mut config = TlsConfig::default();
        with(key)(&mut config);
        config.build().unwrap();
    }
}

#[test]
fn lists_that_are_none() {
    let (chain, _) = own();
    for (content, text) in [("", "there is none in it"), (&*chain, ""), (NO_LIST, "")] {
        let error = error(|config| config.crls = vec![bytes(content)]);
        told(&error, TlsPart::Crl, text);
    }
}

#[test]
fn versions_and_names_that_make_no_sense() {
    let upside_down = error(|config| {
        config.min_version = TlsVersion::V1_3;
        config.max_version = TlsVersion::V1_2;
    });
    told(
        &upside_down,
        TlsPart::Versions,
        "the lowest is above the highest",
    );
    for name in ["", "a b", "a..b", "[::1", "x\0y"] {
        let error = error(|config| config.server_name = Some(name.to_owned()));
        told(&error, TlsPart::ServerName, "neither a DNS name nor");
    }
}

/// Neither an error nor `Debug` shows a key.
#[test]
fn keys_are_not_shown() {
    let (chain, key) = own();
    let secret = key.serialize_pem();
    let config = TlsConfig {
        client: Some(ClientCertificate {
            chain: bytes(&chain),
            key: bytes(&secret),
        }),
        ..TlsConfig::default()
    };
    let line = secret.lines().nth(1).unwrap();
    let shown = format!("{config:?} {:?}", config.build().unwrap());
    assert!(
        !shown.contains(line) && !shown.contains("PRIVATE"),
        "{shown}"
    );
}
