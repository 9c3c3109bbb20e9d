//! The TLS options: one set for servers, one for an https proxy.

mod ciphers;
mod files;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use courser::{PemOrDer, TlsConfig, TlsRoots, TlsVersion};

use super::exit::Failure;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct TlsSettings {
    pub(crate) insecure: bool,
    pub(crate) roots: Option<PathBuf>,
    /// `--capath`: folders of certificates, with colons between them, which are trusted too.
    pub(crate) roots_folder: Option<OsString>,
    /// The folders are those of the environment: one that is not there is passed over.
    pub(crate) folder_may_miss: bool,
    pub(crate) crl: Option<PathBuf>,
    /// `FILE` or `FILE:PASSWORD`, with `\:` for a colon in the name.
    pub(crate) certificate: Option<OsString>,
    pub(crate) certificate_type: Option<OsString>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) key_type: Option<OsString>,
    /// The password of the key.
    pub(crate) password: Option<OsString>,
    /// `--pinnedpubkey`
    pub(crate) pinned: Option<OsString>,
    /// `--ciphers`: for TLS 1.2.
    pub(crate) ciphers: Option<OsString>,
    /// `--tls13-ciphers`
    pub(crate) ciphers13: Option<OsString>,
    pub(crate) curves: Option<OsString>,
    pub(crate) no_alpn: bool,
    /// `--no-sessionid`
    pub(crate) no_resumption: bool,
    pub(crate) min: Option<TlsVersion>,
    pub(crate) max: Option<TlsVersion>,
}

impl TlsSettings {
    /// The settings with what the environment says about authorities. As in curl, that counts only if no option does, and
    /// the first variable that is set is the only one.
    pub(super) fn with_environment(self) -> Self {
        if self.roots.is_some() || self.roots_folder.is_some() || self.insecure {
            return self;
        }
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let bundle = set("CURL_CA_BUNDLE");
        let folder = set("SSL_CERT_DIR").filter(|_| bundle.is_none());
        let file = || set("SSL_CERT_FILE").filter(|_| folder.is_none());
        Self {
            roots: bundle.or_else(file).map(PathBuf::from),
            folder_may_miss: folder.is_some(),
            roots_folder: folder,
            ..self
        }
    }

    /// The configuration of the engine. Reads the folder of certificates, keys with a password and pinned keys.
    pub(super) fn config(&self) -> Result<TlsConfig, Failure> {
        let file = |path: &PathBuf| PemOrDer::File(path.clone());
        let mut config = TlsConfig {
            insecure: self.insecure,
            crls: self.crl.iter().map(file).collect(),
            client: self.client()?,
            pinned_keys: match &self.pinned {
                Some(typed) => files::pinned(typed)?,
                None => Vec::new(),
            },
            cipher_suites: ciphers::suites(self.ciphers.as_deref(), self.ciphers13.as_deref())?,
            key_exchange: ciphers::groups(self.curves.as_deref())?,
            alpn: !self.no_alpn,
            ..TlsConfig::default()
        };
        if let Some(list) = self.crl.as_ref().filter(|_| self.insecure) {
            files::check_list(list)?;
        }
        if let Some(roots) = &self.roots {
            config.roots = TlsRoots::None;
            config.extra_roots = vec![file(roots)];
        }
        if let Some(folders) = &self.roots_folder
            && !self.insecure
        {
            for folder in folders.as_bytes().split(|b| *b == b':') {
                let folder = Path::new(OsStr::from_bytes(folder));
                match files::authorities(folder) {
                    Err(_) if self.folder_may_miss => {}
                    found => config.extra_roots.extend(found?),
                }
            }
        }
        if self.no_resumption {
            config.resumption = 0;
        }
        config.max_version = self.max.unwrap_or(config.max_version);
        config.min_version = self.min.unwrap_or(config.min_version);
        Ok(config)
    }
}
