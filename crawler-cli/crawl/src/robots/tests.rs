//! Google's published cases, the examples of RFC 9309, and rules that neither covers.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use regex::bytes::RegexBuilder;

use super::*;

/// The rules for the agent `Courser`.
fn parse(body: &str) -> Robots {
    Robots::parse(body.as_bytes(), "Courser")
}

/// Cases where RFC 9309 §2.2.2 differs from Google's parser, which compares URLs as they are given. For Google the
/// allowing rule does not match, and the verdict is "disallowed".
const ENCODED_OTHERWISE: [&str; 3] = ["robots-063", "robots-065", "robots-066"];

#[test]
fn googles_published_cases() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/robots-google.jsonl"
    );
    let text = std::fs::read_to_string(file).expect("the test data");
    let mut cases = 0;
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("a case");
        let field = |name: &str| case[name].as_str().expect("a text");
        let body = BASE64_STANDARD.decode(field("robots_b64")).expect("base64");
        let url = field("url");
        let after_scheme = url.split_once("//").map_or("", |(_, rest)| rest);
        let path = after_scheme.find('/').map_or("", |at| &after_scheme[at..]);
        let verdict = case["allowed"].as_bool().expect("a verdict");
        let otherwise = ENCODED_OTHERWISE.contains(&field("id"));
        assert_eq!(
            Robots::parse(&body, field("user_agent")).allows(path),
            verdict != otherwise,
            "{line}"
        );
        cases += 1;
    }
    assert_eq!(cases, 140);
}

/// The encodings of RFC 9309 §2.2.2 and the special characters of §2.2.3 where [`googles_published_cases`] have nothing.
#[test]
fn encodings_and_special_characters_of_rfc_9309() {
    for (rule, path, fits) in [
        ("/foo/bar/%e3%83%84", "/foo/bar/\u{30c4}", true),
        ("/%7Ejoe/", "/~joe/index.html", true),
        ("/~joe/", "/%7ejoe/index.html", true),
        ("/a b[1]", "/a%20b%5B1%5D", true),
        ("/50%", "/50%25", true),
        ("/a%2Fb", "/a/b", false),
        ("/a/b", "/a%2fb", false),
        ("/a%3Fb", "/a?b", false),
        ("/caf\u{e9}", "/cafe", false),
        ("/a-%2A.html", "/a-*.html", true),
        ("/a-%2A.html", "/a-b.html", false),
        ("/foo-%24", "/foo-$", true),
        ("/foo-%24", "/foo-", false),
        ("/a$b", "/a$b/c", true),
        ("/a%24$", "/a$", true),
        ("*", "/", true),
        ("*$", "/x", true),
        ("$", "/", false),
        ("foo", "/foo", false),
    ] {
        let robots = parse(&format!("User-agent: *\nDisallow: {rule}\n"));
        assert_eq!(robots.allows(path), !fits, "{rule} {path}");
    }
}

#[test]
fn lines_may_end_in_any_way_and_begin_with_a_mark() {
    for end in ["\n", "\r", "\r\n", "\n\r", "\r\r\n"] {
        for mark in ["", "\u{feff}"] {
            let lines = [
                mark,
                "User-agent: * # all",
                " \tDISALLOW :  /a b # c",
                "allow: /a bc",
            ];
            let robots = parse(&lines.join(end).replacen(end, "", 1));
            assert!(!robots.allows("/a%20b"), "{end:?} {mark:?}");
            assert!(robots.allows("/a%20bc"));
            assert!(robots.allows("/A%20b"));
        }
    }
}

#[test]
fn common_mistakes_are_understood() {
    for file in [
        "useragent: *\ndissallow: /",
        "User agent: *\nDissalow: /",
        "user-agent *\ndisalow /",
        "USERAGENT:*\ndiasllow:/",
        "User-Agents: * and all the others\nDisallaw: /",
    ] {
        assert!(!parse(file).allows("/x"), "{file}");
    }
    for file in [
        "user-agent: *\ndisallow / please",
        "user-agent: *\nnoindex: /",
        "user-agent: *x\ndisallow: /",
        "disallow: /",
        "user-agent: *\n# disallow: /",
        "<html><body>User-agent: * Disallow: /</body></html>",
    ] {
        assert!(parse(file).allows("/x"), "{file}");
        assert!(parse(file).allows_all(), "{file}");
    }
}

#[test]
fn agents_are_named_by_their_token_alone() {
    let is_named = |value: &str| !parse(&format!("User-agent: {value}\nDisallow: /")).allows("/x");
    for value in ["Courser", "COURSER/1.0", "courser (all)", "Courser2"] {
        assert!(is_named(value), "{value}");
    }
    for value in ["Cours", "Courserbot", "x Courser", ""] {
        assert!(!is_named(value), "{value}");
    }
    // A group without rules is a group.
    assert!(parse("User-agent: *\nDisallow: /\nUser-agent: Courser\n").allows("/x"));
}

#[test]
fn delays_and_sitemaps() {
    let file = "Sitemap: http://h/a.xml
User-agent: courser
Crawl-delay: 2.5
Crawl-delay: 1
Crawl-delay: soon
Crawl-delay: -3
Crawl-delay: nan
User-agent: other
User-agent: *
Crawl-delay: 30
Disallow: /x
site-map: http://h/b.xml
";
    let ours = parse(file);
    assert_eq!(ours.crawl_delay(), Some(Duration::from_secs(30)));
    assert_eq!(ours.sitemaps(), ["http://h/a.xml", "http://h/b.xml"]);
    // Only allow and disallow rules end the `User-agent` lines of a group (§2.2.4).
    assert!(!ours.allows("/x"));

    let apart = file.replace("User-agent: other", "Disallow: /y\nUser-agent: other");
    let ours = parse(&apart);
    assert_eq!(ours.crawl_delay(), Some(Duration::from_millis(2500)));
    assert!(ours.allows("/x") && !ours.allows("/y"));
    assert_eq!(Robots::allow_all().crawl_delay(), None);
}

#[test]
fn bytes_beyond_the_limit_are_not_read() {
    let head = "User-agent: *\nDisallow: /first\n";
    let last = "Disallow: /last";
    let filled = |after: &str, beyond: usize| {
        let filler = READ + beyond - head.len() - last.len() - after.len();
        parse(&format!("{head}{}{last}{after}", "#\n".repeat(filler / 2)))
    };
    assert!(!filled("\n", 0).allows("/last"));
    // Cut by one byte, it would forbid `/las`.
    for beyond in [2, 8] {
        let cut = filled("", beyond);
        assert!(!cut.allows("/first"));
        assert!(cut.allows("/last") && cut.allows("/laser"));
    }
}

#[test]
fn access_by_status() {
    use Access::{Follow, Parse, Unavailable, Unreachable};
    for (statuses, access) in [
        (&[200, 206][..], Parse),
        (&[301, 308], Follow),
        (&[401, 403, 404, 410], Unavailable),
        (&[304, 429, 500, 503], Unreachable),
    ] {
        for status in statuses {
            assert_eq!(Access::of_status(*status, 0), access, "{status}");
        }
    }
    assert_eq!(Access::of_status(302, 4), Follow);
    assert_eq!(Access::of_status(302, 5), Unavailable);
}

/// [`Rule::matches`] as a regular expression.
fn matches_by_regex(pattern: &[u8], is_anchored: bool, path: &[u8]) -> bool {
    let pieces = pattern.split(|&byte| byte == b'*');
    let pieces: Vec<String> = pieces
        .map(|piece| regex::escape(str::from_utf8(piece).expect("ASCII")))
        .collect();
    let end = if is_anchored { r"\z" } else { "" };
    let expression = format!(r"\A{}{end}", pieces.join(".*"));
    let expression = RegexBuilder::new(&expression)
        .dot_matches_new_line(true)
        .build();
    expression.expect("valid").is_match(path)
}

proptest! {
    #[test]
    fn patterns_fit_as_regular_expressions_do(
        pattern in "/?[ab*]{0,8}",
        is_anchored: bool,
        path in "/[ab]{0,12}",
    ) {
        let rule = Rule::new(true, pattern.as_bytes(), is_anchored);
        let by_regex = matches_by_regex(pattern.as_bytes(), is_anchored, path.as_bytes());
        prop_assert_eq!(rule.matches(path.as_bytes()), by_regex);
    }

    #[test]
    fn normalising_twice_changes_nothing(text: Vec<u8>) {
        let once = normalise(&text, StarMeaning::Wildcard);
        prop_assert!(once.is_ascii());
        prop_assert_eq!(normalise(&once, StarMeaning::Wildcard), once);
    }

    #[test]
    fn any_bytes_are_a_file(
        lines in prop::collection::vec("(user-agent|allow|disallow|crawl-delay|#)?[: ]?[*$/%a]{0,4}", 0..20),
        junk: Vec<u8>,
        path: String,
    ) {
        let mut file = lines.join("\n").into_bytes();
        file.extend(junk);
        let robots = Robots::parse(&file, "a");
        robots.allows(&path);
        prop_assert!(robots.allows("/robots.txt"));
    }
}
