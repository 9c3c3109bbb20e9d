//! Checks whether links are good: URLs, the links of web pages, and the links of files.
//!
//! Each URL is checked once, reported as soon as its verdict is believed, and reported again for places that are found
//! later. An answer is judged by [`verdict`]; what a URL's answers over weeks say is judged by [`life`], and failures that
//! are not the fault of URLs are recognised by [`guard`]. These three are pure; [`failure`] and [`challenge`] tell them
//! what the engine says.

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
