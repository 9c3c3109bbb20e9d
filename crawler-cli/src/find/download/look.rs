//! The second look at a listing: a file may have changed since its listing was read, so that its size differs. The
//! directory is listed once more, at most once for each file, before an answer of another size is taken.

use std::time::Instant;

use url::Url;

use super::{Downloads, Step, Store, Task};
use crate::crawl::politeness::Politeness;
use crate::find::cause::Cause;
use crate::find::host_crawl::{FetchId, Reply};
use crate::find::listing::{self, Entry};
use crate::find::path;
use crate::find::visitor::Visitor;

impl Step {
    /// The step after the second look.
    pub(super) fn after_look(whole: bool) -> Self {
        match whole {
            true => Self::FetchWhole,
            false => Self::Fetch,
        }
    }
}

impl Task {
    /// The URL of the directory that lists the file.
    pub(super) fn directory(&self) -> Option<&str> {
        let path = self.wanted.url.split(['?', '#']).next()?;
        Some(&path[..=path.rfind('/')?])
    }

    /// Whether an answer of this length needs a second look at the listing.
    pub(super) fn differs(&self, length: u64, store: &Store) -> bool {
        let differs = |size: super::SizeRange| !size.contains(length);
        !store.rules.strict_sizes && !self.has_looked && self.wanted.size.is_some_and(differs)
    }
}

impl Downloads {
    /// Whether a request is for a listing.
    pub(in crate::find) fn is_look(&self, id: FetchId) -> bool {
        let flight = self.in_flight.get(&id);
        flight.is_some_and(|flight| matches!(flight.task.step, Step::LookAgain { .. }))
    }

    /// The answer to the request for a listing. Whatever it says, the file is fetched next.
    pub(in crate::find) fn handle_listing(
        &mut self,
        now: Instant,
        id: FetchId,
        reply: &Reply<'_>,
        politeness: &mut Politeness,
        visitor: &mut dyn Visitor,
    ) {
        let Some(mut flight) = self.in_flight.remove(&id) else {
            return;
        };
        politeness.handle_over();
        let Step::LookAgain { whole } = flight.task.step else {
            return;
        };
        if matches!(reply.status, 429 | 503) {
            let failed = super::Failed::of_status(reply.status, reply.retry_after, reply.date);
            let cause = Cause::Status(reply.status);
            return self.failed(now, flight.task, failed, cause, politeness, visitor);
        }
        politeness.handle_answer(now);
        if let Some(entry) = self.listed_again(&flight.task, reply) {
            flight.task.wanted.size = entry.size;
        }
        self.again(Step::after_look(whole), flight.task);
    }

    /// The entry of the file in a listing.
    fn listed_again(&self, task: &Task, reply: &Reply<'_>) -> Option<Entry> {
        let url = Url::parse(task.directory()?).ok()?;
        let file = Url::parse(&task.wanted.url).ok()?;
        let (_, segment, _) = path::split_last(file.path())?;
        let name = path::decode(segment);
        let is_listing = matches!(reply.status, 200 | 203 | 207);
        let limits = self.policy.limits.page;
        let listing = listing::parse(reply.body, reply.content_type, &url, limits);
        let mut entries = listing.ok().filter(|_| is_listing)?.entries.into_iter();
        entries.find(|entry| entry.name == name && entry.size.is_some())
    }
}
