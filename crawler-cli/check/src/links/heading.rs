//! The anchors that GitHub gives to headings.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use xxhash_rust::xxh3::xxh3_64;

/// The slugs of the headings of one document: each is used once.
#[derive(Debug, Default)]
pub(super) struct Slugs {
    /// How often each slug was wanted, by hash.
    seen: HashMap<u64, u32>,
}

impl Slugs {
    /// The anchor of the next heading with this text: lower case, without punctuation, with `-` for each space, and with
    /// a number if an earlier heading has the same.
    pub(super) fn of(&mut self, heading: &str) -> String {
        // The pattern is constant, and a test uses it.
        static PUNCTUATION: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"[^\w\- ]").expect("a valid pattern"));
        let slug = PUNCTUATION
            .replace_all(heading, "")
            .to_lowercase()
            .replace(' ', "-");
        let count = self.seen.entry(xxh3_64(slug.as_bytes())).or_insert(0);
        *count += 1;
        match *count {
            1 => slug,
            more => format!("{slug}-{}", more - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_those_of_github() {
        let mut slugs = Slugs::default();
        for (heading, slug) in [
            ("Getting Started", "getting-started"),
            ("What's new in 2.0?", "whats-new-in-20"),
            ("Getting Started", "getting-started-1"),
            ("getting started", "getting-started-2"),
            ("🚀 Launch", "-launch"),
            (":rocket: Launch", "rocket-launch"),
            ("C++ & Rust", "c--rust"),
            ("snake_case `code()`", "snake_case-code"),
            ("Über Größe", "über-größe"),
            ("日本語 見出し", "日本語-見出し"),
            ("a - b", "a---b"),
            ("e\u{301}", "e\u{301}"),
            ("", ""),
        ] {
            assert_eq!(slugs.of(heading), slug, "{heading}");
        }
    }
}
