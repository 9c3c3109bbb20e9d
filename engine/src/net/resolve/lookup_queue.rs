//! Which lookups a resolver runs, and which wait: a bounded number runs at a time, shared fairly between zones. No
//! sockets, no threads, no clock.
//!
//! The *zone* of a name is its registrable domain, as far as its labels show it ([`zone_of`]). Names of one zone are
//! often asked of the same servers, so that the silence of these servers must not hold the names of other zones:
//!
//! - A zone may have as many lookups in flight as slots are free, and as many waiting as places are free. So one busy
//!   zone takes half of them, and there is room for the next zone (the dynamic threshold of Choudhury and Hahne, 1998).
//! - Zones with waiting lookups start one lookup in turn.
//! - If no slot is free, a lookup in flight gives its slot to a waiting one once its slice of time is over, and waits
//!   again. A zone without a slot takes the slot of any lookup, another zone the slot of one of its own. A zone that has
//!   lost its only slot waits for the length of a slice and then comes after zones that are new. A lookup that was
//!   stopped gets a longer slice, and by then a recursive name server often has the answer.
//! - A lookup whose caller is gone waits no longer. If it is in flight, it goes on, because its answer is worth caching,
//!   until another lookup needs its slot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::error::DnsError;
use crate::time::Time;

/// How many lookups a resolver keeps, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupLimits {
    /// The most lookups in flight; at least 1.
    pub(crate) in_flight: usize,
    /// The most lookups that wait; of one zone, half of them. Further ones are refused.
    pub(crate) waiting: usize,
    /// The longest from a question to its answer, with the time in the queue.
    pub(crate) time: Option<Duration>,
    /// Whether a lookup in flight can be stopped, so that its slot is free.
    pub(crate) can_stop: bool,
}

/// The lookups of a resolver. `R` is what takes the answer.
#[derive(Debug)]
pub(crate) struct LookupQueue<R> {
    limits: LookupLimits,
    lookups: HashMap<Arc<str>, Lookup<R>>,
    /// Zones with lookups.
    zones: HashMap<Arc<str>, Zone>,
    /// Zones with waiting lookups, in the order of their turns.
    turns: BTreeMap<Turn, Arc<str>>,
    in_flight: BTreeMap<SliceEnd, Arc<str>>,
    /// When the lookups end without an answer.
    ends: BTreeMap<(Time, u64), Arc<str>>,
    waiting: usize,
    /// The number of the last place in a queue.
    places: u64,
}

/// What a resolver does next.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Step<R> {
    /// Ask for this name now. The end is reported with [`LookupQueue::finish`].
    Start {
        name: Arc<str>,
        /// The lookup that gave its slot and is stopped now.
        instead_of: Option<Arc<str>>,
    },
    /// Stop the lookup of this name, if it is in flight. Its time is over: these callers get the error.
    Fail {
        name: Arc<str>,
        replies: Vec<R>,
        error: DnsError,
    },
    /// Nothing until this time, or until something happens.
    Wait(Option<Time>),
}

#[derive(Debug)]
struct Lookup<R> {
    zone: Arc<str>,
    /// All that have asked for this name.
    replies: Vec<R>,
    /// Its key in `ends`.
    end: Option<(Time, u64)>,
    state: State,
    /// How often it has started.
    starts: u32,
}

#[derive(Debug)]
enum State {
    /// With this place in the queue of the zone.
    Waiting(u64),
    InFlight(SliceEnd),
}

/// Until when a zone waits that has lost its only slot, and a number that makes the key unique.
type Turn = (Option<Time>, u64);

/// When a lookup in flight may be stopped (`None`: its caller is gone), and a number that makes the key unique.
type SliceEnd = (Option<Time>, u64);

#[derive(Debug, Default)]
struct Zone {
    /// Its key in `turns`, if lookups wait.
    turn: Option<Turn>,
    waiting: BTreeMap<u64, Arc<str>>,
    in_flight: BTreeMap<SliceEnd, Arc<str>>,
}

/// The zone whose next lookup starts, and the lookup that gives its slot, if none is free.
type NextStart = (Arc<str>, Option<Arc<str>>);

impl<R> LookupQueue<R> {
    pub(crate) fn new(limits: LookupLimits) -> Self {
        Self {
            limits: LookupLimits {
                in_flight: limits.in_flight.max(1),
                ..limits
            },
            lookups: HashMap::new(),
            zones: HashMap::new(),
            turns: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            ends: BTreeMap::new(),
            waiting: 0,
            places: 0,
        }
    }

    /// How many lookups wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The names whose callers are not gone.
    #[cfg(feature = "sim")]
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &str> {
        let is_wanted = |lookup: &Lookup<R>| !matches!(lookup.state, State::InFlight((None, _)));
        let lookups = self.lookups.iter();
        lookups.filter_map(move |(name, lookup)| is_wanted(lookup).then_some(&**name))
    }

    // ---- commands

    /// Asks for a name. Joins the lookup of the same name if there is one. If all callers of that lookup are gone, returns
    /// their replies: they need no answer, and would pile up while callers come and go.
    ///
    /// # Errors
    /// The reply and [`DnsError::QueueFull`], if too many lookups wait, in all or of this zone.
    pub(crate) fn ask(&mut self, now: Time, name: &str, reply: R) -> Result<Vec<R>, (R, DnsError)> {
        if let Some(lookup) = self.lookups.get_mut(name) {
            let callers_are_gone = matches!(lookup.state, State::InFlight((None, _)));
            let gone = match callers_are_gone {
                true => std::mem::take(&mut lookup.replies),
                false => Vec::new(),
            };
            lookup.replies.push(reply);
            if callers_are_gone {
                // The time of the lookup begins anew.
                self.set_slice(name, Some(now + SLICE));
                self.set_end(now, name);
            }
            return Ok(gone);
        }
        let zone = zone_of(name);
        let waiting = self.zones.get(zone).map_or(0, |zone| zone.waiting.len());
        if waiting >= self.limits.waiting.saturating_sub(self.waiting) {
            return Err((reply, DnsError::QueueFull(self.limits.waiting)));
        }
        let zone = match self.zones.get_key_value(zone) {
            Some((zone, _)) => zone.clone(),
            None => zone.into(),
        };
        let name: Arc<str> = name.into();
        let lookup = Lookup {
            zone,
            replies: vec![reply],
            end: None,
            state: State::Waiting(0),
            starts: 0,
        };
        self.lookups.insert(name.clone(), lookup);
        self.set_end(now, &name);
        self.enqueue(&name, None);
        Ok(Vec::new())
    }

    /// The callers of this name are gone. Returns their replies, unless the lookup goes on.
    pub(crate) fn cancel(&mut self, name: &str) -> Vec<R> {
        match self.lookups.get(name).map(|lookup| &lookup.state) {
            Some(State::Waiting(_)) => self.finish(name),
            Some(State::InFlight(_)) => {
                self.set_slice(name, None);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Removes all lookups that wait.
    pub(crate) fn take_waiting(&mut self) -> Vec<R> {
        let zones = self.zones.values();
        let waiting: Vec<_> = zones
            .flat_map(|zone| zone.waiting.values().cloned())
            .collect();
        waiting.iter().flat_map(|name| self.finish(name)).collect()
    }

    // ---- what next

    pub(crate) fn poll(&mut self, now: Time) -> Step<R> {
        let end = self.ends.first_key_value();
        let end = end.map(|((end, _), name)| (*end, name));
        if let Some((_, name)) = end.filter(|(end, _)| *end <= now) {
            let name = name.clone();
            let started = self.lookups.get(&name).is_some_and(|l| l.starts > 0);
            return Step::Fail {
                replies: self.finish(&name),
                name,
                error: match started {
                    true => DnsError::Timeout,
                    false => DnsError::NotAsked,
                },
            };
        }
        let end = end.map(|(end, _)| end);
        match self.next_start(now) {
            Ok(next) => self.start(now, next).unwrap_or(Step::Wait(end)),
            Err(slice) => Step::Wait(end.into_iter().chain(slice).min()),
        }
    }

    /// The zone whose turn it is, and the lookup in flight that gives its slot, if none is free. Otherwise the time when
    /// a lookup in flight will give its slot.
    fn next_start(&self, now: Time) -> Result<NextStart, Option<Time>> {
        let free = self.limits.in_flight.saturating_sub(self.in_flight.len());
        let mut next: Option<Time> = None;
        for ((until, _), name) in &self.turns {
            let Some(zone) = self.zones.get(name) else {
                continue;
            };
            if let Some(until) = until.filter(|until| *until > now && free == 0) {
                next = next.into_iter().chain([until]).min();
                break;
            }
            if zone.in_flight.len() < free {
                return Ok((name.clone(), None));
            }
            let has_slots = !zone.in_flight.is_empty();
            let victims = if has_slots {
                &zone.in_flight
            } else {
                &self.in_flight
            };
            if self.limits.can_stop
                && let Some(((slice_end, _), victim)) = victims.first_key_value()
            {
                match slice_end {
                    Some(at) if *at > now => next = next.into_iter().chain([*at]).min(),
                    _ => return Ok((name.clone(), Some(victim.clone()))),
                }
            }
            if !has_slots {
                // No slot is free, and no lookup gives one: the same holds for the zones that follow.
                break;
            }
        }
        Err(next)
    }

    /// Starts the next lookup of a zone.
    fn start(&mut self, now: Time, (zone, instead_of): NextStart) -> Option<Step<R>> {
        let zone = &zone;
        if let Some(victim) = &instead_of {
            self.stop(now, victim);
        }
        let entry = self.zones.get_mut(zone)?;
        let (_, name) = entry.waiting.pop_first()?;
        self.waiting -= 1;
        self.end_turn(zone);
        let lookup = self.lookups.get_mut(&name)?;
        let slice = SLICE * (1 << lookup.starts.min(MOST_DOUBLINGS));
        lookup.starts += 1;
        self.places += 1;
        let key = (Some(now + slice), self.places);
        lookup.state = State::InFlight(key);
        self.in_flight.insert(key, name.clone());
        let entry = self.zones.get_mut(zone)?;
        entry.in_flight.insert(key, name.clone());
        Some(Step::Start { name, instead_of })
    }

    /// Ends a lookup in flight. It waits again, unless its caller is gone.
    fn stop(&mut self, now: Time, name: &Arc<str>) {
        match self.lookups.get(name).map(|lookup| &lookup.state) {
            Some(State::InFlight((Some(_), _))) => {
                self.leave_slot(name);
                self.enqueue(name, Some(now + SLICE));
            }
            _ => drop(self.finish(name)),
        }
    }

    // ---- places

    /// Puts a lookup at the end of the queue of its zone. `pause`: until when the zone waits if it has no slot.
    fn enqueue(&mut self, name: &Arc<str>, pause: Option<Time>) {
        let Some(lookup) = self.lookups.get_mut(name) else {
            return;
        };
        self.places += 1;
        lookup.state = State::Waiting(self.places);
        let zone = self.zones.entry(lookup.zone.clone()).or_default();
        zone.waiting.insert(self.places, name.clone());
        if zone.turn.is_none() {
            let turn = (pause.filter(|_| zone.in_flight.is_empty()), self.places);
            zone.turn = Some(turn);
            self.turns.insert(turn, lookup.zone.clone());
        }
        self.waiting += 1;
    }

    /// Puts a zone behind the other zones, or removes it if none of its lookups waits.
    fn end_turn(&mut self, name: &Arc<str>) {
        let Some(zone) = self.zones.get_mut(name) else {
            return;
        };
        if let Some(turn) = zone.turn.take() {
            self.turns.remove(&turn);
        }
        if !zone.waiting.is_empty() {
            self.places += 1;
            let turn = (None, self.places);
            zone.turn = Some(turn);
            self.turns.insert(turn, name.clone());
        }
    }

    fn leave_slot(&mut self, name: &str) {
        if let Some(lookup) = self.lookups.get(name)
            && let State::InFlight(key) = &lookup.state
        {
            self.in_flight.remove(key);
            if let Some(zone) = self.zones.get_mut(&lookup.zone) {
                zone.in_flight.remove(key);
            }
        }
    }

    /// Sets when a lookup in flight may be stopped.
    fn set_slice(&mut self, name: &str, end: Option<Time>) {
        self.leave_slot(name);
        if let Some((name, lookup)) = self.lookups.get_key_value(name)
            && let State::InFlight((_, number)) = lookup.state
            && let Some(zone) = self.zones.get_mut(&lookup.zone)
        {
            let (key, name) = ((end, number), name.clone());
            zone.in_flight.insert(key, name.clone());
            self.in_flight.insert(key, name.clone());
            if let Some(lookup) = self.lookups.get_mut(&name) {
                lookup.state = State::InFlight(key);
            }
        }
    }

    fn set_end(&mut self, now: Time, name: &str) {
        let entry = self.lookups.get_key_value(name);
        let Some((name, time)) = entry.map(|(name, _)| name.clone()).zip(self.limits.time) else {
            return;
        };
        self.places += 1;
        let end = (now + time, self.places);
        let lookup = self.lookups.get_mut(&name);
        if let Some(earlier) = lookup.and_then(|lookup| lookup.end.replace(end)) {
            self.ends.remove(&earlier);
        }
        self.ends.insert(end, name);
    }

    /// The lookup of this name has ended. Returns those who get the answer.
    pub(crate) fn finish(&mut self, name: &str) -> Vec<R> {
        self.leave_slot(name);
        let Some(lookup) = self.lookups.remove(name) else {
            return Vec::new();
        };
        if let Some(end) = lookup.end {
            self.ends.remove(&end);
        }
        if let Some(zone) = self.zones.get_mut(&lookup.zone) {
            if let State::Waiting(place) = lookup.state {
                zone.waiting.remove(&place);
                self.waiting -= 1;
            }
            if zone.waiting.is_empty() {
                if let Some(turn) = zone.turn.take() {
                    self.turns.remove(&turn);
                }
                if zone.in_flight.is_empty() {
                    self.zones.remove(&lookup.zone);
                }
            }
        }
        lookup.replies
    }
}

/// The zone of a name: its last two labels, or three if the first of these two is a label under which a country
/// registers names (`co.uk`, `com.br`). Names without a dot share the empty zone: search domains come after them.
///
/// The list of public suffixes would tell exactly, and is far larger than all else that a resolver needs. What it would
/// change: sites of a hoster (`github.io`) are one zone here, and share their part of the slots.
pub(crate) fn zone_of(name: &str) -> &str {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut dots = name.rmatch_indices('.').map(|(at, _)| at);
    let Some(top) = dots.next() else {
        return "";
    };
    let second = dots.next();
    let label = &name[second.map_or(0, |at| at + 1)..top];
    let start = match second {
        Some(_) if name.len() - top == 3 && REGISTRY_LABELS.contains(&label) => dots.next(),
        second => second,
    };
    &name[start.map_or(0, |at| at + 1)..]
}

/// Labels under which countries register names.
const REGISTRY_LABELS: [&str; 16] = [
    "ac", "co", "com", "edu", "go", "gob", "gov", "gv", "mil", "ne", "net", "nom", "or", "org",
    "plc", "sch",
];

/// How long a lookup has its slot for itself, while others wait. Most answers take less.
pub(crate) const SLICE: Duration = Duration::from_millis(250);
/// How often a slice is doubled when a lookup starts again.
pub(crate) const MOST_DOUBLINGS: u32 = 2;

#[cfg(test)]
mod tests;
