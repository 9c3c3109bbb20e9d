//! The servers: how each is set up and started, and what is expected of it.

mod apache;
mod applications;
mod caddy;
mod gnutls_serv;
mod h2o;
mod haproxy;
mod jetty;
mod lighttpd;
mod mini_httpd;
mod nginx;
mod s_server;
mod squid;
mod varnish;

use std::path::Path;
use std::process::Command;

use crate::features::Feature;
use crate::matrix::Outcome;
use crate::quirk::Quirk;
use crate::running::Setup;
use crate::site;

pub(crate) use applications::HTTP_SERVER;

/// A server.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Debian's packages.
    pub(crate) packages: &'static str,
    /// The script that installs it. With one, a run without the server fails.
    pub(crate) installed_by: Option<Script>,
    /// A file of each package that must be there.
    pub(crate) files: &'static [&'static str],
    /// Whether it forwards to an application, which is Python's `http.server`.
    pub(crate) forwards: bool,
    /// What `/hello` answers; empty for any page.
    pub(crate) hello: &'static [u8],
    /// The command that runs it in the foreground; `None` if it has no such flavor.
    pub(crate) command: fn(&Setup<'_>) -> Option<Command>,
    /// What the server does not have, or is not set up for. Everything else must work.
    pub(crate) lacks: &'static [Feature],
    /// What the server does in its own way.
    pub(crate) copes: &'static [(Feature, Quirk)],
}

/// What most servers have in common.
const SERVER: Program = Program {
    name: "",
    packages: "",
    installed_by: Some(Script::Long),
    files: &[],
    forwards: false,
    hello: site::HELLO,
    command: |_| None,
    lacks: &[],
    copes: &[],
};

/// A script that installs packages before it runs these tests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Script {
    /// The gate.
    Run,
    /// The campaign.
    Long,
}

impl Script {
    /// Where it is, and how its list of packages begins.
    pub(crate) fn list(self) -> (&'static str, &'static str) {
        match self {
            Self::Run => (".ci/run", "needed=("),
            Self::Long => (".ci/long", "servers=("),
        }
    }
}

pub(crate) const PROGRAMS: &[&Program] = &[
    &nginx::NGINX,
    &apache::APACHE,
    &lighttpd::LIGHTTPD,
    &caddy::CADDY,
    &h2o::H2O,
    &haproxy::HAPROXY,
    &varnish::VARNISH,
    &squid::SQUID,
    &applications::NODE,
    &applications::GO,
    &applications::HTTP_SERVER,
    &applications::GUNICORN,
    &applications::UVICORN,
    &applications::WAITRESS,
    &applications::AIOHTTP,
    &applications::TWISTED,
    &applications::PUMA,
    &applications::WEBRICK,
    &jetty::JETTY,
    &applications::PHP,
    &mini_httpd::MINI_HTTPD,
    &s_server::S_SERVER,
    &gnutls_serv::GNUTLS_SERV,
];

impl Program {
    pub(crate) fn is_installed(&self) -> bool {
        self.files.iter().all(|file| Path::new(file).exists())
    }

    /// What is expected of this feature.
    pub(crate) fn expected(&self, feature: Feature) -> Outcome {
        if let Some((_, quirk)) = self.copes.iter().find(|(own, _)| *own == feature) {
            return Outcome::Copes(*quirk);
        }
        match self.lacks.contains(&feature) {
            true => Outcome::Lacks,
            false => Outcome::Works,
        }
    }
}

/// The line that keeps a server that root starts from becoming another user, or nothing.
pub(crate) fn as_root(line: &'static str) -> &'static str {
    if rustix::process::geteuid().is_root() {
        line
    } else {
        ""
    }
}

/// For the servers that only show TLS.
const ALL_BUT_TLS: &[Feature] = &[
    Feature::KeepAlive,
    Feature::AnnouncedEnd,
    Feature::IdleEnd,
    Feature::HalfClose,
    Feature::Head,
    Feature::NotModified,
    Feature::NoContent,
    Feature::Chunked,
    Feature::Trailers,
    Feature::Continue,
    Feature::Refusal,
    Feature::EarlyAnswer,
    Feature::Upload,
    Feature::ChunkedUpload,
    Feature::Gzip,
    Feature::Brotli,
    Feature::Zstd,
    Feature::Pipelining,
    Feature::TlsPipelining,
    Feature::Restart,
];
