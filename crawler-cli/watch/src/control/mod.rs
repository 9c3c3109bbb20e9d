//! How an operator's command reaches the store: through the service that runs on the store, or without one.
//!
//! The service listens on a Unix socket beside the store, `FILE-socket`, which only its user may open. A client sends a
//! [`Command`] as one line of JSON and gets a [`Reply`] as one line; then it may send the next. The service has the
//! command performed by the thread that writes the store. If no service runs, the client takes the lock of the store
//! and has the very same function perform the command.
//!
//! What only the core of the running service knows, such as the hosts that wait after `Retry-After`, is asked of the
//! core through [`core_channel`].

mod client;
mod core;
mod message;
mod operate;
mod perform;
mod server;
mod socket;

pub(crate) use client::has_service;
pub use client::{ControlError, Hand, live_status};
pub use core::{CoreHandle, CoreInbox, CoreMessage, core_channel};
pub use message::{
    Command, CoreStatus, GuardOn, HoldDeed, HostFails, HostWaits, Letters, LiveStatus, Pruned,
    Refusal, RefusalKind, Reply, ScheduleDeed, StoreCondition, Target,
};
pub use operate::Operator;
pub use perform::{By, Performed, Schedules, perform};
pub use server::ControlServer;
pub use socket::socket_of;
