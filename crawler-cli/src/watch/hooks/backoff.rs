//! When a message is sent again. Pure: the time and the draw come in as arguments.

use std::time::Duration;

use jiff::Timestamp;

use crate::check::life::time::between;

/// How long a message waits that was sent this often without success; `None`: it is not sent again. `draw` is a random
/// number from 0 to 1 that shortens the wait by up to a fifth; `asked` is what the receiver asked for.
pub(super) fn wait(failures: u32, draw: f64, asked: Option<Duration>) -> Option<Duration> {
    let step = usize::try_from(failures.checked_sub(1)?).ok()?;
    let step = STEPS.get(step)?;
    let own = step.mul_f64(1.0 - draw.clamp(0.0, 1.0) / 5.0);
    Some(own.max(asked.unwrap_or_default()).min(LONGEST))
}

/// Whether a message that waits until then is to be sent now. After the clock was set back, none waits for longer than it
/// was meant to.
pub(super) fn is_due(next_at: Timestamp, now: Timestamp) -> bool {
    next_at <= now || between(now, next_at) > LONGEST
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// The example of Standard Webhooks, and a day at the end: about 75 hours in all.
const STEPS: [Duration; 9] = [
    Duration::from_secs(5),
    minutes(5),
    minutes(30),
    minutes(2 * 60),
    minutes(5 * 60),
    minutes(10 * 60),
    minutes(14 * 60),
    minutes(20 * 60),
    LONGEST,
];

/// The longest wait, whatever the receiver asks for.
pub(super) const LONGEST: Duration = minutes(24 * 60);
