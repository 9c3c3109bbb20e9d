//! `watch schedule list`: what is known about schedules.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words::{Columns, safe, stamp_from};
use plain::text::thousands;
use store::ScheduleState;

/// One line for each schedule.
pub(super) fn rows(schedules: &[ScheduleState], now: Timestamp) -> String {
    let mut columns = Columns::default();
    for schedule in schedules {
        let next = match (schedule.is_paused, schedule.next) {
            (true, _) => "paused".to_owned(),
            (false, Some(next)) => format!("next {}", stamp_from(now, next)),
            (false, None) => "no next time".to_owned(),
        };
        let last = match schedule.last_fired {
            Some(at) => format!("last {}", super::words::distance(now, at)),
            None => "never fired".to_owned(),
        };
        let mut lost = Vec::new();
        if schedule.missed > 0 {
            lost.push(format!("missed {}", thousands(schedule.missed)));
        }
        if schedule.overlapped > 0 {
            lost.push(format!("overlapped {}", thousands(schedule.overlapped)));
        }
        columns.row([safe(&schedule.name), next, last, lost.join(", ")]);
    }
    columns.lines("")
}

/// A schedule for programs.
pub(super) fn json(schedule: &ScheduleState) -> Value {
    json!({
        "name": schedule.name,
        "next": schedule.next,
        "last_fired": schedule.last_fired,
        "last_success": schedule.last_success,
        "missed": schedule.missed,
        "overlapped": schedule.overlapped,
        "is_paused": schedule.is_paused,
    })
}
