//! Everything about a host.

use maud::{Markup, html};
use std::collections::BTreeMap;

use super::asked::Asked;
use super::deeds::Deed;
use super::frame::{framed, missing};
use super::pieces::{ROWS, date, facts, href, number, reasons, section, state, time};
use super::{holds, urls};
use super::{of_host, read, trouble};
use crate::check::host::HeadUse;
use crate::check::life::State;
use crate::store::{HostDetail, Page, Scope, UrlKey, UrlList, WatchStore, WatchedUrl};
use crate::watch::admin::answer::Answer;
use crate::watch::control::{HostLimits, HostLive};
use crate::watch::hands::why::{Around, of_host as why_not};
use crate::watch::hands::words::{self, span};

/// What the store has of a host: the host, its URLs by state, and some of its URLs.
type Seen = (HostDetail, BTreeMap<State, u64>, Page<WatchedUrl, UrlKey>);

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let root = query.get("root").unwrap_or_default().to_owned();
    let live = of_host(&asked.site, &root).await;
    let (name, list) = (
        root.clone(),
        UrlList {
            host: Some(root.clone()),
            after: query.get("after").and_then(urls::key_of),
            ..UrlList::default()
        },
    );
    let found = read(&asked.site, Some(&root), move |reader, _| {
        let store = reader.store();
        let Some(host) = WatchStore::host(store, &name)? else {
            return Ok(None);
        };
        let troubles = store.troubles(host.host.id, MOST + 1)?;
        Ok(Some((host, troubles, store.urls(&list, ROWS)?)))
    });
    match found.await {
        Ok((around, Some(seen))) => {
            let body = body(&asked, &around, &seen, live.as_ref());
            framed(&asked, &around, "/hosts", &words::url(&root), &body)
        }
        Ok((around, None)) => {
            let why = format!("The store does not know the host {}.", words::url(&root));
            missing(&asked, &around, "/hosts", &why)
        }
        Err(error) => trouble(&error),
    }
}

fn body(asked: &Asked, around: &Around, seen: &Seen, live: Option<&HostLive>) -> Markup {
    let (host, troubles, urls) = seen;
    let root = [("host", &*host.host.root)];
    let is_it = |what: &Scope| matches!(what, Scope::Host(paused) if *paused == host.host.root);
    let is_paused = around.pauses.iter().any(|pause| is_it(&pause.what));
    html! {
        div.deeds {
            (asked.button(if is_paused { Deed::Resume } else { Deed::Pause }, &root))
            @if let Some(hold) = &around.hold { (holds::deeds(asked, hold)) }
        }
        div.columns {
            (section("Now", &now(around, host, troubles, live)))
            (section("Limits", &limits(live.map(|live| &live.limits))))
            (section("Learned", &learned(around, host)))
        }
        (section("URLs", &urls::list(around, &asked.query, "/host", urls)))
    }
}

fn now(
    around: &Around,
    host: &HostDetail,
    troubles: &BTreeMap<State, u64>,
    live: Option<&HostLive>,
) -> Markup {
    let root = &host.host.root;
    let trouble = html! {
        @if troubles.values().all(|count| *count == 0) { "none" }
        @for (reached, count) in troubles.iter().filter(|(_, count)| **count > 0) {
            a.count href=(href("/urls", &[("host", root), ("state", reached.name())])) {
                (state(*reached)) " " (most(*count))
            }
            " "
        }
    };
    let mut rows = vec![
        (
            "Not asked",
            reasons(&why_not(host, around), "asked now, or in a moment"),
        ),
        ("URLs", number(host.urls)),
        ("In trouble", trouble),
        ("Held", number(host.held)),
    ];
    if let Some(live) = live {
        let waits = &live.waits;
        rows.push((
            "Under way",
            html! { (number(waits.under_way)) ", " (number(waits.waiting)) " waiting" },
        ));
    }
    if let Some(at) = [host.next, host.next_doubt].into_iter().flatten().min() {
        rows.push(("Next due", date(around.now, at)));
    }
    facts(&rows)
}

/// A count that ended at a limit.
fn most(count: u64) -> String {
    match count > MOST {
        true => format!("{}+", words::number(MOST)),
        false => words::number(count),
    }
}

fn limits(limits: Option<&HostLimits>) -> Markup {
    let Some(limits) = limits else {
        return html! { p.empty { "The service does not answer." } };
    };
    let mut rows = vec![
        (
            "Requests in flight",
            html! { @match limits.connections { Some(most) => (most), None => "no limit" } },
        ),
        (
            "Rate",
            html! { @match limits.rate { Some(rate) => { (rate.count) " each " (span_of(rate.per)) }, None => "no limit" } },
        ),
        ("Delay", html! { (span_of(limits.delay)) }),
    ];
    if let Some(delay) = limits.robots_delay {
        rows.push(("Delay of robots.txt", html! { (span_of(delay)) }));
    }
    rows.push(("Time for a request", html! { (span_of(limits.timeout)) }));
    rows.push(("HEAD", html! { @match limits.head { HeadUse::Auto => "used, unless the host treats it wrongly", HeadUse::Never => "not used" } }));
    facts(&rows)
}

fn span_of(time: std::time::Duration) -> String {
    match time.as_millis() {
        0 => "none".to_owned(),
        millis @ 1..2_000 => format!("{millis} ms"),
        _ => span(time),
    }
}

fn learned(around: &Around, host: &HostDetail) -> Markup {
    let (now, facts_) = (around.now, &host.host.facts);
    let mut rows = vec![(
        "Answered",
        html! { @match facts_.answered_at { Some(at) => (date(now, at)), None => "never" } },
    )];
    if let Some(control) = facts_.control {
        let status = control
            .status
            .map_or("no answer".to_owned(), |status| status.to_string());
        rows.push(("Control", html! { (status) ", " (time(now, control.at)) }));
    }
    for (until, what) in [
        (facts_.no_head_until, "the host does not know HEAD"),
        (
            facts_.head_lies_until,
            "the host denies to HEAD what GET finds",
        ),
    ] {
        if let Some(until) = until.filter(|until| *until > now) {
            rows.push((
                "HEAD",
                html! { "not used until " (date(now, until)) ": " (what) },
            ));
        }
    }
    if !facts_.episodes.is_empty() {
        let count = words::count(facts_.episodes.len() as u64, "failure", "failures");
        let longest = facts_
            .episodes
            .iter()
            .map(|episode| episode.length)
            .max()
            .unwrap_or_default();
        rows.push((
            "Over by itself",
            html! { (count) ", the longest " (span(longest)) },
        ));
    }
    facts(&rows)
}

/// Up to how many URLs are counted.
const MOST: u64 = 1_000;
