//! What everybody may use. Knows nothing of the crate, and not the engine.
//!
//! [`random`] is a sequence of numbers for pauses, [`leb128`] the form of numbers that are kept for millions of URLs.
//! [`text`] shows numbers, sizes and spans to people, [`values`] reads them from options and configurations, and
//! [`terminal`] makes text from servers safe to show. [`origin`] tells hosts apart, [`host_pattern`] names several. [`files`] replaces a file whole, and [`file_lock`] keeps a database
//! to one process.

pub mod file_lock;
pub mod files;
pub mod host_pattern;
pub mod leb128;
pub mod origin;
pub mod random;
pub mod redirect;
pub mod terminal;
pub mod text;
pub mod values;
