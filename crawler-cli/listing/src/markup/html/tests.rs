//! The stream is the one that html5gum gives, for any page.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use proptest::prelude::*;

use super::*;

/// The recorded stream. Adjacent texts are joined.
#[derive(Debug, Default, Eq, PartialEq)]
struct Stream {
    events: Vec<(char, Vec<u8>, Vec<u8>)>,
    /// The events of a start tag that is not complete.
    tag: Vec<(char, Vec<u8>, Vec<u8>)>,
}

impl Stream {
    fn push_text(&mut self, text: &[u8]) {
        match self.events.last_mut() {
            Some(('.', _, before)) => before.extend_from_slice(text),
            _ if text.is_empty() => {}
            _ => self.events.push(('.', Vec::new(), text.to_vec())),
        }
    }
}

impl<'d> Sink<'d> for Stream {
    fn open(&mut self, name: &[u8]) {
        self.tag = vec![('<', name.to_vec(), Vec::new())];
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        let is_new = self.tag.iter().all(|(_, seen, _)| seen != name);
        if is_new
            || self.tag[0].1 == name && self.tag.iter().filter(|tag| tag.1 == name).count() == 1
        {
            self.tag
                .push(('=', name.to_vec(), value.decode().into_owned()));
        }
    }

    fn opened(&mut self) {
        self.events.append(&mut self.tag);
    }

    fn close(&mut self, name: &[u8]) {
        self.events.push(('>', name.to_vec(), Vec::new()));
    }

    fn wants_text(&self) -> bool {
        true
    }

    fn text(&mut self, text: Raw<'d>) {
        self.push_text(&text.decode());
    }

    fn comment(&mut self, comment: Raw<'d>) {
        self.events
            .push(('!', Vec::new(), comment.decode().into_owned()));
    }

    fn is_done(&self) -> bool {
        false
    }
}

/// The stream of html5gum.
fn reference(page: &[u8]) -> Stream {
    let mut stream = Stream::default();
    let mut is_start = false;
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                is_start = true;
                stream.tag = vec![('<', name.to_vec(), Vec::new())];
            }
            CallbackEvent::AttributeName { name } if is_start => {
                stream.tag.push(('=', name.to_vec(), Vec::new()));
            }
            CallbackEvent::AttributeValue { value } if is_start => {
                stream.tag.last_mut().expect("a name").2 = value.to_vec();
            }
            CallbackEvent::CloseStartTag { .. } => {
                is_start = false;
                let mut tag = std::mem::take(&mut stream.tag);
                let mut seen = Vec::new();
                tag.retain(|(kind, name, _)| {
                    let is_new = *kind == '<' || !seen.contains(name);
                    if *kind == '=' {
                        seen.push(name.clone());
                    }
                    is_new
                });
                stream.events.append(&mut tag);
            }
            CallbackEvent::EndTag { name } => stream.events.push(('>', name.to_vec(), Vec::new())),
            CallbackEvent::String { value } => stream.push_text(value),
            CallbackEvent::Comment { value } => {
                stream.events.push(('!', Vec::new(), value.to_vec()))
            }
            _ => {}
        }
        None
    });
    emitter.naively_switch_states(true);
    let _ = Tokenizer::new_with_emitter(page, emitter).next();
    stream
}

fn compare(page: &[u8]) {
    let mut stream = Stream::default();
    read(page, &mut stream);
    assert_eq!(
        stream.events,
        reference(page).events,
        "{}",
        page.escape_ascii()
    );
}

/// Sequences that [`any_page_gives_the_stream_of_html5gum`] seldom has.
#[test]
fn odd_pages_give_the_stream_of_html5gum() {
    for body in [
        "<script>if (a</b>) '</scripty>' <!-- x --></script ><p>",
        "<script><!-- <script> </script> --></script>x",
        "<script><!--></script>x",
        "<script><!-- <script></script></script>x",
        "<script><!--->a<script></script>x",
        "<STYLE>a{content:\"</p>\"}</Style><p>",
        "<textarea><a href=x></textarea><p>",
        "<iframe><p></iframe>",
        "<xmp><p></xmp>",
        "<plaintext><p>",
        "<!--> <a href=x> -->",
        "<!---> <a href=x> -->",
        "<!--a--b---><p>",
        "<a b = 'c'd=e>",
        "<a/b/c>",
        "&notin;<a b='\0&#00000000000000000065;&#xE9x&nosuchthing;&copyx&copy=&notin;'>",
        "&#xE9x&#233x&nosuchthing;&copyx&copy=&&amp;&#;",
    ] {
        compare(body.as_bytes());
    }
}

#[test]
fn elements_of_xml_can_be_empty() {
    let of_xml = "<?xml version='1.0'?><html><script src='x'/><a href='y'/><title/></html>";
    let of_svg = "<svg><title/><style/><a href='x'/></svg><title><a href=y></title>";
    for (body, links) in [
        (of_xml, 2),
        (of_svg, 1),
        ("<script src='x'/><a href='y'>", 1),
        ("<svg><![CDATA[<a href=x>]]></svg><a href=y>", 1),
    ] {
        let mut stream = Stream::default();
        read(body.as_bytes(), &mut stream);
        let found = stream.events.iter().filter(|event| event.0 == '=');
        assert_eq!(found.count(), links, "{body} {:?}", stream.events);
    }
}

/// Pieces of pages.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "<a href=\"", "<A HREF='", "<a href=", "\">", "'>", ">", "</a>", "</A >", "<td class=\"s\">", "</td>",
            "<pre>", "</pre>", "<hr>", "<br/>", "<br />", "<img src=\"/i.gif\" alt=\"[DIR]\">", "<tr>", "</tr>",
            "<title>", "</title>", "<script>", "<script ", "</script>", "</script ", "<style>", "</style", "<!-- ", "<!--",
            "-->", "--!>", "--", "<!", "<?", "<!DOCTYPE html>", "</", "<", ">", "\"", "'", "=", "/", "&", ";", "&amp;",
            "&nbsp;", "&#39;", "&#x3c;", "&#x80;", "&#0;", "&#xD800;", "&#x110000;", "&#x;", "&lt", "&copy;", "&order=", "&notit;", "&#", "\r\n", "\r", "\n", " ",
            "\t", "-", "!", "]]>", "<![CDATA[", "../", "x.txt", "é", "<textarea>", "<a name=x href=y>",
            "a=b", "<b", "a",
        ]).prop_map(str::to_owned),
        1 => "[a-z<>&;'\"=/! \\-]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_page_gives_the_stream_of_html5gum(pieces in prop::collection::vec(piece(), 0..24)) {
        compare(pieces.concat().as_bytes());
    }
}
