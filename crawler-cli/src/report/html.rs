//! `--report html FILE`: one page that needs nothing else, neither scripts nor anything from elsewhere, with charts as
//! SVG. What comes from servers is escaped; its amount is bounded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::describe;
use super::statistics::{
    Spent, by_slowness, classes_text, clock_text, connections_text, count, latency_text, size_text,
    span_text, summary_text, thousands,
};
use super::treemap::{HUES, Sizes};
use crate::crawl::stats::{HostStats, Stats, Timeline};
use crate::find::download::DownloadCounts;
use crate::find::{Ending, Follow, Summary};
use crate::find::{Found, Unread};
use crate::terminal;

/// What the page needs beside the figures.
#[derive(Debug)]
pub(super) struct Page {
    path: PathBuf,
    sizes: Sizes,
    /// The largest files, the smallest of them first out: about how many bytes, the URL, and whether it is known exactly.
    largest: BinaryHeap<Reverse<(u64, Reverse<String>, bool)>>,
    /// URLs and causes.
    unread: Vec<(String, String)>,
    more_unread: u64,
}

impl Page {
    /// A page for this file, which is made now if it is not there, so that an error does not come at the end.
    pub(super) fn new(path: PathBuf) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self {
            path,
            sizes: Sizes::new(MOST_APART),
            largest: BinaryHeap::new(),
            unread: Vec::new(),
            more_unread: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn found(&mut self, found: &Found<'_>) {
        self.sizes.add(found);
        if let Some(size) = found.size {
            let least = self.largest.peek().map_or(0, |Reverse((bytes, ..))| *bytes);
            if self.largest.len() < LARGEST || size.middle() > least {
                let url = Reverse(found.url.to_owned());
                let file = (size.middle(), url, size.known().is_some());
                self.largest.push(Reverse(file));
            }
            if self.largest.len() > LARGEST {
                self.largest.pop();
            }
        }
    }

    pub(super) fn unread(&mut self, unread: &Unread<'_>) {
        if self.unread.len() < MOST_UNREAD {
            let cause = describe(unread.cause);
            self.unread.push((unread.url.to_owned(), cause));
        } else {
            self.more_unread += 1;
        }
    }

    pub(super) fn write(&self, summary: &Summary) -> io::Result<()> {
        let made = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC");
        fs::write(&self.path, self.html(summary, &made.to_string()))
    }

    /// `made` is the time of the report.
    fn html(&self, summary: &Summary, made: &str) -> String {
        let stats = &summary.stats;
        let title = title(stats.hosts());
        let mut page = Html(format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title><style>{STYLE}{}</style></head>\n<body><main>\n",
            hues(),
            title = escape(&title),
        ));
        page.add(&format!(
            "<header><h1>{}</h1><p>{} · crawler-cli find {} · {}</p></header>\n",
            escape(&title),
            state(summary),
            env!("CARGO_PKG_VERSION"),
            escape(made),
        ));
        if summary.resumed {
            page.add("<p>An earlier run was gone on with. Charts, latencies, hosts, files and URLs are of the last run alone.</p>\n");
        }
        page.tiles(summary);
        let by = if self.sizes.has_sizes() {
            "Sizes"
        } else {
            "Files"
        };
        page.chart(
            &format!("{by} by directory"),
            "Of what was found. Point at a rectangle for its path.",
            "No files were found.",
            self.sizes.svg(1000.0, 460.0),
        );
        page.chart(
            "Latency over time",
            "Half of the answers came within P50, 95 of 100 within P95. The scale is logarithmic.",
            "No answers.",
            latency_chart(stats.timeline()),
        );
        page.chart(
            "Answers over time",
            "How many there were in a second. What failed is counted even if a later attempt made it good.",
            "No answers.",
            answers_chart(stats.timeline()),
        );
        page.section(
            "Status by host",
            &format!(
                "Shares of the requests, whose number is at the end.{}",
                match stats.hosts().len() {
                    0..=BARS => "",
                    _ => " Of the hosts with most requests.",
                }
            ),
            &status_chart(stats.hosts()),
        );
        page.section("Summary", "", &summary_table(summary));
        page.section("Hosts", "The slowest first.", &hosts_table(stats));
        if summary.downloads.wanted > 0 {
            page.section("Downloads", "", &downloads_table(&summary.downloads));
        }
        if !self.largest.is_empty() {
            page.section("Largest files", "", &self.largest_table());
        }
        page.section(
            &format!("Not read: {}", thousands(summary.counts.unread)),
            "",
            &self.unread_table(summary),
        );
        page.add("</main></body></html>\n");
        page.0
    }

    fn largest_table(&self) -> String {
        let mut files: Vec<_> = self.largest.iter().map(|Reverse(file)| file).collect();
        files.sort_by(|a, b| b.cmp(a));
        let mut table = String::from(
            "<table><thead><tr><th>URL</th><th class=\"n\">Size</th></tr></thead><tbody>",
        );
        for (bytes, Reverse(url), is_exact) in files {
            // Writing to a string does not fail.
            let _ = write!(
                table,
                "<tr><td>{}</td><td class=\"n\">{}{}</td></tr>",
                link(url),
                if *is_exact { "" } else { "~" },
                size_text(*bytes)
            );
        }
        table + "</tbody></table>"
    }

    fn unread_table(&self, summary: &Summary) -> String {
        if self.unread.is_empty() {
            return match summary.is_complete() {
                true => "<p class=\"good\">Everything was read.</p>".to_owned(),
                false => "<p>The search ended before everything was read.</p>".to_owned(),
            };
        }
        let mut table =
            String::from("<table><thead><tr><th>URL</th><th>Cause</th></tr></thead><tbody>");
        for (url, cause) in &self.unread {
            let _ = write!(
                table,
                "<tr><td>{}</td><td>{}</td></tr>",
                link(url),
                escape(cause)
            );
        }
        table.push_str("</tbody></table>");
        if self.more_unread > 0 {
            let more = thousands(self.more_unread);
            let _ = write!(table, "<p>And {more} more, which standard error named.</p>");
        }
        table
    }
}

/// A page under way.
struct Html(String);

impl Html {
    fn add(&mut self, html: &str) {
        self.0.push_str(html);
    }

    fn section(&mut self, heading: &str, note: &str, content: &str) {
        self.add(&format!("<section><h2>{heading}</h2>"));
        if !note.is_empty() {
            self.add(&format!("<p>{note}</p>"));
        }
        if !content.is_empty() {
            self.add(&format!("<div class=\"scroll\">{content}</div>"));
        }
        self.add("</section>\n");
    }

    /// A section with a chart, or what is said in place of one.
    fn chart(&mut self, heading: &str, note: &str, nothing: &str, svg: Option<String>) {
        match svg {
            Some(svg) => self.section(heading, note, &svg),
            None => self.section(heading, nothing, ""),
        }
    }

    fn tiles(&mut self, summary: &Summary) {
        let (counts, stats) = (&summary.counts, &summary.stats);
        let at = |q| {
            let latency = Some(stats.latency()).filter(|latency| latency.count() > 0);
            latency.map_or_else(|| "–".to_owned(), |latency| span_text(latency.quantile(q)))
        };
        let read = match summary.follow {
            Follow::Listings => "directories",
            Follow::Pages => "pages",
        };
        self.add("<section class=\"tiles\">");
        for (name, value, bad) in [
            ("found", thousands(summary.matched), false),
            ("files", thousands(counts.files), false),
            (read, thousands(counts.directories), false),
            ("not read", thousands(counts.unread), counts.unread > 0),
            ("time", span_text(summary.elapsed), false),
            (
                "requests/s",
                thousands(summary.requests_per_second()),
                false,
            ),
            ("received", size_text(stats.bytes()), false),
            ("P50", at(0.5), false),
            ("P95", at(0.95), false),
            ("P99", at(0.99), false),
        ] {
            let class = if bad { " class=\"bad\"" } else { "" };
            self.add(&format!(
                "<div{class}><b>{value}</b><span>{name}</span></div>"
            ));
        }
        self.add("</section>\n");
    }
}

fn title(hosts: &[HostStats]) -> String {
    match hosts {
        [] => "No host".to_owned(),
        [host] => host.name.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.name, rest.len()),
    }
}

fn state(summary: &Summary) -> &'static str {
    match summary.ending {
        Ending::Stopped => "stopped early",
        Ending::Quit => "ended by -quit",
        Ending::Finished if summary.counts.unread > 0 => "finished, not everything was read",
        Ending::Finished => "complete",
    }
}

fn summary_table(summary: &Summary) -> String {
    let (counts, stats) = (&summary.counts, &summary.stats);
    let mut rows = vec![
        ("Outcome", summary_text(summary)),
        (
            "Requests",
            format!(
                "{}, {} of them repeated",
                thousands(counts.requests),
                thousands(counts.retries)
            ),
        ),
        ("Latency", latency_text(stats.latency())),
        ("Connections", connections_text(stats.connections())),
        ("Time", Spent::of(summary).text(summary.elapsed)),
    ];
    if !stats.failed().is_empty() {
        let failed = classes_text(stats.failed());
        rows.push(("Attempts that failed", failed));
    }
    rows_table(&rows)
}

fn downloads_table(downloads: &DownloadCounts) -> String {
    let left = downloads.wanted.saturating_sub(downloads.over());
    let mut rows = vec![
        ("Wanted", count(downloads.wanted, "file", "files")),
        (
            "Downloaded",
            format!(
                "{}, {}",
                count(downloads.saved, "file", "files"),
                size_text(downloads.bytes)
            ),
        ),
    ];
    for (name, number) in [
        ("Resumed", downloads.resumed),
        ("There already", downloads.kept),
        ("Failed", downloads.failed),
        ("Left", left),
    ] {
        if number > 0 {
            rows.push((name, count(number, "file", "files")));
        }
    }
    rows_table(&rows)
}

/// A table of names and values.
fn rows_table(rows: &[(&str, String)]) -> String {
    let mut table = String::from("<table><tbody>");
    for (name, value) in rows {
        let _ = write!(table, "<tr><th>{name}</th><td>{}</td></tr>", escape(value));
    }
    table + "</tbody></table>"
}

fn hosts_table(stats: &Stats) -> String {
    let mut table = String::from(
        "<table class=\"hosts\"><thead><tr><th>Host</th><th class=\"n\">Requests</th><th class=\"n\">Received</th>\
         <th class=\"n\">Mean</th><th class=\"n\">P50</th><th class=\"n\">P95</th><th class=\"n\">P99</th>\
         <th class=\"n\">Longest</th><th class=\"n\">Opened</th><th class=\"n\">Reused</th></tr></thead><tbody>",
    );
    for host in by_slowness(stats.hosts()).take(MOST_HOSTS) {
        // A host that never answered has no times.
        let time = |span: Option<Duration>| {
            let span = span.filter(|_| host.answers > 0);
            span.map_or_else(|| "–".to_owned(), span_text)
        };
        let at = |q| time(host.latency().map(|latency| latency.quantile(q)));
        let _ = write!(table, "<tr><td>{}</td>", escape(&host.name));
        for cell in [
            thousands(host.requests),
            size_text(host.bytes),
            time(Some(host.mean())),
            at(0.5),
            at(0.95),
            at(0.99),
            time(Some(host.slowest)),
            thousands(host.opened),
            thousands(host.reused),
        ] {
            let _ = write!(table, "<td class=\"n\">{cell}</td>");
        }
        table.push_str("</tr>");
    }
    table.push_str("</tbody></table>");
    let more = stats.hosts().len().saturating_sub(MOST_HOSTS);
    if more > 0 {
        let _ = write!(table, "<p>And {} faster ones.</p>", thousands(more as u64));
    }
    table
}

/// Shares of the classes of answers, of the hosts with most requests.
fn status_chart(hosts: &[HostStats]) -> String {
    let mut hosts: Vec<_> = hosts.iter().filter(|host| host.requests > 0).collect();
    hosts.sort_by_key(|host| Reverse(host.requests));
    hosts.truncate(BARS);
    let names: Vec<_> = hosts.iter().map(|host| tail(&host.name, 38)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let left = longest.unwrap_or(0) * 7 + 10;
    let room = (920 - left) as f64;
    let height = hosts.len() * 30 + 26;
    let mut svg =
        format!("<svg viewBox=\"0 0 1000 {height}\" role=\"img\" aria-label=\"Status by host\">");
    let classes = [
        (2, "2xx", "s2"),
        (3, "3xx", "s3"),
        (4, "4xx", "s4"),
        (5, "5xx", "s5"),
        (0, "no answer", "s0"),
    ];
    for (i, (_, name, class)) in classes.iter().enumerate() {
        legend(&mut svg, left + i * 70, class, name);
    }
    for (i, (host, name)) in hosts.iter().zip(&names).enumerate() {
        let y = 26 + i * 30;
        let _ = write!(
            svg,
            "<text class=\"end\" x=\"{}\" y=\"{}\">{}</text>",
            left - 10,
            y + 15,
            escape(name)
        );
        let mut x = left as f64;
        for (digit, name, class) in classes {
            let count = match digit {
                0 => host.statuses[0] + host.statuses[1] + host.statuses[6] + host.failures,
                digit => host.statuses[digit],
            };
            let width = count as f64 / host.requests as f64 * room;
            if count > 0 {
                let _ = write!(
                    svg,
                    "<g><title>{name}: {}</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"21\"/></g>",
                    thousands(count),
                    width.max(1.5)
                );
                x += width.max(1.5);
            }
        }
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\">{}</text>",
            x + 7.0,
            y + 15,
            thousands(host.requests)
        );
    }
    svg + "</svg>"
}

fn latency_chart(timeline: &Timeline) -> Option<String> {
    let slots = timeline.slots();
    let spans = |of: fn(&crate::crawl::stats::Slot) -> Option<Duration>| -> Vec<Option<f64>> {
        slots
            .iter()
            .map(|slot| of(slot).map(|span| span.as_secs_f64().max(1e-5)))
            .collect()
    };
    let p50 = spans(|slot| slot.quantile(0.5));
    let p95 = spans(|slot| slot.quantile(0.95));
    let most = spans(|slot| slot.quantile(1.0));
    let values = || p50.iter().chain(&p95).chain(&most).flatten();
    let (low, high) = values().fold((f64::MAX, 0.0f64), |(low, high), &value| {
        (low.min(value), high.max(value))
    });
    if high == 0.0 {
        return None;
    }
    // Whole decades, so that there are lines at 1, 10, 100 ms.
    let (floor, ceiling) = (
        low.log10().floor(),
        high.log10().ceil().max(low.log10().floor() + 1.0),
    );
    let frame = Frame {
        slots: slots.len(),
        low: floor,
        high: ceiling,
    };
    let mut svg = frame.begin("Latency over time");
    let mut decade = floor;
    while decade <= ceiling {
        frame.rule(&mut svg, decade, &decade_text(decade));
        decade += 1.0;
    }
    frame.times(&mut svg, timeline.width());
    for (values, class) in [(&most, "most"), (&p95, "p95"), (&p50, "p50")] {
        frame.line(&mut svg, values, class);
    }
    for (i, (name, class)) in [("P50", "p50"), ("P95", "p95"), ("longest", "most")]
        .iter()
        .enumerate()
    {
        let x = 70 + i * 65;
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{x}\" y1=\"9\" x2=\"{}\" y2=\"9\"/><text x=\"{}\" y=\"13\">{name}</text>",
            x + 16,
            x + 21
        );
    }
    Some(svg + "</svg>")
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

fn answers_chart(timeline: &Timeline) -> Option<String> {
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
    let mut svg = frame.begin("Answers over time");
    for i in 0..=steps as u32 {
        let value = step * f64::from(i);
        let text = match step {
            ..1.0 => format!("{value:.2}"),
            _ => thousands(value as u64),
        };
        frame.rule(&mut svg, value, &text);
    }
    frame.times(&mut svg, timeline.width());
    legend(&mut svg, 70, "s2", "answers");
    legend(&mut svg, 150, "s5", "failed");
    let width = (frame.x(1.0) - frame.x(0.0)).max(1.0);
    for (i, slot) in slots.iter().enumerate() {
        for (count, class, what) in [
            (slot.answers, "s2", "answers"),
            (slot.failed, "s5", "failed"),
        ] {
            if count > 0 {
                let y = frame.y(rate(count));
                let _ = write!(
                    svg,
                    "<g><title>{} {what}</title><rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></g>",
                    thousands(count),
                    frame.x(i as f64),
                    (width - 0.6).max(0.8),
                    (frame.y(0.0) - y).max(0.8)
                );
            }
        }
    }
    Some(svg + "</svg>")
}

/// The least of 1, 2, 5, 10, 20, 50 and so on, and of 0.5, 0.2, 0.1 and so on, that is no less than `least`.
fn step_of(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let of_decade = [1.0, 2.0, 5.0].map(|n| n * decade).into_iter();
    of_decade
        .filter(|step| *step >= least * 0.999)
        .fold(10.0 * decade, f64::min)
}

/// What a colour stands for.
fn legend(svg: &mut String, x: usize, class: &str, name: &str) {
    let _ = write!(
        svg,
        "<rect class=\"{class}\" x=\"{x}\" y=\"2\" width=\"12\" height=\"12\" rx=\"2\"/><text x=\"{}\" y=\"12.5\">{name}</text>",
        x + 17
    );
}

/// The coordinates of a chart over time.
struct Frame {
    slots: usize,
    low: f64,
    high: f64,
}

impl Frame {
    fn begin(&self, label: &str) -> String {
        format!("<svg viewBox=\"0 0 1000 260\" role=\"img\" aria-label=\"{label}\">")
    }

    /// `slot` is counted from 0 on.
    fn x(&self, slot: f64) -> f64 {
        70.0 + slot / self.slots.max(1) as f64 * 920.0
    }

    fn y(&self, value: f64) -> f64 {
        230.0 - (value - self.low) / (self.high - self.low) * 205.0
    }

    /// A line across, with what it stands for.
    fn rule(&self, svg: &mut String, value: f64, text: &str) {
        let y = self.y(value);
        let _ = write!(
            svg,
            "<line class=\"rule\" x1=\"70\" y1=\"{y:.1}\" x2=\"990\" y2=\"{y:.1}\"/><text class=\"end\" x=\"62\" y=\"{:.1}\">{text}</text>",
            y + 4.0
        );
    }

    fn times(&self, svg: &mut String, width: Duration) {
        let whole = width.as_secs_f64() * self.slots as f64;
        let long = TIME_STEPS.into_iter().find(|step| whole / step <= 6.0);
        let step = match whole {
            ..60.0 => step_of(whole / 6.0),
            _ => long.unwrap_or_else(|| DAY * (whole / DAY / 6.0).ceil()),
        };
        for i in 0..=(whole / step) as u32 {
            let at = step * f64::from(i);
            let text = match () {
                () if i == 0 => "0".to_owned(),
                () if step < 1.0 => format!("{:.0} ms", at * 1e3),
                () if whole < 60.0 => format!("{at:.0} s"),
                () => clock_text(Duration::from_secs_f64(at)),
            };
            let x = 70.0 + at / whole * 920.0;
            let class = match () {
                () if i == 0 => "",
                // It would not have room on both sides.
                () if x > 975.0 => " class=\"end\"",
                () => " class=\"mid\"",
            };
            let _ = write!(svg, "<text{class} x=\"{x:.1}\" y=\"250\">{text}</text>");
        }
    }

    /// Seconds, as a line on a scale of decades. A slot without answers is passed over.
    fn line(&self, svg: &mut String, values: &[Option<f64>], class: &str) {
        let points = values.iter().enumerate().filter_map(|(i, value)| {
            let y = self.y(value.as_ref()?.log10());
            Some(format!("{:.1},{y:.1}", self.x(i as f64 + 0.5)))
        });
        let points: Vec<_> = points.collect();
        match points.as_slice() {
            // A line of one point would not be seen.
            [point] => {
                let (x, y) = point.split_once(',').unwrap_or_default();
                let _ = write!(
                    svg,
                    "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>"
                );
            }
            points => {
                let _ = write!(
                    svg,
                    "<polyline class=\"{class}\" points=\"{}\"/>",
                    points.join(" ")
                );
            }
        }
    }
}

/// A URL that can be followed, if it is one of the web.
fn link(url: &str) -> String {
    let text = escape(url);
    if url.starts_with("http://") || url.starts_with("https://") {
        format!("<a href=\"{text}\" rel=\"noreferrer\">{text}</a>")
    } else {
        text
    }
}

/// Text for HTML, attributes included.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in terminal::neutralise(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The last characters.
fn tail(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length - most + 1).collect();
    format!("…{kept}")
}

/// The colours of the branches of the tree map, lighter the deeper.
fn hues() -> String {
    let mut style = String::new();
    for (hue, degrees) in [212, 28, 145, 270, 350, 48, 185, 95]
        .iter()
        .enumerate()
        .take(HUES)
    {
        for (level, lightness) in [(0, 52), (1, 58), (2, 66), (3, 74), (4, 81)] {
            let _ = write!(
                style,
                ".h{hue}.l{level}{{fill:hsl({degrees} 52% {lightness}%)}}"
            );
        }
    }
    style
}

const STYLE: &str = "\
:root{--bg:#f6f7f9;--card:#fff;--ink:#1c2330;--soft:#667085;--rule:#e4e7ec;--blue:#2563c9;--orange:#d97706;--red:#d03b3b;--green:#2e8b62;--grey:#98a2b3}\
@media(prefers-color-scheme:dark){:root{--bg:#12161d;--card:#1b212b;--ink:#e6e9ef;--soft:#98a2b3;--rule:#2d3542;--blue:#79a8f5;--orange:#f0a44b;--red:#ef7070;--green:#55b98a;--grey:#667085}}\
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}\
header{margin-bottom:20px}h1{font-size:26px;margin:0;overflow-wrap:anywhere}header p,section p{color:var(--soft);margin:2px 0 10px;font-size:14px}\
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:16px 20px;margin:0 0 18px}\
h2{font-size:17px;margin:0 0 4px}.scroll{overflow-x:auto}\
.tiles{display:grid;grid-template-columns:repeat(5,1fr);gap:14px 8px}@media(max-width:640px){.tiles{grid-template-columns:repeat(2,1fr)}}\
.tiles b{display:block;font-size:22px;font-weight:650;font-variant-numeric:tabular-nums}.tiles span{color:var(--soft);font-size:13px}.tiles .bad b{color:var(--red)}\
table{border-collapse:collapse;width:100%;font-size:14px}th,td{text-align:left;vertical-align:top;padding:5px 14px 5px 0;border-bottom:1px solid var(--rule);overflow-wrap:anywhere}\
th{font-weight:600;color:var(--soft);white-space:nowrap}.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}tbody tr:last-child>*{border-bottom:0}.hosts td{white-space:nowrap}tbody th{width:1%}\
a{color:var(--blue);text-decoration:none}a:hover{text-decoration:underline}.good{color:var(--green);margin:0}\
svg{display:block;width:100%;min-width:800px;height:auto;font-size:12px}svg text{fill:var(--ink)}.end{text-anchor:end}.mid{text-anchor:middle}\
.rule{stroke:var(--rule)}line.p50,polyline.p50{stroke:var(--blue);stroke-width:2}line.p95,polyline.p95{stroke:var(--orange);stroke-width:2}line.most,polyline.most{stroke:var(--grey);stroke-width:1.5}polyline{fill:none;stroke-linejoin:round}\
circle.p50{fill:var(--blue)}circle.p95{fill:var(--orange)}circle.most{fill:var(--grey)}\
.s0{fill:var(--grey)}.s2{fill:var(--green)}.s3{fill:var(--blue)}.s4{fill:var(--orange)}.s5{fill:var(--red)}\
.h{fill:var(--rule)}rect[class*=' l']{stroke:var(--card);stroke-width:1}g rect:not(.h)+text{fill:#1c2330}";

/// Files, or directories, that the tree map keeps apart.
const MOST_APART: usize = 20_000;

/// Files in the list of the largest.
const LARGEST: usize = 15;

/// URLs in the list of what was not read.
const MOST_UNREAD: usize = 1000;

/// What a time axis of a minute or more is divided by, in seconds.
const TIME_STEPS: [f64; 12] = [
    10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0,
];
const DAY: f64 = 86400.0;

/// Rows of the table of hosts.
const MOST_HOSTS: usize = 50;

/// Hosts in the chart.
const BARS: usize = 20;

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use html5gum::Token;

    use super::*;
    use crate::crawl::stats::{Connection, Exchange};
    use crate::find::{Cause, Kind};
    use crate::find::{Counts, SizeRange};

    /// Whether every tag that is opened is closed in its turn, without any error of syntax.
    fn assert_well_formed(html: &str) {
        let mut open: Vec<Vec<u8>> = Vec::new();
        for token in html5gum::Tokenizer::new(html) {
            let Ok(token) = token;
            match token {
                Token::StartTag(tag) if tag.name.as_slice() == b"meta" || tag.self_closing => {}
                Token::StartTag(tag) => open.push(tag.name.to_vec()),
                Token::EndTag(tag) => assert_eq!(open.pop().as_deref(), Some(tag.name.as_slice())),
                Token::Error(error) => panic!("{error:?}"),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    fn found(url: &str, size: Option<u64>) -> Found<'_> {
        Found {
            url,
            path: b"",
            name: b"",
            kind: Kind::File,
            depth: 1,
            start: b"/",
            size: size.map(SizeRange::exact),
            modified: None,
            asked: false,
            status: None,
            attempts: 1,
            took: Duration::ZERO,
            empty: None,
            listing: None,
        }
    }

    fn summary(hosts: &[&str]) -> Summary {
        let now = Instant::now();
        let mut stats = Stats::new(now);
        for name in hosts {
            let host = stats.add_host(name);
            for ms in 1..200 {
                let exchange = Exchange {
                    took: Duration::from_millis(ms),
                    bytes: 1000,
                    connection: Some(Connection::Reused),
                    robots: false,
                };
                let at = now + Duration::from_millis(ms * 10);
                stats.handle_sent(host);
                stats.handle_answer(at, host, if ms % 50 == 0 { 503 } else { 200 }, &exchange);
            }
        }
        Summary {
            resumed: false,
            follow: Follow::Listings,
            downloads: DownloadCounts::default(),
            counts: Counts {
                unread: 2,
                ..Counts::default()
            },
            matched: 1234,
            undecided: 0,
            failed: 0,
            elapsed: Duration::from_secs(2),
            ending: Ending::Finished,
            stats,
        }
    }

    fn page() -> (tempfile::TempDir, Page) {
        let folder = tempfile::tempdir().expect("a directory");
        let page = Page::new(folder.path().join("report.html")).expect("can be written");
        (folder, page)
    }

    #[test]
    fn the_page_is_well_formed_and_has_everything() {
        let (_folder, mut page) = page();
        for i in 0..50 {
            let url = format!("http://h/pub/%3Cb%3E&amp;/d{}/f{i}", i % 7);
            page.found(&found(&url, Some(1 << i)));
        }
        let cause = Cause::NotHtml("<script>alert('x')</script>\u{1b}[2J".into());
        for url in ["http://h/\"><script>", "ftp://h/"] {
            page.unread(&Unread { url, cause: &cause });
        }
        let mut summary = summary(&["http://h", "http://two"]);
        summary.downloads = DownloadCounts {
            wanted: 6,
            saved: 3,
            failed: 1,
            bytes: 1024,
            ..DownloadCounts::default()
        };
        let html = page.html(&summary, "today");
        assert_well_formed(&html);
        for part in [
            "<h1>http://h and 1 more</h1>",
            "<b>1,234</b><span>found</span>",
            "<h2>Sizes by directory</h2>",
            "<title>http://h/pub/&lt;b&gt;&amp;amp;/d",
            "class=\"p95\" points=\"",
            "<title>5xx: 3</title>",
            "<td>http://two</td>",
            "http://h/pub/%3Cb%3E&amp;amp;/d0/f49",
            "<h2>Downloads</h2>",
            "<th>Downloaded</th><td>3 files, 1.0 KiB</td>",
            "<th>Failed</th><td>1 file</td>",
            "<th>Left</th><td>2 files</td>",
            "<h2>Not read: 2</h2>",
            "<td>ftp://h/</td><td>not a directory listing: its content type is &lt;script&gt;",
        ] {
            assert!(html.contains(part), "{part}");
        }
        // Nothing of it acts, and nothing comes from elsewhere.
        for part in [
            "<script", "<img", "src=", "url(", "@import", "<link", "\u{1b}",
        ] {
            assert!(!html.contains(part), "{part}");
        }
        let largest = html.split_once("<h2>Largest files").expect("a section").1;
        let largest = largest.split_once("</section>").expect("its end").0;
        assert_eq!(largest.matches("<tr>").count(), 1 + LARGEST);
    }

    #[test]
    fn a_search_that_found_nothing_has_a_page_too() {
        let (_folder, page) = page();
        let mut nothing = summary(&[]);
        nothing.counts.unread = 0;
        let html = page.html(&nothing, "today");
        assert_well_formed(&html);
        assert!(html.contains("Everything was read.") && html.contains("No answers."));
        assert!(html.contains("<h2>Files by directory</h2>") && !html.contains("Downloads"));
        assert!(!html.contains("earlier run"));
        nothing.resumed = true;
        let html = page.html(&nothing, "today");
        assert_well_formed(&html);
        assert!(html.contains("An earlier run was gone on with."));
        nothing.ending = Ending::Stopped;
        assert!(
            !page
                .html(&nothing, "today")
                .contains("Everything was read.")
        );
    }

    #[test]
    fn the_list_of_what_was_not_read_is_bounded() {
        let (_folder, mut page) = page();
        for i in 0..MOST_UNREAD + 5 {
            let url = format!("http://h/{i}");
            let cause = &Cause::Status(500);
            page.unread(&Unread { url: &url, cause });
        }
        let html = page.html(&summary(&["http://h"]), "today");
        assert_eq!(html.matches("the server answered 500").count(), MOST_UNREAD);
        assert!(html.contains("And 5 more, which standard error named."));
    }
}
