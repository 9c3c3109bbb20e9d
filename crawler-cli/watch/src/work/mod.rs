//! The jobs of schedules: what they do, and when they run.
//!
//! [`Planner`] starts each job at the times of its schedule. A firing and its job are stored in one transaction, so that a
//! killed process neither loses a firing nor runs one twice; a job whose process was killed is started again, and after
//! its last attempt it is a dead letter. A job that fails, panics or hangs never stops the service.
//!
//! | job | what it does |
//! |---|---|
//! | `check` | reads the source of a set, and makes all URLs of the set due |
//! | `find` | searches, and adds what is found to a set |
//! | `sitemap` | reads a sitemap into a set |
//! | `fetch` | fetches a file for each line of a list; each line is a job of its own |
//!
//! Requests of jobs wait for the ceilings of their hosts, which the checks share.

mod check;
mod entry;
mod failure;
mod fetch;
mod find;
mod http;
mod kind;
mod planner;
mod queue;
mod tools;

pub use find::read as read_find;
pub use http::Http;
pub(crate) use http::{Agent, HttpError, Reply, Validators, Wanted};
pub use planner::{Drained, Planner, firing_job, queue_of};
pub use tools::{FindReader, Tools};
