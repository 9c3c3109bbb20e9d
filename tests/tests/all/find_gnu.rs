//! The expressions of `crawler-cli find` beside GNU find: the same words, run by GNU find on a directory and by us on
//! what is known of the same directory, find the same and print the same.
//!
//! Ages depend on when a program starts. GNU find starts some time between two readings of the clock, so that only
//! what our expression finds by both of them counts; when they differ, the comparison is made again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use find::expr::{Act, Action, Actor, Effect, Expression, Memo, ParseError, Parser, Verdict};
use find::{Found, Kind as EntryKind};
use listing::range::{SizeRange, TimeRange};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;
use tests::program::PROGRAM;
use tests::servers::{Kind, WebServer};
use tests::tree::percent_decode;

#[test]
fn expressions_find_what_gnu_find_finds() {
    let tree = tree(Facts::OnDisk).expect("a tree");
    let entries = entries(tree.path()).expect("its entries");
    let (count, mut telling, mut failures) = (cases(EXPRESSIONS), 0, Vec::new());
    for words in generated(expressions(tree.path(), Facts::OnDisk), count) {
        match agree(tree.path(), &entries, &words) {
            Ok(found) => telling += usize::from(found.len() > 1 && found.len() < entries.len()),
            Err(failure) => failures.push(failure),
        }
    }
    assert_none(&failures);
    assert!(
        telling * 3 > count,
        "only {telling} of {count} expressions find something and leave something"
    );
}

#[test]
#[ignore = "needs nginx"]
fn a_crawl_finds_what_gnu_find_finds() {
    let tree = tree(Facts::Listed).expect("a tree");
    // The path of a URL is then the path of a file.
    let kind = Kind::Nginx {
        extra: "log_not_found off;".to_owned(),
    };
    let server = WebServer::start(kind, Path::new("/"));
    let (count, mut telling, mut failures) = (cases(CRAWLS), 0, Vec::new());
    let entries = entries(tree.path()).expect("its entries").len();
    for words in generated(expressions(tree.path(), Facts::Listed), count) {
        let (ours, theirs) = loop {
            let before = lines(&run_gnu_find(tree.path(), &words).stdout);
            let ours = crawl(&server, tree.path(), &words);
            let after = lines(&run_gnu_find(tree.path(), &words).stdout);
            if before == after {
                break (ours, after);
            }
        };
        telling += usize::from(theirs.len() > 1 && theirs.len() < entries);
        let difference = difference(&ours, &theirs);
        failures.extend(difference.map(|difference| format!("{words:?}: {difference}")));
    }
    assert_none(&failures);
    assert!(
        telling * 3 > count,
        "only {telling} of {count} expressions tell entries apart"
    );
}

/// What the program prints, with paths for URLs.
fn crawl(server: &WebServer, root: &Path, words: &[String]) -> Vec<Vec<u8>> {
    let base = server.url();
    let base = base.trim_end_matches('/');
    let output = Command::new(&*PROGRAM)
        .args(["find", "-x", ""])
        .arg(format!("{base}{}/", root.display()))
        .args(words)
        .output()
        .expect("run crawler-cli");
    let errors = errors(&output);
    assert!(output.status.success(), "{words:?}: {errors}");
    assert!(!errors.contains("UNDECIDED"), "{words:?}: {errors}");
    let paths = output
        .stdout
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| match line.strip_prefix(base.as_bytes()) {
            None => line.to_vec(),
            Some(path) => {
                let path = path.strip_suffix(b"\n").unwrap_or(path);
                let path = path.strip_suffix(b"/").unwrap_or(path);
                [&percent_decode(path), b"\n".as_slice()].concat()
            }
        });
    lines(&paths.collect::<Vec<u8>>())
}

#[test]
fn formats_print_what_gnu_find_prints() {
    let tree = tree(Facts::OnDisk).expect("a tree");
    let entries = entries(tree.path()).expect("its entries");
    let mut failures = Vec::new();
    for letter in "HIklpZMS@aAbhBmdwjUWYyrTXcDFx+CeGgPRsuVz".chars() {
        let format = format!("%T{letter}|%12T{letter}|%-12T{letter}|%.2T{letter}|%f\\n");
        failures.extend(agree(tree.path(), &entries, &["-printf".into(), format]).err());
    }
    for format in [
        "%f|%P|%d|%y|%Y|%t\\n",
        "%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|%-8.3d|%+05d|%#d\\n",
        "%20f|%-20f|%.3f|%12.4f|%-12.4f|%.0f|%012f|%+f|%#P\\n",
        "%%|%3y|%-3y|%03Y\\n",
        "\\a\\b\\f\\n\\r\\t\\v\\\\\\101\\60x\\1234\\n",
        "%f\\n\\cnever",
        "plain\\n",
    ] {
        failures.extend(agree(tree.path(), &entries, &["-printf".into(), format.into()]).err());
    }
    let sizes = ["-type", "f", "-printf", "%s|%7s|%-7s|%.1s|%07s|%f\\n"];
    failures.extend(agree(tree.path(), &entries, &sizes.map(str::to_owned)).err());
    assert_none(&failures);
}

/// Inode, mode, links and owners are not known over HTTP, and allocated blocks are not sizes.
#[test]
fn ls_has_the_columns_of_gnu_find() {
    let tree = tree(Facts::OnDisk).expect("a tree");
    let entries = entries(tree.path()).expect("its entries");
    let theirs = run_gnu_find(tree.path(), &["-type".into(), "f".into(), "-ls".into()]);
    let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
    let now = SystemTime::now();
    let ours = our_output(&entries, &parse(&["-type", "f", "-ls"], now));
    let ours = String::from_utf8_lossy(&ours).into_owned();
    let columns = |line: &str| -> (char, Vec<String>, String) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let date = fields[7..10].iter().map(|field| (*field).to_owned());
        (
            fields[2].chars().next().unwrap_or_default(),
            date.collect(),
            fields[6].to_owned(),
        )
    };
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(columns).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&ours), sorted(&theirs));
    // Where the name begins, if no field is wider than usual.
    let name = |text: &str, start: &str| {
        let line = text.lines().find(|line| line.ends_with("512"));
        line.and_then(|line| line.find(start))
    };
    assert_eq!(name(&ours, "http://"), name(&theirs, "/"));
    assert!(name(&ours, "http://").is_some());
}

#[test]
fn regular_expressions_match_as_those_of_gnu_find() {
    let names = [
        "a", "b", "ab", "aa", "aaa", "abab", "a+", "a?", "a*", "b+a", "(a)", "a|b", "a{2}", "{",
        "}", "a{1", "^a", "a$", "a.b", "[a]", "a]", "\\", "a\\b", "1", "a1", "_", "a b", "é", "A",
        "AB", "a\nb", "-", "w", "<", "a-c", "z", "b{1,2}", "`", "'",
    ];
    let tree = TempDir::new().expect("a directory");
    for name in names {
        File::create(tree.path().join(name)).expect("a file");
    }
    let piece = prop_oneof![
        8 => proptest::sample::select(vec!["a", "b", "A", "1", " ", "é", "_", "-", "."]),
        4 => proptest::sample::select(vec!["*", "+", "?", "\\+", "\\?", ".*"]),
        3 => proptest::sample::select(vec!["(", ")", "\\(", "\\)", "|", "\\|", "(a)", "\\(ab\\)", "(a|b)", "\\(a\\|b\\)"]),
        2 => proptest::sample::select(vec!["{", "}", "{2}", "\\{2\\}", "{1,2}", "\\{1,\\}", "{,2}", "a{1"]),
        2 => proptest::sample::select(vec!["^", "$", "\\w", "\\W", "\\b", "\\B", "\\<", "\\>", "\\`", "\\'", "\\s", "\\S"]),
        3 => proptest::sample::select(vec![
            "[ab]", "[^a]", "[a-z]", "[]a]", "[^]a]", "[a-]", "[[:alpha:]]", "[[:digit:]_]", "[\\]", "[\\w]", "[z-a]",
            "[[.a.]]", "[[=a=]b]", "[^[:upper:]]", "[*+.]",
        ]),
        1 => proptest::sample::select(vec!["\\.", "\\*", "\\[", "\\\\", "\\a", "\n"]),
    ];
    let patterns = (
        proptest::sample::select(vec!["emacs", "posix-extended"]),
        proptest::collection::vec(piece, 1..6),
        any::<bool>(),
    );
    let (count, mut accepted, mut failures) = (cases(PATTERNS), 0, Vec::new());
    for (dialect, pieces, fold) in generated(patterns, count) {
        let pattern = format!("./{}", pieces.concat());
        // GNU find loses the case of an escaped letter that means nothing.
        let escapes = pieces
            .iter()
            .any(|piece| piece.starts_with('\\') && piece.ends_with(char::is_alphabetic));
        let test = if fold && !escapes {
            "-iregex"
        } else {
            "-regex"
        };
        let words = ["-regextype", dialect, test, &pattern];
        match agree_on_names(tree.path(), &names, &words) {
            Ok(valid) => accepted += usize::from(valid),
            Err(failure) => failures.push(failure),
        }
    }
    assert_none(&failures);
    assert!(accepted * 2 > count, "only {accepted} patterns were valid");
}

#[test]
fn shell_patterns_match_as_those_of_gnu_find() {
    // No letters beyond ASCII: glibc takes what does not fit by characters once more by bytes, and then `??` fits é.
    let names = [
        "a",
        "b",
        "ab",
        "ba",
        "aab",
        ".a",
        "..a",
        "A",
        "aB",
        "*",
        "?",
        "[",
        "]",
        "[a]",
        "[ab",
        "a]",
        "\\",
        "a\\",
        "\\a",
        "!",
        "^",
        "-",
        "a-b",
        "z",
        "1",
        "9",
        " ",
        "a b",
        "\n",
        ":",
        "[:",
        "_",
        "[[:alpha:]",
    ];
    let tree = TempDir::new().expect("a directory");
    for name in names {
        File::create(tree.path().join(name)).expect("a file");
    }
    let piece = proptest::sample::select(vec![
        "a",
        "b",
        "A",
        "é",
        "É",
        "1",
        "_",
        " ",
        "*",
        "**",
        "?",
        "[ab]",
        "[!a]",
        "[^a]",
        "[a-z]",
        "[z-a]",
        "[!z-a]",
        "[]a]",
        "[!]a]",
        "[a-]",
        "[",
        "[a",
        "]",
        "\\",
        "\\a",
        "\\*",
        "\\[",
        "\\\\",
        "[\\]]",
        "[\\a]",
        "[[:alpha:]]",
        "[[:upper:]]",
        "[[:lower:]_]",
        "[![:digit:]]",
        "[[:nonsense:]]",
        "[[:alpha]",
        "[[:alpha:]",
        "[[=a=]]",
        "[[.a.]]",
        "[[.-.]-9]",
        "[A-Z]",
        "[Z-a]",
        "[à-ü]",
        "-",
        "!",
        "^",
        "[!",
        "[[:punct:]]",
        "[[:space:]]",
        "日",
    ]);
    let patterns = (
        proptest::collection::vec(piece, 1..4),
        proptest::sample::select(vec!["-name", "-iname", "-path", "-ipath"]),
    );
    let mut failures = Vec::new();
    for (pieces, test) in generated(patterns, cases(PATTERNS)) {
        let mut pattern = pieces.concat();
        if test.ends_with("path") {
            pattern.insert_str(0, "./");
        }
        failures.extend(agree_on_names(tree.path(), &names, &[test, &pattern]).err());
    }
    assert_none(&failures);
}

/// What is wrong with the test on names below the working directory. `Ok(false)` when neither takes the words.
fn agree_on_names(directory: &Path, names: &[&str], words: &[&str]) -> Result<bool, String> {
    let mut gnu_find = gnu_find();
    gnu_find
        .current_dir(directory)
        .args([".", "-mindepth", "1"])
        .args(words);
    let output = gnu_find.output().expect("find runs");
    let theirs = output.status.success().then(|| lines(&output.stdout));
    let ours = try_parse(words, SystemTime::now()).map(|expression| {
        let fits = |name: &&&str| {
            let path = format!("./{name}");
            let found = Found {
                url: "http://h/",
                path: path.as_bytes(),
                name: name.as_bytes(),
                kind: EntryKind::File,
                depth: 1,
                start: b"./",
                size: None,
                modified: None,
                asked: true,
                empty: None,
                listing: None,
                status: None,
                attempts: 0,
                took: Duration::ZERO,
            };
            let mut hit = Hit(false);
            expression.evaluate(&found, &mut Memo::new(), &mut hit);
            hit.0
        };
        let paths: String = names
            .iter()
            .filter(fits)
            .map(|name| {
                format!(
                    "./{name}
"
                )
            })
            .collect();
        lines(paths.as_bytes())
    });
    match (ours, theirs) {
        (Err(_), None) => Ok(false),
        (Ok(ours), Some(theirs)) => match difference(&ours, &theirs) {
            None => Ok(true),
            Some(difference) => Err(format!("{words:?}: {difference}")),
        },
        (Err(error), Some(_)) => Err(format!("{words:?}: only GNU find takes it: {error}")),
        (Ok(_), None) => Err(format!(
            "{words:?}: GNU find does not take it: {}",
            errors(&output)
        )),
    }
}

/// No more than `most` of them, one a line.
fn assert_none(failures: &[String]) {
    let shown = &failures[..failures.len().min(40)];
    assert!(
        failures.is_empty(),
        "{} failures:
{}",
        failures.len(),
        shown.join(
            "
"
        )
    );
}

struct Hit(bool);

impl Act for Hit {
    fn act(&mut self, _: &Action, _: &Found<'_>) -> bool {
        self.0 = true;
        true
    }
}

/// Runs both. What they print, line by line, in order, or in what they differ.
fn agree(root: &Path, entries: &[Entry], words: &[String]) -> Result<Vec<Vec<u8>>, String> {
    loop {
        let before = SystemTime::now();
        let theirs = run_gnu_find(root, words);
        let after = SystemTime::now();
        let [ours, then] =
            [before, after].map(|now| lines(&our_output(entries, &parse(words, now))));
        if ours != then {
            continue;
        }
        return match difference(&ours, &lines(&theirs.stdout)) {
            None => Ok(ours),
            Some(difference) => Err(format!("{words:?}: {difference}")),
        };
    }
}

/// The lines that only one of them has.
fn difference(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Option<String> {
    let only = |these: &[Vec<u8>], those: &[Vec<u8>]| -> Vec<String> {
        let mut rest = those.to_vec();
        let without = these.iter().filter(|line| match rest.binary_search(line) {
            Ok(at) => {
                rest.remove(at);
                false
            }
            Err(_) => true,
        });
        without
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect()
    };
    (ours != theirs).then(|| {
        format!(
            "only ours {:?}, only GNU find's {:?}",
            only(ours, theirs),
            only(theirs, ours)
        )
    })
}

fn lines(output: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = output
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    lines.sort();
    lines
}

fn gnu_find() -> Command {
    let mut command = Command::new("find");
    command.env("LC_ALL", "C.UTF-8");
    command
}

fn run_gnu_find(root: &Path, words: &[String]) -> Output {
    let output = gnu_find()
        .arg(root)
        .args(words)
        .output()
        .expect("find runs");
    assert!(output.status.success(), "{words:?}: {}", errors(&output));
    output
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn parse<S: AsRef<OsStr>>(words: &[S], now: SystemTime) -> Expression {
    let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
    try_parse(&words, now).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

fn try_parse<S: AsRef<OsStr>>(words: &[S], now: SystemTime) -> Result<Expression, ParseError> {
    let mut parser = Parser::new(now);
    let mut words = words.iter().map(|word| word.as_ref().to_owned());
    while let Some(word) = words.next() {
        assert!(parser.take(&word, &mut words)?, "{}", word.display());
    }
    let mut expression = parser.finish()?;
    expression
        .resolve_files()
        .expect("the references are there");
    Ok(expression)
}

/// One file or directory, and what a web server could tell of it.
struct Entry {
    path: Vec<u8>,
    url: String,
    kind: EntryKind,
    depth: u32,
    size: u64,
    modified: i64,
    empty: bool,
}

/// What our expression prints on the entries, each directory before what is in it, as paths.
fn our_output(entries: &[Entry], expression: &Expression) -> Vec<u8> {
    let mut actor = Actor::open(expression).expect("its files");
    let mut out = Vec::new();
    let mut pruned: Option<Vec<u8>> = None;
    let mut start = entries[0].path.clone();
    start.push(b'/');
    for entry in entries {
        if pruned
            .as_ref()
            .is_some_and(|above| entry.path.starts_with(above))
            || expression
                .max_depth()
                .is_some_and(|depth| entry.depth > depth)
        {
            continue;
        }
        let found = Found {
            url: &entry.url,
            path: &entry.path,
            name: entry
                .path
                .rsplit(|byte| *byte == b'/')
                .next()
                .unwrap_or_default(),
            kind: entry.kind,
            depth: entry.depth,
            start: &start,
            size: (entry.kind == EntryKind::File).then(|| SizeRange::exact(entry.size)),
            modified: Some(TimeRange::exact(entry.modified)),
            asked: true,
            empty: (entry.kind == EntryKind::Directory).then_some(entry.empty),
            listing: None,
            status: None,
            attempts: 0,
            took: Duration::ZERO,
        };
        let mut printer = Printer {
            actor: &mut actor,
            out: &mut out,
        };
        let evaluation = expression.evaluate(&found, &mut Memo::new(), &mut printer);
        assert!(!evaluation.undecided, "all is known");
        match evaluation.verdict {
            Verdict::Go => {}
            Verdict::Prune => pruned = Some([&entry.path, b"/".as_slice()].concat()),
            verdict => panic!("{verdict:?}, although all is known"),
        }
    }
    out
}

struct Printer<'a> {
    actor: &'a mut Actor,
    out: &'a mut Vec<u8>,
}

impl Act for Printer<'_> {
    fn act(&mut self, action: &Action, found: &Found<'_>) -> bool {
        let out = &mut self.out;
        self.actor.act(action, found, &mut |effect| match effect {
            Effect::Match(_) => {
                out.extend_from_slice(found.path);
                out.push(b'\n');
            }
            Effect::Output(bytes) => out.extend_from_slice(bytes),
            Effect::Flush | Effect::Idle(_) => {}
            Effect::Failed(error) => panic!("{error}"),
        })
    }
}

fn entries(root: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    enter(root.to_owned(), 0, &mut entries)?;
    Ok(entries)
}

fn enter(path: PathBuf, depth: u32, entries: &mut Vec<Entry>) -> io::Result<()> {
    let metadata = fs::metadata(&path)?;
    let inside = if metadata.is_dir() {
        let inside: io::Result<Vec<_>> = fs::read_dir(&path)?.collect();
        inside?
    } else {
        Vec::new()
    };
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH);
    let bytes = path.clone().into_os_string().into_vec();
    let encoded: String = bytes
        .iter()
        .map(|&byte| match byte {
            b'/' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let slash = if metadata.is_dir() { "/" } else { "" };
    entries.push(Entry {
        url: format!("http://h{encoded}{slash}"),
        path: bytes,
        kind: if metadata.is_dir() {
            EntryKind::Directory
        } else {
            EntryKind::File
        },
        depth,
        size: metadata.len(),
        modified: modified
            .map_err(io::Error::other)?
            .as_secs()
            .try_into()
            .map_err(io::Error::other)?,
        empty: inside.is_empty(),
    });
    for entry in inside {
        enter(entry.path(), depth + 1, entries)?;
    }
    Ok(())
}

/// Where what is known of a tree comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Facts {
    OnDisk,
    /// From nginx: it leaves out names that begin with a dot, and the seconds of times, and does not tell even if asked
    /// when a directory was changed.
    Listed,
}

/// Names that are awkward, sizes and times about the bounds of units.
fn tree(facts: Facts) -> io::Result<TempDir> {
    let root = tempfile::Builder::new().prefix("find-gnu-").tempdir()?;
    let now = SystemTime::now();
    let whole = now
        .duration_since(UNIX_EPOCH)
        .map_err(io::Error::other)?
        .as_secs();
    let ago = |seconds: u64| UNIX_EPOCH + Duration::from_secs(whole - seconds);
    let mut number = 0u64;
    let mut file = |path: &str, size: usize| -> io::Result<()> {
        let path = root.path().join(path);
        fs::write(&path, vec![b'x'; size])?;
        // Half a unit away from every bound that moves with the clock.
        let age = AGES[number as usize % AGES.len()];
        number += 1;
        File::options()
            .write(true)
            .open(path)?
            .set_modified(ago(age))
    };
    let shown = |path: &&&str| facts == Facts::OnDisk || !path.contains("/.");
    for directory in DIRECTORIES.iter().filter(shown) {
        fs::create_dir_all(root.path().join(directory))?;
    }
    for size in SIZES {
        file(&size.to_string(), *size)?;
    }
    for directory in [
        "",
        "a/",
        "a/b/",
        "a/b/c d/",
        "a/.hidden/",
        "Upper/",
        "é/",
        "sub.d/a/b/",
    ] {
        for name in NAMES {
            let path = format!("/{directory}{name}");
            if !shown(&&path.as_str()) {
                continue;
            }
            let size = SIZES[(name.len() + directory.len()) % SIZES.len()];
            file(&format!("{directory}{name}"), size)?;
        }
    }
    for (directory, age) in DIRECTORIES
        .iter()
        .filter(shown)
        .zip(AGES.iter().cycle().skip(1))
    {
        File::open(root.path().join(directory))?.set_modified(ago(*age))?;
    }
    Ok(root)
}

/// Expressions on the tree at `root`.
fn expressions(root: &Path, facts: Facts) -> impl Strategy<Value = Vec<String>> + use<> {
    let globs = prop_oneof![
        4 => proptest::sample::select(NAMES).prop_map(escaped),
        2 => proptest::sample::select(NAMES).prop_map(|name| {
            let first: String = name.chars().take(1).collect();
            format!("{}*", escaped(&first))
        }),
        2 => proptest::sample::select(vec![
            "*", "*.txt", "*.T?T", "[a-c]*", "[!a-z]*", "?", "a?", "*[0-9]", "[[:upper:]]*", "*[[:space:]]*", "a", "b",
            "empty", "*é*", ".*", "*%*", "[]a-]*", "*\\**", "sub*", "Upper", "[^.]*",
        ]).prop_map(str::to_owned),
    ];
    let globs = globs.boxed();
    let paths = prop_oneof![
        globs.clone().prop_map(|glob| format!("*/{glob}")),
        globs.clone().prop_map(|glob| format!("*/a/{glob}")),
        proptest::sample::select(vec!["*/a/*", "*/sub.d*", "*a/b*", "*/", "*[bc]/*"])
            .prop_map(str::to_owned),
    ];
    let paths = paths.boxed();
    let regexes = proptest::sample::select(vec![
        ("emacs", ".*/[a-c]+"),
        ("emacs", ".*\\.\\(txt\\|d\\)"),
        ("posix-extended", ".*/(a|b)(/.*)?"),
        ("posix-extended", ".*[[:digit:]]{3,4}"),
        ("posix-extended", ".*/a{1,2}.*"),
        ("posix-extended", ".*/[^/]+\\.txt"),
        ("emacs", ".*/\\w*"),
        ("posix-extended", ".*/(é|Upper)/.*"),
        ("emacs", ".*x?"),
        ("posix-extended", "/.*/[^a-z]+$"),
    ]);
    let number = |most: u64| {
        (0..most, proptest::sample::select(vec!["", "+", "-"]))
            .prop_map(|(n, sign)| format!("{sign}{n}"))
    };
    let sizes = (
        number(5),
        proptest::sample::select(vec!["c", "w", "b", "k", "M", "G", ""]),
    )
        .prop_map(|(n, unit)| format!("{n}{unit}"));
    let bytes = (
        proptest::sample::select(SIZES),
        proptest::sample::select(vec!["", "+", "-"]),
    )
        .prop_map(|(n, sign)| format!("{sign}{n}c"));
    let dates = proptest::sample::select(vec![
        "1 hour ago",
        "yesterday",
        "2 days ago",
        "1970-01-01",
        "last week",
        "3 days ago",
        "now",
        "2024-02-29 12:00",
    ]);
    let references: Vec<&str> = NAMES
        .iter()
        .copied()
        .filter(|name| !name.starts_with('.'))
        .collect();
    let references = proptest::sample::select(references).prop_map({
        let root = root.to_string_lossy().into_owned();
        move |name| format!("{root}/{name}")
    });
    let times = prop_oneof![
        number(4).prop_map(|n| words(&["-mtime", &n])),
        number(4).prop_map(|n| words(&["(", "-daystart", "-mtime", &n, ")"])),
        number(4).prop_map(|n| words(&["-mtime", &format!("{n}.5")])),
        number(180).prop_map(|n| words(&["-mmin", &n])),
        dates.prop_map(|date| words(&["-newermt", date])),
        references.prop_map(|path| words(&["-newer", &path])),
    ];
    let times = times.prop_map(move |test| {
        if facts == Facts::OnDisk {
            test
        } else {
            [words(&["(", "-type", "f"]), test, words(&[")"])].concat()
        }
    });
    // Directories have sizes on a disk alone.
    let size =
        prop_oneof![sizes, bytes].prop_map(|size| words(&["(", "-type", "f", "-size", &size, ")"]));
    let formats = match facts {
        Facts::OnDisk => vec!["%P|%d|%y\\n", "%f %T@\\n", "<%-10.6f>%TF %TT\\n"],
        Facts::Listed => vec!["%P|%d|%y\\n", "<%-10.6f>\\n"],
    };
    let leaf = prop_oneof![
        4 => globs.clone().prop_map(|glob| words(&["-name", &glob])),
        2 => globs.clone().prop_map(|glob| words(&["-iname", &glob.to_uppercase()])),
        2 => paths.clone().prop_map(|glob| words(&["-path", &glob])),
        1 => paths.prop_map(|glob| words(&["-iwholename", &glob])),
        2 => regexes.prop_map(|(dialect, regex)| words(&["-regextype", dialect, "-regex", regex])),
        2 => proptest::sample::select(vec!["f", "d", "f,d"]).prop_map(|kind| words(&["-type", kind])),
        3 => size,
        3 => times,
        2 => Just(words(&["-empty"])),
        1 => proptest::sample::select(vec!["-true", "-false"]).prop_map(|word| words(&[word])),
        2 => globs.prop_map(|glob| words(&["(", "-name", &glob, "-prune", ")"])),
        1 => proptest::sample::select(formats)
            .prop_map(|format| words(&["-printf", format])),
        1 => Just(words(&["-print"])),
    ];
    let tree = leaf.prop_recursive(4, 12, 2, |inner| {
        let joined = |operator: &'static [&'static str]| {
            (inner.clone(), inner.clone()).prop_map(move |(a, b)| [a, words(operator), b].concat())
        };
        prop_oneof![
            3 => joined(&[]),
            1 => joined(&["-a"]),
            3 => joined(&["-o"]),
            // GNU find swaps tests around a comma when the second one costs less, and then takes the first for the
            // value. It does not when the second one acts.
            1 => (inner.clone(), inner.clone())
                .prop_map(|(a, b)| [a, words(&[",", "("]), b, words(&["-print", ")"])].concat()),
            2 => inner.clone().prop_map(|a| [words(&["("]), a, words(&[")"])].concat()),
            1 => inner.clone().prop_map(|a| [words(&["!", "("]), a, words(&[")"])].concat()),
            1 => inner.clone().prop_map(|a| [words(&["-not"]), a].concat()),
        ]
    });
    let depths = proptest::sample::select(vec![
        &[][..],
        &[],
        &[],
        &["-maxdepth", "2"],
        &["-mindepth", "1"],
        &["-mindepth", "2", "-maxdepth", "3"],
        &["-maxdepth", "0"],
    ]);
    (depths, tree).prop_map(|(depths, tree)| guarded([words(depths), tree].concat()))
}

/// GNU find moves tests of names to the front, sometimes even over an action that stands before an `-o`. It does not
/// move actions.
fn guarded(expression: Vec<String>) -> Vec<String> {
    let (mut out, mut acts) = (Vec::new(), false);
    for word in expression {
        acts |= word.starts_with("-print");
        let guard = acts && word == "-o";
        out.push(word);
        if guard {
            out.extend(words(&["-printf", ""]));
        }
    }
    out
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// As a shell pattern that fits itself alone.
fn escaped(name: &str) -> String {
    let escape = |c: char| match c {
        '*' | '?' | '[' | '\\' => format!("\\{c}"),
        c => c.to_string(),
    };
    name.chars().map(escape).collect()
}

/// The same values in each run, no two the same.
fn generated<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    let mut values = Vec::new();
    while values.len() < count {
        let value = strategy.new_tree(&mut runner).expect("a value").current();
        if seen.insert(format!("{value:?}")) {
            values.push(value);
        }
    }
    values
}

/// How many cases there are; `COURSER_TIMES=10` in the environment makes ten times as many.
fn cases(usual: usize) -> usize {
    let times = std::env::var("COURSER_TIMES").map_or(1, |times| times.parse().expect("a number"));
    usual * times
}

const EXPRESSIONS: usize = 100;
const CRAWLS: usize = 30;
const PATTERNS: usize = 150;

const NAMES: &[&str] = &[
    "plain",
    "a b.txt",
    "50%.txt",
    "%41",
    "quote'\"",
    "back\\slash",
    "star*",
    "[x]",
    "é.txt",
    "É.TXT",
    ".dot",
    "x",
    "日本",
    "-dash",
    "new\nline",
    "#hash",
    "q?mark",
    "plus+",
];

const DIRECTORIES: &[&str] = &[
    "",
    "a",
    "a/b",
    "a/b/c d",
    "a/.hidden",
    "empty",
    "a/empty",
    "Upper",
    "é",
    "sub.d",
    "sub.d/a",
    "sub.d/a/b",
];

const SIZES: &[usize] = &[
    0,
    1,
    2,
    3,
    511,
    512,
    513,
    1023,
    1024,
    1025,
    2048,
    2049,
    1 << 20,
    (1 << 20) + 1,
];

const AGES: &[u64] = &[
    30,
    90,
    1_830,
    3_570,
    3_630,
    5_430,
    43_230,
    86_370,
    86_430,
    129_630,
    172_770,
    172_830,
    259_230,
    345_570,
    3_456_030,
    315_360_030,
];
