//! The options of all commands that crawl for what only certain hosts get: header fields, credentials, cookies and
//! client certificates.

use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use courser::{ClientCertificate, CookieJar, PemOrDer, TlsConfig};

use super::crawl_options::Crawls;
use super::option::{Opt, any, file};
use super::parse::UsageError;
use crate::crawl::cookie_file;
use crate::crawl::identity::{HostPattern, Identities, Identity, IdentityHosts};
use crate::crawl::netrc;
use crate::report::check_writable;
use crate::stdout;

/// What the options say, one entry for each `--for`, and one for what stands before.
#[derive(Default)]
pub(crate) struct IdentityOptions {
    groups: Vec<Group>,
    /// What a netrc file says. Other options replace it.
    netrc: Vec<(IdentityHosts, Identity)>,
    jar: Option<CookieJar>,
    /// Whether `~/.netrc` is read.
    reads_netrc: bool,
    /// The file that the cookies are written to at the end.
    jar_file: Option<PathBuf>,
}

struct Group {
    hosts: IdentityHosts,
    identity: Identity,
    cookies: Vec<u8>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Group {
    fn new(hosts: IdentityHosts) -> Self {
        Self {
            hosts,
            identity: Identity::default(),
            cookies: Vec::new(),
            certificate: None,
            key: None,
        }
    }

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

    /// Whether no option belongs to the group.
    fn is_empty(&self) -> bool {
        let has_pair = self.certificate.is_some() || self.key.is_some();
        self.identity.is_empty() && self.cookies.is_empty() && !has_pair
    }

    fn build(mut self, tls: &TlsConfig) -> Result<(IdentityHosts, Identity), UsageError> {
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
        Ok((self.hosts, self.identity))
    }
}

impl IdentityOptions {
    /// Whether no option was given.
    pub(super) fn is_empty(&self) -> bool {
        let has_netrc = self.reads_netrc || !self.netrc.is_empty();
        self.groups.is_empty() && !has_netrc && self.jar.is_none()
    }

    /// The entry that options change.
    fn group(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::new(IdentityHosts::Given));
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// The identities, and the jar for cookies of servers. Client certificates are used with these TLS settings.
    ///
    /// # Errors
    /// A certificate cannot be read, or a text cannot be sent.
    pub(crate) fn build(
        mut self,
        tls: &TlsConfig,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<(Identities, Option<CookieJar>), UsageError> {
        if self.reads_netrc && self.netrc.is_empty() {
            let home = var("HOME").unwrap_or_default();
            let path = Path::new(&home).join(".netrc");
            let added = self.add_netrc(&path);
            added.map_err(|error| UsageError(format!("--netrc: {}: {error}", path.display())))?;
        }
        let mut identities = Identities::default();
        for (hosts, identity) in self.netrc {
            identities.add(hosts, identity);
        }
        for group in self.groups {
            if group.is_empty() {
                let text = "--for: nothing after it is for its hosts alone, as -H and -u are";
                return Err(UsageError(text.to_owned()));
            }
            let (hosts, identity) = group.build(tls)?;
            identities.add(hosts, identity);
        }
        Ok((identities, self.jar))
    }

    fn add_headers(&mut self, typed: &str) -> Result<(), String> {
        let Some(path) = typed.strip_prefix('@') else {
            return self.group().add_header(typed.as_bytes());
        };
        let text = fs::read(path).map_err(|error| error.to_string())?;
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() {
                self.group().add_header(line)?;
            }
        }
        Ok(())
    }

    /// As curl does: a text with `=` is cookies, another is the name of a file.
    fn add_cookies(&mut self, typed: &str) -> Result<(), String> {
        if typed.contains('=') {
            let cookies = &mut self.group().cookies;
            if !cookies.is_empty() {
                cookies.extend_from_slice(b"; ");
            }
            cookies.extend_from_slice(typed.as_bytes());
            return Ok(());
        }
        let text = fs::read(typed).map_err(|error| error.to_string())?;
        let jar = self.jar.get_or_insert_with(cookie_file::jar);
        cookie_file::load(jar, &text);
        Ok(())
    }

    /// The file for cookies at the end, if there is one.
    pub(crate) fn cookie_file(&self) -> Option<CookieFile> {
        Some(CookieFile {
            path: self.jar_file.clone()?,
            jar: self.jar.clone()?,
        })
    }

    /// The entries of a netrc file. Only the first one for a host counts, as in curl.
    fn add_netrc(&mut self, path: &Path) -> Result<(), String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let entries = netrc::read(&text)?;
        let with_login = |entry: &netrc::Entry| !entry.login.is_empty();
        for entry in entries.into_iter().filter(with_login).rev() {
            let mut identity = Identity::default();
            let user = format!("{}:{}", entry.login, entry.password);
            let added = identity.header("Authorization", basic(&user).as_bytes());
            added.map_err(|error| error.to_string())?;
            let hosts = match entry.machine {
                Some(name) => IdentityHosts::Named(name),
                None => IdentityHosts::Given,
            };
            self.netrc.push((hosts, identity));
        }
        Ok(())
    }

    /// The first line of the file is `user:password`, or `Bearer TOKEN`.
    fn add_auth_file(&mut self, path: &str) -> Result<(), String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let line = text.lines().next().unwrap_or_default().trim();
        match line {
            bearer if bearer.starts_with("Bearer ") => self.group().authorize(bearer),
            user if user.contains(':') => self.group().authorize(&basic(user)),
            _ => Err("its first line is neither user:password nor Bearer TOKEN".to_owned()),
        }
    }
}

/// The file that gets the cookies at the end.
pub(crate) struct CookieFile {
    path: PathBuf,
    jar: CookieJar,
}

impl CookieFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file, unless it is there: an error is better now than after a long run.
    ///
    /// # Errors
    /// The file cannot be written. The text names it.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        if self.path.as_os_str() == "-" {
            return Ok(());
        }
        let named = |error| format!("--cookie-jar {}: {error}", self.path.display());
        check_writable(&self.path).map_err(|error| UsageError(named(error)))
    }

    /// Writes the cookies. `-` is standard output.
    ///
    /// # Errors
    /// They cannot be written. The text names the file.
    pub(crate) fn save(&self) -> Result<(), String> {
        let text = cookie_file::saved(&self.jar);
        let written = match self.path.as_os_str() == "-" {
            true => stdout::write(text.as_bytes()),
            false => fs::write(&self.path, text),
        };
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

fn basic(user: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(user))
}

/// The rows, for the arguments `A` of a command.
pub(crate) struct IdentityRows<A>(PhantomData<A>);

impl<A: Crawls> IdentityRows<A> {
    pub(crate) const ALL: &'static [Opt<A>] = &[
        Opt::text(&["--for"], &[any("HOSTS")], |args: &mut A, value| {
            let hosts: HostPattern = value.parse().map_err(|_| "no pattern for hosts".to_owned())?;
            let groups = &mut args.crawl().identity.groups;
            groups.push(Group::new(IdentityHosts::Matching(hosts)));
            Ok(())
        })
        .short("hosts that the options after this one are for")
        .long("The hosts that the options of this group after this one are for, up to the next --for: a name (example.org), all names below a name (*.example.org), or all hosts (*), perhaps with a port (example.org:8080) or a scheme (https://example.org). Without a port, the default port is meant. Without --for, they are for the scheme, host and port of each URL that is an argument of the command. No other host gets any of them, also not by a redirect."),
        Opt::text(&["-H", "--header"], &[file("HEADER|@FILE")], |args: &mut A, value| {
            args.crawl().identity.add_headers(value)
        })
        .short("send this header, such as 'Accept: text/html'")
        .long("Send this header in place of the usual one with this name; @FILE reads one header from each line."),
        Opt::text(&["-u", "--user"], &[any("USER:PASSWORD")], |args: &mut A, value| {
            match value.contains(':') {
                true => args.crawl().identity.group().authorize(&basic(value)),
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
        Opt::text(&["-b", "--cookie"], &[file("COOKIES|FILE")], |args: &mut A, value| {
            args.crawl().identity.add_cookies(value)
        })
        .short("send these cookies, or those of a Netscape file")
        .long("Send these cookies, such as 'a=1; b=2'. A text without = is the name of a cookie file in Netscape's format, which says itself which hosts its cookies are for; /dev/null is an empty one. With a file, cookies that servers set are sent back to them until the command ends (RFC 6265), which find does in any case."),
        Opt::text(&["-c", "--cookie-jar"], &[file("FILE")], |args: &mut A, value| {
            let identity = &mut args.crawl().identity;
            identity.jar.get_or_insert_with(cookie_file::jar);
            identity.jar_file = Some(PathBuf::from(value));
            Ok(())
        })
        .short("write the cookies of servers to this file, at the end")
        .long("Write the cookies to this file when the command ends, in Netscape's format: those that were read with -b, as servers have changed them, and those that servers have set. - is standard output. The file has credentials."),
        Opt::flag(&["-n", "--netrc"], |args: &mut A| args.crawl().identity.reads_netrc = true)
        .short("send the credentials that ~/.netrc has for the host")
        .long("Send the user and password that the file .netrc in the home directory has for the name of the host, by Basic authentication. The entry default is for the hosts of the URLs that are arguments of the command. -u and --auth-file go before."),
        Opt::text(&["--netrc-file"], &[file("FILE")], |args: &mut A, value| {
            args.crawl().identity.add_netrc(Path::new(value))
        })
        .short("like --netrc, with this file")
        .long("Like --netrc, with this file in place of ~/.netrc."),
        Opt::text(&["-E", "--cert"], &[file("FILE")], |args: &mut A, value| {
            args.crawl().identity.group().certificate = Some(PathBuf::from(value));
            Ok(())
        })
        .short("client certificate, a PEM file")
        .long("The client certificate with its chain, a PEM file. The file has the key too, unless --key names another."),
        Opt::text(&["--key"], &[file("FILE")], |args: &mut A, value| {
            args.crawl().identity.group().key = Some(PathBuf::from(value));
            Ok(())
        })
        .short("private key of the client certificate")
        .long("The private key of the client certificate, a PEM file without a passphrase."),
    ];
}
