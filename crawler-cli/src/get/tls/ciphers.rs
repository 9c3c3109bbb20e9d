//! `--ciphers`, `--tls13-ciphers` and `--curves`: OpenSSL's names for what rustls has. Other names are errors.

use std::ffi::OsStr;

use courser::tls_cipher_suites;

use crate::get::exit::{Exit, Failure};

/// The suites for these lists, by their names in the IANA registry; none if no list is given. A missing list means all of
/// its version.
pub(super) fn suites(old: Option<&OsStr>, new: Option<&OsStr>) -> Result<Vec<String>, Failure> {
    if old.is_none() && new.is_none() {
        return Ok(Vec::new());
    }
    let all = |is_new: bool| tls_cipher_suites().filter(move |name| is_13(name) == is_new);
    let mut chosen: Vec<&str> = match new {
        None => all(true).collect(),
        Some(typed) => listed(typed, "--tls13-ciphers", |name| {
            suite13(name).into_iter().collect()
        })?,
    };
    match old {
        None => chosen.extend(all(false)),
        Some(typed) => {
            let known = |name: &str| match name {
                "DEFAULT" | "ALL" | "HIGH" | "TLSv1.2" | "ECDHE" | "EECDH" | "kEECDH" | "AEAD" => {
                    all(false).collect()
                }
                name => suite12(name).into_iter().collect(),
            };
            chosen.extend(listed(typed, "--ciphers", known)?);
        }
    }
    Ok(chosen.into_iter().map(str::to_owned).collect())
}

/// The groups of a list of `--curves`.
pub(super) fn groups(typed: Option<&OsStr>) -> Result<Vec<String>, Failure> {
    let Some(typed) = typed else {
        return Ok(Vec::new());
    };
    let known = |name: &str| {
        let is = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        let groups = [
            ("X25519", &["X25519"][..]),
            ("secp256r1", &["P-256", "prime256v1", "secp256r1"]),
            ("secp384r1", &["P-384", "secp384r1"]),
        ];
        let group = groups.into_iter().find(|(_, names)| is(names));
        group.into_iter().map(|(group, _)| group).collect()
    };
    let groups = listed(typed, "--curves", known)?;
    Ok(groups.into_iter().map(str::to_owned).collect())
}

/// What the names of a list stand for, each once, in their order. A name after `!` or `-` takes away.
fn listed<'a>(
    typed: &OsStr,
    option: &str,
    known: impl Fn(&str) -> Vec<&'a str>,
) -> Result<Vec<&'a str>, Failure> {
    let bad = |name: &str, what: &str| {
        let cause = format!("{option}: {name:?} {what}");
        Failure::new(Exit::Cipher, "TLS", cause)
    };
    let text = typed
        .to_str()
        .ok_or_else(|| bad(&typed.to_string_lossy(), "is not UTF-8"))?;
    let mut chosen = Vec::new();
    let mut removed = Vec::new();
    let names = text.split([':', ',', ' ']);
    for name in names.filter(|name| !name.is_empty()) {
        // A level of security, which is always that of the strongest suites here.
        let (name, level) = match name.split_once('@') {
            Some((name, level)) => (name, Some(level)),
            None => (name, None),
        };
        if level.is_some_and(|level| !level.starts_with("SECLEVEL=") && level != "STRENGTH") {
            return Err(bad(level.unwrap_or_default(), "is unknown"));
        }
        if name.is_empty() {
            continue;
        }
        let less = name.strip_prefix(['!', '-']);
        let found = known(less.unwrap_or(name));
        match less {
            // rustls has none of these.
            Some(class) if found.is_empty() && ABSENT.contains(&class) => {}
            _ if found.is_empty() => return Err(bad(name, "is not one of rustls's")),
            Some(_) => removed.extend(found),
            None => {
                for new in found {
                    if !chosen.contains(&new) {
                        chosen.push(new);
                    }
                }
            }
        }
    }
    chosen.retain(|name| !removed.contains(name));
    if chosen.is_empty() {
        return Err(bad(text, "names none of rustls's"));
    }
    Ok(chosen)
}

fn is_13(name: &str) -> bool {
    name.starts_with("TLS13_")
}

/// rustls's name for a suite of TLS 1.3, which the registry calls `TLS_AES_128_GCM_SHA256`.
fn suite13(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("TLS_")?;
    tls_cipher_suites().find(|own| own.strip_prefix("TLS13_") == Some(rest))
}

/// A suite of TLS 1.2 by its name in the registry or by OpenSSL's.
fn suite12(name: &str) -> Option<&'static str> {
    let openssl = |own: &str| {
        let own = own.strip_prefix("TLS_")?;
        let short = own
            .replace("_WITH", "")
            .replace("AES_", "AES")
            .replace('_', "-");
        Some(short.replace("POLY1305-SHA256", "POLY1305"))
    };
    let mut old = tls_cipher_suites().filter(|own| !is_13(own));
    old.find(|own| *own == name || openssl(own).as_deref() == Some(name))
}

/// Classes of suites that lists usually exclude.
const ABSENT: &[&str] = &[
    "3DES", "ADH", "AECDH", "ARIA", "CAMELLIA", "DES", "DH", "DHE", "DSS", "EDH", "EXP", "EXPORT",
    "IDEA", "LOW", "MD5", "MEDIUM", "NULL", "PSK", "RC2", "RC4", "SEED", "SHA", "SHA1", "SRP",
    "SSLv2", "SSLv3", "TLSv1", "aDSS", "aNULL", "eNULL", "kDHE", "kEDH", "kPSK", "kRSA", "kSRP",
];
