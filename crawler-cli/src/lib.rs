//! The crawler as a library.
pub mod demo;
pub mod find;
