//! One thread writes: operations of all other threads, many in one transaction.
//!
//! [`Writer`] is a handle to a thread that owns an [`Engine`]. Other threads send it operations ([`Op`]), or call
//! closures on the engine. The thread collects operations for a moment, runs them in the order in which they came, and
//! commits them together: one transaction, one fsync. Only then each of them is told that it is [done](Op::done).
//!
//! An operation that fails on its own spoils no other: the group is rolled back and its operations are run again, one by
//! one. So an operation may run more than once, and has to do the same each time.
//!
//! While the store cannot be written at all (the disk is full, for example) operations that [must](Nature::Must) not be
//! lost are kept, in their order, and run again until they are stored. Others fail at once with the error.
//! [`Writer::state`] says what is wrong.
//!
//! [`Inline`] is the same without a thread, for tests and for commands that open a store for a moment.

mod collect;
mod committer;
mod figures;
mod inline;
mod op;
mod spool;
mod thread;

pub use figures::{Buckets, WriterFigures};
pub use inline::Inline;
pub use op::{Nature, Op, StoreHandle, WriterState};
pub use spool::Spool;
pub use thread::{Writer, WriterSettings};

use super::{FleetStore, JobStore, PauseStore, Store, StoreError, WatchStore};

/// A store that can make several changes one transaction.
pub trait Engine: Store + WatchStore + JobStore + PauseStore + FleetStore {
    /// The changes from now on are one transaction, until the group ends or is abandoned.
    ///
    /// # Errors
    /// The store cannot be written.
    fn begin_group(&mut self) -> Result<(), StoreError>;

    /// Commits the changes of the group: after that they are on the disk. After an error, or if a change of the group
    /// has failed, the group is still to be abandoned.
    ///
    /// # Errors
    /// The store cannot be written, or a change of the group has failed.
    fn end_group(&mut self) -> Result<(), StoreError>;

    /// Takes back the changes of the group. Does nothing without a group.
    fn abandon_group(&mut self);
}
