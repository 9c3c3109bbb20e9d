//! Signatures of messages (Standard Webhooks, symmetric): the receiver learns that a message is from the service, and that
//! it is as it was sent.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD as PADDED};
use ring::hmac;

/// The keys that sign messages. A receiver takes a message if one of the signatures is right: while a key is replaced,
/// the old one and the new one sign.
///
/// ```
/// use crawler_cli::watch::hooks::Secret;
///
/// let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").expect("a key");
/// assert!(secret.sign("msg_1", 1_614_265_330, b"{}").starts_with("v1,"));
/// ```
#[derive(Clone)]
pub struct Secret(Vec<hmac::Key>);

impl Secret {
    /// The keys in the text of a file: `whsec_` and the key in Base64, one in a line. Empty lines and those that begin with
    /// `#` are passed over.
    ///
    /// # Errors
    /// What is wrong, with the number of the line and nothing of what stands there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = key(line).map_err(|why| format!("line {}: {why}", index + 1))?;
            keys.push(hmac::Key::new(hmac::HMAC_SHA256, &key));
        }
        match keys.len() {
            0 => Err("no key".to_owned()),
            1..=MOST_KEYS => Ok(Self(keys)),
            _ => Err(format!("more than {MOST_KEYS} keys")),
        }
    }

    /// The value of `webhook-signature`: a signature by each key.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut signed = format!("{id}.{timestamp}.").into_bytes();
        signed.extend_from_slice(body);
        let signatures = self.0.iter().map(|key| {
            let code = hmac::sign(key, &signed);
            format!("v1,{}", PADDED.encode(code))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} keys)", self.0.len())
    }
}

fn key(line: &str) -> Result<Vec<u8>, String> {
    let key = line
        .strip_prefix("whsec_")
        .ok_or("a key begins with whsec_")?;
    let key = LENIENT.decode(key).map_err(|_| "the key is no Base64")?;
    match LENGTHS.contains(&key.len()) {
        true => Ok(key),
        false => Err(format!(
            "a key has {} to {} bytes",
            LENGTHS.start(),
            LENGTHS.end()
        )),
    }
}

/// With or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The lengths of keys that Standard Webhooks allows.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
/// The most keys of a receiver.
const MOST_KEYS: usize = 8;
