//! Which queues of URLs are worked on, and the way of their entries from a store to the work at their host. Pure.
//!
//! Only so many queues are worked on at a time, and only so many of their entries are in memory; the others wait in the
//! store.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::hosts::HostId as WorkId;

/// All queues. `Q` names a queue: a host, or a part of what is to be asked at a host. `P` is the place of an entry `E` in its
/// queue.
pub struct Fleet<Q, P, E> {
    queues: BTreeMap<Q, Queue<P, E>>,
    /// Queues with entries that are not worked on, in the order in which they were found.
    waiting: VecDeque<Q>,
    /// How many queues are worked on.
    active: usize,
    /// How many reads of queues are under way.
    taking: usize,
    /// The works that queues are using, and how many queues use each.
    works: HashMap<WorkId, usize>,
}

/// One queue.
struct Queue<P, E> {
    /// The last entry that was taken.
    cursor: Option<P>,
    /// Whether the store may have entries after it.
    has_more: bool,
    is_waiting: bool,
    /// `None`: the queue is not worked on.
    active: Option<Box<Active<E>>>,
}

/// A queue that is worked on.
#[derive(Debug)]
struct Active<E> {
    work: Option<WorkId>,
    /// Entries that were taken and not given to the work.
    buffer: VecDeque<E>,
    is_taking: bool,
    /// Entries that the work has.
    in_work: usize,
    /// How many entries were taken last.
    chunk: usize,
}

/// A read of a queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Take<Q, P> {
    pub queue: Q,
    /// `None`: from the beginning.
    pub after: Option<P>,
    pub limit: usize,
}

impl<Q, P, E> Default for Fleet<Q, P, E> {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            waiting: VecDeque::new(),
            active: 0,
            taking: 0,
            works: HashMap::new(),
        }
    }
}

impl<P, E> Default for Queue<P, E> {
    fn default() -> Self {
        Self {
            cursor: None,
            has_more: false,
            is_waiting: false,
            active: None,
        }
    }
}

impl<E> Default for Active<E> {
    fn default() -> Self {
        Self {
            work: None,
            buffer: VecDeque::new(),
            is_taking: false,
            in_work: 0,
            chunk: 0,
        }
    }
}

impl<Q: Copy + Ord, P: Copy, E> Fleet<Q, P, E> {
    /// The queue has entries that were not taken.
    pub fn handle_queued(&mut self, id: Q) {
        let queue = self.queue(id);
        queue.has_more = true;
        if queue.active.is_none() && !std::mem::replace(&mut queue.is_waiting, true) {
            self.waiting.push_back(id);
        }
    }

    /// The next queue to be worked on, and its first read.
    pub fn activate(&mut self) -> Option<Take<Q, P>> {
        if self.active >= MOST_ACTIVE {
            return None;
        }
        let id = self.waiting.pop_front()?;
        self.queue(id).is_waiting = false;
        self.work_on(id);
        self.take(id)
    }

    /// Whether further queues can be worked on.
    pub fn has_room(&self) -> bool {
        self.active + self.waiting.len() < MOST_ACTIVE
    }

    fn work_on(&mut self, id: Q) -> &mut Active<E> {
        let queue = self.queues.entry(id).or_default();
        queue.active.get_or_insert_with(|| {
            self.active += 1;
            Box::default()
        })
    }

    /// The next read for a queue that runs out of entries.
    pub fn take(&mut self, id: Q) -> Option<Take<Q, P>> {
        let share = (MOST_TAKEN / self.active.max(1)).clamp(LEAST_CHUNK, MOST_CHUNK);
        let queue = self.queues.get_mut(&id)?;
        let active = queue.active.as_mut()?;
        if active.is_taking || !queue.has_more || active.buffer.len() > active.chunk / 2 {
            return None;
        }
        active.chunk = (active.chunk * 2).clamp(LEAST_CHUNK, share);
        active.is_taking = true;
        self.taking += 1;
        Some(Take {
            queue: id,
            after: queue.cursor,
            limit: active.chunk,
        })
    }

    /// A read has ended: `taken` has fewer than `limit` entries if there are no more.
    pub fn handle_taken(
        &mut self,
        id: Q,
        limit: usize,
        taken: Vec<E>,
        place: impl FnOnce(&E) -> P,
    ) {
        self.taking -= 1;
        let queue = self.queue(id);
        queue.has_more = taken.len() >= limit;
        if let Some(last) = taken.last() {
            queue.cursor = Some(place(last));
        }
        if let Some(active) = &mut queue.active {
            active.is_taking = false;
            active.buffer.extend(taken);
        }
    }

    /// Whether reads are under way.
    pub fn is_taking(&self) -> bool {
        self.taking > 0
    }

    /// The next entry of a queue that was taken.
    pub fn peek(&self, id: Q) -> Option<&E> {
        self.queues.get(&id)?.active.as_ref()?.buffer.front()
    }

    /// Gives the next entry of a queue to its work.
    pub fn begin(&mut self, id: Q) -> Option<E> {
        let active = self.queues.get_mut(&id)?.active.as_mut()?;
        let entry = active.buffer.pop_front()?;
        active.in_work += 1;
        Some(entry)
    }

    /// An entry is to be asked anew.
    pub fn put_back(&mut self, id: Q, entry: E) {
        self.work_on(id).buffer.push_front(entry);
    }

    /// The work has an entry of the queue no longer.
    pub fn end(&mut self, id: Q) {
        if let Some(active) = self.queue(id).active.as_mut() {
            active.in_work -= 1;
        }
    }

    /// Stops the work on a queue that has no entries. Returns whether it has none.
    pub fn rest(&mut self, id: Q) -> bool {
        let queue = self.queue(id);
        let has_more = queue.has_more;
        let is_idle = |active: &Active<E>| {
            !has_more && !active.is_taking && active.in_work == 0 && active.buffer.is_empty()
        };
        let Some(active) = queue.active.take_if(|active| is_idle(active)) else {
            return queue.active.is_none();
        };
        self.active -= 1;
        self.leave(active.work);
        true
    }

    /// Gives up what was taken from a queue and not given to its work. The queue has nothing more to ask before it is
    /// [queued](Self::handle_queued) again.
    pub fn abandon(&mut self, id: Q) -> Vec<E> {
        let queue = self.queue(id);
        queue.has_more = false;
        let active = queue.active.as_mut();
        active.map_or_else(Vec::new, |active| active.buffer.drain(..).collect())
    }

    /// Forgets a queue that rests: it is read from its beginning when it is queued again.
    pub fn forget(&mut self, id: Q) {
        let rests = |queue: &Queue<P, E>| queue.active.is_none() && !queue.is_waiting;
        if self.queues.get(&id).is_some_and(rests) {
            self.queues.remove(&id);
        }
    }

    /// How many entries of a queue its work has, and how many were taken and wait.
    pub fn counts(&self, id: Q) -> (usize, usize) {
        let queue = self.queues.get(&id);
        let active = queue.and_then(|queue| queue.active.as_ref());
        active.map_or((0, 0), |active| (active.in_work, active.buffer.len()))
    }

    /// How many entries were taken and wait.
    pub fn buffered(&self) -> usize {
        let active = self.queues.values();
        let active = active.filter_map(|queue| queue.active.as_ref());
        active.map(|active| active.buffer.len()).sum()
    }

    /// Whether a queue is worked on, or waits for that.
    pub fn knows(&self, id: Q) -> bool {
        let is_known = |queue: &Queue<P, E>| queue.active.is_some() || queue.is_waiting;
        self.queues.get(&id).is_some_and(is_known)
    }

    /// Whether no queue has entries to ask, as far as is known.
    pub fn is_idle(&self) -> bool {
        self.active == 0 && self.waiting.is_empty()
    }

    /// The queues that are worked on.
    pub fn active(&self) -> Vec<Q> {
        let active = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.active.is_some());
        active.map(|(id, _)| *id).collect()
    }

    /// The work of a queue.
    pub fn work(&self, id: Q) -> Option<WorkId> {
        self.queues.get(&id)?.active.as_ref()?.work
    }

    /// Sets the work of a queue that is worked on.
    pub fn set_work(&mut self, id: Q, work: WorkId) {
        if let Some(active) = self.queue(id).active.as_mut() {
            let before = active.work.replace(work);
            *self.works.entry(work).or_default() += 1;
            self.leave(before);
        }
    }

    /// Whether a queue uses this work.
    pub fn uses(&self, work: WorkId) -> bool {
        self.works.contains_key(&work)
    }

    /// Forgets all works, which were removed.
    pub fn forget_works(&mut self) {
        self.works.clear();
        let queues = self.queues.values_mut();
        for active in queues.filter_map(|queue| queue.active.as_mut()) {
            active.work = None;
        }
    }

    fn leave(&mut self, work: Option<WorkId>) {
        if let Some(work) = work
            && let Some(queues) = self.works.get_mut(&work)
        {
            *queues -= 1;
            if *queues == 0 {
                self.works.remove(&work);
            }
        }
    }

    fn queue(&mut self, id: Q) -> &mut Queue<P, E> {
        self.queues.entry(id).or_default()
    }
}

/// The largest number of queues that are worked on: more than can have connections at a time.
const MOST_ACTIVE: usize = 2_000;

/// The largest number of entries in memory, shared by the queues that are worked on.
const MOST_TAKEN: usize = 16_384;

/// Entries of one queue that are read at a time: a fast host gets through 2,000 while others are stored.
const LEAST_CHUNK: usize = 32;
const MOST_CHUNK: usize = 2_048;
