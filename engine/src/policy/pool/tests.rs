//! The pool against a model: in random programs of a driver's operations, every answer of the pool must be the one that
//! plain lists give, and no slot, wake-up or place in the queue is lost. Pools behind a throttle, which the model does not
//! know, are in the campaigns of `engine/tests/sim`.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// An operation of a driver, or an event. An operation without an object does nothing.
#[derive(Clone, Debug)]
enum Op {
    Begin,
    /// A waiting call is cancelled or runs out of time.
    GiveUp(Index),
    /// An opening succeeds. If the flag is set, the jitter of the maximum age is at its highest, otherwise at its lowest.
    /// So many waiters, the next ones, do not take the connection.
    Connected(Index, bool, u8),
    /// An opening fails; with the flag, the call that it was for is tried again.
    OpenFailed(Index, bool),
    /// A busy or draining connection is free. The server says for how many seconds it keeps the connection, and so many
    /// waiters do not take it.
    Released(Index, Option<u64>, u8),
    /// The call of a busy connection ends before its answer; with the flag, it is tried again.
    Drain(Index, bool),
    /// A connection breaks, in any state; with the flag, its call is tried again.
    Closed(Index, bool),
    /// The timer of an idle connection fires, perhaps too early.
    Expired(Index),
    CloseIdle,
    /// Quarters of a second pass.
    Pass(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let which = any::<Index>;
    let again = any::<bool>;
    let keep_alive = prop::option::weighted(0.3, 0u64..8);
    prop_oneof![
        8 => Just(Op::Begin),
        2 => which().prop_map(Op::GiveUp),
        6 => (which(), any::<bool>(), 0u8..3).prop_map(|(n, late, declines)| Op::Connected(n, late, declines)),
        2 => (which(), again()).prop_map(|(n, again)| Op::OpenFailed(n, again)),
        6 => (which(), keep_alive, 0u8..3).prop_map(|(n, time, declines)| Op::Released(n, time, declines)),
        2 => (which(), again()).prop_map(|(n, again)| Op::Drain(n, again)),
        2 => (which(), again()).prop_map(|(n, again)| Op::Closed(n, again)),
        3 => which().prop_map(Op::Expired),
        1 => Just(Op::CloseIdle),
        3 => (0u8..20).prop_map(Op::Pass),
    ]
}

fn config() -> impl Strategy<Value = PoolConfig> {
    (
        1usize..5,
        prop_oneof![0usize..6, Just(usize::MAX)],
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![0, 1, 4, 90]),
        prop::option::of(prop::sample::select(vec![5, 10, 20])),
        prop::option::of(1u64..4),
        prop_oneof![2 => Just(0), 1 => 1usize..6],
    )
        .prop_map(
            |(cap, max_waiting, fail_fast, fifo, idle, age, requests, min_idle)| PoolConfig {
                shared: false,
                throttled: false,
                max_connections: NonZeroUsize::new(cap).expect("not zero"),
                max_waiting,
                wait: if fail_fast {
                    WaitPolicy::FailFast
                } else {
                    WaitPolicy::Wait
                },
                reuse: if fifo {
                    ReuseOrder::Fifo
                } else {
                    ReuseOrder::Lifo
                },
                idle_timeout: seconds(idle),
                max_age: age.map(seconds),
                max_requests: requests.and_then(NonZeroU64::new),
                min_idle,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The flag of an operation says whether the driver opens and closes what the pool wants after it.
    #[test]
    fn behaves_as_the_model(config in config(), first in any::<Index>(), program in prop::collection::vec((op(), prop::bool::weighted(0.7)), 0..120)) {
        let mut world = World::new(config);
        for (op, settle) in program {
            world.run(op);
            world.check();
            if settle {
                world.settle();
                world.check();
                world.check_nothing_is_stuck();
            }
        }
        world.finish(first);
    }
}

/// The pool and its model.
struct World {
    config: PoolConfig,
    pool: Pool<u32, u32, u32>,
    now: Time,
    /// The last name given to a connection or a call.
    names: u32,
    /// All connections, in the order of their openings.
    conns: Vec<Conn>,
    /// The idle connections, the one idle for longest first.
    idle: Vec<u32>,
    fresh: Vec<Waiter>,
    waiting: Vec<Waiter>,
    opened: u64,
    no_warming_before: Option<Time>,
}

struct Conn {
    name: u32,
    slot: SlotId,
    state: Is,
    served: u64,
    worn_at: Option<Time>,
    /// The server's idle timeout, from its last answer.
    keep_alive: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Is {
    Connecting,
    Busy {
        call: u32,
    },
    Draining,
    /// The end of the idle time; one kept warm stays at most to its own end.
    Idle {
        until: Time,
        end: Option<Time>,
    },
}

struct Waiter {
    call: u32,
    id: WaitId,
}

impl World {
    fn new(config: PoolConfig) -> Self {
        Self {
            pool: Pool::new(config.clone()),
            config,
            now: Time::now(),
            names: 0,
            conns: Vec::new(),
            idle: Vec::new(),
            fresh: Vec::new(),
            waiting: Vec::new(),
            opened: 0,
            no_warming_before: None,
        }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Begin => self.begin(),
            Op::GiveUp(which) => self.give_up(which),
            Op::Connected(which, late, declines) => self.connected(which, late, declines),
            Op::OpenFailed(which, again) => self.open_failed(which, again),
            Op::Released(which, time, declines) => {
                self.released(which, time.map(seconds), declines);
            }
            Op::Drain(which, again) => self.drain(which, again),
            Op::Closed(which, again) => self.closed(which, again),
            Op::Expired(which) => self.expired(which),
            Op::CloseIdle => {
                while let Some(conn) = self.pool.any_idle() {
                    assert_eq!(conn, self.idle[0]);
                    let slot = self.forget(conn).slot;
                    self.pool.closed(slot);
                }
            }
            Op::Pass(quarters) => {
                self.now = self.now + Duration::from_millis(250) * u32::from(quarters)
            }
        }
    }

    // ---- operations

    fn begin(&mut self) {
        let call = self.name();
        let mut closed = Vec::new();
        let got = self.pool.take_idle(self.now, |conn| closed.push(conn));
        let mut expected_closed = Vec::new();
        while let Some(&conn) = match self.config.reuse {
            ReuseOrder::Lifo => self.idle.last(),
            ReuseOrder::Fifo => self.idle.first(),
        } {
            let now = self.now;
            let found = self.conn(conn);
            let over = matches!(found.state, Is::Idle { until, .. } if until <= now);
            if !over {
                assert!(found.worn_at.is_none_or(|worn_at| now < worn_at));
                found.state = Is::Busy { call };
                self.idle.retain(|idle| *idle != conn);
                assert_eq!((got, closed), (Some(conn), expected_closed));
                return;
            }
            self.forget(conn);
            expected_closed.push(conn);
        }
        assert_eq!((got, closed), (None, expected_closed));
        let got = self.pool.enqueue(call, usize::MAX);
        // A call that finds no idle connection counts on one that comes or can be opened, after the calls before it.
        let cap = self.config.max_connections.get();
        let room = cap - self.conns.len();
        let coming = self.count(|state| state == Is::Connecting) + room;
        let behind = (self.fresh.len() + self.waiting.len()).checked_sub(coming);
        match (behind, self.config.wait) {
            (Some(_), WaitPolicy::FailFast) => {
                assert_eq!(got, Err(LimitExceeded::Connections(cap)));
            }
            (Some(others), _) if others >= self.config.max_waiting => {
                let max = self.config.max_waiting;
                assert_eq!(got, Err(LimitExceeded::Waiting(max)));
            }
            _ => match got {
                Ok(id) => self.waiting.push(Waiter { call, id }),
                other => panic!("{other:?} where the call must wait"),
            },
        }
    }

    fn give_up(&mut self, which: Index) {
        let all = self.fresh.len() + self.waiting.len();
        if all == 0 {
            return;
        }
        let at = which.index(all);
        let waiter = match at.checked_sub(self.fresh.len()) {
            Some(at) => self.waiting.remove(at),
            None => self.fresh.remove(at),
        };
        let surplus = self.pool.give_up(waiter.id);
        let connecting = self.count(|state| state == Is::Connecting);
        let needed = (all - 1) + self.config.min_idle.saturating_sub(self.idle.len());
        assert_eq!(surplus.is_some(), connecting > needed);
        if let Some(conn) = surplus {
            assert_eq!(self.conn(conn).state, Is::Connecting);
            let slot = self.forget(conn).slot;
            self.pool.closed(slot);
        }
    }

    fn connected(&mut self, which: Index, late: bool, declines: u8) {
        let Some(conn) = self.pick(which, |state| state == Is::Connecting) else {
            return;
        };
        let (now, slot) = (self.now, self.conn(conn).slot);
        let random = if late { u64::MAX } else { 0 };
        let got = self.pool.connected(now, slot, random);
        // Early by at most a tenth; the ages here have exact tenths.
        let age = self.config.max_age;
        let worn_at = age.map(|age| now + if late { age / 10 * 9 } else { age });
        self.conn(conn).worn_at = worn_at;
        self.handed_on(conn, got, declines);
    }

    fn open_failed(&mut self, which: Index, again: bool) {
        let Some(conn) = self.pick(which, |state| state == Is::Connecting) else {
            return;
        };
        let slot = self.forget(conn).slot;
        let told = self.pool.open_failed(self.now, slot);
        self.no_warming_before = Some(self.now + seconds(1));
        let oldest = self.oldest_waiter();
        assert_eq!(told, oldest);
        self.end_attempt(oldest, again);
    }

    fn released(&mut self, which: Index, keep_alive: Option<Duration>, declines: u8) {
        let in_use = |state| matches!(state, Is::Busy { .. } | Is::Draining);
        let Some(conn) = self.pick(which, in_use) else {
            return;
        };
        let (now, most) = (self.now, self.config.max_requests);
        self.no_warming_before = None;
        let found = self.conn(conn);
        found.served += 1;
        found.keep_alive = keep_alive;
        let used_up = most.is_some_and(|most| found.served == most.get());
        let worn = found.worn_at.is_some_and(|worn_at| worn_at <= now);
        let slot = found.slot;
        let got = self.pool.released(now, slot, keep_alive);
        if used_up || worn {
            assert_eq!(got, Next::Close);
            self.forget(conn);
            return;
        }
        self.handed_on(conn, got, declines);
    }

    /// A connection is available, and the pool has given it to `got`.
    fn handed_on(&mut self, conn: u32, mut got: Next<u32>, declines: u8) {
        assert_eq!(got, self.whose_next(conn));
        for _ in 0..declines {
            if !matches!(got, Next::Assign(_)) {
                return;
            }
            let slot = self.conn(conn).slot;
            got = self.pool.declined(self.now, slot);
            assert_eq!(got, self.whose_next(conn));
        }
    }

    /// The next user of the connection, by the model.
    fn whose_next(&mut self, conn: u32) -> Next<u32> {
        let is_new = self.conn(conn).served == 0;
        let connecting = self.count(|state| state == Is::Connecting && !is_new);
        let full = self.conns.len() == self.config.max_connections.get();
        if !is_new && self.fresh.len() > connecting && full {
            self.forget(conn);
            return Next::Close;
        }
        let call = if is_new {
            self.oldest_waiter()
        } else {
            take_first(&mut self.waiting)
        };
        if let Some(call) = call {
            self.conn(conn).state = Is::Busy { call };
            return Next::Assign(call);
        }
        // A second before the server's timeout, or half of a short timeout.
        let (now, ours) = (self.now, self.config.idle_timeout);
        let found = self.conn(conn);
        let theirs = found.keep_alive.map(|theirs| match theirs.as_secs() {
            0..2 => now + theirs / 2,
            _ => now + (theirs - seconds(1)),
        });
        let end = [theirs, found.worn_at].into_iter().flatten().min();
        let until = end.map_or(now + ours, |end| end.min(now + ours));
        found.state = Is::Idle { until, end };
        self.idle.push(conn);
        Next::Idle(until)
    }

    fn drain(&mut self, which: Index, again: bool) {
        let Some(conn) = self.pick(which, |state| matches!(state, Is::Busy { .. })) else {
            return;
        };
        let found = self.conn(conn);
        let (slot, was) = (found.slot, found.state);
        found.state = Is::Draining;
        self.pool.draining(slot);
        self.end_attempt(call_of(was), again);
    }

    fn closed(&mut self, which: Index, again: bool) {
        let Some(conn) = self.pick(which, |_| true) else {
            return;
        };
        let Conn { slot, state, .. } = self.forget(conn);
        self.pool.closed(slot);
        self.pool.closed(slot); // a second report changes nothing
        self.end_attempt(call_of(state), again);
    }

    fn expired(&mut self, which: Index) {
        let Some(conn) = self.pick(which, |state| matches!(state, Is::Idle { .. })) else {
            return;
        };
        let (now, kept_warm) = (self.now, self.idle.len() <= self.config.min_idle);
        let longer = now + self.config.idle_timeout.max(seconds(1));
        let found = self.conn(conn);
        let Is::Idle { until, end } = &mut found.state else {
            return;
        };
        if *until <= now && kept_warm {
            *until = end.map_or(longer, |end| end.min(longer));
        }
        let (slot, until) = (found.slot, *until);
        let got = self.pool.expired(now, slot);
        assert_eq!(got, if until <= now { Ok(()) } else { Err(until) });
        if got.is_ok() {
            self.forget(conn);
            self.pool.closed(slot);
        }
    }

    /// Opens and closes what the pool wants, as a driver does before it waits.
    fn settle(&mut self) {
        loop {
            if self.pool.wants_open(self.now) {
                self.open();
            } else if let Some(conn) = self.pool.in_the_way() {
                assert_eq!(conn, self.idle[0]);
                let slot = self.forget(conn).slot;
                self.pool.closed(slot);
            } else {
                return;
            }
            self.check();
        }
    }

    fn open(&mut self) {
        let slot = self.pool.opened();
        let name = self.name();
        self.pool.set_opening(slot, name);
        self.pool.set_conn(slot, name);
        self.opened += 1;
        self.conns.push(Conn {
            name,
            slot,
            state: Is::Connecting,
            served: 0,
            worn_at: None,
            keep_alive: None,
        });
    }

    /// From any state, every waiter gets a connection, and every slot is returned.
    fn finish(&mut self, first: Index) {
        for _ in 0..10_000 {
            self.settle();
            if self.fresh.is_empty() && self.waiting.is_empty() {
                break;
            }
            self.connected(first, false, 0);
            self.released(first, None, 0);
            self.check();
        }
        assert!(self.fresh.is_empty() && self.waiting.is_empty());
        while let Some(conn) = self.conns.first().map(|conn| conn.name) {
            let slot = self.forget(conn).slot;
            self.pool.closed(slot);
        }
        self.check();
        assert_eq!(self.pool.counters().open, 0);
    }

    // ---- invariants

    fn check(&self) {
        let counters = Counters {
            open: self.conns.len(),
            connecting: self.count(|state| state == Is::Connecting),
            busy: self.count(|state| matches!(state, Is::Busy { .. })),
            draining: self.count(|state| state == Is::Draining),
            idle: self.idle.len(),
            waiting: self.fresh.len() + self.waiting.len(),
            opened: self.opened,
        };
        assert_eq!(self.pool.counters(), counters);
        let cap = self.config.max_connections.get();
        assert!(counters.open <= cap);
        let warming = match self.no_warming_before {
            Some(at) if self.now < at => 0,
            _ => self.config.min_idle.saturating_sub(counters.idle),
        };
        let wants = counters.open < cap && counters.connecting < counters.waiting + warming;
        assert_eq!(self.pool.wants_open(self.now), wants);
        assert_eq!(self.pool.any_idle(), self.idle.first().copied());
        let mut slots: Vec<u32> = self.conns.iter().map(|conn| conn.slot.0).collect();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), counters.open, "two connections in one slot");
    }

    /// The invariants when a driver begins to wait: everything that can progress has done so, or has a timer.
    fn check_nothing_is_stuck(&self) {
        let Counters {
            open,
            connecting,
            busy,
            draining,
            waiting,
            ..
        } = self.pool.counters();
        assert!(
            self.waiting.is_empty() || self.idle.is_empty(),
            "a call waits beside an idle connection"
        );
        let full = open == self.config.max_connections.get();
        assert!(
            self.fresh.len() <= connecting || self.idle.is_empty(),
            "an idle connection holds the place of a new one"
        );
        assert!(
            waiting <= connecting || full,
            "nothing is opened for a call"
        );
        assert!(
            waiting == 0 || connecting + busy + draining > 0,
            "a call waits for nothing"
        );
        if let Some(at) = self.no_warming_before {
            let changes = self.pool.wants_open(at);
            assert_eq!(self.pool.poll_timeout(), changes.then_some(at));
        }
        if let Some(at) = self.pool.poll_timeout() {
            assert!(self.now < at, "a timer that is due, and nothing to do");
            assert!(self.pool.wants_open(at), "a timer for nothing");
        }
        let short = self.idle.len() + connecting < self.config.min_idle;
        assert!(
            !short || full || self.pool.poll_timeout().is_some(),
            "the minimum idle is forgotten"
        );
    }

    // ---- the model's helpers

    fn name(&mut self) -> u32 {
        self.names += 1;
        self.names
    }

    fn count(&self, is: impl Fn(Is) -> bool) -> usize {
        self.conns.iter().filter(|conn| is(conn.state)).count()
    }

    fn pick(&self, which: Index, is: impl Fn(Is) -> bool) -> Option<u32> {
        let fits: Vec<_> = self.conns.iter().filter(|conn| is(conn.state)).collect();
        (!fits.is_empty()).then(|| which.get(&fits).name)
    }

    fn conn(&mut self, name: u32) -> &mut Conn {
        let found = self.conns.iter_mut().find(|conn| conn.name == name);
        found.expect("the pool names connections that there are")
    }

    fn forget(&mut self, name: u32) -> Conn {
        self.idle.retain(|idle| *idle != name);
        let at = self.conns.iter().position(|conn| conn.name == name);
        self.conns.remove(at.expect("a connection that there is"))
    }

    fn oldest_waiter(&mut self) -> Option<u32> {
        take_first(&mut self.fresh).or_else(|| take_first(&mut self.waiting))
    }

    /// The attempt of a call has ended, and the call with it unless it is tried `again`.
    fn end_attempt(&mut self, call: Option<u32>, again: bool) {
        if let Some(call) = call.filter(|_| again) {
            let id = self.pool.requeue(call);
            self.fresh.push(Waiter { call, id });
        }
    }
}

fn call_of(state: Is) -> Option<u32> {
    match state {
        Is::Busy { call } => Some(call),
        _ => None,
    }
}

fn take_first(queue: &mut Vec<Waiter>) -> Option<u32> {
    (!queue.is_empty()).then(|| queue.remove(0).call)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// ---- pools behind a throttle

#[test]
fn the_queue_of_a_gated_pool_has_its_limit_beside_those_that_may_begin() {
    let mut pool: Pool<u32, u32, u32> = Pool::new(PoolConfig {
        shared: false,
        throttled: true,
        max_connections: NonZeroUsize::new(5).expect("not zero"),
        max_waiting: 1,
        wait: WaitPolicy::Wait,
        reuse: ReuseOrder::Lifo,
        idle_timeout: seconds(4),
        max_age: None,
        max_requests: None,
        min_idle: 0,
    });
    for call in 0..3 {
        assert!(pool.enqueue(call, 2).is_ok());
    }
    let full = Err(LimitExceeded::Waiting(1));
    assert_eq!(pool.enqueue(3, 2), full);
}
