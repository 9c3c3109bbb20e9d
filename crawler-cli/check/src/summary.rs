//! The summary of a check.

use std::collections::BTreeMap;
use std::time::Duration;

use super::record::{Checked, Said, Standing};
use crawl::stats::Stats;
use verdict::{Cause, Class};

/// The progress or the outcome of a check. Numbers of URLs count each URL once, however it is spelled and however often it
/// is [reported](Checked::before).
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Whether the check continues one that was interrupted.
    pub resumed: bool,
    /// URLs that are known so far; more than are reported while the check runs.
    pub known: u64,
    /// Whether the check was stopped before its sources were read to their end: they may have further URLs.
    pub is_read_in_part: bool,
    /// URLs that were reported.
    pub urls: u64,
    /// Places that refer to the reported URLs.
    pub references: u64,
    /// Reported URLs by class, in the order of [`Class::ALL`]; see [`count`](Self::count).
    pub classes: [u64; Class::ALL.len()],
    /// Reported URLs that are not good, by cause. Void ones are counted with the cause that was seen.
    pub causes: BTreeMap<Cause, u64>,
    /// Reported URLs by host (scheme and authority; empty for files and for what is no URL), for the first
    /// [`MOST_HOSTS`](Self::MOST_HOSTS) hosts.
    pub hosts: BTreeMap<String, HostTally>,
    /// Reported URLs of further hosts.
    pub further_hosts: HostTally,
    /// Reported URLs that make the check [fail](super::Standing::Fails).
    pub failing: u64,
    /// Reported URLs that are [warned](super::Standing::Warns) of.
    pub warned: u64,
    /// Reported URLs that would make the check fail, but have not been failing for long enough.
    pub failing_recently: u64,
    /// Reported URLs that are good after redirects.
    pub redirected: u64,
    /// Reported URLs that have moved: all redirects were permanent.
    pub moved: u64,
    /// Reported URLs that were not asked in this run, because an earlier one asked recently enough.
    pub reused: u64,
    /// Links with a scheme that is not checked: `mailto:`, `tel:`, `data:`, `javascript:`.
    pub unsupported: u64,
    /// Links that patterns left out.
    pub excluded: u64,
    /// Problems with sources.
    pub problems: u64,
    /// Guards that were turned on.
    pub guards: u64,
    /// Requests that were sent, robots.txt and probes included.
    pub requests: u64,
    /// The duration of the check.
    pub elapsed: Duration,
    /// How the check ended.
    pub ending: Ending,
    /// Statistics about requests.
    pub stats: Stats,
}

/// The reported URLs of a host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HostTally {
    /// By class, in the order of [`Class::ALL`].
    pub classes: [u64; Class::ALL.len()],
}

/// How a check ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ending {
    /// Everything is judged. In [`Event::Progress`](super::Event::Progress): the check is running.
    #[default]
    Finished,
    /// The callback stopped it.
    Stopped,
    /// It could not go on: the client, or the state, failed.
    Failed,
}

/// What a check says on the whole: the exit status of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Nothing fails: 0.
    Good,
    /// A URL fails, a source could not be read, or the check could not go on: 1.
    Bad,
    /// A guard was on: the results are not trustworthy: 4.
    Untrusted,
    /// Stopped before the end: 130.
    Interrupted,
}

impl Summary {
    /// The largest number of hosts that are counted one by one.
    pub const MOST_HOSTS: usize = 10_000;

    /// Counts what is reported.
    pub(super) fn add(&mut self, checked: &Checked) {
        self.references += checked.references.len() as u64;
        match &checked.before {
            None => {
                self.urls += 1;
                self.reused += u64::from(checked.reused);
                self.count_said(&checked.url, &checked.said(), |number| *number += 1);
            }
            // Who names a URL may change what is said about it: the last word counts.
            Some(before) if checked.is_news() => {
                self.count_said(&checked.url, before, |number| {
                    *number = number.saturating_sub(1);
                });
                self.count_said(&checked.url, &checked.said(), |number| *number += 1);
            }
            Some(_) => {}
        }
    }

    /// Changes the numbers of URLs about which this is said.
    fn count_said(&mut self, url: &str, said: &Said, change: fn(&mut u64)) {
        let class = said.verdict.class();
        change(&mut self.classes[class as usize]);
        change(&mut self.host_of(url).classes[class as usize]);
        if let Some(cause) = said.verdict.cause() {
            change(self.causes.entry(cause).or_default());
            self.causes.retain(|_, count| *count > 0);
        }
        match said.standing {
            Standing::Fails => change(&mut self.failing),
            Standing::Warns => change(&mut self.warned),
            Standing::FailsRecently(_) => change(&mut self.failing_recently),
            Standing::Passes | Standing::Untrusted => {}
        }
        if class == Class::Ok && said.is_redirected {
            change(&mut self.redirected);
        }
        if said.is_moved {
            change(&mut self.moved);
        }
    }

    /// The tally of the host of a URL. What is not asked over the network is counted together.
    fn host_of(&mut self, url: &str) -> &mut HostTally {
        let end = url.split_once("://").and_then(|(scheme, rest)| {
            let is_web =
                scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            is_web.then_some(scheme.len() + 3 + end)
        });
        let host = url[..end.unwrap_or(0)].to_ascii_lowercase();
        if self.hosts.len() >= Self::MOST_HOSTS && !self.hosts.contains_key(&host) {
            return &mut self.further_hosts;
        }
        self.hosts.entry(host).or_default()
    }

    /// The number of reported URLs of this class.
    pub fn count(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    /// What the check says on the whole.
    pub fn outcome(&self) -> Outcome {
        if self.ending == Ending::Stopped {
            Outcome::Interrupted
        } else if self.count(Class::Void) > 0 || self.guards > 0 {
            Outcome::Untrusted
        } else if self.failing > 0 || self.problems > 0 || self.ending == Ending::Failed {
            Outcome::Bad
        } else {
            Outcome::Good
        }
    }

    /// The mean over the elapsed time.
    pub fn requests_per_second(&self) -> u64 {
        let micros = self.elapsed.as_micros().max(1);
        let rate = u128::from(self.requests) * 1_000_000 / micros;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

impl HostTally {
    /// The number of URLs of this class.
    pub fn count(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }
}

impl Outcome {
    /// The exit status of the command.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Untrusted => 4,
            Self::Interrupted => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict::{Answer, Verdict};

    #[test]
    fn the_last_word_about_a_url_counts() {
        let of = |verdict| Checked::of("http://h/".to_owned(), Answer::of(verdict));
        let good = of(Verdict::Ok);
        let bad = Checked {
            standing: Standing::Fails,
            ..of(Verdict::Failed(Cause::Status404))
        };
        let mut summary = Summary::default();
        summary.add(&bad);
        let changed = Checked::again(bad.url.clone(), good.said(), bad.said(), Vec::new());
        summary.add(&changed);
        let of_host = summary.hosts["http://h"].count(Class::Ok);
        assert_eq!((summary.urls, summary.count(Class::Ok), of_host), (1, 1, 1));
        assert_eq!((summary.failing, summary.causes.len()), (0, 0));
    }
}
