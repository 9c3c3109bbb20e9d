//! Times as index pages show them. All known formats can be told apart without knowing the server, except for the order
//! of day and month in a date with slashes.

use crate::range::ListedTime;

/// A time found in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ParsedTime {
    /// A complete time.
    Time(ListedTime),
    /// A date with slashes, whose order of day and month is unknown.
    Slashed(SlashedDate),
}

/// A date `a/b/year`. Other dates on the page can prove the order of day and month.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct SlashedDate {
    /// The first number and the second number.
    pub(super) parts: [u32; 2],
    year: i64,
    clock: TimeOfDay,
}

/// Which of the two numbers is the month.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DateOrder {
    /// Usual in the United States.
    MonthFirst,
    /// Usual nearly everywhere else.
    DayFirst,
}

impl SlashedDate {
    /// The only possible order, if the numbers allow only one.
    pub(super) fn order(self) -> Option<DateOrder> {
        match self.parts {
            [13..=u32::MAX, 1..=12] => Some(DateOrder::DayFirst),
            [1..=12, 13..=u32::MAX] => Some(DateOrder::MonthFirst),
            _ => None,
        }
    }

    /// The time. Without an order, its span reaches from the earlier reading to the later one.
    pub(super) fn time(self, order: Option<DateOrder>) -> Option<ListedTime> {
        let [a, b] = self.parts;
        let month_first = || self.clock.on(days(self.year, a, b)?);
        let day_first = || self.clock.on(days(self.year, b, a)?);
        match order.or(self.order()) {
            Some(DateOrder::MonthFirst) => month_first(),
            Some(DateOrder::DayFirst) => day_first(),
            None => {
                let (one, other) = (month_first()?, day_first()?);
                let (first, last) = if one.seconds <= other.seconds {
                    (one, other)
                } else {
                    (other, one)
                };
                let between = u32::try_from(last.seconds - first.seconds).ok()?;
                Some(ListedTime {
                    span: between + last.span,
                    ..first
                })
            }
        }
    }
}

/// The time at the start of `text`, and its length in bytes.
pub(super) fn at_start(text: &[u8]) -> Option<(ParsedTime, usize)> {
    let mut cursor = Cursor { rest: text };
    let shown = match text.first()? {
        b'0'..=b'9' => cursor.number_first()?,
        b'A'..=b'Z' | b'a'..=b'z' => cursor.word_first()?,
        _ => return None,
    };
    // `2024-02-291` and `29Feb2024x` are something else.
    if cursor.rest.first().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    Some((shown, text.len() - cursor.rest.len()))
}

/// The time at the start of `text`, for structured listings and attributes. A date with slashes is not accepted.
pub(super) fn exact(text: &[u8]) -> Option<ListedTime> {
    match at_start(text.trim_ascii())? {
        (ParsedTime::Time(time), _) => Some(time),
        (ParsedTime::Slashed(_), _) => None,
    }
}

/// A time of day, as precise as the text shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct TimeOfDay {
    /// Seconds since midnight.
    seconds: i64,
    /// See [`ListedTime::span`].
    span: u32,
    /// Offset from UTC in seconds, if the text has a time zone.
    ahead: Option<i64>,
}

impl TimeOfDay {
    const ALL_DAY: Self = Self {
        seconds: 0,
        span: 86_400,
        ahead: None,
    };

    fn on(self, day: i64) -> Option<ListedTime> {
        Some(ListedTime {
            seconds: day * 86_400 + self.seconds - self.ahead.unwrap_or(0),
            span: self.span,
            utc: self.ahead.is_some(),
        })
    }
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn number_first(&mut self) -> Option<ParsedTime> {
        let (first, digits) = self.number(4)?;
        if digits == 4 {
            // 2024-02-29, 2024-Feb-29, 2024/02/29
            let separator = self.one_of(b"-/.")?;
            let month = self.month_or_number()?;
            self.byte(separator)?;
            let (day, _) = self.number(2)?;
            return self.on_day(days(i64::from(first), month, day)?);
        }
        if digits > 2 {
            return None;
        }
        if self.byte(b'/').is_some() {
            let (second, _) = self.number(2)?;
            self.byte(b'/')?;
            let year = self.year()?;
            let clock = self.clock();
            let slashed = SlashedDate {
                parts: [first, second],
                year,
                clock,
            };
            // The day has to exist: in the proven order, or in both orders.
            slashed.time(slashed.order())?;
            return Some(ParsedTime::Slashed(slashed));
        }
        // 29-Feb-2024, 29 Feb 2024, 29Feb2024
        let separator = self.one_of(b"- ");
        let month = self.month()?;
        if let Some(separator) = separator {
            self.byte(separator)?;
        }
        let year = self.year()?;
        self.on_day(days(year, month, first)?)
    }

    fn word_first(&mut self) -> Option<ParsedTime> {
        if self.weekday().is_some() {
            let _ = self.byte(b',');
            self.blanks();
            if self.rest.first()?.is_ascii_digit() {
                return self.number_first();
            }
        }
        // February 29, 2024
        let month = self.month()?;
        self.blanks();
        let (day, _) = self.number(2)?;
        let _ = self.byte(b',');
        self.blanks();
        let year = self.year()?;
        self.on_day(days(year, month, day)?)
    }

    fn on_day(&mut self, day: i64) -> Option<ParsedTime> {
        Some(ParsedTime::Time(self.clock().on(day)?))
    }

    /// The time of day after a date. Text that is no time of day is not consumed, and the date stands for its whole
    /// day.
    fn clock(&mut self) -> TimeOfDay {
        let before = self.rest;
        self.time_of_day_here().unwrap_or_else(|| {
            self.rest = before;
            TimeOfDay::ALL_DAY
        })
    }

    fn time_of_day_here(&mut self) -> Option<TimeOfDay> {
        if self.byte(b'T').is_none() {
            let _ = self.byte(b',');
            let blanks = self.blanks();
            if blanks == 0 {
                return None;
            }
        }
        let (mut hour, _) = self.number(2)?;
        self.byte(b':')?;
        let minute = self.two_digits()?;
        let mut clock = TimeOfDay {
            seconds: 0,
            span: 60,
            ahead: None,
        };
        let mut second = 0;
        if self.byte(b':').is_some() {
            second = self.two_digits()?;
            clock.span = 1;
            if self.byte(b'.').is_some() {
                self.number(9)?;
            }
        }
        let before = self.rest;
        self.blanks();
        // Newer locale data has a narrow no-break space before AM and PM.
        if let Some(rest) = self.rest.strip_prefix("\u{202f}".as_bytes()) {
            self.rest = rest;
        }
        match self.rest.get(..2).map(|half| half.to_ascii_uppercase()) {
            Some(half) if half == b"AM" || half == b"PM" => {
                if !(1..=12).contains(&hour) {
                    return None;
                }
                hour = hour % 12 + if half == b"PM" { 12 } else { 0 };
                self.rest = &self.rest[2..];
            }
            _ => self.rest = before,
        }
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        clock.seconds = i64::from(hour * 3600 + minute * 60 + second);
        clock.ahead = self.zone();
        Some(clock)
    }

    fn zone(&mut self) -> Option<i64> {
        let before = self.rest;
        if self.byte(b'Z').is_some() {
            return Some(0);
        }
        self.blanks();
        for name in [b"GMT", b"UTC"] {
            if let Some(rest) = self.rest.strip_prefix(name) {
                self.rest = rest;
                return Some(0);
            }
        }
        let ahead = self.offset();
        if ahead.is_none() {
            self.rest = before;
        }
        ahead
    }

    /// `+02:00`, `-0330`
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"+-")? {
            b'-' => -1,
            _ => 1,
        };
        let hours = self.two_digits()?;
        let _ = self.byte(b':');
        let minutes = self.two_digits()?;
        (hours <= 15 && minutes <= 59).then(|| sign * i64::from(hours * 3600 + minutes * 60))
    }

    fn year(&mut self) -> Option<i64> {
        let (year, digits) = self.number(4)?;
        (digits == 4).then_some(i64::from(year))
    }

    fn month_or_number(&mut self) -> Option<u32> {
        match self.rest.first()? {
            b'0'..=b'9' => self.number(2).map(|(month, _)| month),
            _ => self.month(),
        }
    }

    /// The name of a month: its first three letters or the full name.
    fn month(&mut self) -> Option<u32> {
        let (index, length) = self.name(&MONTHS)?;
        self.rest = &self.rest[length..];
        Some(index + 1)
    }

    fn weekday(&mut self) -> Option<()> {
        let (_, length) = self.name(&WEEKDAYS)?;
        self.rest = &self.rest[length..];
        Some(())
    }

    fn name(&self, names: &[&str]) -> Option<(u32, usize)> {
        let letters = self.rest.iter().take_while(|b| b.is_ascii_alphabetic());
        let length = letters.count();
        let word = &self.rest[..length];
        let is_word = |name: &&str| {
            (length == 3 || length == name.len())
                && name.as_bytes()[..length].eq_ignore_ascii_case(word)
        };
        if length < 3 {
            return None;
        }
        let index = names
            .iter()
            .position(|name| length <= name.len() && is_word(name))?;
        Some((index as u32, length))
    }

    /// A number of at most `most` digits, and the number of its digits.
    fn number(&mut self, most: usize) -> Option<(u32, usize)> {
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || digits > most {
            return None;
        }
        let value = self.rest[..digits]
            .iter()
            .fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
        self.rest = &self.rest[digits..];
        Some((value, digits))
    }

    fn two_digits(&mut self) -> Option<u32> {
        match *self.rest {
            [a @ b'0'..=b'9', b @ b'0'..=b'9', ref rest @ ..] => {
                self.rest = rest;
                Some(u32::from(a - b'0') * 10 + u32::from(b - b'0'))
            }
            _ => None,
        }
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        bytes.contains(&first).then(|| {
            self.rest = rest;
            first
        })
    }

    fn blanks(&mut self) -> usize {
        let blanks = self.rest.iter().take_while(|&&byte| byte == b' ').count();
        self.rest = &self.rest[blanks..];
        blanks
    }
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days(year: i64, month: u32, day: u32) -> Option<i64> {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let in_month = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=in_month).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day comes last. The m-th month begins on day (153 * m + 2) / 5.
    let year = if month <= 2 { year - 1 } else { year };
    let months = i64::from((month + 9) % 12);
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365 * year + leaps + (153 * months + 2) / 5 + i64::from(day) - 1 - 719_468)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

#[cfg(test)]
mod tests;
