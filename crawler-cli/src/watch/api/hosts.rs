//! Hosts and their holds.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use jiff::Timestamp;
use url::Url;

use super::problem::Problem;
use super::query::{NUMBER, Query};
use super::{Answered, good, page};
use crate::store::{HostId, HostList};
use crate::watch::admin::Site;
use crate::watch::control::{CoreMessage, HostLive};

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
    let values = host.values(&site.live().await, &told, Timestamp::now());
    let value = values.first();
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
