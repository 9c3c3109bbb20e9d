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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::life::State;
    use crate::store::{Cursor, DeadLetterId, NewDeadLetter};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn event(from: State, to: State) -> Event {
        Event {
            cursor: Cursor(7),
            at: at(5),
            url: "https://me:hush@h.test/a".to_owned(),
            from,
            to,
            status: Some(410),
            why: "status_410".to_owned(),
            is_damped: false,
        }
    }

    #[test]
    fn changes_are_told_by_topic_without_passwords() {
        let broken = event(State::Suspect, State::Broken);
        let item = Item::of_event(&broken, &[Topic::Broken]).expect("told");
        let body = String::from_utf8(item.body()).expect("JSON");
        let value: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(value["type"], "url.broken");
        assert_eq!(value["timestamp"], "1970-01-01T00:00:05Z");
        assert_eq!(
            (&value["data"]["status"], &value["data"]["cursor"]),
            (&410.into(), &7.into())
        );
        assert!(
            !body.contains("hush") && body.contains("h.test/a"),
            "{body}"
        );
        for (from, to, topic) in [
            (State::Broken, State::Gone, Topic::Gone),
            (State::Gone, State::Pruned, Topic::Pruned),
            (State::Pruned, State::Alive, Topic::Resurrected),
        ] {
            let event = event(from, to);
            for other in Topic::ALL {
                let item = Item::of_event(&event, &[other]);
                assert_eq!(item.is_some(), other == topic, "{other:?}");
            }
        }
        let good = event(State::Suspect, State::Alive);
        assert_eq!(Item::of_event(&good, &Topic::ALL), None);
    }

    #[test]
    fn a_message_about_a_webhook_that_failed_is_told_once() {
        let letter = |topic: &str| DeadLetter {
            id: DeadLetterId(3),
            subject: Subject::Message {
                receiver: "ops".to_owned(),
                topic: topic.to_owned(),
                body: b"{}".to_vec(),
            },
            letter: NewDeadLetter {
                reason: "webhook_undeliverable".to_owned(),
                attempts: 10,
                last: "HTTP 500: hush".to_owned(),
                first_at: at(0),
                last_at: at(9),
            },
            replayed_at: None,
        };
        let item = Item::of_letter(&letter("url.gone")).expect("told");
        assert_eq!(item.kind, "dead_letter.webhook");
        assert!(!item.data.to_string().contains("hush"));
        let gone = Item::of_event(&event(State::Broken, State::Gone), &Topic::ALL);
        let items = [gone.expect("told"), item];
        assert_eq!(Item::topic(&items[..1]), "url.gone");
        for items in [&items[1..], &items] {
            assert_eq!(Item::of_letter(&letter(Item::topic(items))), None);
        }
    }

    #[test]
    fn a_digest_counts_what_it_has() {
        let gone = Item::of_event(&event(State::Broken, State::Gone), &Topic::ALL);
        let items = [
            gone.clone().expect("told"),
            gone.expect("told"),
            Item::of_lost(4, at(1)),
        ];
        let value: Value = serde_json::from_slice(&digest(&items, true, at(9))).expect("JSON");
        assert_eq!(value["type"], "digest");
        assert_eq!(
            value["data"]["counts"],
            json!({ "events.lost": 1, "url.gone": 2 })
        );
        assert_eq!(value["data"]["flapping"], true);
        assert_eq!(value["data"]["items"][2]["data"]["count"], 4);
        assert_eq!(Item::topic(&items), "digest");
    }
}
