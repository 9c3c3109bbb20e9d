//! What a person should look at, kept until the end of the check: reports for persons are grouped by source, and a source
//! comes back at any time. The amount is bounded; what is beyond the bound is only counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use url::{Position, Url};

use check::host::GIVEN_UP;
use check::reason::{is_of_host_given_up, reason};
use check::{Checked, Redirects, Standing};
use verdict::Reference;

/// In which part of a report a URL is listed, in the order of the parts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Part {
    /// A person has to mend it.
    Broken,
    /// The answers say nothing about it.
    Unjudged,
    /// It is broken, but not for long enough to count.
    Excused,
    /// It is good after redirects.
    Redirected,
    /// It is good, and header lines of its answer were not.
    Lenient,
}

impl Part {
    pub(super) const ALL: [Self; 5] = [
        Self::Broken,
        Self::Unjudged,
        Self::Excused,
        Self::Redirected,
        Self::Lenient,
    ];

    /// The part for a URL; `None` if there is nothing to look at.
    pub(super) fn of(checked: &Checked, redirects: Redirects) -> Option<Self> {
        let is_good = checked.answer.verdict.cause().is_none();
        match checked.standing {
            Standing::Fails if is_good => Some(Self::Redirected),
            Standing::Fails => Some(Self::Broken),
            Standing::Warns | Standing::Untrusted => Some(Self::Unjudged),
            Standing::FailsRecently(_) => Some(Self::Excused),
            Standing::Passes => {
                let is_listed =
                    !checked.answer.redirects.is_empty() && redirects != Redirects::Ignore;
                match is_listed {
                    _ if !is_good => None,
                    true => Some(Self::Redirected),
                    false => checked.lenient().map(|_| Self::Lenient),
                }
            }
        }
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Broken => "Broken",
            Self::Unjudged => "Not judged",
            Self::Excused => "Broken, but not counted",
            Self::Redirected => "Redirected",
            Self::Lenient => "Good, with wrong header lines",
        }
    }
}

/// A URL and what the reports for persons say about it.
pub(super) struct Judged<'a> {
    pub(super) checked: &'a Checked,
    /// `None` if there is nothing to look at.
    pub(super) part: Option<Part>,
    /// Why the URL is not good, or where it leads; empty if there is nothing to look at.
    pub(super) reason: String,
}

impl<'a> Judged<'a> {
    pub(super) fn new(checked: &'a Checked, redirects: Redirects) -> Self {
        let part = Part::of(checked, redirects);
        let reason = part.and_then(|_| reason(checked)).unwrap_or_default();
        Self {
            checked,
            part,
            reason,
        }
    }
}

/// One place that refers to a URL.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) source: Arc<str>,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
    /// A file of this machine: the link as written, and the path.
    pub(super) url: Arc<str>,
    pub(super) reason: Arc<str>,
}

/// URLs of a host that was given up, which share one reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GivenUp {
    pub(super) urls: u64,
    pub(super) places: u64,
}

impl Place {
    /// `12:5`; empty if the line is not known.
    pub(super) fn position(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{line}:{column}"),
            (Some(line), None) => line.to_string(),
            (None, _) => String::new(),
        }
    }
}

/// The places of one part.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    kept: Vec<Place>,
    /// By host and reason. The reason does not say that the host was given up.
    given_up: BTreeMap<(String, String), GivenUp>,
    /// The texts of what is kept, in bytes.
    bytes: usize,
    /// Places that are not kept.
    more: u64,
    /// URLs, kept or not.
    urls: u64,
}

/// What was found about a URL, for places that are found later: the same is said about these.
#[derive(Clone, Debug)]
struct Finding {
    part: Part,
    reason: Arc<str>,
    is_given_up: bool,
}

impl Finding {
    fn of(judged: &Judged<'_>) -> Option<Self> {
        Some(Self {
            part: judged.part?,
            reason: judged.reason.as_str().into(),
            is_given_up: is_of_host_given_up(judged.checked),
        })
    }
}

impl Places {
    fn add(&mut self, checked: &Checked, finding: Finding) {
        let is_first = checked.is_news();
        self.urls += u64::from(is_first);
        let reason = finding.reason;
        if finding.is_given_up && self.add_given_up(checked, &reason) {
            return;
        }
        let url: Arc<str> = checked.url.as_str().into();
        self.bytes += url.len() + reason.len();
        for reference in &checked.references {
            self.push(Place {
                source: Arc::clone(&reference.source),
                line: reference.line,
                column: reference.column,
                url: shown(&url, reference),
                reason: Arc::clone(&reason),
            });
        }
        if checked.references.is_empty() && is_first {
            self.push(Place {
                source: "".into(),
                line: None,
                column: None,
                url,
                reason,
            });
        }
    }

    /// Counts a URL of a host that was given up. Returns whether there was room for it.
    fn add_given_up(&mut self, checked: &Checked, reason: &str) -> bool {
        let reason = reason.replacen(&format!(" ({GIVEN_UP})"), "", 1);
        let key = (host_of(&checked.url), reason);
        if !self.given_up.contains_key(&key) {
            if self.bytes >= MOST_BYTES {
                return false;
            }
            self.bytes += key.0.len() + key.1.len();
        }
        let given_up = self.given_up.entry(key).or_default();
        let is_first = checked.is_news();
        given_up.urls += u64::from(is_first);
        given_up.places += checked.references.len().max(usize::from(is_first)) as u64;
        true
    }

    /// Counts the URLs of hosts that were given up that were asked before, and failed in the same way, with the others.
    fn fold(&mut self) {
        let given_up = &mut self.given_up;
        if given_up.is_empty() {
            return;
        }
        let mut urls = HashSet::new();
        self.kept.retain(|place| {
            let key = (host_of(&place.url), place.reason.to_string());
            let Some(given_up) = given_up.get_mut(&key) else {
                return true;
            };
            given_up.urls += u64::from(urls.insert(Arc::clone(&place.url)));
            given_up.places += 1;
            false
        });
    }

    fn push(&mut self, place: Place) {
        if self.kept.len() < MOST_PLACES && self.bytes < MOST_BYTES {
            // A source is usually shared by many places; this counts the text of each as its own.
            self.bytes += place.source.len();
            self.kept.push(place);
        } else {
            self.more += 1;
        }
    }

    /// By source and position.
    fn sort(&mut self) {
        self.kept.sort_by(|a, b| {
            let key = |place: &Place| (place.line, place.column);
            let by_source = a.source.cmp(&b.source);
            by_source
                .then_with(|| key(a).cmp(&key(b)))
                .then_with(|| a.url.cmp(&b.url))
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.urls == 0
    }

    /// URLs, also those of which no place is kept.
    pub(super) fn urls(&self) -> u64 {
        self.urls
    }

    /// Places, also those that are not kept.
    pub(super) fn all(&self) -> u64 {
        let given_up: u64 = self.given_up.values().map(|it| it.places).sum();
        self.kept.len() as u64 + self.more + given_up
    }

    /// Hosts that were given up, with the reason why.
    pub(super) fn given_up(&self) -> impl Iterator<Item = (&str, &str, GivenUp)> {
        let rows = self.given_up.iter();
        rows.map(|((host, reason), given_up)| (&**host, &**reason, *given_up))
    }

    /// Places that are not kept.
    pub(super) fn more(&self) -> u64 {
        self.more
    }

    /// The places that are kept, in groups with the same source.
    pub(super) fn by_source(&self) -> impl Iterator<Item = &[Place]> {
        self.kept.chunk_by(|a, b| a.source == b.source)
    }
}

/// All parts, and the problems with sources.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    parts: [Places; Part::ALL.len()],
    /// By URL, without a fragment: what was found.
    found: HashMap<Box<str>, Finding>,
    /// The texts of `found`, in bytes.
    found_bytes: usize,
    problems: Vec<String>,
    more_problems: u64,
}

impl Findings {
    pub(super) fn add(&mut self, judged: &Judged<'_>) {
        let checked = judged.checked;
        // The places of a URL whose verdict changed go along with it.
        let places = match checked.before.is_some() && checked.is_news() {
            true => self.take(&identity(&checked.url)),
            false => Vec::new(),
        };
        let finding = match checked.is_late() {
            true => self.found_before(checked).or_else(|| Finding::of(judged)),
            false => Finding::of(judged),
        };
        let Some(finding) = finding else {
            return;
        };
        if !checked.is_late() && self.found_bytes < MOST_BYTES {
            let url = identity(&checked.url);
            self.found_bytes += url.len() + finding.reason.len();
            self.found.insert(url, finding.clone());
        }
        let part = &mut self.parts[finding.part as usize];
        for place in places {
            part.push(Place {
                reason: Arc::clone(&finding.reason),
                ..place
            });
        }
        part.add(checked, finding);
    }

    /// Takes back what was found about a URL, and returns its places that are kept.
    fn take(&mut self, url: &str) -> Vec<Place> {
        let Some(finding) = self.found.remove(url) else {
            return Vec::new();
        };
        let part = &mut self.parts[finding.part as usize];
        part.urls = part.urls.saturating_sub(1);
        let kept = part
            .kept
            .extract_if(.., |place| *identity(&place.url) == *url);
        kept.collect()
    }

    /// What was found about a URL when it was reported, if the same is said about it now.
    fn found_before(&self, checked: &Checked) -> Option<Finding> {
        let is_same = checked
            .before
            .is_some_and(|it| it.verdict == checked.answer.verdict);
        let finding = is_same.then(|| self.found.get(&identity(&checked.url)))?;
        finding.cloned()
    }

    pub(super) fn add_problem(&mut self, text: &str) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(text.to_owned());
        } else {
            self.more_problems += 1;
        }
    }

    /// Puts the places in order. No more are added after this.
    pub(super) fn sort(&mut self) {
        for part in &mut self.parts {
            part.fold();
            part.sort();
        }
    }

    pub(super) fn part(&self, part: Part) -> &Places {
        &self.parts[part as usize]
    }

    /// The problems with sources, and the number of further ones.
    pub(super) fn problems(&self) -> (&[String], u64) {
        (&self.problems, self.more_problems)
    }
}

/// What all spellings of a URL have in common. A file is known by its spelling alone.
fn identity(url: &str) -> Box<str> {
    match Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url[..Position::AfterQuery].into(),
        _ => url.into(),
    }
}

/// Scheme and authority; empty for what has none.
fn host_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    url.map_or_else(String::new, |url| url.origin().ascii_serialization())
}

/// How a place shows the URL. A link to a file is known by what is written there.
fn shown(url: &Arc<str>, reference: &Reference) -> Arc<str> {
    let Some(written) = &reference.written else {
        return Arc::clone(url);
    };
    let path = Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
    let path = path.map(|path| path.to_string_lossy().into_owned());
    format!("{written} ({})", path.as_deref().unwrap_or(url)).into()
}

/// How a source is shown.
pub(super) fn source_name(source: &str) -> &str {
    match source {
        "" => "given on the command line",
        "-" => "standard input",
        source => source,
    }
}

/// The largest number of places of one part that are kept.
const MOST_PLACES: usize = 20_000;

/// The largest size of the texts of one part that are kept, and of what is kept for places that are found later.
const MOST_BYTES: usize = 4 << 20;

/// The largest number of problems with sources that are kept.
const MOST_PROBLEMS: usize = 1000;
