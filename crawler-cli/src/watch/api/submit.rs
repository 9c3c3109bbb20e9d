//! `POST urls`: a program submits URLs.

use std::str;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use ring::digest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Answered;
use super::content::{self, Texts};
use super::problem::Problem;
use super::query::Query;
use crate::watch::admin::answer::{Answer, typed};
use crate::watch::admin::body::{Sent, kind_of, read_body};
use crate::watch::admin::{Site, Visitor};
use crate::watch::control::{Command, Reply, RequestKey, Submission, Submitted};
use crate::watch::hands::{line, shortened_url};

/// What a program sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    urls: Texts<{ Submission::MOST_URLS }>,
    set: Option<String>,
}

/// `POST urls`
pub(super) async fn submit(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Answered {
    let is_text = kind_of(request.headers()) == Some("text/plain");
    let query = Query::read(request.uri(), if is_text { &["set"] } else { &[] })?;
    let key = key(request.headers())?;
    let kind = if is_text {
        "text/plain"
    } else {
        "application/json"
    };
    let target = request.uri().clone();
    let Sent { content, place } = read_body(&site, request, LARGEST).await?;
    let key = key.map(|key| RequestKey {
        holder: visitor.id,
        key,
        request: hash(&target, kind, &content),
    });
    let Body { urls, set } = match is_text {
        true => Body {
            urls: lines(&content)?,
            set: query.text("set").map(str::to_owned),
        },
        false => content::parse(&content)?,
    };
    drop(content);
    if urls.is_cut {
        let why = format!("more than {} URLs", Submission::MOST_URLS);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    if urls.texts.is_empty() {
        return Err(Problem::field("#/urls", "no URL"));
    }
    let submission = Submission {
        set: set.unwrap_or_else(|| Command::OWN_SET.to_owned()),
        urls: urls.texts,
        key,
        answer,
    };
    let submitted = site.submit(visitor.who, submission).await?;
    drop(place);
    match submitted {
        Submitted::Done(Reply::Refused(refusal), _) => Err(refusal.into()),
        Submitted::Done(_, answer) => Ok(accepted(answer)),
        Submitted::Before(remembered) => {
            let mut answer = accepted(remembered.answer);
            let is = HeaderValue::from_static("true");
            answer.headers_mut().insert("idempotency-replayed", is);
            Ok(answer)
        }
        Submitted::UnderWay => Err(Problem::header(
            StatusCode::CONFLICT,
            KEY,
            "a request with this key is under way",
        )),
        Submitted::Differs => Err(Problem::header(
            StatusCode::UNPROCESSABLE_ENTITY,
            KEY,
            "another request was done with this key",
        )),
        Submitted::TooMany => {
            let why = format!("more than {} keys in 24 hours", RequestKey::MOST);
            let problem = Problem::header(StatusCode::TOO_MANY_REQUESTS, KEY, &why);
            Err(problem.retry_after(LATER))
        }
    }
}

fn accepted(answer: String) -> Answer {
    typed(StatusCode::ACCEPTED, "application/json", answer)
}

/// The key of a request, if it has one.
///
/// # Errors
/// It has two, or one that is no key.
fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let wrong = |why: &str| Problem::header(StatusCode::BAD_REQUEST, KEY, why);
    let mut keys = headers.get_all(KEY).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    if keys.next().is_some() {
        return Err(wrong("given twice"));
    }
    let key = key.to_str().unwrap_or_default();
    let is_plain = key.bytes().all(|byte| byte.is_ascii_graphic());
    match is_plain && (1..=LONGEST_KEY).contains(&key.len()) {
        true => Ok(Some(key.to_owned())),
        false => {
            let why = format!("1 to {LONGEST_KEY} printable ASCII characters without blanks");
            Err(wrong(&why))
        }
    }
}

/// What tells requests apart.
fn hash(target: &Uri, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in [target.to_string().as_bytes(), kind.as_bytes(), body] {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finish().as_ref().to_vec()
}

/// One URL in each line, as a file of URLs has them.
///
/// # Errors
/// It is no text.
fn lines<const MOST: usize>(body: &[u8]) -> Result<Texts<MOST>, Problem> {
    let text = str::from_utf8(body)
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?;
    let lines = text.trim_start_matches('\u{feff}').lines();
    let lines = lines.map(str::trim);
    let mut urls = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(Texts {
        texts: urls.by_ref().take(MOST).map(str::to_owned).collect(),
        is_cut: urls.next().is_some(),
    })
}

/// What is answered: the words of `watch add --json`.
fn answer(submission: &Submission, reply: &Reply) -> String {
    let Reply::Added {
        new,
        known,
        gone,
        rejected,
    } = reply
    else {
        return String::new();
    };
    let named = rejected.iter().take(MOST_NAMED).map(|(index, why)| {
        let url = submission.urls.get(*index).map(|url| shortened_url(url));
        json!({ "index": index, "url": url, "why": why })
    });
    line(&json!({
        "set": submission.set,
        "new": new,
        "known": known,
        "gone": gone,
        "rejected": rejected.len(),
        "first_rejected": named.collect::<Value>(),
    }))
}

/// The header field that makes a request one.
const KEY: &str = "Idempotency-Key";
const LONGEST_KEY: usize = 200;
/// The largest body that names URLs: 10,000 URLs of 800 bytes.
pub(super) const LARGEST: usize = 8 << 20;
/// How many rejected URLs are named.
const MOST_NAMED: usize = 100;
/// When a holder of too many keys may have another one: some of them end every hour, if they were not used all at once.
const LATER: u64 = 3600;
