use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::check::sources::{Input, Next, SourceOptions, start};

/// A file whose links were read.
struct Case {
    folder: tempfile::TempDir,
    originals: Originals,
    references: Vec<(String, Reference)>,
}

impl Case {
    fn new(name: &str, content: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(name), content).expect("written");
        let mut case = Self {
            folder,
            originals: Originals::default(),
            references: Vec::new(),
        };
        case.read(name);
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&mut self, name: &str) {
        let options = SourceOptions {
            originals: Some(self.originals.clone()),
            ..SourceOptions::default()
        };
        let path = self.path(name);
        let input = Input::from_argument(path.as_os_str()).expect("there");
        let mut batches = start(vec![input], options);
        loop {
            match batches.next(Duration::from_secs(10)) {
                Next::Batch(batch) => {
                    assert_eq!(batch.problems, []);
                    let found = batch.occurrences.into_iter();
                    self.references
                        .extend(found.map(|found| (found.spelling.into(), found.reference)));
                }
                Next::Nothing => panic!("the file is read at once"),
                Next::End => return,
            }
        }
    }

    /// The moves from some URLs to others, at all places.
    fn moves(&self, moves: &[(&str, &str)]) -> Vec<Move> {
        let places = self.references.iter().flat_map(|(url, reference)| {
            let of_url = moves.iter().filter(move |(from, _)| from == url);
            of_url.map(move |&(from, to)| Move {
                url: from.to_owned(),
                to: to.to_owned(),
                reference: reference.clone(),
            })
        });
        places.collect()
    }

    fn fixer(&self) -> Fixer {
        Fixer::new(&self.originals)
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("readable")
    }
}

/// What becomes of a file after one move, and the reasons for which places were left alone.
fn fixed(name: &str, content: &str, from: &str, to: &str) -> (String, Vec<KeptReason>) {
    let case = Case::new(name, content);
    let moves = case.moves(&[(from, to)]);
    assert!(!moves.is_empty(), "{from} is a link of {content}");
    let fixed = case.fixer().fix(&moves);
    assert_eq!(fixed.len(), 1);
    assert!(fixed[0].error.is_none());
    let kept = fixed[0].kept.iter().map(|kept| kept.reason).collect();
    (case.content(name), kept)
}

const OLD: &str = "http://x.org/old";
const NEW: &str = "https://www.x.org/new";

#[test]
fn only_the_url_changes() {
    // The parts around the URL, which stay.
    let table = [
        ("a.md", "\u{feff}é [a](", " \"title\")\r\nline\r\n"),
        ("a.md", "[a](<", ">) no newline at the end"),
        ("a.md", "see <", "> and http://x.org/older\n"),
        ("a.md", "see ", ", or `http://x.org/old`\n"),
        ("a.md", "[a][r] [b][r]\n\n[r]: ", "\n"),
        ("a.md", "| a | b |\n|---|---|\n| [x](", ") | y |\n"),
        (
            "a.html",
            "<a title=\"http://x.org/old\" href=\" ",
            " \">x</a>\r\n",
        ),
        ("a.html", "<A HREF=", ">x</A>"),
        ("a.html", "<img srcset='/b 1x, ", " 2x'>"),
        (
            "a.css",
            "a { background: url(",
            ") } /* http://x.org/old */\n",
        ),
        ("a.css", "@import \"", "\";"),
        (
            "a.xml",
            "<urlset><url><loc>\n ",
            "\n</loc></url></urlset>\n",
        ),
        ("a.txt", "one\ntwo ", "\n"),
    ];
    for (name, before, after) in table {
        let (content, kept) = fixed(name, &format!("{before}{OLD}{after}"), OLD, NEW);
        assert_eq!(content, format!("{before}{NEW}{after}"));
        assert_eq!(kept, [], "{content}");
    }
}

#[test]
fn urls_are_written_as_the_place_needs() {
    let table = [
        (
            "a.html",
            "<a href='http://x.org/old'>",
            "http://x.org/?a=1&b='2'",
            "<a href='http://x.org/?a=1&amp;b=&#39;2&#39;'>",
        ),
        (
            "a.html",
            "<a href=http://x.org/old>",
            "http://x.org/?a=1&copy=2",
            "<a href=http://x.org/?a=1&amp;copy=2>",
        ),
        (
            "a.md",
            "[a](http://x.org/old)",
            "http://x.org/a_(b",
            "[a](http://x.org/a_\\(b)",
        ),
        (
            "a.md",
            "[a](http://x.org/old)",
            "http://x.org/a_(b)?a|b",
            "[a](http://x.org/a_(b)?a%7Cb)",
        ),
        (
            "a.md",
            "[a](http://x.org/old)",
            "http://x.org/?a&copy;b",
            "[a](http://x.org/?a\\&copy;b)",
        ),
        (
            "a.md",
            "[a](http://x.org/old)",
            "http://x.org/?a&b=1",
            "[a](http://x.org/?a&b=1)",
        ),
        (
            "a.css",
            "a{b:url(http://x.org/old)}",
            "http://x.org/(a)",
            "a{b:url(http://x.org/\\(a\\))}",
        ),
        (
            "a.xml",
            "<urlset><url><loc>http://x.org/old</loc></url></urlset>",
            "http://x.org/?a&b",
            "<urlset><url><loc>http://x.org/?a&amp;b</loc></url></urlset>",
        ),
    ];
    for (name, old, to, new) in table {
        assert_eq!(fixed(name, old, OLD, to), (new.to_owned(), vec![]));
    }
}

#[test]
fn fragments_are_kept() {
    let with = |to| fixed("a.md", "[a](http://x.org/old#é)", "http://x.org/old#é", to).0;
    assert_eq!(with("http://x.org/new"), "[a](http://x.org/new#é)");
    assert_eq!(with("http://x.org/new#own"), "[a](http://x.org/new#own)");
}

#[test]
fn roots_and_other_domains_need_leave() {
    let content = "<http://a.x.co.uk/old>";
    let old = "http://a.x.co.uk/old";
    let case = |to: &str| fixed("a.md", content, old, to);
    let kept = |reason| (content.to_owned(), vec![reason]);
    assert_eq!(case("http://a.x.co.uk/"), kept(KeptReason::ToRoot));
    assert_eq!(case("http://y.co.uk/old"), kept(KeptReason::CrossDomain));
    assert_eq!(case("http://b.x.co.uk/new").0, "<http://b.x.co.uk/new>");
    assert_eq!(case("http://a.x.co.uk/?a").0, "<http://a.x.co.uk/?a>");
    let root = fixed("a.md", "<http://x.org/>", "http://x.org/", "https://x.org/");
    assert_eq!(root.0, "<https://x.org/>");
    let (local, other) = ("http://127.0.0.1:1/a", "http://127.0.0.2:1/a");
    assert_eq!(
        fixed("a.txt", local, local, other).1,
        [KeptReason::CrossDomain]
    );

    let case = Case::new("a.md", content);
    let moves = case.moves(&[(old, "http://y.co.uk/")]);
    let fixed = case.fixer().cross_domain(true).to_root(true).fix(&moves);
    assert_eq!(fixed[0].replaced, 1);
    assert_eq!(case.content("a.md"), "<http://y.co.uk/>");
}

#[test]
fn what_would_break_the_text_is_left_alone() {
    // An autolink ends before a full stop, so the new URL would not be the one that is read.
    let content = "see http://x.org/old and <http://x.org/b>\n";
    let case = Case::new("a.md", content);
    let moves = case.moves(&[
        (OLD, "http://x.org/new."),
        ("http://x.org/b", "http://x.org/c"),
    ]);
    let fixed = case.fixer().fix(&moves);
    assert_eq!(
        case.content("a.md"),
        "see http://x.org/old and <http://x.org/c>\n"
    );
    assert_eq!(fixed[0].replaced, 1);
    assert_eq!(fixed[0].kept[0].reason, KeptReason::NotWritable);
    assert_eq!(fixed[0].kept[0].place.url, OLD);
}

#[test]
fn a_dry_run_shows_the_difference() {
    let case = Case::new("a.md", "one\ntwo <http://x.org/old>\nthree");
    let moves = case.moves(&[(OLD, NEW)]);
    let fixed = case.fixer().dry_run(true).fix(&moves);
    let source = case.path("a.md").display().to_string();
    let diff = format!(
        "--- {source}\n+++ {source}\n@@ -1,3 +1,3 @@\n one\n-two <{OLD}>\n+two <{NEW}>\n three\n\\ No newline at end of file\n"
    );
    assert_eq!(fixed[0].diff, diff);
    assert_eq!(case.content("a.md"), "one\ntwo <http://x.org/old>\nthree");
}

#[test]
fn files_that_changed_are_left_alone() {
    let case = Case::new("a.md", "<http://x.org/old>");
    let moves = case.moves(&[(OLD, NEW)]);
    fs::write(case.path("a.md"), "<http://x.org/old> ").expect("written");
    let fixed = case.fixer().fix(&moves);
    assert!(matches!(fixed[0].error, Some(FixError::Changed)));
    assert_eq!((fixed[0].replaced, fixed[0].diff.as_str()), (0, ""));
    assert_eq!(case.content("a.md"), "<http://x.org/old> ");
}

#[test]
fn records_and_other_sources_are_not_edited() {
    let case = Case::new("a.csv", "url\nhttp://x.org/old\n");
    let fixed = case.fixer().fix(&case.moves(&[(OLD, NEW)]));
    assert_eq!(fixed[0].kept[0].reason, KeptReason::NotEditable);
    assert_eq!(case.content("a.csv"), "url\nhttp://x.org/old\n");
}

#[test]
fn permissions_and_symbolic_links_stay() {
    let mut case = Case::new("a.md", "<http://x.org/old>");
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(case.path("a.md"), mode.clone()).expect("permitted");
    symlink("a.md", case.path("b.md")).expect("linked");
    case.references.clear();
    case.read("b.md");
    let fixed = case.fixer().fix(&case.moves(&[(OLD, NEW)]));
    assert_eq!(fixed[0].replaced, 1);
    assert_eq!(case.content("a.md"), format!("<{NEW}>"));
    let link = fs::symlink_metadata(case.path("b.md")).expect("there");
    assert!(link.is_symlink());
    let file = fs::metadata(case.path("a.md")).expect("there");
    assert_eq!(file.permissions().mode() & 0o777, 0o640);
    let names = fs::read_dir(case.folder.path()).expect("a folder");
    assert_eq!(names.count(), 2, "no temporary file stays");
}

#[test]
fn remapped_urls_are_left_alone() {
    let case = Case::new("a.md", "<http://x.org/old>");
    let selection = Selection {
        remap: vec!["x.org y.org".parse().expect("a rule")],
        ..Selection::default()
    };
    let fixer = case.fixer().selection(Arc::new(selection));
    let fixed = fixer.fix(&case.moves(&[(OLD, NEW)]));
    assert_eq!(fixed[0].kept[0].reason, KeptReason::Remapped);
    assert!(OsStr::new(&*fixed[0].source) == case.path("a.md"));
}
