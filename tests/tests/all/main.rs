//! All tests of this package but those of `servers`, in one program, so that the engine and the crawler are linked once.
//!
//! What needs a program that may not be there is ignored, with the reason. Each module is a filter: `real_servers::`,
//! `find_servers::` and `find_gnu::` need nginx, Apache httpd, tinyproxy, microsocks and python3, `curl::` needs
//! curl, and `blackbox::poor_network::` needs a network namespace.

mod blackbox;
mod curl;
mod find_gnu;
mod find_servers;
mod real_servers;
mod security_page;
