//! What every package may use, and what knows none of them, nor the engine.
//!
//! - [`random`] is a sequence of numbers for pauses and for the order of things, by a seed.
//! - [`leb128`] is the form of numbers that are kept for millions of URLs.
//! - [`text`] shows numbers, sizes and spans to people, and finds the word that a misspelled one is for; [`values`] reads
//!   them from options and configurations; [`terminal`] makes text from servers safe to show.
//! - [`origin`] tells hosts apart by their URLs, [`host_pattern`] names several, and a [`redirect`] is where one led.
//! - [`files`] replaces a file whole, and [`file_lock`] keeps a database to one process.

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
