//! What the live view shows of a check.

use std::time::Duration;

use super::figures;
use crate::check::{Class, Summary};
use crate::crawl::stats::Stats;
use crate::report::live::Viewed;
use crate::report::statistics::thousands;

impl Viewed for Summary {
    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn requests(&self) -> u64 {
        self.requests
    }

    fn counts(&self) -> Vec<String> {
        let done = thousands(self.urls);
        vec![
            format!("{done}/{} URLs", thousands(self.known)),
            format!("{} good", thousands(self.count(Class::Ok))),
            format!("{} broken", thousands(figures::broken(self))),
            format!("{} not judged", thousands(unjudged(self))),
        ]
    }

    fn line(&self) -> Vec<String> {
        let mut parts = self.counts();
        let rate = thousands(self.requests_per_second());
        parts.push(format!("{rate} requests/s"));
        parts
    }
}

fn unjudged(summary: &Summary) -> u64 {
    summary.count(Class::Unknown) + summary.count(Class::Void)
}
