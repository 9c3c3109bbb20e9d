//! What messages say: JSON with `type`, `timestamp` and `data` (Standard Webhooks).
//!
//! Each change, notice and dead letter is an [`Item`]. A message has one item, or is a digest of many.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::check::life::event_of;
use crate::store::{DeadLetter, Event, Notice, Subject};
use crate::watch::config::Topic;
use crate::watch::hands::{letter_subject, shown_url};

/// Something that a receiver is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// The `type` of a message about it.
    pub(super) kind: &'static str,
    pub(super) at: Timestamp,
    pub(super) data: Value,
}

impl Item {
    /// A change of state, if a receiver with these topics is told of it.
    pub(super) fn of_event(event: &Event, topics: &[Topic]) -> Option<Self> {
        let (topic, kind) = match event_of(event.from, event.to)? {
            "broken" => (Topic::Broken, "url.broken"),
            "gone" => (Topic::Gone, "url.gone"),
            "pruned" => (Topic::Pruned, "url.pruned"),
            _ => (Topic::Resurrected, "url.resurrected"),
        };
        let data = || {
            json!({
                "cursor": event.cursor.0,
                "url": shown_url(&event.url),
                "from": event.from.name(),
                "to": event.to.name(),
                "status": event.status,
                "why": event.why,
                "flapping": event.is_damped,
            })
        };
        topics.contains(&topic).then(|| Self {
            kind,
            at: event.at,
            data: data(),
        })
    }

    /// A notice, if it is about a guard. `host` is the URL of the root of its host.
    pub(super) fn of_notice(notice: &Notice, host: Option<&str>) -> Option<Self> {
        let kind = match notice.kind.as_str() {
            "guard" => "guard.network",
            "hold" | "release" | "confirm" => "guard.host",
            "budget" => "guard.budget",
            _ => return None,
        };
        Some(Self {
            kind,
            at: notice.at,
            data: json!({ "text": notice.text, "host": host, "who": notice.who }),
        })
    }

    /// A dead letter. Its last exchange is not told: it may have more than the receiver should know.
    pub(super) fn of_letter(letter: &DeadLetter) -> Option<Self> {
        let kind = match &letter.subject {
            // What cannot be delivered is told once, and not that this could not be delivered either.
            Subject::Message { topic, .. } if topic == UNDELIVERABLE => return None,
            Subject::Message { .. } => "dead_letter.webhook",
            Subject::Url { .. } => "dead_letter.url",
            Subject::Text(_) => "dead_letter.text",
            Subject::Job { .. } => "dead_letter.job",
        };
        Some(Self {
            kind,
            at: letter.letter.last_at,
            data: json!({
                "number": letter.id.0,
                "subject": letter_subject(&letter.subject),
                "reason": letter.letter.reason,
                "attempts": letter.letter.attempts,
                "first_at": letter.letter.first_at,
                "last_at": letter.letter.last_at,
            }),
        })
    }

    /// What the receiver can never be told any more: it was forgotten before.
    pub(super) fn of_lost(count: u64, now: Timestamp) -> Self {
        Self {
            kind: "events.lost",
            at: now,
            data: json!({ "count": count }),
        }
    }

    fn value(&self) -> Value {
        json!({ "type": self.kind, "timestamp": self.at, "data": self.data })
    }

    /// About how long its JSON is, in bytes.
    pub(super) fn size(&self) -> usize {
        self.value().to_string().len()
    }

    fn is_about_delivery(&self) -> bool {
        self.kind == "dead_letter.webhook"
    }

    /// The topic of a message with these items.
    pub(super) fn topic(items: &[Self]) -> &'static str {
        match items {
            items if items.iter().any(Self::is_about_delivery) => UNDELIVERABLE,
            [item] => item.kind,
            _ => "digest",
        }
    }

    /// The body of a message about it alone.
    pub(super) fn body(&self) -> Vec<u8> {
        self.value().to_string().into_bytes()
    }
}

/// The body of a digest.
pub(super) fn digest(items: &[Item], is_flapping: bool, now: Timestamp) -> Vec<u8> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for item in items {
        *counts.entry(item.kind).or_default() += 1;
    }
    let items: Vec<Value> = items.iter().map(Item::value).collect();
    let data = json!({ "counts": counts, "flapping": is_flapping, "items": items });
    let value = json!({ "type": "digest", "timestamp": now, "data": data });
    value.to_string().into_bytes()
}

/// The body of a message that an operator sends to try a receiver.
pub(super) fn test(now: Timestamp) -> Vec<u8> {
    let text = "A test of the webhook, sent by an operator.";
    let value = json!({ "type": "test", "timestamp": now, "data": { "text": text } });
    value.to_string().into_bytes()
}

/// The topic of messages about webhooks that could not be delivered.
const UNDELIVERABLE: &str = "undeliverable";
