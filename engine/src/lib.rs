//! Courser, an HTTP/1.1 client engine for programs that send very many requests.
#![warn(missing_docs)]

mod client;
pub mod error;
pub mod net;
mod policy;
pub mod proto;
mod reactor;

pub use client::{
    Body, Call, CallId, Completion, HostClient, HostConfig, Read, Report, Timings, Upstream,
};
pub use error::{Error, ErrorKind, LimitExceeded, Misuse, Part, PeerFault, Phase, Sent, TimeLimit};
pub use net::{Address, SocketOptions};
pub use policy::{
    Counters, FailedAttempt, LatePolicy, Retry, RetryHook, ReuseOrder, Timeouts, WaitPolicy,
};
pub use proto::{Limits, Request, Response, Version};
