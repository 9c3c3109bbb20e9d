//! What programs ask of a response: whether it is an error, how long its body is, and its body as a text or as JSON.

use std::borrow::Cow;
use std::fmt;

use super::Response;
use crate::proto::request::without_userinfo;

impl Response {
    /// The value of `Content-Length`: how long the body is as it was sent, before [decoding](Self::decoded). `None` without the
    /// header. Of the response to HEAD, the length of the body that GET would get (RFC 9110 §8.6).
    pub fn content_length(&self) -> Option<u64> {
        let value = std::str::from_utf8(self.header("content-length")?).ok()?;
        // One value, or the same several times (RFC 9112 §6.3); the exchange has refused all others.
        value.split(',').next()?.trim().parse().ok()
    }

    /// The response, unless its status is an error of the client or of the server (400 to 599).
    ///
    /// ```
    /// # use courser::Response;
    /// fn body(response: &Response) -> Result<&[u8], courser::StatusError> {
    ///     Ok(response.error_for_status()?.body())
    /// }
    /// # assert_eq!(body(&Response::new()).unwrap(), b"");
    /// ```
    ///
    /// # Errors
    /// The status.
    pub fn error_for_status(&self) -> Result<&Self, StatusError> {
        match self.status() {
            400..=599 => Err(self.status_error()),
            _ => Ok(self),
        }
    }

    /// The response, if its status says that the request has succeeded (200 to 299).
    ///
    /// ```
    /// # use courser::Response;
    /// fn body(response: &Response) -> Result<&[u8], courser::StatusError> {
    ///     Ok(response.success()?.body())
    /// }
    /// # assert_eq!(body(&Response::new()).unwrap_err().status(), 0);
    /// ```
    ///
    /// # Errors
    /// Any other status: also that of a redirect that was not followed.
    pub fn success(&self) -> Result<&Self, StatusError> {
        match self.status() {
            200..=299 => Ok(self),
            _ => Err(self.status_error()),
        }
    }

    fn status_error(&self) -> StatusError {
        StatusError {
            url: self.shown_url(),
            status: self.status(),
            reason: String::from_utf8_lossy(self.reason()).into(),
        }
    }

    /// The URL without its user information.
    pub(super) fn shown_url(&self) -> Option<Box<str>> {
        self.url().map(|url| without_userinfo(url).into())
    }

    /// The body as a text. Bytes that are no text become U+FFFD. The encoding is that of a byte order mark, or of `charset` in
    /// `Content-Type`, or UTF-8. Without the feature `charset`, it is always UTF-8.
    ///
    /// ```
    /// # use courser::Response;
    /// # let response = Response::new();
    /// for line in response.text().lines() {
    ///     println!("{line}");
    /// }
    /// ```
    pub fn text(&self) -> Cow<'_, str> {
        #[cfg(feature = "charset")]
        {
            let label = self.header("content-type").and_then(charset);
            let encoding = label.and_then(encoding_rs::Encoding::for_label);
            let (text, _, _) = encoding.unwrap_or(encoding_rs::UTF_8).decode(self.body());
            text
        }
        #[cfg(not(feature = "charset"))]
        {
            let body = self.body();
            String::from_utf8_lossy(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body))
        }
    }

    /// The body as JSON (RFC 8259). `Content-Type` is not looked at.
    ///
    /// ```no_run
    /// # use courser::{Client, Response};
    /// # fn example(client: &mut Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut response = Response::new();
    /// client.get("https://api.example/items", &mut response)?;
    /// let names: Vec<String> = response.json()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The body is no JSON, or not of this type.
    #[cfg(feature = "json")]
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, JsonError> {
        let body = self.body();
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        serde_json::from_slice(body).map_err(|cause| JsonError {
            url: self.shown_url(),
            cause,
        })
    }
}

/// The value of the parameter `charset` of a media type (RFC 9110 §8.3.2).
#[cfg(feature = "charset")]
fn charset(media_type: &[u8]) -> Option<&[u8]> {
    let mut parameters = media_type.split(|byte| *byte == b';').skip(1);
    parameters.find_map(|parameter| {
        let at = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (
            parameter[..at].trim_ascii(),
            parameter[at + 1..].trim_ascii(),
        );
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        let value = value.strip_suffix(b"\"").unwrap_or(value);
        name.eq_ignore_ascii_case(b"charset").then_some(value)
    })
}

/// A response has not the status that the caller wants: [`Response::error_for_status`], [`Response::success`].
///
/// ```
/// fn retries(error: &courser::StatusError) -> bool {
///     error.status() >= 500
/// }
/// # let _ = retries;
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatusError {
    url: Option<Box<str>>,
    status: u16,
    reason: Box<str>,
}

impl StatusError {
    /// The status; 0 if there was no response.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The [URL](Response::url) of the response, without user information and fragment.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.url.as_deref())?;
        write!(f, "the server answered with status {}", self.status)?;
        match &*self.reason {
            "" => Ok(()),
            reason => write!(f, " ({})", reason.escape_debug()),
        }
    }
}

impl std::error::Error for StatusError {}

/// A body is no JSON, or not of the type that the caller wants: [`Response::json`]. Its
/// [source](std::error::Error::source) has the line and the column.
#[cfg(feature = "json")]
#[derive(Debug)]
pub struct JsonError {
    url: Option<Box<str>>,
    cause: serde_json::Error,
}

#[cfg(feature = "json")]
impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.url.as_deref())?;
        f.write_str("the body is not the expected JSON")
    }
}

#[cfg(feature = "json")]
impl std::error::Error for JsonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

fn write_place(f: &mut fmt::Formatter<'_>, url: Option<&str>) -> fmt::Result {
    match url {
        Some(url) => write!(f, "{url}: "),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::proto::tests::response_of;

    #[test]
    fn errors_are_the_statuses_from_400_on_and_successes_are_2xx() {
        for (status, is_error, is_success) in [
            (200, false, true),
            (299, false, true),
            (304, false, false),
            (399, false, false),
            (400, true, false),
            (599, true, false),
            (600, false, false),
        ] {
            let response = response_of(&format!(
                "HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n"
            ));
            assert_eq!(response.error_for_status().is_err(), is_error, "{status}");
            assert_eq!(response.success().is_ok(), is_success, "{status}");
        }
        let mut gone = response_of("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n");
        gone.set_url("http://user:secret@h/a");
        let error = gone.error_for_status().expect_err("an error");
        assert_eq!((error.status(), error.url()), (410, Some("http://h/a")));
        let shown = "http://h/a: the server answered with status 410 (Gone)";
        assert_eq!(error.to_string(), shown);
        let bare = response_of("HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n");
        let error = bare.error_for_status().expect_err("an error");
        assert_eq!(error.to_string(), "the server answered with status 500");
    }

    #[test]
    fn lengths_are_those_of_the_header() {
        let response = response_of("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(response.content_length(), Some(2));
        let chunked = response_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        assert_eq!(chunked.content_length(), None);
        let twice = response_of("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nhi");
        assert_eq!(twice.content_length(), Some(2));
    }

    #[test]
    fn texts_are_utf_8() {
        let response = response_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\u{feff}h\u{7f}");
        assert_eq!(response.text(), "h\u{7f}");
    }

    #[cfg(feature = "charset")]
    #[test]
    fn texts_have_the_charset_of_the_header() {
        for (media_type, expected) in [
            ("text/plain", "\u{e9}"),
            ("text/plain; charset=utf-8", "\u{e9}"),
            ("text/plain; a=b; Charset=\"ISO-8859-1\"", "\u{c3}\u{a9}"),
            ("text/plain; charset=", "\u{e9}"),
            ("text/plain; charset=no-such", "\u{e9}"),
        ] {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: 2\r\n\r\n\u{e9}"
            );
            assert_eq!(response_of(&head).text(), expected, "{media_type}");
        }
    }

    #[cfg(feature = "json")]
    #[test]
    fn json_is_read_into_types() {
        let mut response = response_of("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n[1,2,3]");
        assert_eq!(response.json::<Vec<u8>>().expect("JSON"), [1, 2, 3]);
        let error = response.json::<Vec<&str>>().expect_err("no texts");
        let cause = std::error::Error::source(&error).expect("a cause");
        assert!(cause.to_string().contains("line 1 column 2"), "{cause}");
        // Errors say where, but nothing of the user.
        response.set_url("http://user:secret@h/a");
        let error = response.json::<Vec<&str>>().expect_err("no texts");
        let shown = "http://h/a: the body is not the expected JSON";
        assert_eq!(error.to_string(), shown);
    }
}
