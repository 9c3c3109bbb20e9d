//! Whether a page of an unknown server lists a directory. A login form, the challenge of a bot filter, or an `index.html`
//! that hides its directory have links, too, or none: to take one for a listing would be to lose the directory.
//!
//! A listing names its directory in its title or a heading, links to the directory above, shows times or sizes of entries,
//! or most of its links are entries under their own names. One without entries says nothing else, and has no script that
//! could add some. A page that has the title of a gate is a listing only if it also says so: a name that a link has for a
//! text is not enough. A page that asks for a password and shows no times or sizes, has frames, or leads elsewhere, is none.

use std::fmt;

use memchr::memmem;
use percent_encoding::percent_decode_str;
use url::Url;

use super::children::as_reference;
use super::is_sort_query;
use crate::markup::html::{self, Raw, Sink};
use crate::markup::links::refreshed;
use crate::path;
use plain::terminal::neutralise;

/// What a page is that lists no directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WebPage {
    /// Why its links are no listing.
    pub kind: WebPageKind,
    /// The text of its title; empty if there is none.
    pub title: String,
}

/// The kinds of pages that list no directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WebPageKind {
    /// Nothing to see.
    Empty,
    /// Leads to this reference by `<meta http-equiv=refresh>`.
    Refresh(String),
    /// A set of frames.
    Frames,
    /// Asks for a password.
    Login,
    /// Leads somewhere else by a script.
    Script,
    /// Another page.
    Other,
}

impl fmt::Display for WebPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            WebPageKind::Empty => f.write_str("an empty page")?,
            WebPageKind::Refresh(to) => write!(f, "a page that leads to {to} by meta refresh")?,
            WebPageKind::Frames => f.write_str("a page of frames")?,
            WebPageKind::Login => f.write_str("a page that asks for a password")?,
            WebPageKind::Script => f.write_str("a page that leads elsewhere by a script")?,
            WebPageKind::Other => f.write_str("a web page")?,
        }
        match self.title.is_empty() {
            true => Ok(()),
            false => write!(f, ", titled \"{}\"", self.title),
        }
    }
}

/// What a page is, if nothing shows that it lists the directory `page`. `has_columns`: entries have times or sizes.
pub(super) fn doubt(body: &[u8], page: &Url, has_columns: bool) -> Option<WebPage> {
    if has_columns {
        return None;
    }
    let mut signs = Signs::new(page);
    html::read(body, &mut signs);
    let signs = signs.end();
    (!signs.is_listing()).then(|| signs.page(body))
}

/// What a page is that looks like the empty listing of a known server, and shows something else instead.
pub(super) fn hides(body: &[u8], page: &Url) -> Option<WebPage> {
    let mut signs = Signs::new(page);
    html::read(body, &mut signs);
    let signs = signs.end();
    // A proxy may show the root of a server as another directory.
    let has_name = signs.has_name || signs.has_root;
    let names_another = signs.has_words && !has_name && signs.name.is_ascii();
    let is_other =
        signs.leads_away() || signs.asks_password || names_another || signs.says_trouble();
    is_other.then(|| signs.page(body))
}

/// What speaks for and against a listing.
#[derive(Debug)]
pub(super) struct Signs {
    page: Url,
    /// The name of the directory in lower case; that of the root is `/`.
    name: String,
    /// The path of the directory without its last `/`, decoded and in lower case; empty for the root.
    path: String,
    /// The path of the directory above the page.
    above: Option<String>,
    element: Element,
    /// The text of the element that is being read.
    text: Vec<u8>,
    title: Vec<u8>,
    /// The title or a heading has the words of a listing.
    has_words: bool,
    /// It also has the name of the directory.
    has_name: bool,
    /// It has `/` as the name.
    has_root: bool,
    /// The title or a heading ends with the path of the directory.
    has_path: bool,
    has_parent: bool,
    /// The reference of the anchor that is being read.
    anchor: Option<Vec<u8>>,
    /// The tag whose attributes are read.
    tag: Tag,
    is_refresh: bool,
    /// The reference in the content of the `<meta>` that is being read.
    content: Option<String>,
    refresh: Option<String>,
    has_frames: bool,
    asks_password: bool,
    /// Something in the page could add entries.
    has_script: bool,
    has_pre: bool,
    /// The page shows something.
    has_text: bool,
    /// Characters outside links, titles and headings that are no words of a table's head.
    other_text: usize,
    /// The beginning of the text outside links and titles, in lower case.
    words: Vec<u8>,
    /// Links to other places than the page itself and the directory above.
    links: usize,
    /// Those of them that lead to entries.
    children: usize,
    /// Those of them that are entries under their own names.
    named: usize,
}

/// Where a text stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Element {
    Title,
    Heading,
    Hidden,
    Body,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tag {
    Anchor,
    Meta,
    Input,
    Frame,
    Other,
}

impl Signs {
    pub(super) fn new(page: &Url) -> Self {
        let path = page.path().trim_end_matches('/');
        let above = path.rfind('/').map(|at| path[..=at].to_owned());
        let name = match path.rsplit('/').next() {
            None | Some("") => "/".to_owned(),
            Some(segment) => {
                let name = percent_decode_str(segment).decode_utf8_lossy();
                name.to_ascii_lowercase()
            }
        };
        Self {
            page: page.clone(),
            path: (percent_decode_str(path).decode_utf8_lossy()).to_ascii_lowercase(),
            name,
            above,
            element: Element::Body,
            text: Vec::new(),
            title: Vec::new(),
            has_words: false,
            has_name: false,
            has_root: false,
            has_path: false,
            has_parent: false,
            anchor: None,
            tag: Tag::Other,
            is_refresh: false,
            content: None,
            refresh: None,
            has_frames: false,
            asks_password: false,
            has_script: false,
            has_pre: false,
            has_text: false,
            other_text: 0,
            words: Vec::new(),
            links: 0,
            children: 0,
            named: 0,
        }
    }

    /// The page has ended.
    pub(super) fn end(mut self) -> Self {
        self.end_anchor();
        self.end_element();
        self
    }

    pub(super) fn is_listing(&self) -> bool {
        if self.leads_away() || self.asks_password {
            return false;
        }
        // A directory may have such a name: "Index of /login/".
        let is_gate = self.has_title_of_gate() && !self.has_words;
        let is_wordy = self.named < FEW && self.other_text > self.named * MOST_TEXT;
        let is_mostly_entries = self.named > 0 && self.named * 2 >= self.links && !is_wordy;
        let has_signs = match self.children {
            0 => !is_gate && self.is_empty_listing(),
            _ => self.has_words || self.has_parent,
        };
        has_signs || (is_mostly_entries && !is_gate)
    }

    /// Whether a page without entries says what a listing says, and nothing else.
    fn is_empty_listing(&self) -> bool {
        let has_title = !self.title.trim_ascii().is_empty();
        let names_another = has_title && !self.has_words && !self.has_path;
        let is_bare = self.links == 0 && self.other_text == 0 && !names_another;
        // Go writes an empty `<pre>`.
        let is_of_go = self.has_pre && !self.has_text && is_bare;
        let is_inside = self.has_parent && (is_bare || self.has_path);
        let says_so = self.has_name || is_inside || is_of_go;
        // A page with a title alone has lost its content.
        let shows_something = self.has_parent || is_of_go || !self.words.trim_ascii().is_empty();
        !self.has_script && !self.says_trouble() && says_so && shows_something
    }

    /// Whether the text of a page without entries is about something that went wrong, or asks for patience.
    fn says_trouble(&self) -> bool {
        let has = |words: &&str| memmem::find(&self.words, words.as_bytes()).is_some();
        TROUBLE.iter().any(has)
    }

    fn leads_away(&self) -> bool {
        self.has_frames || self.refresh.is_some()
    }

    fn has_title_of_gate(&self) -> bool {
        let title = self.title.to_ascii_lowercase();
        let has = |words: &&str| memmem::find(&title, words.as_bytes()).is_some();
        GATES.iter().any(has)
    }

    /// What the page is. `body`: where scripts are searched for what leads elsewhere.
    pub(super) fn page(self, body: &[u8]) -> WebPage {
        let leads_by_script = || {
            let words = [
                "location.href",
                "location.replace",
                "location=",
                "location =",
            ];
            let has = |word: &&str| memmem::find(body, word.as_bytes()).is_some();
            self.has_script && words.iter().any(has)
        };
        let kind = match self.refresh {
            Some(to) => WebPageKind::Refresh(to),
            None if self.has_frames => WebPageKind::Frames,
            None if self.asks_password => WebPageKind::Login,
            None if leads_by_script() => WebPageKind::Script,
            None if !self.has_text && self.links == 0 && self.title.is_empty() => {
                WebPageKind::Empty
            }
            None => WebPageKind::Other,
        };
        let title = String::from_utf8_lossy(&self.title);
        let words: Vec<&str> = title.split_whitespace().collect();
        let mut title = neutralise(&words.join(" ")).to_string();
        if let Some((end, _)) = title.char_indices().nth(LONGEST_TITLE) {
            title.truncate(end);
            title.push('…');
        }
        WebPage { kind, title }
    }

    fn end_element(&mut self) {
        let text = std::mem::take(&mut self.text);
        if matches!(self.element, Element::Title | Element::Heading) {
            let lower = text.to_ascii_lowercase();
            self.has_path |= ends_with_path(&lower, self.path.as_bytes());
            let after = |words: &&str| {
                let at = memmem::find(&lower, words.as_bytes())?;
                Some(&lower[at + words.len()..])
            };
            for rest in WORDS.iter().filter_map(after) {
                self.has_words = true;
                self.has_name |= has_path(rest, self.name.as_bytes());
                self.has_root |= has_path(rest, b"/");
            }
        }
        if self.element == Element::Title && self.title.is_empty() {
            self.title = text;
        }
        self.element = Element::Body;
    }

    fn end_anchor(&mut self) {
        let Some(href) = self.anchor.take() else {
            return;
        };
        let text = std::mem::take(&mut self.text);
        let text = text.trim_ascii();
        let Ok(target) = self.page.join(&as_reference(&href)) else {
            return;
        };
        let is_here = target.path() == self.page.path()
            && (target.fragment().is_some() || target.query().is_none_or(is_sort_query));
        if is_here || !matches!(target.scheme(), "http" | "https") {
            return;
        }
        if target.host() == self.page.host() && Some(target.path()) == self.above.as_deref() {
            let lower = text.to_ascii_lowercase();
            self.has_parent |= href.starts_with(b"..")
                || memmem::find(&lower, b"parent").is_some()
                || lower.starts_with(b"..")
                || lower == b"up";
            return;
        }
        self.links += 1;
        let Some((parent, segment, _)) = path::split_last(target.path()) else {
            return;
        };
        let is_child = target.host() == self.page.host()
            && path::canonical(parent) == path::canonical(self.page.path());
        if is_child && !segment.is_empty() {
            self.children += 1;
            let name = path::decode(segment);
            self.named += usize::from(is_name(text, &name));
        }
    }
}

/// Whether a text ends with a path whose last segment is this name, or is the name. `/` is the root's.
fn has_path(text: &[u8], name: &[u8]) -> bool {
    let text = text.trim_ascii();
    if name == b"/" {
        let last = text.rsplit(u8::is_ascii_whitespace).next();
        let is_url = |word: &[u8]| memmem::find(word, b"://").is_some() && word.ends_with(b"/");
        return last.is_some_and(|word| word == name || is_url(word));
    }
    let text = text.strip_suffix(b"/").unwrap_or(text);
    let before = text.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

/// Whether a text is this path, or ends with it behind a separator: `host - /pub/`, `Listing of [/pub]`.
fn ends_with_path(text: &[u8], path: &[u8]) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"/]'\"".contains(byte);
    let end = text.iter().rposition(|byte| !is_end(byte));
    let text = end.map_or(&[][..], |end| &text[..=end]);
    let before = text.strip_suffix(path).filter(|_| !path.is_empty());
    before.is_some_and(|before| {
        let last = before.last();
        last.is_none_or(|byte| byte.is_ascii_whitespace() || b"[:'\"".contains(byte))
    })
}

/// Whether a word stands in the head of a table of files.
fn is_of_table(word: &[u8]) -> bool {
    let words: [&[u8]; 8] = [
        b"name",
        b"size",
        b"date",
        b"type",
        b"last",
        b"modified",
        b"description",
        b"time",
    ];
    words.iter().any(|it| word.eq_ignore_ascii_case(it))
}

/// Whether the text of a link is the name of an entry, which servers may shorten.
pub(super) fn is_name(text: &[u8], name: &[u8]) -> bool {
    let text = text.strip_suffix(b"/").unwrap_or(text).trim_ascii();
    if text == name {
        return true;
    }
    let cut = ["..>", "...", "…", ".."];
    let start = cut.iter().find_map(|end| text.strip_suffix(end.as_bytes()));
    start.is_some_and(|start| start.len() >= LEAST_START && name.starts_with(start))
}

impl<'d> Sink<'d> for Signs {
    fn open(&mut self, name: &[u8]) {
        self.is_refresh = false;
        self.content = None;
        self.tag = Tag::Other;
        match name {
            b"a" => {
                self.end_anchor();
                self.tag = Tag::Anchor;
                self.text.clear();
            }
            b"meta" => self.tag = Tag::Meta,
            b"input" => self.tag = Tag::Input,
            b"frameset" | b"frame" => self.has_frames = true,
            b"iframe" | b"object" | b"embed" => self.tag = Tag::Frame,
            b"pre" => self.has_pre = true,
            b"title" => self.element = Element::Title,
            b"h1" | b"h2" | b"h3" => {
                self.element = Element::Heading;
                self.text.clear();
            }
            b"script" | b"style" => {
                self.has_script |= name == b"script";
                self.element = Element::Hidden;
            }
            _ => {}
        }
    }

    fn attribute(&mut self, name: &[u8], value: Raw<'d>) {
        let value = value.decode();
        match (self.tag, name) {
            (Tag::Anchor, b"href") if self.anchor.is_none() => {
                self.anchor = Some(value.into_owned())
            }
            (Tag::Meta, b"http-equiv") => {
                self.is_refresh = value.trim_ascii().eq_ignore_ascii_case(b"refresh");
            }
            (Tag::Meta, b"content") => self.content = refresh(&value),
            (Tag::Frame, b"src" | b"data") => {
                // Not an advertisement.
                let target = self.page.join(&as_reference(&value));
                self.has_script |= target.is_ok_and(|target| target.host() == self.page.host());
            }
            (Tag::Input, b"type") => {
                self.asks_password |= value.trim_ascii().eq_ignore_ascii_case(b"password");
            }
            _ => {}
        }
    }

    fn opened(&mut self) {
        if self.is_refresh && self.refresh.is_none() {
            let leads_on = |to: &String| self.page.join(to).is_ok_and(|to| to != self.page);
            self.refresh = self.content.take().filter(leads_on);
        }
    }

    fn close(&mut self, name: &[u8]) {
        match name {
            b"a" => self.end_anchor(),
            b"title" | b"h1" | b"h2" | b"h3" | b"script" | b"style" => self.end_element(),
            _ => {}
        }
    }

    fn wants_text(&self) -> bool {
        self.element != Element::Hidden
    }

    fn text(&mut self, text: Raw<'d>) {
        let text = text.decode();
        self.has_text |= !text.trim_ascii().is_empty();
        if matches!(self.element, Element::Body | Element::Heading) && self.anchor.is_none() {
            let room = LONGEST_TEXT.saturating_sub(self.words.len());
            let part = &text[..text.len().min(room)];
            self.words.extend(part.iter().map(u8::to_ascii_lowercase));
        }
        if self.element == Element::Body && self.anchor.is_none() {
            let words = text.split(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii());
            let is_other = |word: &&[u8]| !word.is_empty() && !is_of_table(word);
            self.other_text += words.filter(is_other).map(<[u8]>::len).sum::<usize>();
        }
        let is_kept = self.element != Element::Body || self.anchor.is_some();
        if is_kept {
            let room = LONGEST_TEXT.saturating_sub(self.text.len());
            self.text.extend_from_slice(&text[..text.len().min(room)]);
        }
    }

    fn is_done(&self) -> bool {
        false
    }
}

/// The reference in the content of a refresh.
fn refresh(content: &[u8]) -> Option<String> {
    let reference = String::from_utf8_lossy(&content[refreshed(content)?]);
    let start: String = reference.chars().take(LONGEST_TITLE).collect();
    Some(neutralise(&start).to_string())
}

/// What titles and headings of listings say, in lower case.
const WORDS: [&str; 9] = [
    "index of",
    "directory listing",
    "listing of",
    "listing for",
    "directory of",
    "directory:",
    "contents of",
    "file listing",
    "folder listing",
];

/// What titles say of pages that stand in front of others, in lower case.
const GATES: [&str; 16] = [
    "just a moment",
    "attention required",
    "checking your browser",
    "access denied",
    "captcha",
    "are you a robot",
    "you are human",
    "not a robot",
    "security check",
    "ddos protection",
    "please wait",
    "sign in",
    "log in",
    "login",
    "under maintenance",
    "account suspended",
];

/// What a page says that should list a directory and cannot. No server writes these words under an empty listing.
const TROUBLE: [&str; 15] = [
    "please wait",
    "checking your browser",
    "check your browser",
    "maintenance",
    "unavailable",
    "error:",
    "warning:",
    "failed",
    "too many",
    "not available",
    "try again",
    "forbidden",
    "access denied",
    "permission denied",
    "you must",
];

/// So many links under their own names are no accident.
const FEW: usize = 3;

/// With fewer, so many characters of text for each of them speak against a listing.
const MOST_TEXT: usize = 12;

/// A name that is shortened to fewer characters says nothing.
const LEAST_START: usize = 3;

/// Longer titles are cut, in characters.
const LONGEST_TITLE: usize = 80;

/// Longer texts of links and headings are cut, in bytes.
const LONGEST_TEXT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::super::tests::rows;
    use super::*;

    fn doubted(body: &str) -> Option<String> {
        let page = Url::parse("http://h.example/pub/dir/").expect("a URL");
        doubt(body.as_bytes(), &page, false).map(|page| page.to_string())
    }

    #[test]
    fn listings_are_recognised() {
        for body in [
            "<title>Index of /pub/dir/</title><p>Nothing here",
            "<h2>Directory listing for /pub/dir</h2>",
            "<a href='../'>x</a>",
            "<title>Index of x</title><a href='../'>x</a><th>Name</th><th>Last modified</th><th>Size</th>",
            "<h1>Index of http://h.example/pub/dir</h1><p>Powered by nothing",
            "<a href='/pub/'>Parent Directory</a>",
            "<a href='a.txt'>a.txt</a> <a href='sub/'>sub/</a>",
            "<a href='/pub/dir/a%20b.txt'>a b.txt</a> <a href='?C=N;O=D'>Name</a> <a href='#top'>top</a>",
            "<a href='a-very-long-name.tar.gz'>a-very-long-na..&gt;</a>",
            "<a href='a'><img src=i.png>a</a><a href='https://other.example/'>Powered by</a>",
            "<h1>Index of our mirror</h1><a href='a'>The first</a><a href=/>Home</a><a href=/x>X</a>",
            "<title>Index of /PUB/Dir</title><form>Search <input name=search></form>",
            "<!doctype html>\n<pre>\n</pre>\n",
            "<h1>Index of /pub/dir/</h1><iframe src=https://ads.example/x></iframe>Nothing",
            "<title>Index of /login/</title><h1>Index of /pub/dir/</h1>",
            "<meta http-equiv=refresh content='60'><a href=a>a</a>",
            "<meta http-equiv=refresh content='60; url=.'><a href=a>a</a>",
            // Servers that say no more than the path, and something about themselves.
            "<title>/pub/dir/</title><a href='../'>..</a>/\n<hr>Generated by darkhttpd/1.14",
            "<title>Directory Listing For [/pub/dir/]</title><a href='../'>..</a> <h3>Apache Tomcat/9.0</h3>",
            "<title>host - /pub/dir/</title><a href='/pub/'>[To Parent Directory]</a> v1",
            "<title>repo - Revision 12: /pub/dir</title><a href='../'>..</a> Powered by Subversion",
            // A single link in a sentence is no listing; some links are.
            "<a href='accept'>accept</a>",
            "Here are <a href='a'>a</a> and <a href='b'>b</a> and <a href='c'>c</a>, which are all of them",
        ] {
            assert_eq!(doubted(body), None, "{body}");
        }
    }

    #[test]
    fn other_pages_are_named() {
        for (body, name) in rows(
            r#"
            => an empty page
            <html><body></body></html> => an empty page
            <title>Index of /pub/dir/</title><body></body> => a web page, titled "Index of /pub/dir/"
            <title>Just a¶ moment...</title><script>x()</script> => a web page, titled "Just a moment..."
            <meta http-equiv=Refresh content='0; URL=/new/'> => a page that leads to /new/ by meta refresh
            <meta content='0;url="new/"' http-equiv=refresh><title>Moved</title> => a page that leads to new/ by meta refresh, titled "Moved"
            <frameset><frame src=a></frameset> => a page of frames
            <title>Sign in</title><form><input type=password></form> => a page that asks for a password, titled "Sign in"
            <script>window.location.href = '/x'</script> => a page that leads elsewhere by a script
            <meta name=description content='a; b'><p>Hello => a web page
            <title>Index of /pub/dir/</title><a href='../'>..</a><form><input type=password></form> => a page that asks for a password, titled "Index of /pub/dir/"
            <h1>Index of /pub/dir/</h1><meta http-equiv=refresh content='1;url=/login'> => a page that leads to /login by meta refresh
            <a href=../>..</a><a href=a>a</a><form><input type=password></form> => a page that asks for a password
            <h1>Index of /pub/dir/</h1><iframe src=list.html></iframe> => a web page
            <a href='contact.html'>Write to us</a> => a web page
            # What lists nothing says nothing else, and adds nothing by a script.
            <title>Shop</title><a href='../'>Up</a> => a web page, titled "Shop"
            <p>No members. Please log in. <a href='../'>Parent</a> => a web page
            <h1>Index of /pub/dir/</h1><a href='../'>../</a><script>fetch('list.json')</script> => a web page
            <title>Index of subdirs</title><p>Nothing found => a web page, titled "Index of subdirs"
            <title>/pub/dir/</title>Generated by darkhttpd/1.14 => a web page, titled "/pub/dir/"
            <title>/pub/dir/</title><a href='../'>..</a> Error: no such tenant => a web page, titled "/pub/dir/"
            <title>/other/</title><a href='../'>..</a> Generated by darkhttpd/1.14 => a web page, titled "/other/"
            <title>Our /republic/pub/dir/</title><a href='../'>..</a> and its beer => a web page, titled "Our /republic/pub/dir/"
            <title>The dir</title><a href='../'>..</a> and its beer => a web page, titled "The dir"
            You must <a href='accept'>accept</a> the terms => a web page
            # One link under its own name makes no listing of a gate.
            <title>Sign in</title><a href=forgot>forgot</a><form><input type=password></form> => a page that asks for a password, titled "Sign in"
            <title>Just a moment...</title><a href=help>help</a> => a web page, titled "Just a moment..."
            <meta http-equiv=refresh content='0;url=/login'><a href=here>here</a> => a page that leads to /login by meta refresh
            <title>Index of /pub/dir/</title><meta http-equiv=refresh content='0;url=/x'><a href=a>a</a> => a page that leads to /x by meta refresh, titled "Index of /pub/dir/"
            <a href=news.html>news.html</a><a href=/>Home</a><a href=/shop/>Shop</a> => a web page
            "#,
        ) {
            assert_eq!(doubted(&body).as_deref(), Some(name), "{body}");
        }
        let long = format!("<title>{}</title>", "é".repeat(500));
        assert!(doubted(&long).is_some_and(|name| name.ends_with("é…\"")));
    }
}
