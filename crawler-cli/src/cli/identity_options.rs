//! The options of all commands that crawl for what only certain hosts get: header fields, credentials, cookies and
//! client certificates.

use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use courser::{ClientCertificate, PemOrDer, TlsConfig};

use super::usage::UsageError;
use crawl::identity::{Identities, Identity, IdentityHosts};
use plain::files::at_most;

/// What was typed, for the hosts of the URLs that are arguments of the command. No message repeats a value: it may be a
/// credential.
#[derive(clap::Args)]
#[command(next_help_heading = "What certain hosts get")]
pub(crate) struct IdentityOptions {
    /// Send this header, such as 'Accept: text/html'
    ///
    /// Send this header in place of the usual one with this name; @FILE reads one header from each line. Only the
    /// scheme, host and port of each URL that is an argument of the command get it: no other host, also not by a
    /// redirect.
    #[arg(short = 'H', long, value_name = "HEADER|@FILE")]
    header: Vec<String>,
    /// Send user and password (Basic authentication)
    ///
    /// Send user and password by Basic authentication (RFC 7617). Other users of the machine can see the command line;
    /// --auth-file hides the password from them.
    #[arg(short, long, value_name = "USER:PASSWORD")]
    user: Option<String>,
    /// Send the credentials in the first line of this file
    ///
    /// Send the credentials in the first line of this file: USER:PASSWORD for Basic authentication, or Bearer TOKEN
    /// (RFC 6750).
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Send these cookies
    ///
    /// Send these cookies, such as 'a=1; b=2', to the hosts of the URLs that are arguments of the command.
    #[arg(short = 'b', long, value_name = "NAME=VALUE")]
    cookie: Vec<String>,
    /// Client certificate, a PEM file
    ///
    /// The client certificate with its chain, a PEM file. The file has the key too, unless --key names another.
    #[arg(short = 'E', long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Private key of the client certificate
    ///
    /// The private key of the client certificate, a PEM file without a passphrase.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl IdentityOptions {
    /// Whether no option was given.
    pub(super) fn is_empty(&self) -> bool {
        let has_pair = self.cert.is_some() || self.key.is_some();
        let has_user = self.user.is_some() || self.auth_file.is_some();
        self.header.is_empty() && self.cookie.is_empty() && !has_user && !has_pair
    }

    /// The identities. A client certificate is used with these TLS settings.
    ///
    /// # Errors
    /// A certificate cannot be read, or a text cannot be sent.
    pub(crate) fn build(self, tls: &TlsConfig) -> Result<Identities, UsageError> {
        if self.is_empty() {
            return Ok(Identities::default());
        }
        let wrong =
            |option: &'static str| move |why: String| UsageError(format!("{option}: {why}"));
        let mut identity = Identity::default();
        for typed in &self.header {
            add_headers(&mut identity, typed).map_err(wrong("-H"))?;
        }
        if let Some(user) = &self.user {
            add_user(&mut identity, user).map_err(wrong("-u"))?;
        }
        if let Some(path) = &self.auth_file {
            add_auth_file(&mut identity, path).map_err(wrong("--auth-file"))?;
        }
        if !self.cookie.is_empty() {
            add_cookies(&mut identity, &self.cookie).map_err(wrong("-b"))?;
        }
        match (self.cert, self.key) {
            (Some(chain), key) => {
                let key = key.unwrap_or_else(|| chain.clone());
                let tls = TlsConfig {
                    client: Some(ClientCertificate {
                        chain: PemOrDer::File(chain),
                        key: PemOrDer::File(key),
                    }),
                    ..tls.clone()
                };
                identity.certificate(tls.build()?);
            }
            (None, Some(_)) => return Err(UsageError("--key: there is no --cert".to_owned())),
            (None, None) => {}
        }
        let mut identities = Identities::default();
        identities.add(IdentityHosts::Given, identity);
        Ok(identities)
    }
}

fn add(identity: &mut Identity, name: &str, value: &[u8]) -> Result<(), String> {
    let added = identity.header(name, value);
    added.map_err(|error| error.to_string())
}

/// `NAME: VALUE`, or `@` and the name of a file with such lines.
fn add_headers(identity: &mut Identity, typed: &str) -> Result<(), String> {
    let Some(path) = typed.strip_prefix('@') else {
        return add_header(identity, typed.as_bytes());
    };
    let text = small_file(path.as_ref()).map_err(|why| format!("{path}: {why}"))?;
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            add_header(identity, line)?;
        }
    }
    Ok(())
}

fn add_header(identity: &mut Identity, line: &[u8]) -> Result<(), String> {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return Err("a header needs a colon after its name".to_owned());
    };
    let name = String::from_utf8_lossy(&line[..colon]);
    add(identity, &name, line[colon + 1..].trim_ascii())
}

/// `user:password`
fn add_user(identity: &mut Identity, user: &str) -> Result<(), String> {
    match user.contains(':') {
        true => {
            let basic = format!("Basic {}", BASE64_STANDARD.encode(user));
            add(identity, "Authorization", basic.as_bytes())
        }
        false => Err("no colon between user and password".to_owned()),
    }
}

/// The first line of the file is `user:password`, or `Bearer TOKEN`.
fn add_auth_file(identity: &mut Identity, path: &Path) -> Result<(), String> {
    let text = String::from_utf8(small_file(path)?).map_err(|error| error.to_string())?;
    let line = text.lines().next().unwrap_or_default().trim();
    match line {
        bearer if bearer.starts_with("Bearer ") => {
            add(identity, "Authorization", bearer.as_bytes())
        }
        user if user.contains(':') => add_user(identity, user),
        _ => Err("its first line is neither user:password nor Bearer TOKEN".to_owned()),
    }
}

/// Each is `NAME=VALUE`, or several of them with `; ` between.
fn add_cookies(identity: &mut Identity, cookies: &[String]) -> Result<(), String> {
    match cookies.iter().all(|cookie| cookie.contains('=')) {
        true => add(identity, "Cookie", cookies.join("; ").as_bytes()),
        false => Err("neither NAME=VALUE nor several of them".to_owned()),
    }
}

/// The content of a file that is no larger than headers can be.
fn small_file(path: &Path) -> Result<Vec<u8>, String> {
    let read = File::open(path).and_then(|file| at_most(LARGEST, file));
    let bytes = read.map_err(|error| error.to_string())?;
    bytes.ok_or_else(|| format!("more than {LARGEST} bytes"))
}

/// The most bytes of a file of headers or credentials.
const LARGEST: u64 = 1 << 20;
