//! What is done to many URLs: they are removed, or asked again.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::content::{self, Texts};
use super::pieces::{OfSite, Who, after, in_pieces, needs_set, roots, with_next};
use super::problem::Problem;
use super::submit::LARGEST;
use super::{Answered, good};
use crate::watch::admin::{Site, Visitor};
use crate::watch::control::{Command, Submission, Target};
use crate::watch::hands::shortened_url;

/// Which URLs: one kind of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    urls: Option<Texts<{ Submission::MOST_URLS }>>,
    host: Option<String>,
    set: Option<String>,
    state: Option<String>,
    #[serde(default)]
    all: bool,
    /// `next` of the answer before.
    after: Option<String>,
}

/// `POST urls/remove`
pub(super) async fn remove(
    State(site): OfSite,
    Extension(visitor): Who,
    request: Request,
) -> Answered {
    let (mut body, _place): (Which, _) = content::read(&site, request, LARGEST).await?;
    // With URLs, a host, a state or all, a set is the one that they leave.
    let kinds = [
        body.urls.is_some(),
        body.host.is_some(),
        body.state.is_some(),
        body.all,
    ];
    let set = match kinds.contains(&true) {
        true => body.set.take(),
        false => None,
    };
    if let Some(set) = &set {
        needs_set(&site, set).await?;
    }
    let chosen = chosen(&site, body).await?;
    let command = |which: &Target, after| Command::Remove {
        set: set.clone(),
        which: which.clone(),
        after,
    };
    of_urls(&site, &visitor, chosen, "removed", command).await
}

/// `POST urls/recheck`
pub(super) async fn recheck(
    State(site): OfSite,
    Extension(visitor): Who,
    request: Request,
) -> Answered {
    let (body, _place): (Which, _) = content::read(&site, request, LARGEST).await?;
    let chosen = chosen(&site, body).await?;
    let command = |which: &Target, after| Command::Recheck {
        which: which.clone(),
        after,
    };
    of_urls(&site, &visitor, chosen, "made_due", command).await
}

/// What a request concerns.
struct Chosen {
    targets: Vec<Target>,
    /// URLs that were never watched, as they are shown.
    unknown: Option<Vec<String>>,
    after: Option<i64>,
}

/// # Errors
/// Not one kind is chosen, or what is chosen is not there.
async fn chosen(site: &Site, body: Which) -> Result<Chosen, Problem> {
    let kinds = [
        body.urls.is_some(),
        body.host.is_some(),
        body.set.is_some(),
        body.state.is_some(),
        body.all,
    ];
    match kinds.into_iter().filter(|is_given| *is_given).count() {
        0 => {
            return Err(Problem::field(
                "#",
                "nothing says which URLs: urls, host, set, state or all",
            ));
        }
        1 => {}
        _ => return Err(Problem::field("#", "more than one field says which URLs")),
    }
    let after = after(body.after.as_deref())?;
    let targets = if let Some(urls) = body.urls {
        return urls_of(site, urls, after).await;
    } else if let Some(host) = body.host {
        let roots = roots(site, &host).await?;
        match after.is_some() && roots.len() > 1 {
            // A place is in the list of one host.
            true => return Err(Problem::field("#/host", "the URL of the host is needed")),
            false => roots.into_iter().map(Target::Host).collect(),
        }
    } else if let Some(set) = body.set {
        needs_set(site, &set).await?;
        vec![Target::Set(set)]
    } else if let Some(state) = body.state {
        vec![Target::State(state.to_ascii_uppercase())]
    } else {
        vec![Target::All]
    };
    Ok(Chosen {
        targets,
        unknown: None,
        after,
    })
}

/// The URLs that the store knows, in commands.
async fn urls_of(
    site: &Site,
    urls: Texts<{ Submission::MOST_URLS }>,
    after: Option<i64>,
) -> Result<Chosen, Problem> {
    if urls.is_cut {
        let why = format!("more than {} URLs", Submission::MOST_URLS);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    if urls.texts.is_empty() {
        return Err(Problem::field("#/urls", "no URL"));
    }
    if after.is_some() {
        return Err(Problem::field("#/after", "URLs are done at once"));
    }
    let known = site.read(move |reader| {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for url in urls.texts {
            match reader.host_of(&url)? {
                Some(_) => known.push(url),
                None => unknown.push(shortened_url(&url)),
            }
        }
        Ok((known, unknown))
    });
    let (known, unknown) = known.await?;
    let targets = known.chunks(Command::MOST_URLS);
    Ok(Chosen {
        targets: targets.map(|urls| Target::Urls(urls.to_vec())).collect(),
        unknown: Some(unknown),
        after,
    })
}

/// Does something to the chosen URLs.
async fn of_urls(
    site: &Site,
    visitor: &Visitor,
    chosen: Chosen,
    done: &str,
    command: impl Fn(&Target, Option<i64>) -> Command,
) -> Answered {
    let (mut count, mut next) = (0, None);
    for which in &chosen.targets {
        let did = in_pieces(site, visitor, chosen.after, |after| command(which, after)).await?;
        count += did.count;
        next = next.or(did.next);
    }
    let mut value = json!({ done: count });
    if let Some(unknown) = chosen.unknown {
        value["not_watched"] = unknown.len().into();
        let first = unknown.into_iter().take(MOST_NAMED);
        value["first_not_watched"] = first.collect::<Value>();
    }
    Ok(good(with_next(value, next)))
}

/// How many URLs that are not watched are named.
const MOST_NAMED: usize = 100;
