//! Files to download, as tasks of the host crawl: which is next, and what becomes of it. The [downloads](crate::download)
//! ask for them and write them.

use std::sync::Arc;
use std::time::Instant;

use url::Position;

use super::HostCrawl;
use super::messages::FetchKind;
use super::task::Task;
use crate::cause::Cause;
use crate::download::Wanted;
use crate::found::How;
use crate::visitor::Turn;
use crawl::retry::Failed;
use crawl::retry_queue::Attempts;
use crawl::work::RequestId;

/// How a request for a file ends, if its body does not go on.
#[derive(Debug)]
pub(crate) enum FileEnd {
    /// The file is complete on disk, with this length in bytes.
    Saved(How, u64),
    /// Another request is needed at once.
    Again,
    /// The request failed; another attempt may not.
    Failed(Failed, Cause),
    /// No request gets the file.
    GivenUp(Cause),
}

impl From<Cause> for FileEnd {
    fn from(cause: Cause) -> Self {
        Self::GivenUp(cause)
    }
}

impl HostCrawl {
    /// Adds a file, unless it was added before. Returns whether it is new.
    pub(crate) fn add_file(&mut self, wanted: Wanted) -> bool {
        let Some(target) = self.target_of(&wanted.url).map(str::to_owned) else {
            return false;
        };
        let is_new = self.know(&format!("file {target}"));
        if is_new {
            let task = self.journal.written(Task::of_file(target, wanted));
            self.files.push_last(task);
        }
        is_new
    }

    /// The next file to ask for. Gives up those that may not be asked for.
    pub(crate) fn next_file(&mut self, turn: &mut Turn<'_>) -> Option<Task> {
        loop {
            let due = self.files.pop_due(turn.now);
            let task = due.or_else(|| self.files.pop_ready())?;
            match self.refusal(&task) {
                Some(cause) => self.drop_task(turn, task, &cause),
                None => return Some(task),
            }
        }
    }

    /// Why a file may not be asked for: the host was given up, or robots.txt forbids it. Valid once robots.txt is known.
    fn refusal(&self, task: &Task) -> Option<Arc<Cause>> {
        // After a redirect to https, the URL is not of this host.
        let target = self.target_of(task.wanted.as_ref()?.asked())?;
        let robots = || (!self.is_allowed(target)).then(|| Arc::new(Cause::Robots));
        self.given_up.clone().or_else(robots)
    }

    /// The request target of a URL of this host.
    fn target_of<'u>(&self, url: &'u str) -> Option<&'u str> {
        let target = url.strip_prefix(&self.origin()[..Position::BeforePath]);
        target.filter(|target| target.starts_with('/'))
    }

    /// A file that was asked for, and its attempts.
    pub(crate) fn wanted(&mut self, id: RequestId) -> Option<(&mut Wanted, &mut Attempts)> {
        let (task, _) = self.in_flight.get_mut(&id)?;
        Some((task.wanted.as_deref_mut()?, &mut task.attempts))
    }

    /// The request for a file is over.
    pub(crate) fn end_file(&mut self, turn: &mut Turn<'_>, id: RequestId, end: FileEnd) {
        if let Some((task, _)) = self.in_flight.remove(&id) {
            self.politeness.handle_over();
            self.settle_file(turn, task, end);
        }
    }

    /// Reports a file that is given up, or queues the next request for it.
    pub(crate) fn settle_file(&mut self, turn: &mut Turn<'_>, mut task: Task, end: FileEnd) {
        let outer = self.journal.begin(task.number);
        match end {
            FileEnd::Saved(..) => {}
            FileEnd::Again => {
                task.attempts.discount();
                let task = self.journal.written(task);
                self.files.push_next(task);
            }
            FileEnd::Failed(failed, cause) => self.failed(turn, task, failed, cause),
            FileEnd::GivenUp(cause) => self.give_up(turn, task, &cause),
        }
        self.journal.end(outer);
    }

    /// When to ask for a file, if none is to be asked for now, and no answer comes before. `held`: until when the host is
    /// not to be requested.
    pub(crate) fn file_timeout(&self, held: Option<Instant>) -> Option<Instant> {
        if self.files.ready().len() > 0 {
            return held;
        }
        let due = self.files.next_due()?;
        Some(held.map_or(due, |until| until.max(due)))
    }

    /// Whether a file can be asked for, apart from postponed ones.
    pub(super) fn has_ready_file(&self) -> bool {
        self.files.ready().len() > 0 && !self.awaits_robots()
    }

    /// Whether so many files wait that no more should be found.
    pub(crate) fn has_many_files(&self) -> bool {
        self.files.len() >= MOST_WAITING
    }

    /// Whether files are to be downloaded.
    pub(crate) fn has_files(&self) -> bool {
        !self.files.is_empty() || self.files_in_flight() > 0
    }

    /// How many files are being downloaded.
    pub(crate) fn files_in_flight(&self) -> usize {
        let in_flight = self.in_flight.values();
        in_flight
            .filter(|(_, kind)| *kind == FetchKind::File)
            .count()
    }
}

/// The largest number of waiting files, of about 500 bytes each. While it is reached, no directories are read.
const MOST_WAITING: usize = 10_000;
