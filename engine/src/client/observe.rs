//! What happens to calls and connections, told while it happens: for logs, traces and `-v`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::CallId;
use crate::error::Error;
use crate::net::Address;
use crate::net::tls::TlsInfo;
use crate::proto::Response;

/// Is told what happens, on the client's thread: what takes long here holds up all calls.
///
/// ```
/// use courser::{Config, HostConfig, Moment, Observer};
///
/// let config = Config {
///     host: HostConfig {
///         observer: Some(Observer::new(|moment| {
///             if let Moment::Connected { remote, .. } = moment {
///                 eprintln!("* connected to {remote}");
///             }
///         })),
///         ..HostConfig::default()
///     },
///     ..Config::default()
/// };
/// ```
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(&Moment<'_>) + Send + Sync>);

impl Observer {
    /// Calls that for each moment.
    pub fn new(observe: impl Fn(&Moment<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(super) fn tell(&self, moment: &Moment<'_>) {
        (self.0)(moment);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer(..)")
    }
}

/// Something that happened. The first five are about connections, which belong to no call while they are opened; the
/// others are about a call, with its [tag](crate::Call::tag).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Moment<'a> {
    /// A name has these addresses.
    Resolved {
        /// The name.
        name: &'a str,
        /// Its addresses, in the order in which they will be tried.
        addresses: &'a [IpAddr],
    },
    /// An address is being tried.
    Connecting {
        /// The address.
        remote: &'a Address,
    },
    /// An address was not reached, or a handshake failed.
    ConnectFailed {
        /// Why; [`Error::remote`] is the address.
        error: &'a Error,
    },
    /// An address was reached.
    Connected {
        /// The address.
        remote: &'a Address,
        /// Ours.
        local: Option<&'a Address>,
    },
    /// The handshakes are done.
    Ready {
        /// The address.
        remote: &'a Address,
        /// What TLS has agreed on, if there is TLS.
        tls: Option<&'a TlsInfo>,
        /// The head of the proxy's answer to CONNECT, if there was one.
        proxy_head: Option<&'a [u8]>,
    },
    /// A request is being sent.
    Sending {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// To whom.
        remote: &'a Address,
        /// Whether the connection had been kept idle or had served before.
        reused: bool,
        /// The head, as it goes out.
        head: &'a [u8],
    },
    /// The head of a response is there; of a buffered call, all of it.
    Head {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// The response, interim ones included.
        response: &'a Response,
    },
    /// A redirect is followed.
    Redirected {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// Where to.
        url: &'a str,
    },
    /// An attempt has failed, and there will be another one.
    Retrying {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// Why.
        error: &'a Error,
    },
    /// The call, or its streamed body, is over.
    Ended {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// Why it failed, if it did.
        error: Option<&'a Error>,
    },
}
