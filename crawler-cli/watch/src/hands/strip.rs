//! The history of a URL as one line: a sign for each piece of time.

use jiff::{SignedDuration, Timestamp};

use store::UrlDetail;
use verdict::life::State;

/// A change of state: when, from, to.
pub(super) type Step = (Timestamp, State, State);

/// The changes of a URL, oldest first, and since when they are known: only the last ones are kept.
pub(super) fn known(detail: &UrlDetail) -> (Timestamp, Vec<Step>) {
    let steps = detail.events.iter();
    let steps = steps.map(|event| (event.at, event.from, event.to));
    let from = match detail.events.first() {
        Some(first) if first.from != State::New => first.at,
        _ => detail.url.added,
    };
    (from, steps.collect())
}

/// The history from `from` to `now` in `width` signs. Each stands for the worst state in its piece of time, so that a
/// short failure is seen. `steps` are oldest first; `last` is the state now.
pub(super) fn strip(
    from: Timestamp,
    now: Timestamp,
    steps: &[Step],
    last: State,
    width: usize,
) -> String {
    let pieces = pieces(from, now, steps, last, width);
    pieces.into_iter().map(sign).collect()
}

/// The history in `width` pieces of time, each with its worst state; the last piece is what is now.
fn pieces(
    from: Timestamp,
    now: Timestamp,
    steps: &[Step],
    last: State,
    width: usize,
) -> Vec<State> {
    let total = now.duration_since(from).max(SignedDuration::from_millis(1));
    let pieces = i32::try_from(width.max(1)).unwrap_or(i32::MAX);
    let mut steps = steps.iter().peekable();
    let mut state = steps.peek().map_or(last, |(_, before, _)| *before);
    let mut states = Vec::with_capacity(width);
    for piece in 1..=pieces {
        let end = from + total / pieces * piece;
        let is_last = piece == pieces;
        let mut worst = state;
        while let Some((_, _, to)) = steps.next_if(|(at, ..)| is_last || *at < end) {
            state = *to;
            if rank(state) > rank(worst) {
                worst = state;
            }
        }
        // What is now is not hidden by what was lately.
        states.push(if is_last { last } else { worst });
    }
    states
}

/// The signs of the states in a history, explained.
pub(super) fn legend(steps: &[Step], last: State) -> String {
    let is_there = |state: State| {
        state == last
            || steps
                .iter()
                .any(|(_, from, to)| state == *from || state == *to)
    };
    let states = State::ALL.into_iter().filter(|state| is_there(*state));
    let words: Vec<String> = states
        .map(|state| format!("{} {}", sign(state), state.name()))
        .collect();
    words.join("   ")
}

fn sign(state: State) -> char {
    match state {
        State::New => '·',
        State::Alive => '▁',
        State::Suspect => '▃',
        State::Broken => '▆',
        State::Unreachable => '░',
        State::Quarantined => '▒',
        State::Gone => '█',
        State::Pruned => '×',
    }
}

/// The higher, the worse.
fn rank(state: State) -> u8 {
    match state {
        State::New => 0,
        State::Alive => 1,
        State::Suspect => 2,
        State::Quarantined => 3,
        State::Unreachable => 4,
        State::Broken => 5,
        State::Gone => 6,
        State::Pruned => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn a_history_is_a_line_of_signs() {
        use State::{Alive, Broken, Gone, New, Pruned, Suspect};
        type Case = (&'static [(i64, State, State)], State, &'static str);
        let cases: &[Case] = &[
            (&[], New, "··········"),
            (&[], Alive, "▁▁▁▁▁▁▁▁▁▁"),
            (
                &[(0, New, Alive), (50, Alive, Suspect)],
                Suspect,
                "▁▁▁▁▁▃▃▃▃▃",
            ),
            // A failure of a second is seen, and what is over is not shown as the present.
            (
                &[(10, New, Alive), (33, Alive, Suspect), (34, Suspect, Alive)],
                Alive,
                "·▁▁▃▁▁▁▁▁▁",
            ),
            (
                &[(98, Alive, Broken), (99, Broken, Alive)],
                Alive,
                "▁▁▁▁▁▁▁▁▁▁",
            ),
        ];
        for (steps, last, expected) in cases {
            let steps: Vec<Step> = steps
                .iter()
                .map(|&(s, from, to)| (at(s), from, to))
                .collect();
            let shown = strip(at(0), at(100), &steps, *last, 10);
            assert!(shown.starts_with(expected), "{shown} {expected}");
            assert_eq!(shown.chars().count(), 10);
        }
        let pruned = strip(
            at(0),
            at(100),
            &[(at(40), Broken, Gone), (at(100), Gone, Pruned)],
            Pruned,
            10,
        );
        assert_eq!(pruned, "▆▆▆▆█████×");
    }

    #[test]
    fn a_history_without_length_has_its_width() {
        let steps = [(at(5), State::New, State::Alive)];
        assert_eq!(
            strip(at(5), at(5), &steps, State::Alive, 3).chars().count(),
            3
        );
        assert_eq!(
            strip(at(9), at(5), &steps, State::Alive, 3).chars().count(),
            3
        );
        assert_eq!(legend(&steps, State::Alive), "· NEW   ▁ ALIVE");
    }
}
