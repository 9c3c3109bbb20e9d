//! TLS servers that send without end and without content. Whatever they send, the calls to other servers go on,
//! deadlines fire, and the connection ends with an error that names the cause. Floods of bytes, of heads and of codings
//! end by the limits whose tests are in `engine/src/proto`, and in `tests/tests/all/blackbox/catalogue.rs`.

mod server;
mod tls;
