//! What every crawl of many hosts shares: politeness, robots.txt, retries and their queue, allowed addresses, scheduling
//! and statistics. What a crawl looks for is left to its program.

pub mod addresses;
mod agenda;
pub mod allowance;
pub mod calls;
pub mod clock;
pub mod demo;
pub mod failure;
pub mod feeder;
pub mod file_names;
pub mod fleet;
pub mod glossary;
pub mod hosts;
pub mod identity;
mod permits;
pub mod policy;
pub mod politeness;
pub mod redirect;
pub mod reporter;
pub mod retry;
pub mod retry_queue;
pub mod robots;
pub mod scheduler;
pub mod scope;
pub mod settings;
pub mod stats;
mod streams;
pub mod transfer;
pub mod work;
