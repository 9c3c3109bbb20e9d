//! A build without the feature `tls`: the names that the rest of the client uses, without sessions. A URL or proxy with
//! `https` is refused before these types are reached.

use std::convert::Infallible;

use super::session::Session;
use crate::error::{TlsConfigError, TlsFault};

/// Without the feature `tls`, there is nothing to configure.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TlsConfig {}

impl TlsConfig {
    /// An identity without any use.
    ///
    /// # Errors
    /// None.
    pub fn build(&self) -> Result<TlsIdentity, TlsConfigError> {
        Ok(TlsIdentity {})
    }

    pub(crate) fn has_pins(&self) -> bool {
        false
    }

    pub(crate) fn for_proxies(&self) -> Option<Self> {
        None
    }
}

/// Without the feature `tls`, no session can begin.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TlsIdentity {}

impl TlsIdentity {
    pub(crate) fn address(&self) -> usize {
        0
    }

    pub(crate) fn for_other_origins(&self) -> Option<&Self> {
        None
    }
}

/// Without the feature `tls`, no value exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsInfo(Infallible);

pub(crate) fn session(_: &TlsIdentity, _: &str) -> Result<Box<dyn Session>, TlsFault> {
    Err(TlsFault::Internal("built without TLS".to_owned()))
}

/// Bytes that reads have room for.
pub(crate) const GOOD_BUFFER: usize = 96 * 1024;

pub(crate) const MIN_BUFFER: usize = 0;
