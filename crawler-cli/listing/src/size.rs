//! Sizes as index pages show them, read as the range of sizes that the text can stand for. Each server rounds in its
//! own way, so each has its own inverse function here. Each range is as narrow as the text allows.

use crate::range::SizeRange;

/// How a server writes sizes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// Apache's `apr_strfsize`: exact below 973; larger sizes are rounded to the nearest, with one decimal below 10.
    Apache,
    /// nginx with `autoindex_exact_size off`: no decimals, rounded to the nearest; exact up to 9999.
    Nginx,
    /// fancyindex with `fancyindex_exact_size off`: `1.5 MiB`, one decimal of a 32-bit float, rounded to the nearest.
    Fancyindex,
    /// lighttpd: one decimal, which counts hundreds of the next smaller unit, rounded down.
    Lighttpd,
    /// webfs: no decimals, rounded down; a unit is used from nine of it on.
    Webfs,
    /// Unknown rules: rounded in any direction, units of 1000 or of 1024.
    Unknown,
}

impl Style {
    /// Reads `text`, which is one size and nothing else.
    pub(super) fn read(self, text: &[u8]) -> Option<SizeRange> {
        let shown = Number::read(text)?;
        if shown.unit == Unit::Bytes {
            return (shown.decimals == 0).then(|| SizeRange::exact(shown.digits));
        }
        let known = match self {
            Self::Apache => apache(shown),
            Self::Nginx => nginx(shown),
            Self::Fancyindex => fancyindex(shown),
            Self::Lighttpd => lighttpd(shown),
            Self::Webfs => webfs(shown),
            Self::Unknown => None,
        };
        // The server cannot have written this text, so the page only resembles its pages.
        known.or_else(|| unknown(shown))
    }
}

/// A number with a unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Number {
    /// The digits without the decimal point.
    digits: u64,
    /// How many of the digits are decimals.
    decimals: u32,
    unit: Unit,
    /// The power of the unit: 0 for bytes, 1 for K, 2 for M.
    power: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    /// No unit, `B`, `bytes`.
    Bytes,
    /// `K`, `kB`: powers of 1000 or of 1024.
    Either,
    /// `KiB`: powers of 1024.
    Binary,
}

impl Number {
    fn read(text: &[u8]) -> Option<Self> {
        // Fast path: the most common form, and the only one on most pages.
        if text.len() < 19 && text.iter().all(u8::is_ascii_digit) && !text.is_empty() {
            return Some(Self {
                digits: decimal(text)?,
                decimals: 0,
                unit: Unit::Bytes,
                power: 0,
            });
        }
        let end = text
            .iter()
            .position(|byte| !(byte.is_ascii_digit() || b".,'".contains(byte)))
            .unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let (unit, power) = unit(rest.trim_ascii())?;
        let (digits, decimals) = if unit == Unit::Bytes {
            (grouped(number)?, 0)
        } else {
            with_decimals(number)?
        };
        Some(Self {
            digits,
            decimals,
            unit,
            power,
        })
    }

    /// The whole number and, if there is one, its decimal. `None` with more than one decimal.
    fn tenths(self) -> Option<(u64, Option<u64>)> {
        match self.decimals {
            0 => Some((self.digits, None)),
            1 => Some((self.digits / 10, Some(self.digits % 10))),
            _ => None,
        }
    }
}

fn unit(text: &[u8]) -> Option<(Unit, u32)> {
    let Some((&first, rest)) = text.split_first() else {
        return Some((Unit::Bytes, 0));
    };
    let power = match first.to_ascii_uppercase() {
        b'B' => {
            let is_bytes = [&b""[..], b"yte", b"ytes"]
                .iter()
                .any(|end| rest.eq_ignore_ascii_case(end));
            return is_bytes.then_some((Unit::Bytes, 0));
        }
        b'K' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        b'P' => 5,
        b'E' => 6,
        _ => return None,
    };
    match rest {
        b"" | b"B" | b"b" => Some((Unit::Either, power)),
        b"iB" | b"ib" | b"i" => Some((Unit::Binary, power)),
        _ => None,
    }
}

/// Digits, with or without separators between groups of three.
fn grouped(number: &[u8]) -> Option<u64> {
    let Some(separator) = number.iter().copied().find(|byte| !byte.is_ascii_digit()) else {
        return decimal(number);
    };
    let mut digits = Vec::with_capacity(number.len());
    for (i, group) in number.split(|&byte| byte == separator).enumerate() {
        let is_group = if i == 0 {
            (1..=3).contains(&group.len())
        } else {
            group.len() == 3
        };
        if !is_group {
            return None;
        }
        digits.extend_from_slice(group);
    }
    decimal(&digits)
}

/// Digits with a decimal point or decimal comma; also returns the number of decimals.
fn with_decimals(number: &[u8]) -> Option<(u64, u32)> {
    let Some(at) = number.iter().position(|byte| b".,".contains(byte)) else {
        return Some((decimal(number)?, 0));
    };
    let (whole, point_and_fraction) = number.split_at(at);
    let fraction = &point_and_fraction[1..];
    if fraction.is_empty() || fraction.len() > 3 {
        return None;
    }
    // In `1,234 kB` the comma is taken for a group separator.
    if point_and_fraction[0] == b',' && fraction.len() == 3 {
        return Some((grouped(number)?, 0));
    }
    let digits = decimal(&[whole, fraction].concat())?;
    Some((digits, fraction.len() as u32))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// `apr_strfsize` drops everything below the next smaller unit, rounds the rest, and shows 973 and more in the next
/// larger unit. Here and in `lighttpd`, `lo` and `hi` count the next smaller unit.
fn apache(shown: Number) -> Option<SizeRange> {
    let (lo, hi) = match shown.tenths()? {
        (0, Some(_)) => return None,
        (whole @ 1..=9, Some(tenths)) => {
            // Decimals are rounded as (5 * rest + 256) / 512; 9.95 and more is shown without a decimal.
            let first = (512 * tenths).saturating_sub(256).div_ceil(5);
            let last = (512 * tenths + 255) / 5;
            let lo = if tenths == 0 {
                (whole - 1) * K + 973
            } else {
                whole * K + first
            };
            let most = if whole == 9 { 972 } else { 1023 };
            (lo, whole * K + last.min(most))
        }
        (10, None) => (9 * K + 973, 10 * K + 511),
        (whole @ 11..=972, None) => ((whole - 1) * K + 512, whole * K + 511),
        (973, None) => (972 * K + 512, 972 * K + 1023),
        _ => return None,
    };
    whole_units(lo, hi, shown.power)
}

fn nginx(shown: Number) -> Option<SizeRange> {
    let unit = 1u64 << (10 * shown.power);
    let (least, most) = match shown.power {
        1 => (10_000, (1 << 20) - 1),
        2 => (1 << 20, (1 << 30) - 1),
        3 => (1 << 30, u64::MAX),
        _ => return None,
    };
    if shown.decimals != 0 {
        return None;
    }
    let middle = shown.digits.checked_mul(unit)?;
    let lo = middle.saturating_sub(unit / 2).max(least);
    let hi = middle.saturating_add(unit / 2 - 1).min(most);
    (lo <= hi).then_some(SizeRange { lo, hi })
}

/// fancyindex divides the size as a 32-bit float, whose precision is 24 bits: for large files the shown decimal differs
/// slightly from that of the true size. So the bounds are searched for with the same arithmetic.
fn fancyindex(shown: Number) -> Option<SizeRange> {
    let (whole, tenths) = shown.tenths()?;
    let wanted = whole.checked_mul(10)?.checked_add(tenths?)?;
    let unit = 1u64 << (10 * shown.power);
    let most = unit.checked_mul(K).map_or(u64::MAX, |next| next - 1);
    let tenths_of = |size: u64| {
        let shown = f64::from(size as f32 / unit as f32);
        let whole = shown as u64;
        whole * 10 + ((shown - whole as f64) * 10.0 + 0.5) as u64
    };
    let lo = first_where(unit, most, |size| tenths_of(size) >= wanted)?;
    let hi = first_where(lo, most, |size| tenths_of(size) > wanted).map_or(most, |next| next - 1);
    (tenths_of(lo) == wanted).then_some(SizeRange { lo, hi })
}

/// The first number of `lo..=hi` for which `holds`, by binary search: `holds` is true for every larger number too.
fn first_where(mut lo: u64, mut hi: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(hi) {
        return None;
    }
    while lo < hi {
        let middle = lo + (hi - lo) / 2;
        if holds(middle) {
            hi = middle;
        } else {
            lo = middle + 1;
        }
    }
    Some(lo)
}

fn lighttpd(shown: Number) -> Option<SizeRange> {
    let (whole, Some(tenths)) = shown.tenths()? else {
        return None;
    };
    if whole >= 1000 {
        return None;
    }
    match (whole, tenths, shown.power) {
        (0, 0, 1) => return Some(SizeRange::exact(0)),
        // 1 to 99 bytes are shown as 100 bytes.
        (0, 1, 1) => return Some(SizeRange { lo: 1, hi: 199 }),
        _ => {}
    }
    let hundreds = whole * K + 100 * tenths;
    // 1000 to 1023 of the smaller unit would be ten hundreds; lighttpd shows 9.
    let hi = if tenths == 9 {
        whole * K + 1023
    } else {
        hundreds + 99
    };
    // A larger unit is used from 1000 of the smaller one.
    let lo = if shown.power > 1 {
        hundreds.max(1000)
    } else {
        hundreds
    };
    (lo <= hi).then(|| whole_units(lo, hi, shown.power))?
}

fn webfs(shown: Number) -> Option<SizeRange> {
    if shown.decimals != 0 {
        return None;
    }
    let unit = 1u64.checked_shl(10 * shown.power)?;
    let lo = shown.digits.checked_mul(unit)?;
    let hi = lo.saturating_add(unit - 1);
    let most = match shown.power {
        1..=3 => 9 * K * unit - 1,
        _ => u64::MAX,
    };
    let (lo, hi) = (lo.max(9 * unit), hi.min(most));
    (lo <= hi).then_some(SizeRange { lo, hi })
}

fn unknown(shown: Number) -> Option<SizeRange> {
    let scale = 10u128.pow(shown.decimals);
    let small = match shown.unit {
        Unit::Binary => K,
        Unit::Either | Unit::Bytes => 1000,
    };
    let unit = |base: u64| u128::from(base).pow(shown.power);
    let digits = u128::from(shown.digits);
    let lo = digits.saturating_sub(1) * unit(small) / scale;
    let hi = ((digits + 1) * unit(K)).div_ceil(scale);
    let whole = |size: u128| u64::try_from(size).unwrap_or(u64::MAX);
    Some(SizeRange {
        lo: whole(lo),
        hi: whole(hi),
    })
}

/// Converts `lo` and `hi` to bytes; both count the unit of `power - 1`.
fn whole_units(lo: u64, hi: u64, power: u32) -> Option<SizeRange> {
    let shift = 10 * power.checked_sub(1)?;
    let bytes = |count: u64| u128::from(count) << shift;
    let whole = |size: u128| u64::try_from(size).unwrap_or(u64::MAX);
    Some(SizeRange {
        lo: whole(bytes(lo)),
        hi: whole(bytes(hi + 1) - 1),
    })
}

const K: u64 = 1024;

#[cfg(test)]
mod tests;
