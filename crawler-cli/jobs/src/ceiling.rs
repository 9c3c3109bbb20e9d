//! A limit that several pools, schedulers and threads share: how many may be under way at a time, and how many in a
//! time. A host that allows ten requests a second has one ceiling, whoever asks the host.
//!
//! The rate holds at the receiver's side. What is sent later than its permit was taken arrives later; so a permit
//! counts in its window until the time of the window after the request *ended* (or after [`Permit::arrived`]). A limit
//! that counts from the start lets requests through that the receiver sees within one window, and that the receiver
//! refuses.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::Rate;
use courser::policy::RateLimiter;
use url::Url;

use super::cancel::Cancel;
use super::sync::{Mutex, lock, thread};
use plain::host_pattern::HostPattern;
use plain::origin::root_of;

/// What a [`Ceiling`] allows. Default: everything.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CeilingLimits {
    /// How many may be under way at a time. `None`: no limit.
    pub concurrency: Option<NonZeroUsize>,
    /// How many may begin: at most `count` in any window of length `per`, at most `burst` at once and then evenly
    /// spread. `None`: no limit.
    pub rate: Option<Rate>,
}

/// A limit of concurrency and rate that any number of threads share. Clones are the same ceiling.
///
/// ```
/// use std::num::{NonZeroU64, NonZeroUsize};
/// use std::time::{Duration, Instant};
/// use jobs::{Ceiling, CeilingLimits, Until};
/// use courser::Rate;
///
/// let ceiling = Ceiling::new(CeilingLimits {
///     concurrency: NonZeroUsize::new(2),
///     rate: Some(Rate::per_second(NonZeroU64::new(10).unwrap())),
/// });
/// let (start, step) = (Instant::now(), Duration::from_millis(100));
/// let first = ceiling.try_acquire(start).unwrap();
/// // Ten a second are one every tenth of a second.
/// assert_eq!(ceiling.try_acquire(start).unwrap_err(), Until::Time(start + step));
/// let second = ceiling.clone().try_acquire(start + step).unwrap();
/// // Two are under way.
/// assert_eq!(ceiling.try_acquire(start + step * 2).unwrap_err(), Until::Released);
/// first.release(start + step * 2);
/// assert!(ceiling.try_acquire(start + step * 2).is_ok());
/// # drop(second);
/// ```
#[derive(Clone, Debug)]
pub struct Ceiling(Arc<Mutex<State>>);

/// The ceilings of hosts.
///
/// ```
/// use jobs::{Ceiling, CeilingLimits, Ceilings};
///
/// let sec = Ceiling::new(CeilingLimits::default());
/// let mut ceilings = Ceilings::default();
/// ceilings.add("*.sec.gov".parse()?, sec);
/// assert!(ceilings.of(&url::Url::parse("https://www.sec.gov/").unwrap()).is_some());
/// assert!(ceilings.of(&url::Url::parse("https://example.org/").unwrap()).is_none());
/// # Ok::<(), plain::host_pattern::BadPattern>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ceilings {
    rules: Vec<(HostPattern, Rule)>,
}

#[derive(Clone, Debug)]
enum Rule {
    Together(Ceiling),
    Each(HostCeilings),
}

impl Ceilings {
    /// All hosts that fit the pattern have this ceiling together, unless an earlier pattern fits.
    pub fn add(&mut self, hosts: HostPattern, ceiling: Ceiling) {
        self.rules.push((hosts, Rule::Together(ceiling)));
    }

    /// Each host that fits the pattern has a ceiling of its own, unless an earlier pattern fits.
    pub fn add_each(&mut self, hosts: HostPattern, ceilings: HostCeilings) {
        self.rules.push((hosts, Rule::Each(ceilings)));
    }

    /// The ceiling of the host of this URL.
    pub fn of(&self, url: &Url) -> Option<Ceiling> {
        let mut rules = self.rules.iter();
        let (_, rule) = rules.find(|(hosts, _)| hosts.matches(url))?;
        Some(match rule {
            Rule::Together(ceiling) => ceiling.clone(),
            Rule::Each(ceilings) => ceilings.of(url),
        })
    }

    /// Whether no host has a ceiling.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Ceilings with the same limits, one for each host, made when the host is asked first. Clones are the same ceilings.
#[derive(Clone, Debug, Default)]
pub struct HostCeilings(Arc<Mutex<Hosts>>);

#[derive(Debug, Default)]
struct Hosts {
    limits: CeilingLimits,
    /// By the URLs of the roots. Those without permits are dropped when there are too many.
    ceilings: HashMap<Url, Ceiling>,
}

impl HostCeilings {
    /// Ceilings with these limits.
    pub fn new(limits: CeilingLimits) -> Self {
        let ceilings = Self::default();
        ceilings.set_limits(limits);
        ceilings
    }

    /// Replaces the limits of all hosts.
    pub fn set_limits(&self, limits: CeilingLimits) {
        let mut hosts = lock(&self.0);
        hosts.limits = limits;
        for ceiling in hosts.ceilings.values() {
            ceiling.set_limits(limits);
        }
    }

    /// The limits of each host.
    pub fn limits(&self) -> CeilingLimits {
        lock(&self.0).limits
    }

    /// The ceiling of the host of this URL.
    pub fn of(&self, url: &Url) -> Ceiling {
        let mut hosts = lock(&self.0);
        if hosts.ceilings.len() >= MOST_HOSTS {
            hosts.ceilings.retain(|_, ceiling| ceiling.under_way() > 0);
        }
        let limits = hosts.limits;
        let ceiling = hosts.ceilings.entry(root_of(url));
        ceiling.or_insert_with(|| Ceiling::new(limits)).clone()
    }
}

/// What an attempt to take a permit has to wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// The rate allows the next one at this time.
    Time(Instant),
    /// Somebody must give a permit back.
    Released,
}

/// The wait for a permit ended because its [`Cancel`] was set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cancelled;

/// The right to do one thing under a [`Ceiling`]. Given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    ceiling: Ceiling,
    taken_at: Instant,
    /// Whether the window still counts this permit as under way.
    is_open: bool,
}

#[derive(Debug)]
struct State {
    limits: CeilingLimits,
    /// Keeps the burst and spreads the rest.
    pace: Option<RateLimiter>,
    window: Option<Window>,
    under_way: usize,
    /// Those of them whose request may not have arrived yet.
    open: usize,
    /// The threads that wait, in the order of their calls. Only the first one tries.
    waiting: VecDeque<(u64, thread::Thread)>,
    next_ticket: u64,
    /// A caller that does not wait was refused, and is expected back before this time.
    expected: Option<Instant>,
    last: Option<Taker>,
}

/// How a permit was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Taker {
    /// [`Ceiling::acquire`].
    Waiting,
    /// [`Ceiling::try_acquire`].
    Trying,
}

/// Counts what was sent in the last `length`.
#[derive(Debug)]
struct Window {
    most: usize,
    length: Duration,
    /// When they arrived at the latest, oldest first.
    arrived: VecDeque<Instant>,
}

impl Ceiling {
    /// A ceiling with these limits.
    pub fn new(limits: CeilingLimits) -> Self {
        Self(Arc::new(Mutex::new(State {
            limits,
            pace: limits.rate.map(RateLimiter::new),
            window: limits.rate.and_then(Window::new),
            under_way: 0,
            open: 0,
            waiting: VecDeque::new(),
            next_ticket: 0,
            expected: None,
            last: None,
        })))
    }

    /// The limits.
    pub fn limits(&self) -> CeilingLimits {
        lock(&self.0).limits
    }

    /// Replaces the limits, also for those who wait already. What is under way counts on.
    pub fn set_limits(&self, limits: CeilingLimits) {
        let mut state = lock(&self.0);
        if state.limits == limits {
            return;
        }
        state.limits = limits;
        // The time of its turn was that of the old limits.
        state.expected = None;
        state.pace = limits.rate.map(RateLimiter::new);
        let window = limits.rate.and_then(Window::new);
        let old = std::mem::replace(&mut state.window, window);
        if let (Some(window), Some(old)) = (&mut state.window, old) {
            window.arrived = old.arrived;
        }
        state.wake_first();
    }

    /// Counts as if the whole rate had been used up to now: for a process that does not know what an earlier one has
    /// sent a moment before.
    pub fn use_up(&self, now: Instant) {
        let mut state = lock(&self.0);
        if let Some(window) = &mut state.window {
            window.arrived.clear();
            window.arrived.resize(window.most, now);
        }
    }

    /// How many are under way.
    pub fn under_way(&self) -> usize {
        lock(&self.0).under_way
    }

    /// Takes a permit now, or says what to wait for. Never blocks.
    ///
    /// Callers of this function and threads in [`Ceiling::acquire`] take turns, if a caller that was refused tries again
    /// within 20 ms of the time that it was told, or within 30 ms if it has to wait for a release.
    ///
    /// # Errors
    /// The limits do not allow one now, or it is the turn of a thread that waits.
    pub fn try_acquire(&self, now: Instant) -> Result<Permit, Until> {
        lock(&self.0).take_trying(now)?;
        Ok(self.permit(now))
    }

    /// Waits for a permit, after those who wait already.
    ///
    /// # Errors
    /// `cancel` was set meanwhile.
    pub fn acquire(&self, cancel: &Cancel) -> Result<Permit, Cancelled> {
        if cancel.is_set() {
            return Err(Cancelled);
        }
        let mut place = None;
        let _watch = cancel.watch();
        loop {
            let now = Instant::now();
            let wait = {
                let mut state = lock(&self.0);
                let is_first = match (&place, state.waiting.front()) {
                    (None, first) => first.is_none(),
                    (Some(Place { ticket, .. }), Some((first, _))) => ticket == first,
                    (Some(_), None) => true,
                };
                let taken = match is_first {
                    true => state.take_waiting(now),
                    false => Err(Until::Released),
                };
                match taken {
                    Ok(()) => None,
                    Err(until) => {
                        place.get_or_insert_with(|| state.enter(self));
                        Some(until)
                    }
                }
            };
            match wait {
                None => return Ok(self.permit(now)),
                Some(_) if cancel.is_set() => return Err(Cancelled),
                Some(Until::Time(at)) => {
                    thread::park_timeout(at.saturating_duration_since(Instant::now()));
                }
                Some(Until::Released) => thread::park(),
            }
        }
    }

    fn permit(&self, now: Instant) -> Permit {
        Permit {
            ceiling: self.clone(),
            taken_at: now,
            is_open: true,
        }
    }
}

impl Permit {
    /// Notes that what the permit was for has begun at the receiver, for instance because the head of the response is
    /// here. From then on the permit counts for the concurrency alone.
    pub fn arrived(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_open) {
            let now = now.max(self.taken_at);
            let mut state = lock(&self.ceiling.0);
            state.open = state.open.saturating_sub(1);
            if let Some(window) = &mut state.window {
                window.handle_arrived(now);
            }
            state.wake_first();
        }
    }

    /// Gives the permit back as if it had not been taken: nothing was done with it.
    pub fn give_back_unused(mut self) {
        self.is_open = false;
        let mut state = lock(&self.ceiling.0);
        state.open = state.open.saturating_sub(1);
        if let Some(pace) = &mut state.pace {
            pace.give_back(1);
        }
        // The rest, with the wake-up, is done by the destructor.
    }

    /// Gives the permit back at this time: for callers whose clock is not the system's. To drop the permit is the same
    /// with the system's clock.
    pub fn release(mut self, now: Instant) {
        self.arrived(now);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.arrived(Instant::now());
        let mut state = lock(&self.ceiling.0);
        state.under_way = state.under_way.saturating_sub(1);
        state.wake_first();
    }
}

impl State {
    /// Takes a permit for the thread that has waited longest.
    fn take_waiting(&mut self, now: Instant) -> Result<(), Until> {
        if let Some(until) = self.expected.filter(|until| *until > now)
            && self.last == Some(Taker::Waiting)
        {
            return Err(Until::Time(until));
        }
        self.take(now)?;
        self.last = Some(Taker::Waiting);
        Ok(())
    }

    /// Takes a permit for a caller that does not wait.
    fn take_trying(&mut self, now: Instant) -> Result<(), Until> {
        let is_their_turn = self.last == Some(Taker::Trying) && !self.waiting.is_empty();
        let taken = match is_their_turn {
            true => Err(Until::Released),
            false => self.take(now),
        };
        match taken {
            Ok(()) => {
                self.last = Some(Taker::Trying);
                self.expected = None;
                // The turn of a thread that waits for this caller.
                self.wake_first();
            }
            Err(Until::Time(at)) => self.expected = at.checked_add(TURN),
            Err(Until::Released) => self.expected = now.checked_add(ASK_AGAIN + TURN),
        }
        taken
    }

    fn take(&mut self, now: Instant) -> Result<(), Until> {
        let most = self
            .limits
            .concurrency
            .map_or(usize::MAX, NonZeroUsize::get);
        if self.under_way >= most {
            return Err(Until::Released);
        }
        if let Some(window) = &mut self.window {
            window.room(now, self.open)?;
        }
        if let Some(pace) = &mut self.pace {
            // One is never more than a burst.
            pace.take(now, 1)
                .map_err(|at| at.map_or(Until::Released, Until::Time))?;
        }
        self.open += 1;
        self.under_way += 1;
        Ok(())
    }

    fn enter<'a>(&mut self, ceiling: &'a Ceiling) -> Place<'a> {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.push_back((ticket, thread::current()));
        Place { ceiling, ticket }
    }

    fn wake_first(&self) {
        if let Some((_, thread)) = self.waiting.front() {
            thread.unpark();
        }
    }
}

impl Window {
    /// `None` if the rate is no limit.
    fn new(rate: Rate) -> Option<Self> {
        if rate.per.is_zero() {
            return None;
        }
        // A part of the window with the same part of the count is as strict, and needs less memory.
        let parts = rate.count.get().div_ceil(LONGEST_WINDOW).max(1);
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        Some(Self {
            most: usize::try_from(rate.count.get() / u64::from(parts)).unwrap_or(usize::MAX),
            length: rate.per / parts,
            arrived: VecDeque::new(),
        })
    }

    /// Whether one more fits beside `open` ones that may not have arrived yet.
    fn room(&mut self, now: Instant, open: usize) -> Result<(), Until> {
        while let Some(first) = self.arrived.front() {
            if now.saturating_duration_since(*first) < self.length {
                break;
            }
            self.arrived.pop_front();
        }
        let Some(free) = self.most.checked_sub(open + 1) else {
            return Err(Until::Released);
        };
        match self.arrived.len().checked_sub(free + 1) {
            None => Ok(()),
            // With this one, all older ones have left the window.
            Some(last) => {
                let at = self.arrived.get(last);
                let at = at.and_then(|at| at.checked_add(self.length));
                Err(at.map_or(Until::Released, Until::Time))
            }
        }
    }

    fn handle_arrived(&mut self, now: Instant) {
        let last = self.arrived.back().copied();
        self.arrived
            .push_back(last.map_or(now, |last| last.max(now)));
    }
}

/// A place among the waiting threads, given up when dropped.
struct Place<'a> {
    ceiling: &'a Ceiling,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.ceiling.0);
        state.waiting.retain(|(ticket, _)| *ticket != self.ticket);
        state.wake_first();
    }
}

/// When a caller that does not wait is to try again, if others have to give permits back first.
pub const ASK_AGAIN: Duration = Duration::from_millis(10);

/// How late a caller that does not wait may come to its turn.
const TURN: Duration = Duration::from_millis(20);

/// Hosts whose ceilings are kept while nothing is asked of them.
const MOST_HOSTS: usize = 10_000;

/// The largest number of times that a window remembers.
const LONGEST_WINDOW: u64 = 4096;

#[cfg(all(test, not(feature = "models")))]
mod tests;
