//! Times and URLs as people read them, and lines of a label and a text.

use std::borrow::Cow;
use std::fmt::Write as _;

use jiff::Timestamp;
use url::Url;

use plain::terminal::neutralise;
use plain::text::rough_span;
use verdict::life::time::between;

/// A URL without the password and the user that it may have, and without characters that a terminal acts on.
pub fn url(text: &str) -> String {
    neutralise(&masked(text)).into_owned()
}

/// A URL to show, of at most a line.
pub fn short_url(text: &str) -> String {
    let shown = url(text);
    match shown.char_indices().nth(LONGEST_URL) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

/// A URL without its user, for programs.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    // Most URLs have no user, and need not be read.
    if !text.contains('@') {
        return text.into();
    }
    let Ok(mut url) = Url::parse(text) else {
        // What is no URL may have been meant as one.
        let meant = text.split_once("://").zip(text.rsplit_once('@'));
        return match meant {
            Some(((scheme, _), (_, host))) if !scheme.contains(char::is_whitespace) => {
                format!("{scheme}://***@{host}").into()
            }
            _ => text.into(),
        };
    };
    if url.username().is_empty() && url.password().is_none() {
        return text.into();
    }
    let masked = url.set_username("***").is_ok() && url.set_password(None).is_ok();
    match masked {
        true => Cow::Owned(url.into()),
        false => "(a URL with a user)".into(),
    }
}

/// Text of others without characters that a terminal acts on.
pub fn safe(text: &str) -> String {
    neutralise(text).into_owned()
}

/// A time: `2026-11-22 19:14:20Z`.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// A time and how far it is from now: `2026-11-22 19:14:20Z (in 3 h)`.
pub(crate) fn stamp_from(now: Timestamp, at: Timestamp) -> String {
    format!("{} ({})", stamp(at), distance(now, at))
}

/// `in 3 h`, `2 d ago`, `now`.
pub(crate) fn distance(now: Timestamp, at: Timestamp) -> String {
    let (ahead, behind) = (between(now, at), between(at, now));
    match (ahead.as_secs(), behind.as_secs()) {
        (0, 0) => "now".to_owned(),
        (0, _) => format!("{} ago", rough_span(behind)),
        _ => format!("in {}", rough_span(ahead)),
    }
}

/// Lines of labels and texts, the texts below one another and wrapped.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    text: String,
    /// The label of the next line; none after the first line of a label.
    label: &'static str,
}

impl Sheet {
    /// A line without a label, as it is.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Lines below a label.
    pub(crate) fn field(&mut self, label: &'static str, text: &str) {
        self.label = label;
        self.more(text);
    }

    /// Further lines below the last label.
    pub(crate) fn more(&mut self, text: &str) {
        let label = std::mem::take(&mut self.label);
        let mut line = format!("{label:<INDENT$}");
        let mut has_words = false;
        for word in text.split(' ') {
            let is_too_long = line.chars().count() + 1 + word.chars().count() > WIDTH;
            if has_words && is_too_long {
                self.end(&line);
                line = " ".repeat(INDENT + 2);
                has_words = false;
            }
            if has_words {
                line.push(' ');
            }
            line.push_str(word);
            has_words = true;
        }
        self.end(&line);
    }

    fn end(&mut self, line: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    /// All lines.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Rows whose columns are as wide as their widest cell; the last column is not padded.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, each behind `lead`.
    pub(crate) fn lines(self, lead: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = lead.to_owned();
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, "{cell:<width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The width of a terminal.
pub(crate) const WIDTH: usize = 80;
/// Where texts begin.
pub(crate) const INDENT: usize = 13;

/// How many characters of a URL are shown in a line.
const LONGEST_URL: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_urls_are_masked() {
        for (text, shown) in [
            ("https://a.example/x?q=1", "https://a.example/x?q=1"),
            ("https://me:secret@a.example/", "https://***@a.example/"),
            ("https://me@a.example/", "https://***@a.example/"),
            ("https://a.example/@me", "https://a.example/@me"),
            ("https://me:word@[/a", "https://***@[/a"),
            ("https://me:wo/rd@[", "https://***@["),
            (
                "https://a.example/\u{1b}[31m",
                "https://a.example/\\u{1b}[31m",
            ),
        ] {
            assert_eq!(url(text), shown);
        }
    }

    #[test]
    fn times_are_read_at_once() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
        for (seconds, text) in [
            (0, "now"),
            (59, "in 59 s"),
            (-61, "61 s ago"),
            (7_199, "in 119 min"),
            (-7_200, "2 h ago"),
            (172_800, "in 2 d"),
            (-86_400 * 1_000, "1,000 d ago"),
        ] {
            let at = now + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(distance(now, at), text);
        }
        assert_eq!(stamp_from(now, now), "2026-11-22 12:00:00Z (now)");
    }

    #[test]
    fn texts_are_wrapped_behind_their_labels() {
        let mut sheet = Sheet::default();
        sheet.field("Paused", &"word ".repeat(20));
        sheet.more("next");
        let text = sheet.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(lines[0].starts_with("Paused       word word"), "{text}");
        assert!(lines[1].starts_with("               word"), "{text}");
        assert_eq!(lines[2], "             next");
    }

    #[test]
    fn columns_are_aligned() {
        let mut columns = Columns::default();
        columns.row(["a".to_owned(), "1".to_owned()]);
        columns.row(["long".to_owned(), "2".to_owned()]);
        assert_eq!(columns.lines(" "), " a     1\n long  2\n");
    }
}
