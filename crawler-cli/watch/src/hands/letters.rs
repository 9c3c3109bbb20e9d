//! `watch dlq`: dead letters.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words::{self, Columns, Sheet, distance, safe, stamp_from};
use plain::text::{count, thousands};
use store::{DeadLetter, Subject};

/// One line for each dead letter.
pub(super) fn rows(letters: &[DeadLetter], now: Timestamp) -> String {
    let mut columns = Columns::default();
    for letter in letters {
        let replayed = if letter.replayed_at.is_some() {
            "replayed"
        } else {
            ""
        };
        let times = match letter.times {
            1 => String::new(),
            times => format!("{} times", thousands(u64::from(times))),
        };
        columns.row([
            letter.id.0.to_string(),
            safe(&letter.letter.reason),
            distance(now, letter.letter.last_at),
            subject(&letter.subject),
            times,
            replayed.to_owned(),
        ]);
    }
    columns.lines("")
}

/// All of one dead letter.
pub(super) fn text(letter: &DeadLetter, now: Timestamp) -> String {
    let mut sheet = Sheet::default();
    sheet.line(&format!(
        "Dead letter {}: {}",
        letter.id.0,
        safe(&letter.letter.reason)
    ));
    sheet.line("");
    sheet.field("About", &subject(&letter.subject));
    if let Subject::Job { payload, .. } = &letter.subject {
        sheet.field("Payload", &bytes(payload));
    }
    let body = &letter.letter;
    sheet.field("Attempts", &thousands(u64::from(body.attempts)));
    sheet.field("Times", &thousands(u64::from(letter.times)));
    sheet.field("First", &stamp_from(now, body.first_at));
    sheet.field("Last", &stamp_from(now, body.last_at));
    if let Some(at) = letter.replayed_at {
        sheet.field("Replayed", &stamp_from(now, at));
    }
    if !body.last.is_empty() {
        sheet.line("");
        sheet.line("Last exchange:");
        body.last
            .lines()
            .for_each(|line| sheet.line(&format!("  {}", safe(line))));
    }
    sheet.finish()
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Url { url, .. } => words::url(url),
        Subject::Text(text) => format!("text {:?}", safe(text)),
        Subject::Job { queue, key, .. } => {
            let key = key.as_deref().map(|key| format!(", key {}", safe(key)));
            format!("job of {}{}", safe(queue), key.unwrap_or_default())
        }
    }
}

fn bytes(bytes: &[u8]) -> String {
    safe(&String::from_utf8_lossy(bytes))
}

/// A dead letter for programs.
pub(super) fn json(letter: &DeadLetter) -> Value {
    let mut value = json!({
        "id": letter.id.0,
        "reason": letter.letter.reason,
        "attempts": letter.letter.attempts,
        "times": letter.times,
        "first_at": letter.letter.first_at,
        "last_at": letter.letter.last_at,
        "last": letter.letter.last,
    });
    match &letter.subject {
        Subject::Url { url, .. } => value["url"] = json!(url),
        Subject::Text(text) => value["text"] = json!(text),
        Subject::Job {
            id,
            queue,
            key,
            payload,
        } => {
            value["job"] = json!({
                "id": id.0, "queue": queue, "key": key, "payload": String::from_utf8_lossy(payload),
            });
        }
    }
    if let Some(at) = letter.replayed_at {
        value["replayed_at"] = json!(at);
    }
    value
}

/// How many there are, by reason.
pub(super) fn counts(counts: &[(String, u64)]) -> String {
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let texts: Vec<String> = counts
        .map(|(reason, number)| format!("{} {}", safe(reason), thousands(*number)))
        .collect();
    match texts.is_empty() {
        true => "none".to_owned(),
        false => texts.join(", "),
    }
}

/// What a replay or a drop has done.
pub fn done(number: u64, passed: u64, what: &str) -> String {
    let mut text = format!("{what} {}\n", count(number, "dead letter", "dead letters"));
    if passed > 0 {
        text += &format!(
            "passed over {}: URLs in no set, or texts that are no URLs\n",
            thousands(passed)
        );
    }
    text
}
