//! What a response has to give when its connection has switched to another protocol.

use crate::net::upgraded::Upgraded;
use crate::proto::Response;

impl Response {
    /// The connection, if it has switched to another protocol: after a 101 (Switching Protocols) to a request with an
    /// `Upgrade` header, or after a 2xx to CONNECT. `None` otherwise, and the second time. A connection that is not
    /// taken is closed when the response is dropped, or used for another call.
    ///
    /// Every client that sends requests one after the other on a connection can do this, over TLS and through proxies,
    /// and [`Shared`](crate::Shared) too. [`Upgraded`] has examples.
    pub fn take_upgraded(&mut self) -> Option<Upgraded> {
        let upgraded = self.take_switched()?.downcast().ok()?;
        Some(*upgraded)
    }
}
