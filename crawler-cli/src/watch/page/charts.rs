//! How the figures went, as SVG. Each value stands for the span of time before it; where there is none, nothing is drawn.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::report::charts::step_of;
use crate::report::treemap::px;
use crate::watch::series::Sample;

/// The samples of a range of time, oldest first.
pub(super) struct Range {
    pub(super) samples: Vec<(Timestamp, Sample)>,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// A chart of some values over time.
pub(super) struct Chart<'a> {
    pub(super) heading: &'a str,
    /// The names and CSS classes of the values.
    pub(super) lines: Vec<(&'a str, String)>,
    /// The values of a sample, in the order of the lines.
    pub(super) values: fn(&Sample) -> Vec<f64>,
    pub(super) text: fn(f64) -> String,
    /// Whether the values are drawn upon one another, as areas.
    pub(super) is_stacked: bool,
}

impl Chart<'_> {
    /// The chart, its legend with the last values, and its numbers as a table.
    pub(super) fn drawn(&self, range: &Range) -> Markup {
        let samples = range.samples.iter();
        let rows: Vec<(Timestamp, u32, Vec<f64>)> = samples
            .map(|(at, sample)| (*at, sample.seconds, (self.values)(sample)))
            .collect();
        let last = rows.last().map(|(.., values)| values.clone());
        let now = |line: usize| {
            last.as_ref()
                .and_then(|values| values.get(line))
                .map(|value| (self.text)(*value))
        };
        let names: Vec<String> = self
            .lines
            .iter()
            .enumerate()
            .map(|(line, (name, _))| {
                format!(
                    "{name} {}",
                    now(line).unwrap_or_else(|| "unknown".to_owned())
                )
            })
            .collect();
        let label = format!("{}: {}", self.heading, names.join(", "));
        html! {
            figure.chart {
                figcaption { h3 { (self.heading) } p.legend {
                    @for (line, (name, class)) in self.lines.iter().enumerate() {
                        span class={ "key " (class) } { (name) @if let Some(now) = now(line) { " " b { (now) } } }
                    }
                } }
                @if rows.is_empty() { p.empty { "No samples yet: there is one each 10 seconds." } }
                @else {
                    (self.svg(range, &rows, &label))
                    (self.numbers(&rows))
                }
            }
        }
    }

    fn svg(&self, range: &Range, rows: &[(Timestamp, u32, Vec<f64>)], label: &str) -> Markup {
        let height = |values: &[f64]| match self.is_stacked {
            true => values.iter().sum(),
            false => values.iter().copied().fold(0.0, f64::max),
        };
        let most = rows
            .iter()
            .map(|(.., values)| height(values))
            .fold(0.0, f64::max)
            .max(1e-9);
        let step = step_of(most / 3.0);
        let steps = (most / step).ceil().max(1.0);
        let whole = range
            .until
            .duration_since(range.from)
            .as_secs_f64()
            .max(1.0);
        let x = |at: Timestamp| {
            let share = at.duration_since(range.from).as_secs_f64() / whole;
            LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT)
        };
        let y = |value: f64| BOTTOM - value / (step * steps) * (BOTTOM - TOP);
        html! {
            svg viewBox="0 0 600 170" role="img" aria-label=(label) {
                @for value in (0..=steps as u32).map(|n| step * f64::from(n)) {
                    line.rule x1=(px(LEFT)) y1=(px(y(value))) x2=(px(WIDTH)) y2=(px(y(value))) {}
                    text.end x=(px(LEFT - 6.0)) y=(px(y(value) + 4.0)) { ((self.text)(value)) }
                }
                @for line in (0..self.lines.len()).rev() {
                    @let (_, class) = &self.lines[line];
                    @let path = self.path(line, rows, &x, &y);
                    path class={ @if self.is_stacked { "area " } @else { "line " } (class) } d=(path) {}
                }
                @for (part, anchor) in [(0, "start"), (1, "mid"), (2, "mid"), (3, "end")] {
                    @let at = range.from + SignedDuration::from_secs_f64(whole / 3.0 * f64::from(part));
                    text class=(anchor) x=(px(x(at))) y="166" { (clock(at, whole)) }
                }
            }
        }
    }

    /// Steps, one for each sample; a new line after a gap.
    fn path(
        &self,
        line: usize,
        rows: &[(Timestamp, u32, Vec<f64>)],
        x: &dyn Fn(Timestamp) -> f64,
        y: &dyn Fn(f64) -> f64,
    ) -> String {
        let mut path = String::new();
        let mut end: Option<f64> = None;
        for (at, seconds, values) in rows {
            let value = match self.is_stacked {
                true => values.iter().take(line + 1).sum(),
                false => values.get(line).copied().unwrap_or(0.0),
            };
            let (to, top) = (x(*at), y(value));
            let from = x(*at - SignedDuration::from_secs(i64::from(*seconds)));
            // Samples are taken a little late.
            let from = end
                .filter(|end| (from - end).abs() < 1.5 * (to - from).max(1.0))
                .unwrap_or(from);
            path += &match (self.is_stacked, end == Some(from)) {
                (true, _) => format!(
                    "M{} {}V{}H{}V{}Z",
                    px(from),
                    px(BOTTOM),
                    px(top),
                    px(to),
                    px(BOTTOM)
                ),
                (false, true) => format!("V{}H{}", px(top), px(to)),
                (false, false) => format!("M{} {}H{}", px(from), px(top), px(to)),
            };
            end = Some(to);
        }
        path
    }

    fn numbers(&self, rows: &[(Timestamp, u32, Vec<f64>)]) -> Markup {
        let each = rows.len().div_ceil(NUMBERS).max(1);
        html! {
            details id={ "numbers-" (self.heading.replace(' ', "-")) } {
                summary { "Numbers" }
                table {
                    thead { tr { th scope="col" { "Until" } @for (name, _) in &self.lines { th.n scope="col" { (name) } } } }
                    tbody {
                        @for (at, _, values) in rows.iter().rev().step_by(each) {
                            tr {
                                th scope="row" { (at.strftime("%m-%d %H:%M:%SZ").to_string()) }
                                @for value in values { td.n { ((self.text)(*value)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A time below a chart of so many seconds.
fn clock(at: Timestamp, whole: f64) -> String {
    let form = if whole > 172_800.0 { "%m-%d" } else { "%H:%MZ" };
    at.strftime(form).to_string()
}

const WIDTH: f64 = 596.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 148.0;
/// How many rows the table of a chart has.
const NUMBERS: usize = 12;
