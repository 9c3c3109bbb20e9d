//! robots.txt (RFC 9309): which targets one crawler may fetch, the delay between requests, and the sitemaps of the
//! host. No I/O; the caller decides when the file is fetched and how long it stays valid.
//!
//! The parser is as lenient as the best-known ones: it accepts keys with common typing mistakes, a missing colon, lines
//! that end in LF, CR or both, and a byte order mark. Other lines are skipped (§2.2).
//!
//! ```
//! use crawl::robots::Robots;
//!
//! let robots = Robots::parse(b"User-agent: *\nDisallow: /*.iso$\nAllow: /pub/free/\n", "Courser");
//! assert!(robots.allows("/pub/free/a.iso"));
//! assert!(!robots.allows("/pub/a.iso"));
//! ```

use std::time::Duration;

use memchr::memmem;

use courser::proto::is_redirect;
use url::Url;

use super::redirect;

#[cfg(test)]
mod tests;

/// The rules of a robots.txt for one crawler.
///
/// Its memory is bounded by [`READ`]: a few MiB for a file of only the shortest rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Robots {
    /// Longest pattern first; of equal length, allowing rules first. The first matching rule decides (§2.2.2).
    rules: Vec<Rule>,
    delay: Option<Duration>,
    sitemaps: Vec<String>,
}

impl Robots {
    /// The rules for the crawler with the product token `agent`, such as `Courser`: the rules of all groups with this
    /// token, compared without regard to case. If there is no such group, the rules of all groups for `*` (§2.2.1).
    /// Only the first [`READ`] bytes of `body` are read.
    pub fn parse(body: &[u8], agent: &str) -> Self {
        let mut file = RulesReader {
            agent,
            ..RulesReader::default()
        };
        for line in lines(body) {
            if let Some((key, value)) = field(line) {
                file.field(key, value);
            }
        }
        file.finish()
    }

    /// The rules of a host without a robots.txt: everything is allowed.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Rules that allow only the robots.txt itself.
    pub fn disallow_all() -> Self {
        Self::parse(b"User-agent: *\nDisallow: /", "")
    }

    /// Whether `target` may be fetched: the path of a URL with its query, percent-encoded as in the request. The
    /// longest matching rule decides; of two equally long rules, the allowing one. Without a matching rule, the target
    /// is allowed.
    pub fn allows(&self, target: &str) -> bool {
        let target = if target.is_empty() { "/" } else { target };
        let path = normalise(target.as_bytes(), StarMeaning::Literal);
        if path == b"/robots.txt" {
            return true;
        }
        let first = self.rules.iter().find(|rule| rule.matches(&path));
        first.is_none_or(|rule| rule.allow)
    }

    /// Whether no rule forbids anything.
    pub fn allows_all(&self) -> bool {
        self.rules.iter().all(|rule| rule.allow)
    }

    /// The minimum time between two requests, from `Crawl-delay`, a common extension. The longest, if the rules have
    /// several.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.delay
    }

    /// The values of `Sitemap`, which apply to all crawlers. The URLs are not checked.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }
}

/// What the response to the request for a robots.txt means (§2.3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// The caller [parses](Robots::parse) the body.
    Parse,
    /// The caller requests the URL in `Location`, which may be on another host. Without a valid `Location`, there is no
    /// file.
    Follow,
    /// There is no robots.txt: everything is allowed.
    Unavailable,
    /// The rules are not known: nothing is allowed until a later response. The same applies if there is no response.
    Unreachable,
}

impl Access {
    /// The meaning of a status after this number of redirects.
    ///
    /// 429 is temporary and says nothing about the file. So it does not allow everything, unlike the other 4xx.
    pub fn of_status(status: u16, redirects: u32) -> Self {
        match status {
            200..=299 => Self::Parse,
            _ if is_redirect(status) && redirects < REDIRECTS => Self::Follow,
            _ if is_redirect(status) => Self::Unavailable,
            429 => Self::Unreachable,
            400..=499 => Self::Unavailable,
            _ => Self::Unreachable,
        }
    }
}

/// Where a redirect of the file at `from` leads. `None`: to the same URL, or to another host, whose rules would be those of
/// another server.
pub fn redirected(from: &Url, location: Option<&[u8]>) -> Option<Url> {
    let mut to = redirect::target(from, location).ok()?;
    to.set_fragment(None);
    (to != *from && to.origin() == from.origin()).then_some(to)
}

/// How many bytes of a file are read: the minimum of RFC 9309 §2.5.
pub const READ: usize = 500 * 1024;

/// Largest number of consecutive redirects of a robots.txt that are followed (§2.3.1.2).
pub const REDIRECTS: u32 = 5;

/// Reads the fields of a file. The groups for this agent and for `*` are kept apart: only the end of the file shows
/// which of them apply.
#[derive(Default)]
struct RulesReader<'a> {
    agent: &'a str,
    /// The rules of the groups for this agent.
    own_group: Group,
    /// The rules of the groups for `*`.
    wildcard_group: Group,
    /// A group is for this agent, possibly without rules.
    is_named: bool,
    sitemaps: Vec<String>,
    /// The current group is for this agent.
    is_for_agent: bool,
    /// The current group is for `*`.
    is_for_all: bool,
    /// The current group has a rule, so that the next `User-agent` begins a new group. Other fields do not (§2.2.4).
    has_rules: bool,
}

#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    delay: Option<Duration>,
}

impl RulesReader<'_> {
    fn field(&mut self, key: Key, value: &[u8]) {
        match key {
            Key::UserAgent => self.user_agent(value),
            Key::Allow | Key::Disallow => {
                self.has_rules = true;
                for rule in Rule::of(key == Key::Allow, value) {
                    self.add(|group| group.rules.push(rule.clone()));
                }
            }
            Key::CrawlDelay => {
                let delay = seconds(value);
                self.add(|group| group.delay = group.delay.max(delay));
            }
            Key::Sitemap => self
                .sitemaps
                .extend(str::from_utf8(value).map(str::to_owned)),
        }
    }

    fn user_agent(&mut self, value: &[u8]) {
        if self.has_rules {
            self.has_rules = false;
            self.is_for_agent = false;
            self.is_for_all = false;
        }
        if let Some(after) = value.strip_prefix(b"*") {
            self.is_for_all |= after.first().is_none_or(u8::is_ascii_whitespace);
        } else if is_token(value, self.agent) {
            self.is_for_agent = true;
            self.is_named = true;
        }
    }

    /// Applies `change` to the rules that the current group belongs to.
    fn add(&mut self, mut change: impl FnMut(&mut Group)) {
        if self.is_for_agent {
            change(&mut self.own_group);
        }
        if self.is_for_all {
            change(&mut self.wildcard_group);
        }
    }

    fn finish(self) -> Robots {
        let mut group = if self.is_named {
            self.own_group
        } else {
            self.wildcard_group
        };
        group.rules.sort_by(|a, b| {
            let length = b.octets().cmp(&a.octets());
            length
                .then(b.allow.cmp(&a.allow))
                .then_with(|| a.pattern.cmp(&b.pattern))
        });
        group.rules.dedup();
        group.rules.shrink_to_fit();
        Robots {
            rules: group.rules,
            delay: group.delay,
            sitemaps: self.sitemaps,
        }
    }
}

/// `Allow` or `Disallow`.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Rule {
    allow: bool,
    /// The normalised pattern; each `*` matches any bytes. Not empty.
    pattern: Box<[u8]>,
    /// The pattern ended in `$`: it matches only up to the end of the path.
    is_anchored: bool,
}

impl Rule {
    /// The rules of one line. None for an empty pattern: `Disallow:` forbids nothing. Two for an allowed `index.html`
    /// (or `index.htm`), which also allows its directory.
    fn of(allow: bool, value: &[u8]) -> impl Iterator<Item = Self> {
        let (body, is_anchored) = match value.strip_suffix(b"$") {
            Some(body) => (body, true),
            None => (value, false),
        };
        let name = value
            .iter()
            .rposition(|&byte| byte == b'/')
            .map(|at| at + 1);
        let directory = name.filter(|&at| allow && value[at..].starts_with(b"index.htm"));
        let index = directory.map(|at| Self::new(allow, &value[..at], true));
        let own = (!value.is_empty()).then(|| Self::new(allow, body, is_anchored));
        own.into_iter().chain(index)
    }

    fn new(allow: bool, pattern: &[u8], is_anchored: bool) -> Self {
        Self {
            allow,
            pattern: normalise(pattern, StarMeaning::Wildcard).into(),
            is_anchored,
        }
    }

    fn octets(&self) -> usize {
        self.pattern.len() + usize::from(self.is_anchored)
    }

    /// Whether the pattern matches. Takes linear time: each piece between two `*` is matched at its first occurrence,
    /// which leaves the longest rest for the other pieces.
    fn matches(&self, path: &[u8]) -> bool {
        let mut pieces = self.pattern.split(|&byte| byte == b'*');
        let Some(mut rest) = pieces.next().and_then(|piece| path.strip_prefix(piece)) else {
            return false;
        };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return !self.is_anchored || rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if self.is_anchored && pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            match memmem::find(rest, piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        true
    }
}

/// The known fields.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// How keys begin, in lower case. The misspellings occur in real files.
const KEYS: [(&[u8], Key); 15] = [
    (b"user-agent", Key::UserAgent),
    (b"useragent", Key::UserAgent),
    (b"user agent", Key::UserAgent),
    (b"allow", Key::Allow),
    (b"disallow", Key::Disallow),
    (b"dissallow", Key::Disallow),
    (b"dissalow", Key::Disallow),
    (b"disalow", Key::Disallow),
    (b"diasllow", Key::Disallow),
    (b"disallaw", Key::Disallow),
    (b"crawl-delay", Key::CrawlDelay),
    (b"crawldelay", Key::CrawlDelay),
    (b"crawl delay", Key::CrawlDelay),
    (b"sitemap", Key::Sitemap),
    (b"site-map", Key::Sitemap),
];

/// The lines within the first [`READ`] bytes. A line that is cut there is dropped: half a path could forbid too much.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let body = match body.get(..READ) {
        Some(read) if body.len() > READ => {
            let end = read.iter().rposition(is_end);
            &read[..end.unwrap_or(0)]
        }
        _ => body,
    };
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    body.split(is_end)
}

/// Key and value of a line, without its comment. The colon may be missing if the line has exactly two words.
fn field(line: &[u8]) -> Option<(Key, &[u8])> {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    let line = line[..end].trim_ascii();
    let (key, value) = match memchr::memchr(b':', line) {
        Some(at) => (&line[..at], line[at + 1..].trim_ascii_start()),
        None => {
            let at = line.iter().position(u8::is_ascii_whitespace)?;
            let value = line[at..].trim_ascii_start();
            if value.iter().any(u8::is_ascii_whitespace) {
                return None;
            }
            (&line[..at], value)
        }
    };
    let begins = |name: &[u8]| {
        let head = key.get(..name.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(name))
    };
    let (_, key) = KEYS.iter().find(|(name, _)| begins(name))?;
    Some((*key, value))
}

/// Whether the value of a `User-agent` names this agent. The token ends at the first character that is not allowed in a
/// token (§2.2.1), for example before a version.
fn is_token(value: &[u8], agent: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    let end = value.iter().position(|byte| !is_part(byte));
    let token = &value[..end.unwrap_or(value.len())];
    !token.is_empty() && token.eq_ignore_ascii_case(agent.as_bytes())
}

/// A decimal number of seconds.
fn seconds(value: &[u8]) -> Option<Duration> {
    let seconds = str::from_utf8(value).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The meaning of `*` in a text.
#[derive(Clone, Copy, Eq, PartialEq)]
enum StarMeaning {
    /// A literal, which is written as an escape, so that a pattern can match it (§2.2.3).
    Literal,
    /// A wildcard, which stays as it is.
    Wildcard,
}

/// The same spelling for all equivalent texts (§2.2.2): unreserved characters are not escaped, characters that are not
/// allowed in a path or query are, and escapes have upper-case digits. A reserved character and its escape stay
/// different.
fn normalise(text: &[u8], star: StarMeaning) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escape = (byte == b'%').then(|| escape(after)).flatten();
        let (byte, is_escape) = escape.map_or((byte, false), |byte| (byte, true));
        rest = if is_escape { &after[2..] } else { after };
        let is_plain = match byte {
            b'-' | b'.' | b'_' | b'~' => true,
            b'*' => !is_escape && star == StarMeaning::Wildcard,
            b'/' | b'?' | b':' | b'@' => !is_escape,
            b'!' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b';' | b'=' => !is_escape,
            _ => byte.is_ascii_alphanumeric(),
        };
        if is_plain {
            out.push(byte);
        } else {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

/// The value of the two hexadecimal digits at the start.
fn escape(digits: &[u8]) -> Option<u8> {
    let value = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(value(0)? << 4 | value(1)?).ok()
}
