//! The TLS options: one set for servers, one for an https proxy.

use std::path::PathBuf;

use courser::{ClientCertificate, PemOrDer, TlsConfig, TlsRoots, TlsVersion};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct TlsSettings {
    pub(crate) insecure: bool,
    pub(crate) roots: Option<PathBuf>,
    pub(crate) crl: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) min: Option<TlsVersion>,
    pub(crate) max: Option<TlsVersion>,
}

impl TlsSettings {
    pub(super) fn config(&self) -> TlsConfig {
        let file = |path: &PathBuf| PemOrDer::File(path.clone());
        let mut config = TlsConfig {
            insecure: self.insecure,
            crls: self.crl.iter().map(file).collect(),
            client: self.certificate.as_ref().map(|chain| ClientCertificate {
                chain: file(chain),
                key: file(self.key.as_ref().unwrap_or(chain)),
            }),
            ..TlsConfig::default()
        };
        if let Some(roots) = &self.roots {
            config.roots = TlsRoots::None;
            config.extra_roots = vec![file(roots)];
        }
        config.max_version = self.max.unwrap_or(config.max_version);
        config.min_version = self.min.unwrap_or(config.min_version);
        config
    }
}
