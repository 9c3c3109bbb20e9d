//! A directory tree whose names break careless crawlers, and what each kind of server shows of the tree.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

/// A generated tree on disk; dropping it deletes it.
pub struct Tree {
    root: TempDir,
}

/// What a listing of the tree leaves out.
#[derive(Clone, Copy, Debug)]
pub enum Hidden {
    /// Nothing: Apache httpd without `IndexIgnore`, and Python.
    Nothing,
    /// Names that begin with a dot: nginx.
    Dotted,
}

/// Paths relative to the root, in bytes, with `/` between the segments; directories end with `/`, the root is `""`.
pub type Paths = BTreeSet<Vec<u8>>;

impl Tree {
    /// Every awkward name as a file at the root, and as a directory with files of awkward names; two deep chains of
    /// directories; empty directories.
    pub fn awkward() -> io::Result<Self> {
        let mut names = utf8_names();
        names.push(b"latin1-caf\xe9".to_vec());
        Self::of(&names)
    }

    /// The same without names that are not UTF-8: those of Python's server depend on its version.
    pub fn awkward_utf8() -> io::Result<Self> {
        Self::of(&utf8_names())
    }

    fn of(names: &[Vec<u8>]) -> io::Result<Self> {
        let root = open_to_other_users(tempfile::tempdir()?)?;
        let base = root.path();
        for (at, name) in names.iter().enumerate() {
            let name = OsStr::from_bytes(name);
            // A file and a directory cannot share a name in one directory, so the files get one of their own.
            File::create(create_directory(base, "files")?.join(name))?;
            let directory = base.join(name);
            fs::create_dir(&directory)?;
            for offset in [0, 1, 7] {
                let inner = &names[(at + offset) % names.len()];
                File::create(directory.join(OsStr::from_bytes(inner)))?;
            }
            fs::create_dir(directory.join("empty"))?;
        }
        for chain in ["deep", "a b%20c"] {
            let mut directory = base.to_owned();
            for level in 0..12 {
                // Crawlers take a name that recurs for a loop, so that each level has its own.
                directory = create_directory(&directory, &format!("{chain} {level}"))?;
                File::create(directory.join(format!("level {level}.xml")))?;
            }
        }
        Ok(Self { root })
    }

    /// Where the tree is.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// All files that a crawl through listings with these omissions can find.
    pub fn files(&self, hidden: Hidden) -> io::Result<Paths> {
        Ok(self.walk(hidden)?.0)
    }

    /// All directories that such a crawl has to read, with the root.
    pub fn directories(&self, hidden: Hidden) -> io::Result<Paths> {
        Ok(self.walk(hidden)?.1)
    }

    fn walk(&self, hidden: Hidden) -> io::Result<(Paths, Paths)> {
        let (mut files, mut directories) = (Paths::new(), Paths::new());
        let mut open = vec![Vec::new()];
        while let Some(prefix) = open.pop() {
            for entry in fs::read_dir(self.path().join(OsStr::from_bytes(&prefix)))? {
                let entry = entry?;
                let name = entry.file_name().into_vec();
                if hidden.hides(&name) {
                    continue;
                }
                let mut path = prefix.clone();
                path.extend(&name);
                if entry.file_type()?.is_dir() {
                    path.push(b'/');
                    open.push(path);
                } else {
                    files.insert(path);
                }
            }
            directories.insert(prefix);
        }
        Ok((files, directories))
    }
}

impl Hidden {
    fn hides(self, name: &[u8]) -> bool {
        match self {
            Self::Nothing => false,
            Self::Dotted => name.starts_with(b"."),
        }
    }
}

/// Undoes percent-encoding; a `%` that is not followed by two hex digits stands for itself.
pub fn percent_decode(text: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(text).collect()
}

/// Servers that start as root read the tree as another user.
fn open_to_other_users(directory: TempDir) -> io::Result<TempDir> {
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    Ok(directory)
}

fn create_directory(parent: &Path, name: &str) -> io::Result<std::path::PathBuf> {
    let path = parent.join(name);
    fs::create_dir_all(&path)?;
    Ok(path)
}

fn utf8_names() -> Vec<Vec<u8>> {
    let long = "long-".repeat(40) + "%2F & ünïcode.tar.gz";
    let mut names: Vec<Vec<u8>> = NAMES.iter().map(|name| name.as_bytes().to_vec()).collect();
    names.push(long.into_bytes());
    names.push("x".repeat(255).into_bytes());
    names
}

/// Each is here because a listing, a link or a URL gives one of its characters a meaning.
const NAMES: &[&str] = &[
    "repomd.xml",
    "a b.txt",
    " leading space",
    "trailing space ",
    "   ",
    "two  spaces",
    "50%",
    "%",
    "%41",
    "%2e%2e",
    "%2F",
    "%00",
    "a%20b",
    "%25",
    "x&y.html",
    "&amp;",
    "&lt;b&gt;",
    "plus+plus",
    "co:lon.txt",
    "http:",
    "mailto:a@b",
    "javascript:alert(1)",
    "hash#tag",
    "#",
    "q?mark",
    "?",
    "?C=N;O=D",
    "semi;colon",
    "a=b",
    "quo\"te",
    "apos'trophe",
    "<b>bold<",
    "lt<gt>",
    "back\\slash",
    "trailing\\",
    "br[ack]et",
    "curly{}|^`",
    "~tilde",
    "at@sign",
    "comma,dollar$!(*)",
    "tab\there",
    "line\nbreak",
    ".dotted",
    "..two",
    "...",
    "dots...",
    "Parent Directory",
    "Name",
    "café",
    "cafe\u{301}",
    "日本語",
    "עברית",
    "😀",
    "zero\u{200b}width",
    "right\u{202e}left",
    "İstanbul ß",
];
