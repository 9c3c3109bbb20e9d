//! robots.txt (RFC 9309): what a host asks one crawler not to fetch, how long to wait between requests, and where its
//! sitemaps are. Pure; when to fetch the file, and how long it holds, is the caller's to decide.
//!
//! Read as leniently as the best-known parsers do: keys with common typing mistakes, a missing colon, lines ended by
//! LF, CR or both, a byte order mark. What is not understood is skipped (§2.2).
//!
//! ```
//! use crawler_cli::crawl::robots::Robots;
//!
//! let robots = Robots::parse(b"User-agent: *\nDisallow: /*.iso$\nAllow: /pub/free/\n", "Courser");
//! assert!(robots.allows("/pub/free/a.iso"));
//! assert!(!robots.allows("/pub/a.iso"));
//! ```

use std::time::Duration;

use memchr::memmem;

#[cfg(test)]
mod tests;

/// What a robots.txt says to one crawler.
///
/// Its size is bounded by [`READ`]: a few MiB at most, for a file of nothing but the shortest rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Robots {
    /// Longest pattern first, and what allows before what disallows: the first that fits decides (§2.2.2).
    rules: Vec<Rule>,
    delay: Option<Duration>,
    sitemaps: Vec<String>,
}

impl Robots {
    /// The rules for the crawler with the product token `agent`, such as `Courser`: those of all groups that name it,
    /// without regard to case; if none does, those of all groups for `*` (§2.2.1). Of `body`, the first [`READ`] bytes
    /// count.
    pub fn parse(body: &[u8], agent: &str) -> Self {
        let mut file = File::new(agent);
        for line in lines(body) {
            if let Some((key, value)) = field(line) {
                file.field(key, value);
            }
        }
        file.finish()
    }

    /// As if there were no robots.txt.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Nothing but the robots.txt itself may be fetched.
    pub fn disallow_all() -> Self {
        Self::parse(b"User-agent: *\nDisallow: /", "")
    }

    /// Whether this may be fetched; `target` is the path of a URL with its query, percent-encoded as it is sent. The
    /// longest rule that fits decides, between equals the one that allows; without any, it may.
    pub fn allows(&self, target: &str) -> bool {
        let target = if target.is_empty() { "/" } else { target };
        let path = normalise(target.as_bytes(), Special::Escaped);
        if path == b"/robots.txt" {
            return true;
        }
        let first = self.rules.iter().find(|rule| rule.fits(&path));
        first.is_none_or(|rule| rule.allow)
    }

    /// Whether there is no rule that could forbid anything.
    pub fn allows_all(&self) -> bool {
        self.rules.iter().all(|rule| rule.allow)
    }

    /// The least time between two requests, by `Crawl-delay`, an extension that many files use. The longest if there
    /// are several.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.delay
    }

    /// What stands behind `Sitemap`, which is meant for all crawlers: URLs, not checked in any way.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }
}

/// What a host's reply to the request for its robots.txt means (§2.3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// The body is to be [parsed](Robots::parse).
    Parse,
    /// `Location` tells where the file is, be it on another host. Without a valid one there is no file.
    Follow,
    /// There is no such file: everything is allowed.
    Unavailable,
    /// What the file says cannot be known now: nothing is allowed until another reply comes. The same holds when none
    /// comes at all.
    Unreachable,
}

impl Access {
    /// The meaning of a status, after so many redirects.
    ///
    /// 429 is about the moment, not about the file, so that it does not allow everything as other 4xx do.
    pub fn of_status(status: u16, redirects: u32) -> Self {
        match status {
            200..=299 => Self::Parse,
            301 | 302 | 303 | 307 | 308 if redirects < REDIRECTS => Self::Follow,
            301 | 302 | 303 | 307 | 308 => Self::Unavailable,
            429 => Self::Unreachable,
            400..=499 => Self::Unavailable,
            _ => Self::Unreachable,
        }
    }
}

/// How much of a file is read: the least that RFC 9309 §2.5 asks for.
pub const READ: usize = 500 * 1024;

/// Redirects in a row that are followed from a robots.txt (§2.3.1.2).
pub const REDIRECTS: u32 = 5;

/// A file as far as it was read. The groups for us and those for everybody are kept apart until it is known whether
/// there is one for us.
struct File<'a> {
    agent: &'a str,
    ours: Group,
    everybodys: Group,
    /// A group names us, if only an empty one.
    is_named: bool,
    sitemaps: Vec<String>,
    /// Whom the group that is being read is for.
    for_us: bool,
    for_everybody: bool,
    /// It has had a rule: the next `User-agent` begins another group. Other fields end none (§2.2.4).
    has_rules: bool,
}

#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    delay: Option<Duration>,
}

impl<'a> File<'a> {
    fn new(agent: &'a str) -> Self {
        Self {
            agent,
            ours: Group::default(),
            everybodys: Group::default(),
            is_named: false,
            sitemaps: Vec::new(),
            for_us: false,
            for_everybody: false,
            has_rules: false,
        }
    }

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
            self.for_us = false;
            self.for_everybody = false;
        }
        if let Some(after) = value.strip_prefix(b"*") {
            self.for_everybody |= after.first().is_none_or(u8::is_ascii_whitespace);
        } else if is_token(value, self.agent) {
            self.for_us = true;
            self.is_named = true;
        }
    }

    /// To the groups that the current one belongs to.
    fn add(&mut self, mut what: impl FnMut(&mut Group)) {
        if self.for_us {
            what(&mut self.ours);
        }
        if self.for_everybody {
            what(&mut self.everybodys);
        }
    }

    fn finish(self) -> Robots {
        let mut group = if self.is_named {
            self.ours
        } else {
            self.everybodys
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
    /// Normalised; each `*` stands for any bytes. Never empty.
    pattern: Box<[u8]>,
    /// It had a final `$`: the path ends here, too.
    to_the_end: bool,
}

impl Rule {
    /// No rule if there is no pattern: `Disallow:` forbids nothing. Two for an allowed `index.html`, which stands for
    /// its directory as well.
    fn of(allow: bool, value: &[u8]) -> impl Iterator<Item = Self> {
        let (body, to_the_end) = match value.strip_suffix(b"$") {
            Some(body) => (body, true),
            None => (value, false),
        };
        let name = value
            .iter()
            .rposition(|&byte| byte == b'/')
            .map(|at| at + 1);
        let directory = name.filter(|&at| allow && value[at..].starts_with(b"index.htm"));
        let index = directory.map(|at| Self::new(allow, &value[..at], true));
        let own = (!value.is_empty()).then(|| Self::new(allow, body, to_the_end));
        own.into_iter().chain(index)
    }

    fn new(allow: bool, pattern: &[u8], to_the_end: bool) -> Self {
        Self {
            allow,
            pattern: normalise(pattern, Special::Wildcard).into(),
            to_the_end,
        }
    }

    fn octets(&self) -> usize {
        self.pattern.len() + usize::from(self.to_the_end)
    }

    /// In time linear in the path: each piece between two `*` is taken where it first occurs, which leaves the most
    /// for the others.
    fn fits(&self, path: &[u8]) -> bool {
        let mut pieces = self.pattern.split(|&byte| byte == b'*');
        let Some(mut rest) = pieces.next().and_then(|piece| path.strip_prefix(piece)) else {
            return false;
        };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return !self.to_the_end || rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if self.to_the_end && pieces.peek().is_none() {
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

/// Fields that are understood.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// How the keys begin, in lower case; the mistakes are those that are seen in the wild.
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

/// The lines of what is read of a file. A line that the limit cuts is none: half a path could forbid too much.
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

/// Key and value of a line, without its comment. Instead of a colon, blanks will do between two words.
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

/// Whether the value of a `User-agent` names this crawler. Its token ends where such characters do: before a version,
/// for example.
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

/// What `*` and `$` are in a text.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Special {
    /// Characters as others, and written as escapes, so that a pattern can name them (§2.2.3).
    Escaped,
    /// `*` is a wildcard, and stays as it is.
    Wildcard,
}

/// One spelling for all that mean the same (§2.2.2): unreserved characters are not escaped, what may not stand in a
/// path or query is, escapes have upper-case digits. A reserved character and its escape stay different.
fn normalise(text: &[u8], special: Special) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escape = (byte == b'%').then(|| escape(after)).flatten();
        let (byte, is_escape) = escape.map_or((byte, false), |byte| (byte, true));
        rest = if is_escape { &after[2..] } else { after };
        let is_plain = match byte {
            b'-' | b'.' | b'_' | b'~' => true,
            b'*' => !is_escape && special == Special::Wildcard,
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

/// The byte that two hexadecimal digits at the start stand for.
fn escape(digits: &[u8]) -> Option<u8> {
    let value = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(value(0)? << 4 | value(1)?).ok()
}
