//! Which attributes of HTML are links (HTML, index of attributes), for crawls and for checks.

use std::ops::Range;

use super::html::Raw;

/// A start tag, as far as links are concerned.
#[derive(Default)]
pub struct StartTag<'d> {
    element: Element,
    /// The attributes that mean something, each once.
    attributes: Vec<(Attribute, Raw<'d>)>,
}

/// What an attribute refers to.
#[derive(Clone, Copy)]
pub struct TagReference<'d> {
    /// The value of the attribute.
    pub value: Raw<'d>,
    /// How URLs are written in the value.
    pub form: Form,
    /// The URL names a part of the page, such as an image, and does not lead elsewhere.
    pub is_embedded: bool,
}

impl<'d> StartTag<'d> {
    /// A new tag begins.
    pub fn begin(&mut self, name: &[u8]) {
        self.element = Element::of(name);
        self.attributes.clear();
    }

    /// An attribute of the tag. The first one of each name counts.
    pub fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        if let Some(attribute) = Attribute::of(name)
            && self.value(attribute).is_none()
        {
            self.attributes.push((attribute, value));
        }
    }

    pub fn element(&self) -> Element {
        self.element
    }

    /// Whether the tag has an attribute that means something.
    pub fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    fn value(&self, wanted: Attribute) -> Option<Raw<'d>> {
        let mut attributes = self.attributes.iter();
        attributes.find_map(|(attribute, value)| (*attribute == wanted).then_some(*value))
    }

    fn is(&self, attribute: Attribute, word: &[u8]) -> bool {
        let value = self.value(attribute);
        value.is_some_and(|value| value.bytes.trim_ascii().eq_ignore_ascii_case(word))
    }

    /// The names that fragments can have.
    pub fn anchors(&self) -> impl Iterator<Item = Raw<'d>> {
        let name = self
            .value(Attribute::Name)
            .filter(|_| self.element == Element::Anchor);
        [self.value(Attribute::Id), name].into_iter().flatten()
    }

    /// The text in place of an image.
    pub fn alternative(&self) -> Option<Raw<'d>> {
        self.value(Attribute::Alt)
    }

    /// The text of an image that has no URL.
    pub fn only_text(&self) -> Option<Raw<'d>> {
        let is_image = self.element == Element::Image && self.value(Attribute::Src).is_none();
        self.alternative().filter(|_| is_image)
    }

    /// What the attributes refer to, in their order.
    pub fn references(&self) -> impl Iterator<Item = TagReference<'d>> {
        let rel = self
            .value(Attribute::Rel)
            .filter(|_| self.element == Element::Link);
        let rel = Relation::of(rel);
        self.attributes
            .iter()
            .filter_map(move |&(attribute, value)| {
                let (is_part, form) = self.element.url(attribute)?;
                let is_link = match self.element {
                    Element::Meta => self.is(Attribute::HttpEquiv, b"refresh"),
                    Element::Input if attribute == Attribute::Src => {
                        self.is(Attribute::Type, b"image")
                    }
                    _ => rel != Relation::Hint,
                };
                is_link.then_some(TagReference {
                    value,
                    form,
                    is_embedded: is_part || rel == Relation::Part,
                })
            })
    }
}

/// The elements that mean something here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Element {
    Anchor,
    Area,
    Body,
    /// Begins a new line, so that the words around it are two.
    Break,
    Embed,
    Frame,
    Image,
    Input,
    Link,
    Media,
    Meta,
    Object,
    Quote,
    Script,
    Style,
    SvgImage,
    Template,
    #[default]
    Other,
}

impl Element {
    pub fn of(name: &[u8]) -> Self {
        match name {
            b"a" => Self::Anchor,
            b"area" => Self::Area,
            b"body" | b"table" | b"td" | b"th" => Self::Body,
            b"br" | b"div" | b"li" | b"p" | b"tr" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5"
            | b"h6" => Self::Break,
            b"embed" | b"track" => Self::Embed,
            b"iframe" | b"frame" => Self::Frame,
            b"img" => Self::Image,
            b"input" => Self::Input,
            b"link" => Self::Link,
            b"audio" | b"source" | b"video" => Self::Media,
            b"meta" => Self::Meta,
            b"object" => Self::Object,
            b"blockquote" | b"del" | b"ins" | b"q" => Self::Quote,
            b"script" => Self::Script,
            b"style" => Self::Style,
            b"feimage" | b"image" | b"use" => Self::SvgImage,
            b"template" => Self::Template,
            _ => Self::Other,
        }
    }

    /// Whether an attribute of this element names a part of the page, and in which form; `None` if it names nothing.
    fn url(self, attribute: Attribute) -> Option<(bool, Form)> {
        let (document, part) = (false, true);
        Some(match (self, attribute) {
            (Self::Anchor, Attribute::Href | Attribute::XlinkHref)
            | (Self::Area | Self::Link, Attribute::Href)
            | (Self::Frame, Attribute::Src)
            | (Self::Quote, Attribute::Cite) => (document, Form::Url),
            (Self::Meta, Attribute::Content) => (document, Form::Refresh),
            (
                Self::Embed | Self::Image | Self::Input | Self::Media | Self::Script,
                Attribute::Src,
            )
            | (Self::Media, Attribute::Poster)
            | (Self::Object, Attribute::Data)
            | (Self::Body, Attribute::Background)
            | (Self::SvgImage, Attribute::Href | Attribute::XlinkHref) => (part, Form::Url),
            (Self::Image | Self::Media, Attribute::Srcset)
            | (Self::Link, Attribute::ImageSrcset) => (part, Form::Candidates),
            _ => return None,
        })
    }
}

/// How URLs are written in an attribute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    Url,
    /// A list of images: see [`candidates`].
    Candidates,
    /// A time and a URL: see [`refreshed`].
    Refresh,
}

/// The attributes that mean something here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attribute {
    Alt,
    Background,
    Cite,
    Content,
    Data,
    Href,
    HttpEquiv,
    Id,
    ImageSrcset,
    Name,
    Poster,
    Rel,
    Src,
    Srcset,
    Type,
    XlinkHref,
}

impl Attribute {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"alt" => Self::Alt,
            b"background" => Self::Background,
            b"cite" => Self::Cite,
            b"content" => Self::Content,
            b"data" => Self::Data,
            b"href" => Self::Href,
            b"http-equiv" => Self::HttpEquiv,
            b"id" => Self::Id,
            b"imagesrcset" => Self::ImageSrcset,
            b"name" => Self::Name,
            b"poster" => Self::Poster,
            b"rel" => Self::Rel,
            b"src" => Self::Src,
            b"srcset" => Self::Srcset,
            b"type" => Self::Type,
            b"xlink:href" => Self::XlinkHref,
            _ => return None,
        })
    }
}

/// What `<link rel>` says about its target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Relation {
    Document,
    /// A part of this page.
    Part,
    /// A host to connect to, and nothing to fetch.
    Hint,
}

impl Relation {
    fn of(rel: Option<Raw<'_>>) -> Self {
        let Some(rel) = rel else {
            return Self::Document;
        };
        let is = |wanted: &[&str]| {
            let mut words = rel.bytes.split(u8::is_ascii_whitespace);
            words.any(|word| {
                wanted
                    .iter()
                    .any(|wanted| word.eq_ignore_ascii_case(wanted.as_bytes()))
            })
        };
        if is(&["preconnect", "dns-prefetch"]) {
            Self::Hint
        } else if is(&PARTS) {
            Self::Part
        } else {
            Self::Document
        }
    }
}

/// Relations of `<link rel>` that name a part of the page.
const PARTS: [&str; 9] = [
    "stylesheet",
    "icon",
    "apple-touch-icon",
    "mask-icon",
    "manifest",
    "preload",
    "modulepreload",
    "prefetch",
    "prerender",
];

/// Where the URLs of a `srcset` stand. The descriptor after each URL is skipped.
pub fn candidates(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let start = at + bytes[at..].iter().position(|byte| !is_between(byte))?;
        let length = bytes[start..].iter().position(u8::is_ascii_whitespace);
        let end = length.map_or(bytes.len(), |length| start + length);
        let url = bytes[start..end].trim_ascii_end();
        at = end;
        if let Some(bare) = url.strip_suffix(b",") {
            let commas = bare.iter().rev().take_while(|&&byte| byte == b',').count();
            return Some(start..start + bare.len() - commas);
        }
        // Commas in parentheses are a part of the descriptor.
        let mut depth = 0_usize;
        let is_end = |byte: &u8| {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *byte == b',' && depth == 0
        };
        let length = bytes[end..].iter().position(is_end);
        at = length.map_or(bytes.len(), |length| end + length);
        Some(start..end)
    })
}

/// Where the URL stands in the `content` of `http-equiv=refresh`: `5; url=next` (HTML §4.2.5.3).
pub fn refreshed(content: &[u8]) -> Option<Range<usize>> {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b',');
    let trimmed = content.trim_ascii_start();
    let (time, behind) = trimmed.split_at(trimmed.iter().position(is_between)?);
    let is_time = time
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let mut rest = &behind[behind.iter().take_while(|&byte| is_between(byte)).count()..];
    if let Some((word, value)) = rest.split_at_checked(3)
        && word.eq_ignore_ascii_case(b"url")
        && let Some(value) = value.trim_ascii_start().strip_prefix(b"=")
    {
        rest = value.trim_ascii_start();
    }
    let mut url = rest.trim_ascii_end();
    if let Some((quote @ (b'"' | b'\''), quoted)) = rest.split_first() {
        url = quoted
            .split(|byte| byte == quote)
            .next()
            .unwrap_or_default();
        rest = quoted;
    }
    let start = content.len() - rest.len();
    (is_time && !url.is_empty()).then_some(start..start + url.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_refresh_is_found() {
        for (content, url) in [
            ("0;url=a", Some("a")),
            ("3; URL=\"next.html\"", Some("next.html")),
            ("0, 'b c' d", Some("b c")),
            (" 5;a", Some("a")),
            ("5;a", Some("a")),
            ("5 a", Some("a")),
            ("0;url = https://h/x ", Some("https://h/x")),
            ("5", None),
            ("5;", None),
            ("x;url=a", None),
            ("0;url='", None),
        ] {
            assert_eq!(
                refreshed(content.as_bytes()).map(|range| &content[range]),
                url,
                "{content}"
            );
        }
    }
}
