//! A request, encoded once into one buffer and sent many times (RFC 9112 §3, §6; RFC 9110 §7.2). The exchange sends it;
//! the client decides about redirects and cookies and sets them here.
//!
//! Bytes go out as given: the target is not rewritten, and headers keep their order and their case. `Host` comes first.
//! The headers that frame the message (`Content-Length`, `Transfer-Encoding`, `Trailer`, `Expect`) are computed here
//! and nowhere else. A byte that could end a line early is refused before anything is sent.

mod edit;
mod hop;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;

pub(crate) use self::hop::HopFields;
pub use self::stream::BodySource;
pub(super) use self::stream::Fill;
pub(crate) use self::stream::Panic;
use self::stream::{Source, Stream};
use super::coding::Codings;
use super::head::list;
use super::scan::{is_of_text, is_of_token};
use super::{Url, push_basic};
use crate::error::{Misuse, Part, redacted};

/// A request that can be used again. Setters take any bytes. Bytes that HTTP does not allow are reported when the call
/// is made, as [`Misuse`](crate::Misuse) with the name of the part.
///
/// ```
/// use courser::Request;
///
/// let mut request = Request::post("/api/items?draft=1", "{\"name\":\"x\"}");
/// request.add_header("Content-Type", "application/json").add_header("X-Trace", "7");
/// ```
pub struct Request(Box<Inner>);

/// The content of a request, in one allocation, so that moving it with calls and completions costs as much as moving a
/// pointer.
#[derive(Clone, Default)]
#[repr(C)] // what every send needs stands together
struct Inner {
    /// The id of the [`Defaults`] that `encoded` was made with; 0: `encoded` is not valid.
    encoded_for: u64,
    /// Where redirects have led.
    redirected: Redirected,
    /// The head, then a body if it is small, as they go out.
    encoded: Vec<u8>,
    /// What an exchange needs to know about the request.
    outline: Outline,
    /// The codings that `encoded` offers.
    encoded_codings: Codings,
    /// A header has `Connection: close`.
    close: bool,
    body: Body,
    /// The value of `Cookie` from the client's cookie jar; empty for none.
    cookies: Vec<u8>,
    /// Length of the head in `encoded`.
    head_len: usize,
    method: Cow<'static, str>,
    target: String,
    host: OwnValue,
    user_agent: OwnValue,
    /// The request line says HTTP/1.0.
    http10: bool,
    /// Header lines as given, each with its CRLF.
    fields: Vec<u8>,
    /// Trailer lines as given, each with its CRLF.
    trailers: Vec<u8>,
    expect: Option<Duration>,
    /// There is an `Upgrade` header.
    upgrade: bool,
    /// Names of headers that only the first origin may get.
    sensitive: Vec<Box<str>>,
    /// The codings to decode in the response; `None` for the default.
    codings: Option<Codings>,
    /// Sent in place of the target; `None` for the target.
    sent_target: Option<String>,
    /// How the framing of the response is read.
    reading: Reading,
    /// The header lines that were refused.
    invalid_lines: Vec<Invalid>,
    /// The trailer lines that were refused.
    invalid_trailers: Vec<Invalid>,
    /// What was refused of the body's parts.
    invalid_parts: Vec<Invalid>,
}

/// What an exchange needs to know about its request. Computed once for many exchanges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outline {
    pub(super) kind: RequestKind,
    /// The body is a stream.
    pub(super) streams: bool,
    /// The body waits for 100 (Continue).
    pub(super) awaits_continue: bool,
    /// Nothing in the request changes how a response is read.
    pub(super) is_usual: bool,
    /// The method is [idempotent](Request::is_idempotent).
    pub(super) idempotent: bool,
    /// The request [may share](Request::unfit_for_pipeline) a connection.
    pub(super) fits_pipeline: bool,
    pub(super) reading: Reading,
    /// Bytes of the request that are in memory.
    pub(super) length: usize,
}

/// How the framing of a response is read, if not by the rules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Reading {
    /// The body of the response keeps its chunks.
    pub(super) keeps_chunks: bool,
    /// `Content-Length` does not frame the body of the response.
    pub(super) ignores_length: bool,
}

/// The kind of a request, on which the meaning of the response depends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum RequestKind {
    #[default]
    Ordinary,
    Head,
    Connect,
    /// With an `Upgrade` header.
    Upgrade,
}

impl Request {
    /// A request with this method and target. The target is sent byte for byte; an empty target becomes `/`.
    pub fn new(method: impl Into<String>, target: impl Into<String>) -> Self {
        Self::from_parts(method.into().into(), target.into())
    }

    fn from_parts(method: Cow<'static, str>, target: String) -> Self {
        Self(Box::new(Inner {
            method,
            target,
            ..Inner::default()
        }))
    }

    /// A GET request.
    pub fn get(target: impl Into<String>) -> Self {
        Self::from_parts("GET".into(), target.into())
    }

    /// A HEAD request.
    pub fn head(target: impl Into<String>) -> Self {
        Self::from_parts("HEAD".into(), target.into())
    }

    /// A POST request with a body from memory, as [`body`](Self::body) takes it.
    pub fn post(target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::with_body("POST", target, body)
    }

    /// A PUT request with a body from memory, as [`body`](Self::body) takes it.
    pub fn put(target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::with_body("PUT", target, body)
    }

    /// A PATCH request with a body from memory, as [`body`](Self::body) takes it.
    pub fn patch(target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::with_body("PATCH", target, body)
    }

    /// A DELETE request.
    pub fn delete(target: impl Into<String>) -> Self {
        Self::from_parts("DELETE".into(), target.into())
    }

    fn with_body(method: &'static str, target: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut request = Self::from_parts(method.into(), target.into());
        request.body(body);
        request
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// The target.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// Replaces the method.
    pub fn set_method(&mut self, method: &str) -> &mut Self {
        self.invalidate().0.method = method.to_owned().into();
        self
    }

    /// Replaces the target. Keeps its buffer.
    pub fn set_target(&mut self, target: &str) -> &mut Self {
        if self.0.target != target {
            self.invalidate().0.target.clear();
            self.0.target.push_str(target);
        }
        self
    }

    /// Adds a header line after those that are there. `Host` and `User-Agent` take the place of the defaults instead.
    /// The headers that frame the message (`Content-Length`, `Transfer-Encoding`, `Trailer`, `Expect`) are refused.
    ///
    /// If the client or the call has proxies, `Proxy-Authorization` is sent to an HTTP proxy that forwards the request,
    /// in place of the proxy's own credentials. It is then never sent to a server (RFC 9110 §11.7.2): neither directly,
    /// nor through a tunnel or SOCKS. A tunnel is opened for many requests, so only
    /// [the proxy's credentials](crate::Proxy::with_credentials) open it. Without proxies, the header is sent like any
    /// other, because what the URL names may be a proxy.
    pub fn add_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        let value = value.as_ref();
        self.invalidate();
        if name.eq_ignore_ascii_case("host") {
            self.0.host = OwnValue::Own(value.to_vec());
        } else if name.eq_ignore_ascii_case("user-agent") {
            self.0.user_agent = OwnValue::Own(value.to_vec());
        } else if Invalid::note(&mut self.0.invalid_lines, name, value, check_header) {
            if name.eq_ignore_ascii_case("connection") {
                self.0.close |= list(value).any(|token| token.eq_ignore_ascii_case(b"close"));
            }
            self.0.upgrade |= name.eq_ignore_ascii_case("upgrade");
            push_line(&mut self.0.fields, name, value);
        }
        self
    }

    /// Adds a header line that only this origin may get. A redirect to another scheme, host or port drops it, as it
    /// drops `Authorization`, `Cookie` and `Proxy-Authorization`.
    pub fn sensitive_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        if !self
            .0
            .sensitive
            .iter()
            .any(|own| own.eq_ignore_ascii_case(name))
        {
            self.0.sensitive.push(name.into());
        }
        self.add_header(name, value)
    }

    /// Removes all header lines with this name, in any case. Without an own `User-Agent`, that of the client is sent.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::get("http://a.example/");
    /// request.add_header("Accept", "text/html");
    /// request.remove_header("accept").add_header("Accept", "*/*");
    /// ```
    pub fn remove_header(&mut self, name: &str) -> &mut Self {
        self.invalidate();
        if name.eq_ignore_ascii_case("host") {
            self.0.host = OwnValue::Default;
        } else if name.eq_ignore_ascii_case("user-agent") {
            self.0.user_agent = OwnValue::Default;
        } else {
            remove_lines(&mut self.0.fields, name);
            Invalid::forget(&mut self.0.invalid_lines, name);
            self.0.close &= !name.eq_ignore_ascii_case("connection");
            self.0.upgrade &= !name.eq_ignore_ascii_case("upgrade");
        }
        self
    }

    /// Sends no `User-Agent`.
    pub fn no_user_agent(&mut self) -> &mut Self {
        self.invalidate().0.user_agent = OwnValue::None;
        self
    }

    /// Sends no `Host`. A server must refuse such a request in HTTP/1.1 (RFC 9112 §3.2): this is for tests of servers,
    /// and for HTTP/1.0. After a redirect to another scheme, host or port, `Host` is sent again.
    ///
    /// ```
    /// use courser::{Request, proto::steps::Defaults};
    ///
    /// let mut request = Request::get("/");
    /// request.no_host().encode(&Defaults::new("a.example", None))?;
    /// assert_eq!(request.encoded_head(), b"GET / HTTP/1.1\r\n\r\n");
    /// # Ok::<(), courser::Misuse>(())
    /// ```
    pub fn no_host(&mut self) -> &mut Self {
        self.invalidate().0.host = OwnValue::None;
        self
    }

    /// Sends HTTP/1.0 as the version, for servers that HTTP/1.1 confuses (RFC 9110 §2.5). `Expect` is not sent then, and
    /// a body of unknown length is a misuse ([`Misuse::ChunkedInHttp10`]): both need HTTP/1.1. Whether the connection is
    /// used again depends on the response alone, as always.
    ///
    /// ```
    /// use courser::{Request, proto::steps::Defaults};
    ///
    /// let mut request = Request::get("/");
    /// request.http10().encode(&Defaults::new("a.example", None))?;
    /// assert_eq!(request.encoded_head(), b"GET / HTTP/1.0\r\nHost: a.example\r\n\r\n");
    /// # Ok::<(), courser::Misuse>(())
    /// ```
    pub fn http10(&mut self) -> &mut Self {
        self.invalidate().0.http10 = true;
        self
    }

    /// Removes all headers and trailers, also `Host` and `User-Agent` that were set here.
    pub fn clear_headers(&mut self) -> &mut Self {
        self.invalidate();
        self.0.host = OwnValue::Default;
        self.0.user_agent = OwnValue::Default;
        self.0.fields.clear();
        self.0.trailers.clear();
        self.0.close = false;
        self.0.upgrade = false;
        self.0.sensitive.clear();
        self.0.invalid_lines.clear();
        self.0.invalid_trailers.clear();
        self
    }

    /// Sets a body from memory: a `Vec`, a `String`, static bytes, or [`Bytes`]. Clones of `Bytes` share their memory,
    /// so many requests can send one body without a copy of it. Up to 4 KiB, the body is copied after the head, so
    /// that both go out in one buffer.
    ///
    /// ```
    /// use courser::{Bytes, Request};
    ///
    /// let form = Bytes::from(vec![b'x'; 1 << 20]);
    /// let requests = ["/a", "/b"].map(|target| Request::post(target, form.clone()));
    /// # assert_eq!(requests[1].target(), "/b");
    /// ```
    pub fn body(&mut self, body: impl Into<Bytes>) -> &mut Self {
        self.set_body(Body::Memory(body.into()))
    }

    /// Sets a body that is read from `source` while it is sent: exactly `length` bytes (not more are read), or, with
    /// `None`, all bytes to its end, in the chunked coding.
    ///
    /// The source runs on the thread that drives the client, so it must not block. It may return
    /// [`WouldBlock`](std::io::ErrorKind::WouldBlock); the call continues after `resume`, of the client or of a
    /// [`Ticket`](crate::shared::Ticket). A call that blocks cannot be resumed: it fails with
    /// [`Misuse::NotResumable`](crate::Misuse::NotResumable). If the source panics, the call fails with
    /// [`Misuse::BodySource`](crate::Misuse::BodySource), and the panic goes on in the method that drives the client, which
    /// can be used again. The source is read once: a call that has
    /// begun to read its stream is never sent again. [`body_opened`](Self::body_opened) takes a source that can be.
    pub fn body_stream(
        &mut self,
        source: impl Read + Send + 'static,
        length: Option<u64>,
    ) -> &mut Self {
        self.body_from(Source::Read(Box::new(source)), length)
    }

    /// As [`body_stream`](Self::body_stream), for a body that can be read again: `open` is called for each send, and
    /// returns a reader of the whole body. So the body follows redirects that keep the method (307 and 308), is sent again
    /// where a retry may send it, and is copied with the request. `open` runs on the thread that drives the client, after the
    /// head was sent, so it must not block.
    ///
    /// ```
    /// use courser::Request;
    /// use std::fs::{File, metadata};
    /// # let path = std::env::current_exe()?;
    ///
    /// let length = metadata(&path)?.len();
    /// let mut request = Request::new("PUT", "http://files.example/a");
    /// request.body_opened(move || File::open(&path), Some(length));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn body_opened<R: Read + Send + 'static>(
        &mut self,
        open: impl Fn() -> io::Result<R> + Send + Sync + 'static,
        length: Option<u64>,
    ) -> &mut Self {
        let open = move || open().map(|reader| Box::new(reader) as Box<dyn Read + Send>);
        let (open, reader) = (Arc::new(open), None);
        self.body_from(Source::Opened { open, reader }, length)
    }

    /// As [`body_stream`](Self::body_stream), for a source that gives piece after piece and wakes the call when it has
    /// the next one. With a length, all that the source gives after so many bytes is dropped.
    pub fn body_source(&mut self, source: impl BodySource, length: Option<u64>) -> &mut Self {
        self.body_from(Source::pieces(source), length)
    }

    fn body_from(&mut self, source: Source, length: Option<u64>) -> &mut Self {
        self.set_body(Body::Stream(Box::new(Stream::new(source, length))))
    }

    /// Removes the body.
    pub fn no_body(&mut self) -> &mut Self {
        self.set_body(Body::None)
    }

    fn set_body(&mut self, body: Body) -> &mut Self {
        self.0.invalid_parts.clear();
        self.invalidate().0.body = body;
        self
    }

    /// Adds a trailer line (RFC 9112 §7.1.2). Needs a chunked body. The header `Trailer` announces the names.
    pub fn trailer(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        let value = value.as_ref();
        self.invalidate();
        let check: Check =
            |name, value| check_field(name, value, Part::TrailerName, Part::TrailerValue);
        if Invalid::note(&mut self.0.invalid_trailers, name, value, check) {
            push_line(&mut self.0.trailers, name, value);
        }
        self
    }

    /// Sends `Expect: 100-continue`, and sends the body only when the server asks for it or when `wait` has passed (RFC
    /// 9110 §10.1.1; 1 s is usual). A final response ends the exchange without the body. Has no effect on a request
    /// without a body.
    pub fn expect_continue(&mut self, wait: Duration) -> &mut Self {
        self.invalidate().0.expect = Some(wait);
        self
    }

    /// Decodes these content codings in the body of the response, instead of those of the client's configuration, and
    /// offers them in `Accept-Encoding`. If the request has an `Accept-Encoding` or a `Range` header, nothing is added
    /// to it.
    ///
    /// The body then holds the decoded bytes; the headers stay as received. A body with a coding that is not in the set
    /// is delivered as it was sent, and so is a part of a body (206), which cannot be decoded alone.
    /// [`Response::decoded`](super::Response::decoded) shows whether a body was decoded. An empty coded body is no
    /// error if its framing says that it is empty. A malformed or incomplete coded body is an error. Limits:
    /// [`decoded_bytes`](super::Limits::decoded_bytes), [`decode_ratio`](super::Limits::decode_ratio),
    /// [`zstd_window_log`](super::Limits::zstd_window_log), and 5 codings.
    ///
    /// ```
    /// use courser::{Codings, Request};
    ///
    /// let mut request = Request::get("/");
    /// request.decode(Codings::all());
    /// ```
    pub fn decode(&mut self, codings: Codings) -> &mut Self {
        self.invalidate().0.codings = Some(codings);
        self
    }

    /// Sends this in the request line, byte for byte, in place of the target or of the path and query of a URL; also to
    /// proxies and after redirects. Where the request goes stays as it is.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::new("OPTIONS", "http://example.com/");
    /// request.send_target("*");
    /// ```
    pub fn send_target(&mut self, target: impl Into<String>) -> &mut Self {
        self.invalidate().0.sent_target = Some(target.into());
        self
    }

    /// Keeps the chunked coding of the response in its body: sizes, extensions and trailers stand among the data, as
    /// received. The coding is checked all the same.
    pub fn keep_chunks(&mut self) -> &mut Self {
        self.invalidate().0.reading.keeps_chunks = true;
        self
    }

    /// Reads the body of the response until the server closes the connection, if it has a `Content-Length`: for servers
    /// that announce wrong lengths.
    pub fn ignore_content_length(&mut self) -> &mut Self {
        self.invalidate().0.reading.ignores_length = true;
        self
    }

    /// The head as it was last encoded, with its empty line; empty if the request was never encoded.
    pub fn encoded_head(&self) -> &[u8] {
        &self.0.encoded[..self.0.head_len]
    }

    /// Checks the request as the caller has set it, and encodes it, unless it is encoded with the same defaults already.
    ///
    /// # Errors
    /// The part of the request that is not valid, or a stream that was read already.
    pub fn encode(&mut self, defaults: &Defaults) -> Result<(), Misuse> {
        self.reset();
        #[cfg(feature = "cookies")]
        self.no_cookies();
        self.encode_now(defaults)
    }

    /// As [`encode`](Self::encode), during a call: where redirects have led, with the cookies for there.
    #[inline]
    pub(crate) fn encode_now(&mut self, defaults: &Defaults) -> Result<(), Misuse> {
        // The id of defaults is never 0.
        if self.0.encoded_for == defaults.id && !self.0.outline.streams {
            return Ok(());
        }
        self.encode_anew(defaults)
    }

    /// Encodes the request with header lines that hold for this send only. They take the place of those that the caller
    /// has set. Only for defaults with which the request is always encoded in this way.
    pub(crate) fn encode_with(
        &mut self,
        defaults: &Defaults,
        hop: &HopFields,
    ) -> Result<(), Misuse> {
        hop.check()?;
        if !self.is_replayable() {
            return Err(Misuse::BodyNotReplayable);
        }
        self.check(defaults.form)?;
        self.0.encoded_codings = self.0.codings.unwrap_or(defaults.codings);
        let mut out = std::mem::take(&mut self.0.encoded);
        out.clear();
        // Invalid until the encoding succeeds; `encoded` may be that of another client.
        self.0.encoded_for = 0;
        self.0.head_len = 0;
        if let Err(misuse) = self.write_head(&mut out, defaults, hop) {
            out.clear();
            self.0.encoded = out;
            return Err(misuse);
        }
        self.0.head_len = out.len();
        if self.inline_body()
            && let Body::Memory(body) = self.body_now()
        {
            out.extend_from_slice(body);
        }
        self.0.encoded = out;
        self.0.outline = self.compute_outline();
        self.0.encoded_for = defaults.id;
        Ok(())
    }

    /// The [id](Defaults) of the defaults that the request was encoded with; 0 if it was changed since, or never
    /// encoded.
    #[inline]
    pub(crate) fn encoded_for(&self) -> u64 {
        self.0.encoded_for
    }

    fn encode_anew(&mut self, defaults: &Defaults) -> Result<(), Misuse> {
        if self.0.encoded_for == defaults.id && self.is_replayable() {
            return Ok(());
        }
        self.encode_with(defaults, &HopFields::default())
    }

    /// The outline of the request as it was encoded last.
    #[inline]
    pub(super) fn outline(&self) -> Outline {
        if self.0.encoded_for != 0 {
            self.0.outline
        } else {
            self.compute_outline()
        }
    }

    #[cold]
    fn compute_outline(&self) -> Outline {
        let kind = match self.method_now() {
            "HEAD" => RequestKind::Head,
            "CONNECT" => RequestKind::Connect,
            _ if self.0.upgrade => RequestKind::Upgrade,
            _ => RequestKind::Ordinary,
        };
        Outline {
            kind,
            streams: self.has_stream(),
            awaits_continue: self.expects().is_some(),
            is_usual: kind == RequestKind::Ordinary
                && !self.0.reading.ignores_length
                && self.codings().is_empty(),
            idempotent: self.is_idempotent(),
            fits_pipeline: self.unfit_for_pipeline().is_none(),
            reading: self.0.reading,
            length: self.encoded().len() + self.separate_body().len(),
        }
    }

    fn check(&self, form: TargetForm) -> Result<(), Misuse> {
        let lines = self.0.invalid_lines.iter();
        let mut invalid = lines
            .chain(&self.0.invalid_trailers)
            .chain(&self.0.invalid_parts);
        invalid.try_for_each(Invalid::check)?;
        check_token(self.0.method.as_bytes(), Part::Method)?;
        if let Some(target) = &self.0.sent_target {
            check_bytes(target.as_bytes(), Part::Target, |byte| {
                byte.is_ascii_graphic()
            })?;
        }
        match form {
            TargetForm::AsGiven if self.0.sent_target.is_some() => {}
            TargetForm::AsGiven => self.check_target()?,
            // Checked when the URL is parsed.
            TargetForm::OfUrl | TargetForm::WholeUrl if self.0.method != "CONNECT" => {}
            TargetForm::OfUrl | TargetForm::WholeUrl => return Err(Misuse::TargetForm),
        }
        if self.0.http10 && self.is_chunked() {
            return Err(Misuse::ChunkedInHttp10);
        }
        let has_trailers = !self.0.trailers.is_empty() && !self.lost_body();
        if has_trailers && !self.is_chunked() {
            return Err(Misuse::TrailersWithoutChunked);
        }
        Ok(())
    }

    fn check_target(&self) -> Result<(), Misuse> {
        check_bytes(self.0.target.as_bytes(), Part::Target, |byte| {
            byte.is_ascii_graphic() && byte != b'#'
        })?;
        let right_form = match self.0.target.as_bytes() {
            [] | [b'/', ..] => self.0.method != "CONNECT",
            b"*" => self.0.method == "OPTIONS",
            _ => self.0.method == "CONNECT",
        };
        match right_form {
            true => Ok(()),
            false => Err(Misuse::TargetForm),
        }
    }

    fn write_head(
        &self,
        out: &mut Vec<u8>,
        defaults: &Defaults,
        hop: &HopFields,
    ) -> Result<(), Misuse> {
        let host = match &self.0.host {
            OwnValue::Own(own) if !self.is_other_origin() => Some(own.as_slice()),
            OwnValue::None if !self.is_other_origin() => None,
            _ => Some(defaults.host.as_slice()),
        };
        let host_bytes = host.unwrap_or_default();
        check_bytes(host_bytes, Part::Host, |byte| byte.is_ascii_graphic())?;
        out.extend_from_slice(self.method_now().as_bytes());
        out.push(b' ');
        let url = match defaults.form {
            TargetForm::AsGiven => None,
            TargetForm::OfUrl | TargetForm::WholeUrl => {
                let text = self.url();
                Some(Url::parse(text).map_err(|error| Misuse::url(text, error))?)
            }
        };
        match (&self.0.sent_target, &url, self.0.target.as_str()) {
            (Some(target), ..) => out.extend_from_slice(target.as_bytes()),
            (None, Some(url), _) => {
                if defaults.form == TargetForm::WholeUrl {
                    url.push_origin(out);
                }
                url.push_target(out);
            }
            (None, None, "") => out.push(b'/'),
            (None, None, target) => out.extend_from_slice(target.as_bytes()),
        }
        out.extend_from_slice(match self.0.http10 {
            true => b" HTTP/1.0\r\n",
            false => b" HTTP/1.1\r\n",
        });
        if let Some(host) = host {
            push_line(out, "Host", host);
        }
        let user_agent = match &self.0.user_agent {
            OwnValue::Default => defaults.user_agent.as_deref(),
            OwnValue::Own(_) if self.is_private("User-Agent") => defaults.user_agent.as_deref(),
            OwnValue::Own(value) => Some(value.as_slice()),
            OwnValue::None => None,
        };
        if let Some(value) = user_agent {
            check_value(value, Part::UserAgent)?;
            push_line(out, "User-Agent", value);
        }
        let fields = &self.0.fields;
        if !self.0.encoded_codings.is_empty() && !has_line(fields, &["accept-encoding", "range"]) {
            let offer = self.0.encoded_codings.to_string();
            push_line(out, "Accept-Encoding", offer.as_bytes());
        }
        let withheld =
            defaults.omits_proxy_authorization && has_line(fields, &[PROXY_AUTHORIZATION]);
        if !defaults.proxy_authorization.is_empty()
            && (self.is_other_origin() || !has_line(fields, &[PROXY_AUTHORIZATION]))
        {
            out.extend_from_slice(&defaults.proxy_authorization);
        }
        out.extend_from_slice(&defaults.lines);
        let has_cookies = !self.0.cookies.is_empty();
        if !self.was_redirected() && !withheld && !has_cookies && hop.lines.is_empty() {
            out.extend_from_slice(fields);
        } else {
            self.write_some_fields(withheld, hop, out);
        }
        if let Some(url) = url
            && !self.0.redirected.withholds_credentials
            && hop.get("authorization").is_none()
        {
            self.write_authorization(&url, out);
        }
        out.extend_from_slice(&hop.lines);
        if has_cookies {
            self.write_cookies(out);
        }
        self.write_framing(out);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Writes `Authorization` from the user information of the URL, or, after redirects, of the first URL. A server
    /// that redirects to another origin can give no credentials for that origin.
    fn write_authorization(&self, url: &Url<'_>, out: &mut Vec<u8>) {
        let first = self.was_redirected().then(|| Url::parse(&self.0.target));
        let first = first.and_then(|url| url.ok()?.userinfo());
        let own = url.userinfo().filter(|_| !self.is_other_origin());
        if let Some(userinfo) = own.or(first)
            && !has_line(&self.0.fields, &["authorization"])
        {
            out.extend_from_slice(b"Authorization: ");
            push_basic(userinfo, out);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Writes the headers that still hold after redirects, except those in `hop`; without `Proxy-Authorization` if
    /// `withheld`, and without `Cookie` if [`write_cookies`](Self::write_cookies) writes that header.
    fn write_some_fields(&self, withheld: bool, hop: &HopFields, out: &mut Vec<u8>) {
        for line in lines(&self.0.fields) {
            let (name, _) = split_line(line);
            let replaced = hop.get(name).is_some()
                || withheld && name.eq_ignore_ascii_case(PROXY_AUTHORIZATION)
                || !self.0.cookies.is_empty() && name.eq_ignore_ascii_case("cookie");
            if self.still_holds(name) && !replaced {
                out.extend_from_slice(line);
            }
        }
    }

    /// Whether a header of the caller with this name still holds where redirects have led.
    fn still_holds(&self, name: &str) -> bool {
        !(self.is_private(name) || self.lost_body() && describes_body(name))
    }

    /// The first header with this name that the caller has set, if it still holds.
    pub(crate) fn header_now(&self, name: &str) -> Option<&[u8]> {
        self.header(name).filter(|_| self.still_holds(name))
    }

    /// The body of this send if it is in memory; empty if there is none.
    pub(crate) fn body_in_memory(&self) -> Option<&[u8]> {
        match self.body_now() {
            Body::None => Some(&[]),
            Body::Memory(body) => Some(body),
            Body::Stream(_) => None,
        }
    }

    /// Writes one `Cookie` header (RFC 6265 §5.4): the cookies that the caller has set, then those of the jar. A cookie
    /// of the caller takes the place of a cookie of the jar with the same name.
    #[cold]
    fn write_cookies(&self, out: &mut Vec<u8>) {
        let own = lines(&self.0.fields).map(split_line);
        let own: Vec<&[u8]> = own
            .filter(|(name, _)| name.eq_ignore_ascii_case("cookie") && !self.is_private(name))
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
            .collect();
        let named = |name: &[u8]| {
            own.iter()
                .any(|value| cookies(value).any(|own| own.0 == name))
        };
        let jar = cookies(&self.0.cookies).filter(|(name, _)| !named(name));
        let mut separator: &[u8] = b"Cookie: ";
        for part in own.iter().copied().chain(jar.map(|(_, pair)| pair)) {
            out.extend_from_slice(separator);
            out.extend_from_slice(part);
            separator = b"; ";
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Whether the present origin may not get a header with this name.
    fn is_private(&self, name: &str) -> bool {
        let mut marked = self.0.sensitive.iter();
        let mut is_marked = || marked.any(|own| own.eq_ignore_ascii_case(name));
        match name.eq_ignore_ascii_case(PROXY_AUTHORIZATION) {
            true => self.is_other_origin(), // no server is trusted with it
            false => {
                self.0.redirected.withholds_credentials && (is_credential(name) || is_marked())
            }
        }
    }

    fn write_framing(&self, out: &mut Vec<u8>) {
        match self.content_length() {
            _ if self.is_chunked() => push_line(out, "Transfer-Encoding", b"chunked"),
            Some(length) => {
                let mut digits = itoa::Buffer::new();
                push_line(out, "Content-Length", digits.format(length).as_bytes());
            }
            None => {}
        }
        if !self.0.trailers.is_empty() && !self.lost_body() {
            let names = lines(&self.0.trailers).map(|line| split_line(line).0);
            let names = names.collect::<Vec<_>>().join(", ");
            push_line(out, "Trailer", names.as_bytes());
        }
        if self.expects().is_some() {
            push_line(out, "Expect", b"100-continue");
        }
    }

    /// The value of `Content-Length`. None for a request without a body, but 0 for methods that usually have one (RFC
    /// 9110 §8.6).
    fn content_length(&self) -> Option<u64> {
        match self.body_now() {
            Body::None => matches!(self.method_now(), "POST" | "PUT" | "PATCH").then_some(0),
            Body::Memory(body) => Some(body.len() as u64),
            Body::Stream(stream) => stream.length,
        }
    }

    fn is_chunked(&self) -> bool {
        matches!(self.body_now(), Body::Stream(stream) if stream.length.is_none())
    }

    /// Whether the body goes out in the same buffer as the head.
    fn inline_body(&self) -> bool {
        match self.body_now() {
            Body::Memory(body) => body.len() <= INLINE_BODY && self.expects().is_none(),
            Body::None | Body::Stream(_) => true,
        }
    }

    /// How long the body waits for 100 (Continue); `None` if it does not wait.
    pub(super) fn expects(&self) -> Option<Duration> {
        match self.body_now() {
            Body::None => None,
            Body::Memory(body) if body.is_empty() => None,
            // RFC 9110 §10.1.1.
            Body::Memory(_) | Body::Stream(_) if self.0.http10 => None,
            Body::Memory(_) | Body::Stream(_) => self.0.expect,
        }
    }

    /// The bytes in memory as they go out: the encoded head with a small body, then a larger body.
    #[inline(always)] // on the path of every call
    pub(crate) fn in_memory(&self) -> [&[u8]; 2] {
        [self.encoded(), self.separate_body()]
    }

    /// What prevents the request, as it was encoded last, from being pipelined.
    pub(crate) fn unfit_for_pipeline(&self) -> Option<&'static str> {
        let reasons = [
            (self.has_stream(), "a body stream"),
            (self.expects().is_some(), "Expect: 100-continue"),
            (self.0.upgrade, "an Upgrade header"),
            (self.method_now() == "CONNECT", "CONNECT"),
            (self.0.http10, "HTTP/1.0"),
        ];
        let holds = reasons.into_iter().find(|(holds, _)| *holds);
        holds.map(|(_, reason)| reason)
    }

    /// The encoded head, with the body if it is small.
    #[inline]
    pub(super) fn encoded(&self) -> &[u8] {
        &self.0.encoded
    }

    /// The body that goes out after the encoded part, if it is large.
    #[inline(always)] // on the path of every call
    pub(super) fn separate_body(&self) -> &[u8] {
        match self.body_now() {
            Body::Memory(body) if !self.inline_body() => body,
            _ => &[],
        }
    }

    /// Goes back to the beginning of a body stream that can be opened again, for another send.
    pub(super) fn rewind_stream(&mut self) {
        if let Body::Stream(stream) = &mut self.0.body {
            stream.rewind();
        }
    }

    /// Frames the next piece of the body stream. The piece before must have been sent.
    pub(super) fn fill_stream(&mut self) -> Result<Fill, Misuse> {
        match &mut self.0.body {
            Body::Stream(stream) => stream.fill(&self.0.trailers),
            Body::None | Body::Memory(_) => Ok(Fill::Ended),
        }
    }

    /// The current framed piece of the body stream.
    pub(super) fn stream_pending(&self) -> &[u8] {
        match &self.0.body {
            Body::Stream(stream) => &stream.buffer,
            Body::None | Body::Memory(_) => &[],
        }
    }

    /// Whether the source of the body must know whom it wakes when it has its next piece.
    #[cold]
    pub(crate) fn has_waking_source(&self) -> bool {
        matches!(&self.0.body, Body::Stream(stream) if stream.wakes())
    }

    /// What the source of the body has panicked with, once.
    pub(crate) fn take_panic(&mut self) -> Option<Panic> {
        match &mut self.0.body {
            Body::Stream(stream) => stream.panic.take(),
            Body::None | Body::Memory(_) => None,
        }
    }

    /// Sets whether the source of the body may say that it has no bytes yet.
    pub(crate) fn set_source_may_block(&mut self, may_block: bool) {
        if let Body::Stream(stream) = &mut self.0.body {
            stream.set_may_block(may_block);
        }
    }

    /// Sets whom the source of the body wakes.
    pub(crate) fn set_source_waker(&mut self, waker: Waker) {
        if let Body::Stream(stream) = &mut self.0.body {
            stream.set_waker(waker);
        }
    }

    #[inline]
    pub(crate) fn has_stream(&self) -> bool {
        matches!(self.0.body, Body::Stream(_)) && !self.lost_body()
    }

    pub(crate) fn says_close(&self) -> bool {
        self.0.close
    }

    /// The codings to decode in the response to the request as it was encoded last.
    pub(super) fn codings(&self) -> Codings {
        self.0.encoded_codings
    }

    /// Whether the whole request can be sent again: it has no stream, or one that was not read yet or can be opened again.
    pub(crate) fn is_replayable(&self) -> bool {
        match self.body_now() {
            Body::Stream(stream) => stream.is_replayable(),
            Body::None | Body::Memory(_) => true,
        }
    }

    /// Whether sending the request twice has the effect of sending it once (RFC 9110 §9.2.2). What counts is the
    /// method of the last send: GET where a redirect has made it so.
    pub fn is_idempotent(&self) -> bool {
        matches!(
            self.method_now(),
            "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"
        )
    }

    /// [`is_idempotent`](Self::is_idempotent) of an encoded request.
    #[inline]
    pub(crate) fn was_encoded_idempotent(&self) -> bool {
        self.0.outline.idempotent
    }

    /// Whether nothing makes an encoded request [unfit](Self::unfit_for_pipeline) for a pipeline.
    #[inline]
    pub(crate) fn was_encoded_for_pipeline(&self) -> bool {
        self.0.outline.fits_pipeline
    }

    // ---- redirects and cookies

    /// Sends the request to another URL after a redirect. With a `method`, the request loses its body and the headers
    /// that describe the body. The parts that the caller has set stay for the next call. Another origin gets no
    /// credentials, nor do later origins, unless this one is `trusted`.
    pub(crate) fn redirect(
        &mut self,
        url: String,
        method: Option<&'static str>,
        other_origin: bool,
        trusted: bool,
    ) {
        let now = &mut self.invalidate().0.redirected;
        now.url = url;
        now.method = method.or(now.method);
        now.other_origin |= other_origin;
        now.withholds_credentials = !trusted && (other_origin || now.withholds_credentials);
    }

    /// Forgets the redirects of an earlier call.
    #[inline]
    pub(crate) fn reset(&mut self) {
        if self.was_redirected() {
            self.invalidate().0.redirected = Redirected::default();
        }
    }

    /// Sends no cookies of a jar.
    #[cfg(feature = "cookies")]
    #[inline]
    pub(crate) fn no_cookies(&mut self) {
        if !self.0.cookies.is_empty() {
            self.set_cookies(&[]);
        }
    }

    #[cfg(feature = "cookies")]
    /// Sends these cookies of a jar in `Cookie`, after the cookies that the caller has set; nothing if they are empty.
    pub(crate) fn set_cookies(&mut self, cookies: &[u8]) {
        if self.0.cookies != cookies {
            self.invalidate().0.cookies.clear();
            self.0.cookies.extend_from_slice(cookies);
        }
    }

    fn was_redirected(&self) -> bool {
        !self.0.redirected.url.is_empty()
    }

    /// The URL to send the request to: the target, or where redirects have led.
    pub(crate) fn url(&self) -> &str {
        match self.was_redirected() {
            true => &self.0.redirected.url,
            false => &self.0.target,
        }
    }

    /// The method to send now.
    pub(crate) fn method_now(&self) -> &str {
        self.0.redirected.method.unwrap_or(&self.0.method)
    }

    fn body_now(&self) -> &Body {
        match self.lost_body() {
            true => &Body::None,
            false => &self.0.body,
        }
    }

    fn lost_body(&self) -> bool {
        self.0.redirected.method.is_some()
    }

    /// Whether a redirect has led to another origin.
    pub(crate) fn is_other_origin(&self) -> bool {
        self.0.redirected.other_origin
    }

    fn invalidate(&mut self) -> &mut Self {
        self.0.encoded_for = 0;
        self
    }

    /// Refuses the body if this is no value of a part's header.
    pub(super) fn check_part(&mut self, name: &str, value: &[u8]) {
        Invalid::note(&mut self.0.invalid_parts, name, value, check_header);
    }
}

impl Default for Request {
    /// `GET /`.
    fn default() -> Self {
        Self::from_parts("GET".into(), String::new())
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.0.method)
            .field("target", &without_userinfo(&self.0.target))
            .finish_non_exhaustive()
    }
}

/// A target for display, without its user information.
pub(crate) fn without_userinfo(target: &str) -> Cow<'_, str> {
    match Url::parse(target) {
        Ok(url) => url.to_string().into(),
        Err(_) if target.starts_with('/') => target.into(),
        Err(_) => redacted(target).into(),
    }
}

/// What a client adds to requests that do not set it themselves.
///
/// ```
/// use courser::proto::steps::Defaults;
///
/// let defaults = Defaults::new("example.com", Some("probe/1.0"));
/// let mut request = courser::Request::get("/");
/// request.encode(&defaults)?;
/// # Ok::<(), courser::Misuse>(())
/// ```
#[derive(Clone, Debug)]
pub struct Defaults {
    /// Identifies these defaults: never 0, and different for all defaults except clones.
    pub(crate) id: u64,
    /// The value of `Host`.
    pub(crate) host: Vec<u8>,
    user_agent: Option<Vec<u8>>,
    form: TargetForm,
    /// The line of `Proxy-Authorization` for the next hop, unless the request has its own.
    pub(crate) proxy_authorization: Vec<u8>,
    /// More header lines for the next hop, each with its CRLF.
    pub(crate) lines: Vec<u8>,
    /// A request's own `Proxy-Authorization` is left out: the next hop is the origin server.
    pub(crate) omits_proxy_authorization: bool,
    codings: Codings,
}

/// What the target of a request is, and what of it is sent (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TargetForm {
    /// The target is sent as it is.
    AsGiven,
    /// The target is a URL. Its path and query are sent (origin-form).
    OfUrl,
    /// The target is a URL. All of it except the user information is sent to a proxy (absolute-form).
    WholeUrl,
}

impl Defaults {
    /// Takes the value of `Host`, and the default `User-Agent`.
    pub fn new(host: impl Into<Vec<u8>>, user_agent: Option<&str>) -> Self {
        Self {
            id: Self::next_id(),
            host: host.into(),
            user_agent: user_agent.map(|value| value.as_bytes().to_vec()),
            form: TargetForm::AsGiven,
            proxy_authorization: Vec::new(),
            lines: Vec::new(),
            omits_proxy_authorization: false,
            codings: Codings::none(),
        }
    }

    /// Decodes these content codings in responses, unless the request sets its own with [`Request::decode`].
    pub fn with_codings(mut self, codings: Codings) -> Self {
        self.id = Self::next_id(); // a request that was encoded for a clone must be encoded again
        self.codings = codings;
        self
    }

    fn next_id() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn with_form(mut self, form: TargetForm) -> Self {
        self.form = form;
        self
    }
}

/// Where redirects have led.
#[derive(Clone, Default)]
struct Redirected {
    /// Empty before the first redirect.
    url: String,
    /// Replaces the method; then the request has no body.
    method: Option<&'static str>,
    /// Another scheme, host or port was reached, now or earlier: `Host`, `Proxy-Authorization` and the TLS identity that the
    /// caller has set for the first origin are not sent any more.
    other_origin: bool,
    /// Headers that only the first origin may get are not sent any more: the credentials of the request must not go there.
    withholds_credentials: bool,
}

/// The value of a header that the client adds: the client's, the request's, or none.
#[derive(Clone, Default)]
enum OwnValue {
    #[default]
    Default,
    Own(Vec<u8>),
    None,
}

#[derive(Clone, Default)]
enum Body {
    #[default]
    None,
    Memory(Bytes),
    Stream(Box<Stream>),
}

/// A field that no request can have, and the check that refuses it.
#[derive(Clone)]
struct Invalid {
    name: Box<str>,
    value: Box<[u8]>,
    check: Check,
}

/// Checks a name and a value.
type Check = fn(&str, &[u8]) -> Result<(), Misuse>;

impl Invalid {
    /// Checks a field, and notes it if it is refused. Returns whether it is valid.
    fn note(all: &mut Vec<Self>, name: &str, value: &[u8], check: Check) -> bool {
        let is_valid = check(name, value).is_ok();
        if !is_valid {
            all.push(Self {
                name: name.into(),
                value: value.into(),
                check,
            });
        }
        is_valid
    }

    fn forget(all: &mut Vec<Self>, name: &str) {
        all.retain(|it| !it.name.eq_ignore_ascii_case(name));
    }

    fn check(&self) -> Result<(), Misuse> {
        (self.check)(&self.name, &self.value)
    }
}

/// The name and the value of a header line that [`push_line`] has written.
fn split_line(line: &[u8]) -> (&str, &[u8]) {
    let line = line.strip_suffix(b"\r\n").unwrap_or(line);
    let colon = line.iter().position(|&byte| byte == b':');
    let (name, value) = line.split_at(colon.unwrap_or(line.len()));
    // Names are tokens, which `add_header` has checked.
    let name = std::str::from_utf8(name).unwrap_or_default();
    (name, value.strip_prefix(b": ").unwrap_or(value))
}

/// The cookies in the value of `Cookie`: the name of each, and all of it.
fn cookies(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    value.split(|&byte| byte == b';').map(|pair| {
        let pair = pair.trim_ascii();
        let name = pair.split(|&byte| byte == b'=').next();
        (name.unwrap_or_default().trim_ascii_end(), pair)
    })
}

/// Whether this header has credentials.
fn is_credential(name: &str) -> bool {
    ["authorization", "cookie", PROXY_AUTHORIZATION]
        .iter()
        .any(|credential| credential.eq_ignore_ascii_case(name))
}

/// Whether this header describes the body, and is dropped with it (RFC 9110 §15.4).
fn describes_body(name: &str) -> bool {
    // `Content-Type`, `Content-Encoding` and others.
    let start = name.get(..8).unwrap_or_default();
    start.eq_ignore_ascii_case("content-") || OF_BODY.iter().any(|of| of.eq_ignore_ascii_case(name))
}

fn push_line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The header lines, each with its CRLF.
fn lines(fields: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields.split_inclusive(|byte| *byte == b'\n')
}

fn is_named(line: &[u8], name: &str) -> bool {
    let end = name.len();
    let ends_here = line.get(end) == Some(&b':') && !name.contains(':');
    ends_here && line[..end].eq_ignore_ascii_case(name.as_bytes())
}

fn has_line(fields: &[u8], names: &[&str]) -> bool {
    lines(fields).any(|line| names.iter().any(|name| is_named(line, name)))
}

#[cold]
fn remove_lines(fields: &mut Vec<u8>, name: &str) {
    if has_line(fields, &[name]) {
        let kept = lines(fields).filter(|line| !is_named(line, name));
        *fields = kept.flatten().copied().collect();
    }
}

fn check_header(name: &str, value: &[u8]) -> Result<(), Misuse> {
    match FRAMING.iter().find(|f| f.eq_ignore_ascii_case(name)) {
        Some(framing) => Err(Misuse::FramingHeader(framing)),
        None => check_field(name, value, Part::HeaderName, Part::HeaderValue),
    }
}

fn check_field(name: &str, value: &[u8], name_part: Part, value_part: Part) -> Result<(), Misuse> {
    let checked =
        check_token(name.as_bytes(), name_part).and_then(|()| check_value(value, value_part));
    checked.map_err(|mut misuse| {
        if let Misuse::Invalid {
            part, name: of, at, ..
        } = &mut misuse
        {
            // No more of a name than is one.
            let end = if *part == name_part { *at } else { name.len() };
            *of = name[..end].into();
        }
        misuse
    })
}

fn check_token(bytes: &[u8], part: Part) -> Result<(), Misuse> {
    match bytes.is_empty() {
        true => Err(Misuse::Empty(part)),
        false => check_bytes(bytes, part, is_of_token),
    }
}

/// Refuses a `User-Agent` that no request can have.
pub(crate) fn check_user_agent(value: Option<&str>) -> Result<(), Misuse> {
    check_value(value.unwrap_or_default().as_bytes(), Part::UserAgent)
}

fn check_value(bytes: &[u8], part: Part) -> Result<(), Misuse> {
    check_bytes(bytes, part, is_of_text)
}

fn check_bytes(bytes: &[u8], part: Part, allowed: impl Fn(u8) -> bool) -> Result<(), Misuse> {
    match bytes.iter().position(|&byte| !allowed(byte)) {
        Some(at) => Err(Misuse::Invalid {
            part,
            name: "".into(),
            at,
            byte: bytes[at],
        }),
        None => Ok(()),
    }
}

/// The headers that only the engine writes.
const FRAMING: &[&str] = &["Content-Length", "Transfer-Encoding", "Trailer", "Expect"];

pub(crate) const PROXY_AUTHORIZATION: &str = "Proxy-Authorization";

/// Those that RFC 9110 names, and digests of the body (RFC 9530).
const OF_BODY: &[&str] = &["digest", "last-modified", "repr-digest"];

/// Bytes. Bodies up to this size are copied after the head and sent in the same buffer. Larger bodies are a second
/// slice of the same write, without a copy.
const INLINE_BODY: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_headers_leave_nothing_behind() {
        let mut request = Request::get("/");
        request
            .add_header("Accept", "a")
            .add_header("Range", "bytes=0-0");
        request
            .add_header("accept", "b")
            .add_header("Accepted", "c");
        request
            .add_header("Connection", "close")
            .add_header("User-Agent", "own");
        for name in ["ACCEPT", "range", "connection", "user-agent", "absent"] {
            request.remove_header(name);
        }
        // This is no name, and so the name of no line.
        request.add_header("A", "b: c").remove_header("A: b");
        assert_eq!(request.0.fields, b"Accepted: c\r\nA: b: c\r\n");
        for _ in 0..2 {
            request.remove_header("a").sensitive_header("A", "b");
        }
        assert_eq!(request.0.sensitive.len(), 1);
        request.remove_header("a");
        assert_eq!(request.0.fields, b"Accepted: c\r\n");
        assert!(!request.0.close);
    }

    /// With the body goes what describes it and how it is framed; the next call has them again.
    #[test]
    fn framing_goes_with_the_body() {
        let defaults = Defaults::new("h", None).with_form(TargetForm::OfUrl);
        let head = |request: &mut Request| {
            request.encode_now(&defaults).expect("valid");
            String::from_utf8_lossy(request.encoded_head()).into_owned()
        };
        let mut streamed = Request::new("POST", "http://h/from");
        streamed.body_stream(&b"x"[..], None).trailer("X-Sum", "1");
        let mut held_back = Request::post("http://h/from", "held back");
        held_back.expect_continue(std::time::Duration::ZERO);
        for request in [&mut streamed, &mut held_back] {
            request
                .add_header("Content-Encoding", "gzip")
                .add_header("X", "y");
            let before = head(request);
            request.redirect("http://h/to".to_owned(), Some("GET"), false, false);
            assert_eq!(head(request), "GET /to HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n");
            #[cfg(feature = "cookies")]
            request.set_cookies(b"of=a-jar");
            // The caller encodes what the caller has set.
            request.encode(&defaults).expect("valid");
            assert_eq!(head(request), before);
        }
    }

    #[test]
    fn headers_that_carry_credentials() {
        for name in ["Authorization", "COOKIE", "proxy-authorization"] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["Accept", "Cookies", "WWW-Authenticate"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn debug_shows_no_password() {
        for (target, shown) in [
            ("http://user:secret@h/p", "http://h/p"),
            ("http://user:secret@h:port/", "http://***@h:port/"),
            ("user:secret@h/", "***@h/"),
            ("/a@b", "/a@b"),
        ] {
            let debug = format!("{:?}", Request::get(target));
            assert!(debug.contains(&format!("{shown:?}")), "{debug}");
            assert!(!debug.contains("secret"), "{debug}");
        }
    }

    #[test]
    fn headers_that_describe_the_body() {
        for name in "Content-Type CONTENT-LENGTH content-md5 Repr-Digest".split(' ') {
            assert!(describes_body(name), "{name}");
        }
        for name in "Accept Contents X-Content-Type Conten If-Match"
            .split(' ')
            .chain([""])
        {
            assert!(!describes_body(name), "{name}");
        }
    }
}
