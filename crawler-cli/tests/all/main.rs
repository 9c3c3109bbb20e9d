//! The program as its user sees it: what it prints, asks, writes and keeps, over real sockets. One program for all tests,
//! since linking takes longer than most of them; `cargo test --workspace --test all -- find_state` runs a part. What needs
//! PostgreSQL, jq or root is ignored, and says so.

mod check;
mod check_output;
mod check_sources;
mod common;
mod contrib;
mod demo;
mod find;
mod find_actions;
mod find_doors;
mod find_download;
mod find_faults;
mod find_links;
mod find_output;
mod find_reach;
mod find_state;
mod find_texts;
mod get;
mod not_there;
mod readme;
mod tickers;
mod watch_bad_days;
mod watch_fleet;
mod watch_graph;
mod watch_hands;
mod watch_jobs;
mod watch_kill;
mod watch_run;
