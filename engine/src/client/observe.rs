//! Events of calls and connections, for logs, traces and `-v`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::CallId;
use crate::error::Error;
use crate::hook::Hook;
use crate::net::Address;
use crate::net::tls::TlsInfo;
use crate::policy::BreakerState;
use crate::proto::Response;

/// Gets events of calls and connections. Runs on the client's thread, so a slow observer delays all calls.
///
/// ```
/// use courser::{Config, HostConfig, ObserverEvent, Observer};
///
/// let config = Config {
///     host: HostConfig {
///         observer: Some(Observer::new(|event| {
///             if let ObserverEvent::Connected { remote, .. } = event {
///                 eprintln!("* connected to {remote}");
///             }
///         })),
///         ..HostConfig::default()
///     },
///     ..Config::default()
/// };
/// ```
#[derive(Clone, Debug)]
pub struct Observer(Kind);

#[derive(Clone, Debug)]
enum Kind {
    One(Hook<dyn Fn(&ObserverEvent<'_>) + Send + Sync>),
    Each(Hook<dyn Fn() -> Observer + Send + Sync>),
}

impl Observer {
    /// Calls `observe` for each event.
    pub fn new(observe: impl Fn(&ObserverEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Kind::One(Hook(Arc::new(observe))))
    }

    /// An observer that makes its own observer for each client. A [`CallId`] is unique within one client only, so an
    /// observer that remembers calls needs this.
    pub fn each_client(make: impl Fn() -> Self + Send + Sync + 'static) -> Self {
        Self(Kind::Each(Hook(Arc::new(make))))
    }

    /// The observer of a new client.
    pub(super) fn for_client(self) -> Self {
        match self.0 {
            Kind::One(_) => self,
            Kind::Each(Hook(make)) => make().for_client(),
        }
    }

    pub(super) fn notify(&self, event: &ObserverEvent<'_>) {
        if let Kind::One(Hook(observe)) = &self.0 {
            observe(event);
        }
    }
}

/// An event. The first seven concern connections, which belong to no call while they are opened.
/// [`Ejected`](Self::Ejected) concerns an address. The others concern a call, and have its [tag](crate::Call::tag).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ObserverEvent<'a> {
    /// A name was looked up.
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
        /// The local address.
        local: Option<&'a Address>,
    },
    /// A proxy is asked for a tunnel.
    Tunnelling {
        /// The proxy's address.
        remote: &'a Address,
        /// The head of the request, as it goes out.
        head: &'a [u8],
    },
    /// A proxy has answered the request for a tunnel, with any status.
    TunnelAnswered {
        /// The proxy's address.
        remote: &'a Address,
        /// The status: 2xx opens the tunnel.
        status: u16,
        /// The head of the answer.
        head: &'a [u8],
    },
    /// The handshakes are done.
    Ready {
        /// The address.
        remote: &'a Address,
        /// The result of the TLS handshake, if there is TLS.
        tls: Option<&'a TlsInfo>,
        /// The head of the proxy's answer to CONNECT, if there was one.
        proxy_head: Option<&'a [u8]>,
    },
    /// A call has begun.
    Begun {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// The method of the request.
        method: &'a str,
        /// The target of the request, as the caller gave it: user information is included.
        target: &'a str,
    },
    /// The call waits for a rate ([`HostConfig::rate`](crate::HostConfig::rate),
    /// [`Config::rate`](crate::Config::rate)).
    Held {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
    },
    /// A request is being sent.
    Sending {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// The address that the request is sent to.
        remote: &'a Address,
        /// Whether the connection had been kept idle or had served before.
        reused: bool,
        /// The head, as it goes out.
        head: &'a [u8],
    },
    /// The head of a response has arrived; for a buffered call, the whole response.
    Head {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// The response, with its interim responses.
        response: &'a Response,
    },
    /// A redirect is followed.
    Redirected {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// The URL that the redirect leads to.
        url: &'a str,
    },
    /// The call has been redirected to a host that another client of the same [`Shared`](crate::Shared) serves. The
    /// call goes on there with another id; this id is over.
    HandedOver {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
    },
    /// An attempt has failed, and there will be another one.
    Retrying {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// Why the call is tried again.
        cause: RetryCause<'a>,
        /// The time until the next attempt.
        pause: Duration,
    },
    /// The breaker of a host has changed its state, because an attempt of this call ended.
    Breaker {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// The new state.
        state: BreakerState,
    },
    /// An address of a balanced upstream gets no calls for a while.
    Ejected {
        /// The address.
        remote: &'a Address,
        /// Until when.
        until: Instant,
    },
    /// The call, or its streamed body, has ended.
    Ended {
        /// The call.
        call: CallId,
        /// Its tag.
        tag: u64,
        /// Why the call failed, if it failed.
        error: Option<&'a Error>,
    },
}

/// Why a call is tried again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RetryCause<'a> {
    /// An attempt failed.
    Failure(&'a Error),
    /// The answer had this status.
    Status(u16),
}

impl fmt::Display for RetryCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(error) => error.fmt(f),
            Self::Status(status) => write!(f, "status {status}"),
        }
    }
}
