//! URLs in running text: where a URL begins, and which characters around it are no part of it.

use std::ops::Range;

use memchr::memmem;

/// The first absolute http, https or ftp URL of a text that begins at or behind `from`.
pub(super) fn next(text: &str, from: usize) -> Option<Range<usize>> {
    let mut colons = memmem::find_iter(&text.as_bytes()[from..], b"://");
    colons.find_map(|at| {
        let colon = from + at;
        let start = from + scheme(&text[from..colon])?;
        let host = colon + 3;
        let end = host + length(&text[host..]);
        is_host(&text[host..end]).then_some(start..end)
    })
}

/// Where the scheme at the end of the text begins, if it is one of those of links.
fn scheme(before: &str) -> Option<usize> {
    let letters = before.bytes().rev().take(6);
    let letters = letters.take_while(u8::is_ascii_alphabetic).count();
    let start = before.len() - letters;
    let is_scheme = ["http", "https", "ftp"]
        .iter()
        .any(|scheme| before[start..].eq_ignore_ascii_case(scheme));
    // `xhttp`, `1http`, `git+https` are other words.
    let last = before[..start].chars().next_back();
    let is_start =
        last.is_none_or(|last| !last.is_alphanumeric() && !matches!(last, '+' | '-' | '.'));
    (is_scheme && is_start).then_some(start)
}

/// Whether what follows `//` can be a host.
fn is_host(rest: &str) -> bool {
    let first = rest.chars().next();
    first.is_some_and(|first| first.is_alphanumeric() || matches!(first, '[' | '_' | '%'))
}

/// The length of the rest of a URL. Blanks, quotes and angle brackets end the URL; brackets belong to the URL if they are
/// balanced; punctuation at the end belongs to the sentence.
pub(super) fn length(rest: &str) -> usize {
    let mut end = 0;
    let mut open = Vec::new();
    let mut in_quotes = false;
    for (at, char) in rest.char_indices() {
        let is_last = match char {
            _ if char.is_whitespace() || char.is_control() => break,
            '<' | '>' | '"' | '`' | '|' | '\\' | '^' => break,
            // Quotes and punctuation of other scripts.
            '\u{2018}'..='\u{201F}' | '«' | '»' | '「' | '」' | '（' | '）' | '。' | '、' =>
            {
                break;
            }
            '(' | '[' | '{' if open.len() == DEPTH => break,
            '(' => hold(&mut open, ')'),
            '[' => hold(&mut open, ']'),
            '{' => hold(&mut open, '}'),
            ')' | ']' | '}' if open.pop() == Some(char) => true,
            ')' | ']' | '}' => break,
            '\'' => {
                in_quotes = !in_quotes;
                !in_quotes
            }
            '?' | '!' | '.' | ',' | ':' | ';' | '*' | '…' => false,
            _ => true,
        };
        if is_last {
            end = at + char.len_utf8();
        }
    }
    end
}

/// The length of the rest of a URL in Markdown: the marks of emphasis at its end are no part of the URL, but a backslash
/// is (it escapes the character behind).
pub(super) fn length_in_markdown(rest: &str) -> usize {
    let mut end = length(rest);
    while let Some([b'\\', next, ..]) = rest.as_bytes().get(end..)
        && next.is_ascii_punctuation()
    {
        let behind = end + 2;
        end = behind + length(&rest[behind..]);
    }
    rest[..end].trim_end_matches(['_', '~', '*', '\\']).len()
}

/// Notes the bracket that closes what was opened. An opening bracket is not the last character of a URL.
fn hold(open: &mut Vec<char>, closing: char) -> bool {
    open.push(closing);
    false
}

/// Most brackets that are open at once. No URL has that many.
const DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_end_where_the_sentence_goes_on() {
        let table = r#"
            https://example.com => https://example.com
            See http://a.example/x, and https://b.example/y. => http://a.example/x https://b.example/y
            (https://a.example/b_(c)) [https://a.example] => https://a.example/b_(c) https://a.example
            <https://a.example> => https://a.example
            'https://a.example/x' "https://a.example/y" => https://a.example/x https://a.example/y
            `https://a.example/z` => https://a.example/z
            HTTP://A.example/?q[]=1&r={x}! => HTTP://A.example/?q[]=1&r={x}
            ftp://f.example/a* => ftp://f.example/a
            http://[::1]:80/ http://localhost => http://[::1]:80/ http://localhost
            https://é.example/ü => https://é.example/ü
            xhttp://no git+https://no 1http://no http:// http://, ://x file://no www.no.example =>
            a=https://a.example/;b => https://a.example/;b
            https://a.example/?u=http://b.example/x => https://a.example/?u=http://b.example/x
            https://a.example/x|https://b.example/y => https://a.example/x https://b.example/y
            “https://c.example” => https://c.example
            https://a.example/it's https://a.example/( => https://a.example/it's https://a.example/"#;
        for row in table.trim().lines() {
            let (text, found) = row.trim().split_once(" =>").expect("a row");
            let mut urls = Vec::new();
            let mut from = 0;
            while let Some(range) = next(text, from) {
                from = range.end;
                urls.push(&text[range]);
            }
            assert_eq!(urls.join(" "), found.trim(), "{text}");
        }
    }
}
