//! Courser, an HTTP/1.1 client engine for programs that send very many requests.
#![warn(missing_docs)]

pub mod net;
