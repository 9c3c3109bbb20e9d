//! What the HTML reports of all commands have in common: one file with charts as SVG, without scripts and without
//! references to other files. The templates escape all text from servers.

use std::time::Duration;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::statistics::{by_slowness, size_text, span_text, thousands};
use crate::crawl::stats::{HostStats, Stats};
use crate::terminal;

/// The whole page. `about` stands below the title.
pub(super) fn document(title: &str, about: &Markup, body: &Markup) -> String {
    let own = html! {
        meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
        style { (PreEscaped(STYLE.replace('\n', " "))) }
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, &own))
            body {
                main {
                    header {
                        h1 { (title) }
                        p { (about) }
                    }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

/// The head of every page. `own` is what only this kind of page has.
pub(crate) fn head(title: &str, own: &Markup) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            (own)
        }
    }
}

/// The most important numbers, in large print: names, values and CSS classes.
pub(crate) fn tiles(tiles: &[(&str, String, Option<&str>)]) -> Markup {
    html! {
        section.tiles {
            @for (name, value, class) in tiles {
                div class=[class] { b { (value) } span { (name) } }
            }
        }
    }
}

pub(crate) fn section(heading: &str, note: &str, content: Markup) -> Markup {
    html! {
        section {
            h2 { (heading) }
            @if !note.is_empty() { p { (note) } }
            div.scroll { (content) }
        }
    }
}

/// A section with a chart, or with the text `nothing` if `svg` is `None`.
pub(super) fn chart(heading: &str, note: &str, nothing: &str, svg: Option<Markup>) -> Markup {
    match svg {
        Some(svg) => section(heading, note, svg),
        None => html! { section { h2 { (heading) } p { (nothing) } } },
    }
}

/// A table with one row for each name and value.
pub(crate) fn rows_table(rows: &[(&str, String)]) -> Markup {
    html! {
        table {
            tbody {
                @for (name, value) in rows {
                    tr { th { (name) } td { (terminal::neutralise(value)) } }
                }
            }
        }
    }
}

pub(super) fn hosts_table(stats: &Stats) -> Markup {
    let more = stats.hosts().len().saturating_sub(MOST_HOSTS);
    let columns = [
        "Requests", "Received", "Mean", "P50", "P95", "P99", "Longest", "Opened", "Reused",
    ];
    html! {
        table.hosts {
            thead { tr { th { "Host" } @for column in columns { th.n { (column) } } } }
            tbody {
                @for host in by_slowness(stats.hosts()).take(MOST_HOSTS) {
                    tr {
                        td { (terminal::neutralise(&host.name)) }
                        @for cell in host_cells(host) { td.n { (cell) } }
                    }
                }
            }
        }
        @if more > 0 { p { "And " (thousands(more as u64)) " faster ones." } }
    }
}

/// The numbers of a host, in the order of the columns of [`hosts_table`].
fn host_cells(host: &HostStats) -> [String; 9] {
    // A host that never answered has no times.
    let time = |span: Option<Duration>| {
        let span = span.filter(|_| host.answers > 0);
        span.map_or_else(|| "–".to_owned(), span_text)
    };
    let at = |q| time(host.latency().map(|latency| latency.quantile(q)));
    [
        thousands(host.requests),
        size_text(host.bytes),
        time(Some(host.mean())),
        at(0.5),
        at(0.95),
        at(0.99),
        time(Some(host.slowest)),
        thousands(host.opened),
        thousands(host.reused),
    ]
}

/// A URL, as a link if its scheme is http or https.
pub(crate) fn link(url: &str) -> Markup {
    let text = terminal::neutralise(url);
    html! {
        @if url.starts_with("http://") || url.starts_with("https://") {
            a href=(text) rel="noreferrer" { (text) }
        } @else {
            (text)
        }
    }
}

/// The style of all pages.
pub(crate) const STYLE: &str = include_str!("page.css");

/// The largest number of rows in the table of hosts.
const MOST_HOSTS: usize = 50;

/// Asserts that a page has no syntax error and that every opened tag is closed in order.
#[cfg(test)]
pub(crate) fn assert_well_formed(html: &str) {
    use html5gum::Token;

    let mut open: Vec<Vec<u8>> = Vec::new();
    for token in html5gum::Tokenizer::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag)
                if matches!(tag.name.as_slice(), b"meta" | b"link" | b"input")
                    || tag.self_closing => {}
            Token::StartTag(tag) => open.push(tag.name.to_vec()),
            Token::EndTag(tag) => assert_eq!(open.pop().as_deref(), Some(tag.name.as_slice())),
            Token::Error(error) => panic!("{error:?}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
}
