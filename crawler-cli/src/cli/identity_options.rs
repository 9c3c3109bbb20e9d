//! The options of all commands that crawl for what only certain hosts get: header fields, credentials, cookies and
//! client certificates.

use std::fs::File;
use std::io::Read as _;
use std::marker::PhantomData;
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use courser::{ClientCertificate, PemOrDer, TlsConfig};

use super::crawl_options::Crawls;
use super::option::{Opt, any, file};
use super::parse::UsageError;
use crate::crawl::identity::{Identities, Identity, IdentityHosts};

/// What the options say, for the hosts of the URLs that are arguments of the command.
#[derive(Default)]
pub(crate) struct IdentityOptions {
    identity: Identity,
    cookies: Vec<u8>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl IdentityOptions {
    /// `NAME: VALUE`
    fn add_header(&mut self, line: &[u8]) -> Result<(), String> {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            // The message does not repeat the line: it may be a secret whose header name was forgotten.
            return Err("a header needs a colon after its name".to_owned());
        };
        let name = String::from_utf8_lossy(&line[..colon]);
        let added = self.identity.header(&name, line[colon + 1..].trim_ascii());
        added.map_err(|error| error.to_string())
    }

    fn authorize(&mut self, value: &str) -> Result<(), String> {
        let added = self.identity.header("Authorization", value.as_bytes());
        added.map_err(|error| error.to_string())
    }

    /// Whether no option was given.
    pub(super) fn is_empty(&self) -> bool {
        let has_pair = self.certificate.is_some() || self.key.is_some();
        self.identity.is_empty() && self.cookies.is_empty() && !has_pair
    }

    /// The identities. A client certificate is used with these TLS settings.
    ///
    /// # Errors
    /// A certificate cannot be read, or a text cannot be sent.
    pub(crate) fn build(mut self, tls: &TlsConfig) -> Result<Identities, UsageError> {
        if self.is_empty() {
            return Ok(Identities::default());
        }
        if !self.cookies.is_empty() {
            let added = self.identity.header("Cookie", &self.cookies);
            added.map_err(|error| UsageError(format!("--cookie: {error}")))?;
        }
        match (self.certificate, self.key) {
            (Some(chain), key) => {
                let key = key.unwrap_or_else(|| chain.clone());
                let tls = TlsConfig {
                    client: Some(ClientCertificate {
                        chain: PemOrDer::File(chain),
                        key: PemOrDer::File(key),
                    }),
                    ..tls.clone()
                };
                self.identity.certificate(tls.build()?);
            }
            (None, Some(_)) => return Err(UsageError("--key: there is no --cert".to_owned())),
            (None, None) => {}
        }
        let mut identities = Identities::default();
        identities.add(IdentityHosts::Given, self.identity);
        Ok(identities)
    }

    fn add_headers(&mut self, typed: &str) -> Result<(), String> {
        let Some(path) = typed.strip_prefix('@') else {
            return self.add_header(typed.as_bytes());
        };
        let text = small_file(path)?;
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() {
                self.add_header(line)?;
            }
        }
        Ok(())
    }

    /// `NAME=VALUE`, or several of them with `; ` between.
    fn add_cookies(&mut self, typed: &str) -> Result<(), String> {
        if !typed.contains('=') {
            return Err("neither NAME=VALUE nor several of them".to_owned());
        }
        if !self.cookies.is_empty() {
            self.cookies.extend_from_slice(b"; ");
        }
        self.cookies.extend_from_slice(typed.as_bytes());
        Ok(())
    }

    /// The first line of the file is `user:password`, or `Bearer TOKEN`.
    fn add_auth_file(&mut self, path: &str) -> Result<(), String> {
        let text = String::from_utf8(small_file(path)?).map_err(|error| error.to_string())?;
        let line = text.lines().next().unwrap_or_default().trim();
        match line {
            bearer if bearer.starts_with("Bearer ") => self.authorize(bearer),
            user if user.contains(':') => self.authorize(&basic(user)),
            _ => Err("its first line is neither user:password nor Bearer TOKEN".to_owned()),
        }
    }
}

/// The content of a file that is no larger than headers can be.
fn small_file(path: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > LARGEST => Err(format!("more than {LARGEST} bytes")),
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// The most bytes of a file of headers or credentials.
const LARGEST: u64 = 1 << 20;

fn basic(user: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(user))
}

/// The rows, for the arguments `A` of a command.
pub(crate) struct IdentityRows<A>(PhantomData<A>);

impl<A: Crawls> IdentityRows<A> {
    pub(crate) const ALL: &'static [Opt<A>] = &[
        Opt::text(&["-H", "--header"], &[file("HEADER|@FILE")], |args: &mut A, value| {
            args.crawl().identity.add_headers(value)
        })
        .short("send this header, such as 'Accept: text/html'")
        .long("Send this header in place of the usual one with this name; @FILE reads one header from each line. Only the scheme, host and port of each URL that is an argument of the command get it: no other host, also not by a redirect."),
        Opt::text(&["-u", "--user"], &[any("USER:PASSWORD")], |args: &mut A, value| {
            match value.contains(':') {
                true => args.crawl().identity.authorize(&basic(value)),
                false => Err("no colon between user and password".to_owned()),
            }
        })
        .short("send user and password (Basic authentication)")
        .long("Send user and password by Basic authentication (RFC 7617). Other users of the machine can see the command line; --auth-file hides the password from them."),
        Opt::text(&["--auth-file"], &[file("FILE")], |args: &mut A, value| {
            args.crawl().identity.add_auth_file(value)
        })
        .short("send the credentials in the first line of this file")
        .long("Send the credentials in the first line of this file: USER:PASSWORD for Basic authentication, or Bearer TOKEN (RFC 6750)."),
        Opt::text(&["-b", "--cookie"], &[any("NAME=VALUE")], |args: &mut A, value| {
            args.crawl().identity.add_cookies(value)
        })
        .short("send these cookies")
        .long("Send these cookies, such as 'a=1; b=2', to the hosts of the URLs that are arguments of the command."),
        Opt::text(&["-E", "--cert"], &[file("FILE")], |args: &mut A, value| {
            args.crawl().identity.certificate = Some(PathBuf::from(value));
            Ok(())
        })
        .short("client certificate, a PEM file")
        .long("The client certificate with its chain, a PEM file. The file has the key too, unless --key names another."),
        Opt::text(&["--key"], &[file("FILE")], |args: &mut A, value| {
            args.crawl().identity.key = Some(PathBuf::from(value));
            Ok(())
        })
        .short("private key of the client certificate")
        .long("The private key of the client certificate, a PEM file without a passphrase."),
    ];
}
