//! The arguments of `crawler-cli find`, from the command line to a [`Find`].

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Args as _, Command};
use courser::{CookieJar, Rate};

use super::options::{Options, words};
use crate::cli::usage::{Failure, UsageError, usage};
use crate::cli::{self, is_letter_with_number, unknown, values_after};
use crate::report::{self, Format, Progress, SummaryFormat};
use find::expr::{Expression, Parser};
use find::{Find, Follow};
use plain::files::at_most;
use plain::text::nearest;

/// A search as the command line describes it.
pub(super) struct Search {
    pub(super) find: Find,
    pub(super) output: report::Options,
    pub(super) state: Option<PathBuf>,
    /// What is searched for and where, and where downloads go. The file of the search is for this alone.
    pub(super) identity: String,
}

/// Reads the arguments; `var` is the environment.
///
/// # Errors
/// The first argument that means nothing, or a combination of options that means nothing.
pub(super) fn read(
    words: &[OsString],
    var: impl Fn(&str) -> Option<String>,
) -> Result<Search, Failure> {
    let typed = Typed::read(words)?;
    let options: Options = cli::options("find", &typed.rest)?;
    Ok(search(options, typed, var)?)
}

/// Reads the arguments of a search that a job of the service runs, onto a search with the service's network settings. The
/// job has the start.
///
/// # Errors
/// An argument that means nothing, or that is about output, state or network settings.
pub(crate) fn read_for_job(mut find: Find, words: &[String]) -> Result<Find, String> {
    let other = "the arguments of a find job are its expression and how it crawls, without starts, output or --state";
    let words: Vec<_> = words.iter().map(OsString::from).collect();
    let mut read = || {
        let typed = Typed::read(&words)?;
        let options: Options = cli::options("find", &typed.rest)?;
        let has_start = !options.urls.is_empty() || !options.starts_from.is_empty();
        if has_start
            || options.state.is_some()
            || options.limit_rate.is_some()
            || options.output() != report::Options::default()
        {
            return Err(usage(other));
        }
        options.set(&mut find, false)?;
        options.crawl.apply_on_network(&mut find.settings)?;
        find.set_expression(typed.parser.finish().map_err(UsageError::from)?);
        Ok(())
    };
    match read() {
        Ok(()) => Ok(find),
        Err(Failure::Usage(error)) => Err(error.0),
        Err(_) => Err(other.to_owned()),
    }
}

fn search(
    options: Options,
    typed: Typed,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Search, UsageError> {
    let expression = typed.parser.finish()?;
    let mut output = options.output();
    if options.state.is_some() {
        check_state(&expression)?;
    }
    if output.format != Format::Lines && !expression.prints() {
        return Err(UsageError(format!(
            "{}: only for what -print prints; the actions of the expression do something else",
            output.format.option()
        )));
    }
    check_files(&options, &output, &expression)?;
    let starts = Starts::of(&options)?;
    if starts.urls.is_empty() && options.starts_from.is_empty() {
        return Err(UsageError("no URL to start from".into()));
    }
    let mut find = Find::new();
    options.set(&mut find, starts.has_unread)?;
    for url in &starts.urls {
        find = find.start(url)?;
    }
    let mut identity = starts.urls.clone();
    identity.extend(typed.expression);
    identity.extend(options.identity());
    if options.state.is_some() && output.format != Format::Lines {
        // The results of all runs are one list.
        identity.push(format!("(results as {:?})", output.format));
    }
    if expression.writes_past_results() && output.progress != Progress::Always {
        output.progress = Progress::Never;
    }
    find.set_expression(expression);
    // Cookies are kept for the time of the search and for their host alone, so that gates that set one open.
    find.settings.transfer.cookies = Some(CookieJar::new().with_public_suffixes(|_| true));
    find.policy.clock |= output.format == Format::Json;
    // Redirects and links may use TLS, too, but that is not known now.
    let is_secure = |url: &String| url.to_ascii_lowercase().starts_with("https:");
    let is_secure = starts.urls.iter().any(is_secure);
    let (crawl, folder) = (options.crawl, options.download.into_iter().next());
    crawl.apply_all(&mut find.settings, is_secure, var)?;
    // The folder is made when nothing else can be wrong.
    if let Some(folder) = folder {
        let named = |error| UsageError(format!("--download {}: {error}", folder.display()));
        find = find.download(&folder).map_err(named)?;
    }
    Ok(Search {
        find,
        output,
        state: options.state,
        identity: identity.join(" "),
    })
}

/// The words of a command line.
struct Typed {
    parser: Parser,
    /// The words of the expression.
    expression: Vec<String>,
    /// The words that clap reads.
    rest: Vec<OsString>,
}

impl Typed {
    /// Takes the words of the expression apart from the others.
    ///
    /// # Errors
    /// A word is part of no valid expression, or means nothing.
    fn read(words: &[OsString]) -> Result<Self, UsageError> {
        let command = Options::augment_args(Command::new("find"));
        let mut typed = Self {
            parser: Parser::new(SystemTime::now()),
            expression: Vec::new(),
            rest: Vec::new(),
        };
        let mut words = words.iter().cloned();
        // The test whose pattern is the last word.
        let mut pattern = None;
        while let Some(word) = words.next() {
            let mut taken = vec![shown(&word)];
            let mut values = words.by_ref().inspect(|value| taken.push(shown(value)));
            if typed.parser.take(&word, &mut values)? {
                pattern = PATTERNS.iter().find(|test| **test == taken[0]);
                typed.expression.append(&mut taken);
                continue;
            }
            let text = word.to_string_lossy().into_owned();
            // A pattern names entries of one folder, so a shell makes no path and no host with a port of it.
            let may_be_file = !text.starts_with('-') && !text.contains(['/', ':']);
            if let Some(test) = pattern.take().filter(|_| may_be_file) {
                return Err(UsageError(format!(
                    "{text}: neither a URL nor a word of the expression; unquoted pattern after {test}?"
                )));
            }
            let mut values = values_after(&command, &text);
            match text.as_bytes() {
                b"--" => {
                    values = usize::MAX;
                    typed.rest.push(word);
                }
                // What follows is not read.
                b"-h" | b"--help" | b"-help" | b"-V" | b"--version" | b"-version" | b"--man" => {
                    typed.rest.push(word);
                    break;
                }
                [b'-', letter, _, ..]
                    if *letter != b'-' && !is_letter_with_number(&command, &text) =>
                {
                    let near = nearest(&text, &self::words());
                    let near = near.map(|near| format!("; did you mean {near}?"));
                    return Err(unknown(&text, &near.unwrap_or_default()));
                }
                _ => typed.rest.push(word),
            }
            typed.rest.extend(words.by_ref().take(values));
        }
        Ok(typed)
    }
}

/// A word as it stands in the identity of a search.
fn shown(word: &OsStr) -> String {
    match word.to_str() {
        Some(word) => word.to_owned(),
        None => word.as_encoded_bytes().escape_ascii().to_string(),
    }
}

/// The URLs where a search starts.
#[derive(Default)]
struct Starts {
    urls: Vec<String>,
    /// Whether starts are what an earlier search could not read.
    has_unread: bool,
}

impl Starts {
    fn of(options: &Options) -> Result<Self, UsageError> {
        let mut starts = Self::default();
        for url in &options.urls {
            starts.add(url)?;
        }
        for name in &options.starts_from {
            let read = starts.add_list(name);
            read.map_err(|why| UsageError(format!("--starts-from {}: {why}", name.display())))?;
        }
        Ok(starts)
    }

    fn add(&mut self, url: &str) -> Result<(), UsageError> {
        let url = with_scheme(url);
        // Whether it may have a query is known at the end.
        let mut any = Find::new();
        any.policy.follow = Follow::Pages;
        any.start(&url)?;
        self.urls.push(url.into_owned());
        Ok(())
    }

    /// `--starts-from`
    fn add_list(&mut self, name: &Path) -> Result<(), String> {
        let read = match name.as_os_str() == "-" {
            true => at_most(LONGEST_LIST, io::stdin().lock()),
            false => File::open(name).and_then(|file| at_most(LONGEST_LIST, file)),
        };
        let list = read.map_err(|error| error.to_string())?;
        let list = list.ok_or("too large")?;
        let end = if list.contains(&0) { 0 } else { b'\n' };
        let mut seen = HashSet::new();
        for (number, line) in list.split(|&b| b == end).enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let wrong = |why: &str| format!("line {}: {why}", number + 1);
            let text = str::from_utf8(line).map_err(|_| wrong("not UTF-8"))?;
            let url = match text.starts_with('{') {
                true => unread_url(text).ok_or_else(|| wrong("no object with a url"))?,
                false => text.to_owned(),
            };
            self.has_unread |= text.starts_with('{');
            // The same URL can have been unread for two reasons.
            if seen.insert(url.clone()) {
                self.add(&url).map_err(|error| wrong(&error.0))?;
            }
        }
        Ok(())
    }
}

/// The URL in a line of `--unread`.
fn unread_url(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(line["url"].as_str()?.to_owned())
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

/// Each file is for one purpose, or one would destroy what the other has written. Actions share their files.
fn check_files(
    options: &Options,
    output: &report::Options,
    expression: &Expression,
) -> Result<(), UsageError> {
    let summary = match &output.summary {
        SummaryFormat::JsonFile(path) => Some(path.as_path()),
        _ => None,
    };
    let one = [
        ("--state", options.state.as_deref()),
        ("--unread", output.unread.as_deref()),
        ("--summary json:FILE", summary),
        ("--report html", output.html_report.as_deref()),
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

impl Options {
    /// How the search is shown.
    fn output(&self) -> report::Options {
        report::Options {
            format: match (self.null, self.json) {
                (true, _) => Format::Nul,
                (false, true) => Format::Json,
                (false, false) => Format::Lines,
            },
            progress: self.progress.unwrap_or_default(),
            summary: self.summary.clone().unwrap_or_default(),
            verbose: self.verbose,
            unread: self.unread.clone(),
            html_report: self.report.last().map(PathBuf::from),
        }
    }

    /// Sets what the search does, but for its expression and its network. `has_unread`: starts are what an earlier search
    /// could not read.
    ///
    /// # Errors
    /// A combination of options that means nothing.
    fn set(&self, find: &mut Find, has_unread: bool) -> Result<(), UsageError> {
        self.check(has_unread)?;
        let policy = &mut find.policy;
        policy.follow = self.links.unwrap_or_default();
        policy.accept_pages = self.accept_pages;
        policy.limits.linked_pages = self.max_pages.unwrap_or(policy.limits.linked_pages);
        if let Some(classes) = &self.retry_on {
            find.settings.host.retry.classes = classes.clone();
        }
        find.overwrite = self.overwrite;
        if let Some(limit) = self.limit_rate {
            let limit = NonZeroU64::new(limit);
            find.settings.transfer.bytes_in = limit.map(Rate::per_second);
        }
        Ok(())
    }

    /// Checks that each option has what it needs. Without it, what the user wants is not what would happen.
    ///
    /// # Errors
    /// The first option that has not.
    fn check(&self, has_unread: bool) -> Result<(), UsageError> {
        let has_folder = !self.download.is_empty();
        let follows = self.links == Some(Follow::Pages);
        let mut kinds = self.report.iter().step_by(2);
        let other = kinds.find(|kind| *kind != "html");
        let error = match (&*self.download, other) {
            ([first, second, ..], _) => {
                let (first, second) = (first.display(), second.display());
                format!("--download {second}: the folder is {first} already")
            }
            (_, Some(kind)) => {
                format!("--report {}: only html is known", kind.display())
            }
            _ if self.limit_rate.is_some() && !has_folder => {
                "--limit-rate: only with --download DIR".to_owned()
            }
            _ if self.overwrite && !has_folder => "--overwrite: only with --download DIR".to_owned(),
            _ if self.max_pages.is_some() && !follows => {
                "--max-pages: only with --links page".to_owned()
            }
            _ if has_folder && has_unread => "--download: not with starts that --unread has written: the names of files depend on the starts of the whole search; the same command as before downloads what is missing".to_owned(),
            _ => return Ok(()),
        };
        Err(UsageError(error))
    }

    /// The options that decide what is found.
    fn identity(&self) -> Vec<String> {
        let links = self.links.map(|follow| match follow {
            Follow::Listings => "listing".to_owned(),
            Follow::Pages => "page".to_owned(),
        });
        let most = self.max_pages.map(|most| most.to_string());
        let folder = self.download.first();
        let folder = folder.map(|folder| shown(folder.as_os_str()));
        let accepts = self.accept_pages.then(|| "--accept-pages".to_owned());
        let named = [
            ("--links", links),
            ("--max-pages", most),
            ("--download", folder),
        ];
        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value?)));
        named.chain(accepts).collect()
    }
}

/// Tests of a pattern, which a shell replaces by names of files if no quotes are around the pattern.
const PATTERNS: [&str; 8] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
];

/// Bytes of a list of starts.
const LONGEST_LIST: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(args: &[&str]) -> Result<Search, String> {
        let words: Vec<_> = args.iter().map(OsString::from).collect();
        read(&words, |_| None).map_err(|failure| match failure {
            Failure::Usage(error) => error.0,
            Failure::Text(_) => "a text".to_owned(),
            failure => panic!("{failure:?}"),
        })
    }

    /// Why these arguments are refused.
    fn said(args: &[&str]) -> String {
        outcome(args).map(|_| ()).expect_err("wrong usage")
    }

    #[test]
    fn wrong_usage_is_named() {
        assert_eq!(said(&[]), "no URL to start from");
        let no_colon = said(&["http://h/", "-H", "Authorization secret"]);
        assert_eq!(no_colon, "-H: a header needs a colon after its name");
        for (start, message) in [
            (
                "h/x",
                "not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            ("http://h/?dir=x", "a start with a query needs --links page"),
        ] {
            assert_eq!(said(&[start]), format!("{start}: {message}"));
        }
        let secret = "http://***@h/: user names and passwords are not supported";
        assert_eq!(said(&["http://u:p@h/"]), secret);
        // After a start.
        let after_start = |line: &str| {
            let words: Vec<&str> = ["http://h/"].into_iter().chain(line.split(' ')).collect();
            said(&words)
        };
        let table = r#"
-x ftp://p:1 => -x: "ftp://p:1" is not a proxy: the scheme ftp is not supported
-k=1 => option -k=1: is unknown
-o => nothing stands before -o
-nmae x => option -nmae: is unknown; did you mean -name?
--jsn => unexpected argument '--jsn' found; a similar argument exists: '--json'
-name a.iso b.iso => b.iso: neither a URL nor a word of the expression; unquoted pattern after -name?
--unread x --report html ./x => ./x: one file for --unread and --report html
--state x --unread x => x: one file for --state and --unread
--unread x -fprint x => x: one file for --unread and an action
--limit-rate 1M => --limit-rate: only with --download DIR
--max-pages 5 => --max-pages: only with --links page
--download x --download y => --download y: the folder is x already
--json -printf %p => --json: only for what -print prints; the actions of the expression do something else
-u secret => -u: no colon between user and password
--timeout 0 => --timeout 0: not a sensible time
--max-body 99999999999G => --max-body 99999999999G: too large
--overwrite => --overwrite: only with --download DIR
--report pdf x --report html y => --report pdf: only html is known
--rate 1/d => --rate 1/d: not a rate such as 20, 0.5 or 30/m
"#;
        for row in table.trim().lines() {
            let (line, message) = row.split_once(" => ").expect("a row");
            assert_eq!(after_start(line), message, "{line}");
        }
        for line in ["-maxdepth -1", "-mindepth x", "-j 0", "--max-body 1T"] {
            assert_eq!(
                after_start(line),
                format!("{line}: not a number that fits here")
            );
        }
    }

    #[test]
    fn wrong_usage_makes_no_folder() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("x");
        let folder_name = folder.to_str().expect("text");
        said(&["http://h/", "--download", folder_name, "-x", "ftp://p:1"]);
        assert!(!folder.exists());
    }

    #[test]
    fn the_arguments_of_a_job_are_its_expression_and_how_it_crawls() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            read_for_job(Find::new(), &words).map(|_| ())
        };
        for line in ["-name *.iso", "--links page -j 2 -type f -o -name x", ""] {
            assert_eq!(read(line), Ok(()), "{line}");
        }
        let of_a_run = "http://h/,--json,--state x,--help,-k,-x http://p:1,-H A:b,-nmae x";
        for line in of_a_run.split(',') {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn options_go_anywhere() {
        for line in [
            "http://h/a http://h/b -name *.iso -type f",
            "-j 16 --timeout=1.5 -j8 http://h/ --max-body 1M -print0",
            "-name -x -- http://h/",
            "http://h/?C=N;O=D",
            "h.example/x",
            "127.0.0.1:80/x --rate 0.25 --json --json",
            "-name *.iso localhost:80 --rate 30/m",
            "http://h/ -path x h.example/pub/ --report=html x",
            "[::1]:80 --rate 0",
            "http://h/ --json -fprint /dev/stderr -print",
        ] {
            let args: Vec<&str> = line.split(' ').collect();
            assert_eq!(outcome(&args).map(|_| ()), Ok(()), "{line}");
        }
        for args in [
            &["--help", "-perm", "1"][..],
            &["http://h/", "-help"],
            &["-h", "--x"],
        ] {
            assert_eq!(said(args), "a text", "{args:?}");
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
            let Ok(search) = outcome(&[&["http://h/"], args].concat()) else {
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
