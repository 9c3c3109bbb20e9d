//! Certificates and TLS servers of the scenarios, made once.

use std::sync::{Arc, LazyLock};

use pkcs8::pkcs5::pbes2;
use pkcs8::{LineEnding, PrivateKeyInfoRef, SecretDocument};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, RevocationReason, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

/// What a server shows and asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// For localhost, 127.0.0.1 and some.example, by the authority of [`ca_pem`].
    Good,
    Expired,
    NotYetValid,
    WrongName,
    SelfSigned,
    /// By an authority that no client is given.
    UnknownIssuer,
    /// On the list of [`crl_pem`].
    Revoked,
    /// With the name in the subject alone.
    NoAlternativeName,
    /// For `*.wild.example`.
    Wildcard,
    Only12,
    Only13,
    /// Needs a certificate of the client by the same authority.
    AsksClient,
}

pub(crate) fn server(kind: Kind) -> Arc<ServerConfig> {
    SHOP.server(kind)
}

pub(crate) fn ca_pem() -> String {
    SHOP.good.pem.clone()
}

/// An authority that signed nothing.
pub(crate) fn other_ca_pem() -> String {
    SHOP.other_pem.clone()
}

pub(crate) fn client_pem() -> String {
    SHOP.client.0.clone()
}

pub(crate) fn client_key() -> String {
    SHOP.client.1.clone()
}

/// By an authority that no server knows.
pub(crate) fn foreign_client_pem() -> String {
    SHOP.foreign.0.clone()
}

pub(crate) fn foreign_client_key() -> String {
    SHOP.foreign.1.clone()
}

pub(crate) fn crl_pem() -> String {
    SHOP.crl.clone()
}

/// The client's key, encrypted with this password.
pub(crate) fn client_key_with(password: &str) -> String {
    let parameters =
        pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(2048, b"salt-of-8", [7; 16]);
    let (_, key) = SecretDocument::from_pem(&SHOP.client.1).expect("a key");
    let key = PrivateKeyInfoRef::try_from(key.as_bytes()).expect("a key");
    let key = key.encrypt_with_params(parameters.expect("parameters"), password);
    let pem = key
        .expect("a key")
        .to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF);
    pem.expect("a key").to_string()
}

pub(crate) fn client_der() -> Vec<u8> {
    SHOP.client_der.0.clone()
}

pub(crate) fn client_key_der() -> Vec<u8> {
    SHOP.client_der.1.clone()
}

/// A server whose key is known: the server, and its key in PEM and in DER.
pub(crate) fn with_known_key() -> (Arc<ServerConfig>, String, Vec<u8>) {
    SHOP.known.clone()
}

static SHOP: LazyLock<Shop> = LazyLock::new(Shop::open);

struct Shop {
    good: Authority,
    unknown: Authority,
    other_pem: String,
    client: (String, String),
    client_der: (Vec<u8>, Vec<u8>),
    known: (Arc<ServerConfig>, String, Vec<u8>),
    foreign: (String, String),
    crl: String,
}

struct Authority {
    pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Shop {
    fn open() -> Self {
        let good = Authority::new("Good");
        let unknown = Authority::new("Unknown");
        let client = |authority: &Authority| {
            let mut params = params(&[]);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params.distinguished_name.push(DnType::CommonName, "client");
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &authority.issuer);
            let certificate = certificate.expect("a certificate");
            let pem = (certificate.pem(), key.serialize_pem());
            (pem, (certificate.der().to_vec(), key.serialize_der()))
        };
        let (client_pem, client_der) = client(&good);
        let key = KeyPair::generate().expect("a key");
        let certificate = params(&["localhost"]).signed_by(&key, &good.issuer);
        let chain = vec![certificate.expect("a certificate").der().clone()];
        let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let known = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, secret);
        let known = Arc::new(known.expect("a certificate with its key"));
        Self {
            client: client_pem,
            client_der,
            known: (known, key.public_key_pem(), key.subject_public_key_info()),
            foreign: client(&unknown).0,
            other_pem: Authority::new("Other").pem,
            crl: good.revocation_list(),
            good,
            unknown,
        }
    }

    fn server(&self, kind: Kind) -> Arc<ServerConfig> {
        let mut params = match kind {
            Kind::WrongName => params(&["other.example"]),
            Kind::NoAlternativeName => params(&[]),
            Kind::Wildcard => params(&["*.wild.example"]),
            _ => params(&["localhost", "127.0.0.1", "some.example"]),
        };
        params
            .distinguished_name
            .push(DnType::CommonName, "localhost");
        match kind {
            Kind::Expired => params.not_after = date_time_ymd(2021, 1, 1),
            Kind::NotYetValid => params.not_before = date_time_ymd(2199, 1, 1),
            Kind::Revoked => params.serial_number = Some(SerialNumber::from(REVOKED)),
            _ => {}
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = match kind {
            Kind::SelfSigned => params.self_signed(&key),
            Kind::UnknownIssuer => params.signed_by(&key, &self.unknown.issuer),
            _ => params.signed_by(&key, &self.good.issuer),
        };
        let chain = vec![certificate.expect("a certificate").der().clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let versions: &[&'static SupportedProtocolVersion] = match kind {
            Kind::Only12 => &[&TLS12],
            Kind::Only13 => &[&TLS13],
            _ => &[&TLS12, &TLS13],
        };
        let builder = ServerConfig::builder_with_protocol_versions(versions);
        let builder = if kind == Kind::AsksClient {
            let mut roots = RootCertStore::empty();
            roots.add(self.good.der.clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(chain, key);
        Arc::new(config.expect("a certificate with its key"))
    }
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = params(&[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            pem: certificate.pem(),
            der: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    fn revocation_list(&self) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(REVOKED),
            revocation_time: date_time_ymd(2021, 1, 1),
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2021, 1, 1),
            next_update: date_time_ymd(2199, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).expect("a list");
        list.pem().expect("a list")
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2199, 1, 1);
    params.use_authority_key_identifier_extension = true;
    params
}

const REVOKED: u64 = 4711;
