//! The servers: how each is set up and started, and what is expected of it.

mod apache;
mod applications;
mod gnutls_serv;
mod h2o;
mod haproxy;
mod lighttpd;
mod mini_httpd;
mod nginx;
mod squid;
mod varnish;

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
    forwards: false,
    hello: site::HELLO,
    command: |_| None,
    lacks: &[],
    copes: &[],
};

pub(crate) const PROGRAMS: &[&Program] = &[
    &nginx::NGINX,
    &apache::APACHE,
    &lighttpd::LIGHTTPD,
    &h2o::H2O,
    &haproxy::HAPROXY,
    &varnish::VARNISH,
    &squid::SQUID,
    &applications::HTTP_SERVER,
    &applications::GUNICORN,
    &applications::UVICORN,
    &applications::WAITRESS,
    &applications::AIOHTTP,
    &applications::PUMA,
    &applications::WEBRICK,
    &applications::PHP,
    &mini_httpd::MINI_HTTPD,
    &gnutls_serv::GNUTLS_SERV,
];

impl Program {
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
