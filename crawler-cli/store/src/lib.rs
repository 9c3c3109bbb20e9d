//! Keeps what is known about URLs: their hosts, answers, lives, references and changes of state.
//!
//! [`Store`] is what an engine can do for a run, and [`WatchStore`] for URLs that are watched for years;
//! [`Sqlite`](sqlite::Sqlite) is the embedded engine, with a file or without. A store serves one *run* at a time: one
//! check of a list of URLs, from [`Store::begin_run`] to [`Store::end_run`].
//!
//! - [`Store::add`] takes links in the order in which they are found. Each URL becomes one row and waits once in the
//!   *queue* of its host, however many links lead to it.
//! - [`Store::take`] reads the queue of a host. Reading changes nothing.
//! - [`Store::complete`] stores answers. A URL leaves the queue only in the transaction that stores its answer, its
//!   life and its changes of state. To complete an entry again changes nothing.
//! - [`Store::records`] reads what is to be reported, in the order of the links.
//!
//! All methods that change something are one transaction each: what is complete is kept if the process is killed, and
//! after an error nothing of the batch is stored. A power failure may take back what was added since the last completion,
//! since an interrupted run reads its sources again.

mod check;
mod copy;
mod durable;
mod error;
mod fleet;
mod host;
mod jobs;
mod link;
mod pause;
mod place;
pub mod postgres;
mod queue;
mod record;
mod rejected;
mod run;
pub mod sql;
pub mod sqlite;
#[cfg(test)]
pub mod suite;
mod tables;
mod watch;
mod writer;

use std::ops::ControlFlow;

use jiff::Timestamp;

pub use check::{CheckReport, Problem, check};
pub use copy::copy;
pub use durable::{DurablePool, DurableReport, NotStored, NotStoredReason};
pub use error::{StoreError, StoreErrorKind};
pub use fleet::{FleetStore, LEASE, Late, MARGIN, NewWorker, Tenure, WorkerInfo};
pub use host::{Control, Episode, Host, HostFacts, HostId};
pub use jobs::{
    ATTEMPTS, Buried, DeadLetter, DeadLetterFilter, DeadLetterId, Enqueued, Firing, JobCounts,
    JobId, JobStore, LAST_EXCHANGE, NewDeadLetter, NewJob, POISON, Poisoned, Replayed,
    ScheduleChange, ScheduleState, Settled, SettledJobs, Settlement, Started, StartedJob, Subject,
};
pub use link::{Added, Demand, JudgedLink, Link, Target, UrlId};
pub use pause::{Pause, PauseStore, Scope};
pub use place::Place;
pub use queue::{Change, Completed, EntryId, Past, Queued};
pub(crate) use record::SKIPPED;
pub use record::{Counts, Cursor, Event, LinkId, Record, Selection, UrlHistory};
pub use run::Run;
pub use tables::Database;
pub use watch::{
    Accepted, Amendment, CYCLES, Completion, Cycle, CycleCounts, CycleId, DueId, DueUrl, Guarded,
    HoldEnd, HostDetail, HostHold, Judgement, Lane, Lanes, NOTICES, NewUrl, Notice, NoticeId,
    Origin, Piece, Reading, Ready, Refused, SetInfo, Submitted, Swept, UrlDetail, WatchCounts,
    WatchStore, WatchedUrl, Which, aligned,
};
pub use writer::{
    Buckets, Engine, Inline, Nature, Op, Spool, StoreHandle, Writer, WriterFigures, WriterSettings,
    WriterState,
};

/// What an engine that keeps URLs can do.
///
/// The times that are stored are those of the caller, to the millisecond.
pub trait Store: Send {
    /// Begins a run, or continues the last one if it was interrupted and had the same `identity`: a text that says what
    /// is checked. What sources other than pages contributed to an interrupted run has to be added again, since they
    /// may have changed; URLs that were judged in it are not queued again.
    ///
    /// The links of earlier runs are forgotten; URLs, their lives and their events are kept.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn begin_run(&mut self, identity: &str, now: Timestamp) -> Result<Run, StoreError>;

    /// Ends the run. The next one is a new one.
    ///
    /// # Errors
    /// The store cannot be written.
    fn end_run(&mut self, now: Timestamp) -> Result<(), StoreError>;

    /// Adds links in the order in which they were found.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn add(&mut self, links: &[Link]) -> Result<Added, StoreError>;

    /// Up to `limit` entries of a host's queue after the entry `after`, oldest first. Changes nothing: an entry stays
    /// until it is completed.
    ///
    /// # Errors
    /// The store cannot be read.
    fn take(
        &mut self,
        host: HostId,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Queued>, StoreError>;

    /// Stores answers, removes their entries from the queues, and adds the links of pages. Entries that are not in a
    /// queue are ignored. A URL from which more is wanted by now than was met is queued again.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn complete(&mut self, completed: &[Completed]) -> Result<Added, StoreError>;

    /// The hosts with entries in their queues, in the order in which the hosts were first seen.
    ///
    /// # Errors
    /// The store cannot be read.
    fn waiting_hosts(
        &mut self,
        visit: &mut dyn FnMut(Host) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Replaces what is known about hosts.
    ///
    /// # Errors
    /// The store cannot be written.
    fn save_hosts(&mut self, hosts: &[(HostId, HostFacts)]) -> Result<(), StoreError>;

    /// Reads the records of the run that `selection` describes, after the link `after`, in the order in which the links
    /// were found. Memory is constant but for the places of one record.
    ///
    /// # Errors
    /// The store cannot be read.
    fn records(
        &mut self,
        after: LinkId,
        selection: Selection,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Reads the records of these URLs, in this order.
    ///
    /// # Errors
    /// The store cannot be read.
    fn records_of(
        &mut self,
        urls: &[UrlId],
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// The record of one spelling; `None` if the run has no such spelling.
    ///
    /// # Errors
    /// The store cannot be read.
    fn record(&mut self, link: LinkId) -> Result<Option<Record>, StoreError>;

    /// Counts the URLs of the run.
    ///
    /// # Errors
    /// The store cannot be read.
    fn counts(&mut self) -> Result<Counts, StoreError>;

    /// What is known about a URL, in the run or before it; `None` if it was never added. A fragment is ignored.
    ///
    /// # Errors
    /// The store cannot be read.
    fn history(&mut self, url: &str) -> Result<Option<UrlHistory>, StoreError>;

    /// Reads the changes of state after a cursor, oldest first. [`Cursor::START`] is before the first one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn events(
        &mut self,
        after: Cursor,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;
}
