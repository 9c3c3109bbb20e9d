//! What the configuration offers and insists on: suites, groups, ALPN, pinned keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::net::tls::tls_cipher_suites;

/// A handshake of this client with a server of one authority.
fn pair(edit: impl FnOnce(&mut TlsConfig, &Leaf)) -> Pair {
    let (authority, leaf) = trusted();
    let mut config = trusting(&authority);
    edit(&mut config, &leaf);
    Pair::new(&config.build().unwrap(), leaf.server(), "a.example")
}

/// The pin of the public key of a certificate.
fn pin(leaf: &Leaf) -> String {
    let key = rcgen::PublicKeyData::subject_public_key_info(&leaf.key);
    let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let hash = suite.tls13().unwrap().common.hash_provider.hash(&key);
    format!("sha256//{}", STANDARD.encode(hash.as_ref()))
}

fn other_pin() -> String {
    format!("sha256//{}", STANDARD.encode([0; 32]))
}

#[test]
fn only_pinned_keys_are_accepted() {
    pair(|config, leaf| config.pinned_keys = vec![other_pin(), pin(leaf)])
        .handshake()
        .unwrap();
    let other = |config: &mut TlsConfig, _: &Leaf| config.pinned_keys = vec![other_pin()];
    assert_eq!(pair(other).fault(), TlsFault::PinnedKey);
    let insecure = |config: &mut TlsConfig, leaf: &Leaf| {
        other(config, leaf);
        config.insecure = true;
    };
    assert_eq!(pair(insecure).fault(), TlsFault::PinnedKey);
    // The certificate comes first.
    let untrusted = |config: &mut TlsConfig, leaf: &Leaf| {
        other(config, leaf);
        *config = TlsConfig {
            pinned_keys: config.pinned_keys.clone(),
            ..TlsConfig::default()
        };
    };
    assert_eq!(pair(untrusted).fault(), TlsFault::UnknownIssuer);
    for no_pin in ["", "AAAA", "sha256//", "sha256//AAAA", "sha256//!"] {
        let config = TlsConfig {
            pinned_keys: vec![no_pin.to_owned()],
            ..TlsConfig::default()
        };
        let part = config.build().unwrap_err().part();
        assert_eq!(part, TlsPart::PinnedKeys, "{no_pin}");
    }
}

#[test]
fn only_the_named_suites_are_offered() {
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        pair(|config, _| config.cipher_suites = names)
    };
    // The server has the suites of ChaCha20 only.
    let mut both = named(&["TLS13_AES_128_GCM_SHA256", "tls13_chacha20_poly1305_sha256"]);
    both.handshake().unwrap();
    let info = both.tls.info().unwrap();
    let (shown, length) = (format!("{info:?}"), info.certificates[0].len());
    assert!(shown.contains("TLS13_CHACHA20_POLY1305_SHA256"), "{shown}");
    let sizes = format!("certificate_bytes: [{length}]");
    assert!(shown.contains(&sizes), "{shown}");
    let fault = named(&["TLS13_AES_128_GCM_SHA256"]).fault();
    assert!(matches!(fault, TlsFault::Alert(TlsAlert(40))), "{fault:?}");
    assert!(tls_cipher_suites().all(|name| name.starts_with("TLS")));
    for (suites, groups, part) in [
        (vec!["NULL".to_owned()], vec![], TlsPart::CipherSuites),
        (vec![], vec!["sect571r1".to_owned()], TlsPart::KeyExchange),
    ] {
        let config = TlsConfig {
            cipher_suites: suites,
            key_exchange: groups,
            ..TlsConfig::default()
        };
        let error = config.build().unwrap_err();
        assert_eq!(error.part(), part);
        assert!(error.to_string().ends_with("is unknown"), "{error}");
    }
}

#[test]
fn only_the_named_groups_are_offered() {
    for group in ["X25519", "secp256r1", "secp384r1"] {
        let mut pair = pair(|config, _| config.key_exchange = vec![group.to_lowercase()]);
        pair.handshake().unwrap();
        let used = pair.server.negotiated_key_exchange_group().unwrap();
        assert_eq!(used.name().as_str(), Some(group));
    }
}
