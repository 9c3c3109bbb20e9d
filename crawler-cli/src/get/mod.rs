//! `crawler-cli get`: fetches URLs with curl's option names and exit codes.
mod exit;
mod low;
mod output;
mod plan;
mod rate;
mod target;
mod write_out;
