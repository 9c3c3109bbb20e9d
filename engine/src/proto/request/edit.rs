//! Reads and edits a request before it is sent: its headers, its query, and bodies that are forms or JSON.

use super::{Check, Invalid, OwnValue, Redirected, Request, check_bytes, lines, split_line};
use crate::error::Part;
use crate::proto::Credentials;

impl Request {
    /// The headers that were set here, in the order in which they are sent: `Host` and `User-Agent` come first. Those that the
    /// client adds, and those that frame the message, are not among them.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::get("http://a.example/");
    /// request.add_header("Accept", "text/html").add_header("Host", "b.example");
    /// let headers: Vec<_> = request.headers().collect();
    /// assert_eq!(headers, [("Host", &b"b.example"[..]), ("Accept", b"text/html")]);
    /// ```
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let own = [("Host", &self.0.host), ("User-Agent", &self.0.user_agent)];
        let own = own.into_iter().filter_map(|(name, value)| match value {
            OwnValue::Own(value) => Some((name, value.as_slice())),
            OwnValue::Default | OwnValue::None => None,
        });
        own.chain(lines(&self.0.fields).map(split_line))
    }

    /// The value of the first header with this name that was set here, ignoring case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers();
        headers.find_map(|(candidate, value)| candidate.eq_ignore_ascii_case(name).then_some(value))
    }

    /// Removes all headers with this name, and adds this one, as [`add_header`](Self::add_header) does.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::get("http://a.example/");
    /// request.add_header("Accept", "a/a").add_header("accept", "b/b").set_header("Accept", "*/*");
    /// assert_eq!(request.headers().count(), 1);
    /// assert_eq!(request.header("accept"), Some(&b"*/*"[..]));
    /// ```
    pub fn set_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        self.remove_header(name).add_header(name, value)
    }

    /// Sets `Authorization` to `Basic` with this user name and password (RFC 7617). A colon in the user name is refused when
    /// the call is made: the server would take what follows for the password.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::get("http://a.example/");
    /// request.basic_auth("Aladdin", "open sesame");
    /// assert_eq!(request.header("authorization"), Some(&b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="[..]));
    /// ```
    pub fn basic_auth(&mut self, user: &str, password: &str) -> &mut Self {
        let check: Check = |_, user| check_bytes(user, Part::UserName, |b| b != b':');
        let (name, mut value) = ("Authorization", Vec::new());
        Credentials::new(user, password).push_basic(&mut value);
        self.set_header(name, value);
        Invalid::note(&mut self.0.invalid_lines, name, user.as_bytes(), check);
        self
    }

    /// Sets `Authorization` to `Bearer` with this token (RFC 6750).
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::delete("http://a.example/items/7");
    /// request.bearer_auth("abc");
    /// assert_eq!(request.header("authorization"), Some(&b"Bearer abc"[..]));
    /// ```
    pub fn bearer_auth(&mut self, token: &str) -> &mut Self {
        self.set_header("Authorization", format!("Bearer {token}"))
    }

    /// Adds these pairs to the query of the target, percent-encoded as forms are (the URL standard,
    /// application/x-www-form-urlencoded): a blank becomes `+`.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::get("http://a.example/find?page=1#top");
    /// request.query([("q", "a b&c"), ("lang", "é")]);
    /// assert_eq!(request.target(), "http://a.example/find?page=1&q=a+b%26c&lang=%C3%A9#top");
    /// ```
    #[cfg(feature = "form")]
    pub fn query<K: AsRef<str>, V: AsRef<str>>(
        &mut self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        let pairs = encode_pairs(pairs);
        if pairs.is_empty() {
            return self;
        }
        let target = &mut self.invalidate().0.target;
        let end = target.find('#').unwrap_or(target.len());
        let separator = match &target[..end] {
            before if before.ends_with(['?', '&']) => "",
            before if before.contains('?') => "&",
            _ => "?",
        };
        target.insert_str(end, &format!("{separator}{pairs}"));
        self
    }

    /// Sets a body of these pairs, in the form application/x-www-form-urlencoded, and its `Content-Type`.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::post("http://a.example/", "");
    /// request.form([("name", "a b"), ("x", "1")]);
    /// assert_eq!(request.header("content-type"), Some(&b"application/x-www-form-urlencoded"[..]));
    /// ```
    #[cfg(feature = "form")]
    pub fn form<K: AsRef<str>, V: AsRef<str>>(
        &mut self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        let body = encode_pairs(pairs);
        self.set_header("Content-Type", "application/x-www-form-urlencoded")
            .body(body)
    }

    /// Sets a body of JSON (RFC 8259), and its `Content-Type`.
    ///
    /// # Errors
    /// The value cannot be JSON: its `Serialize` fails, or it has a map whose keys are not texts. The request does not change.
    ///
    /// ```
    /// use courser::Request;
    ///
    /// let mut request = Request::post("http://a.example/", "");
    /// request.json(&[1, 2, 3])?;
    /// assert_eq!(request.header("content-type"), Some(&b"application/json"[..]));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<&mut Self, serde_json::Error> {
        let body = serde_json::to_vec(value)?;
        Ok(self
            .set_header("Content-Type", "application/json")
            .body(body))
    }
}

/// A clone has everything that was set, and shares the memory of the body. The clone opens a
/// [`body_opened`](Request::body_opened) by itself. Other body streams cannot be cloned: a call of the clone fails with
/// [`Misuse::BodyNotReplayable`](crate::Misuse::BodyNotReplayable) unless it gets another body first.
///
/// ```
/// use courser::Request;
///
/// let mut base = Request::get("http://a.example/");
/// base.add_header("Authorization", "Bearer x");
/// let mut other = base.clone();
/// other.set_target("http://a.example/b");
/// assert_eq!(other.header("authorization"), Some(&b"Bearer x"[..]));
/// assert_eq!(base.target(), "http://a.example/");
/// ```
impl Clone for Request {
    fn clone(&self) -> Self {
        let mut copy = Self(self.0.clone());
        // The copy was not encoded, and no call has it yet.
        copy.invalidate().0.encoded.clear();
        copy.0.head_len = 0;
        copy.0.redirected = Redirected::default();
        copy.0.cookies.clear();
        copy
    }
}

#[cfg(feature = "form")]
fn encode_pairs<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> String {
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    encoded.extend_pairs(pairs);
    encoded.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Misuse;
    use crate::proto::{Defaults, HopFields};

    fn head(request: &mut Request) -> String {
        let defaults = Defaults::new("h", None);
        request.encode(&defaults).expect("valid");
        String::from_utf8_lossy(request.encoded()).into_owned()
    }

    #[test]
    fn a_clone_is_sent_as_the_first_one_is() {
        let mut request = Request::patch("/a", "body");
        request
            .add_header("X-A", "1")
            .add_header("Connection", "close");
        request
            .add_header("User-Agent", "me")
            .add_header("Host", "other");
        let sent = head(&mut request);
        assert!(sent.starts_with("PATCH /a HTTP/1.1\r\n"), "{sent}");
        let mut clone = request.clone();
        assert_eq!(head(&mut clone), sent);
        assert!(clone.says_close());
        clone.set_header("X-A", "2");
        assert_eq!(
            head(&mut clone),
            sent.replace("X-A: 1\r\nConnection: close", "Connection: close\r\nX-A: 2")
        );
        assert_eq!(head(&mut request), sent);
    }

    #[test]
    fn what_is_wrong_stays_until_it_is_replaced() {
        let mut request = Request::get("/");
        request.add_header("X", "a\nb").basic_auth("u:v", "");
        let refused = |request: &Request| request.clone().encode(&Defaults::new("h", None)).err();
        for part in [Part::HeaderValue, Part::UserName] {
            let error = refused(&request);
            assert!(matches!(error, Some(Misuse::Invalid { part: of, at: 1, .. }) if of == part));
            request.set_header("x", "a");
        }
        assert!(refused(request.basic_auth("uv", "")).is_none());
        let mut hop = HopFields::default();
        hop.set("X", b"a\nb");
        hop.set("x", b"a");
        assert!(hop.check().is_ok());
    }

    #[test]
    fn credentials_take_the_place_of_others() {
        let mut request = Request::delete("/");
        request.basic_auth("u", "p:w").bearer_auth("abc");
        assert_eq!(
            head(&mut request),
            "DELETE / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer abc\r\n\r\n"
        );
        let colon = request
            .clone()
            .basic_auth("a:b", "")
            .encode(&Defaults::new("h", None));
        let part = Part::UserName;
        assert!(matches!(colon, Err(Misuse::Invalid { part: of, at: 1, .. }) if of == part));
        let line = request
            .bearer_auth("a\r\nb")
            .encode(&Defaults::new("h", None));
        assert!(matches!(
            line,
            Err(Misuse::Invalid {
                part: Part::HeaderValue,
                at: 8,
                ..
            })
        ));
    }

    #[test]
    fn a_stream_is_not_cloned() {
        let mut request = Request::post("/", "");
        request.body_stream(&b"abc"[..], Some(3));
        let mut clone = request.clone();
        let defaults = Defaults::new("h", None);
        let refused = clone.encode(&defaults);
        assert!(
            matches!(refused, Err(Misuse::BodyNotReplayable)),
            "{refused:?}"
        );
        clone.body("abc");
        clone.encode(&defaults).expect("another body");
        request.encode(&defaults).expect("not read yet");
    }

    #[test]
    fn headers_are_those_that_were_set() {
        let mut request = Request::get("/");
        assert_eq!(request.headers().count(), 0);
        request
            .add_header("B", "x: y")
            .add_header("A", "")
            .no_user_agent();
        let all: Vec<_> = request.headers().collect();
        assert_eq!(all, [("B", &b"x: y"[..]), ("A", b"")]);
        assert_eq!(request.header("a"), Some(&b""[..]));
        assert_eq!(request.header("user-agent"), None);
    }

    #[cfg(feature = "form")]
    #[test]
    fn pairs_go_where_the_query_is() {
        for (target, expected) in [
            ("", "?a=1"),
            ("/", "/?a=1"),
            ("/?", "/?a=1"),
            ("/?x", "/?x&a=1"),
            ("/?x&", "/?x&a=1"),
            ("http://h/p#f?g", "http://h/p?a=1#f?g"),
        ] {
            let mut request = Request::get(target);
            request.query([("a", "1")]);
            assert_eq!(request.target(), expected);
            request.query([("", ""); 0]);
            assert_eq!(request.target(), expected);
        }
    }
}
