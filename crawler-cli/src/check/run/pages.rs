//! The links of fetched pages: which of them are checked, and which are read in turn.

use std::collections::HashMap;
use std::sync::Arc;

use url::{ParseError, Url};
use xxhash_rust::xxh3::xxh3_128;

use crate::check::checker::Reach;
use crate::check::links::Kind;
use crate::check::record::Reference;
use crate::check::select::Selection;
use crate::check::sources::{Input, Problem, ProblemKind, SourceOptions, is_unsupported};
use crate::check::task::{Outcome, Page, PageLink};
use crate::check::verdict::{Cause, Verdict};
use crate::store::{Demand, Link, Queued, Target};

/// Decides about the links of pages.
#[derive(Debug)]
pub(super) struct Pages {
    reach: Reach,
    selection: Arc<Selection>,
    /// The pages that were read: the hash of the URL that answered, and the least depth at which the page was read. A
    /// page to which several URLs redirect is read once.
    read: HashMap<u128, u16>,
}

/// What a page refers to.
#[derive(Debug, Default)]
pub(super) struct PageLinks {
    pub(super) links: Vec<Link>,
    /// Links with schemes that are not checked.
    pub(super) unsupported: u64,
    /// Links that the selection left out.
    pub(super) excluded: u64,
    /// Why links may be missing.
    pub(super) problem: Option<Problem>,
}

/// What a link of a page means.
enum Resolved {
    Ask(Box<str>, Url),
    Invalid(String),
    Unsupported,
    Excluded,
}

impl Pages {
    pub(super) fn new(mut reach: Reach, inputs: &[Input], sources: &SourceOptions) -> Self {
        for input in inputs {
            if let Input::Page { url, .. } = input {
                reach.scope.start(url);
            }
        }
        Self {
            reach,
            selection: Arc::clone(&sources.selection),
            read: HashMap::new(),
        }
    }

    /// What the page of a URL refers to.
    pub(super) fn links(&mut self, queued: &Queued, outcome: &Outcome, page: &Page) -> PageLinks {
        let mut found = PageLinks::default();
        let is_input = queued.demand.given && queued.demand.depth == 0;
        let url = outcome.final_url.as_deref().unwrap_or(&queued.url);
        if !queued.demand.links || !(is_input || self.is_in_scope(url)) {
            return found;
        }
        if self.was_read(url, queued.demand.depth) {
            return found;
        }
        let source: Arc<str> = match is_input {
            true => queued.url.as_str().into(),
            false => url.into(),
        };
        if let Some(detail) = &page.problem {
            found.problem = Some(Problem {
                source: Arc::clone(&source),
                line: None,
                kind: ProblemKind::Cut,
                detail: detail.clone(),
            });
        }
        for link in &page.links {
            let target = match self.resolve(&link.url, &page.base) {
                Resolved::Ask(spelling, url) => {
                    let demand = self.demand(queued, outcome, link.kind, &url);
                    (spelling, Target::Ask(url, demand))
                }
                Resolved::Invalid(detail) => {
                    let verdict = Verdict::Failed(Cause::InvalidUrl);
                    (link.url.clone(), Target::Local(verdict, Some(detail)))
                }
                Resolved::Unsupported => {
                    found.unsupported += 1;
                    continue;
                }
                Resolved::Excluded => {
                    found.excluded += 1;
                    continue;
                }
            };
            found.links.push(Link {
                spelling: target.0,
                target: target.1,
                reference: reference(&source, link),
                is_in_page: true,
            });
        }
        found
    }

    /// Whether the page of this URL was read before, at this depth or a smaller one. Notes that it is read now.
    fn was_read(&mut self, url: &str, depth: u16) -> bool {
        let least = self
            .read
            .entry(xxh3_128(url.as_bytes()))
            .or_insert(u16::MAX);
        let was_read = *least <= depth;
        *least = depth.min(*least);
        was_read
    }

    /// What is wanted from a URL that a page refers to.
    fn demand(&self, page: &Queued, outcome: &Outcome, kind: Kind, url: &Url) -> Demand {
        // A list of sitemaps is one sitemap in many parts.
        let depth = match kind {
            Kind::Sitemap => page.demand.depth,
            Kind::Document | Kind::Embedded => page.demand.depth.saturating_add(1),
        };
        let is_near = u32::from(depth) <= self.reach.depth;
        let links = kind != Kind::Embedded && is_near && self.reach.scope.judge(url).is_ok();
        Demand {
            given: false,
            private: outcome.is_private,
            links,
            // Without a limit, it does not matter which way is the shortest.
            depth: match self.reach.depth {
                u32::MAX => 0,
                _ => depth,
            },
        }
    }

    fn is_in_scope(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.reach.scope.judge(&url).is_ok())
    }

    fn resolve(&self, text: &str, base: &Url) -> Resolved {
        if is_unsupported(text) {
            return Resolved::Unsupported;
        }
        match Url::parse(text) {
            Ok(url) => self.select(text.into(), url),
            Err(ParseError::RelativeUrlWithoutBase) => match base.join(text) {
                Ok(url) => self.select(url.as_str().into(), url),
                Err(error) => self.invalid(text, &error),
            },
            Err(error) => self.invalid(text, &error),
        }
    }

    fn select(&self, spelling: Box<str>, url: Url) -> Resolved {
        match url.scheme() {
            "http" | "https" if self.selection.checks(url.as_str()) => Resolved::Ask(spelling, url),
            "http" | "https" => Resolved::Excluded,
            // The files of another machine.
            _ => Resolved::Unsupported,
        }
    }

    fn invalid(&self, text: &str, error: &ParseError) -> Resolved {
        match self.selection.checks(text) {
            true => Resolved::Invalid(format!("not a valid URL: {error}")),
            false => Resolved::Excluded,
        }
    }
}

fn reference(source: &Arc<str>, link: &PageLink) -> Reference {
    Reference {
        source: Arc::clone(source),
        line: Some(link.line),
        column: Some(link.column),
        text: link.text.to_string(),
    }
}
