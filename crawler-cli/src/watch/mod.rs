//! The service that keeps checking: `crawler-cli watch`.

pub mod config;
