//! The credentials of one request, and what a response says about them: between a hop, which keeps the state of
//! authentication, and the server and the proxy, which ask for it.

use courser::Response;

use super::{Proof, Subject, fields_of};
use crate::get::redirect::Hop;
use crate::get::request::RequestOptions;

/// What one request can prove.
pub(in crate::get) struct Keys {
    /// `user:password` for the server.
    user: Option<Vec<u8>>,
    token: Option<Vec<u8>>,
    proxy: Option<ProxyKey>,
}

/// The credentials for a proxy with which the scheme is negotiated.
pub(in crate::get) struct ProxyKey {
    /// `user:password`
    pub(in crate::get) user: Vec<u8>,
    /// The proxy is asked for a tunnel: it reads no request.
    pub(in crate::get) tunnels: bool,
}

/// The values of `Authorization` and `Proxy-Authorization`.
#[derive(Default)]
pub(in crate::get) struct Authorizations {
    pub(in crate::get) server: Option<Vec<u8>>,
    pub(in crate::get) proxy: Option<Vec<u8>>,
}

impl Keys {
    /// The credentials for the request of a hop. An `Authorization` of `-H` is all that the server gets.
    pub(in crate::get) fn new(
        options: &RequestOptions,
        hop: &Hop,
        proxy: Option<ProxyKey>,
    ) -> Self {
        let own = options.names("Authorization", hop);
        let token = options.bearer.as_ref().filter(|_| hop.trusted() && !own);
        Self {
            user: hop.user.clone().filter(|_| !own),
            token: token.cloned(),
            proxy,
        }
    }

    fn for_server(&self) -> Proof<'_> {
        Proof {
            user: self.user.as_deref(),
            token: self.token.as_deref(),
        }
    }

    fn for_proxy(&self) -> Proof<'_> {
        Proof {
            user: self.proxy.as_ref().map(|key| key.user.as_slice()),
            token: None,
        }
    }

    /// The proxy reads the request itself.
    fn for_forwarder(&self) -> Proof<'_> {
        match &self.proxy {
            Some(key) if !key.tunnels => self.for_proxy(),
            _ => Proof::default(),
        }
    }

    /// Whether the body is withheld until credentials were asked for.
    pub(in crate::get) fn await_challenge(&self, hop: &Hop) -> bool {
        hop.auth.awaits_challenge(self.for_server())
            || hop.proxy_auth.awaits_challenge(self.for_forwarder())
    }

    /// The headers of a request with this method. `body`: `None` if the body is not in memory.
    pub(in crate::get) fn authorizations(
        &self,
        hop: &mut Hop,
        method: &str,
        body: Option<&[u8]>,
    ) -> Authorizations {
        let subject = Subject {
            method,
            uri: &hop.target.path_and_query,
            body,
        };
        Authorizations {
            server: hop.auth.value(self.for_server(), &subject),
            proxy: hop.proxy_auth.value(self.for_forwarder(), &subject),
        }
    }

    /// Whether the request is to be sent again after this response. `withheld`: its body was.
    pub(in crate::get) fn ask_again(
        &self,
        hop: &mut Hop,
        response: &Response,
        withheld: bool,
    ) -> bool {
        let fields = |name| response.header_all(name);
        match response.status() {
            401 => {
                let challenges = fields("www-authenticate");
                hop.auth.refused(self.for_server(), challenges)
            }
            407 => {
                let challenges = fields("proxy-authenticate");
                hop.proxy_auth.refused(self.for_forwarder(), challenges)
            }
            200..300 if withheld => {
                let by_server = hop.auth.was_not_needed(self.for_server());
                hop.proxy_auth.was_not_needed(self.for_forwarder()) || by_server
            }
            _ => false,
        }
    }

    /// The value of `Proxy-Authorization` for a new CONNECT to `tunnel`, after a proxy has refused one with this head.
    pub(in crate::get) fn for_tunnel(
        &self,
        hop: &mut Hop,
        head: &[u8],
        tunnel: &str,
    ) -> Option<Vec<u8>> {
        let challenges = fields_of(head, "Proxy-Authenticate");
        if !hop.proxy_auth.refused(self.for_proxy(), challenges) {
            return None;
        }
        let subject = Subject {
            method: "CONNECT",
            uri: tunnel,
            body: Some(b""),
        };
        hop.proxy_auth.value(self.for_proxy(), &subject)
    }
}
