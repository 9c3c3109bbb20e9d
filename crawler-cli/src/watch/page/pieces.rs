//! Pieces of pages.

use jiff::Timestamp;
use maud::{Markup, html};
use url::form_urlencoded::Serializer;

use super::query::Query;
use crate::check::life::State;
use crate::report::page::link;
use crate::watch::hands::why::WhyNot;
use crate::watch::hands::words::{self, distance, stamp};

/// A page with a query.
pub(super) fn href(path: &str, fields: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(fields).finish();
    format!("{path}?{query}")
}

/// A part of a page that is shown anew by itself.
pub(super) fn section(heading: &str, content: &Markup) -> Markup {
    let id: String = heading
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    html! {
        section id=(id) data-live { h2 { (heading) } div.scroll { (content) } }
    }
}

/// A state, as a word with a colour.
pub(super) fn state(state: State) -> Markup {
    html! { span class={ "state " (class(state)) } { (state.name()) } }
}

/// A change of state.
pub(super) fn change(from: State, to: State) -> Markup {
    html! { span.change { (state(from)) " → " (state(to)) } }
}

/// The CSS class of a state.
pub(super) fn class(state: State) -> String {
    state.name().to_ascii_lowercase()
}

/// The state with this name.
pub(super) fn state_named(name: &str) -> Option<State> {
    State::ALL
        .into_iter()
        .find(|state| state.name().eq_ignore_ascii_case(name))
}

/// A field of a form that chooses a state, or any.
pub(super) fn state_field(label: &str, name: &str, chosen: Option<State>) -> Markup {
    html! {
        label { (label) " " select name=(name) {
            option value="" { "any" }
            @for state in State::ALL {
                option value=(state.name()) selected[chosen == Some(state)] { (state.name()) }
            }
        } }
    }
}

/// A URL, as a link to its page. One with a user is no link, since a link would show the user.
pub(super) fn url(url: &str) -> Markup {
    inward("/url", "url", url)
}

/// A host, as a link to its page.
pub(super) fn host(root: &str) -> Markup {
    inward("/host", "root", root)
}

fn inward(path: &str, field: &str, url: &str) -> Markup {
    let shown = words::url(url);
    html! {
        @if shown == url { a.url href=(href(path, &[(field, url)])) { (shown) } } @else { span.url { (shown) } }
    }
}

/// A URL, as a link to where it points.
pub(super) fn outward(url: &str) -> Markup {
    link(&words::url(url))
}

/// A time, and how far it is from now.
pub(super) fn time(now: Timestamp, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(stamp(at)) { (distance(now, at)) } }
}

/// A time with its date.
pub(super) fn date(now: Timestamp, at: Timestamp) -> Markup {
    html! { time datetime=(at) { (stamp(at)) } " " span.soft { "(" (distance(now, at)) ")" } }
}

/// Names with what they mean, in two columns.
pub(super) fn facts(rows: &[(&str, Markup)]) -> Markup {
    html! {
        table.facts { tbody { @for (name, value) in rows { tr { th scope="row" { (name) } td { (value) } } } } }
    }
}

/// Why something is not asked, the most important first.
pub(super) fn reasons(reasons: &[WhyNot], otherwise: &str) -> Markup {
    html! {
        @if reasons.is_empty() { (otherwise) }
        @else { ul.reasons { @for reason in reasons { li { (reason.text) } } } }
    }
}

/// A table with the names of its columns; those that begin with `#` have numbers.
pub(super) fn table(
    caption: &str,
    columns: &[&str],
    rows: &[Vec<Markup>],
    nothing: &str,
) -> Markup {
    let is_number = |column: usize| {
        columns
            .get(column)
            .is_some_and(|name| name.starts_with('#'))
    };
    html! {
        @if rows.is_empty() { p.empty { (nothing) } }
        @else {
            // On a narrow screen, each row of a wide table is a list of its cells: the roles keep it a table.
            table class=[(columns.len() > 3).then_some("wide")] role="table" {
                caption { (caption) }
                thead { tr role="row" {
                    @for (i, name) in columns.iter().enumerate() {
                        th scope="col" role="columnheader" class=[is_number(i).then_some("n")] { (name.trim_start_matches('#')) }
                    }
                } }
                tbody {
                    @for row in rows {
                        tr role="row" {
                            @for (cell, name) in row.iter().zip(columns) {
                                @let class = name.starts_with('#').then_some("n");
                                td role="cell" class=[class] data-label=(name.trim_start_matches('#')) { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where a list goes on, and its begin.
pub(super) fn pager(query: &Query, path: &str, field: &str, next: Option<&str>) -> Markup {
    html! {
        @let first = query.get(field).is_some();
        @if first || next.is_some() {
            nav.pager aria-label="Pages of the list" {
                @if first { a href=(query.with(path, field, "")) { "First page" } }
                @if let Some(next) = next { a rel="next" href=(query.with(path, field, next)) { "Next page" } }
            }
        }
    }
}

/// A number of bytes or rows in a cell.
pub(super) fn number(number: u64) -> Markup {
    html! { (words::number(number)) }
}

/// How many rows a page of a list has.
pub(super) const ROWS: usize = 50;
