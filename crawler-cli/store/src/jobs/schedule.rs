//! What is remembered of schedules.

use jiff::Timestamp;

/// What is known about a schedule.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScheduleState {
    /// Its name.
    pub name: String,
    /// The scheduled time of its last firing. It never goes back.
    pub last_fired: Option<Timestamp>,
    /// When its job succeeded last.
    pub last_success: Option<Timestamp>,
    /// When it fires next, as it was planned last.
    pub next: Option<Timestamp>,
    /// How many of its times passed without a firing: the process did not run, or was too late.
    pub missed: u64,
    /// How many of its firings were skipped, because the run before had not ended.
    pub overlapped: u64,
    /// Whether an operator has paused it.
    pub is_paused: bool,
}

/// What changes of a schedule.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ScheduleChange {
    /// When it fires next; `Some(None)`: never again.
    pub next: Option<Option<Timestamp>>,
    /// Its job succeeded then.
    pub succeeded: Option<Timestamp>,
    /// So many times more were missed.
    pub missed: u64,
    /// So many firings more were skipped.
    pub overlapped: u64,
    /// Whether it is paused from now on.
    pub paused: Option<bool>,
}

/// A firing of a schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Firing {
    /// The time that the schedule says.
    pub scheduled_at: Timestamp,
    /// When it fired.
    pub fired_at: Timestamp,
}
