//! Checks whether links are good: URLs, the links of web pages, and the links of files.
//!
//! A [`Checker`] runs a check and tells a reporter of [`Event`]s. Each URL is checked once, reported as soon as its verdict
//! is believed, and reported again for places that are found later.
//!
//! - [`sources`] reads what was given: files, folders, lists. [`links`] finds the links of a document, with their places.
//! - [`host`] is the work at one host: what is asked of its URLs, and what the answers say. An answer is judged by
//!   [`verdict`]; [`failure`] and [`challenge`] tell it what the engine says. A [`task`] is a URL on its way there.
//! - `run` joins them: a keeper has the URLs, in memory or in a [`store`] that outlives the run, and guards hold back what
//!   may not be the fault of a URL.
//! - A [`record`] is what is reported of a URL; [`Summary`] counts all.

pub mod challenge;
mod checker;
mod event;
pub mod failure;
pub mod host;
pub mod json;
pub mod links;
pub mod reason;
pub mod record;
mod run;
pub mod select;
pub mod sources;
mod summary;
pub mod task;

pub use checker::{Blocked, Checker, Redirects};
pub use event::{Event, GuardChange};
pub use record::{Checked, Said, Standing};
pub use summary::{Ending, HostTally, Outcome, Summary};
