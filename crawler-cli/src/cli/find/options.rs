//! The table of what `crawler-cli find` understands: one row for each option and each word of an expression. The
//! parser, the help texts, the man page and the completions are made from it, so that they cannot disagree.
//!
//! find(1) has long options with one dash, and words such as `(` that mean something where they stand; the usual
//! parsers know neither.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use courser::{PemOrDer, Proxies, Rate, TlsConfig, TlsRoots};

use super::UsageError;
use super::expression_words::WORDS;
use crate::find::expr::Parser;
use crate::find::scope::Pattern;
use crate::find::{Find, Follow, USER_AGENT};
use crate::report::{Format, Options, Progress, SummaryForm};

/// One option, or one word of an expression.
pub(crate) struct Opt {
    /// Its spellings, dashes included.
    pub(crate) names: &'static [&'static str],
    /// What follows it, by the names that the help text uses.
    pub(crate) values: &'static [Val],
    pub(crate) group: Group,
    /// What it does in one line of at most 60 characters, for `-h`.
    pub(crate) short: &'static str,
    /// The whole story, for `--help` and the man page: paragraphs, each a line.
    pub(crate) long: &'static str,
    /// What holds without it; empty if that is nothing.
    pub(crate) default: &'static str,
    /// Variables of the environment that hold without it.
    pub(crate) env: &'static [&'static str],
    pub(crate) set: Set,
}

/// A value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Val {
    pub(crate) name: &'static str,
    pub(crate) hint: Hint,
}

/// What a shell can offer for a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hint {
    /// Nothing.
    Any,
    File,
    OneOf(&'static [&'static str]),
}

/// What is done with a row of the table.
#[derive(Clone, Copy)]
pub(crate) enum Set {
    /// An option without a value.
    Flag(fn(&mut Args)),
    /// An option with a value. What is wrong with the value is said without naming it.
    Value(fn(&mut Args, &str) -> Result<(), String>),
    /// The same, but it may ask for further values.
    Values(fn(&mut Args, &str, Next<'_>) -> Result<(), String>),
    /// A word of the expression. The parser of expressions takes it; the row is for the texts.
    Word,
    /// All that follows is URLs.
    End,
    /// All that follows is flags of another tool.
    Compat,
    Ask(Ask),
}

/// Takes another value, if there is one.
pub(crate) type Next<'n> = &'n mut dyn FnMut() -> Option<String>;

/// Asks for a text instead of a search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ask {
    ShortHelp,
    LongHelp,
    Man,
    Wfind,
    Version,
}

/// Under which heading a row stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Group {
    Tests,
    Operators,
    Actions,
    Search,
    Courtesy,
    Network,
    Output,
    Report,
    Other,
}

impl Group {
    /// All, in the order of the help text.
    pub(crate) const ALL: &[Self] = &[
        Self::Tests,
        Self::Operators,
        Self::Actions,
        Self::Search,
        Self::Courtesy,
        Self::Network,
        Self::Output,
        Self::Report,
        Self::Other,
    ];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Tests => "Tests",
            Self::Operators => "Operators, by precedence",
            Self::Actions => "Actions",
            Self::Search => "What is searched",
            Self::Courtesy => "Courtesy",
            Self::Network => "Network",
            Self::Output => "Output",
            Self::Report => "Progress and reports",
            Self::Other => "Other options",
        }
    }
}

/// All rows, in the order of the help text within each group.
pub(crate) fn all() -> impl Iterator<Item = &'static Opt> {
    WORDS.iter().chain(OPTIONS)
}

/// What was typed.
pub(crate) struct Args {
    pub(crate) find: Find,
    pub(crate) output: Options,
    /// The words of the expression.
    words: Parser,
    starts: usize,
    /// The file that the search is kept in.
    pub(crate) state: Option<PathBuf>,
    /// What is searched for and where, for that file.
    pub(crate) identity: String,
    tls: TlsConfig,
    proxy: Option<String>,
    no_proxy: Option<String>,
}

impl Args {
    /// Changes the search.
    fn find(&mut self, change: impl FnOnce(Find) -> Find) {
        self.find = change(std::mem::take(&mut self.find));
    }

    pub(crate) fn start(&mut self, url: &str) -> Result<(), UsageError> {
        self.find = std::mem::take(&mut self.find).start(url)?;
        self.starts += 1;
        self.identify(url);
        Ok(())
    }

    fn sitemap(&mut self, url: &str) -> Result<(), UsageError> {
        self.find = std::mem::take(&mut self.find).sitemap(url)?;
        self.starts += 1;
        self.identify("--sitemap");
        self.identify(url);
        Ok(())
    }

    fn identify(&mut self, word: &str) {
        if !self.identity.is_empty() {
            self.identity.push(' ');
        }
        self.identity.push_str(word);
    }
}

/// What the arguments ask for.
pub(crate) enum Parsed {
    Args(Box<Args>),
    Ask(Ask),
}

/// Reads the arguments; `var` is the environment.
///
/// # Errors
/// The first argument that means nothing.
pub(crate) fn parse(
    args: Vec<OsString>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Parsed, UsageError> {
    let mut parsed = Args {
        find: Find::new(),
        output: Options::default(),
        words: Parser::new(SystemTime::now()),
        starts: 0,
        state: None,
        identity: String::new(),
        tls: TlsConfig::default(),
        proxy: None,
        no_proxy: None,
    };
    let mut compat = None;
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let behind = args.clone();
        if parsed.words.take(&arg, &mut args)? {
            let used = behind.len() - args.len();
            for word in [arg].into_iter().chain(behind.take(used)) {
                parsed.identify(&word.to_string_lossy());
            }
            continue;
        }
        let arg = text(arg)?;
        let (name, attached) = split_option(&arg);
        let Some(opt) = all().find(|opt| opt.names.contains(&name)) else {
            if arg.starts_with('-') {
                return Err(unknown(&arg));
            }
            parsed.start(&arg)?;
            continue;
        };
        if attached.is_some() && opt.values.is_empty() {
            return Err(unknown(&arg));
        }
        let mut attached = attached.map(str::to_owned);
        let mut next = || match attached.take() {
            Some(value) => Ok(Some(value)),
            None => args.next().map(text).transpose(),
        };
        let mut value = || next()?.ok_or_else(|| UsageError(format!("{name} needs a value")));
        match opt.set {
            Set::Flag(set) => set(&mut parsed),
            Set::Value(set) => {
                let value = value()?;
                set(&mut parsed, &value).map_err(|why| wrong(name, &value, &why))?;
            }
            Set::Values(set) => {
                let value = value()?;
                let mut next = || args.next().and_then(|arg| arg.into_string().ok());
                set(&mut parsed, &value, &mut next).map_err(|why| wrong(name, &value, &why))?;
            }
            // Those are taken already, but for what looks like `--name=value`.
            Set::Word => return Err(unknown(&arg)),
            Set::End => {
                for arg in args.by_ref() {
                    parsed.start(&text(arg)?)?;
                }
            }
            Set::Compat => {
                let value = value()?;
                if value != "wfind" {
                    return Err(wrong(name, &value, "only wfind is known"));
                }
                if parsed.starts > 0 {
                    return Err(UsageError(format!(
                        "the URL must come after {name} {value}"
                    )));
                }
                let flags: Vec<String> = args.by_ref().map(text).collect::<Result<_, _>>()?;
                for flag in &flags {
                    parsed.identify(flag);
                }
                compat = Some(flags);
            }
            Set::Ask(ask) => return Ok(Parsed::Ask(ask)),
        }
    }
    // The client would say it too, but for each start.
    parsed.tls.build()?;
    let proxies = proxies(parsed.proxy.as_deref(), parsed.no_proxy.as_deref(), var)?;
    let tls = parsed.tls.clone();
    let words = std::mem::replace(&mut parsed.words, Parser::new(SystemTime::now()));
    let expression = words.finish()?;
    if parsed.state.is_some() {
        if parsed.output.sort || parsed.output.format == Format::Tree {
            return Err(UsageError(
                "--state: results in order (--sort, --tree) cannot be gone on with".into(),
            ));
        }
        if expression.gathers() {
            return Err(UsageError(
                "--state: what -exec ... + has gathered cannot be gone on with; use -exec ... ;"
                    .into(),
            ));
        }
        if expression.writes_files() {
            return Err(UsageError(
                "--state: files of -fprint, -fprintf and -fls cannot be gone on with".into(),
            ));
        }
    }
    if expression.writes_past_results() && parsed.output.progress != Progress::Always {
        parsed.output.progress = Progress::Never;
    }
    parsed.find(|find| find.expression(expression).tls(tls).proxies(proxies));
    if let Some(flags) = compat
        && !super::wfind::read(flags, &mut parsed)?
    {
        return Ok(Parsed::Ask(Ask::Wfind));
    }
    if parsed.starts == 0 {
        return Err(UsageError("no URL to start from".into()));
    }
    Ok(Parsed::Args(Box::new(parsed)))
}

fn wrong(name: &str, value: &str, why: &str) -> UsageError {
    UsageError(format!("{name} {value}: {why}"))
}

/// As curl has it: each option goes before its variables, and an empty one takes their place all the same.
fn proxies(
    proxy: Option<&str>,
    no_proxy: Option<&str>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Proxies, UsageError> {
    let proxies = Proxies::from_vars(|name| match (name, proxy, no_proxy) {
        ("all_proxy", Some(proxy), _) => Some(proxy.to_owned()),
        ("no_proxy", _, Some(list)) => Some(list.to_owned()),
        ("http_proxy" | "HTTP_PROXY" | "https_proxy" | "HTTPS_PROXY" | "ALL_PROXY", Some(_), _)
        | ("NO_PROXY", _, Some(_)) => None,
        _ => var(name),
    });
    proxies.map_err(|error| match proxy {
        Some(_) => UsageError(format!("-x: {error}")),
        None => UsageError(format!("the environment: {error}")),
    })
}

/// `--option=value` and `-j8`, which may be written in one word.
fn split_option(arg: &str) -> (&str, Option<&str>) {
    if arg.starts_with("--")
        && let Some((option, value)) = arg.split_once('=')
    {
        return (option, Some(value));
    }
    match arg.strip_prefix("-j") {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => ("-j", Some(digits)),
        _ => (arg, None),
    }
}

fn unknown(arg: &str) -> UsageError {
    UsageError(format!("unknown option {arg}"))
}

fn text(arg: OsString) -> Result<String, UsageError> {
    let lossy = |arg: OsString| UsageError(format!("{}: not UTF-8", arg.to_string_lossy()));
    arg.into_string().map_err(lossy)
}

/// `--starts-from`
fn starts_from(args: &mut Args, name: &str) -> Result<(), String> {
    let mut list = Vec::new();
    let read = match name {
        "-" => io::stdin()
            .lock()
            .take(LONGEST_LIST + 1)
            .read_to_end(&mut list),
        name => {
            File::open(name).and_then(|file| file.take(LONGEST_LIST + 1).read_to_end(&mut list))
        }
    };
    read.map_err(|error| error.to_string())?;
    if list.len() as u64 > LONGEST_LIST {
        return Err("too large".to_owned());
    }
    let end = if list.contains(&0) { 0 } else { b'\n' };
    for (number, line) in list.split(|&b| b == end).enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let url = str::from_utf8(line).map_err(|_| format!("line {}: not UTF-8", number + 1))?;
        args.start(url)
            .map_err(|error| format!("line {}: {}", number + 1, error.0))?;
    }
    Ok(())
}

pub(crate) fn number<T: FromStr>(value: &str) -> Result<T, String> {
    // `parse` would take a sign.
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    let parsed = value.parse().ok().filter(|_| digits);
    parsed.ok_or_else(|| "not a number that fits here".to_owned())
}

pub(crate) fn seconds(value: &str) -> Result<Duration, String> {
    let span = value
        .parse()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok());
    let sensible = span.filter(|span| !span.is_zero() && *span <= LONGEST_TIMEOUT);
    sensible.ok_or_else(|| "not a sensible number of seconds".to_owned())
}

/// A number with an optional K, M or G (powers of 1024).
pub(crate) fn bytes(value: &str) -> Result<u64, String> {
    let (digits, shift) = match value.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 10),
        None => match value.strip_suffix(['M', 'm']) {
            Some(digits) => (digits, 20),
            None => match value.strip_suffix(['G', 'g']) {
                Some(digits) => (digits, 30),
                None => (value, 0),
            },
        },
    };
    let size = number::<u64>(digits)?.checked_mul(1 << shift);
    size.ok_or_else(|| "too large".to_owned())
}

/// Bytes of a list of starts.
const LONGEST_LIST: u64 = 64 << 20;

const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const fn any(name: &'static str) -> Val {
    Val {
        name,
        hint: Hint::Any,
    }
}

const fn file(name: &'static str) -> Val {
    Val {
        name,
        hint: Hint::File,
    }
}

/// The options. Words of expressions are in [`WORDS`].
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    Opt {
        names: &["--state"],
        values: &[file("FILE")],
        group: Group::Search,
        short: "keep the search in a file, to go on from it",
        long: "Keep the search in this file, an SQLite database, so that the same command goes on where it was cut off, be it by Ctrl-C or a crash. Nothing is searched twice and, if results go to a file (with >>), no result is lost or written twice; on their way through a pipe those of the last moment may come twice, and so may the results and commands of a directory in the middle of which -exec was cut off. Beyond 100,000 directories, those that wait are in the file alone. It is removed when the search is over. Results that are in order at the end, and files that -fprint and the like write, cannot be gone on with.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            args.state = Some(value.into());
            Ok(())
        }),
    },
    Opt {
        names: &["--links"],
        values: &[Val { name: "listing|page", hint: Hint::OneOf(&["listing", "page"]) }],
        group: Group::Search,
        short: "follow listings of directories, or the links of pages",
        long: "What leads from one URL to the next. listing: pages are listings of directories, and only what is directly below is an entry. page: pages are web pages, and all their links are followed that stay below the start, or lead where --span-hosts and --domains say; what they embed (images, scripts) is found, too. A link's target is found once it has answered: a page after its GET, anything else after a HEAD; what pages embed is not asked for, unless a test needs to know more. -prune ends the following of a page's links. The depth is that of the path, not the number of links.",
        default: "listing",
        env: &[],
        set: Set::Value(|args, value| {
            let follow = match value {
                "listing" => Follow::Listings,
                "page" => Follow::Pages,
                _ => return Err("either listing or page".into()),
            };
            args.find(|find| find.follow(follow));
            args.identify("--links");
            args.identify(value);
            Ok(())
        }),
    },
    Opt {
        names: &["--sitemap"],
        values: &[any("URL")],
        group: Group::Search,
        short: "start from what a sitemap names as well",
        long: "Start from what this sitemap names at or below its own directory as well: XML or plain text, also compressed by gzip, or an index of sitemaps (sitemaps.org). Its URLs are found, with the times it gives; those that end in / are read as directories. With --links page, all are read as pages. May be given several times, and instead of a start.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| args.sitemap(value).map_err(|error| error.0)),
    },
    Opt {
        names: &["--dav"],
        values: &[],
        group: Group::Search,
        short: "list directories by WebDAV's PROPFIND",
        long: "List directories by WebDAV's PROPFIND with Depth: 1 (RFC 4918), and not by reading their pages. It tells exact sizes and times. Servers without WebDAV answer 405, or 501.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.find(Find::dav)),
    },
    Opt {
        names: &["--include"],
        values: &[any("GLOB")],
        group: Group::Search,
        short: "leave out files whose URL fits no such pattern",
        long: "Leave out files whose URL fits none of these shell patterns. The pattern is for the whole URL as it is printed, and * stands for / as well. Directories are read all the same. May be given several times, with --include-regex too.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            args.find(|find| find.include(Pattern::glob(value)));
            Ok(())
        }),
    },
    Opt {
        names: &["--include-regex"],
        values: &[any("RE")],
        group: Group::Search,
        short: "as --include, by a regular expression",
        long: "As --include, by a regular expression, in the syntax of Rust's regex crate, that fits a part of the URL.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            let pattern = Pattern::regex(value).map_err(|error| error.to_string())?;
            args.find(|find| find.include(pattern));
            Ok(())
        }),
    },
    Opt {
        names: &["--exclude"],
        values: &[any("GLOB")],
        group: Group::Search,
        short: "leave out what has a URL that fits the pattern",
        long: "Leave out files and directories whose URL fits this shell pattern, which is for the whole URL as it is printed, and in which * stands for / as well. The URL of a directory ends in /; what is below one that is left out is not asked for. May be given several times.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            args.find(|find| find.exclude(Pattern::glob(value)));
            Ok(())
        }),
    },
    Opt {
        names: &["--exclude-regex"],
        values: &[any("RE")],
        group: Group::Search,
        short: "as --exclude, by a regular expression",
        long: "As --exclude, by a regular expression, in the syntax of Rust's regex crate, that fits a part of the URL.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            let pattern = Pattern::regex(value).map_err(|error| error.to_string())?;
            args.find(|find| find.exclude(pattern));
            Ok(())
        }),
    },
    Opt {
        names: &["--span-hosts"],
        values: &[],
        group: Group::Network,
        short: "go to other hosts",
        long: "Go to other hosts where links of pages (--links page), locations of sitemaps and redirects lead there, be it of directories or, as in mirror networks, of files to download: to all, or to those of --domains. Each host is asked for its own robots.txt, and -maxdepth counts from its root; a redirect of a file to download is followed under the limits of the host that redirects, whatever the other's robots.txt says. Without it, what is searched stays below the starts; the same host with https in place of http at the usual ports counts as the same. No more than 10,000 hosts are searched.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.find(Find::span_hosts)),
    },
    Opt {
        names: &["--domains"],
        values: &[any("LIST")],
        group: Group::Network,
        short: "go to these other hosts",
        long: "As --span-hosts, but only to these hosts, and to all whose names end in a dot and one of them. Names are separated by commas.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            for domain in value.split(',').filter(|domain| !domain.is_empty()) {
                let find = args.find.clone().domain(domain);
                args.find = find.map_err(|error| format!("{domain}: {error}"))?;
            }
            Ok(())
        }),
    },
    Opt {
        names: &["--allow-private"],
        values: &[],
        group: Group::Network,
        short: "let redirects lead to private addresses",
        long: "Let private addresses be connected to. Without it, loopback, private and other addresses that are not public are connected to only if a start or a proxy has them, whatever redirects or name servers say.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.find(Find::allow_private)),
    },
    Opt {
        names: &["--robots"],
        values: &[Val { name: "WHETHER", hint: Hint::OneOf(&["on", "off"]) }],
        group: Group::Courtesy,
        short: "whether robots.txt is obeyed",
        long: "Whether each host's robots.txt (RFC 9309) is asked for first and obeyed, its Crawl-delay included. What it disallows is named on standard error. Switch it off for mirrors that are there to be read.",
        default: "on",
        env: &[],
        set: Set::Value(|args, value| {
            let robots = match value {
                "on" => true,
                "off" => false,
                _ => return Err("neither on nor off".to_owned()),
            };
            args.find(|find| find.robots(robots));
            Ok(())
        }),
    },
    Opt {
        names: &["--rate"],
        values: &[any("N")],
        group: Group::Courtesy,
        short: "requests to a host in a second",
        long: "How many requests may go to a host in a second, evenly spread. Without it there is no limit but that of connections.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            let rate = number::<NonZeroU64>(value)?;
            args.find(|find| find.rate(Rate::per_second(rate)));
            Ok(())
        }),
    },
    Opt {
        names: &["--per-address"],
        values: &[],
        group: Group::Courtesy,
        short: "limit hosts of one address as if they were one",
        long: "Take hosts of one address for one: connections, rates, delays and the pauses that a server asks for count together, since it is most likely one machine. A host is asked for one URL alone first, which tells its address. What is reached through a proxy stays alone.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.find(Find::per_address)),
    },
    Opt {
        names: &["--min-delay"],
        values: &[any("SECONDS")],
        group: Group::Courtesy,
        short: "least time between requests to a host",
        long: "How long a host is left alone after each request at the least, whatever its robots.txt allows.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            let delay = seconds(value)?;
            args.find(|find| find.min_delay(delay));
            Ok(())
        }),
    },
    Opt {
        names: &["--patience"],
        values: &[any("SECONDS")],
        group: Group::Courtesy,
        short: "longest time for all attempts at a URL",
        long: "How long after its first request a URL is asked for again. A host that answers 429 or 503 is waited for so long, however many attempts that takes.",
        default: "900",
        env: &[],
        set: Set::Value(|args, value| {
            let patience = seconds(value)?;
            args.find(|find| find.patience(patience));
            Ok(())
        }),
    },
    Opt {
        names: &["-A", "--user-agent"],
        values: &[any("TEXT")],
        group: Group::Courtesy,
        short: "what requests say of who asks",
        long: "What the User-Agent of each request says. The word before its first / or blank is the name that robots.txt knows the crawler by.",
        default: USER_AGENT,
        env: &[],
        set: Set::Value(|args, value| {
            if value.is_empty() || value.bytes().any(|byte| byte.is_ascii_control()) {
                return Err("not a text for a header".to_owned());
            }
            args.find(|find| find.user_agent(value));
            Ok(())
        }),
    },
    Opt {
        names: &["--starts-from"],
        values: &[file("FILE|-")],
        group: Group::Search,
        short: "start from the URLs in a file; - is standard input",
        long: "Start from the URLs in this file, one a line, or from those on standard input if it is -. If there is a NUL in it, NULs end the URLs. Empty lines are passed over.",
        default: "",
        env: &[],
        set: Set::Value(starts_from),
    },
    Opt {
        names: &["-j"],
        values: &[any("N")],
        group: Group::Network,
        short: "connections to a host",
        long: "How many connections there are to a host, and requests to it under way, at a time. All hosts together have no more than 900, or N if that is more.",
        default: "8",
        env: &[],
        set: Set::Value(|args, value| {
            let connections = number::<NonZeroUsize>(value)?;
            args.find(|find| find.connections(connections));
            Ok(())
        }),
    },
    Opt {
        names: &["--timeout"],
        values: &[any("SECONDS")],
        group: Group::Network,
        short: "longest time for a request",
        long: "How long a request may take in all. Looking up the name, connecting and each handshake take no more than 10 seconds of it.",
        default: "30",
        env: &[],
        set: Set::Value(|args, value| {
            let timeout = seconds(value)?;
            args.find(|find| find.timeout(timeout));
            Ok(())
        }),
    },
    Opt {
        names: &["--retries"],
        values: &[any("N")],
        group: Group::Network,
        short: "further attempts after a failure",
        long: "How often a URL is asked for again after a transport error, a cut listing or 5xx, with pauses of half a second to 2 seconds in between. A host that asks for a pause, by 429 or 503, gets it without counting, until --patience is over; but a URL that is answered so again and again while others are not has failed. A host that was never reached is given up after 3 at the most.",
        default: "9",
        env: &[],
        set: Set::Value(|args, value| {
            let retries = number(value)?;
            args.find(|find| find.retries(retries));
            Ok(())
        }),
    },
    Opt {
        names: &["--download"],
        values: &[file("DIR")],
        group: Group::Output,
        short: "download the files that are found",
        long: "Download the files that are found into this directory, each at its path below the start's directory; with several starts, and from elsewhere than below that, below directories for host and path. A file gets its name when it is complete, and its time is that of the server. What was cut short is gone on with, in another run too, if the server says that it is still the same file. A file that is there already is compared with the server's by size and time; one that differs is an error, and left as it is.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            let find = args.find.clone().download(Path::new(value));
            args.find = find.map_err(|error| error.to_string())?;
            Ok(())
        }),
    },
    Opt {
        names: &["--overwrite"],
        values: &[],
        group: Group::Output,
        short: "replace downloaded files that differ",
        long: "With --download, replace files that differ from those of the server.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.find(Find::overwrite)),
    },
    Opt {
        names: &["--max-body"],
        values: &[any("BYTES")],
        group: Group::Network,
        short: "largest index page; K, M and G allowed",
        long: "How large an index page may be, as sent and without its content codings. A larger one is an error, never a page cut short. K, M and G are powers of 1024.",
        default: "64M",
        env: &[],
        set: Set::Value(|args, value| {
            let size = bytes(value)?;
            args.find(|find| find.max_body(size));
            Ok(())
        }),
    },
    Opt {
        names: &["-k", "--insecure"],
        values: &[],
        group: Group::Network,
        short: "accept any certificate",
        long: "Accept any certificate: whoever is on the way can read and change everything.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.tls.insecure = true),
    },
    Opt {
        names: &["--cacert"],
        values: &[file("FILE")],
        group: Group::Network,
        short: "trust these certificates alone",
        long: "Trust the certificates in this PEM file, and no others. Without it, the authorities that Mozilla trusts, as compiled in.",
        default: "",
        env: &[],
        set: Set::Value(|args, value| {
            // As curl has it: this file alone.
            args.tls.roots = TlsRoots::None;
            args.tls.extra_roots = vec![PemOrDer::File(value.into())];
            Ok(())
        }),
    },
    Opt {
        names: &["-x", "--proxy"],
        values: &[any("URL")],
        group: Group::Network,
        short: "connect through this proxy",
        long: "Connect through this proxy: http, https, socks5 or socks5h, with user:password@ if it needs them. An empty one is none.",
        default: "",
        env: &["http_proxy", "https_proxy", "all_proxy"],
        set: Set::Value(|args, value| {
            args.proxy = Some(value.to_owned());
            Ok(())
        }),
    },
    Opt {
        names: &["--noproxy"],
        values: &[any("LIST")],
        group: Group::Network,
        short: "connect to these hosts directly",
        long: "Connect to these hosts directly: names (and all below them), addresses, blocks such as 10.0.0.0/8, or * for all, with commas in between.",
        default: "",
        env: &["no_proxy"],
        set: Set::Value(|args, value| {
            args.no_proxy = Some(value.to_owned());
            Ok(())
        }),
    },
    Opt {
        names: &["-0", "--null"],
        values: &[],
        group: Group::Output,
        short: "end each result with a NUL instead of a newline",
        long: "End each result with a NUL instead of a newline, for xargs -0.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.output.format = Format::Nul),
    },
    Opt {
        names: &["--json"],
        values: &[],
        group: Group::Output,
        short: "one JSON object a line",
        long: "Print one JSON object a line: url, type (f or d), path, name, depth, parent (the URL of the directory that lists it; null for a start), size (null if it is not known exactly), size_lo and size_hi (its bounds), mtime (RFC 3339; null if the listing's time zone is not known), mtime_lo and mtime_hi, mtime_precision (second, minute, day or unsure), listing, which tells whose index page showed it (null for a start), status (of the server's answer about it; null if only a listing tells of it), attempts (requests until there was an answer that told of it), and seconds (how long the last of them took). What could not be read is on standard error only.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.output.format = Format::Json),
    },
    Opt {
        names: &["--csv"],
        values: &[],
        group: Group::Output,
        short: "CSV with a header",
        long: "Print CSV (RFC 4180) with the fields of --json, in that order, and a header; what is null there is empty. Control characters in names are escaped, and what a spreadsheet would take for a formula gets an apostrophe before it.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.output.format = Format::Csv),
    },
    Opt {
        names: &["--tree"],
        values: &[],
        group: Group::Output,
        short: "a picture of the hierarchy, at the end",
        long: "Print a picture of the hierarchy in the manner of tree(1), with the sizes of files and the counts. It comes at the end, and needs memory for all results.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.output.format = Format::Tree),
    },
    Opt {
        names: &["--sort"],
        values: &[],
        group: Group::Output,
        short: "print the results in order, at the end",
        long: "Print the results in the order of their URLs, what is in a directory right after it; what -printf, -ls and -print0 print of an entry comes in its place. All of it comes at the end, and needs memory: after 1 GiB, what was gathered is printed in order and the rest as it comes. What commands of -exec print is not put in order.",
        default: "",
        env: &[],
        set: Set::Flag(|args| args.output.sort = true),
    },
    Opt {
        names: &["--progress"],
        values: &[Val { name: "WHEN", hint: Hint::OneOf(&["auto", "always", "never", "line"]) }],
        group: Group::Report,
        short: "live view: auto, always, never or line",
        long: "Whether to show how the search is going: auto shows it in some lines at the bottom of the terminal, if standard error is one; line in one line; always also writes a line a second if standard error is something else; never does not. Commands of -exec write to the terminal, too: with them, and with -fprint /dev/stderr, only always shows anything.",
        default: "auto",
        env: &[],
        set: Set::Value(|args, value| {
            args.output.progress = match value {
                "auto" => Progress::Auto,
                "always" => Progress::Always,
                "never" => Progress::Never,
                "line" => Progress::Line,
                _ => return Err("neither auto, always, never nor line".to_owned()),
            };
            Ok(())
        }),
    },
    Opt {
        names: &["--summary"],
        values: &[Val { name: "FORM", hint: Hint::OneOf(&["text", "json", "none"]) }],
        group: Group::Report,
        short: "at the end: text, json, json:FILE or none",
        long: "What to say at the end: text is a line on standard error; json is an object as the last line of standard output, json:FILE writes that to a file; none is nothing.\nThe object has one field, summary, with these: complete (whether everything was read), ending (finished, quit or stopped), matched, undecided and actions_failed; downloads (null if nothing was to be downloaded; wanted, saved, resumed, kept, failed, and bytes written); files, directories and directories_done; requests, retries, unread, unread_by_class, failed_attempts_by_class; bytes, seconds, and of these seconds_waiting_for_hosts, seconds_held_back (by rates, delays, back-off) and seconds_computing; requests_per_second, latency_seconds (p50, p95, p99, max), connections_opened, connections_reused; and hosts, with the same of each, and status_classes, the numbers of answers 1xx to 5xx.",
        default: "text",
        env: &[],
        set: Set::Value(|args, value| {
            args.output.summary = match value {
                "text" => SummaryForm::Text,
                "json" => SummaryForm::Json,
                "none" => SummaryForm::Nothing,
                _ => match value.strip_prefix("json:") {
                    Some(file) if !file.is_empty() => SummaryForm::JsonFile(file.into()),
                    _ => return Err("neither text, json, json:FILE nor none".to_owned()),
                },
            };
            Ok(())
        }),
    },
    Opt {
        names: &["--report"],
        values: &[Val { name: "text|html", hint: Hint::OneOf(&["text", "html"]) }, file("FILE")],
        group: Group::Report,
        short: "figures at the end, or a page with charts",
        long: "Report at the end what the search found and cost: text writes requests and repetitions, percentiles of latency, use of connections, downloads, where the time went, failures by class and the slowest hosts to standard error; html writes a page to a file, which needs nothing else: sizes by directory, latency and answers over time, status by host, and what was not read and why. It can be given for both.",
        default: "",
        env: &[],
        set: Set::Values(|args, value, next| {
            match value {
                "text" => args.output.text_report = true,
                "html" => args.output.html_report = Some(next().ok_or("needs a file, too")?.into()),
                _ => return Err("neither text nor html".to_owned()),
            }
            Ok(())
        }),
    },
    Opt {
        names: &["--compat"],
        values: &[Val { name: "wfind", hint: Hint::OneOf(&["wfind"]) }],
        group: Group::Other,
        short: "the flags of wfind from here on",
        long: "Take all that follows for the URL and the flags of wfind, with their meaning there. Options such as --json go before it. --compat wfind --help tells which flags there are.",
        default: "",
        env: &[],
        set: Set::Compat,
    },
    Opt {
        names: &["-h"],
        values: &[],
        group: Group::Other,
        short: "this overview",
        long: "Print an overview in which each option has a line.",
        default: "",
        env: &[],
        set: Set::Ask(Ask::ShortHelp),
    },
    Opt {
        names: &["--help", "-help"],
        values: &[],
        group: Group::Other,
        short: "the whole help",
        long: "Print this.",
        default: "",
        env: &[],
        set: Set::Ask(Ask::LongHelp),
    },
    Opt {
        names: &["--man"],
        values: &[],
        group: Group::Other,
        short: "the man page, for man -l -",
        long: "Print the man page as roff: crawler-cli find --man | man -l -",
        default: "",
        env: &[],
        set: Set::Ask(Ask::Man),
    },
    Opt {
        names: &["--version", "-version"],
        values: &[],
        group: Group::Other,
        short: "the version",
        long: "Print the version.",
        default: "",
        env: &[],
        set: Set::Ask(Ask::Version),
    },
    Opt {
        names: &["--"],
        values: &[],
        group: Group::Other,
        short: "what follows is URLs",
        long: "Take all that follows for URLs.",
        default: "",
        env: &[],
        set: Set::End,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(args: &[&str]) -> Result<Parsed, String> {
        parse(args.iter().map(OsString::from).collect(), |_| None).map_err(|error| error.0)
    }

    #[test]
    fn wrong_usage_is_named() {
        for (args, message) in [
            (&[][..], "no URL to start from"),
            (&["-name", "x"], "no URL to start from"),
            (&["http://h/", "-name"], "-name needs a value"),
            (
                &["http://h/", "-type", "x"],
                "-type x: neither f, nor d, nor f,d",
            ),
            (
                &["http://h/", "-maxdepth", "-1"],
                "-maxdepth -1: not a number that fits here",
            ),
            (
                &["http://h/", "-maxdepth", "+1"],
                "-maxdepth +1: not a number that fits here",
            ),
            (
                &["http://h/", "-mindepth", "x"],
                "-mindepth x: not a number that fits here",
            ),
            (
                &["http://h/", "-j", "0"],
                "-j 0: not a number that fits here",
            ),
            (&["http://h/", "-j0"], "-j 0: not a number that fits here"),
            (
                &["http://h/", "--timeout", "0"],
                "--timeout 0: not a sensible number of seconds",
            ),
            (
                &["http://h/", "--timeout=nan"],
                "--timeout nan: not a sensible number of seconds",
            ),
            (
                &["http://h/", "--retries", "9999999999"],
                "--retries 9999999999: not a number that fits here",
            ),
            (
                &["http://h/", "--max-body", "1T"],
                "--max-body 1T: not a number that fits here",
            ),
            (
                &["http://h/", "--max-body", "99999999999G"],
                "--max-body 99999999999G: too large",
            ),
            (&["http://h/", "--cacert"], "--cacert needs a value"),
            (
                &["http://h/", "-x", "ftp://p:1"],
                "-x: \"ftp://p:1\" is not a proxy: the scheme ftp is not supported",
            ),
            (&["http://h/", "-k=1"], "unknown option -k=1"),
            (&["http://h/", "-o"], "nothing stands before -o"),
            (&["http://h/", "-nmae", "x"], "unknown option -nmae"),
            (&["http://h/", "--json=yes"], "unknown option --json=yes"),
            (&["http://h/", "--name=x"], "unknown option --name=x"),
            (
                &["h/x"],
                "h/x: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["127.0.0.1:80/x"],
                "127.0.0.1:80/x: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["localhost:80"],
                "localhost:80: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["http://h/?dir=x"],
                "http://h/?dir=x: a start with a query is not supported",
            ),
            (
                &["http://u:p@h/"],
                "http://***@h/: user names and passwords are not supported",
            ),
        ] {
            assert_eq!(
                outcome(args).map(|_| ()),
                Err(message.to_owned()),
                "{args:?}"
            );
        }
        let regex = outcome(&["http://h/", "-regex", "\\("]).map(|_| ());
        assert!(regex.is_err_and(|message| message.starts_with("-regex \\(: ")));
    }

    #[test]
    fn options_go_anywhere() {
        for args in [
            &["http://h/"][..],
            &["http://h/a", "http://h/b", "-name", "*.iso", "-type", "f"],
            &[
                "-j",
                "16",
                "--timeout=1.5",
                "-j8",
                "http://h/",
                "--max-body",
                "1M",
                "-print0",
            ],
            &["-name", "-x", "--", "http://h/"],
            &["http://h/?C=N;O=D"],
            &["https://example.org/"],
        ] {
            assert!(matches!(outcome(args), Ok(Parsed::Args(_))), "{args:?}");
        }
        for args in [&["--help"][..], &["http://h/", "-help"], &["-h"]] {
            assert!(matches!(outcome(args), Ok(Parsed::Ask(_))), "{args:?}");
        }
    }

    /// Both would write to the terminal at any time.
    #[test]
    fn there_is_no_live_view_where_commands_write() {
        for (args, expected) in [
            (&["-name", "x"][..], Progress::Auto),
            (&["-exec", "ls", "{}", ";"], Progress::Never),
            (&["!", "-exec", "ls", "{}", "+"], Progress::Never),
            (&["-fprint", "/dev/stderr"], Progress::Never),
            (&["-fprint", "/dev/stdout"], Progress::Auto),
            (
                &["--progress", "always", "-exec", "ls", ";"],
                Progress::Always,
            ),
        ] {
            let Ok(Parsed::Args(parsed)) = outcome(&[&["http://h/"], args].concat()) else {
                panic!("{args:?}");
            };
            assert_eq!(parsed.output.progress, expected, "{args:?}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_wrong_usage() {
        let message = outcome(&["https://h/", "--cacert", "/no/such.pem"]).map(|_| ());
        let message = message.expect_err("there is no such file");
        assert!(message.starts_with("roots in /no/such.pem: "), "{message}");
    }

    #[test]
    fn proxies_come_from_the_options_and_else_from_the_environment() {
        let vars = |name: &str| match name {
            "http_proxy" => Some("env:1".to_owned()),
            "NO_PROXY" => Some("direct.example".to_owned()),
            _ => None,
        };
        for (proxy, no_proxy, expected) in [
            // For http, for https, and for http to direct.example.
            (None, None, [Some("env"), None, None]),
            (Some("own"), None, [Some("own"), Some("own"), None]),
            (Some(""), None, [None; 3]),
            (Some("own"), Some(""), [Some("own"); 3]),
            (None, Some("h.example"), [None, None, Some("env")]),
            (Some("own"), Some("*"), [None; 3]),
        ] {
            let proxies = proxies(proxy, no_proxy, vars).expect("valid");
            let picked = [
                "http://h.example/",
                "https://h.example/",
                "http://direct.example/",
            ]
            .map(|url| {
                let url = courser::proto::Url::parse(url).expect("valid");
                proxies.pick(&url).map(|proxy| proxy.host().to_owned())
            });
            let picked = picked.each_ref().map(Option::as_deref);
            assert_eq!(picked, expected, "{proxy:?} {no_proxy:?}");
        }
        let bad = proxies(None, None, |_| Some("ftp://u:secret@p".to_owned()));
        let message = bad.map(|_| ()).expect_err("no proxy").0;
        assert!(message.starts_with("the environment: "), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn sizes_have_units() {
        for (value, expected) in [
            ("0", 0),
            ("10", 10),
            ("2K", 2048),
            ("3m", 3 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(bytes(value), Ok(expected));
        }
    }
}
