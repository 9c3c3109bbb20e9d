//! What was typed: curl's option names, their bundles and their order, as a [`LowArgs`].
//!
//! One table names every option, so that the parser, the help text and the `--no-` forms cannot disagree. What an
//! option means together with others (and every file that it names) is left to [`super::plan`].

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use courser::{Family, TlsVersion};

use super::rate::Rate;

/// Everything typed on one command line.
#[derive(Debug, Default)]
pub(super) struct LowArgs {
    pub(super) global: Global,
    /// The options and URLs between two `--next`. Invariant: never empty after [`parse`].
    pub(super) groups: Vec<Group>,
    pub(super) help: bool,
}

/// Options that hold for every URL, wherever they stand.
#[derive(Debug, Default)]
pub(super) struct Global {
    pub(super) silent: bool,
    pub(super) show_error: bool,
    pub(super) verbose: bool,
    pub(super) fail_early: bool,
    pub(super) rate: Option<Rate>,
}

/// Options that hold for the URLs of one group.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) urls: Vec<OsString>,
    /// Nothing is the last name in the URL.
    pub(super) outputs: Vec<Option<OsString>>,
    pub(super) method: Option<OsString>,
    pub(super) head: bool,
    pub(super) headers: Vec<OsString>,
    pub(super) data: Vec<Data>,
    pub(super) json: bool,
    pub(super) referer: Option<OsString>,
    pub(super) range: Option<OsString>,
    pub(super) bearer: Option<OsString>,
    pub(super) user_agent: Option<OsString>,
    pub(super) user: Option<OsString>,
    pub(super) include: bool,
    pub(super) fail: bool,
    pub(super) fail_with_body: bool,
    pub(super) path_as_is: bool,
    pub(super) max_time: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_filesize: Option<u64>,
    pub(super) unix_socket: Option<OsString>,
    pub(super) write_out: Option<OsString>,
    pub(super) uploads: Vec<OsString>,
    pub(super) cookies: Vec<OsString>,
    pub(super) cookie_jar: Option<OsString>,
    pub(super) compressed: bool,
    pub(super) location: bool,
    pub(super) location_trusted: bool,
    /// Below 0 is without limit.
    pub(super) max_redirs: Option<i64>,
    pub(super) post301: bool,
    pub(super) post302: bool,
    pub(super) post303: bool,
    pub(super) insecure: bool,
    pub(super) cacert: Option<OsString>,
    pub(super) crlfile: Option<OsString>,
    pub(super) cert: Option<OsString>,
    pub(super) key: Option<OsString>,
    pub(super) tls_min: Option<TlsVersion>,
    pub(super) tls_max: Option<TlsVersion>,
    pub(super) resolve: Vec<OsString>,
    pub(super) connect_to: Vec<OsString>,
    pub(super) family: Option<Family>,
    pub(super) proxy: Option<OsString>,
    pub(super) proxy_user: Option<OsString>,
    pub(super) noproxy: Option<OsString>,
    pub(super) proxy_headers: Vec<OsString>,
    pub(super) proxy_tunnel: bool,
    pub(super) suppress_connect_headers: bool,
    pub(super) proxy_insecure: bool,
    pub(super) proxy_cacert: Option<OsString>,
    pub(super) proxy_crlfile: Option<OsString>,
    pub(super) proxy_cert: Option<OsString>,
    pub(super) proxy_key: Option<OsString>,
    pub(super) retries: u32,
    pub(super) retry_delay: Option<Duration>,
    pub(super) retry_max_time: Option<Duration>,
    pub(super) retry_all_errors: bool,
    pub(super) retry_connrefused: bool,
}

/// One piece of a request body, still as typed: text, or `@` and a file name.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Data {
    /// `-d`: a file loses its line ends and NUL bytes.
    Ascii(OsString),
    /// `--data-binary`: a file is sent as it is.
    Binary(OsString),
    /// `--data-raw`: an `@` is one.
    Raw(OsString),
    /// `--json`: as `--data-binary`, and joined to what is before it by nothing.
    Json(OsString),
}

/// A command line that means nothing. `Display` is what the user reads.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Usage(pub(super) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a command line, without the names of the program and of the command.
///
/// # Errors
/// The first argument that cannot be understood, or a group without a URL.
pub(super) fn parse(args: impl Iterator<Item = OsString>) -> Result<LowArgs, Usage> {
    let mut parser = Parser {
        args,
        low: LowArgs::default(),
        group: Group::default(),
    };
    let mut options_ended = false;
    while let Some(arg) = parser.args.next() {
        match arg.as_bytes() {
            _ if options_ended => parser.group.urls.push(arg),
            b"--" => options_ended = true,
            [b'-', b'-', long @ ..] => parser.long(long)?,
            [b'-', bundle @ ..] if !bundle.is_empty() => parser.bundle(bundle)?,
            _ => parser.group.urls.push(arg),
        }
    }
    if !parser.low.help {
        parser.end_group("no URL specified")?;
    }
    Ok(parser.low)
}

/// The help text, made from the option table.
pub(super) fn help() -> String {
    let mut text = String::from(
        "Usage: crawler-cli get [options...] <url>...\n\n\
         Fetches each URL in order, with curl's options and exit codes. A URL without a scheme is\nan http one.\n",
    );
    for option in OPTIONS {
        if let Some((_, heading)) = HEADINGS.iter().find(|(first, _)| *first == option.long) {
            text.push_str(&format!("\n{heading}:\n"));
        }
        let short = match option.short {
            Some(letter) => format!("-{}, ", char::from(letter)),
            None => "    ".into(),
        };
        let value = match option.action {
            Action::Value(name, _) => format!(" <{name}>"),
            _ => String::new(),
        };
        let names = format!("{short}--{}{value}", option.long);
        text.push_str(&format!("  {names:<34} {}\n", option.help));
    }
    text.push_str(HELP_END);
    text
}

/// The option table for other uses.
pub(super) fn options() -> impl Iterator<
    Item = (
        Option<char>,
        &'static str,
        Option<&'static str>,
        &'static str,
    ),
> {
    OPTIONS.iter().map(|option| {
        let value = match option.action {
            Action::Value(name, _) => Some(name),
            _ => None,
        };
        (
            option.short.map(char::from),
            option.long,
            value,
            option.help,
        )
    })
}

struct Parser<I> {
    args: I,
    low: LowArgs,
    group: Group,
}

impl<I: Iterator<Item = OsString>> Parser<I> {
    /// `--name` or `--no-name`, without the dashes.
    fn long(&mut self, name: &[u8]) -> Result<(), Usage> {
        let typed = || format!("--{}", name.escape_ascii());
        if let Some(option) = OPTIONS.iter().find(|o| o.long.as_bytes() == name) {
            return self.apply(option, &typed(), None, true);
        }
        let positive = name.strip_prefix(b"no-").unwrap_or(name);
        match OPTIONS.iter().find(|o| o.long.as_bytes() == positive) {
            Some(option) if matches!(option.action, Action::Switch(_)) => {
                self.apply(option, &typed(), None, false)
            }
            Some(_) => Err(Usage(format!(
                "option {}: used '--no-' for option that isn't a boolean",
                typed()
            ))),
            None => Err(Usage(format!("option {}: is unknown", typed()))),
        }
    }

    /// Letters after one dash: switches, and at most one option that takes the rest (or the next argument).
    fn bundle(&mut self, letters: &[u8]) -> Result<(), Usage> {
        for (at, letter) in letters.iter().enumerate() {
            let typed = format!("-{}", letter.escape_ascii());
            let Some(option) = OPTIONS.iter().find(|o| o.short == Some(*letter)) else {
                return Err(Usage(format!("option {typed}: is unknown")));
            };
            if matches!(option.action, Action::Value(..)) {
                let rest = &letters[at + 1..];
                let rest = (!rest.is_empty()).then(|| OsStr::from_bytes(rest).to_owned());
                return self.apply(option, &typed, rest, true);
            }
            self.apply(option, &typed, None, true)?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        option: &Opt,
        typed: &str,
        attached: Option<OsString>,
        on: bool,
    ) -> Result<(), Usage> {
        match option.action {
            Action::Switch(set) => set(&mut self.low.global, &mut self.group, on),
            Action::Value(_, set) => {
                let Some(value) = attached.or_else(|| self.args.next()) else {
                    return Err(Usage(format!("option {typed}: requires parameter")));
                };
                set(&mut self.low.global, &mut self.group, value)
                    .map_err(|why| Usage(format!("option {typed}: {why}")))?;
            }
            Action::Next => self.end_group("missing URL before --next")?,
            Action::Help => self.low.help = true,
        }
        Ok(())
    }

    fn end_group(&mut self, if_empty: &str) -> Result<(), Usage> {
        let group = std::mem::take(&mut self.group);
        if group.urls.is_empty() {
            return Err(Usage(if_empty.into()));
        }
        self.low.groups.push(group);
        Ok(())
    }
}

struct Opt {
    short: Option<u8>,
    long: &'static str,
    action: Action,
    help: &'static str,
}

enum Action {
    /// Takes no value; `--no-...` turns it off.
    Switch(fn(&mut Global, &mut Group, bool)),
    /// Takes a value, which the help text calls by the given name.
    Value(&'static str, SetValue),
    Next,
    Help,
}

type SetValue = fn(&mut Global, &mut Group, OsString) -> Result<(), &'static str>;

const fn opt(short: u8, long: &'static str, action: Action, help: &'static str) -> Opt {
    let short = if short == b' ' { None } else { Some(short) };
    Opt {
        short,
        long,
        action,
        help,
    }
}

use Action::{Help, Next, Switch, Value};

/// Every option, in the order of the help text.
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt(b'X', "request", Value("method", |_, g, v| set(&mut g.method, v)), "Request method to use"),
    opt(b'I', "head", Switch(|_, g, on| g.head = on), "Ask for the head only, and print it"),
    opt(b'H', "header", Value("header/@file", |_, g, v| push(&mut g.headers, v)), "Send this header; 'Name:' removes, 'Name;' sends it empty"),
    opt(b'd', "data", Value("data/@file", |_, g, v| push(&mut g.data, Data::Ascii(v))), "POST this, without the line ends of a file; @- is stdin"),
    opt(b' ', "data-ascii", Value("data/@file", |_, g, v| push(&mut g.data, Data::Ascii(v))), "Same as --data"),
    opt(b' ', "data-binary", Value("data/@file", |_, g, v| push(&mut g.data, Data::Binary(v))), "POST this byte for byte; @- is stdin"),
    opt(b' ', "data-raw", Value("data", |_, g, v| push(&mut g.data, Data::Raw(v))), "POST this; an @ is nothing special"),
    opt(b' ', "json", Value("data/@file", |_, g, v| { g.json = true; push(&mut g.data, Data::Json(v)) }), "POST this as JSON, and ask for JSON"),
    opt(b'T', "upload-file", Value("file", |_, g, v| push(&mut g.uploads, v)), "PUT this file, once for each URL; - is stdin"),
    opt(b'A', "user-agent", Value("name", |_, g, v| set(&mut g.user_agent, v)), "Send this User-Agent; '' sends none"),
    opt(b'u', "user", Value("user:password", |_, g, v| set(&mut g.user, v)), "Basic authentication"),
    opt(b' ', "oauth2-bearer", Value("token", |_, g, v| set(&mut g.bearer, v)), "Bearer authentication"),
    opt(b'e', "referer", Value("url", |_, g, v| set(&mut g.referer, v)), "Send this Referer"),
    opt(b'r', "range", Value("range", |_, g, v| set(&mut g.range, v)), "Ask for these bytes only, as in 0-499 or -500"),
    opt(b'b', "cookie", Value("data/file", |_, g, v| push(&mut g.cookies, v)), "Send 'name=value', or the cookies of a Netscape file"),
    opt(b'c', "cookie-jar", Value("file", |_, g, v| set(&mut g.cookie_jar, v)), "Write the cookies to this file at the end"),
    opt(b' ', "compressed", Switch(|_, g, on| g.compressed = on), "Ask for a compressed response and decode it"),
    opt(b' ', "path-as-is", Switch(|_, g, on| g.path_as_is = on), "Keep /../ and /./ in the path"),
    opt(b'g', "globoff", Switch(|_, _, _| ()), "Leave {} and [] in URLs alone, as without this option"),
    opt(b' ', "url", Value("url", |_, g, v| push(&mut g.urls, v)), "URL to fetch, as without this option"),
    opt(b' ', "unix-socket", Value("path", |_, g, v| set(&mut g.unix_socket, v)), "Connect through this Unix domain socket"),
    opt(b' ', "http1.1", Switch(|_, _, _| ()), "Speak HTTP/1.1, as without this option"),
    opt(b'L', "location", Switch(|_, g, on| g.location = on), "Follow redirects"),
    opt(b' ', "location-trusted", Switch(|_, g, on| (g.location, g.location_trusted) = (on, on)), "Follow, with credentials for other hosts too"),
    opt(b' ', "max-redirs", Value("number", |_, g, v| integer(&v).map(|n| g.max_redirs = Some(n))), "Follow so many; default 50, -1 is without limit"),
    opt(b' ', "post301", Switch(|_, g, on| g.post301 = on), "Do not turn POST into GET after a 301"),
    opt(b' ', "post302", Switch(|_, g, on| g.post302 = on), "Do not turn POST into GET after a 302"),
    opt(b' ', "post303", Switch(|_, g, on| g.post303 = on), "Do not turn POST into GET after a 303"),
    opt(b' ', "retry", Value("number", |_, g, v| count(&v).map(|n| g.retries = n)), "Try again so often after passing problems"),
    opt(b' ', "retry-delay", Value("seconds", |_, g, v| duration(&mut g.retry_delay, &v)), "Wait this long in between, not 1, 2, 4... s"),
    opt(b' ', "retry-max-time", Value("seconds", |_, g, v| duration(&mut g.retry_max_time, &v)), "Start no retry after this time"),
    opt(b' ', "retry-connrefused", Switch(|_, g, on| g.retry_connrefused = on), "Retry refused connections too"),
    opt(b' ', "retry-all-errors", Switch(|_, g, on| g.retry_all_errors = on), "Retry after any error"),
    opt(b'k', "insecure", Switch(|_, g, on| g.insecure = on), "Accept any certificate"),
    opt(b' ', "cacert", Value("file", |_, g, v| set(&mut g.cacert, v)), "Trust these authorities and no others"),
    opt(b' ', "crlfile", Value("file", |_, g, v| set(&mut g.crlfile, v)), "Check certificates against this revocation list"),
    opt(b'E', "cert", Value("file", |_, g, v| set(&mut g.cert, v)), "Show this certificate if asked"),
    opt(b' ', "key", Value("file", |_, g, v| set(&mut g.key, v)), "Private key of --cert, if in a file of its own"),
    opt(b' ', "tlsv1.2", Switch(|_, g, on| g.tls_min = on.then_some(TlsVersion::V1_2)), "TLS 1.2 or later"),
    opt(b' ', "tlsv1.3", Switch(|_, g, on| g.tls_min = on.then_some(TlsVersion::V1_3)), "TLS 1.3 or later"),
    opt(b' ', "tls-min", Value("version", |_, g, v| tls_version(&mut g.tls_min, &v)), "Lowest version of TLS: 1.2 or 1.3"),
    opt(b' ', "tls-max", Value("version", |_, g, v| tls_version(&mut g.tls_max, &v)), "Highest version of TLS: 1.2 or 1.3"),
    opt(b'4', "ipv4", Switch(|_, g, on| g.family = on.then_some(Family::V4)), "Connect to IPv4 addresses only"),
    opt(b'6', "ipv6", Switch(|_, g, on| g.family = on.then_some(Family::V6)), "Connect to IPv6 addresses only"),
    opt(b' ', "resolve", Value("host:port:addr,...", |_, g, v| push(&mut g.resolve, v)), "The host, which may be *, has these addresses"),
    opt(b' ', "connect-to", Value("h:p:h:p", |_, g, v| push(&mut g.connect_to, v)), "Connect to the second host and port for the first"),
    opt(b'x', "proxy", Value("url", |_, g, v| set(&mut g.proxy, v)), "http, https, socks5 or socks5h proxy; '' is none"),
    opt(b'U', "proxy-user", Value("user:password", |_, g, v| set(&mut g.proxy_user, v)), "Credentials for the proxy"),
    opt(b' ', "proxy-header", Value("header/@file", |_, g, v| push(&mut g.proxy_headers, v)), "Send this header to the proxy alone"),
    opt(b'p', "proxytunnel", Switch(|_, g, on| g.proxy_tunnel = on), "Ask an HTTP proxy for a tunnel for http too"),
    opt(b' ', "proxy-insecure", Switch(|_, g, on| g.proxy_insecure = on), "Accept any certificate of an https proxy"),
    opt(b' ', "proxy-cacert", Value("file", |_, g, v| set(&mut g.proxy_cacert, v)), "Trust these authorities with an https proxy"),
    opt(b' ', "proxy-crlfile", Value("file", |_, g, v| set(&mut g.proxy_crlfile, v)), "Check its certificates against this list"),
    opt(b' ', "proxy-cert", Value("file", |_, g, v| set(&mut g.proxy_cert, v)), "Show an https proxy this certificate if asked"),
    opt(b' ', "proxy-key", Value("file", |_, g, v| set(&mut g.proxy_key, v)), "Private key of --proxy-cert"),
    opt(b' ', "noproxy", Value("hosts", |_, g, v| set(&mut g.noproxy, v)), "Hosts that are reached without it; * is all"),
    opt(b' ', "socks5", Value("host:port", |_, g, v| scheme(&mut g.proxy, "socks5://", &v)), "Same as -x socks5://"),
    opt(b' ', "socks5-hostname", Value("host:port", |_, g, v| scheme(&mut g.proxy, "socks5h://", &v)), "Same as -x socks5h://"),
    opt(b'o', "output", Value("file", |_, g, v| push(&mut g.outputs, Some(v))), "Write to this file; once for each URL; - is stdout"),
    opt(b'O', "remote-name", Switch(|_, g, on| if on { g.outputs.push(None) }), "Write to a file named as the last part of the URL's path"),
    opt(b'i', "include", Switch(|_, g, on| g.include = on), "Print response heads too"),
    opt(b' ', "suppress-connect-headers", Switch(|_, g, on| g.suppress_connect_headers = on), "Leave out a proxy's answer to CONNECT of -i"),
    opt(b'f', "fail", Switch(|_, g, on| g.fail = on), "Exit 22 without a body on a status of 400 or more"),
    opt(b' ', "fail-with-body", Switch(|_, g, on| g.fail_with_body = on), "The same, with the body"),
    opt(b'w', "write-out", Value("format/@file", |_, g, v| set(&mut g.write_out, v)), "Print this after each URL, with %{variables}"),
    opt(b's', "silent", Switch(|a, _, on| a.silent = on), "Print no errors"),
    opt(b'S', "show-error", Switch(|a, _, on| a.show_error = on), "Print errors even with -s"),
    opt(b'v', "verbose", Switch(|a, _, on| a.verbose = on), "Show the heads and what happens on stderr"),
    opt(b'm', "max-time", Value("seconds", |_, g, v| duration(&mut g.max_time, &v)), "Longest time for each URL"),
    opt(b' ', "connect-timeout", Value("seconds", |_, g, v| duration(&mut g.connect_timeout, &v)), "Longest time to connect"),
    opt(b' ', "max-filesize", Value("bytes", |_, g, v| size(&mut g.max_filesize, &v)), "Longest body; k, M, G, T, P multiply by 1024"),
    opt(b' ', "rate", Value("N/unit", |a, _, v| rate(&mut a.rate, &v)), "Start at most N URLs per s, m, h or d"),
    opt(b' ', "fail-early", Switch(|a, _, on| a.fail_early = on), "Stop at the first URL that fails"),
    opt(b':', "next", Next, "Start a new group of options and URLs"),
    opt(b'h', "help", Help, "Print this"),
];

/// What stands above some options, each by its long name.
const HEADINGS: &[(&str, &str)] = &[
    ("request", "The request"),
    ("location", "Redirects and repetition"),
    ("insecure", "TLS"),
    ("ipv4", "The way to the server"),
    ("proxy", "Proxies"),
    ("output", "The result"),
    ("max-time", "Limits"),
    ("fail-early", "The command line"),
];

/// What is no option.
const HELP_END: &str = "
The environment: http_proxy, https_proxy, all_proxy and no_proxy hold without -x and --noproxy. The
authorities to trust are Mozilla's, as compiled in, unless CURL_CA_BUNDLE or SSL_CERT_FILE names a
file of others; system authorities are often in /etc/ssl/certs/ca-certificates.crt.

Exit status, of the last URL: 0 it was fetched, 2 wrong usage, 3 no URL, 6 no such host (5 proxy),
7 not connected, 18 cut short, 22 a status of 400 or more with -f, 28 out of time, 35 TLS failed,
47 too many redirects, 52 no answer, 56 a broken answer, 60 a certificate that is not trusted, 97 a
SOCKS proxy refused; the others as curl's.

Examples:
  crawler-cli get -L --compressed https://www.example.com/
  crawler-cli get -sS -o page -w '%{http_code} %{time_total}\\n' https://www.example.com/
  crawler-cli get -x socks5h://127.0.0.1:1080 https://www.example.com/
";

fn set(to: &mut Option<OsString>, value: OsString) -> Result<(), &'static str> {
    *to = Some(value);
    Ok(())
}

fn push<T>(to: &mut Vec<T>, value: T) -> Result<(), &'static str> {
    to.push(value);
    Ok(())
}

fn rate(to: &mut Option<Rate>, value: &OsStr) -> Result<(), &'static str> {
    *to = Some(value.to_str().unwrap_or_default().parse()?);
    Ok(())
}

/// A proxy given without its scheme.
fn scheme(to: &mut Option<OsString>, scheme: &str, value: &OsStr) -> Result<(), &'static str> {
    let mut proxy = OsString::from(scheme);
    proxy.push(value);
    set(to, proxy)
}

fn tls_version(to: &mut Option<TlsVersion>, value: &OsStr) -> Result<(), &'static str> {
    *to = match value.to_str() {
        Some("default") => None,
        Some("1.2") => Some(TlsVersion::V1_2),
        Some("1.3") => Some(TlsVersion::V1_3),
        _ => return Err("expected 1.2 or 1.3"),
    };
    Ok(())
}

fn integer(value: &OsStr) -> Result<i64, &'static str> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or("expected a proper numerical parameter")
}

fn count(value: &OsStr) -> Result<u32, &'static str> {
    let number = integer(value)?;
    if number < 0 {
        return Err("expected a positive numerical parameter");
    }
    u32::try_from(number).map_err(|_| "number is too large")
}

/// Seconds with an optional fraction. 0 means no limit, as in curl.
fn duration(to: &mut Option<Duration>, value: &OsStr) -> Result<(), &'static str> {
    const BAD: &str = "expected a proper numerical parameter";
    let text = value.to_str().ok_or(BAD)?;
    if text.starts_with('-') {
        return Err("expected a positive numerical parameter");
    }
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = text.parse().map_err(|_| BAD)?;
    if !plain {
        return Err(BAD);
    }
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| "number is too large")?;
    *to = (!duration.is_zero()).then_some(duration);
    Ok(())
}

/// Bytes with an optional unit. 0 means no limit, as in curl.
fn size(to: &mut Option<u64>, value: &OsStr) -> Result<(), &'static str> {
    let text = value.to_str().unwrap_or_default();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" | "b" | "B" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        "p" | "P" => 50,
        _ => return Err("unsupported unit, use B, k, M, G, T or P"),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("expected a proper numerical parameter");
    }
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or("number is too large")?;
    *to = (bytes > 0).then_some(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn low(args: &[&str]) -> Result<LowArgs, Usage> {
        parse(args.iter().map(OsString::from))
    }

    fn first(args: &[&str]) -> Group {
        low(args).unwrap().groups.remove(0)
    }

    #[test]
    fn bundles_take_switches_and_then_one_value() {
        let args = low(&["-sSfo", "file", "u1", "-Iofile2", "u2", "-ih"]).unwrap();
        assert!(args.global.silent && args.global.show_error && args.help);
        let group = first(&["-sSfo", "file", "u1", "-Iofile2", "u2"]);
        assert!(group.fail && group.head && !group.include);
        assert_eq!(group.outputs, [Some("file".into()), Some("file2".into())]);
        assert_eq!(group.urls, ["u1", "u2"]);
    }

    #[test]
    fn next_starts_a_group_but_keeps_the_global_options() {
        let args = low(&["-sf", "-A", "x", "u1", "--next", "-i", "u2", "-:", "u3"]).unwrap();
        assert!(args.global.silent);
        let [one, two, three] = &args.groups[..] else {
            panic!("{args:?}");
        };
        assert!(one.fail && one.user_agent.is_some() && !one.include);
        assert!(!two.fail && two.user_agent.is_none() && two.include);
        assert!(!three.include);
        assert_eq!(three.urls, ["u3"]);
    }

    #[test]
    fn two_dashes_end_the_options_and_one_is_an_operand() {
        let group = first(&["-", "--", "-f", "--", "--next"]);
        assert!(!group.fail);
        assert_eq!(group.urls, ["-", "-f", "--", "--next"]);
    }

    #[test]
    fn a_value_may_look_like_an_option_and_need_not_be_unicode() {
        let mut args = vec![OsString::from("-o"), "-f".into(), "-d".into()];
        args.push(OsString::from_vec(vec![0xff, 0]));
        args.push("u".into());
        let group = parse(args.into_iter()).unwrap().groups.remove(0);
        assert_eq!(group.outputs, [Some("-f".into())]);
        assert_eq!(group.data, [Data::Ascii(OsString::from_vec(vec![0xff, 0]))]);
        assert!(!group.fail);
    }

    #[test]
    fn long_forms_and_their_negation() {
        let group = first(&[
            "--fail",
            "--include",
            "--no-fail",
            "--url",
            "u",
            "--request",
            "PUT",
        ]);
        assert!(group.include && !group.fail);
        assert_eq!(group.urls, ["u"]);
        assert_eq!(group.method.unwrap(), "PUT");
    }

    #[test]
    fn every_option_is_documented_and_named_once() {
        let mut names = std::collections::HashSet::new();
        let help = help();
        for option in OPTIONS {
            assert!(names.insert(option.long.to_owned()), "{}", option.long);
            if let Some(letter) = option.short {
                assert!(names.insert(char::from(letter).to_string()));
            }
            assert!(help.contains(&format!("--{}", option.long)));
            assert!(!option.help.is_empty());
        }
        for (first, _) in HEADINGS {
            assert!(
                OPTIONS.iter().any(|option| option.long == *first),
                "{first}"
            );
        }
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }

    #[test]
    fn numbers() {
        let cases = [("1", 1000), ("1.5", 1500), (".5", 500), ("007", 7000)];
        for (text, milliseconds) in cases {
            let group = first(&["-m", text, "--connect-timeout", text, "u"]);
            let expected = Some(Duration::from_millis(milliseconds));
            assert_eq!(group.max_time, expected, "{text}");
            assert_eq!(group.connect_timeout, expected, "{text}");
        }
        assert_eq!(first(&["-m", "5", "-m", "0", "u"]).max_time, None);
        let cases = [
            ("0", None),
            ("7", Some(7)),
            ("2k", Some(2048)),
            ("1B", Some(1)),
            ("1G", Some(1 << 30)),
        ];
        for (text, expected) in cases {
            assert_eq!(
                first(&["--max-filesize", text, "u"]).max_filesize,
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn usage_errors() {
        let cases: &[(&[&str], &str)] = &[
            (&[], "no URL specified"),
            (&["-s"], "no URL specified"),
            (&["u", "--next"], "no URL specified"),
            (&["--next", "u"], "missing URL before --next"),
            (&["--foo", "u"], "option --foo: is unknown"),
            (&["-sQ", "u"], "option -Q: is unknown"),
            (
                &["-sm5fi", "u"],
                "option -m: expected a proper numerical parameter",
            ),
            (&["u", "-o"], "option -o: requires parameter"),
            (&["u", "--output"], "option --output: requires parameter"),
            (
                &["--no-output", "u"],
                "option --no-output: used '--no-' for option that isn't a boolean",
            ),
            (&["--no-foo", "u"], "option --no-foo: is unknown"),
            (
                &["--rate", "3/x", "u"],
                "option --rate: unsupported unit, use s, m, h or d",
            ),
            (
                &["-m", "-1", "u"],
                "option -m: expected a positive numerical parameter",
            ),
            (
                &["-m", "", "u"],
                "option -m: expected a proper numerical parameter",
            ),
            (
                &["-m", "1e300", "u"],
                "option -m: expected a proper numerical parameter",
            ),
            (
                &["-m", "99999999999999999999999", "u"],
                "option -m: number is too large",
            ),
            (
                &["--max-filesize", "1z", "u"],
                "option --max-filesize: unsupported unit, use B, k, M, G, T or P",
            ),
            (
                &["--max-filesize", "-1", "u"],
                "option --max-filesize: expected a proper numerical parameter",
            ),
            (
                &["--max-filesize", "9999999P", "u"],
                "option --max-filesize: number is too large",
            ),
        ];
        for (args, error) in cases {
            assert_eq!(low(args).unwrap_err().0, *error, "{args:?}");
        }
    }
}
