//! Dead letters.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::content;
use super::pieces::{Did, OfSite, Who, after, in_pieces, with_next};
use super::problem::Problem;
use super::query::{NUMBER, Query};
use super::{Answered, good, page};
use crate::store::{DeadLetterFilter, DeadLetterId};
use crate::values;
use crate::watch::admin::body::SMALL;
use crate::watch::admin::{Site, Visitor};
use crate::watch::control::{Command, Letters};

/// `GET dead-letters`
pub(super) async fn list(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let known = ["reason", "host", "queue", "since", "after", "limit"];
    let query = Query::read(&uri, &known)?;
    let text = |name| query.text(name).map(str::to_owned);
    let filter = DeadLetterFilter {
        reason: text("reason"),
        host: query.read_by("host", values::host_name)?,
        queue: text("queue"),
        since: query.read_by("since", values::since)?,
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
    Ok(good(letter))
}

/// Which dead letters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichLetters {
    number: Option<i64>,
    reason: Option<String>,
    host: Option<String>,
    queue: Option<String>,
    since: Option<String>,
    #[serde(default)]
    all: bool,
    /// `next` of the answer before.
    after: Option<String>,
}

impl WhichLetters {
    /// # Errors
    /// Nothing says which, `all` is said besides, or a value is not what it should be.
    fn read(self) -> Result<(Letters, Option<i64>), Problem> {
        let letters = Letters {
            number: self.number,
            reason: self.reason,
            host: field("host", self.host, values::host_name)?,
            queue: self.queue,
            since: field("since", self.since, values::since)?,
        };
        let is_limited = letters != Letters::default();
        if is_limited == self.all {
            let why = match self.all {
                true => "all and another field say which dead letters",
                false => "nothing says which dead letters; all means all",
            };
            return Err(Problem::field("#", why));
        }
        Ok((letters, after(self.after.as_deref())?))
    }
}

/// # Errors
/// The field is not what it should be.
fn field<T>(
    name: &str,
    text: Option<String>,
    read: fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Problem> {
    let wrong = |text: &str, why| Problem::field(&format!("#/{name}"), format!("{text:?}: {why}"));
    text.map(|text| read(&text).map_err(|why| wrong(&text, why)))
        .transpose()
}

/// `POST dead-letters/replay`
pub(super) async fn replay(
    State(site): OfSite,
    Extension(visitor): Who,
    request: Request,
) -> Answered {
    let command = |letters, after| Command::Replay { letters, after };
    let (letters, did) = perform(&site, &visitor, request, command).await?;
    let value = json!({ "replayed": did.count, "passed": did.passed });
    of_letters(&letters, did, value, "replayed")
}

/// `POST dead-letters/drop`
pub(super) async fn drop(
    State(site): OfSite,
    Extension(visitor): Who,
    request: Request,
) -> Answered {
    let command = |letters, _| Command::Drop { letters };
    let (letters, did) = perform(&site, &visitor, request, command).await?;
    let value = json!({ "dropped": did.count });
    of_letters(&letters, did, value, "dropped")
}

/// Has something done with the dead letters that a request names, from the one with a number on.
async fn perform(
    site: &Arc<Site>,
    visitor: &Visitor,
    request: Request,
    command: impl Fn(Letters, Option<i64>) -> Command,
) -> Result<(Letters, Did), Problem> {
    let (body, _): (WhichLetters, _) = content::read(site, request, SMALL).await?;
    let (letters, first) = body.read()?;
    let command = |after| command(letters.clone(), after);
    let did = in_pieces(site, visitor, first, command).await?;
    Ok((letters, did))
}

fn of_letters(letters: &Letters, did: Did, value: Value, done: &str) -> Answered {
    match letters.number {
        Some(number) if did.count == 0 => {
            let why = format!("{number}: nothing to be {done}");
            Err(Problem::not_found(why))
        }
        _ => Ok(good(with_next(value, did.next))),
    }
}
