//! Evaluations of what a listing shows compared with those of what is known, and the errors of the parser.

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::*;
use listing::range::{SizeRange, TimeRange};

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

/// A file of 1 to 9 bytes and of the first two minutes of 1970, by its listing.
const LISTED: Found<'_> = Found {
    size: Some(SizeRange { lo: 1, hi: 9 }),
    modified: Some(TimeRange { lo: 11, hi: 70 }),
    ..FILE
};

/// A first evaluation of an expression with these words.
fn evaluate_once(words: &str, found: &Found<'_>) -> (Evaluation, Vec<String>) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut log = Log::default();
    let evaluation = valid(&words).evaluate(found, &mut Memo::new(), &mut log);
    (evaluation, log.0)
}

#[test]
fn entries_are_printed_without_an_action() {
    for (words, printed) in [
        ("", 1),
        ("-exec false a ; -print -o -exec true b ;", 2),
        // `,` binds least.
        ("-true -o -true , -false", 0),
        ("-prune", 1),
        ("-prune -o -print", 0),
        ("-true -print -print", 2),
        ("-mindepth 2", 0),
        ("-maxdepth 0 -name a.iso", 1),
        ("-quit", 0),
    ] {
        let (evaluation, log) = evaluate_once(words, &FILE);
        assert_eq!(log.len(), printed, "{words}");
        assert_eq!(evaluation.acted, printed > 0);
    }
}

#[test]
fn verdicts() {
    for (words, found, verdict) in [
        ("-true", &FILE, Verdict::Go),
        // Also for files: a page has links.
        ("-prune", &FILE, Verdict::Prune),
        ("-prune", &DIRECTORY, Verdict::Prune),
        ("-name d -prune", &DIRECTORY, Verdict::Prune),
        ("-name x -prune", &DIRECTORY, Verdict::Go),
        ("-prune -quit", &DIRECTORY, Verdict::Quit),
        ("-mindepth 2 -prune", &DIRECTORY, Verdict::Go),
        ("-size +1M", &FILE, Verdict::Head),
        ("-size +1M", &DIRECTORY, Verdict::Go),
        ("-empty", &FILE, Verdict::Head),
        ("-empty", &LISTED, Verdict::Go),
        ("-size 1k", &LISTED, Verdict::Go),
        ("-size +0", &LISTED, Verdict::Go),
        ("-size -11c", &LISTED, Verdict::Go),
        ("-size +9c", &LISTED, Verdict::Go),
        ("-size 5c", &LISTED, Verdict::Head),
        ("-newermt @10", &LISTED, Verdict::Go),
        ("-newermt @70", &LISTED, Verdict::Go),
        ("-newermt @11", &LISTED, Verdict::Head),
        ("-mmin 16666", &LISTED, Verdict::Head),
        ("-mmin +16666", &LISTED, Verdict::Head),
        ("-mmin +16667", &LISTED, Verdict::Go),
        ("-empty", &DIRECTORY, Verdict::List),
        ("-empty -newermt 2001-01-01", &DIRECTORY, Verdict::List),
        // The undecided test does not matter.
        ("-empty -name x", &DIRECTORY, Verdict::Go),
        ("-size +1M -name x", &FILE, Verdict::Go),
        ("-size +1M -o -name a.iso", &FILE, Verdict::Go),
        ("-print -size +1M", &FILE, Verdict::Go),
        ("-size +1M , -print", &FILE, Verdict::Go),
        ("-print -o -size +1M", &FILE, Verdict::Go),
        ("-size +1M -print", &FILE, Verdict::Head),
        // An action stands between the two tests.
        ("-size +1M -print -name x", &FILE, Verdict::Head),
    ] {
        assert_eq!(evaluate_once(words, found).0.verdict, verdict, "{words}");
    }
}

#[test]
fn what_stays_undecided_is_false_and_reported() {
    let asked = Found {
        asked: true,
        ..FILE
    };
    for (words, undecided, printed) in [
        ("-size +1M", true, false),
        ("! -size +1M", true, true),
        ("-size +1M -name x", false, false),
        ("-size +1M -o -name a*", false, true),
        ("-newer http://h/x", true, false),
    ] {
        let (evaluation, log) = evaluate_once(words, &asked);
        assert_eq!(evaluation.verdict, Verdict::Go);
        assert_eq!(evaluation.undecided, undecided, "{words}");
        assert_eq!(!log.is_empty(), printed, "{words}");
    }
}

#[test]
fn times_matter_or_not() {
    for (words, expected) in [
        ("-name x", false),
        ("-name x -o ! ( -mtime 1 -name y )", true),
        ("-newer http://h/", true),
        ("-ls", true),
        ("-printf %p", false),
        ("-name x -printf %TY", true),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(valid(&words).needs_times(), expected, "{words:?}");
    }
}

#[test]
fn invalid_expressions_are_named() {
    let error = |words: &[&str]| match parse(words) {
        Ok(_) => panic!("{words:?} is valid"),
        Err(error) => error.to_string(),
    };
    let table = r"
        -name => -name needs a value
        -exec => -exec needs a command that ends in ';' or '{} +'
        -exec ; => -exec ;: there is no command
        -exec {} + => -exec {} +: with +, {} must stand once, at the end of the command
        -exec a x{} {} + => -exec {} +: with +, {} must stand once, at the end of the command
        ( => a ( has no matching )
        -name x ( => a ( has no matching )
        ) => a ) has no matching (
        ( ) => nothing stands between ( and )
        ! => nothing stands after !
        -name x -not => nothing stands after -not
        -o -name x => nothing stands before -o
        ( -a -name x ) => nothing stands before -a
        , -name x => nothing stands before ,
        -name x -o => nothing stands after -o
        -name x -o -a -print => nothing stands after -o
        -name x , => nothing stands after ,
        -type l => -type l: l: a web server shows files and directories only
        -type f,f => -type f,f: f occurs twice
        -type f, => -type f,: neither f, nor d, nor f,d
        -size 1T => -size 1T: not a number, optionally followed by c, w, b, k, M or G
        -size +-1 => -size +-1: not a number, optionally followed by c, w, b, k, M or G
        -mtime x => -mtime x: not a valid number
        -mtime 1e300 => -mtime 1e300: not a valid number
        -regex \(a\)\1 => -regex \(a\)\1: back-references such as \1 are not supported
        -regex [ => -regex [: a bracket is not closed
        -printf %q => -printf %q: %q is not a known directive
        -printf %u => -printf %u: %u: a web server does not report this
        -printf a% => -printf a%: the format ends in a lone %
        -printf %T => -printf %T: the letter after %T is missing
        -printf %Tq => -printf %Tq: %Tq is not a known part of a time
        -printf \q => -printf \q: \q is not a known escape; a backslash is written \\
        -printf %99999d => -printf %99999d: a width or precision is larger than 4096
        -delete => -delete: a web server offers no way to delete; print the URLs, or use -exec
        -user x => -user: a web server does not report this
        -depth => -depth: results are shown as they are found, a directory before its entries
        ";
    for row in table.trim().lines() {
        let (words, message) = row.trim().split_once(" => ").expect("two columns");
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(error(&words), message);
    }
    for (words, message) in [
        (
            &["("; 101][..],
            "more than 100 nested parentheses and negations",
        ),
        (&["-type", ""], "-type : neither f, nor d, nor f,d"),
        (
            &["-newermt", "the day before"],
            "-newermt the day before: not understood as a date or time",
        ),
    ] {
        assert_eq!(error(words), message);
    }
    let unknown = error(&["-regextype", "pcre"]);
    assert!(unknown.starts_with("-regextype pcre: not one of emacs, "));
}

#[test]
fn ages_have_gnu_finds_bounds() {
    const DAY: i64 = 86_400;
    let now = 1_000_000;
    let midnight = now - now % DAY;
    for (words, times) in [
        // With the first and the last second for which the test is true.
        ("-mtime|0", (now - DAY + 1, now)),
        ("-mtime|1", (now - 2 * DAY + 1, now - DAY)),
        ("-mtime|+1", (i64::MIN, now - 2 * DAY - 1)),
        ("-mtime|-1", (now - DAY, i64::MAX)),
        ("-mtime|0.5", (now - DAY - DAY / 2 + 1, now - DAY / 2)),
        ("-mmin|1", (now - 59, now)),
        ("-mmin|-1", (now - 59, i64::MAX)),
        ("-mmin|+1", (i64::MIN, now - 61)),
        ("-daystart|-mtime|0", (midnight + 1, midnight + DAY)),
        ("-daystart|-mtime|-1", (midnight, i64::MAX)),
        ("-daystart|-mtime|+0", (i64::MIN, midnight - 1)),
        ("-newermt|1970-01-02 00:00:00.5", (DAY + 1, i64::MAX)),
        ("-newermt|@86399.5", (DAY, i64::MAX)),
        ("-newermt|1970-01-02T01:00+01:00", (DAY + 1, i64::MAX)),
        ("-newermt|1 day ago", (now - DAY + 1, i64::MAX)),
        // `-daystart` applies only to tests after it.
        ("-mtime|0|-daystart", (now - DAY + 1, now)),
    ] {
        let words: Vec<&str> = words.split('|').collect();
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
            let mut log = Log::default();
            valid(&words).evaluate(&found, &mut Memo::new(), &mut log);
            assert_eq!(!log.0.is_empty(), expected, "{words:?} at {time}");
        }
    }
}

/// The words of expressions whose tests a listing may leave undecided. The actions succeed or fail, each under its name.
fn expressions() -> impl Strategy<Value = Vec<String>> {
    let words = |words: &str| -> Vec<String> { words.split(' ').map(str::to_owned).collect() };
    let tests =
        "-true|-false|-empty|-size +1k|-size 2k|-size -3k|-newermt @2000|-mmin 16633|-mmin +16633";
    let tests: Vec<&str> = tests.split('|').collect();
    let leaf = prop_oneof![
        prop::sample::select(tests).prop_map(words),
        (any::<bool>(), any::<u8>())
            .prop_map(move |(outcome, name)| words(&format!("-exec {outcome} {name} ;"))),
    ];
    leaf.prop_recursive(6, 40, 2, move |inner| {
        let operators = prop::sample::select(vec!["-a", "-o", ","]);
        let two = (inner.clone(), operators, inner.clone()).prop_map(move |(a, operator, b)| {
            [words("("), a, words(operator), b, words(")")].concat()
        });
        prop_oneof![
            3 => two,
            1 => inner.prop_map(move |a| [words("!"), a].concat()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Evaluations with undecided tests perform the same actions in the same order as one evaluation with all values
    /// known, each action once. The comparison with GNU find shows that this one is right.
    #[test]
    fn evaluations_add_up_to_one_with_all_values_known(
        words in expressions(),
        kind in prop_oneof![Just(Kind::File), Just(Kind::Directory)],
        (size, less, more) in (prop_oneof![Just(0), 0u64..4000], 0u64..2000, 0u64..2000),
        (empty, time) in (any::<bool>(), 1900i64..2200),
    ) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let expression = valid(&words);
        let known = Found {
            kind,
            size: (kind == Kind::File).then(|| SizeRange::exact(size)),
            empty: (kind == Kind::Directory).then_some(empty),
            modified: Some(TimeRange::exact(time)),
            ..FILE
        };
        let mut expected = Log::default();
        let evaluation = expression.evaluate(&known, &mut Memo::new(), &mut expected);
        prop_assert_eq!((evaluation.verdict, evaluation.undecided), (Verdict::Go, false));

        let range = SizeRange { lo: size.saturating_sub(less), hi: size + more };
        let mut found = Found {
            size: known.size.map(|_| range),
            empty: None,
            ..known
        };
        if kind == Kind::File {
            found.modified = Some(TimeRange { lo: time - (less % 100) as i64, hi: time + (more % 100) as i64 });
        }
        let (mut memo, mut log) = (Memo::new(), Log::default());
        loop {
            let evaluation = expression.evaluate(&found, &mut memo, &mut log);
            prop_assert!(!evaluation.undecided);
            // As the state of a search keeps it.
            let kept = serde_json::to_string(&memo).expect("a text");
            memo = serde_json::from_str(&kept).expect("a memo");
            match evaluation.verdict {
                Verdict::Head => {
                    prop_assert!(!found.asked, "asked twice");
                    found = Found { asked: true, size: known.size, modified: known.modified, ..found };
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
        prop_assert_eq!(&log.0, &expected.0);
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
