//! Digest authentication in what the peers received: each answer is checked here, since it has a random nonce in it, and
//! its random parts are replaced by placeholders.

use md5::Md5;
use sha2::{Digest as _, Sha256, Sha512_256};

/// The requests with `{cnonce}` and `{right}` or `{wrong}` in their answers. The bodies are held to be empty where they
/// are hashed.
pub(crate) fn checked(bytes: &[u8]) -> Vec<u8> {
    let mut checked = Vec::with_capacity(bytes.len());
    let mut request = None;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [method, _, version] = words[..]
            && version.starts_with("HTTP/1.")
        {
            request = Some(method.to_owned());
        }
        let lower = text.to_ascii_lowercase();
        let is_answer = ["authorization: digest ", "proxy-authorization: digest "]
            .iter()
            .any(|start| lower.starts_with(start));
        match &request {
            Some(method) if is_answer => checked.extend(answer(&text, method).into_bytes()),
            _ => checked.extend_from_slice(line),
        }
    }
    checked
}

fn answer(line: &str, method: &str) -> String {
    let parameters = parameters(line);
    let get = |name: &str| {
        let mut found = parameters.iter().filter(|(n, _)| n == name);
        found.next().map_or("", |(_, value)| value.as_str())
    };
    let algorithm = get("algorithm").to_ascii_lowercase();
    let hash = |parts: &[&str]| {
        let text = parts.join(":");
        let bytes = match algorithm.trim_end_matches("-sess") {
            "sha-256" => Sha256::digest(text).to_vec(),
            "sha-512-256" => Sha512_256::digest(text).to_vec(),
            _ => Md5::digest(text).to_vec(),
        };
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    let (nonce, cnonce, qop) = (get("nonce"), get("cnonce"), get("qop"));
    let is_right = USERS.iter().any(|(user, password)| {
        let hidden = hash(&[user, get("realm")]);
        let name = if get("userhash") == "true" {
            &hidden
        } else {
            *user
        };
        let mut secret = hash(&[user, get("realm"), password]);
        if algorithm.ends_with("-sess") {
            secret = hash(&[&secret, nonce, cnonce]);
        }
        let mut request = hash(&[method, get("uri")]);
        if qop == "auth-int" {
            request = hash(&[method, get("uri"), &hash(&[""])]);
        }
        let response = match qop {
            "" => hash(&[&secret, nonce, &request]),
            qop => hash(&[&secret, nonce, get("nc"), cnonce, qop, &request]),
        };
        name == get("username") && response == get("response")
    });
    let mut shown = line.to_owned();
    if !cnonce.is_empty() {
        shown = shown.replace(&format!("\"{cnonce}\""), "{cnonce}");
    }
    let verdict = if is_right { "{right}" } else { "{wrong}" };
    shown.replace(&format!("\"{}\"", get("response")), verdict)
}

/// Names and values, without quotes.
fn parameters(line: &str) -> Vec<(String, String)> {
    let mut rest = line
        .split_once("igest ")
        .map_or("", |(_, rest)| rest)
        .trim();
    let mut found = Vec::new();
    while let Some((name, after)) = rest.split_once('=') {
        let mut value = String::new();
        let mut chars = after.chars();
        if after.starts_with('"') {
            chars.next();
            while let Some(c) = chars.next() {
                match c {
                    '"' => break,
                    '\\' => value.extend(chars.next()),
                    c => value.push(c),
                }
            }
            rest = chars.as_str();
        } else {
            let end = after.find(',').unwrap_or(after.len());
            value.push_str(&after[..end]);
            rest = &after[end..];
        }
        found.push((name.trim().to_owned(), value.trim().to_owned()));
        rest = rest.trim_start_matches([',', ' ']);
    }
    found
}

/// The users of the scenarios, with their passwords.
const USERS: &[(&str, &str)] = &[
    ("u", "p"),
    ("a", "b"),
    ("u\"v\\w", "p:q"),
    ("u", ""),
    ("\u{e9}", "\u{fc}"),
];

#[test]
fn answers_are_checked() {
    let head = |response: &str| {
        let line = format!(
            "Authorization: Digest username=\"u\", realm=\"r\", nonce=\"n\", uri=\"/x\", response=\"{response}\""
        );
        let text = format!("GET /x HTTP/1.1\r\n{line}\r\n\r\n");
        String::from_utf8(checked(text.as_bytes())).expect("text")
    };
    // As curl 7.88 answers.
    assert!(head("3042aef13752cb1d63f6787a080ffdfc").contains("response={right}\r\n"));
    assert!(head("3042aef13752cb1d63f6787a080ffdfd").contains("response={wrong}\r\n"));
}
