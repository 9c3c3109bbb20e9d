//! The sample mirror: a tree in the shape of a CentOS Stream mirror, computed without any files. Pure: the entries of a
//! directory depend on its path alone.

use std::borrow::Cow;

/// How many files of the tree are named `repomd.xml`: 2 streams of 8 repositories with binary and debug packages for
/// 4 architectures and sources, 8 repositories of special interest groups, and 3 in places with awkward names.
pub const REPOMD_FILES: usize = 2 * 8 * (4 * 2 + 1) + 2 * 4 + 3;

/// One entry of a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Item {
    /// Its name, not encoded in any way.
    pub name: Cow<'static, str>,
    /// What is below it, for a directory.
    pub below: Option<Place>,
}

/// A directory of the tree, by its contents.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// The top.
    Root,
    /// All repositories of a release.
    Stream(Release),
    /// One repository for all architectures.
    Repository(Release),
    /// One repository for one architecture.
    Architecture(Build),
    /// The directory of the binary packages of a repository.
    Os(Build),
    /// Holds the [`Tree`](Self::Tree) of debug or source packages.
    Holder(Build),
    /// Packages and their metadata.
    Tree(Build),
    /// Packages by first letter.
    Packages(Build),
    /// The packages of one letter.
    Letter(Build, char),
    /// `repomd.xml` and the files that it names.
    Repodata,
    /// Boot images.
    Images,
    /// Special interest groups, by release.
    Groups,
    /// The groups of a release.
    GroupsOf(Release),
    /// One group's architecture.
    Group(Build, &'static str),
    /// The one repository of a group.
    GroupRepository(Build, &'static str),
    /// Names that other programs handle wrongly.
    Awkward,
    /// A directory with an awkward name and a file of the same name.
    AwkwardLeaf(&'static str),
}

/// A release's number.
pub type Release = u8;

/// The architecture of packages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Build {
    release: Release,
    architecture: &'static str,
}

impl Place {
    /// The directory at `path`, whose segments are decoded; `None` if there is none.
    pub fn at<'p>(path: impl IntoIterator<Item = &'p str>) -> Option<Self> {
        path.into_iter().try_fold(Self::Root, |place, segment| {
            let mut items = place.items().into_iter();
            items.find(|item| item.name == segment)?.below
        })
    }

    /// The entries of the directory.
    pub fn items(self) -> Vec<Item> {
        match self {
            Self::Root => vec![
                dir("10-stream", Self::Stream(10)),
                dir("9-stream", Self::Stream(9)),
                dir("SIGs", Self::Groups),
                dir("awkward names", Self::Awkward),
                file("timestamp.txt"),
            ],
            Self::Stream(release) => {
                let mut items = dirs(&REPOSITORIES, Self::Repository(release));
                items.push(file("COMPOSE_ID"));
                items
            }
            Self::Repository(release) => {
                let build = |architecture| Build {
                    release,
                    architecture,
                };
                let mut items: Vec<Item> = ARCHITECTURES
                    .iter()
                    .map(|&name| dir(name, Self::Architecture(build(name))))
                    .collect();
                items.push(dir("source", Self::Holder(build("src"))));
                items
            }
            Self::Architecture(build) => {
                vec![
                    dir("debug", Self::Holder(build)),
                    dir("os", Self::Os(build)),
                ]
            }
            Self::Os(build) => {
                let mut items = Self::Tree(build).items();
                items.push(dir("images", Self::Images));
                items.extend([".discinfo", ".treeinfo", "EULA", "LICENSE", "media.repo"].map(file));
                items
            }
            Self::Holder(build) => vec![dir("tree", Self::Tree(build))],
            Self::Tree(build) => vec![
                dir("Packages", Self::Packages(build)),
                dir("repodata", Self::Repodata),
            ],
            Self::Packages(build) => ('a'..='z')
                .map(|letter| Item {
                    name: letter.to_string().into(),
                    below: Some(Self::Letter(build, letter)),
                })
                .collect(),
            Self::Letter(build, letter) => packages(build, letter),
            Self::Repodata => REPODATA.map(file).to_vec(),
            Self::Images => ["boot.iso", "efiboot.img", "install.img"]
                .map(file)
                .to_vec(),
            Self::Groups => vec![
                dir("10-stream", Self::GroupsOf(10)),
                dir("9-stream", Self::GroupsOf(9)),
            ],
            Self::GroupsOf(release) => {
                let build = Build {
                    release,
                    architecture: "x86_64",
                };
                let of = |&name: &&'static str| dir(name, Self::Group(build, name));
                GROUPS.iter().map(of).collect()
            }
            Self::Group(build, name) => {
                vec![dir(build.architecture, Self::GroupRepository(build, name))]
            }
            Self::GroupRepository(build, name) => vec![dir(name, Self::Tree(build))],
            Self::Awkward => {
                let build = Build {
                    release: 9,
                    architecture: "noarch",
                };
                let leaf = |&name: &&'static str| dir(name, Self::AwkwardLeaf(name));
                let trees = AWKWARD_TREES.map(|name| dir(name, Self::Tree(build)));
                let mut items: Vec<Item> = AWKWARD.iter().map(leaf).collect();
                items.extend(trees);
                items.extend(DECOYS.map(file));
                items
            }
            Self::AwkwardLeaf(name) => vec![file(name)],
        }
    }
}

fn dir(name: &'static str, below: Place) -> Item {
    Item {
        name: name.into(),
        below: Some(below),
    }
}

fn dirs(names: &[&'static str], below: Place) -> Vec<Item> {
    names.iter().map(|name| dir(name, below)).collect()
}

fn file(name: &'static str) -> Item {
    Item {
        name: name.into(),
        below: None,
    }
}

fn packages(build: Build, letter: char) -> Vec<Item> {
    let Build {
        release,
        architecture,
    } = build;
    let sources = SOURCES.iter().filter(|source| source.starts_with(letter));
    let mut items = Vec::new();
    for (number, source) in sources.enumerate() {
        for part in ["", "-devel", "-doc", "-libs"] {
            let version = format!("{}.{}", number + 1, source.len());
            let name = format!("{source}{part}-{version}-1.el{release}.{architecture}.rpm");
            items.push(Item {
                name: name.into(),
                below: None,
            });
        }
    }
    items
}

const REPOSITORIES: [&str; 8] = [
    "AppStream",
    "BaseOS",
    "CRB",
    "HighAvailability",
    "NFV",
    "RT",
    "SAP",
    "SAPHANA",
];

const ARCHITECTURES: [&str; 4] = ["aarch64", "ppc64le", "s390x", "x86_64"];

const GROUPS: [&str; 4] = ["cloud", "hyperscale", "nfv", "storage"];

const REPODATA: [&str; 5] = [
    "0a6c8b6e1f2d-filelists.xml.gz",
    "4d1f0c5b9e77-primary.xml.gz",
    "c3a97be8d210-other.xml.gz",
    "repomd.xml",
    "repomd.xml.asc",
];

const SOURCES: [&str; 54] = [
    "acl",
    "audit",
    "bash",
    "bind",
    "cairo",
    "curl",
    "dbus",
    "dnf",
    "e2fsprogs",
    "emacs",
    "fontconfig",
    "freetype",
    "gcc",
    "glibc",
    "harfbuzz",
    "httpd",
    "iproute",
    "iptables",
    "jansson",
    "jq",
    "kernel",
    "krb5",
    "libxml2",
    "lvm2",
    "make",
    "mesa",
    "ncurses",
    "nginx",
    "openssh",
    "openssl",
    "pam",
    "perl",
    "qemu",
    "qt6",
    "rpm",
    "rust",
    "sed",
    "systemd",
    "tar",
    "tcl",
    "udisks2",
    "unzip",
    "valgrind",
    "vim",
    "wget",
    "wireshark",
    "xfsprogs",
    "xz",
    "yajl",
    "yelp",
    "zlib",
    "zstd",
    "gtk4",
    "llvm",
];

/// Names of directories with a whole repository.
const AWKWARD_TREES: [&str; 3] = ["100% C++ & friends", "что это?", "r[1] {a,b} #tag"];

/// Names that are awkward in URLs, in HTML, in shells or on terminals.
const AWKWARD: [&str; 20] = [
    " leading and trailing ",
    "%41 is not A",
    "'single' \"double\" `back`",
    "+plus+",
    "...",
    ".hidden",
    "<b>bold &amp; brave",
    "?C=N;O=D",
    "a=b&c=d",
    "back\\slash",
    "café",
    "cafe\u{301}",
    "co:lon",
    "emoji 🦀",
    "javascript:void(0)",
    "mailto:root@localhost",
    "semi;colon, comma",
    "tab\there",
    "~tilde | pipe ^ caret * star ! $HOME",
    "very long: \
     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];

/// Almost `repomd.xml`.
const DECOYS: [&str; 6] = [
    "REPOMD.XML",
    "my-repomd.xml",
    "repomd.xml ",
    "repomd.xml.old",
    "repomd.xml~",
    "repomd_xml",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(place: Place, visit: &mut dyn FnMut(&Item)) {
        for item in place.items() {
            visit(&item);
            if let Some(below) = item.below {
                walk(below, visit);
            }
        }
    }

    #[test]
    fn exactly_155_files_are_named_repomd_xml() {
        let (mut repomd, mut directories, mut files) = (0, 1, 0);
        walk(Place::Root, &mut |item| {
            directories += usize::from(item.below.is_some());
            files += usize::from(item.below.is_none());
            repomd += usize::from(item.name == "repomd.xml");
        });
        assert_eq!(REPOMD_FILES, 155);
        assert_eq!(repomd, 155);
        assert!(directories > 4_000, "{directories}");
        assert!(files > 30_000, "{files}");
    }

    #[test]
    fn names_are_possible_and_differ_within_a_directory() {
        fn check(place: Place) {
            let items = place.items();
            for (i, item) in items.iter().enumerate() {
                assert!(
                    !item.name.is_empty() && !item.name.contains(['/', '\0']),
                    "{item:?}"
                );
                assert!(item.name.len() <= 255, "{item:?}");
                assert!(
                    items[..i].iter().all(|other| other.name != item.name),
                    "{item:?}"
                );
                if let Some(below) = item.below {
                    check(below);
                }
            }
        }
        check(Place::Root);
    }

    #[test]
    fn paths_lead_to_places() {
        assert_eq!(Place::at([]), Some(Place::Root));
        let path = ["9-stream", "BaseOS", "x86_64", "os", "repodata"];
        assert_eq!(Place::at(path), Some(Place::Repodata));
        assert_eq!(
            Place::at(["awkward names", "café"]),
            Some(Place::AwkwardLeaf("café"))
        );
        assert_eq!(Place::at(["timestamp.txt"]), None);
        assert_eq!(Place::at(["nowhere"]), None);
    }
}
