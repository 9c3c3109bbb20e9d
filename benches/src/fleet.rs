//! Several workers of `watch` on one PostgreSQL.
//!
//! [`run`] measures what the store costs: workers claim hosts, read what is due and store answers, as `watch run` does,
//! without a network. [`kills`](kills::run) runs the services themselves while they and the server are killed, and
//! [`cut`](cut::run) while the network of one is cut.

mod cost;
pub mod cut;
pub mod kills;
mod sites;

pub use cost::{Args, run};
