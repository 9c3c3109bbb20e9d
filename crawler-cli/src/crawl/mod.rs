//! What any crawl of many hosts shares, whatever it asks them for: how politely a host is asked, its robots.txt, which
//! addresses may be connected to, and statistics. Nothing here knows what a crawl looks for.

mod address_groups;
pub mod addresses;
pub(crate) mod allowance;
pub mod calls;
pub mod failure;
pub mod hosts;
pub mod origin;
pub mod policy;
pub mod politeness;
pub mod retry_queue;
pub mod robots;
pub mod scheduler;
pub mod stats;
mod streams;
pub(crate) mod transfer;
pub mod work;
