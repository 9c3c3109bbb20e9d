//! The trace of a run: for looking at a failure, and for comparing two runs with one seed.

use std::fmt;
use std::time::Duration;

use crate::net::Address;

/// One line of a trace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Virtual time since the network was created.
    pub at: Duration,
    /// The connection. Connections are numbered in the order of the connects.
    pub connection: u64,
    /// What happened.
    pub what: Trace,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12?} #{} {:?}", self.at, self.connection, self.what)
    }
}

/// What happened to a connection. Error numbers are those of the system.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Trace {
    /// A connect was started.
    Connect(Address),
    /// A connect failed at once.
    ConnectError(i32),
    /// The result of `connected`: established, not yet, or the error.
    Connected(Result<bool, i32>),
    /// A read returned so many bytes, or failed; `None` is `WouldBlock`.
    Read(Option<Result<usize, i32>>),
    /// A write returned so many bytes, or failed; `None` is `WouldBlock`.
    Write(Option<Result<usize, i32>>),
    /// `poll` reported an event.
    Event {
        /// As in [`Event::readable`](crate::net::Event::readable).
        readable: bool,
        /// As in [`Event::writable`](crate::net::Event::writable).
        writable: bool,
        /// As in [`Event::closed`](crate::net::Event::closed).
        closed: bool,
    },
    /// The client closed the stream.
    Close,
    /// So many bytes were passed to the server.
    ServerRead(usize),
    /// The server sent so many bytes.
    ServerWrite(usize),
    /// The server ended its sending side.
    ServerShutdown,
    /// The server closed the connection.
    ServerClose,
    /// The server, or the network, reset the connection.
    Reset,
    /// The network stopped delivering.
    Stall,
}
