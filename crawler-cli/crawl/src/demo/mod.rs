//! A sample mirror and its server, for trying what a crawl does without a network.

pub mod server;
pub mod tree;
