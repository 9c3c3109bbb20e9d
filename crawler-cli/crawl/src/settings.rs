//! The settings that all crawls have, whatever they look for.

use super::policy::HostPolicy;
use super::transfer::Transfer;

/// The settings of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Politeness and retries.
    pub host: HostPolicy,
    /// The network.
    pub transfer: Transfer,
}

impl Settings {
    /// Sets the `User-Agent` of requests. Its part before the first `/` or blank is the product token in robots.txt.
    pub fn user_agent(&mut self, text: &str) {
        let token = text.split(['/', ' ']).next().unwrap_or(text);
        self.host.agent = token.to_owned();
        self.transfer.user_agent = text.to_owned();
    }
}
