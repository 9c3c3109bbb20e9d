//! The crawler as a library: everything that the `crawler-cli` command does, callable by other programs.
//!
//! [`find`] searches web directory hierarchies, [`get`] transfers URLs; [`demo`] holds the sample mirror and its server.

pub mod cli;
pub mod demo;
pub mod find;
pub mod get;
pub mod glossary;
mod report;
pub mod terminal;
