//! Everything about a URL.

use maud::{Markup, html};
use url::Url;

use super::asked::Asked;
use super::deeds::Deed;
use super::frame::{framed, missing};
use super::letters;
use super::pieces::{change, date, facts, host, href, outward, reasons, section, state, table};
use super::strip::strip;
use super::{read, trouble};
use crate::check::life::time::between;
use crate::store::{DeadLetter, JobStore as _, UrlDetail, WatchStore as _};
use crate::watch::admin::answer::Answer;
use crate::watch::hands::why::{Around, of_url};
use crate::watch::hands::words::{self, safe, span};
use crate::watch::hands::{root_of, show};

pub(super) async fn page(asked: Asked) -> Answer {
    let wanted = asked.query.get("url").unwrap_or_default().to_owned();
    let root = Url::parse(&wanted).ok().map(|url| root_of(&url));
    let name = wanted.clone();
    let found = read(&asked.site, root.as_deref(), move |reader, _| {
        let Some(detail) = reader.store().show(&name)? else {
            return Ok(None);
        };
        let letters = reader.store().letters_of(detail.url.id)?;
        Ok(Some((detail, letters)))
    });
    match found.await {
        Ok((around, Some((detail, letters)))) => {
            let title = words::url(&detail.url.url);
            framed(
                &asked,
                &around,
                "/urls",
                &title,
                &body(&asked, &around, &detail, &letters),
            )
        }
        Ok((around, None)) => {
            let why = format!("The store does not know {}.", words::url(&wanted));
            missing(&asked, &around, "/urls", &why)
        }
        Err(error) => trouble(&error),
    }
}

fn body(asked: &Asked, around: &Around, detail: &UrlDetail, letters: &[DeadLetter]) -> Markup {
    let url = [("url", &*detail.url.url)];
    html! {
        div.deeds { (asked.button(Deed::Recheck, &url)) (asked.button(Deed::Remove, &url)) }
        (section("History", &strip(detail, around.now)))
        (section("Now", &now(around, detail)))
        (section("Last answer", &answer(around, detail)))
        (section("Changes", &changes(around, detail)))
        @if !letters.is_empty() { (section("Dead letters", &letters::list(asked, around, letters))) }
    }
}

fn now(around: &Around, detail: &UrlDetail) -> Markup {
    let now = around.now;
    let sets = html! {
        @if detail.sets.is_empty() { "none" }
        @for (i, set) in detail.sets.iter().enumerate() {
            @if i > 0 { ", " }
            a href=(href("/urls", &[("set", set)])) { (safe(set)) }
        }
    };
    let life = &detail.url.life;
    let in_words = show::state_in_words(detail, now);
    let in_words = in_words.trim_start_matches(life.state().name());
    let never = |at| match at {
        Some(at) => date(now, at),
        None => html! { "never" },
    };
    let mut rows = vec![
        ("State", html! { (state(life.state())) (in_words) }),
        (
            "Not asked",
            reasons(&of_url(detail, around), "asked now, or in a moment"),
        ),
        ("Next check", html! { (show::next_in_words(detail, now)) }),
        ("Last good", never(life.last_ok())),
    ];
    if let Some(at) = life.first_bad() {
        let counted = words::count(u64::from(life.negatives()), "negative", "negatives");
        rows.push(("First bad", html! { (date(now, at)) ", " (counted) }));
    }
    rows.extend([
        ("Statuses", html! { (show::statuses(life)) @if life.answers().last().is_some() { span.soft { " oldest first" } } }),
        ("Host", host(&detail.host.root)),
        ("Sets", sets),
        ("Added", date(now, detail.url.added)),
        ("Open", outward(&detail.url.url)),
    ]);
    facts(&rows)
}

fn answer(around: &Around, detail: &UrlDetail) -> Markup {
    let Some(answer) = &detail.url.answer else {
        return html! { p.empty { "The URL was not asked yet." } };
    };
    let now = around.now;
    let last = show::last_in_words(Some(answer), &detail.url.life, now);
    let mut rows = vec![("Answer", html! { (last) })];
    if answer.attempts > 1 {
        rows.push(("Requests", html! { (answer.attempts) }));
    }
    if !answer.redirects.is_empty() {
        let list = html! {
            ol.hops {
                @for redirect in &answer.redirects { li { (redirect.status) " " (words::url(&redirect.url)) } }
                @if let Some(last) = &answer.final_url { li { "to " (words::url(last)) } }
            }
        };
        rows.push(("Redirects", list));
    }
    if let Some(moved) = &answer.moved_to {
        rows.push(("Moved to", outward(moved)));
    }
    facts(&rows)
}

fn changes(around: &Around, detail: &UrlDetail) -> Markup {
    let events = detail.events.iter().enumerate().rev();
    let rows: Vec<Vec<Markup>> = events
        .map(|(index, event)| {
            let next = detail.events.get(index + 1);
            let until = next.map_or(around.now, |next| next.at);
            vec![
                date(around.now, event.at),
                change(event.from, event.to),
                html! { @if let Some(status) = event.status { (status) } },
                html! { (safe(&event.why)) },
                html! { (span(between(event.at, until))) },
            ]
        })
        .collect();
    let columns = ["When", "Change", "#Status", "Why", "#Lasted"];
    table(
        "Changes of state, newest first",
        &columns,
        &rows,
        "The state has not changed since the URL was added.",
    )
}
