//! When a schedule fires: the keys `cron` and `timezone`.

use croner::parser::{CronParser, Seconds, Year};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use toml::Spanned;
use toml::de::DeValue;

use super::entries::ScheduleConfig;
use super::kinds::{Scalar, quoted};
use super::reader::{Kind, Reader};
use crate::toml_text;

/// A cron expression.
pub(super) struct Cron;

impl Kind for Cron {
    type Value = ScheduleConfig;
    const ALLOWED: &'static str =
        "five fields, six with seconds first, or a nickname such as @daily";

    fn read(into: &mut ScheduleConfig, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let Some(text) = value.get_ref().as_str() else {
            return reader.wrong(
                value.span(),
                &format!("not a text; allowed: {}", Self::ALLOWED),
            );
        };
        match fires(text, &into.timezone) {
            Ok(()) => text.clone_into(&mut into.cron),
            Err((at, why)) => {
                let start = reader.text_start(value) + at;
                reader.wrong(start..value.span().end, &why);
            }
        }
    }

    fn show(value: &ScheduleConfig) -> Option<String> {
        Some(quoted(&value.cron))
    }
}

/// Whether the expression is one and fires at all. An error begins at a byte of the text.
fn fires(text: &str, zone: &TimeZone) -> Result<(), (usize, String)> {
    let cron = parser()
        .parse(text)
        .map_err(|error| wrong_field(text, &error.to_string()))?;
    let now: Zoned = Timestamp::now().to_zoned(zone.clone());
    match cron.find_next_occurrence(&now, false) {
        Ok(_) => Ok(()),
        Err(_) => Err((0, format!("{} never fires", quoted(text)))),
    }
}

/// The field that is wrong: the first one that stands alone is no better.
fn wrong_field(text: &str, whole: &str) -> (usize, String) {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        let why = match fields.len() {
            1 if text.trim().starts_with('@') => format!("{} is no nickname", quoted(text.trim())),
            count => format!("{count} fields"),
        };
        return (0, format!("{why}; allowed: {}", Cron::ALLOWED));
    }
    let names = &[
        "seconds",
        "minute",
        "hour",
        "day of the month",
        "month",
        "day of the week",
    ];
    for (index, field) in fields.iter().enumerate() {
        let mut alone = vec!["*"; fields.len()];
        alone[index] = field;
        if let Err(error) = parser().parse(&alone.join(" ")) {
            let at = field.as_ptr() as usize - text.as_ptr() as usize;
            let name = names[index + names.len() - fields.len()];
            return (at, format!("{} is no {name}: {error}", quoted(field)));
        }
    }
    (0, whole.to_owned())
}

fn parser() -> CronParser {
    CronParser::builder()
        .seconds(Seconds::Optional)
        .year(Year::Disallowed)
        .build()
}

/// A time zone by its name.
pub(super) struct Zone;

impl Scalar for Zone {
    type Value = TimeZone;
    const ALLOWED: &'static str = "a name such as \"UTC\" or \"Europe/Zurich\"";

    fn parse(value: &DeValue<'_>, _: &std::path::Path) -> Result<TimeZone, String> {
        let name = value.as_str().ok_or("not a text")?;
        let zone = TimeZone::get(name);
        zone.map_err(|_| {
            let known: Vec<_> = jiff::tz::db()
                .available()
                .map(|name| name.to_string())
                .collect();
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            match toml_text::nearest(name, &known) {
                Some(near) => format!("{} is unknown, did you mean {near}?", quoted(name)),
                None => format!("{} is unknown", quoted(name)),
            }
        })
    }

    fn show(value: &TimeZone) -> Option<String> {
        Some(quoted(value.iana_name().unwrap_or("UTC")))
    }
}
