//! Keeps watching URLs: a service that asks each one when it is due, remembers, and says what has changed.
//!
//! [`config`] is what the operator writes. [`core`] asks and judges. What it counts, and what the metrics show, are
//! [`figures`], and [`hour`] has the last minutes of them. [`control`] is how an operator's command reaches the service, and
//! [`hands`] what the operator reads. [`sets`] reads the sources of URL sets, and [`work`] runs the jobs of schedules.
//! [`vitals`] is how the service is, and [`server`] tells so over HTTP, with the [`metrics`] and one page; [`log`] writes
//! what happens.

pub mod config;
pub mod control;
pub mod core;
pub mod daemon;
pub mod figures;
pub mod hands;
mod hold;
pub mod hour;
pub mod log;
pub mod metrics;
mod page;
pub mod server;
pub mod sets;
pub mod vitals;
pub mod work;
