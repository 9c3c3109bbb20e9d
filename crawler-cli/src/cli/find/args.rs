//! The arguments of `crawler-cli find`, from the command line to a [`Find`].

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use courser::CookieJar;

use super::folder::Folder;
use super::options;
use crate::cli::crawl_options::{CrawlOptions, CrawlSetting, CrawlTexts, Crawls};
use crate::cli::option::{Section, Show};
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse, text};
use crate::find::expr::{Expression, Parser};
use crate::find::{Find, Follow};
use crate::report::{Format, Options, Progress, SummaryFormat};

/// What was typed.
pub(crate) struct Args {
    pub(super) find: Find,
    pub(super) output: Options,
    /// The words of the expression.
    expression: Parser,
    crawl: CrawlOptions,
    /// The options that were typed.
    typed: HashSet<&'static str>,
    starts: Vec<String>,
    /// Where downloads go.
    pub(super) folder: Folder,
    /// Whether there may be no start, because a file has none.
    pub(super) may_be_empty: bool,
    /// Whether starts are what an earlier search could not read.
    pub(super) has_unread: bool,
    /// The output formats that were asked for.
    formats: Vec<Format>,
    /// The file that keeps the search.
    pub(super) state: Option<PathBuf>,
    /// What is searched for and where, and where downloads go. The file of the search is for this alone.
    pub(super) identity: String,
}

/// A search as the command line describes it.
pub(super) struct Search {
    pub(super) find: Find,
    pub(super) output: Options,
    pub(super) state: Option<PathBuf>,
    pub(super) identity: String,
}

/// What the command line asks for.
pub(super) enum Request {
    Search(Box<Search>),
    Show(Show),
}

/// Reads the arguments; `var` is the environment.
///
/// # Errors
/// The first argument that means nothing, or a combination of options that means nothing.
pub(super) fn read(
    words: Vec<OsString>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Request, UsageError> {
    let mut args = Args::new();
    if let Some(show) = parse(&mut args, words)? {
        return Ok(Request::Show(show));
    }
    let crawl = std::mem::take(&mut args.crawl);
    let settings = crawl.settings(args.is_secure(), var)?;
    let words = std::mem::replace(&mut args.expression, Parser::new(SystemTime::now()));
    let expression = words.finish()?;
    if args.state.is_some() {
        check_state(&expression)?;
    }
    args.check_needs()?;
    args.check_format(&expression)?;
    args.check_files(&expression)?;
    args.open_folder()?;
    let is_plain = args.output.format == Format::Lines;
    if args.state.is_some() && !is_plain {
        // The results of all runs are one list.
        let format = format!("(results as {:?})", args.output.format);
        args.identify(&format);
    }
    if expression.writes_past_results() && args.output.progress != Progress::Always {
        args.output.progress = Progress::Never;
    }
    // Cookies are kept for the time of the search and for their host alone, so that gates that set one open.
    args.find(|find| find.cookies(CookieJar::new().with_public_suffixes(|_| true)));
    args.find(|find| settings.into_iter().fold(find.expression(expression), with));
    if !args.has_start() {
        return Err(UsageError("no URL to start from".into()));
    }
    // Whether a start may have a query depends on --links, which may come later.
    for url in &args.starts {
        args.find = args.find.start(url)?;
    }
    if args.output.format == Format::Json {
        args.find(Find::times);
    }
    if let [first, second, ..] = args.formats[..] {
        let (first, second) = (first.option(), second.option());
        let error = format!("{first} and {second}: only one output format at a time");
        return Err(UsageError(error));
    }
    Ok(Request::Search(Box::new(Search {
        find: args.find,
        output: args.output,
        state: args.state,
        identity: args.identity,
    })))
}

/// Reads the arguments of a search that a job of the service runs, onto a search with the service's network settings. The
/// job has the start.
///
/// # Errors
/// An argument that means nothing, or that is about output, state or network settings.
pub fn read_for_job(find: Find, words: &[String]) -> Result<Find, String> {
    let mut args = Args {
        find,
        ..Args::new()
    };
    let words = words.iter().map(OsString::from).collect();
    let is_shown = parse(&mut args, words).map_err(|error| error.0)?.is_some();
    if is_shown
        || args.has_start()
        || args.state.is_some()
        || args.folder.limit_rate.is_some()
        || args.output != Options::default()
    {
        let text = "the arguments of a find job are its expression and how it crawls, without starts, output or --state";
        return Err(text.to_owned());
    }
    args.check_needs().map_err(|error| error.0)?;
    args.open_folder().map_err(|error| error.0)?;
    let crawl = std::mem::take(&mut args.crawl);
    let settings = crawl.settings_on_network().map_err(|error| error.0)?;
    let parser = std::mem::replace(&mut args.expression, Parser::new(SystemTime::now()));
    let expression = parser.finish().map_err(|error| error.to_string())?;
    let find = args.find.expression(expression);
    Ok(settings.into_iter().fold(find, with))
}

/// As for curl, a URL without a scheme is one of http, if it begins with what can only be a host: a name with a dot, a
/// port or an address. A single word may be a directory of this machine, for which this is the wrong find.
fn with_scheme(text: &str) -> Cow<'_, str> {
    let host = text.split(['/', '?', '#']).next().unwrap_or(text);
    let is_host = host == "localhost" || host.contains(['.', ':']);
    match is_host && !host.starts_with('.') && !text.contains("://") {
        true => Cow::Owned(format!("http://{text}")),
        false => Cow::Borrowed(text),
    }
}

fn add_word(words: &mut String, word: &str) {
    if !words.is_empty() {
        words.push(' ');
    }
    words.push_str(word);
}

/// What `--state` cannot keep.
fn check_state(expression: &Expression) -> Result<(), UsageError> {
    let error = if expression.gathers() {
        "--state: the arguments that -exec ... + collects cannot be continued; use -exec ... ;"
    } else if expression.writes_files() {
        "--state: files of -fprint, -fprintf and -fls cannot be continued"
    } else {
        return Ok(());
    };
    Err(UsageError(error.to_owned()))
}

impl Args {
    pub(super) fn new() -> Self {
        Self {
            find: Find::new(),
            output: Options::default(),
            expression: Parser::new(SystemTime::now()),
            crawl: CrawlOptions::default(),
            typed: HashSet::new(),
            starts: Vec::new(),
            folder: Folder::default(),
            may_be_empty: false,
            has_unread: false,
            formats: Vec::new(),
            state: None,
            identity: String::new(),
        }
    }

    /// Changes the search.
    pub(super) fn find(&mut self, change: impl FnOnce(Find) -> Find) {
        self.find = change(std::mem::take(&mut self.find));
    }

    pub(super) fn format(&mut self, format: Format) {
        if !self.formats.contains(&format) {
            self.formats.push(format);
        }
        self.output.format = format;
    }

    pub(super) fn start(&mut self, url: &str) -> Result<(), UsageError> {
        let url = with_scheme(url);
        // Whether it may have a query is known at the end.
        Find::new().follow(Follow::Pages).start(&url)?;
        add_word(&mut self.identity, &url);
        self.starts.push(url.into_owned());
        Ok(())
    }

    /// Each file is for one purpose, or one would destroy what the other has written. Actions share their files.
    fn check_files(&self, expression: &Expression) -> Result<(), UsageError> {
        let summary = match &self.output.summary {
            SummaryFormat::JsonFile(path) => Some(path.as_path()),
            _ => None,
        };
        let one = [
            ("--state", self.state.as_deref()),
            ("--unread", self.output.unread.as_deref()),
            ("--summary json:FILE", summary),
            ("--report html", self.output.html_report.as_deref()),
        ];
        let one = one
            .into_iter()
            .filter_map(|(name, path)| Some((name, path?)));
        let actions = expression.files().iter().map(|path| ("an action", &**path));
        let mut known: HashMap<PathBuf, &str> = HashMap::new();
        for (name, path) in one.chain(actions) {
            if path.as_os_str() == "-" || path.starts_with("/dev") {
                continue;
            }
            let place = fs::canonicalize(path).or_else(|_| std::path::absolute(path));
            let first = known.insert(place.unwrap_or_else(|_| path.to_owned()), name);
            if let Some(first) = first.filter(|first| *first != name) {
                let path = path.display();
                return Err(UsageError(format!(
                    "{path}: one file for {first} and {name}"
                )));
            }
        }
        Ok(())
    }

    /// Whether an option was typed. The name is the last one in its row of the table.
    pub(super) fn is_typed(&self, option: &str) -> bool {
        self.typed.contains(option)
    }

    /// Whether a start uses TLS. Redirects and links may, too, but that is not known now.
    fn is_secure(&self) -> bool {
        let is_secure = |url: &String| url.to_ascii_lowercase().starts_with("https:");
        self.starts.iter().any(is_secure)
    }

    pub(super) fn has_start(&self) -> bool {
        !self.starts.is_empty() || self.may_be_empty
    }

    pub(super) fn identify(&mut self, word: &str) {
        add_word(&mut self.identity, word);
    }

    pub(super) fn identify_option(&mut self, name: &str, value: &str) {
        self.identify(name);
        self.identify(value);
    }
}

impl CommandLine for Args {
    const SYNTAX: Syntax = Syntax::FIND;
    const TABLE: &'static [Section<Self>] = options::TABLE;

    fn note(&mut self, option: &'static str) {
        self.typed.insert(option);
    }

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        self.start(&text(operand)?)
    }

    fn word(
        &mut self,
        word: &OsStr,
        rest: &mut dyn Iterator<Item = OsString>,
    ) -> Result<bool, UsageError> {
        let mut taken = vec![word.to_owned()];
        let mut rest = rest.inspect(|word| taken.push(word.clone()));
        let is_taken = self.expression.take(word, &mut rest)?;
        if is_taken {
            for word in &taken {
                match word.to_str() {
                    Some(word) => self.identify(word),
                    None => self.identify(&word.as_encoded_bytes().escape_ascii().to_string()),
                }
            }
        }
        Ok(is_taken)
    }
}

impl Crawls for Args {
    const TEXTS: CrawlTexts = CrawlTexts {
        rate: "0",
        patience: "900",
        retries: "9",
        connections: "8",
        timeout: "30",
        about_robots: "Whether the robots.txt of each host (RFC 9309) is read first and obeyed, with its Crawl-delay. URLs that it disallows are reported on standard error. Switch it off for mirrors that are meant to be read by programs.",
        about_patience: "The longest time from the first request for a URL to its last retry. While a host answers 429 or 503, its URLs are retried for this time, with any number of attempts. A Retry-After is never shortened: a URL for which the server asks for a longer wait is given up at once and reported. A host that answers 4 URLs so, and no other URL in between, is given up. So is a host that answers nothing but 429 and 503 for this time.",
        about_retries: "How many times a URL is requested again after a transport error, an incomplete listing or a 5xx status; see --retry-on. After status 410, which caches answer for some time while they are purged, it is requested at most twice more, each time after 2.5 to 5 seconds. A host that asks for a pause by 429 or 503 gets it, and such answers do not count, until --patience is over; but a URL that gets such answers again and again while other URLs of the host do not has failed. A host that was never reached is given up after at most 3 retries.",
        about_max_body: "The largest page, both as sent and after its content codings are decoded. A larger page is an error; it is never cut short. K, M and G are powers of 1024. Of a robots.txt, 500 KiB are read, whatever the limit.",
        about_allow_private: "Connect to private addresses too. Without this option, loopback addresses, private addresses and others that are not public are used only if a start or a proxy has them, whatever redirects or name servers say.",
    };

    fn crawl(&mut self) -> &mut CrawlOptions {
        &mut self.crawl
    }
}

/// The search with one more setting.
pub(super) fn with(mut find: Find, setting: CrawlSetting) -> Find {
    match setting {
        CrawlSetting::Robots(obey) => return find.robots(obey),
        CrawlSetting::Rate(rate) => return find.rate(rate),
        CrawlSetting::UserAgent(text) => return find.user_agent(&text),
        CrawlSetting::Timeout(time) => return find.timeout(time),
        CrawlSetting::MaxBody(bytes) => return find.max_body(bytes),
        CrawlSetting::AllowPrivate => return find.allow_private(),
        CrawlSetting::Retry(change) => change(find.retry()),
        CrawlSetting::Transfer(change) => change(find.transfer()),
    }
    find
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(args: &[&str]) -> Result<Request, String> {
        read(args.iter().map(OsString::from).collect(), |_| None).map_err(|error| error.0)
    }

    /// Why these arguments are refused.
    fn said(args: &[&str]) -> String {
        outcome(args).map(|_| ()).expect_err("wrong usage")
    }

    #[test]
    fn wrong_usage_is_named() {
        for (args, message) in [
            (&[][..], "no URL to start from"),
            (&["-name", "x"], "no URL to start from"),
            (
                &["h/x"],
                "h/x: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["./x"],
                "./x: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["http://h/?dir=x"],
                "http://h/?dir=x: a start with a query needs --links page",
            ),
            (
                &["http://u:p@h/"],
                "http://***@h/: user names and passwords are not supported",
            ),
            (
                &["http://h/", "-H", "Authorization secret"],
                "-H: a header needs a colon after its name",
            ),
        ] {
            assert_eq!(said(args), message, "{args:?}");
        }
        // After a start.
        let after_start = |line: &str| {
            let words: Vec<&str> = ["http://h/"].into_iter().chain(line.split(' ')).collect();
            said(&words)
        };
        for (line, message) in [
            ("-name", "-name needs a value"),
            ("--cacert", "--cacert needs a value"),
            (
                "-x ftp://p:1",
                "-x: \"ftp://p:1\" is not a proxy: the scheme ftp is not supported",
            ),
            ("-k=1", "option -k=1: is unknown"),
            ("-o", "nothing stands before -o"),
            ("-nmae x", "option -nmae: is unknown"),
            ("--json=yes", "option --json=yes: is unknown"),
            ("--name=x", "option --name=x: is unknown"),
            (
                "--unread x --report html ./x",
                "./x: one file for --unread and --report html",
            ),
            (
                "--state x --unread x",
                "x: one file for --state and --unread",
            ),
            (
                "--unread x -fprint x",
                "x: one file for --unread and an action",
            ),
            ("--limit-rate 1M", "--limit-rate: only with --download DIR"),
            ("--max-pages 5", "--max-pages: only with --links page"),
            (
                "--download x --download y",
                "--download y: the folder is x already",
            ),
            (
                "--json -printf %p",
                "--json: only for what -print prints; the actions of the expression do something else",
            ),
            ("-u secret", "-u: no colon between user and password"),
            ("-type x", "-type x: neither f, nor d, nor f,d"),
            ("--timeout 0", "--timeout 0: not a sensible time"),
            (
                "--max-body 99999999999G",
                "--max-body 99999999999G: too large",
            ),
            ("--overwrite", "--overwrite: only with --download DIR"),
            (
                "--rate 1/d",
                "--rate 1/d: not a rate such as 20, 0.5 or 30/m",
            ),
        ] {
            assert_eq!(after_start(line), message, "{line}");
        }
        for line in ["-maxdepth -1", "-mindepth x", "-j 0", "--max-body 1T"] {
            assert_eq!(
                after_start(line),
                format!("{line}: not a number that fits here")
            );
        }
        let regex = outcome(&["http://h/", "-regex", "\\("]).map(|_| ());
        assert!(regex.is_err_and(|message| message.starts_with("-regex \\(: ")));
    }

    #[test]
    fn the_arguments_of_a_job_are_its_expression_and_how_it_crawls() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            read_for_job(Find::new(), &words).map(|_| ())
        };
        for words in [
            &["-name", "*.iso"][..],
            &[
                "--links", "page", "-j", "2", "-type", "f", "-o", "-name", "x",
            ],
            &[],
        ] {
            assert_eq!(read(words), Ok(()), "{words:?}");
        }
        for words in [
            &["http://h/"][..],
            &["--json"],
            &["--state", "x"],
            &["--help"],
            &["-k"],
            &["-x", "http://p:1"],
            &["-H", "A: b"],
            &["-nmae", "x"],
        ] {
            assert!(read(words).is_err(), "{words:?}");
        }
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
            &["h.example/x"],
            &["127.0.0.1:80/x", "--rate", "0.25", "--json", "--json"],
            &["localhost:80", "--rate", "30/m"],
            &["[::1]:80", "--rate", "0"],
            &["http://h/", "--json", "-fprint", "/dev/stderr", "-print"],
            &["http://h/", "--max-pages", "5", "--links", "page"],
            &["http://h/?dir=x", "--links", "page"],
        ] {
            assert!(matches!(outcome(args), Ok(Request::Search(_))), "{args:?}");
        }
        for args in [&["--help"][..], &["http://h/", "-help"], &["-h"]] {
            assert!(matches!(outcome(args), Ok(Request::Show(_))), "{args:?}");
        }
    }

    #[test]
    fn a_kept_search_is_known_by_its_starts_and_its_expression() {
        let Ok(Request::Search(search)) = outcome(&[
            "-j8",
            "http://h/",
            "-name",
            "x",
            "-o",
            "-empty",
            "--links",
            "page",
        ]) else {
            panic!("a valid command line");
        };
        assert_eq!(search.identity, "http://h/ -name x -o -empty --links page");
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
            let Ok(Request::Search(search)) = outcome(&[&["http://h/"], args].concat()) else {
                panic!("{args:?}");
            };
            assert_eq!(search.output.progress, expected, "{args:?}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_wrong_usage() {
        let message = outcome(&["https://h/", "--cacert", "/no/such.pem"]).map(|_| ());
        let message = message.expect_err("there is no such file");
        assert!(message.starts_with("roots in /no/such.pem: "), "{message}");
    }
}
