//! The words of the engine: one word for one thing.
//!
//! The names of types, fields, files and tests, the comments and this documentation use these words in these meanings.
//! Where [RFC 9110](https://www.rfc-editor.org/rfc/rfc9110) (HTTP semantics) or
//! [RFC 9112](https://www.rfc-editor.org/rfc/rfc9112) (HTTP/1.1) has a word, the engine uses that word.
//!
//! # What a caller asks for
//!
//! - **Call**: what a caller submits: one request, until its completion. A call may need several attempts, and it may
//!   follow redirects. See [`Call`](crate::Call).
//! - **Source**: what gives the bytes of a request body while the request is sent. See [`BodySource`](crate::BodySource).
//! - **Hook**: a function of the program that the engine calls at a certain point, on the thread that drives the client. See
//!   [`SendHook`](crate::SendHook), [`SocketHook`](crate::SocketHook), [`RedirectHook`](crate::policy::RedirectHook).
//! - **Attempt**: one try of a call on one connection.
//! - **Retry**: a further attempt of a call after one that failed. See [`Retry`](crate::Retry).
//! - **Hop**: one redirect that was followed (RFC 9110 §15.4). See [`Redirects`](crate::Redirects).
//! - **Completion**: how a call ended, together with the buffers that the call owned. See
//!   [`Completion`](crate::Completion).
//! - **Exchange**: one request and its response on a connection (RFC 9112 §2, RFC 9110 §3.4). An attempt that got a
//!   connection has one exchange.
//! - **Abandoned**: said of an exchange whose answer no caller waits for: the call ended, or was cancelled, before its
//!   answer was read.
//!
//! # Where a request goes
//!
//! - **Host**: one entry of a client: scheme, host name, port, proxy, TLS identity and address policy, together with a
//!   pool. A [`HostClient`](crate::HostClient) that balances its calls has one host for each address of its upstream.
//! - **Upstream**: what a [`HostClient`](crate::HostClient) speaks to: one or several addresses that serve the same, given
//!   as they are or by a name. See [`Upstream`](crate::Upstream).
//! - **Tunnel**: a connection to a server through a proxy, made by CONNECT (RFC 9110 §9.3.6) or by SOCKS.
//!
//! # Connections
//!
//! - **Connection**: one transport connection: TCP or a Unix socket, perhaps with TLS, perhaps through a proxy
//!   (RFC 9110 §3.3).
//! - **Opening**: the making of a connection: the lookup of a name, a race over the addresses, and the handshakes.
//! - **Race**: connecting to the addresses of a name one after the other, each a little later than the one before, until
//!   the first of them answers (RFC 8305).
//! - **Handshake**: the messages that a new connection needs before it can serve a call: CONNECT, SOCKS, TLS.
//! - **Pool**: the connections of a host, and the calls that wait for one.
//! - **Slot**: one place in a pool. A slot counts against the pool's limit from the beginning of an opening until its
//!   connection is closed.
//! - **Wait queue**: the calls of a pool that wait for a connection, in the order in which they came.
//! - **Idle**: said of a connection that is open, serves no call, and is in its pool. A connection that stays open for
//!   the next request is *persistent* in RFC 9112 §9.3.
//! - **Draining**: said of a connection that reads the rest of an abandoned answer, so that it can serve another call.
//! - **Pipelining**: several requests on one connection before their answers (RFC 9112 §9.3.2).
//! - **Hand-over**: passing a connection that has switched protocols, or a tunnel, to the caller.
//!
//! # The event loop
//!
//! - **Reactor**: the event loop. It owns the connections, the timers and the calls that are under way.
//! - **Iteration**: one round of the event loop: begin what was submitted, poll, process the events.
//! - **Event**: what the reactor reports to the client above it.
//! - **Command**: what the client tells the reactor to do.
//! - **Budget**: how much work one iteration may do for one connection.
//! - **Timer**: an entry of the timer structure: a time, and what is to be done then.
//! - **Deadline**: an absolute time at which a whole call ends.
//! - **Timeout**, or **limit in time**: the longest that one phase of a call may take. See
//!   [`Timeouts`](crate::Timeouts).
//! - **Phase**: what a call is doing: waiting in a queue, looking up a name, connecting, and so on. See
//!   [`Phase`](crate::Phase).
//!
//! # What holds calls back
//!
//! - **Admission**: the decision whether an attempt may start now. Circuit breakers and the balancer make it.
//! - **Breaker**: a circuit breaker: it refuses attempts to a host while too many of them fail. See
//!   [`Breaker`](crate::policy::Breaker).
//! - **Balancer**: what chooses one address of an upstream for each attempt. See [`Balancer`](crate::policy::Balancer).
//! - **Throttle**: what holds calls back by a rate or by a least delay. See [`Rate`](crate::Rate).
//! - **Permit**: leave to do something that is counted: an attempt that the breaker and the balancer count, or the start
//!   of a call that a rate over all hosts counts.
//! - **Retry budget**: how many retries a host may have in addition to its requests, as in Finagle and Envoy. See
//!   [`RetryBudget`](crate::policy::RetryBudget).
//! - **Fair queue**: hosts that are served one after the other, so that a busy host does not keep the others waiting.
//!
//! # Telling the caller
//!
//! - **Notify**: tell the caller that there is something to take: a completion, or a part of a body.
//! - **Observer**: a function of the caller that gets what happens to calls and connections while it happens. See
//!   [`Observer`](crate::Observer).
//!
//! # Threads
//!
//! - **Worker**: the part of a [`Shared`](crate::Shared) client that takes calls from a queue and drives a client of its
//!   own: on a thread, or in a task of the caller.
//! - **Driver**: drives the only worker of a client that has no thread of its own, in a task of the caller. See
//!   [`Driver`](crate::shared::Driver).
//! - **Turn**: what a driver does at a time: an iteration that does not wait. See [`Turn`](crate::shared::Turn).
//! - **Migration**: the move of a call to another worker, after a redirect to a host that this other worker has.
