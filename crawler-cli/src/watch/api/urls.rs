//! URLs and their changes of state.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use jiff::Timestamp;

use super::hosts::told;
use super::problem::Problem;
use super::query::{Query, written_key};
use super::{Answered, good, page};
use crate::store::{Cursor, UrlList};
use crate::watch::admin::Site;

/// `GET urls`
pub(super) async fn list(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["state", "host", "set", "after", "limit"])?;
    let list = UrlList {
        set: query.text("set").map(str::to_owned),
        host: query.root("host")?,
        state: query.state()?,
        after: query.url_key()?,
    };
    let limit = query.limit()?;
    let urls = site
        .read(move |reader| reader.url_values(&list, limit))
        .await?;
    Ok(page(urls.rows, urls.next.map(written_key)))
}

/// `GET url`
pub(super) async fn one(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["url"])?;
    let url = query.needed("url")?.to_owned();
    let unknown = || Problem::not_found("the URL was never watched");
    let known = url.clone();
    let root = site.read(move |reader| reader.host_of(&known)).await?;
    let root = root.ok_or_else(unknown)?;
    let hosts = told(&site, [&*root]).await;
    let live = site.live().await.with_host(hosts.first());
    let url = site.read(move |reader| reader.url_value(&url, live, Timestamp::now()));
    Ok(good(url.await?.ok_or_else(unknown)?))
}

/// `GET changes`
pub(super) async fn changes(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["after", "limit"])?;
    let (after, limit) = (Cursor(query.after()?.unwrap_or(0)), query.limit()?);
    let read = site.read(move |reader| reader.change_values(after, limit));
    let (changes, last) = read.await?;
    Ok(page(changes, Some(last.0.to_string())))
}
