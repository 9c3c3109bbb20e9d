//! `watch webhook list`: how the receivers of webhooks fare.

use jiff::Timestamp;
use serde_json::Value;

use super::words::{Columns, count, distance, safe, stamp_from};
use crate::store::{JobStore, StoreError};
use crate::watch::hooks::{HookCondition, HookStatus};

/// One line for each receiver.
pub(super) fn rows(hooks: &[HookStatus], now: Timestamp) -> String {
    let mut columns = Columns::default();
    for hook in hooks {
        let last = match &hook.last {
            Some(last) => format!("{}: {}", distance(now, last.at), safe(&last.answer)),
            None => String::new(),
        };
        columns.row([
            safe(&hook.name),
            condition(hook, now),
            waiting(hook, now),
            last,
        ]);
    }
    columns.lines("")
}

/// What a receiver waits for.
pub(in crate::watch) fn condition(hook: &HookStatus, now: Timestamp) -> String {
    match &hook.condition {
        HookCondition::UpToDate => "up to date".to_owned(),
        HookCondition::Sending => "sending".to_owned(),
        HookCondition::Waiting { until } => format!("waits until {}", stamp_from(now, *until)),
        HookCondition::Stopped { since, why } => {
            format!("stopped {}: {}", distance(now, *since), safe(why))
        }
    }
}

/// How many messages wait for a receiver.
pub(in crate::watch) fn waiting(hook: &HookStatus, now: Timestamp) -> String {
    let Some(oldest) = hook.oldest else {
        return "nothing waits".to_owned();
    };
    let more = if hook.is_behind {
        ", and more to tell"
    } else {
        ""
    };
    let messages = count(hook.waiting, "message", "messages");
    format!("{messages}, the first of {}{more}", distance(now, oldest))
}

/// A receiver for programs.
pub(in crate::watch) fn json(hook: &HookStatus) -> Value {
    // All of it can be JSON.
    serde_json::to_value(hook).unwrap_or_default()
}

/// What the store knows of the receivers: no service runs that would know more.
pub(super) fn stored(store: &mut impl JobStore) -> Result<Vec<HookStatus>, StoreError> {
    let mut statuses = Vec::new();
    for hook in store.hooks()? {
        let outbox = store.outbox(&hook.receiver, MOST_COUNTED)?;
        let condition = match (hook.stopped, outbox.first()) {
            (Some((since, why)), _) => HookCondition::Stopped { since, why },
            (None, Some(first)) => HookCondition::Waiting {
                until: first.next_at,
            },
            (None, None) => HookCondition::UpToDate,
        };
        statuses.push(HookStatus {
            name: hook.receiver,
            origin: None,
            condition,
            waiting: outbox.len() as u64,
            oldest: outbox.iter().map(|message| message.posted_at).min(),
            is_behind: outbox.len() == MOST_COUNTED,
            last: None,
            delivered: 0,
        });
    }
    Ok(statuses)
}

/// The most messages of a receiver that are counted.
const MOST_COUNTED: usize = 16;
