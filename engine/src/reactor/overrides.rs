//! The settings that hold for one call instead of the client's settings.

use std::sync::Arc;

use crate::net::tls::TlsIdentity;
use crate::policy::{AddressPolicy, Proxies, Redirects, Retry, Timeouts};
use crate::proto::Limits;

#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) timeouts: Option<Timeouts>,
    pub(crate) limits: Option<Limits>,
    pub(crate) retry: Option<Retry>,
    pub(crate) redirects: Option<Redirects>,
    pub(crate) proxies: Option<Proxies>,
    pub(crate) tls: Option<TlsIdentity>,
    pub(crate) addresses: Option<Arc<AddressPolicy>>,
    #[cfg(feature = "cookies")]
    pub(crate) without_cookies: bool,
}
