//! A batch: many calls with a result for each, and a limit of calls in flight, for `call_many` of
//! [`Engine`](crate::Engine) and of [`Shared`](crate::Shared).

use std::collections::VecDeque;
use std::iter::Fuse;
use std::num::NonZeroUsize;

use super::{Call, Completion};
use crate::error::{Error, ErrorKind, LimitExceeded};

/// How [`Engine::call_many`](crate::Engine::call_many) runs its calls.
///
/// ```
/// use std::num::NonZeroUsize;
/// use courser::{BatchConfig, BatchOrder};
///
/// let config = BatchConfig {
///     max_in_flight: NonZeroUsize::new(16).unwrap(),
///     order: BatchOrder::Input,
///     ..BatchConfig::default()
/// };
/// assert_eq!(config.max_ahead.get(), 1024);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BatchConfig {
    /// The most calls of the batch in flight at a time. Default 64.
    pub max_in_flight: NonZeroUsize,
    /// The order of the results. Default: as the calls end.
    pub order: BatchOrder,
    /// For [`BatchOrder::Input`]: the most calls that have begun and whose results have not been returned. While one
    /// call takes long, the results of later calls are kept; at this limit, no more calls begin. Default 1024.
    pub max_ahead: NonZeroUsize,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            max_in_flight: NonZeroUsize::MIN.saturating_add(63),
            order: BatchOrder::default(),
            max_ahead: NonZeroUsize::MIN.saturating_add(1023),
        }
    }
}

/// The order in which a batch returns its results.
///
/// ```
/// assert_eq!(courser::BatchOrder::default(), courser::BatchOrder::Completion);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BatchOrder {
    /// The order in which the calls end.
    #[default]
    Completion,
    /// The order of the calls in the input.
    Input,
}

/// What runs the calls of a batch.
pub(crate) trait Runner {
    /// Begins a call, whose result will have this number.
    fn begin(&mut self, number: usize, call: Call) -> Result<(), (Call, Error)>;

    /// Puts the results that have come into the lineup. With `wait`, waits for one first.
    fn collect(&mut self, wait: bool, lineup: &mut Lineup);
}

/// The calls of a batch, from the caller's iterator to their results.
pub(crate) struct Flow<I> {
    calls: Fuse<I>,
    /// A call for which the limit over all calls of the client has no room.
    held_back: Option<Call>,
    lineup: Lineup,
}

impl<I: Iterator<Item = Call>> Flow<I> {
    pub(crate) fn new(calls: I, config: BatchConfig) -> Self {
        Self {
            calls: calls.fuse(),
            held_back: None,
            lineup: Lineup::new(config),
        }
    }

    /// Calls that have begun and whose results have not been collected.
    pub(crate) fn in_flight(&self) -> usize {
        self.lineup.in_flight
    }

    /// The next result; waits until there is one. `None` when there are no more calls.
    pub(crate) fn next(&mut self, runner: &mut impl Runner) -> Option<(usize, Completion)> {
        let mut wait = false;
        loop {
            runner.collect(wait, &mut self.lineup);
            self.fill(runner);
            if let Some(result) = self.lineup.give() {
                return Some(result);
            }
            if self.in_flight() == 0 {
                return None;
            }
            wait = true;
        }
    }

    /// Begins as many calls as the limits allow.
    fn fill(&mut self, runner: &mut impl Runner) {
        while self.lineup.has_room() {
            let Some(call) = self.held_back.take().or_else(|| self.calls.next()) else {
                return;
            };
            let Err((call, error)) = runner.begin(self.lineup.taken, call.awaited()) else {
                self.lineup.take();
                continue;
            };
            let is_full = matches!(error.kind(), ErrorKind::Limit(LimitExceeded::InFlight(_)));
            if is_full && self.in_flight() > 0 {
                // A call of this batch will make room.
                self.held_back = Some(call);
                return;
            }
            let number = self.lineup.take();
            self.lineup.put(number, Completion::unbegun(call, error));
        }
    }
}

/// Numbers the calls that a batch takes, and returns their results in order. Invariant: for every number below `taken`,
/// the call is in flight, or its result is kept here, or its result was returned once.
#[derive(Debug)]
pub(crate) struct Lineup {
    config: BatchConfig,
    /// The number of calls taken so far, ended calls included.
    taken: usize,
    in_flight: usize,
    /// For [`BatchOrder::Completion`]: the results. For [`BatchOrder::Input`]: all calls whose result was not returned,
    /// with their results as far as they exist.
    kept: VecDeque<(usize, Option<Completion>)>,
}

impl Lineup {
    fn new(config: BatchConfig) -> Self {
        Self {
            config,
            taken: 0,
            in_flight: 0,
            kept: VecDeque::new(),
        }
    }

    /// Whether another call may be taken now.
    fn has_room(&self) -> bool {
        let most_kept = match self.config.order {
            BatchOrder::Completion => self.config.max_in_flight,
            BatchOrder::Input => self.config.max_ahead,
        };
        self.in_flight < self.config.max_in_flight.get() && self.kept.len() < most_kept.get()
    }

    /// Takes a call, which is in flight from now on, and returns its number.
    fn take(&mut self) -> usize {
        let number = self.taken;
        self.taken += 1;
        self.in_flight += 1;
        if self.config.order == BatchOrder::Input {
            self.kept.push_back((number, None));
        }
        number
    }

    /// Keeps the result of a call that has ended.
    pub(crate) fn put(&mut self, number: usize, completion: Completion) {
        self.in_flight -= 1;
        match self.config.order {
            BatchOrder::Completion => self.kept.push_back((number, Some(completion))),
            BatchOrder::Input => {
                let first = self.kept.front().map_or(number, |(first, _)| *first);
                if let Some((_, place)) = self.kept.get_mut(number - first) {
                    *place = Some(completion);
                }
            }
        }
    }

    /// The next result, if it exists.
    fn give(&mut self) -> Option<(usize, Completion)> {
        let (number, completion) = self.kept.front_mut()?;
        let result = (*number, completion.take()?);
        self.kept.pop_front();
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::client::{CallId, Report};
    use crate::proto::{Request, Response};
    use crate::reactor::Timestamps;
    use crate::time::Time;

    fn completion(tag: u64) -> Completion {
        let now = Time::now();
        Completion {
            id: CallId::UNBEGUN,
            tag,
            outcome: Ok(()),
            request: Request::default(),
            response: Response::new(),
            report: Report::new(Timestamps::new(now), now),
        }
    }

    proptest! {
        #[test]
        fn each_result_is_given_once_in_order_and_within_bounds(
            max_in_flight in 1usize..9,
            max_ahead in 1usize..9,
            input in any::<bool>(),
            count in 0usize..60,
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 60),
        ) {
            let order = if input { BatchOrder::Input } else { BatchOrder::Completion };
            let config = BatchConfig {
                max_in_flight: NonZeroUsize::new(max_in_flight).unwrap(),
                max_ahead: NonZeroUsize::new(max_ahead).unwrap(),
                order,
            };
            let mut lineup = Lineup::new(config);
            let (mut running, mut ended, mut given) = (Vec::new(), Vec::new(), Vec::new());
            let mut picks = picks.into_iter();
            loop {
                while lineup.taken < count && lineup.has_room() {
                    running.push(lineup.take());
                }
                prop_assert_eq!(lineup.in_flight, running.len());
                prop_assert!(running.len() <= max_in_flight);
                prop_assert!(!input || lineup.taken - given.len() <= max_ahead);
                if running.is_empty() {
                    break;
                }
                let number = running.swap_remove(picks.next().unwrap().index(running.len()));
                lineup.put(number, completion(number as u64));
                ended.push(number);
                while let Some((number, completion)) = lineup.give() {
                    prop_assert_eq!(completion.tag, number as u64);
                    given.push(number);
                }
            }
            if input {
                ended.sort_unstable();
            }
            prop_assert_eq!(&given, &ended);
            prop_assert_eq!(given.len(), count);
        }
    }
}
