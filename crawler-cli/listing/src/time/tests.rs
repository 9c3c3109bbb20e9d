//! Every time format, and texts that are not times.

use super::*;
use std::time::{Duration, UNIX_EPOCH};

/// 2024-02-29T23:59:00Z
const LEAP: i64 = 1_709_251_140;

fn time(text: &str) -> Option<(i64, u32, bool)> {
    match at_start(text.as_bytes())? {
        (ParsedTime::Time(time), _) => Some((time.seconds, time.span, time.utc)),
        (ParsedTime::Slashed(_), _) => None,
    }
}

#[test]
fn every_format_is_read() {
    for (text, off, span, utc) in [
        ("2024-02-29 23:59", 0, 60, false),
        ("2024-02-29 23:59  1.0K", 0, 60, false),
        ("29-Feb-2024 23:59", 0, 60, false),
        ("29-Feb-2024 23:59                   -", 0, 60, false),
        ("2024-Feb-29 23:59:58", 58, 1, false),
        ("2024-Feb-29 23:59", 0, 60, false),
        ("2024/02/29 23:59", 0, 60, false),
        ("29Feb2024 23:59      3", 0, 60, false),
        ("29 Feb 2024 23:59", 0, 60, false),
        ("Feb 29, 2024, 11:59:58 PM\u{a0}", 58, 1, false),
        ("Feb 29, 2024, 11:59:58\u{202f}PM", 58, 1, false),
        ("Thursday, February 29, 2024 11:59 PM", 0, 60, false),
        ("Thursday, February 29, 2024  11:59 PM", 0, 60, false),
        ("Thu, 29 Feb 2024 23:59:58 GMT", 58, 1, true),
        ("2024-02-29T23:59:58Z", 58, 1, true),
        ("2024-02-29T23:59:58.123Z", 58, 1, true),
        ("2024-03-01T01:29:58.000+01:30", 58, 1, true),
        ("2024-02-29 18:59:58 -0500", 58, 1, true),
        ("2024-02-29 23:59 UTC", 0, 60, true),
        ("2024-02-29", -86_340, 86_400, false),
        ("Feb 29  2024    3  B", -86_340, 86_400, false),
        ("2024-02-29 K", -86_340, 86_400, false),
        ("2024-02-29 25:00", -86_340, 86_400, false),
    ] {
        assert_eq!(time(text), Some((LEAP + off, span, utc)), "{text}");
    }
}

#[test]
fn other_texts_are_not_read() {
    let texts = "|-|12|2023-02-29|2024-13-01|2024-02-291|2024-02|Nov 21 02:04|29-Feb-24 23:59|Febr 29, 2024|1.0K|2024.5|May|\
        Sunday|31-Apr-2024 00:00|Mars 3, 2024|13/13/2024|1/1/24";
    for text in texts.split('|') {
        assert_eq!(at_start(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn dates_with_slashes_need_an_order() {
    let slashed = |text: &str| match at_start(text.as_bytes()) {
        Some((ParsedTime::Slashed(slashed), _)) => slashed,
        other => panic!("{text} is {other:?}"),
    };
    let time = |text, order| {
        let time = slashed(text).time(order);
        time.map(|time| (time.seconds, time.span))
    };
    let either = "6/12/2014  3:25 AM";
    let (june, december) = (1_402_543_500, 1_417_836_300);
    let of_both = (december - june) as u32 + 60;
    assert_eq!(slashed(either).order(), None);
    assert_eq!(time(either, Some(DateOrder::MonthFirst)), Some((june, 60)));
    assert_eq!(
        time(either, Some(DateOrder::DayFirst)),
        Some((december, 60))
    );
    assert_eq!(time(either, None), Some((june, of_both)));
    assert_eq!(slashed("2/29/2024").order(), Some(DateOrder::MonthFirst));
    assert_eq!(slashed("29/2/2024").order(), Some(DateOrder::DayFirst));
    let noon = LEAP - 86_340 + 43_200;
    assert_eq!(time("2/29/2024 12:00 PM", None), Some((noon, 60)));
}

#[test]
fn days_agree_with_the_calendar() {
    for day in (0..60_000).step_by(17) {
        let moment = UNIX_EPOCH + Duration::from_secs(day * 86_400);
        let text = httpdate::fmt_http_date(moment);
        assert_eq!(time(&text), Some((day as i64 * 86_400, 1, true)), "{text}");
    }
    assert_eq!(days(1969, 12, 31), Some(-1));
    assert_eq!(days(0, 1, 1), Some(-719_528));
    assert_eq!(days(1900, 2, 29), None);
}
