//! Keeps watching URLs: a service that asks each one when it is due, remembers, and says what has changed.
//!
//! [`config`] is what the operator writes. [`core`] asks and judges. What it counts, and what the metrics show, are
//! [`figures`]. [`control`] is how an operator's command reaches the service, and [`hands`] what the operator reads.
//! [`sets`] reads the sources of URL sets, [`work`] runs the jobs of schedules. [`vitals`] is how the service is, and
//! [`admin`] tells so over HTTP, with the [`metrics`]; [`log`] writes what happens.

pub mod admin;
pub mod config;
pub mod control;
pub mod core;
pub mod daemon;
pub mod figures;
pub mod hands;
pub mod log;
pub mod metrics;
pub mod sets;
pub mod vitals;
pub mod work;
