//! The charts of the HTML reports, as SVG: bars with shares, and latency and answers over time.

use std::cmp::Reverse;
use std::time::Duration;

use maud::{Markup, html};

use super::page::chart;
use super::statistics::{clock_text, thousands};
use super::treemap::px;
use crate::crawl::stats::{HostStats, Slot, Timeline};
use crate::terminal;

/// The classes of answers: the first digit of the status, the label, and the CSS class. Digit 0: no answer.
const CLASSES: [(usize, &str, &str); 5] = [
    (2, "2xx", "s2"),
    (3, "3xx", "s3"),
    (4, "4xx", "s4"),
    (5, "5xx", "s5"),
    (0, "no answer", "s0"),
];

/// A bar for each of the hosts with the most requests: the shares of the classes of answers.
pub(super) fn statuses(hosts: &[HostStats]) -> Markup {
    let mut hosts: Vec<_> = hosts.iter().filter(|host| host.requests > 0).collect();
    hosts.sort_by_key(|host| Reverse(host.requests));
    hosts.truncate(BARS);
    let count = |host: &HostStats, digit: usize| match digit {
        0 => host.statuses[0] + host.statuses[1] + host.statuses[6] + host.failures,
        digit => host.statuses[digit],
    };
    let bars = hosts.into_iter().map(|host| Bar {
        name: &host.name,
        parts: CLASSES.map(|(digit, ..)| count(host, digit)).to_vec(),
        whole: host.requests,
    });
    let parts = CLASSES.map(|(_, name, class)| (name, class));
    shares("Status by host", &parts, &bars.collect::<Vec<_>>())
}

/// A bar of a chart of shares.
pub(super) struct Bar<'a> {
    pub(super) name: &'a str,
    /// The numbers of the parts, in the order of the legend.
    pub(super) parts: Vec<u64>,
    /// The number that the whole width stands for; shown at the end.
    pub(super) whole: u64,
}

/// A bar for each name: the shares of the parts. `legend` has the labels and the CSS classes of the parts.
pub(super) fn shares(label: &str, legend: &[(&str, &str)], bars: &[Bar<'_>]) -> Markup {
    let names: Vec<_> = bars.iter().map(|bar| tail(bar.name, 38)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let left = longest.unwrap_or(0) * 7 + 10;
    html! {
        svg viewBox={ "0 0 1000 " (bars.len() * 30 + 26) } role="img" aria-label=(label) {
            @for (i, (name, class)) in legend.iter().enumerate() {
                @let before: usize = legend[..i].iter().map(|(name, _)| name.chars().count() * 7 + 40).sum();
                (square(left + before, class, name))
            }
            @for (i, (bar, name)) in bars.iter().zip(&names).enumerate() {
                text.end x=(left - 10) y=(26 + i * 30 + 15) { (name) }
                (share(bar, legend, left as f64, 26 + i * 30))
            }
        }
    }
}

/// One bar, and the number that it stands for.
fn share(bar: &Bar<'_>, legend: &[(&str, &str)], left: f64, y: usize) -> Markup {
    let mut x = left;
    let mut parts = Vec::new();
    for (&count, (name, class)) in bar.parts.iter().zip(legend) {
        if count > 0 {
            let width = (count as f64 / bar.whole.max(1) as f64 * (920.0 - left)).max(1.5);
            parts.push((name, class, count, x, width));
            x += width;
        }
    }
    html! {
        @for (name, class, count, x, width) in parts {
            g {
                title { (name) ": " (thousands(count)) }
                rect class=(class) x=(px(x)) y=(y) width=(px(width)) height="21" {}
            }
        }
        text x=(px(x + 7.0)) y=(y + 15) { (thousands(bar.whole)) }
    }
}

/// How fast answers came, and how many, as sections of a page.
pub(super) fn over_time(timeline: &Timeline) -> Markup {
    html! {
        (chart(
            "Latency over time",
            "50 of 100 answers came within P50, 95 of 100 within P95. The scale is logarithmic.",
            "No answers.",
            latency(timeline),
        ))
        (chart(
            "Answers over time",
            "Answers per second. A failure is counted even if a later attempt succeeded.",
            "No answers.",
            answers(timeline),
        ))
    }
}

/// Quantiles of the latency over time; `None` without answers.
fn latency(timeline: &Timeline) -> Option<Markup> {
    let slots = timeline.slots();
    let spans = |quantile: f64| -> Vec<Option<f64>> {
        let span = |slot: &Slot| slot.quantile(quantile);
        let seconds = |span: Duration| span.as_secs_f64().max(1e-5);
        slots.iter().map(|slot| span(slot).map(seconds)).collect()
    };
    let lines = [
        ("P50", "p50", spans(0.5)),
        ("P95", "p95", spans(0.95)),
        ("longest", "most", spans(1.0)),
    ];
    let values = lines.iter().flat_map(|(.., values)| values).flatten();
    let (low, high) = values.fold((f64::MAX, 0.0f64), |(low, high), &value| {
        (low.min(value), high.max(value))
    });
    if high == 0.0 {
        return None;
    }
    // The axis covers whole decades, with lines at 1, 10, 100 ms.
    let low = low.log10().floor();
    let frame = Frame {
        slots: slots.len(),
        low,
        high: high.log10().ceil().max(low + 1.0),
    };
    let decades = (frame.high - frame.low) as u32;
    Some(html! {
        svg viewBox="0 0 1000 260" role="img" aria-label="Latency over time" {
            @for decade in (0..=decades).map(|n| frame.low + f64::from(n)) {
                (frame.rule(decade, &decade_text(decade)))
            }
            (frame.times(timeline.width()))
            // The most important line is drawn last, above the others.
            @for (_, class, values) in lines.iter().rev() {
                (frame.line(values, class))
            }
            @for (i, (name, class, _)) in lines.iter().enumerate() {
                @let x = 70 + i * 65;
                line class=(class) x1=(x) y1="9" x2=(x + 16) y2="9" {}
                text x=(x + 21) y="13" { (name) }
            }
        }
    })
}

/// `100 µs`, `1 ms`
fn decade_text(decade: f64) -> String {
    let (unit, name) = match decade {
        ..-3.0 => (-6.0, "µs"),
        -3.0..0.0 => (-3.0, "ms"),
        _ => (0.0, "s"),
    };
    format!("{:.0} {name}", 10f64.powf(decade - unit))
}

/// Answers and failures per second over time; `None` without either.
fn answers(timeline: &Timeline) -> Option<Markup> {
    let slots = timeline.slots();
    let seconds = timeline.width().as_secs_f64();
    let rate = |count: u64| count as f64 / seconds;
    let most = slots
        .iter()
        .map(|slot| rate(slot.answers.max(slot.failed)))
        .fold(0.0, f64::max);
    if most == 0.0 {
        return None;
    }
    let step = step_of(most / 4.0);
    let steps = (most / step).ceil();
    let frame = Frame {
        slots: slots.len(),
        low: 0.0,
        high: step * steps,
    };
    let text = |value: f64| match step {
        ..1.0 => format!("{value:.2}"),
        _ => thousands(value as u64),
    };
    let width = (frame.x(1.0) - frame.x(0.0)).max(1.0);
    Some(html! {
        svg viewBox="0 0 1000 260" role="img" aria-label="Answers over time" {
            @for value in (0..=steps as u32).map(|n| step * f64::from(n)) {
                (frame.rule(value, &text(value)))
            }
            (frame.times(timeline.width()))
            (square(70, "s2", "answers"))
            (square(150, "s5", "failed"))
            @for (i, slot) in slots.iter().enumerate() {
                @for (count, class, what) in [(slot.answers, "s2", "answers"), (slot.failed, "s5", "failed")] {
                    @if count > 0 {
                        @let y = frame.y(rate(count));
                        g {
                            title { (thousands(count)) " " (what) }
                            rect class=(class) x=(px(frame.x(i as f64))) y=(px(y))
                                width=(px((width - 0.6).max(0.8))) height=(px((frame.y(0.0) - y).max(0.8))) {}
                        }
                    }
                }
            }
        }
    })
}

/// The smallest number of the series …, 0.1, 0.2, 0.5, 1, 2, 5, 10, … that is not less than `least`.
pub(crate) fn step_of(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let of_decade = [1.0, 2.0, 5.0].map(|n| n * decade).into_iter();
    of_decade
        .filter(|step| *step >= least * 0.999)
        .fold(10.0 * decade, f64::min)
}

/// A coloured square and the name of what is drawn in this colour.
fn square(x: usize, class: &str, name: &str) -> Markup {
    html! {
        rect class=(class) x=(x) y="2" width="12" height="12" rx="2" {}
        text x=(x + 17) y="12.5" { (name) }
    }
}

/// The coordinates of a chart over time.
struct Frame {
    slots: usize,
    low: f64,
    high: f64,
}

impl Frame {
    /// The position of a slot, counted from 0.
    fn x(&self, slot: f64) -> f64 {
        70.0 + slot / self.slots.max(1) as f64 * 920.0
    }

    fn y(&self, value: f64) -> f64 {
        230.0 - (value - self.low) / (self.high - self.low) * 205.0
    }

    /// A horizontal line at a value, labelled with the value.
    fn rule(&self, value: f64, text: &str) -> Markup {
        let y = self.y(value);
        html! {
            line.rule x1="70" y1=(px(y)) x2="990" y2=(px(y)) {}
            text.end x="62" y=(px(y + 4.0)) { (text) }
        }
    }

    /// The time axis. `width` is the duration of one slot.
    fn times(&self, width: Duration) -> Markup {
        let whole = width.as_secs_f64() * self.slots as f64;
        let long = TIME_STEPS.into_iter().find(|step| whole / step <= 6.0);
        let step = match whole {
            ..60.0 => step_of(whole / 6.0),
            _ => long.unwrap_or_else(|| DAY * (whole / DAY / 6.0).ceil()),
        };
        let text = |at: f64| match () {
            () if at == 0.0 => "0".to_owned(),
            () if step < 1.0 => format!("{:.0} ms", at * 1e3),
            () if whole < 60.0 => format!("{at:.0} s"),
            () => clock_text(Duration::from_secs_f64(at)),
        };
        let anchor = |at: f64, x: f64| match () {
            () if at == 0.0 => None,
            // A centred label would cross the right edge.
            () if x > 975.0 => Some("end"),
            () => Some("mid"),
        };
        html! {
            @for at in (0..=(whole / step) as u32).map(|n| step * f64::from(n)) {
                @let x = 70.0 + at / whole * 920.0;
                text class=[anchor(at, x)] x=(px(x)) y="250" { (text(at)) }
            }
        }
    }

    /// A line through values in seconds, on a logarithmic scale. A slot without a value has no point.
    fn line(&self, values: &[Option<f64>], class: &str) -> Markup {
        let points = values.iter().enumerate().filter_map(|(i, value)| {
            let y = self.y(value.as_ref()?.log10());
            Some((px(self.x(i as f64 + 0.5)), px(y)))
        });
        let points: Vec<_> = points.collect();
        let text = || {
            let pairs = points.iter().map(|(x, y)| format!("{x},{y}"));
            pairs.collect::<Vec<_>>().join(" ")
        };
        html! {
            @match points.as_slice() {
                // A polyline of one point is invisible.
                [(x, y)] => circle class=(class) cx=(x) cy=(y) r="3" {},
                _ => polyline class=(class) points=(text()) {},
            }
        }
    }
}

/// At most the last `most` characters of a name.
fn tail(text: &str, most: usize) -> String {
    let text = terminal::neutralise(text);
    let length = text.chars().count();
    if length <= most {
        return text.into_owned();
    }
    let kept: String = text.chars().skip(length - most + 1).collect();
    format!("…{kept}")
}

/// Steps of a time axis of a minute or more, in seconds.
const TIME_STEPS: [f64; 12] = [
    10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0,
];
const DAY: f64 = 86400.0;

/// The largest number of bars in a chart of shares.
pub(super) const BARS: usize = 20;
