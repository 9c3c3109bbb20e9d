//! Which URLs are checked: `--include` and `--exclude`, by the rules of lychee.

use regex::Regex;

/// Which URLs are checked. The default checks all URLs that can be.
///
/// - A URL that an include pattern matches is checked, even if an exclude pattern matches, too.
/// - A URL that an exclude pattern matches is left out.
/// - With include patterns alone, URLs that none of them matches are left out.
///
/// Patterns are searched anywhere in the URL as it is asked, fragment included.
///
/// ```
/// use check::select::Selection;
/// use regex::Regex;
///
/// let selection = Selection {
///     exclude: vec![Regex::new(r"/drafts/")?],
///     ..Selection::default()
/// };
/// assert!(selection.checks("https://example.com/a"));
/// assert!(!selection.checks("https://example.com/drafts/1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// What is checked in any case; without exclude patterns, nothing else is.
    pub include: Vec<Regex>,
    /// What is not checked.
    pub exclude: Vec<Regex>,
}

impl Selection {
    /// Whether a URL, or what is no valid one, is checked.
    pub fn checks(&self, url: &str) -> bool {
        let matches = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(url));
        match (self.include.is_empty(), self.exclude.is_empty()) {
            (true, true) => true,
            (false, true) => matches(&self.include),
            (_, false) => matches(&self.include) || !matches(&self.exclude),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Regex> {
        let compile = |text: &&str| Regex::new(text).expect("valid");
        texts.iter().map(compile).collect()
    }

    #[test]
    fn include_and_exclude_work_as_in_lychee() {
        // Include patterns, exclude patterns, and which of the URLs a and b are checked.
        let table: [(&[&str], &[&str], &str); 6] = [
            (&[], &[], "ab"),
            (&["/a"], &[], "a"),
            (&[], &["/a"], "b"),
            (&["/a"], &["/a", "/b"], "a"),
            (&["/a"], &["/c"], "ab"),
            (&["/a"], &["."], "a"),
        ];
        for (include, exclude, checked) in table {
            let selection = Selection {
                include: patterns(include),
                exclude: patterns(exclude),
            };
            for name in ["a", "b"] {
                let checks = selection.checks(&format!("http://x/{name}"));
                assert_eq!(checks, checked.contains(name), "{include:?} {exclude:?}");
            }
        }
    }
}
