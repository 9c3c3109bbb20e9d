//! `watch hold list`: hosts that are held.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words::{self, Columns, stamp_from};
use plain::text::count;
use store::HostHold;

/// One line for each hold.
pub(super) fn rows(holds: &[HostHold], now: Timestamp) -> String {
    let mut columns = Columns::default();
    for hold in holds {
        let sample = match (
            hold.ending.is_some(),
            hold.hold.sampled_at,
            hold.hold.was_sample_good,
        ) {
            (true, ..) => "ending".to_owned(),
            (_, None, _) => "no sample yet".to_owned(),
            (_, Some(at), true) => format!("good sample {}", words::distance(now, at)),
            (_, Some(at), false) => format!("bad sample {}", words::distance(now, at)),
        };
        columns.row([
            words::url(&hold.root),
            count(hold.held, "URL", "URLs"),
            format!("since {}", stamp_from(now, hold.hold.since)),
            sample,
        ]);
    }
    columns.lines("")
}

/// A hold for programs.
pub(super) fn json(hold: &HostHold) -> Value {
    json!({
        "host": hold.root,
        "since": hold.hold.since,
        "urls": hold.held,
        "sampled_at": hold.hold.sampled_at,
        "was_sample_good": hold.hold.was_sample_good,
        "is_ending": hold.ending.is_some(),
    })
}
