//! The fields with times: `Retry-After` and `Date` (RFC 9110 §10.2.3, §6.6.1), and `Keep-Alive`.

use std::time::{Duration, SystemTime};

use courser::policy::retry_after;
use courser::proto::steps::BodyMode;
use courser::{Limits, Request, Response};
use jiff::Timestamp;

use crate::response::asked;

/// The first eight bytes are the current time. The first line after them is a `Retry-After`; the other lines are the
/// `Keep-Alive` fields of one response.
pub fn fields(data: &[u8]) {
    let Some((&now, text)) = data.split_first_chunk() else {
        return;
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from_le_bytes(now) % YEAR_9999);
    let mut lines = text.split(|&byte| byte == b'\n');
    check_date(data, now);
    check_retry_after(lines.next().unwrap_or_default(), now);
    let kept: Vec<&[u8]> = lines.filter(|line| is_field_value(line)).take(8).collect();
    check_keep_alive(&kept);
}

fn check_retry_after(value: &[u8], now: SystemTime) {
    let pause = retry_after(value, Some(now));
    // Blanks around the value do not matter.
    let padded = [b" \t", value, b" "].concat();
    assert_eq!(pause, retry_after(&padded, Some(now)));
    let bare = value.trim_ascii();
    let digits = !bare.is_empty() && bare.iter().all(u8::is_ascii_digit);
    if digits {
        let number = bare.iter().fold(0u64, |number, digit| {
            number
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'))
        });
        assert_eq!(pause, Some(Duration::from_secs(number)));
        assert_eq!(pause, retry_after(value, None), "seconds need no clock");
        return;
    }
    assert_eq!(retry_after(value, None), None, "a date needs a clock");
    if let Some(pause) = pause {
        // A second later, the pause is a second shorter.
        let later = retry_after(value, Some(now + Duration::from_secs(1)));
        assert_eq!(later, Some(pause.saturating_sub(Duration::from_secs(1))));
        assert!(pause < Duration::from_secs(YEAR_9999 + 366 * DAY));
    }
}

/// Each date in the preferred format is read (RFC 9110 §5.6.7). The bytes choose one.
fn check_date(bytes: &[u8], now: SystemTime) {
    let chosen = bytes.iter().fold(0u64, |all, byte| {
        all.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte)
    });
    let at = Timestamp::UNIX_EPOCH + Duration::from_secs(chosen % (YEAR_9999 - DAY));
    let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let left = SystemTime::from(at).duration_since(now).unwrap_or_default();
    assert_eq!(
        retry_after(date.as_bytes(), Some(now)),
        Some(left),
        "{date}"
    );
}

/// Several lines of a field are one list (RFC 9110 §5.3). The first valid `timeout` of the list counts.
fn check_keep_alive(lines: &[&[u8]]) {
    let mut members = lines
        .iter()
        .flat_map(|line| line.split(|&byte| byte == b','));
    let expected = members.find_map(|member| {
        let (name, value) = member.trim_ascii().split_at_checked(8)?;
        let good = name.eq_ignore_ascii_case(b"timeout=") && value.iter().all(u8::is_ascii_digit);
        let text = str::from_utf8(value).ok()?;
        good.then(|| text.parse::<u32>().ok()).flatten()
    });
    assert_eq!(timeout_of(lines), expected);
    if let [first, rest @ ..] = lines {
        let together = rest.iter().fold(first.to_vec(), |mut all, line| {
            all.push(b',');
            all.extend_from_slice(line);
            all
        });
        assert_eq!(timeout_of(&[&together]), expected, "in one line");
    }
}

/// The `timeout` of a response with these `Keep-Alive` lines, in seconds.
fn timeout_of(lines: &[&[u8]]) -> Option<u32> {
    let mut exchange = asked(Request::get("/"), BodyMode::Buffer);
    let mut head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".to_vec();
    for line in lines {
        head.extend_from_slice(b"Keep-Alive: ");
        head.extend_from_slice(line);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    let limits = Limits {
        head_bytes: usize::MAX,
        header_line: usize::MAX,
        ..Limits::default()
    };
    exchange
        .handle_read(&head, &mut Response::new(), &limits)
        .expect("a sound head");
    let timeout = exchange.keep_alive_timeout()?;
    assert_eq!(timeout.subsec_nanos(), 0);
    Some(u32::try_from(timeout.as_secs()).expect("as it was read"))
}

/// Whether this is a valid field value (RFC 9110 §5.5).
fn is_field_value(line: &[u8]) -> bool {
    let text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    line.iter().all(text)
}

const DAY: u64 = 24 * 60 * 60;
/// The last second of the year 9999, the last year that an HTTP date can have.
const YEAR_9999: u64 = 253_402_300_799;
