//! Finds and checks files over HTTP.

pub mod get;
