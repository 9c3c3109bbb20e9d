//! Keeps watching URLs: a service that asks each one when it is due, remembers, and says what has changed.
//!
//! [`config`] is what the operator writes. [`core`] asks and judges. What it counts, and what the metrics show, are
//! [`figures`], and how they went [`series`]. [`control`] is how an operator's command reaches the service, and [`hands`] what the operator reads.
//! [`sets`] reads the sources of URL sets, [`work`] runs the jobs of schedules, and [`hooks`] tell others what has changed. [`vitals`] is how the service is, and
//! [`admin`] tells so over HTTP, with the [`metrics`] and an API for programs; [`log`] writes what happens.

pub mod admin;
mod api;
pub mod config;
pub mod control;
pub mod core;
pub mod daemon;
pub mod figures;
pub mod hands;
mod hold;
pub mod hooks;
pub mod log;
pub mod metrics;
mod page;
pub mod series;
pub mod sets;
pub mod tokens;
pub mod vitals;
pub mod work;
