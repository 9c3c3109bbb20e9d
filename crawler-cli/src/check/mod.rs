//! Checks whether links are good: URLs, the links of web pages, and the links of files.
//!
//! Each URL is checked once and reported for every place that refers to it. An answer is judged by
//! [`verdict`]; what a URL's answers over weeks say is judged by [`life`], and failures that are not the fault of URLs are
//! recognised by [`guard`].

pub mod guard;
pub mod life;
pub mod links;
pub mod record;
pub mod select;
pub mod sources;
pub mod verdict;

pub use record::{Checked, Redirect, Reference};
pub use verdict::{Cause, Class, Verdict};
