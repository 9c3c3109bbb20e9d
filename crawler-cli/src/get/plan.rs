//! What the options mean together: one [`Transfer`] for each URL, with every file that they name already read, but for
//! those of `-T`, which are as large as they like, and those of TLS, which count for https alone.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use courser::CookieJar;

use super::args::{Data, Global, Group, LowArgs};
use super::cookies::Cookies;
use super::exit::{Exit, Failure};
use super::link::Settings;
use super::redirect::{Errand, Follow};
use super::retry::Retry;
use super::upload::Upload;
use super::write_out::WriteOut;

/// A command line, understood.
#[derive(Debug)]
pub(super) struct HiArgs {
    pub(super) global: Global,
    pub(super) transfers: Vec<Transfer>,
    /// Of all transfers that keep cookies.
    pub(super) jar: CookieJar,
}

/// One URL and where its output goes.
#[derive(Debug)]
pub(super) struct Transfer {
    /// As typed. Whether it means anything is found out when its turn comes.
    pub(super) url: OsString,
    pub(super) output: Option<OsString>,
    pub(super) upload: Option<Upload>,
    pub(super) options: Rc<Options>,
}

/// What a request is for. Decides about its method, unless `-X` does, and about its body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Get,
    Head,
    /// The data of `-d`.
    Post,
    /// The file of `-T`.
    Put,
}

/// What the transfers of one group have in common.
#[derive(Debug)]
pub(super) struct Options {
    /// `-X`.
    method: Option<String>,
    headers: Vec<HeaderRule>,
    /// `user:password`.
    pub(super) user: Option<Vec<u8>>,
    user_agent: Option<Vec<u8>>,
    pub(super) referer: Option<Vec<u8>>,
    range: Option<Vec<u8>>,
    bearer: Option<Vec<u8>>,
    json: bool,
    pub(super) body: Option<Vec<u8>>,
    /// Only the head is wanted, whatever the method.
    pub(super) head_only: bool,
    /// Response heads are part of the output.
    pub(super) include: bool,
    /// And a proxy's answer to CONNECT among them.
    pub(super) show_connect: bool,
    pub(super) fail: bool,
    pub(super) fail_with_body: bool,
    pub(super) path_as_is: bool,
    pub(super) max_time: Option<Duration>,
    pub(super) max_filesize: Option<u64>,
    pub(super) write_out: Option<WriteOut>,
    pub(super) compressed: bool,
    pub(super) cookies: Cookies,
    pub(super) follow: Follow,
    pub(super) retry: Retry,
    pub(super) settings: Settings,
}

/// One `-H`.
#[derive(Clone, Debug, Eq, PartialEq)]
enum HeaderRule {
    Send(String, Vec<u8>),
    /// `Name:` takes away what would be sent by default.
    Remove(String),
}

/// A request as it will be sent, but for the framing of its body.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Composed {
    pub(super) method: String,
    pub(super) url: String,
    /// In order, but that the engine puts `Host` and `User-Agent` first.
    pub(super) headers: Vec<(String, Vec<u8>)>,
}

impl HiArgs {
    /// Reads the files (and stdin) that the options name.
    ///
    /// # Errors
    /// [`Exit::Usage`] for options that contradict each other, [`Exit::Read`] for a file that cannot be read.
    pub(super) fn new(low: LowArgs) -> Result<Self, Failure> {
        let mut transfers = Vec::new();
        let jar = CookieJar::new();
        for mut group in low.groups {
            let urls = std::mem::take(&mut group.urls);
            let mut outputs = std::mem::take(&mut group.outputs).into_iter();
            let mut uploads = std::mem::take(&mut group.uploads).into_iter();
            let one_method = [
                group.request.head,
                !group.request.data.is_empty(),
                uploads.len() > 0,
            ];
            if one_method.into_iter().filter(|asked| *asked).count() > 1 {
                return Err(usage(
                    "you can only select one of POST (-d, --data), PUT (-T, --upload-file) and HEAD (-I, --head)",
                ));
            }
            let options = Rc::new(Options::new(group, &jar)?);
            for url in urls {
                let output = match outputs.next() {
                    Some(None) => Some(remote_name(&url)?),
                    named => named.flatten(),
                };
                transfers.push(Transfer {
                    url,
                    output,
                    upload: uploads.next().and_then(Upload::new),
                    options: options.clone(),
                });
            }
            if outputs.next().is_some() {
                return Err(usage("more --output than URLs"));
            }
        }
        Ok(Self {
            global: low.global,
            transfers,
            jar,
        })
    }
}

impl Transfer {
    /// What its first request is for.
    pub(super) fn kind(&self) -> Kind {
        match (&self.upload, &self.options.body) {
            (Some(_), _) => Kind::Put,
            (None, Some(_)) => Kind::Post,
            (None, None) if self.options.head_only => Kind::Head,
            (None, None) => Kind::Get,
        }
    }
}

impl Options {
    fn new(group: Group, jar: &CookieJar) -> Result<Self, Failure> {
        let mut headers = Vec::new();
        for typed in &group.request.headers {
            read_headers(typed, &mut headers)?;
        }
        let mut proxy_headers = Vec::new();
        for typed in &group.proxy.headers {
            read_headers(typed, &mut proxy_headers)?;
        }
        let settings = Settings::new(&group, for_proxy(&headers, proxy_headers))?;
        let cookies = Cookies::new(&group.cookies, jar);
        let write_out = match &group.result.write_out {
            Some(typed) => Some(typed_or_file(typed, FileText::WithoutLineEnds)?),
            None => None,
        };
        Ok(Self {
            follow: group.follow,
            retry: group.retry,
            settings,
            cookies,
            compressed: group.request.compressed,
            method: group
                .request
                .method
                .map(|method| text(method, "method"))
                .transpose()?,
            headers,
            user: group.request.user.map(credentials).transpose()?,
            user_agent: group.request.user_agent.map(OsString::into_vec),
            referer: group.request.referer.map(referer).transpose()?,
            range: group.request.range.map(OsString::into_vec),
            bearer: group.request.bearer.map(OsString::into_vec),
            json: group.request.json,
            body: read_body(&group.request.data)?,
            head_only: group.request.head,
            include: group.result.include || group.request.head,
            show_connect: !group.result.suppress_connect_headers,
            fail: group.result.fail,
            fail_with_body: group.result.fail_with_body,
            path_as_is: group.request.path_as_is,
            max_time: group.result.max_time,
            max_filesize: group.result.max_filesize,
            write_out: write_out.map(|format| WriteOut::parse(&format)),
        })
    }

    /// The request for `errand`: the default headers in curl's order, each unless a `-H` replaces or removes it, then
    /// those of the `-H` as typed. `length` is that of the body, if it has one and that is known.
    pub(super) fn compose(
        &self,
        errand: &Errand,
        cookie: Vec<u8>,
        length: Option<u64>,
    ) -> Composed {
        let user_agent = match &self.user_agent {
            Some(name) => name.clone(),
            None => DEFAULT_USER_AGENT.into(),
        };
        let defaults = [
            ("Host", Some(errand.target.authority.clone().into_bytes())),
            (
                "Authorization",
                match (&self.bearer, &errand.user) {
                    (Some(token), _) if errand.trusted() => Some([b"Bearer ", &token[..]].concat()),
                    (_, user) => user.as_ref().map(|user| basic(user)),
                },
            ),
            (
                "Range",
                self.range
                    .as_ref()
                    .map(|range| [b"bytes=", &range[..]].concat()),
            ),
            (
                "User-Agent",
                Some(user_agent).filter(|name| !name.is_empty()),
            ),
            (
                "Accept",
                Some(if self.json { JSON } else { b"*/*" }.to_vec()),
            ),
            ("Referer", self.referer.clone()),
        ];
        let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
        let default = |(name, value): (&str, Option<Vec<u8>>)| {
            let value = value.filter(|_| !self.names(name, errand))?;
            Some((name.to_owned(), value))
        };
        headers.extend(defaults.into_iter().filter_map(default));
        for rule in &self.headers {
            let HeaderRule::Send(name, value) = rule else {
                continue;
            };
            // There can be one alone, and the first one counts.
            let is_host = |(name, _): &(String, _)| name.eq_ignore_ascii_case("Host");
            let second = name.eq_ignore_ascii_case("Host") && headers.iter().any(is_host);
            if errand.may_say(name) && !second {
                headers.push((name.clone(), value.clone()));
            }
        }
        headers.extend(default((
            "Cookie",
            Some(cookie).filter(|cookie| !cookie.is_empty()),
        )));
        let codings = self.compressed.then(|| CODINGS.to_vec());
        headers.extend(default(("Accept-Encoding", codings)));
        let form = if self.json { JSON } else { FORM };
        let form = (errand.kind == Kind::Post).then(|| form.to_vec());
        headers.extend(default(("Content-Type", form)));
        let waits = self.waits(errand, length);
        headers.extend(waits.then(|| ("Expect".to_owned(), EXPECT.to_vec())));
        let method = match (&self.method, errand.kind) {
            (Some(method), _) => method,
            (None, Kind::Get) => "GET",
            (None, Kind::Head) => "HEAD",
            (None, Kind::Post) => "POST",
            (None, Kind::Put) => "PUT",
        };
        Composed {
            method: method.into(),
            url: errand.target.url(),
            headers,
        }
    }

    /// Whether a body of that length waits for the server's consent, without the user's having said so.
    pub(super) fn waits(&self, errand: &Errand, length: Option<u64>) -> bool {
        match errand.kind {
            _ if !errand.waits || self.names("Expect", errand) => false,
            Kind::Get | Kind::Head => false,
            Kind::Post => length.is_some_and(|length| length > EXPECT_ABOVE),
            Kind::Put => length != Some(0),
        }
    }

    /// Whether a `-H` that holds for that errand speaks of the header `name`.
    fn names(&self, name: &str, errand: &Errand) -> bool {
        errand.may_say(name)
            && self.headers.iter().any(|rule| match rule {
                HeaderRule::Send(n, _) | HeaderRule::Remove(n) => n.eq_ignore_ascii_case(name),
            })
    }
}

pub(super) const DEFAULT_USER_AGENT: &str = concat!("crawler-cli/", env!("CARGO_PKG_VERSION"));
/// Bodies of more bytes wait for the server's consent, as in curl.
const EXPECT_ABOVE: u64 = 1024 * 1024;
/// In curl's order.
const CODINGS: &[u8] = b"deflate, gzip, br, zstd";
const PROXY_AUTHORIZATION: &str = "Proxy-Authorization";
const EXPECT: &[u8] = b"100-continue";
const JSON: &[u8] = b"application/json";
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// `-H LINE`, or `-H @file` with one header on each line.
fn read_headers(typed: &OsStr, rules: &mut Vec<HeaderRule>) -> Result<(), Failure> {
    let Some(file) = typed.as_bytes().strip_prefix(b"@") else {
        rules.push(header_rule(typed.as_bytes())?);
        return Ok(());
    };
    for line in read_file(OsStr::from_bytes(file))?.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            rules.push(header_rule(line)?);
        }
    }
    Ok(())
}

/// What a proxy is told: `--proxy-header`, and a `Proxy-Authorization` of `-H`, which is nobody else's business.
fn for_proxy(headers: &[HeaderRule], own: Vec<HeaderRule>) -> Vec<(String, Vec<u8>)> {
    let sent = |rule| match rule {
        HeaderRule::Send(name, value) => Some((name, value)),
        // There is nothing that could be taken away.
        HeaderRule::Remove(_) => None,
    };
    let is_secret = |(name, _): &(String, Vec<u8>)| name.eq_ignore_ascii_case(PROXY_AUTHORIZATION);
    let mut own: Vec<_> = own.into_iter().filter_map(sent).collect();
    if !own.iter().any(is_secret) {
        let given = headers.iter().cloned().filter_map(sent);
        own.extend(given.filter(is_secret).take(1));
    }
    own
}

fn header_rule(line: &[u8]) -> Result<HeaderRule, Failure> {
    let name = |bytes: &[u8]| text(OsStr::from_bytes(bytes).to_owned(), "header name");
    if let Some(colon) = line.iter().position(|b| *b == b':') {
        let value = line[colon + 1..].trim_ascii();
        let name = name(&line[..colon])?;
        return match value {
            [] if name.eq_ignore_ascii_case("Host") => {
                Err(usage("HTTP/1.1 needs a Host, 'Host;' sends an empty one"))
            }
            [] => Ok(HeaderRule::Remove(name)),
            value => Ok(HeaderRule::Send(name, value.to_vec())),
        };
    }
    match line.trim_ascii_end() {
        [empty @ .., b';'] => Ok(HeaderRule::Send(name(empty)?, Vec::new())),
        // The line itself may be a secret whose name was forgotten.
        _ => Err(usage("a header needs a colon after its name")),
    }
}

/// All pieces of data, joined by `&`; nothing if there are none.
fn read_body(data: &[Data]) -> Result<Option<Vec<u8>>, Failure> {
    let mut body: Option<Vec<u8>> = None;
    for piece in data {
        let joined = matches!(piece, Data::Json(_));
        let piece = match piece {
            Data::Ascii(typed) => typed_or_file(typed, FileText::WithoutLineEnds)?,
            Data::Binary(typed) | Data::Json(typed) => typed_or_file(typed, FileText::AsIs)?,
            Data::Raw(typed) => typed.as_bytes().to_vec(),
        };
        match &mut body {
            Some(body) => {
                if !joined {
                    body.push(b'&');
                }
                body.extend(piece);
            }
            None => body = Some(piece),
        }
    }
    Ok(body)
}

/// What of a file named by `@` counts.
#[derive(Clone, Copy)]
enum FileText {
    AsIs,
    /// CR, LF and NUL are dropped.
    WithoutLineEnds,
}

/// The bytes typed, or those of the file that `@name` names.
fn typed_or_file(typed: &OsStr, keep: FileText) -> Result<Vec<u8>, Failure> {
    let Some(file) = typed.as_bytes().strip_prefix(b"@") else {
        return Ok(typed.as_bytes().to_vec());
    };
    let mut bytes = read_file(OsStr::from_bytes(file))?;
    if matches!(keep, FileText::WithoutLineEnds) {
        bytes.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
    }
    Ok(bytes)
}

/// A whole file; `-` is stdin.
fn read_file(name: &OsStr) -> Result<Vec<u8>, Failure> {
    let read = if name == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(name)
    };
    read.map_err(|error| {
        let name = Path::new(name).display();
        Failure::new(Exit::Read, "read", format_args!("{name}: {error}"))
    })
}

/// The file that `-O` writes: the last name in the URL's path, as typed.
fn remote_name(url: &OsStr) -> Result<OsString, Failure> {
    let url = url.as_bytes();
    let end = url.iter().position(|b| matches!(b, b'?' | b'#'));
    let url = &url[..end.unwrap_or(url.len())];
    let host = url
        .windows(3)
        .position(|w| w == b"://")
        .map_or(0, |at| at + 3);
    let name = match url[host..].iter().rposition(|b| *b == b'/') {
        Some(at) => &url[host + at + 1..],
        None => &[],
    };
    if name.is_empty() {
        let cause = "the URL has no file name for -O";
        return Err(Failure::new(Exit::Write, "write", cause));
    }
    Ok(OsStr::from_bytes(name).to_owned())
}

fn referer(typed: OsString) -> Result<Vec<u8>, Failure> {
    let typed = typed.into_vec();
    if typed.ends_with(b";auto") {
        return Err(usage("a Referer of redirects (';auto') is not supported"));
    }
    Ok(typed)
}

fn credentials(typed: OsString) -> Result<Vec<u8>, Failure> {
    let typed = typed.into_vec();
    if !typed.contains(&b':') {
        return Err(usage("-u needs user:password, passwords are not asked for"));
    }
    Ok(typed)
}

/// The value of `Authorization` for `user:password` (RFC 7617).
fn basic(user: &[u8]) -> Vec<u8> {
    format!("Basic {}", BASE64_STANDARD.encode(user)).into_bytes()
}

pub(super) fn text(typed: OsString, what: &str) -> Result<String, Failure> {
    typed
        .into_string()
        .map_err(|_| usage(format_args!("the {what} is not UTF-8")))
}

pub(super) fn usage(cause: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, "options", cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::get::{Request, read};
    use crate::get::target::Target;

    fn plan(args: &[&str]) -> Result<HiArgs, Failure> {
        match read(args.iter().map(OsString::from).collect()) {
            Ok(Request::Transfers(args)) => HiArgs::new(args),
            _ => panic!("not a usable command line: {args:?}"),
        }
    }

    fn options(args: &[&str]) -> Options {
        let mut plan = plan(&[args, &["u"]].concat()).unwrap();
        Rc::into_inner(plan.transfers.remove(0).options).unwrap()
    }

    /// The request line and the headers for `http://h:8/p?q` with `args`, one line each.
    fn composed(args: &[&str]) -> String {
        composed_for("http://h:8/p?q", args)
    }

    fn composed_for(url: &str, args: &[&str]) -> String {
        let mut plan = plan(&[args, &[url]].concat()).unwrap();
        let transfer = plan.transfers.remove(0);
        let target = Target::parse(url.as_bytes(), false).unwrap();
        let errand = Errand::first(&transfer, target);
        let request = transfer.options.compose(&errand, Vec::new(), Some(1));
        let target = request.url.strip_prefix("http://h").unwrap();
        let target = target.strip_prefix(":8").unwrap_or(target);
        let mut lines = vec![format!("{} {target}", request.method)];
        for (name, value) in request.headers {
            lines.push(format!("{name}: {}", value.escape_ascii()));
        }
        lines.join("\n").replace(DEFAULT_USER_AGENT, "UA")
    }

    #[test]
    fn requests() {
        let cases: &[(&[&str], &str)] = &[
            (&[], "GET /p?q\nHost: h:8\nUser-Agent: UA\nAccept: */*"),
            (&["-I"], "HEAD /p?q\nHost: h:8\nUser-Agent: UA\nAccept: */*"),
            (
                &["-IX", "get"],
                "get /p?q\nHost: h:8\nUser-Agent: UA\nAccept: */*",
            ),
            (&["-A", "", "-H", "accept:"], "GET /p?q\nHost: h:8"),
            (
                &["-A", "me"],
                "GET /p?q\nHost: h:8\nUser-Agent: me\nAccept: */*",
            ),
            (
                &["-H", "User-Agent:", "-H", "Accept: a"],
                "GET /p?q\nHost: h:8\nAccept: a",
            ),
            (
                &[
                    "-A",
                    "x",
                    "-H",
                    "X-b:  c:d  ",
                    "-H",
                    "user-agent: me",
                    "-H",
                    "E;",
                ],
                "GET /p?q\nHost: h:8\nAccept: */*\nX-b: c:d\nuser-agent: me\nE: ",
            ),
            (
                &["-HA: 1", "-HHost: other", "-HA: 2"],
                "GET /p?q\nUser-Agent: UA\nAccept: */*\nA: 1\nHost: other\nA: 2",
            ),
            (
                &["-u", "user:pass"],
                "GET /p?q\nHost: h:8\nAuthorization: Basic dXNlcjpwYXNz\nUser-Agent: UA\nAccept: */*",
            ),
            (
                &["-u", "a:b", "-A", "", "-HAuthorization: Bearer x"],
                "GET /p?q\nHost: h:8\nAccept: */*\nAuthorization: Bearer x",
            ),
            (
                &["-d", "x", "-A", ""],
                "POST /p?q\nHost: h:8\nAccept: */*\nContent-Type: application/x-www-form-urlencoded",
            ),
            (
                &["-dx", "-XPUT", "-A", "", "-Hcontent-type: t"],
                "PUT /p?q\nHost: h:8\nAccept: */*\ncontent-type: t",
            ),
            (
                &["-dx", "-A", "", "-Hcontent-type:"],
                "POST /p?q\nHost: h:8\nAccept: */*",
            ),
            (
                &["--json", "{}", "-A", "", "-e", "r", "-r", "0-9"],
                "POST /p?q\nHost: h:8\nRange: bytes=0-9\nAccept: application/json\nReferer: r\n\
                 Content-Type: application/json",
            ),
            (
                &["--oauth2-bearer", "t", "-u", "a:b", "-A", "", "-Haccept:"],
                "GET /p?q\nHost: h:8\nAuthorization: Bearer t",
            ),
        ];
        for (args, expected) in cases {
            assert_eq!(composed(args), *expected, "{args:?}");
        }
    }

    #[test]
    fn credentials_of_the_url_yield_to_the_option() {
        let authorization = |url, args: &[&str]| {
            let request = composed_for(url, args);
            let line = request.lines().find(|l| l.starts_with("Authorization"));
            line.map(str::to_owned)
        };
        let expected = Some("Authorization: Basic dTpw".to_owned());
        assert_eq!(authorization("http://u:p@h/", &[]), expected);
        assert_eq!(authorization("http://a:b@h/", &["-u", "u:p"]), expected);
        assert_eq!(
            authorization("http://u:p@h/", &["-H", "Authorization:"]),
            None
        );
    }

    #[test]
    fn data_is_joined_and_only_files_lose_their_line_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        std::fs::write(&path, b"x\r\ny\0\xff\n").unwrap();
        let file = format!("@{}", path.display());
        let body = |args: &[&str]| options(args).body;
        assert_eq!(body(&[]), None);
        assert_eq!(body(&["-d", ""]).unwrap(), b"");
        assert_eq!(
            body(&["-d", "a\n", "-d", "", "--data-ascii", "b"]).unwrap(),
            b"a\n&&b"
        );
        assert_eq!(body(&["-d", "a", "-d", &file]).unwrap(), b"a&xy\xff");
        assert_eq!(
            body(&["--data-binary", &file, "-d=1"]).unwrap(),
            b"x\r\ny\0\xff\n&=1"
        );
    }

    #[test]
    fn pieces_of_data_beside_each_other() {
        let body = |args: &[&str]| String::from_utf8(options(args).body.unwrap()).unwrap();
        assert_eq!(body(&["-d", "a", "--data-raw", "@b"]), "a&@b");
        assert_eq!(body(&["--json", "[1", "--json", ",2]"]), "[1,2]");
    }

    #[test]
    fn what_a_proxy_is_told() {
        let told = |args: &[&str]| {
            let plan = plan(&[args, &["-x", "p", "u"]].concat()).unwrap();
            let headers = plan.transfers[0].options.settings.proxy_headers();
            let lines = headers.iter();
            let lines = lines.map(|(name, value)| format!("{name}: {}", value.escape_ascii()));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(told(&["-H", "X-A: b"]), "");
        assert_eq!(
            told(&["--proxy-header", "X-A: b", "--proxy-header", "C:"]),
            "X-A: b"
        );
        let own = [
            "-H",
            "proxy-authorization: a",
            "-H",
            "Proxy-Authorization: b",
        ];
        assert_eq!(told(&own), "proxy-authorization: a");
        let both = [&own[..], &["--proxy-header", "Proxy-Authorization: c"]].concat();
        assert_eq!(told(&both), "Proxy-Authorization: c");
    }

    #[test]
    fn names_of_files_in_urls() {
        for (url, name) in [
            ("http://h/a/b.txt?q=/x#/y", Some("b.txt")),
            ("h/%20;b", Some("%20;b")),
            ("http://h/a/", None),
            ("http://h", None),
            ("h?a/b", None),
        ] {
            let named = remote_name(url.as_ref());
            assert_eq!(named.as_deref().ok(), name.map(OsStr::new), "{url}");
        }
        let failure = plan(&["-O", "http://h/"]).unwrap_err();
        assert_eq!(failure.exit.code(), 23);
    }

    #[test]
    fn headers_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("headers");
        std::fs::write(&path, "X: y\r\n\n  \nZ: w\nAccept:").unwrap();
        let args = ["-A", "", "-H", &format!("@{}", path.display())];
        assert_eq!(composed(&args), "GET /p?q\nHost: h:8\nX: y\nZ: w");
    }

    #[test]
    fn outputs_go_to_urls_in_order_within_their_group() {
        let plan = plan(&["-o", "a", "u1", "u2", "--next", "u3", "-o", "b"]).unwrap();
        let outputs: Vec<_> = plan.transfers.iter().map(|t| t.output.as_deref()).collect();
        assert_eq!(outputs, [Some("a".as_ref()), None, Some("b".as_ref())]);
    }

    #[test]
    fn refused() {
        let cases: &[(&[&str], u8, &str)] = &[
            (
                &["-I", "-d", "x", "u"],
                2,
                "options: you can only select one of POST (-d, --data), PUT",
            ),
            (
                &["-o", "a", "-o", "b", "u"],
                2,
                "options: more --output than URLs",
            ),
            (
                &["-H", "secret", "u"],
                2,
                "options: a header needs a colon after its name",
            ),
            (&["-H", "host: ", "u"], 2, "options: HTTP/1.1 needs a Host"),
            (&["-e", "u;auto", "u"], 2, "options: a Referer of redirects"),
            (&["-u", "me", "u"], 2, "options: -u needs user:password"),
            (&["-d", "@/nonexistent", "u"], 26, "read: /nonexistent: "),
            (
                &["--data-binary", "@/nonexistent", "u"],
                26,
                "read: /nonexistent: ",
            ),
            (&["-H", "@/nonexistent", "u"], 26, "read: /nonexistent: "),
            (&["-w", "@/nonexistent", "u"], 26, "read: /nonexistent: "),
        ];
        for (args, code, message) in cases {
            let failure = plan(args).unwrap_err();
            assert_eq!(failure.exit.code(), *code, "{args:?}");
            assert!(failure.to_string().starts_with(message), "{failure}");
        }
    }
}
