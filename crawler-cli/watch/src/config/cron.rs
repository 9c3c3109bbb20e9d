//! When a schedule fires: the keys `cron` and `timezone`.

use std::path::Path;

use jiff::tz::TimeZone;
use toml::Spanned;
use toml::de::DeValue;

use super::entries::ScheduleConfig;
use super::kinds::{Scalar, quoted};
use super::reader::{Kind, Reader};
use jobs::schedule::expression;
use plain::text::nearest;

/// A cron expression.
pub(super) struct Cron;

impl Kind for Cron {
    type Value = ScheduleConfig;
    const ALLOWED: &'static str =
        "five fields, six with seconds first, or a nickname such as @daily";

    fn read(into: &mut ScheduleConfig, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let Some(text) = value.get_ref().as_str() else {
            let why = format!("not a text; allowed: {}", Self::ALLOWED);
            return reader.wrong(value.span(), &why);
        };
        match expression(text) {
            Ok(_) => text.clone_into(&mut into.cron),
            Err(bad) => reader.wrong(value.span(), &format!("{}: {}", quoted(text), bad.why)),
        }
    }

    fn show(value: &ScheduleConfig) -> Option<String> {
        Some(quoted(&value.cron))
    }
}

/// A time zone by its name.
pub(super) struct Zone;

impl Scalar for Zone {
    type Value = TimeZone;
    const ALLOWED: &'static str = "a name such as \"UTC\" or \"Europe/Zurich\"";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<TimeZone, String> {
        let name = value.as_str().ok_or("not a text")?;
        let zone = TimeZone::get(name);
        zone.map_err(|_| {
            let known = jiff::tz::db().available().map(|name| name.to_string());
            let known: Vec<_> = known.collect();
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            match nearest(name, &known) {
                Some(near) => format!("{} is unknown, did you mean {near}?", quoted(name)),
                None => format!("{} is unknown", quoted(name)),
            }
        })
    }

    fn show(value: &TimeZone) -> Option<String> {
        Some(quoted(value.iana_name().unwrap_or("UTC")))
    }
}
