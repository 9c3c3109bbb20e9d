//! Black-box tests of [`courser::HostClient`] over real sockets against scripted servers.
//!
//! What a lower level shows is not shown again: bytes are in the tables beside the parsers, policies in their own tests and
//! models, the whole client under faults in `engine/tests/sim` and `engine/tests/all/scenarios`. Here is one test for
//! each thing that only sockets, other processes and the system show, and for what joins an option to what it does.

/// The error is of that kind.
macro_rules! assert_kind {
    ($error:expr, $kind:pat $(if $guard:expr)?) => {{
        let error = &$error;
        assert!(matches!(error.kind(), $kind $(if $guard)?), "{error:?}");
    }};
}

mod dns;
mod poor_network;
mod proxy;
mod scarce;
mod system;
mod tls;
mod upgrade;
mod uploads;
mod upstream;

/// A small response that leaves the connection open.
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
