//! The crawler as a library.
pub mod find;
