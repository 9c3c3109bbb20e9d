//! Numbers, sizes and spans as people read them.

use std::time::Duration;

/// A number and its noun: `1 file`, `2,000 files`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// A number with commas between thousands.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of bytes with a unit that is a power of 1024.
pub fn size(bytes: u64) -> String {
    let mut unit = "B";
    let mut size = bytes as f64;
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 1023.5 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    if unit == "B" || size >= 9.95 {
        format!("{size:.0} {unit}")
    } else {
        format!("{size:.1} {unit}")
    }
}

/// A duration with two or three digits.
pub fn span(span: Duration) -> String {
    let micros = span.as_micros();
    let ms = micros as f64 / 1e3;
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{ms:.1} ms"),
        10_000..1_000_000 => format!("{ms:.0} ms"),
        1_000_000..10_000_000 => format!("{:.2} s", ms / 1e3),
        10_000_000..100_000_000 => format!("{:.1} s", ms / 1e3),
        _ => clock_text(span),
    }
}

/// `1:02`, `1:00:02`
fn clock_text(span: Duration) -> String {
    let (minutes, seconds) = (span.as_secs() / 60, span.as_secs() % 60);
    match minutes / 60 {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{:02}:{seconds:02}", minutes % 60),
    }
}

/// A time span in its largest fitting unit: `45 s`, `12 min`, `3 h`, `2 d`.
pub fn rough_span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", thousands(seconds / 86_400)),
    }
}

/// The name that a misspelled one is for, by the measure that clap has for options.
pub fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let likely = names
        .iter()
        .map(|known| (strsim::jaro(name, known), *known));
    let likely = likely.filter(|(similarity, _)| *similarity > SIMILAR);
    let nearest = likely.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some(nearest.1)
}

/// How similar a name has to be to be offered, from 0 to 1.
const SIMILAR: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10_188, "9.9 KiB"),
            (10_189, "10 KiB"),
            (1_048_063, "1023 KiB"),
            (1_048_064, "1.0 MiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (micros, text) in [
            (999, "999 µs"),
            (1_000, "1.0 ms"),
            (340_000, "340 ms"),
            (1_234_567, "1.23 s"),
            (61_500_000, "61.5 s"),
            (3_723_000_000, "1:02:03"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), text);
        }
    }
}
