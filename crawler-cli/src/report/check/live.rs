//! The progress line of a check.

use std::time::Duration;

use super::figures;
use crate::report::live::Viewed;
use check::Summary;
use crawl::stats::Stats;
use plain::text::thousands;
use verdict::Class;

impl Viewed for Summary {
    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn line(&self) -> Vec<String> {
        let done = thousands(self.urls);
        let unjudged = self.count(Class::Unknown) + self.count(Class::Void);
        vec![
            format!("{done}/{} URLs", thousands(self.known)),
            format!("{} good", thousands(self.count(Class::Ok))),
            format!("{} broken", thousands(figures::broken(self))),
            format!("{} not judged", thousands(unjudged)),
            format!("{} requests/s", thousands(self.requests_per_second())),
        ]
    }
}
