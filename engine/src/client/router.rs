//! Which host serves a call, and where a redirect leads.

use std::marker::PhantomData;

use super::hosts::Hosts;
use super::progress::ActiveCall;
use super::sharing::{OneAtATime, Sharing};
use crate::error::{ErrorKind, Misuse};
use crate::proto::Request;
use crate::reactor::{HostKey, Overrides};

/// Chooses the host that serves a call.
pub(crate) trait Router {
    /// Whether hosts without calls and connections are kept.
    const KEEPS_HOSTS: bool;

    /// Whether calls share connections.
    type Sharing: Sharing;

    /// The host whose pool serves the request, by the call's own settings or by the client's.
    fn route(&mut self, call: &mut ActiveCall, hosts: &mut Hosts) -> Result<HostKey, ErrorKind>;

    /// Examines the head of a response. If the response is a redirect to be followed, by the call's own settings or by
    /// the client's, gives the request its new URL.
    fn reroute(&mut self, call: &mut ActiveCall) -> Result<Reroute, ErrorKind>;

    /// Examines the head of a response that is not the call's result.
    fn note_head(&mut self, _: &ActiveCall) {}

    /// Where a request goes, for errors.
    fn place(&self, request: &Request, hosts: &Hosts) -> String;

    /// A host has been dropped.
    fn forget(&mut self, name: &[u8]);
}

/// What a call does after a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reroute {
    /// The response is the result of the call.
    Stay,
    /// The call goes on to the new URL of the request.
    To,
}

/// Refuses settings of a call that a client of one upstream would have to ignore.
#[cold]
fn check_overrides(own: &Overrides) -> Result<(), Misuse> {
    let what = match own {
        own if own.tls.is_some() => "TLS settings of a call",
        own if own.proxies.is_some() => "proxies of a call",
        own if own.addresses.is_some() => "an address policy of a call",
        own if own.redirects.is_some() => "redirects of a call",
        _ => return Ok(()),
    };
    Err(Misuse::Unsupported(what))
}

/// The router of [`HostClient`](crate::HostClient) and of [`PipelineClient`](crate::PipelineClient): every call goes to
/// one host.
#[derive(Debug)]
pub struct OneHost<S = OneAtATime> {
    host: HostKey,
    sharing: PhantomData<S>,
}

impl<S> OneHost<S> {
    pub(super) fn new(host: HostKey) -> Self {
        Self {
            host,
            sharing: PhantomData,
        }
    }
}

impl<S: Sharing> Router for OneHost<S> {
    const KEEPS_HOSTS: bool = true;
    type Sharing = S;

    #[inline]
    fn route(&mut self, call: &mut ActiveCall, _: &mut Hosts) -> Result<HostKey, ErrorKind> {
        if let Some(own) = &call.overrides {
            check_overrides(own)?;
        }
        // The request may have cookies from another client's jar.
        #[cfg(feature = "cookies")]
        call.request.no_cookies();
        Ok(self.host)
    }

    #[inline]
    fn reroute(&mut self, _: &mut ActiveCall) -> Result<Reroute, ErrorKind> {
        Ok(Reroute::Stay)
    }

    #[cold]
    fn place(&self, _: &Request, hosts: &Hosts) -> String {
        let host = hosts.get_ref(self.host).map(|host| &*host.defaults.host);
        String::from_utf8_lossy(host.unwrap_or_default()).into_owned()
    }

    fn forget(&mut self, _: &[u8]) {}
}
