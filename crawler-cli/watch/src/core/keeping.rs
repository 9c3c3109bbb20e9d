//! What the core sends to the store, and what comes back. The thread that asks never waits for the disk.

use std::time::Instant;

use courser::net::Waker;
use crossbeam_channel::{Receiver, Sender, unbounded};
use jiff::Timestamp;

use super::orders::Orders;
use super::queue::QueueId;
use store::{
    CycleId, DueId, DueUrl, Engine, HostFacts, HostHold, HostId, Judgement, Lanes, Late, Nature,
    Op, Ready, StoreError, StoreHandle, UrlId, WatchCounts, WriterState,
};
use verdict::guard::Stops;
use verdict::life::{Record as Life, State};

/// What comes back from the store, and from others.
#[derive(Debug)]
pub(super) enum Reply {
    /// What was there at the start.
    Began(Box<Beginning>),
    /// Hosts with something due.
    Looked {
        lanes: Lanes,
        ready: Vec<Ready>,
        /// Whether there may be more.
        has_more: bool,
        /// When the next row is due.
        next: Option<Timestamp>,
    },
    /// Due rows of a queue, and what else was read of the host.
    Taken {
        queue: QueueId,
        limit: usize,
        due: Vec<DueUrl>,
        read: Option<HostRead>,
    },
    /// URLs of a host that are alive.
    Siblings { host: HostId, due: Vec<DueUrl> },
    /// URLs of a host that are held.
    Sample { host: HostId, due: Vec<DueUrl> },
    /// Judgements are stored, or they are not and their URLs are still due.
    Stored { batch: Stored, is_stored: bool },
    /// A piece of the beginning or the end of a hold is done. `next`: where the next one begins.
    Piece {
        host: HostId,
        change: HoldChange,
        next: Option<DueId>,
    },
    /// A cycle of reconciling began.
    CycleBegan(CycleId),
    /// How many URLs there are, and how far the work is behind.
    Counted(Box<Counted>),
    /// What operators want.
    Orders(Orders),
    /// What was asked of the store could not be done.
    Failed { what: Failed, error: StoreError },
}

/// What is read about a host together with its rows.
#[derive(Debug)]
pub(super) struct HostRead {
    /// How many of its URLs are in a set.
    pub(super) urls: u64,
    /// The times in which the host was held, if they are needed.
    pub(super) stops: Option<Stops>,
}

/// What was there at the start.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    pub(super) holds: Vec<(HostHold, Stops, HostFacts, u64)>,
    pub(super) stops: Stops,
    /// What was pruned lately, oldest first.
    pub(super) pruned: Vec<(Timestamp, HostId)>,
    pub(super) counts: WatchCounts,
    pub(super) orders: Orders,
}

/// How many URLs there are, and how far the work is behind.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) counts: WatchCounts,
    /// When the oldest row was due.
    pub(super) oldest: Option<Timestamp>,
    /// How many rows are past due for longer than is fine.
    pub(super) overdue: u64,
    /// What operators want: the core may not have been told.
    pub(super) orders: Orders,
}

/// What a hold does to the URLs of its host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HoldChange {
    /// It begins.
    Hold,
    /// It ends.
    Release,
    /// It ends because an operator says that the URLs are gone.
    Confirm,
}

/// What failed, as far as it is to be done again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Failed {
    Beginning,
    Look(Lanes),
    Take(QueueId, usize),
    Piece(HostId),
    Sample(HostId),
    Siblings(HostId),
    Count,
    /// Is asked again by itself.
    Other,
}

/// The names of judgements that were sent together.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) urls: Vec<(HostId, UrlId)>,
    pub(super) stale: u64,
    pub(super) sent_at: Instant,
}

/// What is stored together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) judgements: Vec<Judgement>,
    pub(super) facts: Vec<(HostId, HostFacts)>,
}

/// The store, as the core sees it.
pub(super) struct Keeping<H> {
    store: H,
    outlet: Outlet,
    replies: Receiver<Reply>,
}

/// Takes what is for the core, from any thread.
#[derive(Clone)]
pub(super) struct Outlet {
    sender: Sender<Reply>,
    waker: Waker,
}

impl Outlet {
    /// The core handles the reply in its next turn, which begins at once.
    pub(super) fn send(&self, reply: Reply) {
        // Without a core nobody wants to know.
        if self.sender.send(reply).is_ok() {
            self.waker.wake();
        }
    }
}

impl<H: StoreHandle> Keeping<H> {
    pub(super) fn new(store: H, waker: Waker) -> Self {
        // As many as operations are under way, and those are bounded by what the core asks for.
        let (sender, replies) = unbounded();
        Self {
            store,
            outlet: Outlet { sender, waker },
            replies,
        }
    }

    pub(super) fn next(&self) -> Option<Reply> {
        self.replies.try_recv().ok()
    }

    /// Whether the store takes changes.
    pub(super) fn is_open(&self) -> bool {
        self.store.state() == WriterState::Ok
    }

    /// Has something done to the store. The reply is made of the result, after the commit.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        nature: Nature,
        failed: Failed,
        run: impl FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send + 'static,
        reply: impl FnOnce(T) -> Option<Reply> + Send + 'static,
    ) {
        self.store.send(Box::new(Ask {
            nature,
            rows: 1,
            run,
            value: None,
            reply: move |result: Result<T, StoreError>| match result {
                Ok(value) => reply(value),
                Err(error) => Some(Reply::Failed {
                    what: failed,
                    error,
                }),
            },
            outlet: self.outlet.clone(),
        }));
    }

    /// Stores judgements of the worker with this number.
    pub(super) fn judge(&self, batch: Batch, worker: i64, sent_at: Instant) {
        self.store.send(Box::new(Judge {
            batch: Late {
                worker,
                judgements: batch.judgements,
                facts: batch.facts,
            },
            stale: 0,
            sent_at,
            outlet: self.outlet.clone(),
        }));
    }
}

/// Judgements on their way to the store.
struct Judge {
    batch: Late,
    stale: u64,
    sent_at: Instant,
    outlet: Outlet,
}

impl Op for Judge {
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        self.stale = engine.judge(&self.batch.judgements)?.stale;
        if !self.batch.facts.is_empty() {
            engine.save_hosts(&self.batch.facts)?;
        }
        Ok(())
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        let urls = self.batch.judgements.iter();
        let batch = Stored {
            urls: urls.map(|done| (done.id.host, done.id.url)).collect(),
            stale: self.stale,
            sent_at: self.sent_at,
        };
        let is_stored = result.is_ok();
        self.outlet.send(Reply::Stored { batch, is_stored });
    }

    fn nature(&self) -> Nature {
        Nature::Must
    }

    fn rows(&self) -> usize {
        self.batch.judgements.len().max(1)
    }

    fn late(&self) -> Option<Late> {
        Some(self.batch.clone())
    }
}

/// A closure on the store, whose result becomes a reply.
struct Ask<T, F, R> {
    nature: Nature,
    rows: usize,
    run: F,
    value: Option<T>,
    reply: R,
    outlet: Outlet,
}

impl<T, F, R> Op for Ask<T, F, R>
where
    T: Send,
    F: FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send,
    R: FnOnce(Result<T, StoreError>) -> Option<Reply> + Send,
{
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        self.value = Some((self.run)(engine)?);
        Ok(())
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        let Self {
            value,
            reply,
            outlet,
            ..
        } = *self;
        let result = match (result, value) {
            (Ok(()), Some(value)) => Ok(value),
            (Err(error), _) => Err(error),
            // `run` sets the value, or fails.
            (Ok(()), None) => return,
        };
        if let Some(reply) = reply(result) {
            outlet.send(reply);
        }
    }

    fn nature(&self) -> Nature {
        self.nature
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// Whether a hold takes a URL with this life.
pub(super) fn is_in_question(life: &Life) -> bool {
    matches!(life.state(), State::Suspect | State::Broken)
}
