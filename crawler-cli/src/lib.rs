//! The crawler as a library: everything that the `crawler-cli` command does, callable by other programs.
//!
//! [`find`] searches web directory hierarchies, [`check`] tells whether links are good, [`watch`] keeps telling,
//! [`get`] transfers URLs; [`crawl`] holds what crawls of many hosts share, [`jobs`] runs work on threads with retries,
//! [`demo`] the sample mirror and its server. [`plain`] is what all of them use.

// `plain::terminal::say` is used instead, which does not panic.
#![warn(clippy::print_stderr)]

pub mod cli;
mod curl_rules;
pub mod demo;
pub mod get;
pub mod glossary;
mod report;
mod stdout;
