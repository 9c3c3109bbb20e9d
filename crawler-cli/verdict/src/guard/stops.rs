//! When a guard was on: the times in which nothing ages.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::life::time::between;

/// The times in which a guard was on, for [`Context::stopped`](crate::life::Context::stopped). One for the own
/// network, one for each host that was held.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stops {
    /// From, and to unless it goes on. Oldest first, at most [`MOST`](Self::MOST), and only the last one goes on.
    times: VecDeque<(Timestamp, Option<Timestamp>)>,
}

impl Stops {
    /// How many times are kept. If there are more, the two oldest count as one.
    pub const MOST: usize = 256;

    /// The times, for the store: from, and to unless the guard is still on. Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, Option<Timestamp>)> {
        self.times.iter().copied()
    }

    /// A guard went on, or what is void began then.
    pub fn begin(&mut self, at: Timestamp) {
        let at = match self.times.back() {
            Some((_, None)) => return,
            Some((_, Some(ended))) => at.max(*ended),
            None => at,
        };
        if self.times.len() == Self::MOST
            && let Some((first, _)) = self.times.pop_front()
            && let Some(second) = self.times.front_mut()
        {
            second.0 = first;
        }
        self.times.push_back((at, None));
    }

    /// The guard went off.
    pub fn end(&mut self, now: Timestamp) {
        if let Some((_, to @ None)) = self.times.back_mut() {
            *to = Some(now);
        }
    }

    /// For how long a guard was on between these times. Without a beginning: zero, because there was nothing to age.
    pub fn within(&self, from: Option<Timestamp>, to: Timestamp) -> Duration {
        let Some(from) = from else {
            return Duration::ZERO;
        };
        let overlap = |&(began, ended): &(Timestamp, Option<Timestamp>)| {
            between(began.max(from), ended.unwrap_or(to).min(to))
        };
        self.times.iter().rev().map(overlap).sum()
    }
}

impl FromIterator<(Timestamp, Option<Timestamp>)> for Stops {
    /// From the times in the store, oldest first.
    fn from_iter<I: IntoIterator<Item = (Timestamp, Option<Timestamp>)>>(times: I) -> Self {
        let mut stops = Self::default();
        for (from, to) in times {
            stops.begin(from);
            if let Some(to) = to {
                stops.end(to);
            }
        }
        stops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn seconds(stops: &Stops, from: i64, to: i64) -> u64 {
        stops.within(Some(at(from)), at(to)).as_secs()
    }

    #[test]
    fn times_of_guards_are_counted_once() {
        let mut stops = Stops::default();
        stops.begin(at(100));
        stops.begin(at(110));
        stops.end(at(120));
        // The look-back of the next one reaches into the last one.
        stops.begin(at(115));
        stops.end(at(140));
        stops.begin(at(200));
        assert_eq!(seconds(&stops, 0, 90), 0);
        assert_eq!(seconds(&stops, 0, 150), 40);
        assert_eq!(seconds(&stops, 110, 130), 20);
        assert_eq!(seconds(&stops, 150, 210), 10);
        assert_eq!(stops.within(None, at(210)), Duration::ZERO);
        assert_eq!(stops.iter().collect::<Stops>(), stops);
    }

    #[test]
    fn their_number_is_limited() {
        let mut stops = Stops::default();
        for number in 0..1_000 {
            stops.begin(at(number * 10));
            stops.end(at(number * 10 + 1));
        }
        assert_eq!(stops.iter().count(), Stops::MOST);
        assert_eq!(seconds(&stops, 9_000, 10_000), 100);
    }
}
