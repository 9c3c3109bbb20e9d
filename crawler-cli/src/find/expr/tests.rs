//! The evaluation compared with a simple reference implementation, and the errors of the parser.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::*;
use crate::listing::range::{SizeRange, TimeRange};

/// The names of the performed actions, in order.
#[derive(Default)]
struct Log(Vec<String>);

impl Act for Log {
    /// The command `true` succeeds; the second word is the name of the action.
    fn act(&mut self, action: &Action, _: &Found<'_>) -> bool {
        match action {
            Action::Run(command) => {
                self.0.push(command[1].to_string_lossy().into_owned());
                command[0] == "true"
            }
            Action::Write(Text::Line, Output::Results) => {
                self.0.push("-print".to_owned());
                true
            }
            other => panic!("no test has {other:?}"),
        }
    }
}

fn parse(words: &[&str]) -> Result<Expression, ParseError> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let mut parser = Parser::in_zone(now, jiff::tz::TimeZone::UTC);
    let mut words = words.iter().map(OsString::from);
    while let Some(word) = words.next() {
        assert!(parser.take(&word, &mut words)?, "{}", word.display());
    }
    parser.finish()
}

fn valid(words: &[&str]) -> Expression {
    parse(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

const FILE: Found<'_> = Found {
    url: "http://h/pub/a.iso",
    path: b"/pub/a.iso",
    name: b"a.iso",
    start: b"/pub/",
    ..Found::FILE
};

const DIRECTORY: Found<'_> = Found {
    url: "http://h/pub/d/",
    path: b"/pub/d",
    name: b"d",
    kind: Kind::Directory,
    ..FILE
};

/// A first evaluation.
fn evaluate_once(words: &[&str], found: &Found<'_>) -> (Evaluation, Vec<String>) {
    let mut log = Log::default();
    let evaluation = valid(words).evaluate(found, &mut Memo::new(), &mut log);
    (evaluation, log.0)
}

#[test]
fn entries_are_printed_without_an_action() {
    for (words, printed) in [
        (&[][..], 1),
        (&["-true"], 1),
        (&["-false"], 0),
        (&["-false", "-o", "-true"], 1),
        (&["-prune"], 1),
        (&["-prune", "-o", "-print"], 0),
        (&["-true", "-print", "-print"], 2),
        (&["-false", ",", "-true"], 1),
        (&["-true", ",", "-false"], 0),
        (&["-mindepth", "2"], 0),
        (&["-maxdepth", "0", "-name", "a.iso"], 1),
        (&["-quit"], 0),
    ] {
        let (evaluation, log) = evaluate_once(words, &FILE);
        assert_eq!(log.len(), printed, "{words:?}");
        assert_eq!(evaluation.acted, printed > 0);
    }
}

#[test]
fn verdicts() {
    let before = ["-newermt", "2001-01-01"];
    for (words, found, verdict) in [
        (&["-true"][..], &FILE, Verdict::Go),
        // Also for files: a page has links.
        (&["-prune"], &FILE, Verdict::Prune),
        (&["-prune"], &DIRECTORY, Verdict::Prune),
        (&["-name", "d", "-prune"], &DIRECTORY, Verdict::Prune),
        (&["-name", "x", "-prune"], &DIRECTORY, Verdict::Go),
        (&["-prune", "-quit"], &DIRECTORY, Verdict::Quit),
        (&["-mindepth", "2", "-prune"], &DIRECTORY, Verdict::Go),
        (&["-size", "+1M"], &FILE, Verdict::Head),
        (&["-size", "+1M"], &DIRECTORY, Verdict::Go),
        (&["-empty"], &FILE, Verdict::Head),
        (&["-empty"], &DIRECTORY, Verdict::List),
        (&["-empty", before[0], before[1]], &DIRECTORY, Verdict::List),
        // The undecided test does not matter.
        (&["-empty", "-name", "x"], &DIRECTORY, Verdict::Go),
        (&["-size", "+1M", "-name", "x"], &FILE, Verdict::Go),
        (
            &["-size", "+1M", "-o", "-name", "a.iso"],
            &FILE,
            Verdict::Go,
        ),
        (&["-print", "-size", "+1M"], &FILE, Verdict::Go),
        (&["-size", "+1M", ",", "-print"], &FILE, Verdict::Go),
        (&["-print", "-o", "-size", "+1M"], &FILE, Verdict::Go),
        (&["-size", "+1M", "-print"], &FILE, Verdict::Head),
        // An action stands between the two tests.
        (
            &["-size", "+1M", "-print", "-name", "x"],
            &FILE,
            Verdict::Head,
        ),
    ] {
        assert_eq!(evaluate_once(words, found).0.verdict, verdict, "{words:?}");
    }
}

#[test]
fn a_second_evaluation_repeats_nothing() {
    let expression = valid(&["-print", ",", "-size", "+1k", "-exec", "true", "big", ";"]);
    let (mut memo, mut log) = (Memo::new(), Log::default());
    let first = expression.evaluate(&FILE, &mut memo, &mut log);
    assert_eq!((first.verdict, first.acted), (Verdict::Head, true));
    assert_eq!(log.0, ["-print"]);

    // As the state of a search keeps it.
    let kept = serde_json::to_string(&memo).expect("a text");
    let mut memo = serde_json::from_str(&kept).expect("a memo");
    let asked = Found {
        asked: true,
        size: Some(SizeRange::exact(5000)),
        ..FILE
    };
    let second = expression.evaluate(&asked, &mut memo, &mut log);
    assert_eq!((second.verdict, second.acted), (Verdict::Go, true));
    assert_eq!(log.0, ["-print", "big"]);
    let third = expression.evaluate(&asked, &mut memo, &mut log);
    assert_eq!((third, log.0.len()), (second, 2));
}

#[test]
fn what_stays_undecided_is_false_and_reported() {
    let asked = Found {
        asked: true,
        ..FILE
    };
    for (words, undecided, printed) in [
        (&["-size", "+1M"][..], true, false),
        (&["!", "-size", "+1M"], true, true),
        (&["-size", "+1M", "-name", "x"], false, false),
        (&["-size", "+1M", "-o", "-name", "a*"], false, true),
        (&["-newer", "http://h/x"], true, false),
    ] {
        let (evaluation, log) = evaluate_once(words, &asked);
        assert_eq!(evaluation.verdict, Verdict::Go);
        assert_eq!(evaluation.undecided, undecided, "{words:?}");
        assert_eq!(!log.is_empty(), printed, "{words:?}");
    }
}

#[test]
fn references_are_resolved() {
    let words = [
        "-newer",
        "http://h/x",
        "-newer",
        "/no/such file",
        "-newer",
        "http://h/x",
    ];
    let mut expression = valid(&words);
    let url = Url::parse("http://h/x").expect("valid");
    assert_eq!(
        expression.references(),
        [Reference::Url(url), Reference::File("/no/such file".into())]
    );
    assert!(matches!(
        expression.resolve_files(),
        Err(ActError::Reference(path, _)) if path == *"/no/such file"
    ));
    expression.resolve(0, 9);
    expression.resolve(1, 8);
    for (modified, verdict, printed) in [(9, Verdict::Go, 0), (10, Verdict::Go, 1)] {
        let found = Found {
            modified: Some(TimeRange::exact(modified)),
            ..FILE
        };
        let mut log = Log::default();
        let evaluation = expression.evaluate(&found, &mut Memo::new(), &mut log);
        assert_eq!((evaluation.verdict, log.0.len()), (verdict, printed));
    }
}

#[test]
fn times_matter_or_not() {
    for (words, expected) in [
        (&["-name", "x"][..], false),
        (
            &[
                "-name", "x", "-o", "!", "(", "-mtime", "1", "-name", "y", ")",
            ],
            true,
        ),
        (&["-newer", "http://h/"], true),
        (&["-ls"], true),
        (&["-printf", "%p"], false),
        (&["-name", "x", "-printf", "%TY"], true),
    ] {
        assert_eq!(valid(words).needs_times(), expected, "{words:?}");
    }
}

#[test]
fn invalid_expressions_are_named() {
    let deep = ["("; 101];
    for (words, message) in [
        (&["-name"][..], "-name needs a value"),
        (
            &["-exec"],
            "-exec needs a command that ends in ';' or '{} +'",
        ),
        (&["-exec", ";"], "-exec ;: there is no command"),
        (
            &["-exec", "{}", "+"],
            "-exec {} +: with +, {} must stand once, at the end of the command",
        ),
        (
            &["-exec", "a", "x{}", "{}", "+"],
            "-exec {} +: with +, {} must stand once, at the end of the command",
        ),
        (&["("], "a ( has no matching )"),
        (&["-name", "x", "("], "a ( has no matching )"),
        (&[")"], "a ) has no matching ("),
        (&["(", ")"], "nothing stands between ( and )"),
        (&["!"], "nothing stands after !"),
        (&["-name", "x", "-not"], "nothing stands after -not"),
        (&["-o", "-name", "x"], "nothing stands before -o"),
        (&["(", "-a", "-name", "x", ")"], "nothing stands before -a"),
        (&[",", "-name", "x"], "nothing stands before ,"),
        (&["-name", "x", "-o"], "nothing stands after -o"),
        (
            &["-name", "x", "-o", "-a", "-print"],
            "nothing stands after -o",
        ),
        (&["-name", "x", ","], "nothing stands after ,"),
        (&deep, "more than 100 nested parentheses and negations"),
        (
            &["-type", "l"],
            "-type l: l: a web server shows files and directories only",
        ),
        (&["-type", "f,f"], "-type f,f: f occurs twice"),
        (&["-type", "f,"], "-type f,: neither f, nor d, nor f,d"),
        (&["-type", ""], "-type : neither f, nor d, nor f,d"),
        (
            &["-size", "1T"],
            "-size 1T: not a number, optionally followed by c, w, b, k, M or G",
        ),
        (
            &["-size", "+-1"],
            "-size +-1: not a number, optionally followed by c, w, b, k, M or G",
        ),
        (&["-mtime", "x"], "-mtime x: not a valid number"),
        (&["-mtime", "1e300"], "-mtime 1e300: not a valid number"),
        (
            &["-newermt", "the day before"],
            "-newermt the day before: not understood as a date or time",
        ),
        (
            &["-regex", "\\(a\\)\\1"],
            "-regex \\(a\\)\\1: back-references such as \\1 are not supported",
        ),
        (&["-regex", "["], "-regex [: a bracket is not closed"),
        (
            &["-printf", "%q"],
            "-printf %q: %q is not a known directive",
        ),
        (
            &["-printf", "%u"],
            "-printf %u: %u: a web server does not report this",
        ),
        (
            &["-printf", "a%"],
            "-printf a%: the format ends in a lone %",
        ),
        (
            &["-printf", "%T"],
            "-printf %T: the letter after %T is missing",
        ),
        (
            &["-printf", "%Tq"],
            "-printf %Tq: %Tq is not a known part of a time",
        ),
        (
            &["-printf", "\\q"],
            "-printf \\q: \\q is not a known escape; a backslash is written \\\\",
        ),
        (
            &["-printf", "%99999d"],
            "-printf %99999d: a width or precision is larger than 4096",
        ),
        (
            &["-delete"],
            "-delete: a web server offers no way to delete; print the URLs, or use -exec",
        ),
        (&["-user", "x"], "-user: a web server does not report this"),
        (
            &["-depth"],
            "-depth: results are shown as they are found, a directory before its entries",
        ),
    ] {
        let error = parse(words).expect_err(&format!("{words:?}"));
        assert_eq!(error.to_string(), message, "{words:?}");
    }
    let unknown = parse(&["-regextype", "pcre"]).expect_err("there is none");
    assert!(
        unknown
            .to_string()
            .starts_with("-regextype pcre: not one of emacs, ")
    );
}

#[test]
fn other_words_are_not_taken() {
    let mut parser = Parser::new(SystemTime::now());
    for word in ["-j", "--json", "http://h/", "-nmae", "-", "--", ""] {
        let mut rest = std::iter::once(OsString::from("next"));
        assert_eq!(parser.take(OsStr::new(word), &mut rest), Ok(false));
        assert!(rest.next().is_some(), "{word} took an argument");
    }
    let expression = parser.finish().expect("the empty one");
    let mut log = Log::default();
    expression.evaluate(&FILE, &mut Memo::new(), &mut log);
    assert_eq!(log.0, ["-print"]);
}

#[test]
fn ages_have_gnu_finds_bounds() {
    const DAY: i64 = 86_400;
    let now = 1_000_000;
    let midnight = now - now % DAY;
    for (words, times) in [
        // With the first and the last second for which the test is true.
        (&["-mtime", "0"][..], (now - DAY + 1, now)),
        (&["-mtime", "1"], (now - 2 * DAY + 1, now - DAY)),
        (&["-mtime", "+1"], (i64::MIN, now - 2 * DAY - 1)),
        (&["-mtime", "-1"], (now - DAY, i64::MAX)),
        (&["-mtime", "0.5"], (now - DAY - DAY / 2 + 1, now - DAY / 2)),
        (&["-mmin", "1"], (now - 59, now)),
        (&["-mmin", "-1"], (now - 59, i64::MAX)),
        (&["-mmin", "+1"], (i64::MIN, now - 61)),
        (
            &["-daystart", "-mtime", "0"],
            (midnight + 1, midnight + DAY),
        ),
        (&["-daystart", "-mtime", "-1"], (midnight, i64::MAX)),
        (&["-daystart", "-mtime", "+0"], (i64::MIN, midnight - 1)),
        (&["-newermt", "1970-01-02"], (DAY + 1, i64::MAX)),
        (&["-newermt", "1970-01-02 00:00:00.5"], (DAY + 1, i64::MAX)),
        (&["-newermt", "@86399.5"], (DAY, i64::MAX)),
        (&["-newermt", "1970-01-02T01:00+01:00"], (DAY + 1, i64::MAX)),
        (&["-newermt", "1 day ago"], (now - DAY + 1, i64::MAX)),
        (&["-newermt", "yesterday"], (now - DAY + 1, i64::MAX)),
        // `-daystart` applies only to tests after it.
        (&["-mtime", "0", "-daystart"], (now - DAY + 1, now)),
    ] {
        let (first, last) = times;
        for (time, expected) in [
            (first.saturating_sub(1), first == i64::MIN),
            (first, true),
            (last, true),
            (last.saturating_add(1), last == i64::MAX),
        ] {
            let found = Found {
                modified: Some(TimeRange::exact(time)),
                ..FILE
            };
            let (_, log) = evaluate_once(words, &found);
            assert_eq!(!log.is_empty(), expected, "{words:?} at {time}");
        }
    }
}

/// An expression as a tree; the outcome of each leaf is known.
#[derive(Clone, Debug)]
enum Tree {
    Test(bool),
    /// `-exec` with its outcome and its name.
    Run(bool, u8),
    /// `-size +1k`, which a listing may leave undecided.
    Big,
    /// `-empty`
    Empty,
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    Comma(Box<Tree>, Box<Tree>),
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Tree::Test),
        (any::<bool>(), any::<u8>()).prop_map(|(outcome, name)| Tree::Run(outcome, name)),
        Just(Tree::Big),
        Just(Tree::Empty),
    ];
    leaf.prop_recursive(6, 40, 2, |inner| {
        let two = || (inner.clone(), inner.clone()).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
        prop_oneof![
            inner.clone().prop_map(|a| Tree::Not(Box::new(a))),
            two().prop_map(|(a, b)| Tree::And(a, b)),
            two().prop_map(|(a, b)| Tree::Or(a, b)),
            two().prop_map(|(a, b)| Tree::Comma(a, b)),
        ]
    })
}

impl Tree {
    /// The value by the definition of the operators.
    fn value(&self, found: &Found<'_>, log: &mut Vec<String>) -> bool {
        match self {
            Self::Test(value) => *value,
            Self::Run(outcome, name) => {
                log.push(name.to_string());
                *outcome
            }
            Self::Big => found.kind == Kind::File && found.size.is_some_and(|size| size.lo > 1024),
            Self::Empty => match found.kind {
                Kind::File => found.size.is_some_and(|size| size.hi == 0),
                Kind::Directory => found.empty == Some(true),
            },
            Self::Not(a) => !a.value(found, log),
            Self::And(a, b) => a.value(found, log) && b.value(found, log),
            Self::Or(a, b) => a.value(found, log) || b.value(found, log),
            Self::Comma(a, b) => {
                a.value(found, log);
                b.value(found, log)
            }
        }
    }

    fn acts(&self) -> bool {
        match self {
            Self::Run(..) => true,
            Self::Test(_) | Self::Big | Self::Empty => false,
            Self::Not(a) => a.acts(),
            Self::And(a, b) | Self::Or(a, b) | Self::Comma(a, b) => a.acts() || b.acts(),
        }
    }

    /// The precedence; parentheses are written only where needed.
    fn level(&self) -> u8 {
        match self {
            Self::Comma(..) => 0,
            Self::Or(..) => 1,
            Self::And(..) => 2,
            _ => 3,
        }
    }

    /// The words of the tree. `spell` chooses between spellings.
    fn words(&self, least: u8, spell: &mut impl FnMut() -> bool, out: &mut Vec<String>) {
        let mut push = |word: &str| out.push(word.to_owned());
        let parenthesised = self.level() < least;
        if parenthesised {
            push("(");
        }
        match self {
            Self::Test(true) => push("-true"),
            Self::Test(false) => push("-false"),
            Self::Run(outcome, name) => {
                for word in ["-exec", &outcome.to_string(), &name.to_string(), ";"] {
                    push(word);
                }
            }
            Self::Big => ["-size", "+1k"].map(push).into_iter().collect(),
            Self::Empty => push("-empty"),
            Self::Not(a) => {
                push(if spell() { "!" } else { "-not" });
                a.words(3, spell, out);
            }
            Self::And(a, b) => {
                a.words(2, spell, out);
                if spell() {
                    out.push(if spell() { "-a" } else { "-and" }.to_owned());
                }
                // The operator is left-associative: an equal operator on the right needs parentheses.
                b.words(3, spell, out);
            }
            Self::Or(a, b) => {
                a.words(1, spell, out);
                out.push(if spell() { "-o" } else { "-or" }.to_owned());
                b.words(2, spell, out);
            }
            Self::Comma(a, b) => {
                a.words(0, spell, out);
                out.push(",".to_owned());
                b.words(1, spell, out);
            }
        }
        if parenthesised {
            out.push(")".to_owned());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Evaluations with undecided tests perform the same actions in the same order as one evaluation with all values
    /// known, each action once.
    #[test]
    fn evaluations_add_up_to_what_the_definition_says(
        tree in trees(),
        spelling in any::<u64>(),
        kind in prop_oneof![Just(Kind::File), Just(Kind::Directory)],
        (size, less, more) in (0u64..4000, 0u64..2000, 0u64..2000),
        empty in any::<bool>(),
    ) {
        let mut spelling = spelling;
        let mut spell = || {
            spelling = spelling.rotate_left(1);
            spelling & 1 == 1
        };
        let mut words = Vec::new();
        tree.words(0, &mut spell, &mut words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let expression = valid(&words);

        let known = Found {
            kind,
            size: (kind == Kind::File).then(|| SizeRange::exact(size)),
            empty: (kind == Kind::Directory).then_some(empty),
            ..FILE
        };
        let mut expected = Vec::new();
        if tree.value(&known, &mut expected) && !tree.acts() {
            expected.push("-print".to_owned());
        }

        let range = SizeRange { lo: size.saturating_sub(less), hi: size + more };
        let mut found = Found {
            size: known.size.map(|_| range),
            empty: None,
            ..known
        };
        let (mut memo, mut log) = (Memo::new(), Log::default());
        loop {
            let evaluation = expression.evaluate(&found, &mut memo, &mut log);
            prop_assert!(!evaluation.undecided);
            match evaluation.verdict {
                Verdict::Head => {
                    prop_assert!(!found.asked, "asked twice");
                    found = Found { asked: true, size: known.size, ..found };
                }
                Verdict::List => {
                    prop_assert!(found.empty.is_none(), "listed twice");
                    found.empty = Some(empty);
                }
                verdict => {
                    prop_assert_eq!(verdict, Verdict::Go);
                    prop_assert_eq!(evaluation.acted, !log.0.is_empty());
                    break;
                }
            }
        }
        prop_assert_eq!(&log.0, &expected);
    }

    /// No input makes the parser panic.
    #[test]
    fn any_words_are_an_expression_or_an_error(
        words in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(vec![
                    "(", ")", "!", ",", "-a", "-o", "-true", "-prune", "-quit", "-print", "-name", "-regex",
                    "-regextype", "posix-extended", "-printf", "-exec", ";", "+", "{}", "-size", "-mtime",
                    "-newermt", "-daystart", "-type", "-empty",
                ]).prop_map(str::to_owned),
                ".{0,8}",
                "[%\\\\a-zT0-9.@+-]{0,8}",
                "[\\[\\]\\\\(){}*+?a-c:=.^$|,0-9-]{0,10}",
            ],
            0..8,
        ),
    ) {
        let mut parser = Parser::in_zone(SystemTime::UNIX_EPOCH, jiff::tz::TimeZone::UTC);
        let mut rest = words.iter().map(OsString::from);
        let mut failed = false;
        while let Some(word) = rest.next() {
            if parser.take(&word, &mut rest).is_err() {
                failed = true;
                break;
            }
        }
        if !failed {
            let _ = parser.finish();
        }
    }
}
