//! Certificates and TLS servers of the scenarios, made once.

use std::sync::{Arc, LazyLock};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// What a server shows and asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// For localhost and some.example, by the authority of [`ca_pem`].
    Good,
    Expired,
    WrongName,
    SelfSigned,
    /// Needs a certificate of the client by the same authority.
    AsksClient,
}

pub(crate) fn ca_pem() -> String {
    SHOP.good.pem.clone()
}

pub(crate) fn client_pem() -> String {
    SHOP.client.0.clone()
}

pub(crate) fn client_key() -> String {
    SHOP.client.1.clone()
}

/// Of no certificate that there is.
pub(crate) fn wrong_key() -> String {
    SHOP.wrong_key.clone()
}

pub(crate) fn server(kind: Kind) -> Arc<ServerConfig> {
    let names: &[&str] = match kind {
        Kind::WrongName => &["other.example"],
        _ => &["localhost", "some.example"],
    };
    let mut params = params(names, "localhost");
    if kind == Kind::Expired {
        params.not_after = date_time_ymd(2021, 1, 1);
    }
    let key = KeyPair::generate().expect("a key");
    let certificate = match kind {
        Kind::SelfSigned => params.self_signed(&key),
        _ => params.signed_by(&key, &SHOP.good.issuer),
    };
    let chain = vec![certificate.expect("a certificate").der().clone()];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let builder = ServerConfig::builder();
    let builder = if kind == Kind::AsksClient {
        let mut roots = RootCertStore::empty();
        roots.add(SHOP.good.der.clone()).expect("a root");
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
        builder.with_client_cert_verifier(verifier.expect("a verifier"))
    } else {
        builder.with_no_client_auth()
    };
    let config = builder.with_single_cert(chain, key);
    Arc::new(config.expect("a certificate with its key"))
}

static SHOP: LazyLock<Shop> = LazyLock::new(|| {
    let good = Authority::new();
    let mut params = params(&[], "client");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &good.issuer);
    let certificate = certificate.expect("a certificate").pem();
    Shop {
        good,
        client: (certificate, key.serialize_pem()),
        wrong_key: KeyPair::generate().expect("a key").serialize_pem(),
    }
});

struct Shop {
    good: Authority,
    client: (String, String),
    wrong_key: String,
}

struct Authority {
    pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = params(&[], "Good");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            pem: certificate.pem(),
            der: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }
}

fn params(names: &[&str], common: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2199, 1, 1);
    params.use_authority_key_identifier_extension = true;
    params
}
