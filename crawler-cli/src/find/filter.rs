//! Which of the things found are wanted: the tests of find(1), all of which must hold. Pure.

use regex::bytes::{Regex, RegexBuilder};

use super::frontier::{Found, Kind};
use super::glob::{Case, Glob};

/// Tests in the order given, and bounds on the depth. The empty filter wants everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    tests: Vec<Test>,
    min_depth: u32,
}

#[derive(Clone, Debug)]
enum Test {
    Name(Glob),
    Path(Regex),
    Type(Kind),
}

impl Filter {
    /// `-name`, `-iname`: the decoded last segment fits the shell pattern.
    pub fn name(&mut self, pattern: &str, case: Case) {
        self.tests.push(Test::Name(Glob::new(pattern, case)));
    }

    /// `-regex`: the whole decoded path of the URL fits the expression, in the syntax of the `regex` crate. The path
    /// has no final `/`.
    ///
    /// # Errors
    /// The expression is not valid, or too large.
    pub fn regex(&mut self, expression: &str) -> Result<(), regex::Error> {
        // Compiled alone first, so that an unbalanced group cannot pair up with the one around it.
        Regex::new(expression)?;
        let whole = RegexBuilder::new(&format!(r"\A(?:{expression})\z"))
            .dot_matches_new_line(true)
            .build()?;
        self.tests.push(Test::Path(whole));
        Ok(())
    }

    /// `-type`
    pub fn kind(&mut self, kind: Kind) {
        self.tests.push(Test::Type(kind));
    }

    /// `-mindepth`
    pub fn min_depth(&mut self, depth: u32) {
        self.min_depth = depth;
    }

    /// Whether every test holds.
    pub fn wants(&self, found: &Found<'_>) -> bool {
        found.depth >= self.min_depth
            && self.tests.iter().all(|test| match test {
                Test::Name(glob) => glob.matches(found.name),
                Test::Path(regex) => regex.is_match(found.path),
                Test::Type(kind) => *kind == found.kind,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(path: &'a str, kind: Kind, depth: u32) -> Found<'a> {
        let name = path.rsplit('/').next().unwrap_or(path);
        Found {
            url: "",
            path: path.as_bytes(),
            name: name.as_bytes(),
            kind,
            depth,
            start: b"/",
            size: None,
            modified: None,
            asked: false,
            status: None,
            attempts: 1,
            took: std::time::Duration::ZERO,
            empty: None,
            listing: None,
        }
    }

    #[test]
    fn all_tests_must_hold() {
        let mut filter = Filter::default();
        assert!(filter.wants(&found("/x", Kind::File, 0)));
        filter.name("*.xml", Case::Sensitive);
        filter.name("REPO*", Case::Ignored);
        filter.kind(Kind::File);
        filter.min_depth(2);
        assert!(filter.wants(&found("/a/repomd.xml", Kind::File, 2)));
        assert!(!filter.wants(&found("/a/repomd.xml", Kind::File, 1)));
        assert!(!filter.wants(&found("/a/repomd.xml", Kind::Directory, 2)));
        assert!(!filter.wants(&found("/a/primary.xml", Kind::File, 2)));
    }

    #[test]
    fn a_regex_takes_the_whole_path() {
        for (expression, path, expected) in [
            ("repomd", "/a/repomd.xml", false),
            (".*/repomd\\.xml", "/a/repomd.xml", true),
            (".*/repomd\\.xml", "/a/repomd.xml.asc", false),
            ("/a|/b", "/b", true),
            ("/a|/b", "/bc", false),
            (".*café.*", "/x/café.txt", true),
            ("/a.b", "/a\nb", true),
            ("(?i)/A", "/a", true),
        ] {
            let mut filter = Filter::default();
            filter.regex(expression).expect("a valid expression");
            assert_eq!(
                filter.wants(&found(path, Kind::File, 1)),
                expected,
                "{expression} on {path}"
            );
        }
        for bad in ["(", "*", "a)|(b", "[", "(?#"] {
            assert!(Filter::default().regex(bad).is_err(), "{bad}");
        }
    }
}
