//! Times as index pages show them. A page has one format of its own, but all are unambiguous together, save whether
//! the day or the month comes first between slashes.

use crate::find::range::ListedTime;

/// A time found in a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shown {
    /// As it says.
    Time(ListedTime),
    /// With two numbers that are day and month in an unknown order.
    Slashed(Slashed),
}

/// `a/b/year`, where the page's other dates tell the order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Slashed {
    /// The first number and the second.
    pub(super) parts: [u32; 2],
    year: i64,
    clock: Clock,
}

/// Which of the two numbers is the month.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// As in the United States.
    MonthFirst,
    /// As nearly everywhere else.
    DayFirst,
}

impl Slashed {
    /// What the order must be, if the numbers tell.
    pub(super) fn order(self) -> Option<Order> {
        match self.parts {
            [13..=u32::MAX, 1..=12] => Some(Order::DayFirst),
            [1..=12, 13..=u32::MAX] => Some(Order::MonthFirst),
            _ => None,
        }
    }

    /// The time, which without the order is any from the one to the other.
    pub(super) fn time(self, order: Option<Order>) -> Option<ListedTime> {
        let [a, b] = self.parts;
        let month_first = || self.clock.on(days(self.year, a, b)?);
        let day_first = || self.clock.on(days(self.year, b, a)?);
        match order.or(self.order()) {
            Some(Order::MonthFirst) => month_first(),
            Some(Order::DayFirst) => day_first(),
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

/// The time that `text` begins with, and how many bytes of it that takes.
pub(super) fn at_start(text: &[u8]) -> Option<(Shown, usize)> {
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

/// The time that the whole of `text` is, if it is to the second and in UTC, as in a structured listing.
pub(super) fn exact(text: &[u8]) -> Option<ListedTime> {
    match at_start(text.trim_ascii())? {
        (Shown::Time(time), _) => Some(time),
        (Shown::Slashed(_), _) => None,
    }
}

/// The time of a day, as far as it is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Clock {
    /// Since midnight.
    seconds: i64,
    span: u32,
    /// What the clock is ahead of UTC, if the text says so.
    ahead: Option<i64>,
}

impl Clock {
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
    fn number_first(&mut self) -> Option<Shown> {
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
            let slashed = Slashed {
                parts: [first, second],
                year,
                clock,
            };
            // No order gives a day that exists.
            slashed.time(slashed.order())?;
            return Some(Shown::Slashed(slashed));
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

    fn word_first(&mut self) -> Option<Shown> {
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
        // `Nov 21 2004:` would be a year that is the hour of another.
        self.on_day(days(year, month, day)?)
    }

    fn on_day(&mut self, day: i64) -> Option<Shown> {
        Some(Shown::Time(self.clock().on(day)?))
    }

    /// The time behind a date. What is none is left, and the date stands for all of its day.
    fn clock(&mut self) -> Clock {
        let before = self.rest;
        self.clock_here().unwrap_or_else(|| {
            self.rest = before;
            Clock::ALL_DAY
        })
    }

    fn clock_here(&mut self) -> Option<Clock> {
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
        let mut clock = Clock {
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
        // Newer locales have a narrow no-break space here.
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

    /// A month's name, three letters of it or all.
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

    /// Up to so many digits, and how many they were.
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
    // Years that begin in March, so that the leap day comes last; day 153 * m / 5 begins the m-th month of them.
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
