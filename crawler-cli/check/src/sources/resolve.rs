//! What a link means: a URL to ask, a file on the disk, or nothing that can be checked.

use std::io;
use std::path::Path;
use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8};
use url::{ParseError, Url};

use super::SourceOptions;
use super::disk::Disk;
use crate::select::Selection;
use listing::markup::encoding::join;
use store::{Demand, Target};
use verdict::{Cause, Verdict};

/// Resolves links. All threads share one.
#[derive(Debug)]
pub(crate) struct Resolver {
    base_url: Option<Url>,
    /// The URL of the folder that links beginning with `/` start from.
    root: Option<Url>,
    selection: Arc<Selection>,
    /// `None`: links are of fetched pages, and the files that they name are of another machine.
    disk: Option<Disk>,
}

/// What relative links of a document are relative to.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    url: Url,
    /// The encoding of the document, in which queries are sent.
    encoding: &'static Encoding,
    /// Whether `--root-dir` applies: the document names no other site as its base.
    is_own: bool,
}

/// What a link means.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// Its spelling and its target. A URL to ask counts as [given](GIVEN).
    Checked(Box<str>, Target),
    /// Its scheme is not checked.
    Unsupported,
    /// It is left out by the selection.
    Excluded,
}

impl Resolver {
    pub(super) fn new(options: &SourceOptions) -> Self {
        let root = options.root_dir.as_deref().and_then(|folder| {
            let folder = std::path::absolute(folder).ok()?;
            Url::from_directory_path(folder).ok()
        });
        Self {
            base_url: options.base_url.clone(),
            root,
            selection: options.selection.clone(),
            disk: Some(Disk::new(options.fragments, options.max_size)),
        }
    }

    /// For the links of fetched pages.
    pub(crate) fn of_pages(selection: Arc<Selection>) -> Self {
        Self {
            base_url: None,
            root: None,
            selection,
            disk: None,
        }
    }

    pub(super) fn base_of_file(&self, path: &Path) -> io::Result<Base> {
        let file = Url::from_file_path(std::path::absolute(path)?);
        self.base(file)
    }

    /// What is read from standard input has no path: its links are relative to the working folder.
    pub(super) fn base_of_stdin(&self) -> io::Result<Base> {
        let folder = Url::from_directory_path(std::path::absolute(".")?);
        self.base(folder)
    }

    fn base(&self, document: Result<Url, ()>) -> io::Result<Base> {
        let own = document.map_err(|()| io::Error::from(io::ErrorKind::InvalidFilename));
        Ok(Base {
            url: match &self.base_url {
                Some(url) => url.clone(),
                None => own?,
            },
            encoding: UTF_8,
            is_own: true,
        })
    }

    /// The base of a document in this encoding that names this base itself.
    pub(super) fn within(
        &self,
        base: &Base,
        href: Option<&str>,
        encoding: &'static Encoding,
    ) -> Base {
        let named = href.and_then(|href| self.join(href, base).ok());
        // As browsers do: such a base is ignored.
        let named = named.filter(|url| !url.cannot_be_a_base());
        let url = named.unwrap_or_else(|| base.url.clone());
        Base {
            is_own: base.is_own
                && url.scheme() == base.url.scheme()
                && url.host() == base.url.host(),
            url,
            encoding,
        }
    }

    /// What a URL means that has no base.
    pub(super) fn absolute(&self, text: &str) -> Resolved {
        if is_unsupported(text) {
            return Resolved::Unsupported;
        }
        match Url::parse(text) {
            Ok(url) => self.select(text.into(), url),
            Err(error) => self.invalid(text, &error),
        }
    }

    /// What a link of a document means.
    pub(crate) fn resolve(&self, text: &str, base: &Base) -> Resolved {
        if is_unsupported(text) {
            return Resolved::Unsupported;
        }
        match self.join(text, base) {
            // A URL that needs no base keeps its spelling.
            Ok(url) if Url::parse(text).as_ref() == Ok(&url) => self.select(text.into(), url),
            Ok(url) => self.select(url.as_str().into(), url),
            Err(error) => self.invalid(text, &error),
        }
    }

    /// Joins a link to its base.
    fn join(&self, text: &str, base: &Base) -> Result<Url, ParseError> {
        let is_separator = |c: char| c == '/' || c == '\\';
        let below = text.strip_prefix(is_separator);
        match (below, &self.root) {
            // A host without a scheme. That of the document would be `file`.
            (Some(rest), _) if rest.starts_with(is_separator) && base.url.scheme() == "file" => {
                Url::parse(&format!("https:{text}"))
            }
            (Some(rest), Some(root)) if !rest.starts_with(is_separator) && base.is_own => {
                root.join(&format!("./{rest}"))
            }
            _ => join(&base.url, text, base.encoding),
        }
    }

    fn select(&self, spelling: Box<str>, url: Url) -> Resolved {
        match (url.scheme(), &self.disk) {
            ("http" | "https", _) | ("file", Some(_)) if !self.selection.checks(url.as_str()) => {
                Resolved::Excluded
            }
            ("http" | "https", _) => Resolved::Checked(spelling, Target::Ask(url, GIVEN)),
            ("file", Some(disk)) => {
                let (verdict, detail) = disk.judge(&url);
                Resolved::Checked(spelling, Target::Local(verdict, detail))
            }
            _ => Resolved::Unsupported,
        }
    }

    fn invalid(&self, text: &str, error: &ParseError) -> Resolved {
        if !self.selection.checks(text) {
            return Resolved::Excluded;
        }
        let verdict = Verdict::Failed(Cause::InvalidUrl);
        let detail = format!("not a valid URL: {error}");
        Resolved::Checked(text.into(), Target::Local(verdict, Some(detail)))
    }
}

impl Base {
    /// What relative links of a fetched page are relative to.
    pub(crate) fn of_page(url: Url, encoding: &'static Encoding) -> Self {
        Self {
            url,
            encoding,
            is_own: false,
        }
    }
}

/// What is wanted from a URL that the user, a list of URLs or a local file names: `Disallow` of robots.txt does not apply,
/// and a private address may be asked.
pub(super) const GIVEN: Demand = Demand {
    given: true,
    private: true,
    links: false,
    depth: 0,
};

/// Whether a text begins with a scheme that is not checked. Spares the parsing of long `data:` URLs.
fn is_unsupported(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let Some((scheme, _)) = text.split_once(|c| !is_part(c)) else {
        return false;
    };
    text[scheme.len()..].starts_with(':')
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && !["http", "https", "file"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a link in the file `/nowhere/docs/a.md` means: `?` for a URL that is asked, `!` and the cause for one that
    /// is not good.
    fn meaning(options: SourceOptions, href: Option<&str>, text: &str) -> String {
        let resolver = Resolver::new(&options);
        let base = resolver.base_of_file(Path::new("/nowhere/docs/a.md"));
        let base = resolver.within(&base.expect("a path"), href, UTF_8);
        match resolver.resolve(text, &base) {
            Resolved::Unsupported => "unsupported".to_owned(),
            Resolved::Excluded => "excluded".to_owned(),
            Resolved::Checked(spelling, Target::Ask(url, _)) if *spelling == *url.as_str() => {
                format!("? {url}")
            }
            Resolved::Checked(spelling, Target::Ask(url, _)) => format!("? {url} for {spelling}"),
            Resolved::Checked(spelling, Target::Local(Verdict::Failed(cause), Some(_))) => {
                format!("! {spelling} {}", cause.name())
            }
            Resolved::Checked(spelling, Target::Local(verdict, _)) => {
                format!("{verdict:?} {spelling}")
            }
        }
    }

    fn plain(text: &str) -> String {
        meaning(SourceOptions::default(), None, text)
    }

    #[test]
    fn links_of_files_are_asked_or_looked_up() {
        let table = [
            ("https://example.com/", "? https://example.com/"),
            (
                "HTTP://A.com/a b",
                "? http://a.com/a%20b for HTTP://A.com/a b",
            ),
            ("//example.com/x", "? https://example.com/x"),
            ("b.md", "! file:///nowhere/docs/b.md file_missing"),
            ("../x/?q#f", "! file:///nowhere/x/?q#f file_missing"),
            ("/abs", "! file:///abs file_missing"),
            ("#f", "! file:///nowhere/docs/a.md#f file_missing"),
            ("file:///no/such", "! file:///no/such file_missing"),
            ("file:///", "Ok file:///"),
            ("mailto:a@example.com", "unsupported"),
            ("java\tscript:void(0)", "unsupported"),
            ("ftp://example.com/", "unsupported"),
            ("http://", "! http:// invalid_url"),
            ("https://a b.com/", "! https://a b.com/ invalid_url"),
        ];
        for (link, expected) in table {
            assert_eq!(plain(link), expected, "{link}");
        }
    }

    #[test]
    fn bases_and_roots_are_respected() {
        // The options, the base of the document, the link, and what it means.
        let table = "
            base - a => ? https://example.com/dir/a
            base - /b => ? https://example.com/b
            base - //x.org/b => ? https://x.org/b
            base ../z/ b => ? https://example.com/z/b
            root - /b/c?d#e => ! file:///no/site/b/c?d#e file_missing
            root - /a:b => ! file:///no/site/a:b file_missing
            root - //x.org/b => ? https://x.org/b
            root - b => ! file:///nowhere/docs/b file_missing
            root http://x.org/y/ /b => ? http://x.org/b
            root http://x.org/y/ b => ? http://x.org/y/b
            root /y/ b => ! file:///no/site/y/b file_missing
            root mailto:a b => ! file:///nowhere/docs/b file_missing
            both - b => ? https://example.com/dir/b
            both - /b => ! file:///no/site/b file_missing";
        for row in table.trim().lines() {
            let (link, expected) = row.trim().split_once(" => ").expect("a row");
            let [options, href, link] = link.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{row}");
            };
            let base_url = Url::parse("https://example.com/dir/page").expect("valid");
            let options = SourceOptions {
                base_url: (options != "root").then_some(base_url),
                root_dir: (options != "base").then(|| "/no/site".into()),
                ..SourceOptions::default()
            };
            let href = Some(href).filter(|href| *href != "-");
            assert_eq!(meaning(options, href, link), expected, "{row}");
        }
    }

    #[test]
    fn the_selection_is_applied() {
        let meaning = |link: &str| {
            let selection = Selection {
                exclude: vec![regex::Regex::new("drafts|bad").expect("valid")],
                ..Selection::default()
            };
            let options = SourceOptions {
                selection: Arc::new(selection),
                ..SourceOptions::default()
            };
            meaning(options, None, link)
        };
        for excluded in ["drafts/a.md", "http://bad host/", "http://x.org/drafts"] {
            assert_eq!(meaning(excluded), "excluded", "{excluded}");
        }
        assert_eq!(meaning("http://x.org/a"), "? http://x.org/a");
    }
}
