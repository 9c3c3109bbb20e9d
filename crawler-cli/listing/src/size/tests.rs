//! Each inverse function is compared with the arithmetic of the server: the range that is read from a text is exactly
//! the range of sizes that are shown as this text.

use proptest::prelude::*;

use super::*;

/// `apr_strfsize`
fn show_apache(mut size: u64) -> String {
    if size < 973 {
        return format!("{size:3} ");
    }
    for unit in "KMGTPE".chars() {
        let mut rest = size & 1023;
        size >>= 10;
        if size >= 973 {
            continue;
        }
        if size < 9 || (size == 9 && rest < 973) {
            rest = (rest * 5 + 256) / 512;
            if rest >= 10 {
                size += 1;
                rest = 0;
            }
            return format!("{size}.{rest}{unit}");
        }
        if rest >= 512 {
            size += 1;
        }
        return format!("{size:3}{unit}");
    }
    "****".to_owned()
}

/// nginx with `autoindex_exact_size off`.
fn show_nginx(size: u64) -> String {
    let round = |unit: u64| size / unit + u64::from(size % unit > unit / 2 - 1);
    match size {
        0..=9_999 => size.to_string(),
        10_000..=0xF_FFFF => format!("{}K", round(1 << 10)),
        0x10_0000..=0x3FFF_FFFF => format!("{}M", round(1 << 20)),
        _ => format!("{}G", round(1 << 30)),
    }
}

/// fancyindex with `fancyindex_exact_size off`, and nginx's own `%.1f`.
fn show_fancyindex(size: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (0..6).rev().find(|&power| size >> (10 * (power + 1)) > 0);
    let Some(power) = power else {
        return format!("{size} B");
    };
    let value = f64::from(size as f32 / (1u64 << (10 * (power + 1))) as f32);
    let mut whole = value as u64;
    let mut tenths = ((value - whole as f64) * 10.0 + 0.5) as u64;
    if tenths == 10 {
        whole += 1;
        tenths = 0;
    }
    format!("{whole}.{tenths} {}", units[power + 1])
}

/// lighttpd 1.4.69.
fn show_lighttpd(mut size: u64) -> String {
    if size > 0 && size < 100 {
        size += 99;
    }
    for unit in "KMGTPE".chars() {
        let rest = size & 1023;
        size >>= 10;
        if size < 1000 {
            return format!("{size}.{}{unit}", (rest / 100).min(9));
        }
    }
    unreachable!("u64 ends at 16 E")
}

/// webfs 1.21.
fn show_webfs(size: u64) -> String {
    match size {
        _ if size < 9 << 10 => format!("{size:4}  B"),
        _ if size < 9 << 20 => format!("{:4} kB", size >> 10),
        _ if size < 9 << 30 => format!("{:4} MB", size >> 20),
        _ if size < 9 << 40 => format!("{:4} GB", size >> 30),
        _ => format!("{:4} TB", size >> 40),
    }
}

type Show = fn(u64) -> String;

const STYLES: [(Style, Show); 5] = [
    (Style::Apache, show_apache),
    (Style::Nginx, show_nginx),
    (Style::Fancyindex, show_fancyindex),
    (Style::Lighttpd, show_lighttpd),
    (Style::Webfs, show_webfs),
];

fn check(size: u64) {
    for (style, show) in STYLES {
        let text = show(size);
        let read = style.read(text.trim().as_bytes());
        let Some(range) = read else {
            panic!("{style:?} cannot read {text:?}, which is {size}");
        };
        assert!(
            range.lo <= size && size <= range.hi,
            "{style:?} {text:?} is {size}, read as {range:?}"
        );
        // The bounds are shown as the same text; the next sizes beyond the bounds are not.
        assert_eq!(show(range.lo), text, "{style:?} {size} {range:?}");
        assert_eq!(show(range.hi), text, "{style:?} {size} {range:?}");
        if let Some(less) = range.lo.checked_sub(1) {
            assert_ne!(show(less), text, "{style:?} {size} {range:?}");
        }
        if let Some(more) = range.hi.checked_add(1) {
            assert_ne!(show(more), text, "{style:?} {size} {range:?}");
        }
        let by_unknown = Style::Unknown.read(text.trim().as_bytes());
        let Some(range) = by_unknown else {
            panic!("{text:?} is no size");
        };
        // Unknown rules have to cover lighttpd too, whose 0.9 reaches up to 1.0 and whose 0.1K starts at one byte.
        assert!(
            range.lo <= size && size <= range.hi,
            "{style:?} {text:?} is {size}, read by unknown rules as {range:?}"
        );
    }
}

#[test]
fn sizes_around_every_step_are_read_as_their_exact_ranges() {
    for size in 0..20_000 {
        check(size);
    }
    for power in 1..6 {
        let unit = 1u64 << (10 * power);
        for tenths in 0..120u64 {
            let near = (unit / 10) * tenths;
            for off in [0, 1, unit / 20, unit / 20 + 1, unit / 10 - 1] {
                check(near + off);
                check((near + off).saturating_sub(2));
            }
        }
        for whole in [972, 973, 974, 999, 1000, 1001, 1022, 1023, 1024, 9215, 9216] {
            for off in [0, 1, unit / 2 - 1, unit / 2, unit - 1] {
                check(whole * unit + off);
            }
        }
    }
    check(u64::MAX >> 1);
}

proptest! {
    #[test]
    fn ranges_are_never_empty(text in "[0-9.,kKMGTPEiBb ]{0,24}") {
        for style in [Style::Apache, Style::Nginx, Style::Fancyindex, Style::Lighttpd, Style::Webfs, Style::Unknown] {
            if let Some(range) = style.read(text.as_bytes()) {
                prop_assert!(range.lo <= range.hi, "{style:?} {text:?} {range:?}");
            }
        }
    }
}

#[test]
fn sizes_of_unknown_servers_are_read() {
    for (text, lo, hi) in [
        ("1,572,864 bytes", 1_572_864, 1_572_864),
        ("1.572.864", 1_572_864, 1_572_864),
        ("1,234 kB", 1_233_000, 1_264_640),
        ("1.5MB", 1_400_000, 1_677_722),
        ("1,5 MB", 1_400_000, 1_677_722),
        ("2 KiB", 1024, 3072),
        ("1 byte", 1, 1),
    ] {
        let range = Style::Unknown.read(text.as_bytes());
        assert_eq!(range, Some(SizeRange { lo, hi }), "{text}");
    }
    let none =
        "|-|K|1.2.3|1,23,456|12 apples|1.5|1.5 B|1..5K|1.2345K|99999999999999999999|2024-02-29";
    for text in none.split('|') {
        assert_eq!(Style::Unknown.read(text.as_bytes()), None, "{text}");
    }
}
