//! Lists of URLs.

use jiff::Timestamp;
use maud::{Markup, html};

use super::asked::Asked;
use super::deeds::Deed;
use super::frame::framed;
use super::pieces::{ROWS, pager, section, state, state_field, state_named, table, time, url};
use super::query::Query;
use super::{read, trouble};
use crate::check::life::State;
use crate::store::{Page, UrlId, UrlKey, UrlList, WatchStore as _, WatchedUrl};
use crate::watch::admin::answer::Answer;
use crate::watch::control::Command;
use crate::watch::hands::why::Around;
use crate::watch::hands::words::safe;

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let list = UrlList {
        set: query.get("set").map(str::to_owned),
        host: query.get("host").map(str::to_owned),
        state: query.get("state").and_then(state_named),
        after: query.get("after").and_then(key_of),
    };
    let found = read(&asked.site, None, move |reader, _| {
        let store = reader.store();
        let sets: Vec<String> = store.sets()?.into_iter().map(|set| set.name).collect();
        Ok((sets, store.urls(&list, ROWS)?))
    });
    match found.await {
        Ok((around, (sets, urls))) => {
            let body = html! {
                (add(&asked, &sets))
                (filter(query, &sets))
                (section("List", &self::list(&around, query, "/urls", &urls)))
            };
            framed(&asked, &around, "/urls", "URLs", &body)
        }
        Err(error) => trouble(&error),
    }
}

/// Adds URLs by hand.
fn add(asked: &Asked, sets: &[String]) -> Markup {
    let fields = html! {
        label for="urls" { "URLs, one in each line" }
        textarea id="urls" name="urls" rows="5" required spellcheck="false" placeholder="https://example.com/" {}
        label for="set" { "Set, which need not exist" }
        input id="set" name="set" required maxlength="100" autocomplete="off" list="sets" value=(Command::OWN_SET);
        datalist id="sets" {
            @for set in sets.iter().filter(|set| safe(set) == **set).take(MOST_SETS) { option value=(set) {} }
        }
    };
    html! {
        @if asked.visitor.may_write {
            details.add id="add" {
                summary { "Add URLs" }
                (asked.form(Deed::Add, &[], &fields))
            }
        }
    }
}

fn filter(query: &Query, sets: &[String]) -> Markup {
    let chosen = query.get("state").and_then(state_named);
    html! {
        form.filter method="get" action="/urls" {
            (state_field("State", "state", chosen))
            label { "Set " select name="set" {
                option value="" { "any" }
                @for set in sets.iter().filter(|set| safe(set) == **set).take(MOST_SETS) {
                    option value=(set) selected[query.get("set") == Some(set)] { (set) }
                }
            } }
            label { "Host " input name="host" value=(safe(query.get("host").unwrap_or_default())) placeholder="https://example.com/"; }
            button { "Show" }
        }
    }
}

/// A page of a list.
pub(super) fn list(
    around: &Around,
    query: &Query,
    path: &str,
    urls: &Page<WatchedUrl, UrlKey>,
) -> Markup {
    let now = around.now;
    let rows: Vec<Vec<Markup>> = urls
        .rows
        .iter()
        .map(|row| {
            let answer = row.answer.as_ref();
            let status = answer.and_then(|answer| answer.status);
            let cause = answer.and_then(|answer| answer.verdict.cause());
            vec![
                url(&row.url),
                state(row.life.state()),
                html! { @if let Some(status) = status { (status) } },
                html! { @if let Some(cause) = cause { (cause.name()) } },
                html! { @if let Some(at) = row.life.last_at() { (time(now, at)) } @else { "never" } },
                html! { @match row.due { Some((_, due)) => (time(now, due)), None => "none" } },
            ]
        })
        .collect();
    let columns = [
        "URL",
        "State",
        "#Status",
        "Cause",
        "#Checked",
        "#Next check",
    ];
    let next = urls.next.map(|key| text_of(&key));
    let nothing = match next {
        Some(_) => "None among those that were looked at: the next page looks at more.",
        None => "There are no such URLs.",
    };
    html! {
        (table("URLs", &columns, &rows, nothing))
        (pager(query, path, "after", next.as_deref()))
    }
}

/// A place in a list, as text.
pub(super) fn text_of(key: &UrlKey) -> String {
    match key {
        UrlKey::Number(url) => format!("n.{}", url.0),
        UrlKey::OfState(state, url) => format!("s.{}.{}", state.code(), url.0),
        UrlKey::Due(at, url) => format!("d.{}.{}", at.as_millisecond(), url.0),
    }
}

/// The place that a text names.
pub(super) fn key_of(text: &str) -> Option<UrlKey> {
    let mut parts = text.split('.');
    let (kind, first, second) = (parts.next()?, parts.next()?, parts.next());
    let first: i64 = first.parse().ok()?;
    let url = second.and_then(|second| second.parse().ok()).map(UrlId);
    match kind {
        "n" => Some(UrlKey::Number(UrlId(first))),
        "s" => Some(UrlKey::OfState(
            State::from_code(u8::try_from(first).ok()?)?,
            url?,
        )),
        "d" => Some(UrlKey::Due(Timestamp::from_millisecond(first).ok()?, url?)),
        _ => None,
    }
}

/// How many sets can be chosen.
const MOST_SETS: usize = 200;
