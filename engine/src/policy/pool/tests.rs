//! The pool against a model of it: random programs of everything that can happen to connections and calls.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// What the pool should be, in plain lists. Connections and calls are numbers.
struct Model {
    pool: Pool<u32, u32>,
    config: PoolConfig,
    now: Instant,
    conns: Vec<Conn>,
    /// Oldest first.
    waiting: VecDeque<(u32, WaitId)>,
    fresh: VecDeque<(u32, WaitId)>,
    next_call: u32,
    next_conn: u32,
}

struct Conn {
    name: u32,
    slot: SlotId,
    is: Is,
    requests: u64,
    /// The server told its limit, which ends before any of ours, with the last answer.
    limited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Connecting,
    Busy,
    Draining,
    /// Since when, and until when.
    Idle(Instant, Instant),
}

impl Model {
    fn new(config: PoolConfig) -> Self {
        Self {
            pool: Pool::new(config.clone()),
            config,
            now: Instant::now(),
            conns: Vec::new(),
            waiting: VecDeque::new(),
            fresh: VecDeque::new(),
            next_call: 0,
            next_conn: 0,
        }
    }

    fn count(&self, is: impl Fn(Is) -> bool) -> usize {
        self.conns.iter().filter(|conn| is(conn.is)).count()
    }

    fn connecting(&self) -> usize {
        self.count(|is| is == Is::Connecting)
    }

    /// The connections in that state, the one longest in it first.
    fn pick(&self, nth: usize, is: impl Fn(Is) -> bool) -> Option<usize> {
        let matching: Vec<_> = (0..self.conns.len())
            .filter(|&at| is(self.conns[at].is))
            .collect();
        (!matching.is_empty()).then(|| matching[nth % matching.len()])
    }

    /// Changes a state, and moves the connection behind all others: it is now the one least long in its state.
    fn set(&mut self, at: usize, is: Is) {
        let mut conn = self.conns.remove(at);
        conn.is = is;
        self.conns.push(conn);
    }

    fn submit(&mut self) {
        let call = self.next_call;
        self.next_call += 1;
        let is_idle = |is| matches!(is, Is::Idle(..));
        let mut closed = Vec::new();
        let got = self.pool.checkout(self.now, call, |conn| closed.push(conn));
        for conn in closed {
            let at = self
                .conns
                .iter()
                .position(|c| c.name == conn)
                .expect("a known connection");
            let Is::Idle(_, until) = self.conns[at].is else {
                panic!("{conn} was not idle")
            };
            assert!(until <= self.now, "closed before its time");
            self.conns.remove(at);
        }
        let usable: Vec<_> = (0..self.conns.len())
            .filter(|&at| is_idle(self.conns[at].is))
            .collect();
        let expected = match self.config.reuse {
            ReuseOrder::Lifo => usable.last(),
            ReuseOrder::Fifo => usable.first(),
        };
        let cap = self.config.max_connections.get();
        let supply = cap - self.conns.len() + self.connecting();
        let waiting = self.waiting.len() + self.fresh.len();
        match (got, expected) {
            (Checkout::Reuse(conn), Some(&at)) => {
                assert_eq!(conn, self.conns[at].name, "{:?}", self.config.reuse);
                self.set(at, Is::Busy);
            }
            (Checkout::Full(limit), None) => match self.config.wait {
                WaitPolicy::FailFast => {
                    assert_eq!(limit, LimitExceeded::Connections(cap));
                    assert!(waiting >= supply, "refused with room left");
                }
                WaitPolicy::Wait => {
                    assert_eq!(limit, LimitExceeded::Waiting(self.config.max_waiting));
                    assert!(waiting >= supply + self.config.max_waiting);
                }
            },
            (Checkout::Wait(id), None) => {
                let most = match self.config.wait {
                    WaitPolicy::FailFast => supply,
                    WaitPolicy::Wait => supply + self.config.max_waiting,
                };
                assert!(waiting < most, "queued beyond the limit");
                self.waiting.push_back((call, id));
            }
            (got, expected) => panic!("{got:?} where {expected:?} was idle"),
        }
    }

    /// A connection is available: the pool must give it to the oldest waiter that can use it.
    fn hand_on(&mut self, at: usize, next: Next<u32>, fresh: bool, keep_alive: Option<Duration>) {
        let expected = match self.fresh.front() {
            Some(_) if fresh => self.fresh.pop_front(),
            _ => self.waiting.pop_front(),
        };
        match (next, expected) {
            (Next::Assign(call), Some((oldest, _))) => {
                assert_eq!(call, oldest, "not the oldest waiter");
                self.set(at, Is::Busy);
            }
            (Next::Idle(until), None) => {
                let most = self
                    .config
                    .idle_timeout
                    .min(keep_alive.unwrap_or(Duration::MAX));
                assert!(until > self.now && until <= self.now + most);
                self.set(at, Is::Idle(self.now, until));
            }
            (next, expected) => panic!("{next:?} where {expected:?} waits"),
        }
    }

    fn release(&mut self, at: usize, keep_alive: Option<Duration>) {
        self.conns[at].requests += 1;
        self.conns[at].limited = keep_alive.is_some();
        let used_up = self
            .config
            .max_requests
            .is_some_and(|max| self.conns[at].requests >= max.get());
        let full = self.conns.len() >= self.config.max_connections.get();
        let in_the_way = self.fresh.len() > self.connecting() && full;
        let next = self
            .pool
            .released(self.now, self.conns[at].slot, keep_alive);
        if used_up || in_the_way {
            assert_eq!(next, Next::Close);
            self.conns.remove(at);
        } else {
            self.hand_on(at, next, false, keep_alive);
        }
    }

    fn lose(&mut self, at: usize) {
        self.pool.closed(self.conns[at].slot);
        self.conns.remove(at);
    }

    fn step(&mut self, operation: u8, pick: usize) {
        let busy = |is| is == Is::Busy;
        match operation {
            0..=3 => self.submit(),
            4 | 5 => {
                if let Some(at) = self.pick(pick, |is| is == Is::Connecting) {
                    let next = self
                        .pool
                        .connected(self.now, self.conns[at].slot, pick as u64);
                    self.hand_on(at, next, true, None);
                }
            }
            6 => {
                if let Some(at) = self.pick(pick, |is| is == Is::Connecting) {
                    let got = self.pool.open_failed(self.now, self.conns[at].slot);
                    self.conns.remove(at);
                    let expected = self.fresh.pop_front().or_else(|| self.waiting.pop_front());
                    assert_eq!(got, expected.map(|(call, _)| call));
                }
            }
            7 | 8 => {
                if let Some(at) = self.pick(pick, busy) {
                    let keep_alive = pick.is_multiple_of(3).then_some(Duration::from_secs(2));
                    self.release(at, keep_alive);
                }
            }
            9 => {
                // A kept connection turned out to be dead: its call needs a new one.
                if let Some(at) = self.pick(pick, busy) {
                    self.lose(at);
                    let call = self.next_call;
                    self.next_call += 1;
                    let id = self.pool.requeue(call);
                    self.fresh.push_back((call, id));
                }
            }
            10 => {
                if let Some(at) = self.pick(pick, busy) {
                    self.pool.draining(self.conns[at].slot);
                    self.set(at, Is::Draining);
                }
            }
            11 => {
                if let Some(at) = self.pick(pick, |is| is == Is::Draining) {
                    if pick.is_multiple_of(2) {
                        self.release(at, None)
                    } else {
                        self.lose(at)
                    }
                }
            }
            12 => {
                if let Some(at) = self.pick(pick, |is| matches!(is, Is::Idle(..))) {
                    self.lose(at);
                }
            }
            13 => {
                let queue = if pick.is_multiple_of(2) {
                    &mut self.waiting
                } else {
                    &mut self.fresh
                };
                if !queue.is_empty() {
                    let (_, id) = queue.remove(pick % queue.len()).expect("in range");
                    let surplus = self.pool.give_up(id);
                    let wanted = self.waiting.len() + self.fresh.len() + self.warm_shortage();
                    assert_eq!(surplus.is_some(), self.connecting() > wanted);
                    if let Some(conn) = surplus {
                        let at = self
                            .conns
                            .iter()
                            .position(|c| c.name == conn)
                            .expect("known");
                        assert_eq!(self.conns[at].is, Is::Connecting);
                        self.lose(at);
                    }
                }
            }
            _ => self.pass(Duration::from_millis(pick as u64 % 3000)),
        }
        self.settle();
        self.check();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        // What the driver's timers do.
        let due: Vec<_> = self
            .conns
            .iter()
            .filter(|c| matches!(c.is, Is::Idle(_, until) if until <= self.now))
            .map(|c| c.name)
            .collect();
        for name in due {
            let at = self
                .conns
                .iter()
                .position(|c| c.name == name)
                .expect("known");
            let idle = self.count(|is| matches!(is, Is::Idle(..)));
            match self.pool.expired(self.now, self.conns[at].slot) {
                Ok(()) => {
                    assert!(
                        idle > self.config.min_idle || self.conns[at].limited,
                        "closed a connection that is to be kept"
                    );
                    self.lose(at);
                }
                Err(later) => {
                    assert!(idle <= self.config.min_idle && later > self.now);
                    assert!(!self.conns[at].limited, "kept beyond the server's limit");
                    let Is::Idle(since, _) = self.conns[at].is else {
                        unreachable!()
                    };
                    self.conns[at].is = Is::Idle(since, later);
                }
            }
        }
    }

    fn warm_shortage(&self) -> usize {
        let idle = self.count(|is| matches!(is, Is::Idle(..)));
        self.config.min_idle.saturating_sub(idle)
    }

    /// What the driver does after each event.
    fn settle(&mut self) {
        loop {
            if self.pool.wants_open(self.now) {
                let slot = self.pool.opened();
                let name = self.next_conn;
                self.next_conn += 1;
                self.pool.set_conn(slot, name);
                self.conns.push(Conn {
                    name,
                    slot,
                    is: Is::Connecting,
                    requests: 0,
                    limited: false,
                });
            } else if let Some(conn) = self.pool.in_the_way() {
                let at = self
                    .conns
                    .iter()
                    .position(|c| c.name == conn)
                    .expect("known");
                assert!(matches!(self.conns[at].is, Is::Idle(..)));
                self.lose(at);
            } else {
                return;
            }
        }
    }

    fn check(&self) {
        let counters = self.pool.counters();
        assert_eq!(counters.open, self.conns.len());
        assert_eq!(counters.connecting, self.connecting());
        assert_eq!(counters.busy, self.count(|is| is == Is::Busy));
        assert_eq!(counters.draining, self.count(|is| is == Is::Draining));
        assert_eq!(counters.idle, self.count(|is| matches!(is, Is::Idle(..))));
        assert_eq!(counters.waiting, self.waiting.len() + self.fresh.len());
        assert_eq!(counters.opened, u64::from(self.next_conn));
        let cap = self.config.max_connections.get();
        assert!(counters.open <= cap, "over the cap");
        // No lost wake-up: who waits has a connection coming, or all are taken by others.
        if counters.waiting > counters.connecting {
            assert_eq!(
                counters.open, cap,
                "a call waits although a connection could be opened"
            );
            assert!(
                self.waiting.is_empty() || counters.idle == 0,
                "a call waits beside an idle connection"
            );
            assert!(self.fresh.len() <= counters.connecting || counters.idle == 0);
        }
        // No timer that comes up again and again for nothing.
        if let Some(at) = self.pool.poll_timeout() {
            assert!(at > self.now, "a timer in the past that opens nothing");
        }
    }
}

fn config() -> impl Strategy<Value = PoolConfig> {
    let wait = prop_oneof![Just(WaitPolicy::Wait), Just(WaitPolicy::FailFast)];
    let reuse = prop_oneof![Just(ReuseOrder::Lifo), Just(ReuseOrder::Fifo)];
    (
        1usize..5,
        0usize..4,
        wait,
        reuse,
        prop::option::of(1u64..4),
        0usize..3,
    )
        .prop_map(
            |(cap, max_waiting, wait, reuse, max_requests, min_idle)| PoolConfig {
                max_connections: NonZeroUsize::new(cap).expect("at least one"),
                max_waiting,
                wait,
                reuse,
                idle_timeout: Duration::from_secs(4),
                max_age: None,
                max_requests: max_requests.and_then(NonZeroU64::new),
                min_idle,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_program_agrees_with_the_model(
        config in config(),
        program in prop::collection::vec((0u8..16, any::<u16>()), 0..120),
    ) {
        let mut model = Model::new(config);
        for (operation, pick) in program {
            model.step(operation, usize::from(pick));
        }
    }
}

fn plain(cap: usize) -> PoolConfig {
    PoolConfig {
        max_connections: NonZeroUsize::new(cap).expect("at least one"),
        max_waiting: 10,
        wait: WaitPolicy::Wait,
        reuse: ReuseOrder::Lifo,
        idle_timeout: Duration::from_secs(4),
        max_age: None,
        max_requests: None,
        min_idle: 0,
    }
}

#[test]
fn a_server_that_tells_its_limit_is_closed_before_it() {
    for (theirs, ours) in [
        (None, 4000),
        (Some(60_000), 4000),
        (Some(3000), 2000),
        (Some(1000), 500),
        (Some(0), 0),
    ] {
        let (mut pool, now, a) = one_busy(plain(1));
        let until = now + Duration::from_millis(ours);
        let theirs = theirs.map(Duration::from_millis);
        assert_eq!(pool.released(now, a, theirs), Next::Idle(until));
    }
}

#[test]
fn a_declined_connection_keeps_the_servers_limit() {
    let (mut pool, now, a) = one_busy(plain(1));
    assert!(matches!(pool.checkout(now, 2, |_| {}), Checkout::Wait(_)));
    let theirs = Some(Duration::from_secs(3));
    assert_eq!(pool.released(now, a, theirs), Next::Assign(2));
    let until = now + Duration::from_secs(2);
    assert_eq!(pool.declined(now, a), Next::Idle(until));
}

#[test]
fn a_connection_kept_warm_ends_with_the_servers_limit_and_its_age() {
    let warm = |max_age| PoolConfig {
        min_idle: 1,
        max_age,
        ..plain(1)
    };
    let (mut limited, now, a) = one_busy(warm(None));
    let until = now + Duration::from_secs(2);
    let theirs = Some(Duration::from_secs(3));
    assert_eq!(limited.released(now, a, theirs), Next::Idle(until));
    assert_eq!(limited.expired(until, a), Ok(()));

    let age = Duration::from_secs(3);
    let (mut aged, now, a) = one_busy(warm(Some(age)));
    assert_eq!(aged.released(now, a, None), Next::Idle(now + age));
    assert_eq!(aged.expired(now + age, a), Ok(()), "no call would get it");
}

#[test]
fn the_pause_of_warming_has_a_timer_while_calls_wait() {
    let now = Instant::now();
    let mut pool: Pool<u32, u32> = Pool::new(PoolConfig {
        min_idle: 1,
        ..plain(3)
    });
    let a = pool.opened();
    assert_eq!(pool.open_failed(now, a), None);
    assert!(matches!(pool.checkout(now, 1, |_| {}), Checkout::Wait(_)));
    pool.opened();
    let later = now + WARM_PAUSE;
    assert!(!pool.wants_open(now) && pool.wants_open(later));
    assert_eq!(pool.poll_timeout(), Some(later));
}

/// A pool whose only connection, 7, serves call 1.
fn one_busy(config: PoolConfig) -> (Pool<u32, u32>, Instant, SlotId) {
    let (mut pool, now) = (Pool::new(config), Instant::now());
    assert!(matches!(pool.checkout(now, 1, |_| {}), Checkout::Wait(_)));
    let slot = pool.opened();
    pool.set_conn(slot, 7);
    assert_eq!(pool.connected(now, slot, 0), Next::Assign(1));
    (pool, now, slot)
}

#[test]
fn old_connections_end_within_the_last_tenth_of_their_age() {
    let age = Duration::from_secs(100);
    for (random, early) in [(0, 0), (u64::MAX / 2, 5), (u64::MAX, 10)] {
        let mut pool: Pool<u32, u32> = Pool::new(PoolConfig {
            max_age: Some(age),
            idle_timeout: age * 2,
            ..plain(1)
        });
        let now = Instant::now();
        let slot = pool.opened();
        pool.set_conn(slot, 7);
        assert!(matches!(pool.connected(now, slot, random), Next::Idle(_)));
        let end = now + age - Duration::from_secs(early);
        let just_before = end - Duration::from_millis(10);
        assert_eq!(
            pool.checkout(just_before, 1, |_| panic!("not yet")),
            Checkout::Reuse(7)
        );
        assert_eq!(
            pool.released(end + Duration::from_millis(10), slot, None),
            Next::Close
        );
    }
}
