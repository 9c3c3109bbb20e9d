//! Replaces URLs in files by those that they have moved to: `--fix-redirects`.
//!
//! Only the characters of the URL change, at the places where the check found the URL. A file that is not as the check
//! read it is left alone, and so is a place where the new URL would change anything else in the document.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use similar::TextDiff;
use url::{Host, Url};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::links::{Document, Format, Link, Syntax};
use super::record::{Checked, Reference};
use super::select::Selection;
use super::sources::{Original, Originals};

/// Edits files.
///
/// ```
/// use std::ffi::OsStr;
/// use std::time::Duration;
/// use crawler_cli::check::Reference;
/// use crawler_cli::check::fix::{Fixer, Move};
/// use crawler_cli::check::sources::{Input, Next, Originals, SourceOptions, start};
///
/// # let folder = std::env::temp_dir().join(format!("courser-fix-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let file = folder.join("a.html");
/// std::fs::write(&file, "<a href='http://example.com/old'>a</a>\n")?;
/// let originals = Originals::default();
/// let options = SourceOptions { originals: Some(originals.clone()), ..SourceOptions::default() };
/// let mut batches = start(vec![Input::from_argument(file.as_os_str())?], options);
/// let mut moves = Vec::new();
/// loop {
///     match batches.next(Duration::from_secs(1)) {
///         Next::Batch(batch) => moves.extend(batch.occurrences.into_iter().map(|found| Move {
///             url: found.spelling.into(),
///             to: "https://example.com/new".to_owned(),
///             reference: found.reference,
///         })),
///         Next::Nothing => {}
///         Next::End => break,
///     }
/// }
/// let fixed = Fixer::new(&originals).fix(&moves);
/// assert_eq!(fixed[0].replaced, 1);
/// assert_eq!(std::fs::read_to_string(&file)?, "<a href='https://example.com/new'>a</a>\n");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fixer {
    originals: Originals,
    selection: Arc<Selection>,
    cross_domain: bool,
    to_root: bool,
    dry_run: bool,
}

/// A place whose URL has moved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Move {
    /// The URL as reported.
    pub url: String,
    /// Where it has moved to, confirmed.
    pub to: String,
    /// The place.
    pub reference: Reference,
}

/// What became of a file.
#[derive(Debug)]
pub struct Fixed {
    /// The file, as reported.
    pub source: Arc<str>,
    /// The number of URLs that were replaced in the file, or would be.
    pub replaced: usize,
    /// What changes: a unified diff; empty if nothing does.
    pub diff: String,
    /// The places that were left alone.
    pub kept: Vec<Kept>,
    /// Why the file could not be edited. Nothing was changed then.
    pub error: Option<FixError>,
}

/// A place that was left alone.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The place and the URLs.
    pub place: Move,
    /// Why.
    pub reason: KeptReason,
}

/// Why a place was left alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeptReason {
    /// The new URL is the root of a host, and the old one is not.
    ToRoot,
    /// The new URL is of another registrable domain.
    CrossDomain,
    /// The URL is remapped: the redirect is not that of the URL in the file.
    Remapped,
    /// The URL is written in another way, such as relative to a base.
    WrittenOtherwise,
    /// The new URL cannot be written there without changing more than the URL.
    NotWritable,
    /// The source is no file that can be edited: a page, standard input, a compressed file or a file of records.
    NotEditable,
}

/// Why a file could not be edited.
#[derive(Debug)]
pub enum FixError {
    /// The file was changed since it was read.
    Changed,
    /// The file could not be read or written.
    Io(io::Error),
}

impl Fixer {
    /// Edits the files that were read with these originals.
    pub fn new(originals: &Originals) -> Self {
        Self {
            originals: originals.clone(),
            selection: Arc::default(),
            cross_domain: false,
            to_root: false,
            dry_run: false,
        }
    }

    /// The selection of the check, whose remapped URLs are left alone.
    pub fn selection(mut self, selection: Arc<Selection>) -> Self {
        self.selection = selection;
        self
    }

    /// Whether new URLs of another registrable domain are written. Default: no.
    pub fn cross_domain(mut self, allowed: bool) -> Self {
        self.cross_domain = allowed;
        self
    }

    /// Whether new URLs that are the root of a host are written. Default: no.
    pub fn to_root(mut self, allowed: bool) -> Self {
        self.to_root = allowed;
        self
    }

    /// Whether nothing is written. Default: no.
    pub fn dry_run(mut self, dry: bool) -> Self {
        self.dry_run = dry;
        self
    }

    /// Whether the source of a place is a file whose links were read, and that can be edited.
    pub fn may_edit(&self, place: &Move) -> bool {
        self.originals.find(&place.reference.source).is_some()
    }

    /// Replaces the URLs of all places. Each file is written once. The result has the files in the order of the moves.
    pub fn fix(&self, moves: &[Move]) -> Vec<Fixed> {
        let mut order = Vec::new();
        let mut files: HashMap<&str, Vec<&Move>> = HashMap::new();
        for place in moves {
            let source = &place.reference.source;
            let file = files.entry(source).or_default();
            if file.is_empty() {
                order.push(source);
            }
            file.push(place);
        }
        let fixed = order.into_iter().map(|source| {
            let moves = files.remove(&**source).unwrap_or_default();
            self.file(source, &moves)
        });
        fixed.collect()
    }

    fn file(&self, source: &Arc<str>, moves: &[&Move]) -> Fixed {
        let mut fixed = Fixed {
            source: source.clone(),
            replaced: 0,
            diff: String::new(),
            kept: Vec::new(),
            error: None,
        };
        let Some(original) = self.originals.find(source) else {
            let kept = moves
                .iter()
                .map(|place| place.kept(KeptReason::NotEditable));
            fixed.kept = kept.collect();
            return fixed;
        };
        if let Err(error) = self.edit(&original, moves, &mut fixed) {
            fixed.replaced = 0;
            fixed.diff.clear();
            fixed.error = Some(error);
        }
        fixed
    }

    fn edit(
        &self,
        original: &Original,
        moves: &[&Move],
        fixed: &mut Fixed,
    ) -> Result<(), FixError> {
        let file = Target::open(&original.path)?;
        if xxh3_128(&file.bytes) != original.hash {
            return Err(FixError::Changed);
        }
        let text = Text::new(original.format, &file.bytes);
        let mut edits = Vec::new();
        for place in moves {
            match self.edits(place, &text) {
                Ok(found) => edits.extend(found),
                Err(reason) => fixed.kept.push(place.kept(reason)),
            }
        }
        // Uses of one reference of Markdown share the place of its definition.
        edits.sort_by_key(|edit| edit.span.start);
        edits.dedup_by_key(|edit| edit.span.start);
        let good = text.harmless(&edits);
        let bad = edits.iter().filter(|edit| !good.contains(edit));
        fixed
            .kept
            .extend(bad.map(|edit| edit.place.kept(KeptReason::NotWritable)));
        if good.is_empty() {
            return Ok(());
        }
        let new = text.with(&good);
        fixed.replaced = good.len();
        fixed.diff = diff(&fixed.source, &file.bytes, &new);
        match self.dry_run {
            true => Ok(()),
            false => file.replace(&new),
        }
    }

    /// What has to be written for a move.
    fn edits<'m>(&self, place: &'m Move, text: &Text<'_>) -> Result<Vec<Edit<'m>>, KeptReason> {
        let (Ok(old), Ok(new)) = (Url::parse(&place.url), Url::parse(&place.to)) else {
            return Err(KeptReason::WrittenOtherwise);
        };
        let is_root = |url: &Url| url.path() == "/" && url.query().is_none();
        if !self.to_root && is_root(&new) && !is_root(&old) {
            return Err(KeptReason::ToRoot);
        }
        if !self.cross_domain && registrable(&old) != registrable(&new) {
            return Err(KeptReason::CrossDomain);
        }
        if self.selection.remapped(old.clone()).as_ref() != Ok(&old) {
            return Err(KeptReason::Remapped);
        }
        let mut url = place.to.clone();
        if new.fragment().is_none()
            && let Some((_, fragment)) = place.url.split_once('#')
        {
            url.push('#');
            url.push_str(fragment);
        }
        let edits: Vec<Edit<'m>> = text
            .links
            .iter()
            .filter(|link| link.is(place))
            .filter_map(|link| {
                let written = link.syntax.write(&url);
                // A vertical bar would end a cell of a table of Markdown. Both are the same URL.
                let read = match link.syntax {
                    Syntax::Markdown => Cow::Owned(url.replace('|', "%7C")),
                    _ => Cow::Borrowed(&url),
                };
                Some(Edit {
                    span: link.span.clone()?,
                    written,
                    hash: xxh3_64(read.as_bytes()),
                    place,
                })
            })
            .collect();
        match edits.is_empty() {
            true => Err(KeptReason::WrittenOtherwise),
            false => Ok(edits),
        }
    }
}

impl Move {
    /// The moves of a URL that was checked: one for each place that refers to it. None if it has not moved.
    pub fn of(checked: &Checked) -> impl Iterator<Item = Self> {
        let to = checked.moved_to.as_deref();
        let references = to.map_or(&[][..], |_| &checked.references);
        references.iter().map(move |reference| Self {
            url: checked.url.clone(),
            to: to.unwrap_or_default().to_owned(),
            reference: reference.clone(),
        })
    }

    fn kept(&self, reason: KeptReason) -> Kept {
        let place = self.clone();
        Kept { place, reason }
    }
}

/// The text of a file, and its links.
struct Text<'t> {
    format: Format,
    bytes: &'t [u8],
    links: Vec<Found>,
}

/// A link of the text.
struct Found {
    line: u32,
    column: u32,
    /// A hash of the URL. The texts of all URLs of a large file would take much memory.
    hash: u64,
    span: Option<Range<usize>>,
    syntax: Syntax,
}

/// What is written in place of a URL.
#[derive(Clone, Debug, PartialEq)]
struct Edit<'m> {
    span: Range<usize>,
    written: String,
    /// The hash of the URL that is read there then.
    hash: u64,
    place: &'m Move,
}

impl<'t> Text<'t> {
    fn new(format: Format, bytes: &'t [u8]) -> Self {
        let mut links = Vec::new();
        // XML may be cut. Its links before that are read.
        let _ = Document::new(format, bytes, None).read(&mut |link: Link<'_>| {
            links.push(Found {
                line: link.line,
                column: link.column,
                hash: xxh3_64(link.url.as_bytes()),
                span: link.span,
                syntax: link.syntax,
            });
        });
        Self {
            format,
            bytes,
            links,
        }
    }

    /// The text after edits, which are in order.
    fn with(&self, edits: &[Edit<'_>]) -> Vec<u8> {
        let mut new = Vec::with_capacity(self.bytes.len());
        let mut end = 0;
        for edit in edits {
            new.extend_from_slice(&self.bytes[end..edit.span.start]);
            new.extend_from_slice(edit.written.as_bytes());
            end = edit.span.end;
        }
        new.extend_from_slice(&self.bytes[end..]);
        new
    }

    /// Those of the edits that change nothing but the URLs of links.
    fn harmless<'m>(&self, edits: &[Edit<'m>]) -> Vec<Edit<'m>> {
        if edits.is_empty() || self.stays(edits) {
            return edits.to_vec();
        }
        if edits.len() == 1 {
            return Vec::new();
        }
        let (left, right) = edits.split_at(edits.len() / 2);
        let mut good = self.harmless(left);
        good.extend(self.harmless(right));
        match self.stays(&good) {
            true => good,
            false => Vec::new(),
        }
    }

    /// Whether the text after the edits has the same links in the same lines, with the new URLs.
    fn stays(&self, edits: &[Edit<'_>]) -> bool {
        let by_start: BTreeMap<usize, &Edit<'_>> =
            edits.iter().map(|edit| (edit.span.start, edit)).collect();
        let edit = |link: &Found| by_start.get(&link.span.as_ref()?.start);
        let new = self.with(edits);
        let new = Text::new(self.format, &new).links;
        let is_same = |(old, new): (&Found, &Found)| {
            let hash = edit(old).map_or(old.hash, |edit| edit.hash);
            (old.line, hash) == (new.line, new.hash)
        };
        new.len() == self.links.len() && self.links.iter().zip(&new).all(is_same)
    }
}

impl Found {
    /// Whether the link is the one of this move.
    fn is(&self, place: &Move) -> bool {
        let reference = &place.reference;
        reference.line == Some(self.line)
            && reference.column == Some(self.column)
            && xxh3_64(place.url.as_bytes()) == self.hash
    }
}

/// What must stay the same: the registrable domain, or else the whole host.
fn registrable(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            Some(psl::domain_str(name).unwrap_or(name).to_owned())
        }
        host => Some(host.to_string()),
    }
}

fn diff(source: &str, old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure()
        .timeout(LONGEST_DIFF)
        .diff_lines(&*old, &*new);
    diff.unified_diff().header(source, source).to_string()
}

/// A file to be edited: not the symbolic link that leads to it.
struct Target {
    path: PathBuf,
    bytes: Vec<u8>,
    /// As it was before the bytes were read.
    metadata: fs::Metadata,
}

impl Target {
    fn open(path: &Path) -> Result<Self, FixError> {
        let path = fs::canonicalize(path).map_err(FixError::Io)?;
        let metadata = fs::metadata(&path).map_err(FixError::Io)?;
        let bytes = fs::read(&path).map_err(FixError::Io)?;
        Ok(Self {
            path,
            bytes,
            metadata,
        })
    }

    /// Puts a file with these bytes in place of the file: whole, or not at all.
    fn replace(&self, bytes: &[u8]) -> Result<(), FixError> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let temporary = self.path.with_file_name(name);
        let replaced = self.write(&temporary, bytes).and_then(|()| {
            if !self.is_unchanged() {
                return Err(FixError::Changed);
            }
            fs::rename(&temporary, &self.path).map_err(FixError::Io)
        });
        if replaced.is_err() {
            // It may not have been created.
            let _ = fs::remove_file(&temporary);
        }
        replaced?;
        let folder = self.path.parent().map(File::open);
        match folder.map(|folder| folder?.sync_all()) {
            Some(Err(error)) => Err(FixError::Io(error)),
            _ => Ok(()),
        }
    }

    fn write(&self, temporary: &Path, bytes: &[u8]) -> Result<(), FixError> {
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(temporary)?;
            file.write_all(bytes)?;
            // Only the superuser may give files away. The owner is that of the process then.
            let _ = fchown(&file, Some(self.metadata.uid()), Some(self.metadata.gid()));
            file.set_permissions(self.metadata.permissions())?;
            file.sync_all()
        };
        write().map_err(FixError::Io)
    }

    fn is_unchanged(&self) -> bool {
        let of = |metadata: &fs::Metadata| {
            let time = (metadata.mtime(), metadata.mtime_nsec());
            (metadata.dev(), metadata.ino(), metadata.len(), time)
        };
        fs::metadata(&self.path).is_ok_and(|now| of(&now) == of(&self.metadata))
    }
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToRoot => "it leads to the root of a host (--fix-to-root)",
            Self::CrossDomain => "it leads to another domain (--fix-cross-domain)",
            Self::Remapped => "the URL is remapped",
            Self::WrittenOtherwise => "the URL is written in another way there",
            Self::NotWritable => "the new URL cannot be written there",
            Self::NotEditable => "this source cannot be edited",
        })
    }
}

impl fmt::Display for FixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => {
                f.write_str("the file was changed since it was read: nothing is edited")
            }
            Self::Io(error) => write!(f, "cannot be edited: {error}"),
        }
    }
}

impl std::error::Error for FixError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Changed => None,
            Self::Io(error) => Some(error),
        }
    }
}

/// After this time, a diff is no longer the smallest.
const LONGEST_DIFF: Duration = Duration::from_secs(5);
