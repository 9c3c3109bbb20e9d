//! The protocol core: HTTP/1.1 for a client (RFC 9110, RFC 9112). Bytes in, bytes out.
//!
//! No socket, no clock, and no allocation once the buffers are as large as the traffic needs. A [`Request`] is encoded
//! once and can be sent many times. A [`Response`] is parsed into buffers that the caller owns. One request and its
//! response are an `Exchange`:
//!
//! ```text
//!  send:  Head ─▶ (AwaitContinue) ─▶ Body ─▶ Done
//!  recv:  Head ⟲ 1xx ─▶ Body ─▶ Done(Reuse)         Reuse = Keep | Close(why)
//! ```
//!
//! Both sides run at the same time: a final response that comes while the request is still being sent is delivered,
//! and the connection is closed.
//!
//! Out of scope: sockets, time, redirects, the reuse of connections.

#![cfg_attr(
    not(feature = "steps"),
    expect(unreachable_pub, reason = "the feature makes it reachable")
)]

mod auth;
mod chunked;
mod coding;
mod exchange;
mod head;
mod limits;
mod location;
mod multipart;
mod proxy;
mod request;
mod response;
mod scan;
mod socks;
#[cfg(feature = "steps")]
pub mod steps;
#[cfg(test)]
pub(crate) mod tests;
mod tunnel;
mod url;

pub use auth::{Credentials, push_basic};
pub use coding::Codings;
pub(crate) use coding::Decoder;
pub(crate) use exchange::{BodyMode, CloseReason, Exchange, Reuse, SendStep};
pub use limits::Limits;
pub use location::{from_typed, is_redirect, resolve};
pub use multipart::{FormPart, Multipart};
pub(crate) use proxy::Handshake;
pub(crate) use request::Defaults;
pub use request::{BodySource, Request};
pub(crate) use request::{
    HopFields, PROXY_AUTHORIZATION, Panic, TargetForm, check_user_agent, without_userinfo,
};
#[cfg(feature = "json")]
pub use response::JsonError;
pub use response::{Head, Response, StatusError, Version};
pub(crate) use socks::{Socks5, SocksTarget};
pub(crate) use tunnel::Tunnel;
pub(crate) use url::{Parts, parse_port, split_any_scheme};
pub use url::{Scheme, Url};

pub use crate::error::{ProxyFault, SocksReply, UrlError};
