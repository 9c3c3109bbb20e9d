//! The pool of one upstream: which call uses a connection, which may open one, and which waits.
//!
//! A connection has a slot from the beginning of its opening until it is closed, and there are never more slots than
//! the cap. Openings are not bound to calls: a call that finds no idle connection waits, an opening begins if the cap
//! allows one, and the first available connection, a new or a returned one, goes to the oldest waiter. So no slot is
//! lost between two owners. No wake-up is lost either: `wants_open` is a pure function of the counts.
//!
//! ```text
//!  opened ─▶ Connecting ─▶ (a waiter?) ─▶ Busy ─▶ released ─▶ (a waiter?) ─▶ Idle ─▶ taken ─▶ Busy
//!                                          └▶ Draining ─▶ released                └▶ closed
//! ```

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use super::queue::{Queue, Ticket};
use super::room;
use super::timeouts::later;
use crate::error::LimitExceeded;
use crate::time::Time;

/// What a call does if every connection is in use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WaitPolicy {
    /// The call fails at once with [`LimitExceeded::Connections`].
    FailFast,
    /// The call waits in order of arrival until its deadline.
    #[default]
    Wait,
}

/// Which idle connection is used first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReuseOrder {
    /// The most recently used one: few connections stay busy, and the others expire.
    #[default]
    Lifo,
    /// The least recently used one: all connections stay in use.
    Fifo,
}

/// Connections of an upstream by state, and waiting calls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// All connections: connecting, busy, draining and idle.
    pub open: usize,
    /// Connections that are being opened, also those whose names are being looked up.
    pub connecting: usize,
    /// Connections that serve a call.
    pub busy: usize,
    /// Connections that read the late answer of an ended call (see
    /// [`LatePolicy::Drain`](crate::policy::LatePolicy::Drain)).
    pub draining: usize,
    /// Connections that are ready for a call.
    pub idle: usize,
    /// Calls that wait for a connection.
    pub waiting: usize,
    /// Connections opened since the client was created.
    pub opened: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.open += other.open;
        self.connecting += other.connecting;
        self.busy += other.busy;
        self.draining += other.draining;
        self.idle += other.idle;
        self.waiting += other.waiting;
        self.opened += other.opened;
    }
}

/// Limits of a client that can be changed while the client runs: see [`Engine::set_caps`](crate::Engine::set_caps). What is
/// `None` stays as it is.
///
/// ```
/// use std::num::NonZeroUsize;
/// use courser::Caps;
///
/// let fewer = Caps { max_connections: NonZeroUsize::new(2), ..Caps::default() };
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Caps {
    /// The most connections to a host: [`HostConfig::max_connections`](crate::HostConfig::max_connections).
    pub max_connections: Option<NonZeroUsize>,
    /// The most calls of a host that wait: [`HostConfig::max_waiting`](crate::HostConfig::max_waiting).
    pub max_waiting: Option<usize>,
    /// The most connections of all hosts together: [`Config::max_connections`](crate::Config::max_connections). Only for
    /// [`Client`](crate::Client).
    pub total_connections: Option<NonZeroUsize>,
}

impl Caps {
    /// The limits after a further change.
    pub(crate) fn then(&self, later: &Self) -> Self {
        Self {
            max_connections: later.max_connections.or(self.max_connections),
            max_waiting: later.max_waiting.or(self.max_waiting),
            total_connections: later.total_connections.or(self.total_connections),
        }
    }
}

/// The rules of one pool; the fields are those of `HostConfig`.
#[derive(Clone, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) max_connections: NonZeroUsize,
    pub(crate) max_waiting: usize,
    pub(crate) wait: WaitPolicy,
    pub(crate) reuse: ReuseOrder,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_age: Option<Duration>,
    pub(crate) max_requests: Option<NonZeroU64>,
    pub(crate) min_idle: usize,
    /// Whether a busy connection takes further calls.
    pub(crate) shared: bool,
    /// Whether calls are throttled, too. Then the pool gives no available connection to a waiter but leaves it idle,
    /// and the driver [pairs](Pool::pair) connections and waiters.
    pub(crate) throttled: bool,
}

/// The pool. `O` names an opening, `C` a connection and `W` a waiting call to the driver.
#[derive(Debug)]
pub(crate) struct Pool<O, C, W> {
    config: PoolConfig,
    slots: Vec<Slot<O, C>>,
    free: Vec<u32>,
    /// Idle connections, the one idle for longest first.
    idle: Queue<u32>,
    /// Calls that take any connection.
    waiting: Queue<W>,
    /// Calls that take only a new connection: their last one was dead. They are older than all calls in `waiting`.
    waiting_fresh: Queue<W>,
    /// Openings, the oldest first.
    connecting: Queue<u32>,
    /// Further connections that race for the same openings.
    rivals: usize,
    busy: usize,
    draining: usize,
    opened: u64,
    /// The value of `opened` when a call last asked for a new connection.
    last_requeued: u64,
    /// No connection is opened for the minimum of idle ones before this time: the last attempt failed.
    warm_after: Option<Time>,
    /// In a throttled pool: how many calls may begin, as the driver has set it. No connections are opened for more.
    room: usize,
}

#[derive(Debug)]
struct Slot<O, C> {
    /// The connection, once it is established.
    conn: Option<C>,
    state: State<O>,
    /// The number of the opening, counted from 1.
    number: u64,
    requests: u64,
    /// The server's idle timeout, if its last answer had one.
    keep_alive: Option<Duration>,
    /// When the connection is too old to be used again.
    worn_at: Option<Time>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State<O> {
    Free,
    /// The opening, once the driver has named it.
    Connecting(Ticket, Option<O>),
    Busy,
    Draining,
    Idle {
        ticket: Ticket,
        /// At `ends_at` at the latest.
        expires_at: Time,
        /// When it can no longer be used, whatever the minimum of idle ones: it is worn, or the server closes it.
        ends_at: Option<Time>,
    },
}

impl<O, C> Slot<O, C> {
    fn free() -> Self {
        Self {
            conn: None,
            state: State::Free,
            number: 0,
            requests: 0,
            keep_alive: None,
            worn_at: None,
        }
    }
}

/// The slot of a connection in the pool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SlotId(u32);

impl SlotId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The place of a call in the wait queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct WaitId {
    ticket: Ticket,
    fresh: bool,
}

impl WaitId {
    /// Whether the call takes only a new connection.
    pub(crate) fn is_fresh(self) -> bool {
        self.fresh
    }
}

/// What happens to an available connection.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Next<W> {
    /// It serves this waiter.
    Assign(W),
    /// It is idle, at most until this time.
    Idle(Time),
    /// It must be closed; its slot is free already.
    Close,
}

impl<O: Copy, C: Copy, W: Copy> Pool<O, C, W> {
    pub(crate) fn new(config: PoolConfig) -> Self {
        Self {
            config,
            slots: Vec::new(),
            free: Vec::new(),
            idle: Queue::new(),
            waiting: Queue::new(),
            waiting_fresh: Queue::new(),
            connecting: Queue::new(),
            rivals: 0,
            busy: 0,
            draining: 0,
            opened: 0,
            last_requeued: 0,
            warm_after: None,
            room: 0,
        }
    }

    /// Takes an idle connection, which is busy now. Passes expired connections to `close`.
    #[inline]
    pub(crate) fn take_idle(&mut self, now: Time, mut close: impl FnMut(C)) -> Option<C> {
        loop {
            let at = match self.config.reuse {
                ReuseOrder::Lifo => self.idle.pop_back(),
                ReuseOrder::Fifo => self.idle.pop_front(),
            }?;
            if let Some(conn) = self.occupy(now, at, &mut close) {
                return Some(conn);
            }
        }
    }

    /// Makes a connection busy that has just left the idle ones; one that has expired is closed.
    #[inline]
    fn occupy(&mut self, now: Time, at: u32, close: &mut impl FnMut(C)) -> Option<C> {
        let slot = &mut self.slots[at as usize];
        let expired = matches!(slot.state, State::Idle { expires_at, .. } if expires_at <= now);
        match slot.conn {
            Some(conn) if !expired => {
                slot.state = State::Busy;
                self.busy += 1;
                return Some(conn);
            }
            Some(conn) => close(conn),
            None => {}
        }
        self.free_slot(at);
        None
    }

    /// Puts a call at the end of the wait queue, if the queue has room. The throttle lets `room` calls begin now.
    ///
    /// # Errors
    /// Why the call must fail.
    pub(crate) fn enqueue(&mut self, waiter: W, room: usize) -> Result<WaitId, LimitExceeded> {
        let cap = self.config.max_connections.get();
        // Connections that are there, are coming or could be opened, compared with the calls that wait already. Only in
        // a throttled pool calls wait beside idle connections.
        let free = cap.saturating_sub(self.slots_in_use());
        let supply = room.min(free + self.connecting.len() + self.idle.len());
        let fails = self.config.wait == WaitPolicy::FailFast && !self.config.throttled;
        if fails && self.waiting() >= supply {
            return Err(LimitExceeded::Connections(cap));
        }
        if self.waiting() >= supply.saturating_add(self.config.max_waiting) {
            return Err(LimitExceeded::Waiting(self.config.max_waiting));
        }
        Ok(WaitId {
            ticket: self.waiting.push_back(waiter),
            fresh: false,
        })
    }

    // ---- throttled pools

    /// Takes the oldest waiter and an idle connection for it, which is busy now. Waiters that need a new connection
    /// come first if there is one.
    pub(crate) fn pair(&mut self, now: Time, mut close: impl FnMut(C)) -> Option<(C, W)> {
        while self.waiting_fresh.len() > 0 {
            let Some(at) = self.idle_slots(true).next() else {
                break;
            };
            if let State::Idle { ticket, .. } = self.slots[at as usize].state {
                self.idle.remove(ticket);
            }
            if let Some(conn) = self.occupy(now, at, &mut close) {
                return Some((conn, self.waiting_fresh.pop_front()?));
            }
        }
        if self.waiting.len() == 0 {
            return None;
        }
        let conn = self.take_idle(now, close)?;
        Some((conn, self.waiting.pop_front()?))
    }

    /// Idle connections: those that have served no call, or that are new enough for the waiters that need a new one; or
    /// the others.
    fn idle_slots(&self, unused: bool) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().zip(0..);
        let slots = slots.filter(move |(slot, at)| {
            let is_idle = matches!(slot.state, State::Idle { .. });
            is_idle && unused == (slot.requests == 0 || self.is_new_enough(*at))
        });
        slots.map(|(_, at)| at)
    }

    /// Marks a new idle connection as busy, for a waiter that was taken out of the queue.
    pub(crate) fn claim(&mut self, SlotId(at): SlotId) {
        if let State::Idle { ticket, .. } = self.slots[at as usize].state {
            self.idle.remove(ticket);
            self.slots[at as usize].state = State::Busy;
            self.busy += 1;
        }
    }

    /// Sets how many calls the throttle lets begin.
    pub(crate) fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Whether the throttle lets a call begin.
    pub(crate) fn has_room(&self) -> bool {
        self.room > 0
    }

    /// How many connections must be opening for the calls that wait.
    #[inline]
    fn demand(&self) -> usize {
        if !self.config.throttled {
            return self.waiting();
        }
        // If a connection is idle, calls wait for the throttle and not for connections.
        let waiting = match self.idle.len() {
            0 => self.waiting(),
            _ => 0,
        };
        let fresh = match self.fresh_in_advance() {
            0 => 0,
            fresh => fresh.saturating_sub(self.idle_slots(true).count()),
        };
        waiting.min(self.room).max(fresh)
    }

    /// How many calls that are tried again get their connection in advance, so that later calls do not overtake them.
    /// Not all of them: each such connection takes room from others while it waits.
    fn fresh_in_advance(&self) -> usize {
        self.waiting_fresh.len().min(self.room.max(1))
    }

    // ---- calls that come back, and those that give up

    /// Puts a call that is tried again on a new connection before all others.
    pub(crate) fn requeue(&mut self, waiter: W) -> WaitId {
        self.last_requeued = self.opened;
        WaitId {
            ticket: self.waiting_fresh.push_back(waiter),
            fresh: true,
        }
    }

    /// Puts back a call whose connection never began to serve it, before calls that had no connection. No limit is
    /// checked: the call was accepted before.
    pub(crate) fn put_back(&mut self, waiter: W) -> WaitId {
        WaitId {
            ticket: self.waiting.push_front(waiter),
            fresh: false,
        }
    }

    /// Removes a call from the wait queue. Returns an opening that no call needs any more, if there is one, so that a
    /// call that gives up leaves nothing behind.
    pub(crate) fn give_up(&mut self, id: WaitId) -> Option<O> {
        if id.fresh {
            self.waiting_fresh.remove(id.ticket);
        } else {
            self.waiting.remove(id.ticket);
        }
        if self.connecting.len() <= self.waiting() + self.warm_shortage() {
            return None;
        }
        self.any_connecting()
    }

    /// Takes the call that has waited longest for any connection.
    pub(crate) fn take_waiting(&mut self) -> Option<W> {
        self.waiting.pop_front()
    }

    /// Takes the next call for a connection that has served before, or that has room for more.
    pub(crate) fn take_waiting_for(&mut self, SlotId(at): SlotId) -> Option<W> {
        if self.is_new_enough(at) {
            self.oldest_waiter()
        } else if self.needs_fresh() && self.is_full() {
            // The connection must end, to make room for a new one.
            None
        } else {
            self.waiting.pop_front()
        }
    }

    /// Records that a busy connection has served some of its calls. True if it should take no more.
    pub(crate) fn served(&mut self, now: Time, SlotId(at): SlotId, calls: usize) -> bool {
        let slot = &mut self.slots[at as usize];
        slot.requests += calls as u64;
        self.warm_after = None; // the server works
        let is_old = slot.worn_at.is_some_and(|worn_at| worn_at <= now);
        is_old || self.is_used_up(SlotId(at), 0) || self.is_exceeded()
    }

    /// Whether a busy connection has as many calls, served and pending, as it may ever have.
    pub(crate) fn is_used_up(&self, SlotId(at): SlotId, pending: usize) -> bool {
        let calls = self.slots[at as usize].requests + pending as u64;
        let most = self.config.max_requests;
        most.is_some_and(|most| calls >= most.get())
    }

    /// The oldest opening.
    pub(crate) fn any_connecting(&self) -> Option<O> {
        let at = self.connecting.front()?;
        match self.slots[at as usize].state {
            State::Connecting(_, opening) => opening,
            _ => None,
        }
    }

    /// Whether another connection must be opened now.
    pub(crate) fn wants_open(&self, now: Time) -> bool {
        let warm = match self.warm_after {
            Some(after) if now < after => 0,
            _ => self.warm_shortage(),
        };
        !self.is_full() && self.connecting.len() < self.demand() + warm
    }

    /// The call that the next connection to be opened is for: the first one for which no connection is coming.
    pub(crate) fn opens_for(&self) -> Option<W> {
        let coming = self.connecting.len();
        match coming.checked_sub(self.waiting_fresh.len()) {
            None => self.waiting_fresh.nth(coming),
            Some(n) => self.waiting.nth(n),
        }
    }

    /// Whether the next connection to be opened would serve no waiter now.
    pub(crate) fn only_warms(&self) -> bool {
        self.connecting.len() >= self.demand() || self.config.throttled && self.room == 0
    }

    /// An idle connection that must be closed: there are more connections than may be, or the cap is reached and a waiter
    /// needs a new one.
    pub(crate) fn in_the_way(&self) -> Option<C> {
        if self.is_exceeded() {
            return self.any_idle();
        }
        if !(self.needs_fresh() && self.is_full()) {
            return None;
        }
        if self.config.throttled {
            // One that has served no call waits for the throttle, as the calls do.
            let used = self.idle_slots(false).next()?;
            return self.slots[used as usize].conn;
        }
        self.any_idle()
    }

    /// Changes the limits. Connections above the new limit end: idle ones as [`in_the_way`](Self::in_the_way), others
    /// after their next answer.
    pub(crate) fn set_caps(&mut self, caps: &Caps) {
        let config = &mut self.config;
        config.max_waiting = caps.max_waiting.unwrap_or(config.max_waiting);
        config.max_connections = caps.max_connections.unwrap_or(config.max_connections);
    }

    /// Whether there are more connections than may be, because the limit was lowered.
    #[inline]
    fn is_exceeded(&self) -> bool {
        self.slots_in_use() > self.config.max_connections.get()
    }

    /// Changes the number of idle connections that are kept.
    pub(crate) fn set_min_idle(&mut self, min_idle: usize) {
        self.config.min_idle = min_idle;
    }

    /// Takes the newest call for which no connection is coming out of the wait queue, if calls do not wait: a limit over
    /// all hosts, or the throttle, leaves no room. Calls that are tried again stay.
    pub(crate) fn refuse(&mut self) -> Option<W> {
        let in_vain = self.waiting() > self.connecting.len();
        let refuses = self.config.wait == WaitPolicy::FailFast;
        (refuses && in_vain)
            .then(|| self.waiting.pop_back())
            .flatten()
    }

    /// Whether a call needs a new connection that is not being opened.
    #[inline]
    pub(crate) fn needs_fresh(&self) -> bool {
        let connecting = self.connecting.len();
        self.waiting_fresh.len() > connecting
            && (!self.config.throttled
                || self.fresh_in_advance() > connecting + self.idle_slots(true).count())
    }

    /// When `wants_open` may change without an event.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let wanted = self.demand() + self.warm_shortage();
        self.warm_after
            .filter(|_| !self.is_full() && self.connecting.len() < wanted)
    }

    /// Takes a slot for an opening that begins.
    pub(crate) fn opened(&mut self) -> SlotId {
        self.opened += 1;
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                room::make(&mut self.slots);
                self.slots.push(Slot::free());
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[at as usize] = Slot {
            state: State::Connecting(self.connecting.push_back(at), None),
            number: self.opened,
            ..Slot::free()
        };
        SlotId(at)
    }

    /// Names the opening of a slot.
    pub(crate) fn set_opening(&mut self, SlotId(at): SlotId, name: O) {
        if let State::Connecting(_, opening) = &mut self.slots[at as usize].state {
            *opening = Some(name);
        }
    }

    /// Names the established connection of a slot.
    pub(crate) fn set_conn(&mut self, SlotId(at): SlotId, conn: C) {
        self.slots[at as usize].conn = Some(conn);
    }

    /// Records a failed opening. Returns the waiter that gets the error.
    pub(crate) fn open_failed(&mut self, now: Time, slot: SlotId) -> Option<W> {
        self.open_refused(now, slot);
        self.oldest_waiter()
    }

    /// Records an opening that ended without a connection, and not by a failure of the host. Its waiter still waits.
    pub(crate) fn open_refused(&mut self, now: Time, slot: SlotId) {
        self.closed(slot);
        self.warm_after = Some(now + WARM_PAUSE);
    }

    /// Takes the call that has waited longest.
    pub(crate) fn oldest_waiter(&mut self) -> Option<W> {
        let fresh = self.waiting_fresh.pop_front();
        fresh.or_else(|| self.waiting.pop_front())
    }

    /// Records an established connection. `random` spreads the ends of connections that began together.
    pub(crate) fn connected(&mut self, now: Time, SlotId(at): SlotId, random: u64) -> Next<W> {
        let slot = &mut self.slots[at as usize];
        if let State::Connecting(ticket, _) = slot.state {
            self.connecting.remove(ticket);
        }
        slot.worn_at = self.config.max_age.map(|age| {
            let early = age.as_secs_f64() * MAX_AGE_JITTER * (random as f64 / u64::MAX as f64);
            later(now, age.saturating_sub(Duration::from_secs_f64(early)))
        });
        self.hand_on(now, at)
    }

    /// Records that a busy or draining connection has served its call and may serve another. `keep_alive` is the
    /// server's idle timeout, if it gave one.
    #[inline]
    pub(crate) fn released(
        &mut self,
        now: Time,
        SlotId(at): SlotId,
        keep_alive: Option<Duration>,
    ) -> Next<W> {
        let slot = &mut self.slots[at as usize];
        match slot.state {
            State::Draining => self.draining -= 1,
            _ => self.busy -= 1,
        }
        slot.keep_alive = keep_alive;
        if self.served(now, SlotId(at), 1) {
            self.free_slot(at);
            return Next::Close;
        }
        self.hand_on(now, at)
    }

    /// The waiter to which a connection was just assigned does not need it any more.
    pub(crate) fn declined(&mut self, now: Time, SlotId(at): SlotId) -> Next<W> {
        self.busy -= 1;
        self.hand_on(now, at)
    }

    /// Passes on an available connection. Waiters for a new connection cannot use one that has served before. In a
    /// throttled pool, the driver gives connections to waiters.
    #[inline]
    fn hand_on(&mut self, now: Time, at: u32) -> Next<W> {
        if self.waiting() == 0 || self.config.throttled {
            return self.rest(now, at);
        }
        let waiter = match self.slots[at as usize].requests {
            0 => self.oldest_waiter(),
            _ => self.take_waiting_for(SlotId(at)),
        };
        match waiter {
            Some(waiter) => {
                self.slots[at as usize].state = State::Busy;
                self.busy += 1;
                Next::Assign(waiter)
            }
            None if self.needs_fresh() && self.is_full() => {
                // The oldest waiters cannot use this connection, and there is no room for one that they can use.
                self.free_slot(at);
                Next::Close
            }
            None => self.rest(now, at),
        }
    }

    /// Whether waiters for a new connection may use this connection although it has served: connections are shared, and
    /// it was opened after the last of these waiters had failed.
    #[inline]
    fn is_new_enough(&self, at: u32) -> bool {
        self.config.shared && self.slots[at as usize].number > self.last_requeued
    }

    /// Makes a connection idle.
    #[inline]
    fn rest(&mut self, now: Time, at: u32) -> Next<W> {
        let slot = &mut self.slots[at as usize];
        let server = slot.keep_alive.map(|theirs| later(now, before(theirs)));
        let ends_at = server.into_iter().chain(slot.worn_at).min();
        let expires_at = idle_until(now, self.config.idle_timeout, ends_at);
        slot.state = State::Idle {
            ticket: self.idle.push_back(at),
            expires_at,
            ends_at,
        };
        Next::Idle(expires_at)
    }

    /// Records that the call of a busy connection has ended while its answer is still coming.
    pub(crate) fn draining(&mut self, SlotId(at): SlotId) {
        self.busy -= 1;
        self.draining += 1;
        self.slots[at as usize].state = State::Draining;
    }

    /// Records that the peer has closed an idle or draining connection. A connection that served no call is not
    /// replaced at once.
    pub(crate) fn lost(&mut self, now: Time, slot: SlotId) {
        if self.slots[slot.0 as usize].requests == 0 {
            self.warm_after = Some(now + WARM_PAUSE);
        }
        self.closed(slot);
    }

    /// Records that a connection was closed, in any state.
    pub(crate) fn closed(&mut self, SlotId(at): SlotId) {
        match self.slots[at as usize].state {
            State::Free => return,
            State::Connecting(ticket, _) => {
                self.connecting.remove(ticket);
            }
            State::Busy => self.busy -= 1,
            State::Draining => self.draining -= 1,
            State::Idle { ticket, .. } => {
                self.idle.remove(ticket);
            }
        }
        self.free_slot(at);
    }

    /// Whether an idle connection has expired: `Ok` if it must be closed, otherwise the time to check again.
    pub(crate) fn expired(&mut self, now: Time, SlotId(at): SlotId) -> Result<(), Time> {
        let kept_warm = self.idle.len() <= self.config.min_idle;
        match &mut self.slots[at as usize].state {
            State::Idle {
                expires_at,
                ends_at,
                ..
            } => {
                if *expires_at <= now && kept_warm {
                    let longer = self.config.idle_timeout.max(WARM_PAUSE);
                    *expires_at = idle_until(now, longer, *ends_at);
                }
                match *expires_at > now {
                    true => Err(*expires_at),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// An idle connection that can be closed.
    #[inline]
    pub(crate) fn any_idle(&self) -> Option<C> {
        self.idle
            .front()
            .and_then(|at| self.slots[at as usize].conn)
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            open: self.open(),
            connecting: self.connecting.len() + self.rivals,
            busy: self.busy,
            draining: self.draining,
            idle: self.idle.len(),
            waiting: self.waiting(),
            opened: self.opened,
        }
    }

    /// All connections, those in a race included.
    pub(crate) fn open(&self) -> usize {
        self.slots_in_use() + self.rivals
    }

    fn slots_in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open() >= self.config.max_connections.get()
    }

    /// Records that an opening now tries `now` addresses at the same time, and before `before`.
    pub(crate) fn set_racing(&mut self, before: usize, now: usize) {
        self.rivals = self.rivals + now.saturating_sub(1) - before.saturating_sub(1);
    }

    /// Waiting calls.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len() + self.waiting_fresh.len()
    }

    /// How many idle connections the minimum lacks.
    fn warm_shortage(&self) -> usize {
        self.config.min_idle.saturating_sub(self.idle.len())
    }

    fn free_slot(&mut self, at: u32) {
        self.slots[at as usize] = Slot::free();
        room::make(&mut self.free);
        self.free.push(at);
    }
}

/// The end of the idle time: as configured, or earlier if the connection ends.
fn idle_until(now: Time, configured: Duration, ends_at: Option<Time>) -> Time {
    let until = later(now, configured);
    ends_at.map_or(until, |ends_at| ends_at.min(until))
}

/// A little less than the server's timeout, so that no request crosses with its close.
fn before(theirs: Duration) -> Duration {
    theirs.saturating_sub(MARGIN).max(theirs / 2)
}

/// How long before the server's announced timeout the connection is closed.
const MARGIN: Duration = Duration::from_secs(1);

/// Pause after a failed opening before the next opening for the minimum of idle connections.
const WARM_PAUSE: Duration = Duration::from_secs(1);

/// Connections end early by up to this part of their maximum age.
const MAX_AGE_JITTER: f64 = 0.1;

#[cfg(test)]
mod tests;
