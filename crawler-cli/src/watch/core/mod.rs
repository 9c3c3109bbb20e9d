//! Asks the URLs that are due, judges what is answered, and hands both to the store.

mod settings;
mod waiting;

pub use settings::{GuardRules, HostRule, Limit, Limits, Settings};
pub use waiting::{Reason, Waiting};
