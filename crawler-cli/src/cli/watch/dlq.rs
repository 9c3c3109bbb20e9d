//! `watch dlq`: dead letters.

use std::io;

use jiff::Timestamp;
use serde_json::json;

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::values;
use crate::watch::control::{Command, Letters};
use crate::watch::hands::{Shape, letters_done};

/// `watch dlq`.
pub(super) struct Dlq;

impl Spec for Dlq {
    const NAME: &'static str = "dlq";
    const TITLE: &'static str = "watch dlq";
    const ABOUT: &'static str = "list, show, replay or drop dead letters";
    const USAGE: &'static str = "list|replay|drop [--reason REASON] [--host HOST] [--queue NAME] [--since TIME]\nshow|replay|drop NUMBER";
    const DESCRIPTION: &'static str = "\
A dead letter is what needs you or a change of a rule: a URL that cannot be judged, a job that failed too often, a message that could not be delivered.
list: one line for each. show: one of them with its last exchange.
replay: try again. A URL is due now, a job waits in its queue with all of its attempts. What was replayed is not replayed again until it fails again. drop: forget.
Without an option, list concerns all dead letters; replay and drop need --all for that.";
    const TABLE: &'static [Section<Typed<Self>>] = &[
        Section {
            heading: "Which dead letters",
            options: &[
                Rows::<Self>::LETTERS,
                Rows::<Self>::HOST_OF_LETTER,
                Rows::<Self>::SINCE,
                Rows::<Self>::ALL,
            ],
        },
        Section {
            heading: "Other options",
            options: &[
                Rows::<Self>::DRY_RUN,
                Rows::<Self>::JSON,
                ConfigRows::ALL,
                HelpRows::ALL,
            ],
        },
    ];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        ("crawler-cli watch dlq list", "What needs you"),
        (
            "crawler-cli watch dlq replay --reason redirect_loop --since 3d --dry-run",
            "How many would be tried again",
        ),
    ];
    const OPERANDS: &'static [&'static str] = &["list", "show", "replay", "drop"];

    fn run(values: Values) -> Result<(), Failure> {
        let operands: Vec<&str> = values.operands.iter().map(String::as_str).collect();
        let (verb, number) = match *operands {
            [verb] => (verb, None),
            [verb @ ("show" | "replay" | "drop"), number] => (verb, Some(self::number(number)?)),
            _ => return Err(usage("one of list, show, replay and drop")),
        };
        let letters = letters(&values, number)?;
        match verb {
            "list" => list(&values, &letters),
            "show" => show(&values, number.ok_or_else(|| usage("no number"))?),
            "replay" | "drop" => {
                let is_limited = letters != Letters::default();
                if is_limited == values.is_all {
                    return Err(usage(match values.is_all {
                        true => "--all and another option say which dead letters",
                        false => "nothing says which dead letters; --all means all",
                    }));
                }
                change(&values, verb == "replay", letters)
            }
            _ => Err(usage(format!(
                "{verb}: not one of list, show, replay and drop"
            ))),
        }
    }
}

fn number(text: &str) -> Result<i64, Failure> {
    crate::cli::values::number(text).map_err(|why| usage(format!("{text}: {why}")))
}

fn letters(values: &Values, number: Option<i64>) -> Result<Letters, Failure> {
    let since = values.since.as_deref().map(time).transpose()?;
    let host = values.host.as_deref().map(host_name).transpose()?;
    Ok(Letters {
        number,
        reason: values.reason.clone(),
        host,
        queue: values.queue.clone(),
        since,
    })
}

/// A time, a date, or a span before now.
fn time(text: &str) -> Result<Timestamp, Failure> {
    values::since(text).map_err(|why| usage(format!("--since {text}: {why}")))
}

fn host_name(text: &str) -> Result<String, Failure> {
    values::host_name(text).map_err(|why| usage(format!("--host {text:?}: {why}")))
}

fn list(values: &Values, letters: &Letters) -> Result<(), Failure> {
    let mut reader = values.reader()?;
    let mut filter = letters.filter();
    filter.with_replayed = true;
    let shape = values.shape();
    let count = reader.letters(&filter, Timestamp::now(), shape, &mut io::stdout().lock())?;
    match (count, shape) {
        (0, Shape::Text) => print("no dead letters\n"),
        _ => Ok(()),
    }
}

fn show(values: &Values, number: i64) -> Result<(), Failure> {
    match values
        .reader()?
        .letter(number, Timestamp::now(), values.shape())?
    {
        Some(page) => print(&page),
        None => Err(Failure::Failed(format!("{number}: no such dead letter"))),
    }
}

fn change(values: &Values, is_replay: bool, letters: Letters) -> Result<(), Failure> {
    let done = if is_replay { "replayed" } else { "dropped" };
    let is_one = letters.number.is_some();
    let (count, passed) = if values.is_dry_run {
        let mut filter = letters.filter();
        filter.with_replayed = !is_replay;
        (values.reader()?.count_letters(&filter)?, 0)
    } else {
        values.hand()?.send_all(|after| match is_replay {
            true => Command::Replay {
                letters: letters.clone(),
                after,
            },
            false => Command::Drop {
                letters: letters.clone(),
            },
        })?
    };
    match values.is_json {
        true => {
            let value = json!({ done: count, "passed": passed, "dry_run": values.is_dry_run });
            print(&format!("{value}\n"))?;
        }
        false => {
            let would = if values.is_dry_run { "would have " } else { "" };
            print(&letters_done(count, passed, &format!("{would}{done}")))?;
        }
    }
    match is_one && count == 0 {
        true => Err(Failure::Failed(format!("nothing to be {done}"))),
        false => Ok(()),
    }
}
