//! What every crawl of many hosts shares, on the engine. What a crawl looks for is left to its program.
//!
//! A program has [`work`] to do at each of its [`hosts`], and says what it shares. The [`feeder`] creates the work, fills it,
//! and takes what comes of it; where more waits than fits into memory, a [`fleet`] of queues says what is read next. The
//! [`scheduler`] decides which host may send next and hands the [`calls`] to the client.
//!
//! - How a host is asked: [`politeness`] keeps the [`policy`], the delays of [`robots`].txt and the [`allowance`] that is
//!   learned from refusals; [`retry`] decides what a failure leads to, and a [`retry_queue`] holds what waits for it.
//! - What is sent: [`transfer`] has the settings of the client, [`identity`] what only certain hosts get, [`addresses`] which
//!   addresses may be dialled. [`settings`] is all that a user sets.
//! - Where a crawl goes: [`scope`] says which URLs belong to it, and [`redirect`] is a chain of redirects.
//! - What is told: [`stats`] counts, a [`reporter`] is told of events and makes results durable.
//!
//! All decisions are pure: time and randomness are arguments. [`clock`] has the times of machine and process, [`demo`] a sample
//! mirror with its server, and [`glossary`] the words that are used here.

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
