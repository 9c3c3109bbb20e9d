//! What is sent to some hosts alone: the keys `match`, `headers` and `auth_file` of `[[host]]`. Secrets stand in files of
//! their own and are never shown.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use toml::Spanned;
use toml::de::DeValue;

use super::entries::HostConfig;
use super::kinds::{FilePath, Scalar, quoted};
use super::reader::{Kind, Reader};
use super::text_file;
use crawl::identity::Identity;

/// `match = "*.example.org"`
pub(super) struct Pattern;

impl Kind for Pattern {
    type Value = HostConfig;
    const ALLOWED: &'static str = "a host such as \"example.org\", \"*.example.org\", \"https://example.org:8443\", or \"*\" for all";

    fn read(into: &mut HostConfig, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let text = value.get_ref().as_str();
        match text.and_then(|text| Some((text, text.parse().ok()?))) {
            Some((text, pattern)) => {
                text.clone_into(&mut into.name);
                into.pattern = pattern;
            }
            // The text is not repeated: it may have credentials.
            None => reader.wrong(
                value.span(),
                &format!("no pattern for hosts; allowed: {}", Self::ALLOWED),
            ),
        }
    }

    fn show(value: &HostConfig) -> Option<String> {
        Some(quoted(&value.name))
    }
}

/// `headers = { Accept = "text/html" }`
pub(super) struct Headers;

impl Kind for Headers {
    type Value = HostConfig;
    const ALLOWED: &'static str = "a table of names and texts, such as { Accept = \"text/html\" }";

    fn read(into: &mut HostConfig, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let Some(table) = value.get_ref().as_table() else {
            return reader.wrong(
                value.span(),
                &format!("not a table; allowed: {}", Self::ALLOWED),
            );
        };
        let mut fields: Vec<_> = table.iter().collect();
        fields.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in fields {
            let text: &str = name.get_ref().as_ref();
            let added = match value.get_ref().as_str() {
                None => Err("not a text".to_owned()),
                Some(_) if is_secret(text) => Err(
                    "secrets belong into auth_file, which takes lines such as NAME: VALUE"
                        .to_owned(),
                ),
                Some(value) => {
                    into.headers.push((text.to_owned(), value.to_owned()));
                    let added = into.identity.header(text, value.as_bytes());
                    added.map_err(|error| error.to_string())
                }
            };
            if let Err(why) = added {
                reader.within(text.to_owned(), |reader| reader.wrong(value.span(), &why));
            }
        }
    }

    fn show(value: &HostConfig) -> Option<String> {
        let fields = value.headers.iter().map(|(name, value)| {
            let table = toml::Table::from_iter([(name.clone(), value.as_str().into())]);
            // `NAME = "VALUE"`, with quotes around the name where it needs these.
            table.to_string().trim_end().to_owned()
        });
        let fields: Vec<_> = fields.collect();
        Some(format!("{{ {} }}", fields.join(", "))).filter(|_| !fields.is_empty())
    }
}

/// `auth_file = "FILE"`
pub(super) struct Credentials;

impl Kind for Credentials {
    type Value = HostConfig;
    const ALLOWED: &'static str = <FilePath as Scalar>::ALLOWED;

    fn read(into: &mut HostConfig, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let added = FilePath::parse(value.get_ref(), reader.folder()).and_then(|path| {
            add(&mut into.identity, &path)?;
            into.auth_file = Some(path);
            Ok(())
        });
        if let Err(why) = added {
            reader.wrong(value.span(), &why);
        }
    }

    fn show(value: &HostConfig) -> Option<String> {
        <FilePath as Scalar>::show(value.auth_file.as_ref()?)
    }
}

/// Adds what the file says. Errors have the number of a line, and nothing of what stands there.
fn add(identity: &mut Identity, path: &Path) -> Result<(), String> {
    let shown = path.display();
    let text = text_file::read(path, LONGEST).map_err(|error| format!("{shown}: {error}"))?;
    let mut is_empty = true;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        is_empty = false;
        let added = field(line).ok_or_else(|| "no credentials".to_owned());
        let added = added.and_then(|(name, value)| {
            let added = identity.header(&name, value.as_bytes());
            added.map_err(|_| "a header field that cannot be sent".to_owned())
        });
        added.map_err(|why| format!("{shown}: line {}: {why}; allowed: {LINES}", index + 1))?;
    }
    match is_empty {
        true => Err(format!("{shown}: no credentials; allowed: {LINES}")),
        false => Ok(()),
    }
}

/// The header field of a line of credentials.
fn field(line: &str) -> Option<(String, String)> {
    let authorization = |value: String| Some(("Authorization".to_owned(), value));
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (first.split_once(':'), rest.is_empty()) {
        // `NAME: VALUE`
        (Some((name, "")), false) => Some((name.to_owned(), rest.trim().to_owned())),
        // `USER:PASSWORD`; passwords may have blanks.
        (Some((user, _)), _) if !user.is_empty() => {
            authorization(format!("Basic {}", BASE64_STANDARD.encode(line)))
        }
        // `Bearer TOKEN`
        (None, false) => authorization(line.to_owned()),
        _ => None,
    }
}

/// Whether a header field of this name usually has a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["auth", "cookie", "token", "secret", "password", "key"];
    words.iter().any(|word| name.contains(word))
}

/// What a line of credentials may be.
const LINES: &str = "USER:PASSWORD, SCHEME CREDENTIALS, or NAME: VALUE";
/// The most of a file of credentials that is read.
const LONGEST: u64 = 1 << 20;
