//! Lists of hosts.

use jiff::Timestamp;
use maud::{Markup, html};
use std::collections::HashMap;
use url::Url;

use super::asked::Asked;
use super::frame::framed;
use super::pieces::{ROWS, host, number, pager, reasons, section, table, time};
use super::query::Query;
use super::{about, read, trouble};
use crate::store::{HostDetail, HostHold, HostId, HostList, Page, WatchStore};
use crate::watch::admin::answer::Answer;
use crate::watch::control::HostLive;
use crate::watch::hands::why::{Around, of_host};
use crate::watch::hands::words;

/// A host, and how many of its URLs are in trouble.
type Row = (HostDetail, u64);

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let list = list_of(query);
    let found = read(&asked.site, None, move |reader, _| {
        let store = reader.store();
        let page = WatchStore::hosts(store, &list, ROWS)?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for host in page.rows {
            let troubles = store.troubles(host.host.id, MOST + 1)?;
            rows.push((host, troubles.values().sum()));
        }
        let next = page.next;
        Ok((Page { rows, next }, store.holds()?))
    });
    let (around, (page, holds)) = match found.await {
        Ok(found) => found,
        Err(error) => return trouble(&error),
    };
    let roots = page
        .rows
        .iter()
        .filter_map(|(host, _)| Url::parse(&host.host.root).ok());
    let live = asked.site.hosts(roots.collect()).await;
    let body = html! {
        (filter(query))
        (section("List", &shown(&around, query, page, &holds, live)))
    };
    framed(&asked, &around, "/hosts", "Hosts", &body)
}

fn list_of(query: &Query) -> HostList {
    let after = query.get("after");
    if query.get("sort") == Some("wait") {
        let place = after.and_then(|after| after.split_once('.'));
        let place = place.and_then(|(at, host)| {
            let at = Timestamp::from_millisecond(at.parse().ok()?).ok()?;
            Some((at, HostId(host.parse().ok()?)))
        });
        return HostList::Waiting { after: place };
    }
    HostList::Named {
        prefix: query.get("name").unwrap_or_default().to_owned(),
        after: after.map(str::to_owned),
    }
}

fn filter(query: &Query) -> Markup {
    let by_wait = query.get("sort") == Some("wait");
    html! {
        form.filter method="get" action="/hosts" {
            label { "Name begins with " input name="name" value=(words::safe(query.get("name").unwrap_or_default())); }
            label { "Order " select name="sort" {
                option value="name" { "by name" }
                option value="wait" selected[by_wait] { "longest due first" }
            } }
            button { "Show" }
        }
    }
}

fn shown(
    around: &Around,
    query: &Query,
    page: Page<Row, HostList>,
    holds: &[HostHold],
    live: Vec<HostLive>,
) -> Markup {
    let mut live: HashMap<String, HostLive> = live
        .into_iter()
        .map(|host| (host.waits.root.clone(), host))
        .collect();
    let rows: Vec<Vec<Markup>> = page
        .rows
        .iter()
        .map(|(detail, troubles)| {
            let root = &detail.host.root;
            let mut around = Around {
                hold: holds.iter().find(|hold| hold.root == *root).cloned(),
                ..around.clone()
            };
            about(&mut around.live, live.remove(root));
            let why = of_host(detail, &around);
            let next = [detail.next, detail.next_doubt].into_iter().flatten().min();
            vec![
                host(root),
                number(detail.urls),
                html! { @if *troubles > 0 { @if *troubles > MOST { (words::number(MOST)) "+" } @else { (number(*troubles)) } } },
                html! { @if detail.held > 0 { (number(detail.held)) } },
                html! { @if let Some(next) = next { (time(around.now, next)) } },
                reasons(&why, "asked now, or in a moment"),
            ]
        })
        .collect();
    let columns = [
        "Host",
        "#URLs",
        "#In trouble",
        "#Held",
        "#Next due",
        "Not asked",
    ];
    let next = page.next.and_then(|next| match next {
        HostList::Named { after, .. } => after,
        HostList::Waiting { after } => {
            after.map(|(at, host)| format!("{}.{}", at.as_millisecond(), host.0))
        }
    });
    html! {
        (table("Hosts", &columns, &rows, "There are no such hosts."))
        (pager(query, "/hosts", "after", next.as_deref()))
    }
}

/// Up to how many URLs in trouble are counted.
const MOST: u64 = 1_000;
