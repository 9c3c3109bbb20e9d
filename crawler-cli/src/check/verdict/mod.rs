//! What an answer or a failure says about a URL. Pure: no clock, no network.

mod cause;

pub use cause::{Cause, Class, Verdict};
