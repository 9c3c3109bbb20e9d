//! Dead letters.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;

use super::problem::Problem;
use super::query::{NUMBER, Query};
use super::{Answered, good, page};
use crate::store::{DeadLetterFilter, DeadLetterId};
use crate::watch::admin::Site;

/// `GET dead-letters`
pub(super) async fn list(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let known = ["reason", "host", "queue", "since", "after", "limit"];
    let query = Query::read(&uri, &known)?;
    let text = |name| query.text(name).map(str::to_owned);
    let filter = DeadLetterFilter {
        reason: text("reason"),
        host: text("host"),
        queue: text("queue"),
        since: query.parsed("since", "a time such as 2026-11-01T00:00:00Z")?,
        ..DeadLetterFilter::default()
    };
    let before = query.after()?.map_or(DeadLetterId::END, DeadLetterId);
    let limit = query.limit()?;
    let letters = site
        .read(move |reader| reader.letter_values(&filter, before, limit))
        .await?;
    let next = letters.next.map(|next| next.0.to_string());
    Ok(page(letters.rows, next))
}

/// `GET dead-letter`
pub(super) async fn one(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["number"])?;
    query.needed("number")?;
    let number = query.parsed("number", NUMBER)?.unwrap_or_default();
    let letter = site.read(move |reader| reader.letter_value(number)).await?;
    let letter = letter.ok_or_else(|| Problem::not_found(format!("no dead letter {number}")))?;
    Ok(good(&letter))
}
