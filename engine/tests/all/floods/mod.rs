//! Peers that send without end and without content. Whatever they send, the calls to other servers go on, deadlines
//! fire, and the connection ends with an error that names the cause.

mod http;
mod server;
mod tls;
