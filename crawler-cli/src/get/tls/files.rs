//! The files of TLS that the engine does not read itself: a folder of certificates, keys with a password, pinned keys.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use courser::{ClientCertificate, PemOrDer};
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use sha2::{Digest as _, Sha256};
use x509_cert::certificate::Rfc5280;
use x509_cert::crl::CertificateList;
use x509_cert::der::Decode as _;

use super::TlsSettings;
use crate::get::exit::{Exit, Failure};

impl TlsSettings {
    /// `--cert` with `--key`, their types and the password.
    pub(super) fn client(&self) -> Result<Option<ClientCertificate>, Failure> {
        let Some(typed) = &self.certificate else {
            return Ok(None);
        };
        let (chain, password) = split_password(typed);
        let password = self.password.clone().or(password);
        let key = self.key.as_ref().unwrap_or(&chain);
        let key_type = match self.key {
            Some(_) => &self.key_type,
            None => &self.certificate_type,
        };
        check_type(&chain, self.certificate_type.as_deref(), "--cert-type")?;
        check_type(key, key_type.as_deref(), "--key-type")?;
        Ok(Some(ClientCertificate {
            key: match password {
                Some(password) => decrypted(key, &password)?,
                None if is_encrypted(key) => {
                    let cause = format!(
                        "client key in {}: it is encrypted; --pass gives its password",
                        key.display()
                    );
                    return Err(Failure::new(Exit::ClientCertificate, "TLS", cause));
                }
                None => PemOrDer::File(key.clone()),
            },
            chain: PemOrDer::File(chain),
        }))
    }
}

/// The certificates in a folder, as OpenSSL's `c_rehash` leaves them; without such names, those in all of its files. As
/// in curl, what is no certificate is passed over.
pub(super) fn authorities(folder: &Path) -> Result<Vec<PemOrDer>, Failure> {
    let failed = |error: io::Error| {
        let cause = format!("roots in {}: {error}", folder.display());
        Failure::new(Exit::Authorities, "TLS", cause)
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    if paths.iter().any(|path| is_hashed(path)) {
        paths.retain(|path| is_hashed(path));
    }
    let mut found = Vec::new();
    for path in paths {
        let Ok(bytes) = read_limited(&path) else {
            continue;
        };
        for certificate in CertificateDer::pem_slice_iter(&bytes).flatten() {
            if RootCertStore::empty().add(certificate.clone()).is_ok() {
                found.push(PemOrDer::Bytes(certificate.to_vec()));
            }
        }
    }
    Ok(found)
}

/// `--crlfile`: checks that the file has lists. With `-k` the engine does not read it.
pub(super) fn check_list(path: &Path) -> Result<(), Failure> {
    let bad = |cause: String| {
        let cause = format!("revocation list in {}: {cause}", path.display());
        Failure::new(Exit::RevocationList, "TLS", cause)
    };
    let bytes = fs::read(path).map_err(|error| bad(error.to_string()))?;
    let lists = match is_pem(&bytes) {
        true => CertificateRevocationListDer::pem_slice_iter(&bytes)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| bad(error.to_string()))?,
        false => vec![bytes.into()],
    };
    if lists.is_empty() {
        return Err(bad("there is none".into()));
    }
    for list in lists {
        CertificateList::<Rfc5280>::from_der(&list).map_err(|error| bad(error.to_string()))?;
    }
    Ok(())
}

/// `--pinnedpubkey`: hashes as `sha256//BASE64;sha256//BASE64`, or a file with the key in PEM or DER.
pub(super) fn pinned(typed: &OsStr) -> Result<Vec<[u8; 32]>, Failure> {
    let bad = |cause: String| Failure::new(Exit::PinnedKey, "TLS", cause);
    let shown = typed.display();
    if typed.as_bytes().starts_with(HASH.as_bytes()) {
        let text = typed.to_str().unwrap_or_default();
        let hashes = text.split(';').filter(|hash| !hash.is_empty()).map(|hash| {
            let decoded = BASE64_STANDARD.decode(hash.strip_prefix(HASH)?).ok()?;
            decoded.try_into().ok()
        });
        let hashes: Option<Vec<[u8; 32]>> = hashes.collect();
        return hashes.ok_or_else(|| {
            bad(format!(
                "--pinnedpubkey {shown}: not a list of sha256//BASE64"
            ))
        });
    }
    let bytes = read_limited(Path::new(typed))
        .map_err(|error| bad(format!("pinned key in {shown}: {error}")))?;
    let key = if is_pem(&bytes) {
        let text = String::from_utf8_lossy(&bytes);
        let inside = text
            .split_once("-----BEGIN PUBLIC KEY-----")
            .and_then(|(_, rest)| rest.split_once("-----END PUBLIC KEY-----"));
        let digits: Option<String> = inside.map(|(digits, _)| digits.split_whitespace().collect());
        let decoded = digits.and_then(|digits| BASE64_STANDARD.decode(digits).ok());
        decoded.ok_or_else(|| bad(format!("pinned key in {shown}: no public key found")))?
    } else {
        bytes
    };
    Ok(vec![Sha256::digest(&key).into()])
}

/// Splits `FILE:PASSWORD`, in which `\:` is a colon of the name and `\\` a backslash.
fn split_password(typed: &OsStr) -> (PathBuf, Option<OsString>) {
    let mut bytes = typed.as_bytes().iter().enumerate();
    let mut name = Vec::new();
    while let Some((at, byte)) = bytes.next() {
        match (byte, typed.as_bytes().get(at + 1)) {
            (b':', _) => {
                let password = OsStr::from_bytes(&typed.as_bytes()[at + 1..]).to_owned();
                let password = Some(password).filter(|password| !password.is_empty());
                return (OsString::from_vec(name).into(), password);
            }
            (b'\\', Some(next @ (b':' | b'\\'))) => {
                name.push(*next);
                bytes.next();
            }
            (byte, _) => name.push(*byte),
        }
    }
    (OsString::from_vec(name).into(), None)
}

/// Checks that a file is what its type says. Without a type, the content shows what it is.
fn check_type(path: &Path, typed: Option<&OsStr>, option: &str) -> Result<(), Failure> {
    let Some(typed) = typed else {
        return Ok(());
    };
    let bad = |cause: String| Failure::new(Exit::ClientCertificate, "TLS", cause);
    let shown = path.display();
    let name = typed.to_string_lossy().to_ascii_uppercase();
    let wants_pem = match &*name {
        "PEM" => true,
        "DER" => false,
        "P12" => {
            let cause = format!(
                "{option} P12: such files are not read; openssl pkcs12 -nodes -in {shown} makes PEM of it"
            );
            return Err(bad(cause));
        }
        _ => {
            return Err(bad(format!(
                "{option} {}: PEM and DER are supported",
                typed.display()
            )));
        }
    };
    // A file that cannot be read is told by the engine.
    match read_limited(path) {
        Ok(bytes) if is_pem(&bytes) != wants_pem => Err(bad(format!("{shown} is not {name}"))),
        _ => Ok(()),
    }
}

/// A key without its password. A key that has none is left as it is.
fn decrypted(path: &Path, password: &OsStr) -> Result<PemOrDer, Failure> {
    let bad = |cause: String| {
        let cause = format!("client key in {}: {cause}", path.display());
        Failure::new(Exit::ClientCertificate, "TLS", cause)
    };
    let bytes = read_limited(path).map_err(|error| bad(error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    let document = match text.find(ENCRYPTED) {
        Some(at) => {
            let end = text[at..]
                .find(END)
                .map_or(text.len(), |end| at + end + END.len());
            let (_, document) =
                SecretDocument::from_pem(&text[at..end]).map_err(|error| bad(error.to_string()))?;
            Some(document)
        }
        None if text.contains("Proc-Type: 4,ENCRYPTED") => {
            let cause = "encrypted as OpenSSL did of old; openssl pkcs8 -topk8 makes a key that can be read";
            return Err(bad(cause.into()));
        }
        None => SecretDocument::try_from(&bytes[..])
            .ok()
            .filter(|document| EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).is_ok()),
    };
    let Some(document) = document else {
        return Ok(PemOrDer::File(path.to_owned()));
    };
    let key = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| bad(error.to_string()))?;
    let key = key
        .decrypt(password.as_bytes())
        .map_err(|error| bad(format!("wrong password, or {error}")))?;
    Ok(PemOrDer::Bytes(key.as_bytes().to_vec()))
}

/// A file that cannot be read is told by the engine.
fn is_encrypted(path: &Path) -> bool {
    let bytes = read_limited(path).unwrap_or_default();
    memchr::memmem::find(&bytes, ENCRYPTED.as_bytes()).is_some()
}

fn is_pem(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"-----BEGIN ").is_some()
}

/// Whether a name is eight hexadecimal digits, a dot and a number.
fn is_hashed(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let Some((hash, [b'.', number @ ..])) = name.split_at_checked(8) else {
        return false;
    };
    hash.iter().all(u8::is_ascii_hexdigit)
        && !number.is_empty()
        && number.iter().all(u8::is_ascii_digit)
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

const HASH: &str = "sha256//";
const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// The most bytes of a file, as curl has it for pinned keys.
const MOST_BYTES: u64 = 1024 * 1024;
