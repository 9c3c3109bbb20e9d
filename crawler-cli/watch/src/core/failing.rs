//! Hosts that fail: how many they are, which, since when and why.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use crate::control::{CoreStatus, HostFails};
use store::HostId;
use verdict::guard::Reach;
use verdict::life::time::between;
use verdict::{Cause, Verdict};

/// The hosts whose last answers failed.
#[derive(Debug, Default)]
pub(super) struct Failing {
    hosts: BTreeMap<HostId, Failed>,
}

/// A host whose last answer failed.
#[derive(Debug)]
struct Failed {
    root: Url,
    since: Timestamp,
    last: Timestamp,
    cause: Cause,
    /// Failures that followed one another, up to [`ENOUGH`].
    failures: u32,
}

/// What an operator is told.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum News {
    /// The host fails: why.
    Fails(Cause),
    /// It answers again, after this time.
    Back(Duration),
}

impl Failing {
    /// A verdict about a URL of a host that is believed.
    pub(super) fn handle_verdict(
        &mut self,
        now: Timestamp,
        (host, root): (HostId, &Url),
        verdict: Verdict,
    ) -> Option<News> {
        let cause = match (Reach::of(verdict), verdict) {
            (Some(Reach::Failed), Verdict::Failed(cause)) => cause,
            (_, Verdict::Failed(cause @ Cause::DnsNxdomain)) => cause,
            (Some(_), _) => {
                let before = self.hosts.remove(&host)?;
                return (before.failures >= ENOUGH).then(|| News::Back(between(before.since, now)));
            }
            (None, _) => return None,
        };
        if let Some(failed) = self.hosts.get_mut(&host) {
            (failed.last, failed.cause) = (now, cause);
            failed.failures += u32::from(failed.failures < ENOUGH + 1);
            return (failed.failures == ENOUGH).then_some(News::Fails(cause));
        }
        if self.hosts.len() < MOST {
            let failed = Failed {
                root: root.clone(),
                since: now,
                last: now,
                cause,
                failures: 1,
            };
            self.hosts.insert(host, failed);
        }
        None
    }

    /// Forgets hosts that are not asked any more, or are asked by another worker.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        self.hosts
            .retain(|_, failed| between(failed.last, now) < FORGOTTEN);
    }

    fn iter(&self) -> impl Iterator<Item = &Failed> {
        let hosts = self.hosts.values();
        hosts.filter(|failed| failed.failures >= ENOUGH)
    }

    /// How many hosts fail.
    pub(super) fn count(&self) -> u64 {
        self.iter().count() as u64
    }

    /// The first of them.
    pub(super) fn named(&self) -> Vec<HostFails> {
        let named = self.iter().take(CoreStatus::MOST_HOSTS);
        let named = named.map(|failed| HostFails {
            root: failed.root.as_str().to_owned(),
            since: failed.since,
            why: failed.cause.name().into_owned(),
        });
        named.collect()
    }
}

/// One failure may be that of a URL.
const ENOUGH: u32 = 2;
/// How many hosts are kept in mind.
const MOST: usize = 10_000;
/// Longer than the usual waits between the checks of a host that fails.
const FORGOTTEN: Duration = Duration::from_secs(48 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_fails_once_and_is_back_once() {
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        let root = Url::parse("http://a/").expect("a URL");
        let mut failing = Failing::default();
        let refused = Verdict::Failed(Cause::Refused);
        let gone = Verdict::Failed(Cause::Status410);
        let table = [
            (0, refused, None, 0),
            (1, Verdict::Ok, None, 0),
            (2, refused, None, 0),
            (3, Verdict::Void(Some(Cause::Timeout)), None, 0),
            (4, refused, Some(News::Fails(Cause::Refused)), 1),
            (5, Verdict::Failed(Cause::Timeout), None, 1),
            (6, refused, None, 1),
            (9, gone, Some(News::Back(Duration::from_secs(7))), 0),
            (10, gone, None, 0),
            (11, Verdict::Failed(Cause::DnsNxdomain), None, 0),
            (12, refused, Some(News::Fails(Cause::Refused)), 1),
        ];
        for (second, verdict, news, count) in table {
            let said = failing.handle_verdict(at(second), (HostId(1), &root), verdict);
            assert_eq!((said, failing.count()), (news, count), "{second}");
        }
        assert_eq!(failing.named()[0].since, at(11));
        failing.tidy(at(12 + 47 * 3600));
        assert_eq!(failing.count(), 1);
        failing.tidy(at(12 + 48 * 3600));
        assert_eq!(failing.count(), 0);
    }
}
