//! The request of a transfer: method, headers in curl's order, and body. The engine frames the body.

use std::ffi::OsString;
use std::io::Cursor;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use courser::{Bytes, Codings, Request};

use super::args::RequestArgs;
use super::auth::{Authorizations, Schemes};
use super::condition::Condition;
use super::data::{read_body, read_query};
use super::exit::Failure;
use super::form::FormArgs;
use super::headers::{HeaderRule, read_headers};
use super::multipart::Form;
use super::plan::{text, usage};
use super::progress::{Counted, Counter};
use super::redirect::Hop;
use super::upload::OpenUpload;

/// The kind of a request: decides about the body and, without `-X`, about the method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Get,
    Head,
    /// The data of `-d`.
    Post,
    /// The file of `-T`.
    Put,
}

/// The request options of one group.
#[derive(Debug)]
pub(super) struct RequestOptions {
    /// `-X`.
    method: Option<String>,
    pub(super) headers: Vec<HeaderRule>,
    /// `user:password`.
    pub(super) user: Option<Vec<u8>>,
    user_agent: Option<Vec<u8>>,
    pub(super) referer: Option<Vec<u8>>,
    range: Option<Vec<u8>>,
    /// `--oauth2-bearer`
    pub(super) bearer: Option<Vec<u8>>,
    /// The wanted schemes of authentication with servers.
    pub(super) auth: Schemes,
    json: bool,
    pub(super) body: Option<Bytes>,
    /// `-F`
    pub(super) form: Option<Form>,
    /// `-z`
    pub(super) condition: Option<Condition>,
    /// `-G` and `--url-query`: added to the query of the URL.
    pub(super) query: Option<Vec<u8>>,
    /// `-I`: only the head is fetched, with any method.
    pub(super) head_only: bool,
    pub(super) path_as_is: bool,
    /// Whether `Accept-Encoding` is sent.
    compressed: bool,
    /// URLs with a user name are refused.
    pub(super) no_user_in_url: bool,
    /// `-0`
    pub(super) http10: bool,
    /// How long the body waits for a response to `Expect: 100-continue`.
    expect_wait: Duration,
    framing: Framing,
}

/// How the engine sends the target and reads the response.
#[derive(Clone, Debug, Default)]
struct Framing {
    /// `--request-target`
    target: Option<String>,
    /// `--raw`
    raw: bool,
    /// `--ignore-content-length`
    ignore_length: bool,
}

/// A request to send, without the framing of its body.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Composed {
    pub(super) method: String,
    pub(super) url: String,
    /// In curl's order. The engine moves `Host` and `User-Agent` to the front.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    http10: bool,
    expect_wait: Duration,
}

impl RequestOptions {
    /// Checks the options and reads the files that they name.
    pub(super) fn new(
        args: RequestArgs,
        form: &FormArgs,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Failure> {
        let method = args.method.map(|method| text(method, "method"));
        let data = read_body(&args.data)?;
        let (data, body) = if args.get { (data, None) } else { (None, data) };
        let headers = read_headers(&args.headers)?;
        let form = Form::new(form, custom_type(&headers), warnings)?;
        let condition = args.time.as_deref().map(|typed| {
            let condition = Condition::read(typed);
            if condition.is_none() {
                let typed = typed.display();
                warnings.push(format!(
                    "-z {typed}: no date and no file; there is no condition"
                ));
            }
            condition
        });
        Ok(Self {
            method: method.transpose()?,
            headers,
            form,
            condition: condition.flatten(),
            user: args.user.map(OsString::into_vec),
            user_agent: args.user_agent.map(OsString::into_vec),
            referer: args.referer.map(referer).transpose()?,
            range: args.range.map(OsString::into_vec),
            auth: args.auth.for_server(args.bearer.is_some()),
            bearer: args.bearer.map(OsString::into_vec),
            json: args.json,
            body: body.map(Bytes::from),
            query: read_query(data, &args.query)?,
            head_only: args.head,
            path_as_is: args.path_as_is,
            compressed: args.compressed,
            no_user_in_url: args.no_user_in_url,
            http10: args.http10,
            expect_wait: args.expect_wait.unwrap_or(EXPECT_WAIT),
            framing: Framing {
                target: args
                    .target
                    .map(|target| text(target, "request target"))
                    .transpose()?,
                raw: args.raw,
                ignore_length: args.ignore_length,
            },
        })
    }

    /// Whether content codings are decoded.
    pub(super) fn decodes(&self) -> bool {
        self.compressed && !self.framing.raw
    }

    /// Whether the body has the chunks as received, and the trailers among them.
    pub(super) fn keeps_chunks(&self) -> bool {
        self.framing.raw
    }

    /// Sets on `request` what is not said in its header.
    pub(super) fn frame(&self, request: &mut Request) {
        if self.decodes() {
            request.decode(Codings::all());
        }
        if let Some(target) = &self.framing.target {
            request.send_target(target.clone());
        }
        if self.framing.raw {
            request.keep_chunks();
        }
        if self.framing.ignore_length {
            request.ignore_content_length();
        }
    }

    /// `-r`
    pub(super) fn range(&self) -> Option<&[u8]> {
        self.range.as_deref()
    }

    /// Composes the request of a hop: first the default headers in curl's order, except those that a `-H` replaces or
    /// omits, then the `-H` headers as typed. `length` is the length of the body in bytes, if known.
    pub(super) fn compose(
        &self,
        hop: &Hop,
        authorizations: Authorizations,
        cookie: Vec<u8>,
        length: Option<u64>,
    ) -> Composed {
        let user_agent = match &self.user_agent {
            Some(name) => name.clone(),
            None => DEFAULT_USER_AGENT.into(),
        };
        let defaults = [
            ("Host", Some(hop.target.authority.clone().into_bytes())),
            ("Proxy-Authorization", authorizations.proxy),
            ("Authorization", authorizations.server),
            (
                "Range",
                match hop.resume_at {
                    0 => self
                        .range
                        .as_ref()
                        .map(|range| [b"bytes=", &range[..]].concat()),
                    _ if hop.kind == Kind::Put => None,
                    at => Some(format!("bytes={at}-").into_bytes()),
                },
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
            match &self.condition {
                Some(condition) => condition.header(),
                None => ("If-Modified-Since", None),
            },
        ];
        let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
        let default = |(name, value): (&str, Option<Vec<u8>>)| {
            let value = value.filter(|_| !self.names(name, hop))?;
            Some((name.to_owned(), value))
        };
        headers.extend(defaults.into_iter().filter_map(default));
        for rule in &self.headers {
            let HeaderRule::Send(name, value) = rule else {
                continue;
            };
            // Only one `Host` is allowed; the first is sent.
            let is_host = |(name, _): &(String, _)| name.eq_ignore_ascii_case("Host");
            let second = name.eq_ignore_ascii_case("Host") && headers.iter().any(is_host);
            if hop.may_send(name) && !second {
                headers.push((name.clone(), value.clone()));
            }
        }
        headers.extend(default((
            "Cookie",
            Some(cookie).filter(|cookie| !cookie.is_empty()),
        )));
        let codings = self.compressed.then(|| CODINGS.to_vec());
        headers.extend(default(("Accept-Encoding", codings)));
        let form = match &self.form {
            Some(form) => &form.content_type,
            None if self.json => JSON,
            None => FORM,
        };
        if hop.kind == Kind::Post && self.form.is_some() {
            // The form has the type of `-H`, with its boundary.
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("Content-Type"));
            headers.push(("Content-Type".into(), form.to_vec()));
        } else {
            let form = (hop.kind == Kind::Post).then(|| form.to_vec());
            headers.extend(default(("Content-Type", form)));
        }
        let waits = self.waits(hop, length);
        headers.extend(waits.then(|| ("Expect".to_owned(), EXPECT.to_vec())));
        Composed {
            method: self.method(hop.kind).into(),
            url: hop.target.url(),
            headers,
            http10: self.http10,
            expect_wait: self.expect_wait,
        }
    }

    /// The method of a request of this kind.
    pub(super) fn method(&self, kind: Kind) -> &str {
        match (&self.method, kind) {
            (Some(method), _) => method,
            (None, Kind::Get) => "GET",
            (None, Kind::Head) => "HEAD",
            (None, Kind::Post) => "POST",
            (None, Kind::Put) => "PUT",
        }
    }

    /// Whether a body of this length waits for a 100 (Continue). A `-H` for `Expect` overrides the rule.
    pub(super) fn waits(&self, hop: &Hop, length: Option<u64>) -> bool {
        match hop.kind {
            _ if !hop.waits || self.http10 || self.names("Expect", hop) => false,
            Kind::Get | Kind::Head => false,
            Kind::Post => length.is_none_or(|length| length > EXPECT_ABOVE),
            Kind::Put => length != Some(0),
        }
    }

    /// Whether a `-H` that this hop may send has this name.
    pub(super) fn names(&self, name: &str, hop: &Hop) -> bool {
        hop.may_send(name)
            && self.headers.iter().any(|rule| match rule {
                HeaderRule::Send(n, _) | HeaderRule::Remove(n) => n.eq_ignore_ascii_case(name),
            })
    }
}

impl Composed {
    /// The request for the engine. Because the engine frames the body, framing headers become settings of the request.
    pub(super) fn request(
        self,
        target: String,
        body: Option<&Bytes>,
        upload: Option<OpenUpload>,
        counter: Counter,
    ) -> Request {
        let mut request = Request::new(self.method, target);
        request.no_user_agent();
        let is_host = |(name, _): &(String, _)| name.eq_ignore_ascii_case("Host");
        if !self.headers.iter().any(is_host) {
            request.no_host();
        }
        if self.http10 {
            request.http10();
        }
        let length = match (&upload, body) {
            (Some(upload), _) => upload.length(),
            (None, body) => Some(body.map_or(0, |body| body.len() as u64)),
        };
        let length = length.map(|length| length.to_string()).unwrap_or_default();
        let mut chunked = false;
        for (name, value) in &self.headers {
            let is = |header: &str, text: &str| {
                name.eq_ignore_ascii_case(header) && value.eq_ignore_ascii_case(text.as_bytes())
            };
            if is("Transfer-Encoding", "chunked") {
                chunked = true;
            } else if is("Expect", "100-continue") {
                request.expect_continue(self.expect_wait);
            } else if !is("Content-Length", &length) {
                request.header(name, value);
            }
        }
        match (upload, body) {
            (Some(upload), _) => upload.fill(&mut request, chunked, counter),
            (None, Some(body)) if chunked || counter.watches(body.len()) => {
                let length = (!chunked).then_some(body.len() as u64);
                let source = Counted::new(Cursor::new(body.clone()), counter);
                request.body_stream(source, length);
            }
            (None, Some(body)) => {
                request.body(body.clone());
            }
            (None, None) => {}
        }
        request
    }
}

/// How long the body waits for a response to `Expect: 100-continue` without `--expect100-timeout`, as in curl.
const EXPECT_WAIT: Duration = Duration::from_secs(1);

/// The `Content-Type` of `-H`.
fn custom_type(headers: &[HeaderRule]) -> Option<&[u8]> {
    headers.iter().find_map(|rule| match rule {
        HeaderRule::Send(name, value) if name.eq_ignore_ascii_case("Content-Type") => {
            Some(&value[..])
        }
        _ => None,
    })
}

fn referer(typed: OsString) -> Result<Vec<u8>, Failure> {
    let typed = typed.into_vec();
    if typed.ends_with(b";auto") {
        return Err(usage("a Referer of redirects (';auto') is not supported"));
    }
    Ok(typed)
}

pub(super) const DEFAULT_USER_AGENT: &str = concat!("crawler-cli/", env!("CARGO_PKG_VERSION"));
/// Longer bodies, in bytes, wait for a 100 (Continue), as in curl.
const EXPECT_ABOVE: u64 = 1024 * 1024;
/// The value of `Accept-Encoding`, in curl's order.
const CODINGS: &[u8] = b"deflate, gzip, br, zstd";
const EXPECT: &[u8] = b"100-continue";
const JSON: &[u8] = b"application/json";
const FORM: &[u8] = b"application/x-www-form-urlencoded";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get::auth::Keys;
    use crate::get::plan::tests::plan;
    use crate::get::show::Trace;
    use crate::get::target::Target;

    fn options(args: &[&str]) -> RequestOptions {
        let mut plan = plan(&[args, &["u"]].concat()).unwrap();
        let options = std::sync::Arc::into_inner(plan.sources.remove(0).options);
        options.unwrap().request
    }

    /// The request line and headers for `http://h:8/p?q` with `args`, one per line.
    fn composed(args: &[&str]) -> String {
        composed_for("http://h:8/p?q", args)
    }

    fn composed_for(url: &str, args: &[&str]) -> String {
        let plan = plan(&[args, &[url]].concat()).unwrap();
        let transfer = plan.sources[0].transfer(0).unwrap();
        let target = Target::parse(url.as_bytes(), false).unwrap();
        let mut hop = Hop::first(&transfer, target);
        let keys = Keys::new(&transfer.options.request, &hop, None);
        let options = &transfer.options.request;
        let method = options.method(hop.kind);
        let authorizations = keys.authorizations(&mut hop, method, Some(b""));
        let request = options.compose(&hop, authorizations, Vec::new(), Some(1));
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
            (&["-A", "", "-H", "accept:", "-H", "Host:"], "GET /p?q"),
            (
                &["-A", "", "-H", "accept:", "-H", "Host: "],
                "GET /p?q\nHost: ",
            ),
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
                &["-A", "", "-r", "0-9"],
                "GET /p?q\nHost: h:8\nRange: bytes=0-9\nAccept: */*",
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
        let body = |args: &[&str]| options(args).body.map(Vec::from);
        assert_eq!(body(&[]), None);
        assert_eq!(body(&["-d", ""]).unwrap(), b"");
        assert_eq!(
            body(&["-d", "a\n", "-d", "", "-d", "b"]).unwrap(),
            b"a\n&&b"
        );
        assert_eq!(body(&["-d", "a", "-d", &file]).unwrap(), b"a&xy\xff");
        assert_eq!(
            body(&["--data-binary", &file, "-d=1"]).unwrap(),
            b"x\r\ny\0\xff\n&=1"
        );
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
    fn headers_that_ask_for_a_framing_become_settings() {
        let encoded = |headers: &[(&str, &str)], body: Option<&Bytes>| {
            let headers = [&[("Host", "h")], headers].concat();
            let headers = headers
                .into_iter()
                .map(|(n, v)| (n.into(), v.as_bytes().to_vec()));
            let composed = Composed {
                method: "PUT".into(),
                url: "http://h/".into(),
                headers: headers.collect(),
                http10: false,
                expect_wait: EXPECT_WAIT,
            };
            let counter = Counter {
                counts: std::sync::Arc::default(),
                trace: Trace::default(),
                is_used: false,
            };
            let mut request = composed.request("/".into(), body, None, counter);
            let checked = request.encode(&courser::proto::Defaults::new("h", None));
            checked.map(|()| String::from_utf8(request.encoded_head().to_vec()).unwrap())
        };
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[], "Content-Length: 3"),
            (&[("content-length", "3")], "Content-Length: 3"),
            (
                &[("transfer-encoding", "Chunked")],
                "Transfer-Encoding: chunked",
            ),
            (
                &[("Expect", "100-Continue"), ("A", "b")],
                "A: b\r\nContent-Length: 3\r\nExpect: 100-continue",
            ),
        ];
        for (headers, lines) in cases {
            let head = encoded(headers, Some(&Bytes::from("abc"))).unwrap();
            assert_eq!(
                head,
                format!("PUT / HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n")
            );
        }
        for refused in [
            ("Content-Length", "4"),
            ("Transfer-Encoding", "gzip"),
            ("Expect", "x"),
        ] {
            assert!(
                encoded(&[refused], Some(&Bytes::from("abc"))).is_err(),
                "{refused:?}"
            );
        }
    }
}
