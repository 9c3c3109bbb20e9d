//! The steps of the protocol, for programs that do without a client: an exchange as a state machine over bytes, and the
//! handshakes with proxies.

pub use crate::proto::exchange::{BodyMode, CloseReason, Exchange, Reuse, SendStep};
pub use crate::proto::proxy::Handshake;
pub use crate::proto::request::Defaults;
pub use crate::proto::socks::{Socks5, SocksTarget};
pub use crate::proto::tunnel::Tunnel;
