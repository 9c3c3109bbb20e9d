//! Which layer of the source may use which other layer.
//!
//! ```text
//!  shared       Shared                     clients on threads of their own, for many threads and for async programs
//!    │
//!  client       Client · HostClient ·      what a user holds: decides which host serves a call, which connection,
//!    │          PipelineClient             when to retry, and when a call ends
//!    │
//!  reactor      the event loop             connections, handshakes, timers, calls in flight; generic over the network
//!    │
//!    ├──────────────┐
//!  policy           │                      decisions as plain state machines; the time is an argument
//!    │              │
//!  proto           net                     proto: requests, responses, framing, URLs: bytes in, bytes out
//!    │              │                      net: the operating system, or a simulation of it; TLS; resolvers
//!    └──────┬───────┘
//!       foundation                         error, address, time: values that all layers use
//! ```
//!
//! A module may use the modules below it, and never one above it. `policy` does not know `net`, and `net` does not know
//! `proto`. A check in the project's gate (`.ci/layers`) lists what each layer may use, and fails at the first import of
//! anything else.
//!
//! # The layers, from below
//!
//! - **foundation**: the errors of all layers, as data; addresses; points in time. It imports nothing of the layers that
//!   report these errors.
//! - **[`proto`](crate::proto)**: the protocol, without input or output. It knows no socket and no clock, and it does not
//!   allocate once its buffers have grown. It could be a crate of its own, and programs with an event loop of their own
//!   can use it by itself.
//! - **policy**: who may open a connection, who waits, which address is next, when to retry, whether a breaker is open.
//!   Each policy is a plain state machine. The time and random numbers are arguments, so that tests need neither a socket
//!   nor a pause. It could be a crate of its own as well.
//! - **[`net`](crate::net)**: the only layer that uses the operating system. [`Net`](crate::net::Net) is the trait;
//!   `net::os` is the real network, and `net::sim` (feature `sim`) is a simulated one with a virtual clock and a seed.
//!   TLS and the resolvers of names are here, too.
//! - **reactor**: the event loop. It moves bytes and time between the network and the protocol. What needs a decision
//!   becomes an event for the client.
//! - **client**: takes the events of the reactor, asks the policies, and answers with commands. Its parts own their state
//!   and offer few methods to each other. The largest three, from below: `dispatch` brings calls and connections together,
//!   `calls` decides what the attempts of a call come to, and `engine` has the operations of the clients.
//! - **shared**: puts clients on threads of their own and passes calls and completions between threads. Nothing below
//!   knows that there is more than one thread.
//!
//! # Rules
//!
//! 1. A layer reports upward by values that it returns. It never calls a layer above it.
//! 2. A type lives in the lowest layer that needs it.
//! 3. Only `net` reads the clock, and `shared` for waits between threads. All other layers get the time as an argument.
//! 4. A key names one kind of thing: the key of a connection cannot be passed where the key of a call is meant.
