//! `crawler-cli demo`
pub mod server;
pub mod tree;
