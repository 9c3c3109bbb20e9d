//! Keeps watching URLs: a service that asks each one when it is due, remembers, and says what has changed.
//!
//! [`config`] is what the operator writes. [`core`] asks and judges. What it counts, and what the metrics show, are
//! [`figures`].

pub mod config;
pub mod core;
pub mod figures;
