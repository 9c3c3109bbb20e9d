//! `watch show URL`: everything about a URL.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::strip::{known, legend, strip};
use super::why::{Around, WhyNot, of_url};
use super::words::{self, Columns, INDENT, Sheet, WIDTH, safe, stamp, stamp_from};
use plain::text::{count, rough_span};
use store::{DeadLetter, Lane, UrlDetail};
use verdict::Answer;
use verdict::guard::Guard;
use verdict::life::{Flag, PruneWait, Record, State};

/// The page about a URL. `letters` are its dead letters.
pub(crate) fn text(detail: &UrlDetail, letters: &[DeadLetter], around: &Around) -> String {
    let (url, life, now) = (&detail.url, &detail.url.life, around.now);
    let mut sheet = Sheet::default();
    sheet.line(&words::url(&url.url));
    sheet.line("");
    sheet.field("State", &state_in_words(detail, now));
    if let Some((flag, since)) = life.flag() {
        let flag = match flag {
            Flag::Blocked => "the host refuses to show it",
            Flag::Throttled => "the host asks for fewer requests",
        };
        sheet.more(&format!("{flag} since {}", stamp_from(now, since)));
    }
    let reasons = of_url(detail, around);
    match reasons.split_first() {
        None => sheet.field("Now", "it is asked, or its turn comes in a moment"),
        Some((first, rest)) => {
            sheet.field("Not asked", &first.text);
            rest.iter().for_each(|reason| sheet.more(&reason.text));
        }
    }
    sheet.field("Next check", &next_in_words(detail, now));
    sheet.field("Last check", &last_in_words(url.answer.as_ref(), life, now));
    if life.answers().last().is_some() {
        sheet.field("Statuses", &format!("{}, oldest first", statuses(life)));
    }
    let last = life.last_ok().map(|at| stamp_from(now, at));
    sheet.field("Last good", last.as_deref().unwrap_or("never"));
    if let Some(at) = life.first_bad() {
        let counted = count(u64::from(life.negatives()), "negative", "negatives");
        sheet.field("First bad", &format!("{}, {counted}", stamp_from(now, at)));
    }
    let names: Vec<String> = detail.sets.iter().map(|name| safe(name)).collect();
    sheet.field(
        "Sets",
        if names.is_empty() {
            "none".into()
        } else {
            names.join(", ")
        }
        .as_str(),
    );
    sheet.field("Added", &stamp_from(now, url.added));
    for letter in letters {
        let number = letter.id.0;
        let letter = &letter.letter;
        let text = format!(
            "{number}: {} after {}, {}",
            safe(&letter.reason),
            count(u64::from(letter.attempts), "attempt", "attempts"),
            stamp_from(now, letter.last_at)
        );
        sheet.field("Dead letter", &text);
    }
    history(&mut sheet, detail, now);
    sheet.finish()
}

fn history(sheet: &mut Sheet, detail: &UrlDetail, now: Timestamp) {
    let state = detail.url.life.state();
    let (from, steps) = known(detail);
    sheet.line("");
    let ends = (stamp(from), stamp(now));
    let gap = WIDTH.saturating_sub(INDENT + ends.0.len() + ends.1.len());
    sheet.field("History", "");
    sheet.line(&format!("{:INDENT$}{}{:gap$}{}", "", ends.0, "", ends.1));
    let signs = strip(from, now, &steps, state, WIDTH - INDENT);
    sheet.line(&format!("{:INDENT$}{signs}", ""));
    sheet.line(&format!("{:INDENT$}{}", "", legend(&steps, state)));
    if detail.events.is_empty() {
        return;
    }
    sheet.line("");
    let mut columns = Columns::default();
    for (index, event) in detail.events.iter().enumerate() {
        let until = detail.events.get(index + 1).map_or(now, |next| next.at);
        let lasted = rough_span(verdict::life::time::between(event.at, until));
        columns.row([
            stamp(event.at),
            format!("{} → {}", event.from.name(), event.to.name()),
            event
                .status
                .map_or_else(String::new, |status| status.to_string()),
            safe(&event.why),
            format!("for {lasted}"),
        ]);
    }
    columns.lines("").lines().for_each(|line| sheet.line(line));
}

pub(crate) fn state_in_words(detail: &UrlDetail, now: Timestamp) -> String {
    let life = &detail.url.life;
    let state = life.state();
    let since = detail.events.last().map(|event| stamp_from(now, event.at));
    let since = since
        .map(|since| format!(" since {since}"))
        .unwrap_or_default();
    let more = match state {
        State::New => ": not judged yet".to_owned(),
        State::Alive => String::new(),
        State::Suspect => ": negative, with too little evidence to report it".to_owned(),
        State::Broken => ": negative for long enough to be reported".to_owned(),
        State::Unreachable => ": the server cannot be reached, or fails".to_owned(),
        State::Quarantined => match life.held_by() {
            Some(Guard::HostFlip) => ": in doubt while its host is held".to_owned(),
            Some(Guard::OwnNetwork) => ": in doubt while the own network fails".to_owned(),
            None => ": in doubt".to_owned(),
        },
        State::Gone => match life.prune_waits() {
            Some(PruneWait::Grace) => ": it is pruned after a grace".to_owned(),
            Some(PruneWait::Budget) => ": it is pruned when the budget allows it".to_owned(),
            None => String::new(),
        },
        State::Pruned => ": a tombstone, which is asked now and then for ever".to_owned(),
    };
    format!("{}{since}{more}", state.name())
}

pub(crate) fn next_in_words(detail: &UrlDetail, now: Timestamp) -> String {
    let Some((lane, due)) = detail.url.due else {
        return "none".to_owned();
    };
    let because = match lane {
        Lane::Routine if detail.url.life.state() == State::New => "it is new",
        Lane::Routine => "the interval of what is alive",
        Lane::Trouble => "the re-checks of what fails",
        Lane::Gone => "the interval of what is gone",
        Lane::Doubt => "it is in doubt: a cycle of reconciling asks it",
        Lane::Held => "it is held: it is asked when the hold ends, or as a sample",
    };
    match lane {
        Lane::Held => because.to_owned(),
        _ => format!("{}: {because}", stamp_from(now, due)),
    }
}

pub(crate) fn last_in_words(answer: Option<&Answer>, life: &Record, now: Timestamp) -> String {
    let Some(answer) = answer else {
        return "never".to_owned();
    };
    let mut text = match (answer.verdict.cause(), answer.status) {
        (None, Some(status)) => format!("ok, {status}"),
        (None, None) => answer.verdict.class().name().to_owned(),
        (Some(cause), _) => format!("{}, {}", answer.verdict.class().name(), cause.name()),
    };
    if let Some(method) = answer.method {
        text += &format!(" by {method}");
    }
    if let Some(latency) = answer.latency {
        text += &format!(" in {} ms", latency.as_millis());
    }
    if let Some(address) = answer.address {
        text += &format!(" from {address}");
    }
    if let Some(at) = answer.checked_at.or(life.last_at()) {
        text += &format!(", {}", stamp_from(now, at));
    }
    if let Some(detail) = &answer.detail {
        text += &format!(": {}", safe(detail));
    }
    if let Some(moved) = &answer.moved_to {
        text += &format!("; moved to {}", words::url(moved));
    }
    text
}

/// The last statuses, or the classes of answers without one: `200 200 net 404`.
pub(crate) fn statuses(life: &Record) -> String {
    let answers = life.answers().iter().map(|answer| match answer.status {
        Some(status) => status.to_string(),
        None => answer.class.name().to_owned(),
    });
    answers.collect::<Vec<_>>().join(" ")
}

/// The same for programs. `line` has the fields of the exported line of the URL.
pub(crate) fn json(
    line: Map<String, Value>,
    detail: &UrlDetail,
    letters: &[DeadLetter],
    around: &Around,
) -> Value {
    let changes = detail.events.iter().map(|event| {
        json!({
            "cursor": event.cursor.0,
            "at": event.at,
            "from": event.from.name(),
            "to": event.to.name(),
            "status": event.status,
            "why": event.why,
        })
    });
    let mut value = line;
    value.insert("host".into(), json!(detail.host.root));
    value.insert("sets".into(), json!(detail.sets));
    value.insert("not_asked".into(), reasons(&of_url(detail, around)));
    value.insert("changes".into(), changes.collect());
    let letters = letters.iter().map(super::letters::json);
    value.insert("dead_letters".into(), letters.collect());
    Value::Object(value)
}

/// Reasons for programs.
pub(crate) fn reasons(reasons: &[WhyNot]) -> Value {
    let reasons = reasons.iter().map(|reason| {
        let mut value = json!({ "reason": reason.name, "text": reason.text });
        if let Some(until) = reason.until {
            value["until"] = json!(until);
        }
        value
    });
    reasons.collect()
}
