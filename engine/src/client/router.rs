//! Which host serves a call.

use std::time::Instant;

use super::hosts::Hosts;
use crate::error::ErrorKind;
use crate::policy::PoolConfig;
use crate::proto::Request;
use crate::reactor::Key;

/// Knows the host that serves a call.
pub(crate) trait Router {
    /// Whether hosts are kept without calls and connections.
    const KEEPS_HOSTS: bool;

    /// The host whose pool serves the request.
    fn route(
        &mut self,
        now: Instant,
        request: &mut Request,
        hosts: &mut Hosts,
        pool: &PoolConfig,
    ) -> Result<Key, ErrorKind>;

    /// A host has been dropped.
    fn forget(&mut self, name: &str);
}

/// Every call goes to one host.
#[derive(Debug)]
pub struct OneHost(pub(super) Key);

impl Router for OneHost {
    const KEEPS_HOSTS: bool = true;

    #[inline]
    fn route(
        &mut self,
        _: Instant,
        _: &mut Request,
        _: &mut Hosts,
        _: &PoolConfig,
    ) -> Result<Key, ErrorKind> {
        Ok(self.0)
    }

    fn forget(&mut self, _: &str) {}
}
