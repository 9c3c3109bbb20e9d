//! The operator's page: server-made HTML, which a small script shows anew in place. Every list goes on by a key, every
//! number is read by an index, and all text of others is escaped. Forms have the same done as the command line.

mod asked;
mod assets;
mod changes;
mod charts;
mod config;
mod deeds;
mod forms;
mod frame;
mod holds;
mod host;
mod hosts;
mod letters;
mod log;
mod overview;
mod pieces;
mod query;
mod schedules;
mod strip;
mod url;
mod urls;
mod webhooks;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use jiff::Timestamp;

use crate::store::StoreError;
use crate::watch::admin::answer::{Answer, text};
use crate::watch::admin::{Site, Trouble};
use crate::watch::control::HostLive;
use crate::watch::hands::why::Around;
use crate::watch::hands::{Live, Reader};

pub(in crate::watch) use frame::bare;

/// All pages, their forms and files.
pub(in crate::watch) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/", get(overview::page))
        .route("/search", get(query::search))
        .route("/url", get(url::page))
        .route("/urls", get(urls::page))
        .route("/host", get(host::page))
        .route("/hosts", get(hosts::page))
        .route("/changes", get(changes::page))
        .route("/holds", get(holds::page))
        .route("/letters", get(letters::page))
        .route("/letter", get(letters::one))
        .route("/schedules", get(schedules::page))
        .route("/webhooks", get(webhooks::page))
        .route("/config", get(config::page))
        .route("/log", get(log::page))
        .route("/do/{deed}", get(forms::question).post(forms::perform))
        .merge(assets::routes())
}

/// Reads what a page shows, and what is around. `root`: the host that the page is about.
async fn read<T, F>(site: &Site, root: Option<&str>, read: F) -> Result<(Around, T), Trouble>
where
    F: FnOnce(&mut Reader, &Around) -> Result<T, StoreError> + Send + 'static,
    T: Send + 'static,
{
    let mut live = site.live().await;
    if let Some(root) = root {
        about(&mut live, of_host(site, root).await);
    }
    let root = root.map(str::to_owned);
    let both = move |reader: &mut Reader| {
        let around = reader.around(root.as_deref(), live, Timestamp::now())?;
        let found = read(reader, &around)?;
        Ok((around, found))
    };
    site.read(both).await
}

/// What the service says about a host.
async fn of_host(site: &Site, root: &str) -> Option<HostLive> {
    let root = ::url::Url::parse(root).ok()?;
    site.hosts(vec![root]).await.pop()
}

/// Adds what is said of a host, if the service has something of the host under way or waiting.
fn about(live: &mut Live, host: Option<HostLive>) {
    let Live::Running(status) = live else { return };
    if let (Some(core), Some(host)) = (&mut status.core, host)
        && host.waits.under_way + host.waits.waiting > 0
    {
        core.host = Some(host.waits);
    }
}

/// A page that cannot be made.
fn trouble(trouble: &Trouble) -> Answer {
    let why = format!("{}\n", in_words(trouble));
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

fn in_words(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Store(error) => format!("the store cannot be read: {error}"),
        Trouble::Busy => "too much is asked at once: try again in a moment".to_owned(),
        Trouble::Ended => "the service ends".to_owned(),
    }
}
