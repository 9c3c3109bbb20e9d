//! Runs operations in groups, and keeps those that must not be lost while the store cannot be written.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Engine, Nature, Op, Spool, WriterFigures, WriterState};
use crate::{Late, StoreError, StoreErrorKind};

/// An operation with its result, which is still to be told that it is done.
pub(super) type Finished = (Box<dyn Op>, Result<(), StoreError>);

/// Runs operations in groups.
pub(super) struct Committer<E> {
    engine: E,
    /// Operations that must not be lost, in their order. Not empty: the store could not be written lately.
    kept: VecDeque<Box<dyn Op>>,
    /// Why they are kept.
    obstacle: Option<StoreError>,
    state: WriterState,
    figures: Arc<WriterFigures>,
    /// Where what is kept survives the process.
    spool: Option<Spool>,
}

/// Why a group was not stored.
struct Refused {
    /// The operation that failed; `None` if the group could not be begun or ended.
    place: Option<usize>,
    error: StoreError,
}

impl<E: Engine> Committer<E> {
    pub(super) fn new(engine: E, figures: Arc<WriterFigures>) -> Self {
        Self {
            engine,
            kept: VecDeque::new(),
            obstacle: None,
            state: WriterState::Ok,
            figures,
            spool: None,
        }
    }

    /// What is kept survives the process. Begins with what other processes have left.
    pub(super) fn with_spool(mut self, spool: Spool, left: Vec<Late>) -> Self {
        self.spool = Some(spool);
        let left = left.into_iter().map(|late| Box::new(Left(late)));
        self.kept.extend(left.map(|op| op as Box<dyn Op>));
        self.count_kept();
        self
    }

    pub(super) fn state(&self) -> &WriterState {
        &self.state
    }

    /// How many operations are kept.
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn engine(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Runs operations in their order, in as few transactions as possible. What is not among the results is kept.
    pub(super) fn commit(&mut self, ops: Vec<Box<dyn Op>>) -> Vec<Finished> {
        let mut finished = Vec::with_capacity(ops.len());
        let before = self.kept.len();
        self.run(ops, &mut finished);
        self.spool(before);
        self.count_kept();
        finished
    }

    /// Runs the kept operations again, up to `most` of them in a transaction.
    pub(super) fn retry(&mut self, most: usize) -> Vec<Finished> {
        let mut finished = Vec::new();
        while !self.kept.is_empty() {
            let count = self.kept.len().min(most.max(1));
            let mut later = self.kept.split_off(count);
            let ops = std::mem::take(&mut self.kept).into();
            self.run(ops, &mut finished);
            let is_stuck = !self.kept.is_empty();
            self.kept.append(&mut later);
            if is_stuck {
                break;
            }
        }
        if self.kept.is_empty()
            && let Some(spool) = &mut self.spool
            && let Err(error) = spool.clear()
        {
            // What is stored already is not stored again.
            tracing::warn!("the spool cannot be emptied: {error}");
        }
        self.count_kept();
        finished
    }

    /// Writes those of the kept operations that came last to the spool.
    fn spool(&mut self, from: usize) {
        let Some(spool) = &mut self.spool else {
            return;
        };
        let late = self.kept.iter().skip(from).filter_map(|op| op.late());
        let mut late = late.map(|late| {
            let line = late.to_line().map_err(std::io::Error::from)?;
            spool.add(&line)
        });
        let added = late.try_for_each(|added| added);
        drop(late);
        if let Err(error) = added.and_then(|()| spool.sync()) {
            tracing::warn!("what cannot be stored is only in memory: {error}");
        }
    }

    /// Gives up: the kept operations fail with the reason why they are kept.
    pub(super) fn give_up(&mut self) -> Vec<Finished> {
        let kept = std::mem::take(&mut self.kept);
        let finished = kept.into_iter().map(|op| (op, Err(self.obstacle())));
        let finished = finished.collect();
        self.count_kept();
        finished
    }

    fn run(&mut self, mut ops: Vec<Box<dyn Op>>, finished: &mut Vec<Finished>) {
        while !ops.is_empty() {
            if !self.kept.is_empty() {
                self.run_behind_kept(ops, finished);
                return;
            }
            match self.attempt(&mut ops) {
                Ok(()) => {
                    finished.extend(ops.into_iter().map(|op| (op, Ok(()))));
                    return;
                }
                Err(refused) => ops = self.without(refused, ops, finished),
            }
        }
    }

    /// One transaction. After an error all changes are taken back.
    fn attempt(&mut self, ops: &mut [Box<dyn Op>]) -> Result<(), Refused> {
        let began = Instant::now();
        let done = self.transaction(ops);
        if done.is_err() {
            self.engine.abandon_group();
            return done;
        }
        let rows = ops.iter().map(|op| op.rows()).sum();
        self.figures.committed(ops.len(), rows, began.elapsed());
        if ops.iter().any(|op| op.nature() != Nature::Read) {
            self.state = WriterState::Ok;
            self.obstacle = None;
        }
        Ok(())
    }

    fn transaction(&mut self, ops: &mut [Box<dyn Op>]) -> Result<(), Refused> {
        let whole = |error| Refused { place: None, error };
        self.engine.begin_group().map_err(whole)?;
        for (place, op) in ops.iter_mut().enumerate() {
            let engine = &mut self.engine;
            // What a panic leaves behind in the engine is taken back with the group.
            let run = catch_unwind(AssertUnwindSafe(|| op.run(engine)));
            let run = run.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
            run.map_err(|error| Refused {
                place: Some(place),
                error,
            })?;
        }
        self.engine.end_group().map_err(whole)
    }

    /// What is to be run again of a group that was refused.
    fn without(
        &mut self,
        refused: Refused,
        mut ops: Vec<Box<dyn Op>>,
        finished: &mut Vec<Finished>,
    ) -> Vec<Box<dyn Op>> {
        let Refused { place, error } = refused;
        let is_of_all = error.kind().is_of_the_whole_store();
        self.note(&error);
        match place {
            Some(place) if !is_of_all || ops[place].nature() != Nature::Must => {
                self.figures.failures.fetch_add(1, Ordering::Relaxed);
                finished.push((ops.remove(place), Err(error)));
                ops
            }
            // Those before had run: they may fit.
            Some(place) if place > 0 => {
                let later = ops.split_off(place);
                self.run(ops, finished);
                self.refuse(error, later, finished);
                Vec::new()
            }
            // One operation alone is told what is wrong with the group.
            None if !is_of_all && ops.len() == 1 => {
                self.figures.failures.fetch_add(1, Ordering::Relaxed);
                finished.extend(ops.pop().map(|op| (op, Err(error))));
                ops
            }
            None if !is_of_all => {
                for op in ops {
                    self.run(vec![op], finished);
                }
                Vec::new()
            }
            _ => {
                self.refuse(error, ops, finished);
                Vec::new()
            }
        }
    }

    /// The store cannot be written: keeps what must not be lost.
    fn refuse(&mut self, error: StoreError, ops: Vec<Box<dyn Op>>, finished: &mut Vec<Finished>) {
        self.figures.refusals.fetch_add(1, Ordering::Relaxed);
        self.note(&error);
        self.obstacle = Some(error);
        self.run_behind_kept(ops, finished);
    }

    /// While operations are kept: those that must not be lost are kept, too; those that read are run; others fail.
    fn run_behind_kept(&mut self, ops: Vec<Box<dyn Op>>, finished: &mut Vec<Finished>) {
        for mut op in ops {
            match op.nature() {
                Nature::Must => self.kept.push_back(op),
                Nature::Change => finished.push((op, Err(self.obstacle()))),
                Nature::Read => {
                    let read = self.attempt(std::slice::from_mut(&mut op));
                    finished.push((op, read.map_err(|refused| refused.error)));
                }
            }
        }
    }

    fn note(&mut self, error: &StoreError) {
        match error.kind() {
            StoreErrorKind::Full => self.state = WriterState::Full,
            StoreErrorKind::Damaged(_) => self.state = WriterState::Failing(error.to_string()),
            kind if kind.is_of_the_whole_store() => {
                self.state = WriterState::Failing(error.to_string());
            }
            _ => {}
        }
    }

    /// The reason why operations are kept, for one more of them.
    fn obstacle(&self) -> StoreError {
        match &self.obstacle {
            Some(error) => error.duplicate(),
            None => StoreError::new(Path::new(""), StoreErrorKind::Closed),
        }
    }

    fn count_kept(&self) {
        self.figures.kept.store(self.kept.len(), Ordering::Relaxed);
    }
}

/// What another process has left.
struct Left(Late);

impl Op for Left {
    fn run(&mut self, engine: &mut dyn super::Engine) -> Result<(), StoreError> {
        let done = engine.judge_late(&self.0)?;
        tracing::info!(
            stored = done.stored,
            stale = done.stale,
            "outcomes that an earlier process could not store"
        );
        Ok(())
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        if let Err(error) = result {
            let urls = self.0.judgements.len();
            tracing::error!(
                urls,
                "outcomes of an earlier process were not stored: {error}"
            );
        }
    }

    fn nature(&self) -> Nature {
        Nature::Must
    }

    fn rows(&self) -> usize {
        self.0.judgements.len().max(1)
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> StoreError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no message".to_owned());
    StoreError::new(Path::new(""), StoreErrorKind::Panicked(text))
}
