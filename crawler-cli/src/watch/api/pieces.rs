//! What routes that change something share: the type of their handlers, commands that are done in pieces, and names.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;

use super::problem::Problem;
use crate::watch::admin::{Site, Trouble, Visitor};
use crate::watch::control::{Command, Reply};

pub(super) type OfSite = State<Arc<Site>>;
pub(super) type Who = Extension<Visitor>;

/// What pieces of a command have done.
#[derive(Default)]
pub(super) struct Did {
    pub(super) count: u64,
    pub(super) passed: u64,
    /// The command is to be repeated with this.
    pub(super) next: Option<i64>,
}

/// Has a command performed that is done in pieces, up to some of them: a request does not take minutes.
pub(super) async fn in_pieces(
    site: &Site,
    visitor: &Visitor,
    first: Option<i64>,
    command_after: impl Fn(Option<i64>) -> Command,
) -> Result<Did, Problem> {
    let mut did = Did {
        next: first,
        ..Did::default()
    };
    for piece in 0..MOST_PIECES {
        let command = command_after(did.next);
        match site.perform(visitor.who.clone(), command).await {
            Ok(Reply::Count {
                count,
                passed,
                after,
            }) => {
                did.count += count;
                did.passed += passed;
                did.next = after;
                if after.is_none() {
                    break;
                }
            }
            Ok(Reply::Refused(refusal)) => return Err(refusal.into()),
            Ok(_) => return Err(not_a_count()),
            // What was done is told, and the rest is left to the next request.
            Err(Trouble::Busy) if piece > 0 => break,
            Err(trouble) => return Err(trouble.into()),
        }
    }
    Ok(did)
}

pub(super) fn with_next(mut value: Value, next: Option<i64>) -> Value {
    if let Some(next) = next {
        value["next"] = next.to_string().into();
    }
    value
}

/// # Errors
/// It is no place.
pub(super) fn after(text: Option<&str>) -> Result<Option<i64>, Problem> {
    let after = text.map(str::parse::<i64>).transpose();
    after.map_err(|_| Problem::field("#/after", "'next' of an answer of this route is needed"))
}

/// The hosts that a name means.
///
/// # Errors
/// None is watched.
pub(super) async fn roots(site: &Site, name: &str) -> Result<Vec<String>, Problem> {
    let asked = name.to_owned();
    let roots = site.read(move |reader| reader.roots(&asked)).await?;
    match roots.is_empty() {
        true => Err(Problem::not_found(format!(
            "{name}: no such host is watched"
        ))),
        false => Ok(roots),
    }
}

/// # Errors
/// There is no such set.
pub(super) async fn needs_set(site: &Site, name: &str) -> Result<(), Problem> {
    let asked = name.to_owned();
    match site.read(move |reader| reader.has_set(&asked)).await? {
        true => Ok(()),
        false => Err(Problem::not_found(format!("{name}: no such set"))),
    }
}

/// The reply is that to another command.
pub(super) fn not_a_count() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "not a count")
}

/// How many pieces of a command one request does: 100,000 rows.
const MOST_PIECES: usize = 50;
