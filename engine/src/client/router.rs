//! Which host serves a call, and where a response leads.

use std::marker::PhantomData;

use super::hosts::Hosts;
use super::sharing::{OneAtATime, Sharing};
use crate::error::ErrorKind;
use crate::proto::{Request, Response};
use crate::reactor::{HostKey, Overrides};

/// Knows the host that serves a call.
pub(crate) trait Router {
    /// Whether hosts are kept without calls and connections.
    const KEEPS_HOSTS: bool;

    /// Whether calls share connections.
    type Sharing: Sharing;

    /// The host whose pool serves the request, by the call's own settings or by the client's.
    fn route(
        &mut self,
        request: &mut Request,
        own: Option<&Overrides>,
        hosts: &mut Hosts,
    ) -> Result<HostKey, ErrorKind>;

    /// Takes in the head of a response, after so many redirects, and leads the request on if it is a redirect to be
    /// followed, by the call's own settings or by the client's.
    fn reroute(
        &mut self,
        request: &mut Request,
        response: &Response,
        followed: u32,
        own: Option<&Overrides>,
    ) -> Result<Reroute, ErrorKind>;

    /// A host has been dropped.
    fn forget(&mut self, name: &[u8]);
}

/// Where a call goes after a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reroute {
    /// Nowhere: the response is the result.
    Stay,
    /// To the request's new URL.
    To,
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
    fn route(
        &mut self,
        request: &mut Request,
        _: Option<&Overrides>,
        _: &mut Hosts,
    ) -> Result<HostKey, ErrorKind> {
        // Another client's jar may have left some in it.
        #[cfg(feature = "cookies")]
        request.set_cookies(&[]);
        #[cfg(not(feature = "cookies"))]
        let _ = request;
        Ok(self.host)
    }

    #[inline]
    fn reroute(
        &mut self,
        _: &mut Request,
        _: &Response,
        _: u32,
        _: Option<&Overrides>,
    ) -> Result<Reroute, ErrorKind> {
        Ok(Reroute::Stay)
    }

    fn forget(&mut self, _: &[u8]) {}
}
