//! Errors of the configuration name the part and the file.

use std::io;

use rcgen::{CertificateParams, KeyPair};

use super::*;

/// A self-signed certificate and its key.
fn self_signed() -> (String, KeyPair) {
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

fn assert_error(error: &TlsConfigError, part: TlsPart, text: &str) {
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

/// What is wrong in memory, with its part and a word of the error.
#[test]
fn what_is_invalid() {
    let (chain, key) = self_signed();
    let pem = key.serialize_pem();
    let foreign = self_signed().1.serialize_pem();
    let roots = |content: &str| error(|config| config.extra_roots = vec![bytes(content)]);
    let list = |content: &str| error(|config| config.crls = vec![bytes(content)]);
    let name = |name: &str| error(|config| config.server_name = Some(name.to_owned()));
    let client = |key: &str| {
        let (chain, key) = (bytes(&chain), bytes(key));
        error(|config| config.client = Some(ClientCertificate { chain, key }))
    };
    let upside_down = error(|config| {
        config.min_version = TlsVersion::V1_3;
        config.max_version = TlsVersion::V1_2;
    });
    let sessions = |most| error(|config| config.resumption = most);
    let (nothing, no_name) = ("nothing found", "neither a DNS name nor");
    let (order, bound) = ("the lowest is above the highest", "more than 65536");
    let encrypted = "encrypted keys cannot";
    // A valid certificate does not hide an invalid one, at any position.
    let [before, behind] = [[&*chain, NO_CERTIFICATE], [NO_CERTIFICATE, &*chain]];
    for (error, part, text) in [
        (roots(""), TlsPart::Roots, nothing),
        (roots("neither PEM nor DER"), TlsPart::Roots, nothing),
        (roots(&pem), TlsPart::Roots, nothing),
        (roots(BROKEN), TlsPart::Roots, ""),
        (roots(NO_CERTIFICATE), TlsPart::Roots, ""),
        (roots(&before.concat()), TlsPart::Roots, ""),
        (roots(&behind.concat()), TlsPart::Roots, ""),
        // The beginning of a DER item.
        (roots("0\u{3}"), TlsPart::Roots, ""),
        (error(|it| it.roots = TlsRoots::None), TlsPart::Roots, ""),
        (list(""), TlsPart::Crl, nothing),
        (list(&chain), TlsPart::Crl, ""),
        (list(NO_LIST), TlsPart::Crl, ""),
        (client(""), TlsPart::ClientKey, nothing),
        (client(&chain), TlsPart::ClientKey, nothing),
        (client(ENCRYPTED), TlsPart::ClientKey, encrypted),
        (client("0\u{3}"), TlsPart::ClientKey, ""),
        (client(&foreign), TlsPart::ClientCertificate, ""),
        (upside_down, TlsPart::Versions, order),
        (sessions(65_537), TlsPart::Resumption, bound),
        (sessions(usize::MAX), TlsPart::Resumption, bound),
        (name(""), TlsPart::ServerName, no_name),
        (name("a b"), TlsPart::ServerName, no_name),
        (name("x\0y"), TlsPart::ServerName, no_name),
    ] {
        assert_error(&error, part, text);
        assert_eq!(error.path(), None);
    }
}

#[test]
fn errors_name_the_file() {
    let missing = PathBuf::from("/no/such/file.pem");
    let (chain, key) = self_signed();
    let file = || PemOrDer::File(missing.clone());
    let pem = key.serialize_pem();
    let client = |chain, key| {
        let client = Some(ClientCertificate { chain, key });
        error(|config| config.client = client)
    };
    for (error, part) in [
        (error(|it| it.extra_roots = vec![file()]), TlsPart::Roots),
        (error(|it| it.crls = vec![file()]), TlsPart::Crl),
        (client(file(), bytes(&pem)), TlsPart::ClientCertificate),
        (client(bytes(&chain), file()), TlsPart::ClientKey),
    ] {
        assert_error(&error, part, "/no/such/file.pem");
        assert_eq!(error.path(), Some(&*missing));
        let source = std::error::Error::source(&error).unwrap();
        let source = source.downcast_ref::<io::Error>().unwrap();
        assert_eq!(source.kind(), io::ErrorKind::NotFound);
    }
}

/// Keys in DER, and in one file with the chain; several certificates with text between them; the most sessions.
#[test]
fn what_is_valid() {
    let (chain, key) = self_signed();
    for key in [
        PemOrDer::Bytes(key.serialize_der()),
        bytes(&format!("{chain}{}", key.serialize_pem())),
    ] {
        let config = TlsConfig {
            client: Some(ClientCertificate {
                chain: bytes(&chain),
                key,
            }),
            roots: TlsRoots::None,
            extra_roots: vec![bytes(&format!("a comment\n{chain}another\n{chain}"))],
            resumption: 65_536,
            ..TlsConfig::default()
        };
        config.build().unwrap();
    }
}

fn own(edit: impl FnOnce(&mut ClientConfig)) -> Arc<ClientConfig> {
    let mut own = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    edit(&mut own);
    Arc::new(own)
}

#[test]
fn a_configuration_of_the_caller_stands_for_all_other_options() {
    let with = |protocols: &[&[u8]]| {
        let protocols = protocols.iter().map(|protocol| protocol.to_vec());
        let own = own(|own| own.alpn_protocols = protocols.collect());
        TlsConfig {
            rustls: Some(own),
            server_name: Some("b.example".to_owned()),
            ..TlsConfig::default()
        }
    };
    with(&[]).build().unwrap();
    with(&[b"http/1.1"]).build().unwrap();
    let error = with(&[b"h2", b"http/1.1"]).build().unwrap_err();
    assert_error(&error, TlsPart::Rustls, "another protocol");
    let edits: [fn(&mut TlsConfig); 8] = [
        |config| config.roots = TlsRoots::None,
        |config| config.insecure = true,
        |config| config.key_log = true,
        |config| config.pinned_keys = vec![String::new()],
        |config| config.crls = vec![bytes("")],
        |config| config.min_version = TlsVersion::V1_3,
        |config| config.resumption = 0,
        |config| config.alpn = false,
    ];
    for edit in edits {
        let mut config = with(&[]);
        edit(&mut config);
        assert_error(
            &config.build().unwrap_err(),
            TlsPart::Rustls,
            "other options",
        );
    }
}

/// Proxies neither get the certificate that is for servers nor have a server's key.
#[test]
fn a_proxy_gets_what_is_for_every_peer() {
    let pinned = TlsConfig {
        pinned_keys: vec![String::new()],
        ..TlsConfig::default()
    };
    assert!(pinned.for_proxies().unwrap().pinned_keys.is_empty());
    let plain = TlsConfig {
        rustls: Some(own(|_| ())),
        ..TlsConfig::default()
    };
    assert!(plain.for_proxies().is_none());
    #[derive(Debug)]
    struct Gives;
    impl ResolvesClientCert for Gives {
        fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            None
        }
        fn has_certs(&self) -> bool {
            true
        }
    }
    let giving = TlsConfig {
        rustls: Some(own(|own| own.client_auth_cert_resolver = Arc::new(Gives))),
        ..TlsConfig::default()
    };
    let for_proxies = giving.for_proxies().unwrap().rustls.unwrap();
    assert!(!for_proxies.client_auth_cert_resolver.has_certs());
}

/// Neither errors nor `Debug` show a key.
#[test]
fn keys_are_not_shown() {
    let (chain, key) = self_signed();
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
