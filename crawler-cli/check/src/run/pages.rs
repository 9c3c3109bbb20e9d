//! The links of fetched pages: which of them are checked, and which are read in turn.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::checker::Reach;
use crate::links::{self, Kind};
use crate::sources::{Base, Batch, Input, Problem, ProblemKind, Resolved, Resolver, SourceOptions};
use crate::task::{Outcome, Page};
use plain::origin::root_of;
use store::{Demand, Link, Queued, Target};
use verdict::Reference;

/// Decides about the links of pages.
#[derive(Debug)]
pub(super) struct Pages {
    reach: Reach,
    resolver: Resolver,
    /// The pages that were read: the hash of the URL that answered, and the least depth at which the page was read. A
    /// page to which several URLs redirect is read once.
    read: HashMap<u128, u16>,
    /// What robots.txt and `/sitemap.xml` of hosts name, until a page of the host is read.
    sites: HashMap<Url, (Url, Page)>,
    /// The roots of the hosts whose sitemaps were read.
    seen: HashSet<Url>,
    /// Sitemaps so far.
    sitemaps: u32,
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
            resolver: Resolver::of_pages(Arc::clone(&sources.selection)),
            read: HashMap::new(),
            sites: HashMap::new(),
            seen: HashSet::new(),
            sitemaps: 0,
        }
    }

    /// Keeps what robots.txt or `/sitemap.xml` of a host names. A host is asked again after its work was removed.
    pub(super) fn add_site(&mut self, url: Url, page: Page) {
        let root = root_of(&url);
        if self.seen.insert(root.clone()) {
            self.sites.insert(root, (url, page));
        }
    }

    /// What the robots.txt or the sitemap of a page's host names, once for each host.
    pub(super) fn links_of_site(&mut self, queued: &Queued, outcome: &Outcome) -> Batch {
        let mut found = Batch::default();
        if self.sites.is_empty() || !queued.demand.links || !self.is_in_scope(queued.url.as_str()) {
            return found;
        }
        if let Some((url, page)) = self.sites.remove(&root_of(&queued.url)) {
            self.collect(url.as_str().into(), queued, outcome, &page, &mut found);
        }
        found
    }

    /// What the page of a URL refers to.
    pub(super) fn links(&mut self, queued: &Queued, outcome: &Outcome, page: &Page) -> Batch {
        let mut found = Batch::default();
        let is_input = queued.demand.given && queued.demand.depth == 0;
        let final_url = outcome.answer.final_url.as_deref();
        let url = final_url.unwrap_or(queued.url.as_str());
        let is_known = is_input || page.is_sitemap || self.is_in_scope(url);
        if !queued.demand.links || !is_known || self.was_read(url, queued.demand.depth) {
            return found;
        }
        let source: Arc<str> = match is_input {
            true => queued.url.as_str().into(),
            false => url.into(),
        };
        // A site can make new pages for ever.
        if self.read.len() > MOST_PAGES {
            let detail = format!("more than {MOST_PAGES} pages, its links are not read");
            found.problems.push(Problem {
                source,
                line: None,
                kind: ProblemKind::Cut,
                detail,
            });
            return found;
        }
        self.collect(source, queued, outcome, page, &mut found);
        found
    }

    fn collect(
        &mut self,
        source: Arc<str>,
        queued: &Queued,
        outcome: &Outcome,
        page: &Page,
        found: &mut Batch,
    ) {
        let problem = |kind, detail| Problem {
            source: Arc::clone(&source),
            line: None,
            kind,
            detail,
        };
        let of_page = page.problem.clone();
        found
            .problems
            .extend(of_page.map(|(kind, detail)| problem(kind, detail)));
        // The sitemap of a host names pages that are not below the inputs, too.
        let is_around = page.is_sitemap && !self.is_in_scope(&source);
        let base = Base::of_page(page.base.clone(), page.encoding);
        for link in &page.links {
            self.sitemaps += u32::from(link.kind == Kind::Sitemap);
            if link.kind == Kind::Sitemap && self.sitemaps > MOST_SITEMAPS {
                let detail = format!("{}: more than {MOST_SITEMAPS} sitemaps, not read", link.url);
                if found.problems.is_empty() {
                    found.problems.push(problem(ProblemKind::Cut, detail));
                }
                continue;
            }
            let (spelling, target) = match self.resolver.resolve(&link.url, &base) {
                Resolved::Checked(_, Target::Ask(url, _))
                    if is_around
                        && link.kind != Kind::Sitemap
                        && self.reach.scope.judge(&url).is_err() =>
                {
                    continue;
                }
                Resolved::Checked(spelling, Target::Ask(url, _)) => {
                    let demand = self.demand(queued, outcome, link.kind, &url);
                    (spelling, Target::Ask(url, demand))
                }
                Resolved::Checked(spelling, local) => (spelling, local),
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
                spelling,
                target,
                reference: reference(&source, link),
                is_in_page: true,
            });
        }
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
        let links = match kind {
            Kind::Embedded => false,
            Kind::Sitemap => is_near,
            Kind::Document => is_near && self.reach.scope.judge(url).is_ok(),
        };
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
}

/// The most pages of a run whose links are read.
const MOST_PAGES: usize = 100_000;

/// The most sitemaps of a run: as many as an index may have.
const MOST_SITEMAPS: u32 = 50_000;

fn reference(source: &Arc<str>, link: &links::Link<'_>) -> Reference {
    Reference {
        source: Arc::clone(source),
        line: Some(link.line).filter(|line| *line > 0),
        column: Some(link.column).filter(|column| *column > 0),
        written: None,
        text: link.text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crawl::scope::Scope;
    use encoding_rs::UTF_8;
    use store::{EntryId, HostId, UrlId};
    use verdict::Verdict;

    use super::*;

    #[test]
    fn a_site_without_an_end_is_read_up_to_a_limit() {
        let reach = Reach {
            depth: u32::MAX,
            scope: Scope::default(),
        };
        let mut pages = Pages::new(reach, &[], &SourceOptions::default());
        let url = Url::parse("http://h/").expect("valid");
        let demand = Demand {
            given: true,
            private: false,
            links: true,
            depth: 0,
        };
        let queued = Queued {
            entry: EntryId(1),
            host: HostId(1),
            id: UrlId(1),
            url: url.clone(),
            demand,
            past: None,
        };
        let page = Page {
            base: url,
            encoding: UTF_8,
            is_sitemap: false,
            links: Vec::new(),
            problem: None,
        };
        let outcome = Outcome::not_asked(crate::task::UrlId(1), Verdict::Ok, "");
        pages
            .read
            .extend((0..MOST_PAGES as u128).map(|page| (page, 0)));
        let found = pages.links(&queued, &outcome, &page);
        assert_eq!(found.problems[0].kind, ProblemKind::Cut);
    }
}
