//! Cron expressions: their fields, and the wall-clock times that match. Knows no time zones.
//!
//! croner reads the fields. The positions of errors, and the counting of matches without visiting each, are added here.

use std::fmt;

use croner::parser::{CronParser, Seconds, Year};
use croner::{CronPattern, Weekday};
use jiff::civil::{Date, DateTime, Time};

/// A cron expression with five fields (minute, hour, day of month, month, day of week) or six (seconds first), or a
/// nickname such as `@daily`.
///
/// The fields take what Vixie cron takes (`*`, `1-5`, `*/15`, lists, names of months and days), and `L`, `W`, `#`. As
/// there, a date matches if the day of the month *or* the day of the week does, when neither field is `*`.
///
/// ```
/// use crawler_cli::jobs::Expression;
///
/// assert!("15 2 * * *".parse::<Expression>().is_ok());
/// assert!("0 0 */2 * * *".parse::<Expression>().is_ok());
///
/// let bad = "0 25 * * *".parse::<Expression>().unwrap_err();
/// assert_eq!(bad.column, 3);
/// let never = "0 0 31 2 *".parse::<Expression>().unwrap_err();
/// assert!(never.to_string().contains("never"), "{never}");
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    pattern: CronPattern,
    /// A bit for each value that matches.
    hours: u64,
    minutes: u64,
    seconds: u64,
    is_interval: bool,
}

/// A text that is no cron expression, or an expression that never fires.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadExpression {
    /// The text.
    pub text: String,
    /// Where the error is: the column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for BadExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, column, why } = self;
        write!(f, "cron expression `{text}`, column {column}: {why}")
    }
}

impl std::error::Error for BadExpression {}

impl std::str::FromStr for Expression {
    type Err = BadExpression;

    fn from_str(text: &str) -> Result<Self, BadExpression> {
        let bad = |column, why: &str| BadExpression {
            text: text.to_owned(),
            column,
            why: why.to_owned(),
        };
        if text.len() > LONGEST {
            return Err(bad(LONGEST + 1, "an expression has at most 256 bytes"));
        }
        let fields = fields(text);
        let is_nickname = text.trim_start().starts_with('@');
        let pattern = match parse(text) {
            Ok(pattern) if is_nickname || matches!(fields.len(), 5 | 6) => pattern,
            _ => return Err(locate(text, &fields, is_nickname)),
        };
        let bits = |values: Vec<u16>| values.iter().fold(0u64, |bits, value| bits | 1 << value);
        let clock_fields = fields.len().saturating_sub(3);
        let expression = Self {
            text: text.to_owned(),
            hours: bits(pattern.hours.values()),
            minutes: bits(pattern.minutes.values()),
            seconds: bits(pattern.seconds.values()),
            // As in Vixie cron: what runs each hour or minute follows elapsed time, also when the clocks change.
            is_interval: match is_nickname {
                true => pattern.hours.from_wildcard,
                false => (clock_fields.saturating_sub(2)..clock_fields)
                    .any(|field| fields[field].text.starts_with('*')),
            },
            pattern,
        };
        if expression.is_empty() {
            return Err(bad(1, "a field names no value"));
        }
        match expression.matches_some_day() {
            true => Ok(expression),
            false => {
                let column = fields.get(fields.len().saturating_sub(3));
                let column = column.map_or(1, |field| field.column);
                Err(bad(column, "never fires: no year has such a day"))
            }
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    /// Whether the expression means "each hour" or "each minute", so that it follows elapsed time when the clocks
    /// change. Other expressions mean times of the day.
    pub(super) fn is_interval(&self) -> bool {
        self.is_interval
    }

    /// The first match that is not before this time.
    pub(super) fn next(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut second = second_of(from.time());
        for _ in 0..LONGEST_GAP_DAYS {
            if self.matches_date(date)
                && let Some(second) = self.next_second(second)
            {
                return Some(date.to_datetime(time_of(second)));
            }
            date = date.tomorrow().ok()?;
            second = 0;
        }
        None
    }

    /// The number of matches from `from` until before `to`. The work grows with the days between the times, and not
    /// with the matches.
    pub(super) fn count(&self, from: DateTime, to: DateTime) -> u64 {
        if to <= from {
            return 0;
        }
        let (first, last) = (from.date(), to.date());
        let before_from = self.rank(second_of(from.time()));
        let before_to = self.rank(second_of(to.time()));
        if first == last {
            return match self.matches_date(first) {
                true => before_to - before_from,
                false => 0,
            };
        }
        let a_day = self.rank(DAY);
        let mut count = match self.matches_date(first) {
            true => a_day - before_from,
            false => 0,
        };
        let mut date = first;
        while let Ok(next) = date.tomorrow() {
            date = next;
            if date >= last {
                break;
            }
            count += if self.matches_date(date) { a_day } else { 0 };
        }
        count += if self.matches_date(last) {
            before_to
        } else {
            0
        };
        count
    }

    /// Whether the time matches.
    pub(super) fn matches(&self, at: DateTime) -> bool {
        self.next(at) == Some(at)
    }

    fn matches_date(&self, date: Date) -> bool {
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        let weekday = date.weekday().to_sunday_zero_offset().unsigned_abs();
        let weekday = Weekday::from_days_from_sunday(u32::from(weekday));
        let month = u32::from(month);
        // croner fails for dates that do not exist.
        self.pattern.month_match(month).unwrap_or(false)
            && self
                .pattern
                .day_match(i32::from(date.year()), month, u32::from(day), weekday)
                .unwrap_or(false)
    }

    /// The first second of the day that matches and is not before this one.
    fn next_second(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let first_minute = first_bit(self.minutes, 0)?;
        let first_second = first_bit(self.seconds, 0)?;
        let same_hour = self.hours >> hour & 1 == 1;
        if same_hour
            && self.minutes >> minute & 1 == 1
            && let Some(second) = first_bit(self.seconds, second)
        {
            return Some(hour * 3600 + minute * 60 + second);
        }
        if same_hour && let Some(minute) = first_bit(self.minutes, minute + 1) {
            return Some(hour * 3600 + minute * 60 + first_second);
        }
        let hour = first_bit(self.hours, hour + 1)?;
        Some(hour * 3600 + first_minute * 60 + first_second)
    }

    /// The number of matches in a day before this second.
    fn rank(&self, second: u32) -> u64 {
        let below = |bits: u64, value: u32| u64::from((bits & ((1 << value) - 1)).count_ones());
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let a_minute = u64::from(self.seconds.count_ones());
        let an_hour = a_minute * u64::from(self.minutes.count_ones());
        let mut rank = below(self.hours, hour) * an_hour;
        if self.hours >> hour & 1 == 1 {
            rank += below(self.minutes, minute) * a_minute;
            if self.minutes >> minute & 1 == 1 {
                rank += below(self.seconds, second);
            }
        }
        rank
    }

    fn is_empty(&self) -> bool {
        self.hours == 0 || self.minutes == 0 || self.seconds == 0
    }

    /// Whether any day matches. After 400 years the calendar begins again.
    fn matches_some_day(&self) -> bool {
        let mut date = jiff::civil::date(2000, 1, 1);
        while date.year() < 2400 {
            if self.matches_date(date) {
                return true;
            }
            let Ok(next) = date.tomorrow() else {
                return false;
            };
            date = next;
        }
        false
    }
}

/// A field and the column of its first character.
struct Field<'a> {
    column: usize,
    text: &'a str,
}

fn fields(text: &str) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    let mut rest = text;
    let mut column = 1;
    loop {
        let trimmed = rest.trim_start();
        column += rest[..rest.len() - trimmed.len()].chars().count();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let (field, after) = trimmed.split_at(end);
        if field.is_empty() {
            return fields;
        }
        fields.push(Field {
            column,
            text: field,
        });
        column += field.chars().count();
        rest = after;
    }
}

fn parse(text: &str) -> Result<CronPattern, String> {
    let parser = CronParser::builder()
        .seconds(Seconds::Optional)
        .year(Year::Disallowed)
        .build();
    let parsed = parser.parse(text).map_err(|error| error.to_string())?;
    Ok(parsed.pattern)
}

/// Finds the field, and the part of a list in it, that croner refuses.
fn locate(text: &str, fields: &[Field<'_>], is_nickname: bool) -> BadExpression {
    let bad = |column: usize, why: String| BadExpression {
        text: text.to_owned(),
        column,
        why,
    };
    if is_nickname {
        let known = "@yearly, @annually, @monthly, @weekly, @daily and @hourly";
        return bad(1, format!("unknown nickname; known are {known}"));
    }
    let count = fields.len();
    if !matches!(count, 5 | 6) {
        let column = match fields.get(6) {
            Some(seventh) => seventh.column,
            None => text.chars().count() + 1,
        };
        let why = "5 fields (minute hour day month weekday) or 6 (seconds first) are expected";
        return bad(column, format!("{why}, and there are {count}"));
    }
    let names = &NAMES[NAMES.len() - count..];
    for (at, field) in fields.iter().enumerate() {
        // The other fields are replaced by ones that are right.
        let alone = |part: &str| {
            let all: Vec<_> = (0..count)
                .map(|n| if n == at { part } else { "*" })
                .collect();
            parse(&all.join(" ")).err()
        };
        let Some(whole) = alone(field.text) else {
            continue;
        };
        let mut column = field.column;
        for part in field.text.split(',') {
            if let Some(why) = alone(part).filter(|_| !part.is_empty()) {
                return bad(column, format!("{}: `{part}`: {why}", names[at]));
            }
            column += part.chars().count() + 1;
        }
        return bad(field.column, format!("{}: {whole}", names[at]));
    }
    let why = parse(text).err().unwrap_or_default();
    bad(1, why)
}

/// The lowest bit that is set and not below `from`.
fn first_bit(bits: u64, from: u32) -> Option<u32> {
    let bits = bits.checked_shr(from)?;
    (bits != 0).then(|| from + bits.trailing_zeros())
}

fn second_of(time: Time) -> u32 {
    let part = |value: i8| u32::from(value.unsigned_abs());
    part(time.hour()) * 3600 + part(time.minute()) * 60 + part(time.second())
}

fn time_of(second: u32) -> Time {
    let part = |value: u32| i8::try_from(value).unwrap_or(0);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Time::new(part(hour), part(minute), part(second), 0).unwrap_or(Time::midnight())
}

const NAMES: [&str; 6] = [
    "seconds",
    "minute",
    "hour",
    "day of month",
    "month",
    "day of week",
];

/// The longest text, in bytes.
const LONGEST: usize = 256;

const DAY: u32 = 86_400;

/// The longest time between two matches: a 29 February on a certain day of the week comes at least every 40 years.
const LONGEST_GAP_DAYS: u32 = 41 * 366;
