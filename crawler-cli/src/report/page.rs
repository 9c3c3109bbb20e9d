//! What the HTML reports of all commands have in common: one file without scripts and without references to other files,
//! with bars in CSS. The templates escape all text from servers; what a terminal would act on becomes visible.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use plain::terminal;

/// The whole page. `about` stands below the title.
pub(super) fn document(title: &str, about: &str, body: &Markup) -> String {
    let title = terminal::neutralise(title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE.replace('\n', " "))) }
            }
            body {
                main {
                    header {
                        h1 { (title) }
                        p { (about) }
                    }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

/// The most important numbers, in large print: names, values, and whether a value is bad.
pub(super) fn tiles(tiles: &[(&str, String, bool)]) -> Markup {
    html! {
        section.tiles {
            @for (name, value, is_bad) in tiles {
                div.bad[*is_bad] { b { (value) } span { (name) } }
            }
        }
    }
}

pub(super) fn section(heading: &str, note: &str, content: &Markup) -> Markup {
    html! {
        section {
            h2 { (heading) }
            @if !note.is_empty() { p { (note) } }
            (content)
        }
    }
}

/// The cells of a line in a list: a name, a bar as long as its share (0 to 1) of the whole, and the value in words.
pub(super) fn line(name: &Markup, share: f64, value: &str) -> Markup {
    html! {
        span.name { (name) }
        span.bar { i style={ "width:" (format!("{:.1}", share * 100.0)) "%" } {} }
        span.value { (value) }
    }
}

/// A URL, as a link if its scheme is http or https. `text` is what is shown.
pub(super) fn link(url: &str, text: &str) -> Markup {
    let (url, text) = (terminal::neutralise(url), terminal::neutralise(text));
    html! {
        @if url.starts_with("http://") || url.starts_with("https://") {
            a href=(url) rel="noreferrer" { (text) }
        } @else {
            (text)
        }
    }
}

/// The style of all pages.
const STYLE: &str = include_str!("page.css");

#[cfg(test)]
pub(super) mod tests {
    /// Asserts that a page has no syntax error, that every opened tag is closed in order, and that nothing in it is active
    /// or refers to another file.
    pub(in crate::report) fn assert_harmless(html: &str) {
        use html5gum::Token;

        let mut open: Vec<Vec<u8>> = Vec::new();
        for token in html5gum::Tokenizer::new(html) {
            let Ok(token) = token;
            match token {
                Token::StartTag(tag) if tag.name.as_slice() == b"meta" => {}
                Token::StartTag(tag) => open.push(tag.name.to_vec()),
                Token::EndTag(tag) => assert_eq!(open.pop().as_deref(), Some(tag.name.as_slice())),
                Token::Error(error) => panic!("{error:?}"),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{open:?}");
        for part in [
            "<script", "<img", "src=", "url(", "@import", "<link", "\u{1b}",
        ] {
            assert!(!html.contains(part), "{part}");
        }
    }
}
