//! Hosts, their holds and their pauses.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Uri;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::content;
use super::pieces::{OfSite, Who, not_a_count, roots};
use super::problem::Problem;
use super::query::{NUMBER, Query};
use super::{Answered, good, page};
use crate::store::{HostId, HostList, Scope};
use crate::watch::admin::Site;
use crate::watch::admin::body::SMALL;
use crate::watch::control::{Command, CoreMessage, HoldDeed, HostLive, Reply};

/// `GET hosts`
pub(super) async fn list(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["name", "after", "limit"])?;
    let list = HostList::Named {
        prefix: query.text("name").unwrap_or_default().to_owned(),
        after: query.text("after").map(str::to_owned),
    };
    let limit = query.limit()?;
    let hosts = site
        .read(move |reader| reader.some_hosts(&list, limit))
        .await?;
    let roots = hosts.page.rows.iter().map(|detail| &*detail.host.root);
    let told = told(&site, roots).await;
    let items = hosts.values(&site.live().await, &told, Timestamp::now());
    let next = hosts.page.next.and_then(|next| match next {
        HostList::Named { after, .. } => after,
        HostList::Waiting { .. } => None,
    });
    Ok(page(items, next))
}

/// `GET host`
pub(super) async fn one(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["root"])?;
    query.needed("root")?;
    let root = query.root("root")?.unwrap_or_default();
    let known = root.clone();
    let host = site.read(move |reader| reader.one_host(&known)).await?;
    let told = told(&site, [&*root]).await;
    let mut values = host.values(&site.live().await, &told, Timestamp::now());
    let value = values.pop();
    let value = value.ok_or_else(|| Problem::not_found("no URL of the host was ever watched"));
    Ok(good(value?))
}

/// `GET holds`
pub(super) async fn holds(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["after", "limit"])?;
    let after = query.parsed("after", NUMBER)?.map(HostId);
    let limit = query.limit()?;
    let holds = site
        .read(move |reader| reader.hold_values(after, limit))
        .await?;
    Ok(page(holds.rows, holds.next.map(|next| next.0.to_string())))
}

/// Which hosts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    host: String,
}

/// `POST hosts/release`
pub(super) async fn release(site: OfSite, who: Who, request: Request) -> Answered {
    end_hold(site, who, request, HoldDeed::Release, "released").await
}

/// `POST hosts/confirm`
pub(super) async fn confirm(site: OfSite, who: Who, request: Request) -> Answered {
    end_hold(site, who, request, HoldDeed::Confirm, "confirmed").await
}

async fn end_hold(
    State(site): OfSite,
    Extension(visitor): Who,
    request: Request,
    deed: HoldDeed,
    done: &str,
) -> Answered {
    let (Host { host: name }, _) = content::read(&site, request, SMALL).await?;
    let mut ended = Vec::new();
    for host in roots(&site, &name).await? {
        let root = host.clone();
        let command = Command::Hold { host, deed };
        match site.perform(visitor.who.clone(), command).await? {
            Reply::Count { count, .. } => ended.push(json!({ "host": root, "urls": count })),
            // A name may mean two hosts, of which one is held.
            Reply::Refused(refusal) if refusal.is_not_found() => {}
            Reply::Refused(refusal) => return Err(refusal.into()),
            _ => return Err(not_a_count()),
        }
    }
    match ended.is_empty() {
        true => Err(Problem::not_found(format!("{name} is not held"))),
        false => Ok(good(json!({ done: ended }))),
    }
}

/// What is paused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paused {
    host: Option<String>,
    #[serde(default)]
    all: bool,
}

/// `POST pause`
pub(super) async fn pause(site: OfSite, who: Who, request: Request) -> Answered {
    let command = |what| Command::Pause { what };
    pause_or_resume(site, who, request, "paused", command).await
}

/// `POST resume`
pub(super) async fn resume(site: OfSite, who: Who, request: Request) -> Answered {
    let command = |what| Command::Resume { what };
    pause_or_resume(site, who, request, "resumed", command).await
}

async fn pause_or_resume(
    State(site): OfSite,
    Extension(visitor): Who,
    request: Request,
    done: &str,
    command: impl Fn(Scope) -> Command,
) -> Answered {
    let (Paused { host, all }, _) = content::read(&site, request, SMALL).await?;
    let scopes = match (host, all) {
        (Some(host), false) => {
            let roots = roots(&site, &host).await?;
            roots.into_iter().map(Scope::Host).collect()
        }
        (None, true) => vec![Scope::All],
        _ => return Err(Problem::field("#", "either host or all is needed")),
    };
    let (mut named, mut missing) = (Vec::new(), None);
    for scope in scopes {
        match site
            .perform(visitor.who.clone(), command(scope.clone()))
            .await?
        {
            // A name may mean two hosts, of which one is paused.
            Reply::Refused(refusal) if refusal.is_not_found() => missing = Some(refusal),
            Reply::Refused(refusal) => return Err(refusal.into()),
            _ => named.push(match scope {
                Scope::All => "everything".to_owned(),
                Scope::Host(root) => root,
            }),
        }
    }
    match missing {
        Some(refusal) if named.is_empty() => Err(refusal.into()),
        _ => Ok(good(json!({ done: named }))),
    }
}

/// What the service says of the hosts with these roots.
pub(super) async fn told<'r>(
    site: &Site,
    roots: impl IntoIterator<Item = &'r str>,
) -> Vec<HostLive> {
    let roots = roots.into_iter().filter_map(|root| Url::parse(root).ok());
    let roots: Vec<Url> = roots.collect();
    let mut told = Vec::new();
    for some in roots.chunks(CoreMessage::MOST_HOSTS) {
        told.extend(site.hosts(some.to_vec()).await);
    }
    told
}
