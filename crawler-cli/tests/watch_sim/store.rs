//! The store of a run: one on disk or in memory, whose operations can be counted, cut short by a kill, or refused because
//! the disk is full.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use store::sqlite::Sqlite;
use store::{
    Engine, Inline, Nature, Op, StoreError, StoreErrorKind, StoreHandle, WriterState, check,
};

/// A handle to the store. Clones are the same store.
#[derive(Clone)]
pub(crate) struct SimStore(Arc<Shared>);

struct Shared {
    inner: Mutex<Inline<Sqlite>>,
    faults: Arc<Faults>,
    /// `None`: in memory.
    path: Option<PathBuf>,
}

#[derive(Default)]
struct Faults {
    /// Operations so far.
    operations: AtomicU64,
    /// The process ends at the operation with this number; 0: it does not.
    dies_at: AtomicU64,
    is_dead: AtomicBool,
    is_full: AtomicBool,
    /// Operations that were refused.
    refused: AtomicU64,
    /// Whether something may have changed that nobody has looked at.
    has_news: AtomicBool,
}

impl SimStore {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, StoreError> {
        let engine = match path {
            Some(path) => Sqlite::open(path)?,
            None => Sqlite::temporary()?,
        };
        Ok(Self(Arc::new(Shared {
            inner: Mutex::new(Inline::new(engine)),
            faults: Arc::default(),
            path: path.map(Path::to_owned),
        })))
    }

    /// The process is killed at one of the next operations.
    pub(crate) fn kill_at(&self, distance: u64) {
        let at = self.0.faults.operations.load(ORDER) + distance;
        self.0.faults.dies_at.store(at, ORDER);
    }

    /// Whether the process was killed. Nothing that happens then reaches the store.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.faults.is_dead.load(ORDER)
    }

    pub(crate) fn kill(&self) {
        self.0.faults.is_dead.store(true, ORDER);
    }

    /// A new process opens the store.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        let faults = &self.0.faults;
        faults.dies_at.store(0, ORDER);
        faults.is_dead.store(false, ORDER);
        let mut inner = self.0.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &self.0.path {
            // The file is released before it is opened again.
            *inner = Inline::new(Sqlite::temporary()?);
            *inner = Inline::new(Sqlite::open(path)?);
        }
        Ok(())
    }

    pub(crate) fn set_full(&self, is_full: bool) {
        self.0.faults.is_full.store(is_full, ORDER);
    }

    /// What `db check` says, in words. Nothing about a store in memory.
    pub(crate) fn check(&self) -> Result<Vec<String>, StoreError> {
        let Some(path) = &self.0.path else {
            return Ok(Vec::new());
        };
        let report = check(path)?;
        let problems = report.problems.iter();
        Ok(problems.map(|problem| format!("{problem:?}")).collect())
    }

    /// Whether something may have changed since the last call.
    pub(crate) fn take_news(&self) -> bool {
        self.0.faults.has_news.swap(false, ORDER)
    }

    /// Operations that the full disk refused.
    pub(crate) fn refused(&self) -> u64 {
        self.0.faults.refused.load(ORDER)
    }

    /// Tries again what is kept.
    pub(crate) fn retry(&self) {
        if !self.is_dead() {
            self.inner().retry();
        }
    }

    /// Reads from the engine, as another process would.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut Sqlite) -> T) -> T {
        self.inner().with(run)
    }

    fn inner(&self) -> Inline<Sqlite> {
        let inner = self.0.inner.lock();
        inner.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl StoreHandle for SimStore {
    fn send(&self, op: Box<dyn Op>) {
        let faults = Arc::clone(&self.0.faults);
        if self.is_dead() {
            return;
        }
        let number = faults.operations.fetch_add(1, ORDER) + 1;
        let dies = number == faults.dies_at.load(ORDER);
        if dies && number.is_multiple_of(2) {
            // Before the operation; every other time after the commit, which the process does not learn of.
            return self.kill();
        }
        let op = Gated { op, faults, dies };
        self.inner().send(Box::new(op));
    }

    fn state(&self) -> WriterState {
        self.inner().state()
    }

    fn backlog(&self) -> usize {
        self.inner().backlog()
    }
}

/// An operation that may be refused.
struct Gated {
    op: Box<dyn Op>,
    faults: Arc<Faults>,
    dies: bool,
}

impl Op for Gated {
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        self.op.run(engine)?;
        if self.op.nature() != Nature::Read {
            self.faults.has_news.store(true, ORDER);
        }
        if self.op.nature() == Nature::Read || !self.faults.is_full.load(ORDER) {
            return Ok(());
        }
        // The operation has run: what it changed is taken back, and it runs again later.
        self.faults.refused.fetch_add(1, ORDER);
        Err(StoreError::new(Path::new(""), StoreErrorKind::Full))
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        if self.dies && result.is_ok() {
            return self.faults.is_dead.store(true, ORDER);
        }
        self.op.done(result);
    }

    fn nature(&self) -> Nature {
        self.op.nature()
    }

    fn rows(&self) -> usize {
        self.op.rows()
    }
}

const ORDER: Ordering = Ordering::Relaxed;
