//! How a call goes through the engine.
//!
//! # One thread, one loop
//!
//! A client has no thread. The caller's thread drives the client inside [`call`](crate::Engine::call),
//! [`wait`](crate::Engine::wait) and their relatives. One round of the loop is an *iteration*:
//!
//! ```text
//!            submit ──▶ calls that are new
//!                              │ 1. begin: find the host, ask breaker, balancer and throttle, ask the pool
//!                              ▼
//!  ┌───────────────────▶    client    ──────────────▶ completions, notifications ──▶ caller
//!  │ events                    │ commands
//!  │ (answered, failed,        │ (start this call on that connection, wait, close, set a timer)
//!  │  connected, time is up)   ▼
//!  └──── 3. process ────    reactor   ◀── 2. poll ──▶ network: readiness, bytes
//!                              │                      timers:  the next time at which something is due
//!                              ▼
//!                           exchange: bytes of the request out, bytes of the response in
//! ```
//!
//! 1. **Begin.** Calls that were submitted get a deadline and a host. The pool of the host gives an idle connection to
//!    the call, or puts the call into its wait queue.
//! 2. **Poll.** The reactor waits until connections are readable or writable, or until the next timer.
//! 3. **Process events.** The client takes one event after the other and answers with commands, until there are no more
//!    events. For the next event, the reactor goes on to the next connection: it reads, lets the exchange parse what came,
//!    and writes what the exchange has to send. What needs a decision is an event.
//!
//! The reactor decides nothing, and the policies know no connection. The client connects the two. Events are taken and
//! not called back: while an event is processed, no other part of the engine is in the middle of something.
//!
//! An iteration does a bounded amount of work for each connection (a *budget*). A fast server cannot keep the
//! other connections waiting.
//!
//! # Openings are not bound to calls
//!
//! A call that finds no idle connection waits in the queue of its host. If the limits allow another connection, an
//! opening begins: the name is looked up, the addresses are raced, the handshakes follow. The opening belongs to the pool
//! and not to the call. The first connection that becomes available, a new one or one that another call gives back, goes
//! to the call that has waited longest.
//!
//! ```text
//!  call A ─▶ wait queue: A             opening begins ····· connecting ······ ready ─▶ idle, in the pool
//!  call B (on a connection) ···· answered ─▶ connection is free ─▶ A gets it
//! ```
//!
//! So no call waits for a handshake while a connection is free, and there is no pair of owners between which a slot or a
//! wake-up could get lost: whether to open another connection is a function of the counts in the pool.
//!
//! If the machine has no file descriptor for another connection, the connections that the client has are a limit for a
//! while: calls wait for one of them, as at the configured limits. The next opening is tried when a connection has ended,
//! or after a pause. No host is blamed.
//!
//! # A connection is used again only when that is certain
//!
//! A connection goes back to its pool only if the end of the response was seen by its framing (RFC 9112 §6.3), no byte is
//! left over, neither side announced the end of the connection (RFC 9112 §9.6), and the protocol was not switched. If any
//! of these is in doubt, the connection is closed, and the reason is a value of its own.
//!
//! Idle connections stay registered with the network. The end of the stream, a reset, or any byte closes them at once. If
//! the client was not driven for a while, it polls before it uses an idle connection. Before a request that is not
//! idempotent, and after a response that a faulty server may follow with a body (to HEAD, 204, 304), the client also looks
//! into the socket. A server can still close a connection in the moment in which a request is sent. Such a request is
//! sent once more, on a new connection, if it is idempotent (RFC 9110 §9.2.2) and no byte of an answer has come.
//!
//! # How far an attempt got decides about a retry
//!
//! | what was sent and received | what is tried again without being asked |
//! |---|---|
//! | nothing was sent | any method |
//! | sent on a connection that had served before; no byte of an answer | idempotent methods, once, on a new connection |
//! | anything else | nothing: only the caller's [`Retry`](crate::Retry) rules |
//!
//! Each error has this as [`Sent`](crate::Sent). A body that is a stream is never sent a second time, unless it can be
//! opened again ([`Request::body_opened`](crate::Request::body_opened)).
//!
//! # One deadline
//!
//! A call has one absolute deadline over the wait in the queue, the lookup, connecting, proxies, TLS, sending, receiving,
//! redirects and retries. The timeouts of the phases ([`Timeouts`](crate::Timeouts)) can end a call earlier and never
//! later. The error of a timeout names its phase.
//!
//! A streamed response may take long. The default deadline of such a call ends with the head. Another deadline holds for
//! the body only if the caller sets one.
//!
//! A call that runs out of time gets its buffers back at once. Its connection is closed, or it drains: it reads the rest
//! of the answer into nothing and serves again ([`LatePolicy`](crate::policy::LatePolicy)). A draining connection still
//! counts against the limits.
//!
//! # What a peer can make the engine do
//!
//! One thread serves all connections of a client, so no peer may hold the thread. There are two rules. A connection has a
//! budget in each iteration: 16 reads, 16 writes, 16 reads of a handshake. The rest follows in the next iteration, after
//! timers and the other connections. Everything that a peer can send without end has a limit:
//!
//! | what comes without end | what ends it |
//! |---|---|
//! | interim (1xx) responses, also in answer to CONNECT | 100, [`Limits::interim_responses`](crate::Limits) |
//! | status line, headers | 64 KiB, also for one line, and 1,024 headers; an empty line before the status line is an error |
//! | chunk extensions | 4 KiB for one, 16 KiB in all beyond 8 bytes for each byte of the body |
//! | trailers | 16 KiB |
//! | a body, in chunks of one byte, too | 64 MiB if it is buffered; the pace of the consumer if it is streamed; the time for draining if it is abandoned |
//! | bodies of many calls | 1 GiB together, [`HostConfig::held_bytes`](crate::HostConfig::held_bytes) |
//! | members, frames and blocks of a coding without content | the limit of the coded body; one read in each iteration |
//! | a coding that decodes to far more | 64 MiB, and a ratio of 1,000; 16 between two codings |
//! | answers of a SOCKS proxy | 262 bytes; bytes that were not asked for are an error |
//! | bytes or answers that no call waits for | the first byte closes the connection; what comes with a new one answers its first request |
//! | session tickets of TLS | 256 on one connection |
//! | empty records of TLS, KeyUpdates, warnings, HelloRequests | 32, 32, 4, 1 without data between, by rustls |
//! | TLS records without content of all kinds | 256 KiB since the last content; see [`ContentlessRecords`](crate::error::ContentlessRecords) |
//! | TLS records that cost far more than their content | one read in each iteration |
//! | a handshake message of TLS | 64 KiB, and what the buffer of 96 KiB holds |
//! | readiness for more bytes of a request | the budget; with TLS, one write takes a few records |
//! | redirects, retries | [`Redirects::limit`](crate::Redirects::limit), [`Retry::max_attempts`](crate::Retry) and the deadline |
//! | cookies | `CookieLimits` |
//!
//! # Ownership of buffers
//!
//! A call owns its request and its response while it is under way. The completion gives both back. So nothing can be
//! written into a buffer that the caller has again, and a buffer that has grown serves the next call without an
//! allocation. Idle connections hold no buffer.
//!
//! # Every call completes exactly once
//!
//! A call that was submitted has exactly one completion, whatever happens: an answer, an error, a cancellation, the end
//! of the client. The simulation tests count this for random programs on a network with faults.
//!
//! # Several threads
//!
//! [`Shared`](crate::Shared) puts each client on a thread of its own, a *worker*. A call goes to its worker through a
//! queue, and the completion comes back through a slot that is made for it. The host alone decides which worker a call
//! goes to, so the limits of a host hold over all threads. A call that is redirected to a host of another worker moves
//! there.
//!
//! A client belongs to the process that made it. After `fork`, the child has the same sockets and sessions, and none of
//! the threads: it makes clients of its own, and does not use those of its parent.
//!
//! Callbacks and body sources run inside the client. If one of them panics, the panic passes through a client on the
//! caller's thread. After a callback, what that client was doing stays undone: such a client can only be dropped. After
//! a body source, it can be used again. A worker replaces its client in both cases ([`Shared`](crate::Shared)).
