//! Conversions from and to the types of the `http` crate.

use std::fmt;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};

use crate::proto::{Request, Response, Version};

/// Why a value of the `http` crate and a value of this crate cannot be converted into each other.
///
/// ```
/// use bytes::Bytes;
/// use courser::{ConversionError, Request};
///
/// let request = http::Request::post("http://h/").version(http::Version::HTTP_2).body(Bytes::new()).unwrap();
/// assert_eq!(Request::try_from(request).unwrap_err(), ConversionError::Version);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ConversionError {
    /// The request has another version than HTTP/1.1.
    Version,
    /// The request's `Content-Length` is not the length of its body.
    ContentLength,
    /// There is no response, or its status is not from 100 to 999.
    Status,
    /// A header of the response has a name that `http` does not accept.
    HeaderName,
    /// A header of the response has a value that `http` does not accept: control characters.
    HeaderValue,
    /// The response has more headers than `http` accepts.
    TooManyHeaders,
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the request is not for HTTP/1.1",
            Self::ContentLength => "Content-Length is not the length of the body",
            Self::Status => "no valid status",
            Self::HeaderName => "a header name does not fit",
            Self::HeaderValue => "a header value holds control characters",
            Self::TooManyHeaders => "too many headers",
        })
    }
}

impl std::error::Error for ConversionError {}

/// The URI becomes the target without changes: a [`HostClient`](crate::HostClient) needs a path, a
/// [`Client`](crate::Client) an absolute URL. A correct `Content-Length` is dropped, because the engine computes it;
/// other framing headers are refused when the call is made. Extensions are dropped. The body is not copied.
///
/// ```
/// use bytes::Bytes;
/// let request = http::Request::post("/items").header("x-trace", "7").body(Bytes::from("{}")).unwrap();
/// let request = courser::Request::try_from(request)?;
/// assert_eq!((request.method(), request.target()), ("POST", "/items"));
/// # Ok::<(), courser::ConversionError>(())
/// ```
impl TryFrom<http::Request<Bytes>> for Request {
    type Error = ConversionError;

    fn try_from(from: http::Request<Bytes>) -> Result<Self, ConversionError> {
        let (parts, body) = from.into_parts();
        if parts.version != http::Version::HTTP_11 {
            return Err(ConversionError::Version);
        }
        let mut request = Self::new(parts.method.as_str(), parts.uri.to_string());
        for (name, value) in &parts.headers {
            if name == header::CONTENT_LENGTH {
                let length = value.to_str().ok().and_then(|text| text.parse().ok());
                if length != Some(body.len()) {
                    return Err(ConversionError::ContentLength);
                }
                continue;
            }
            if value.is_sensitive() {
                request.sensitive_header(name.as_str(), value.as_bytes());
            } else {
                request.add_header(name.as_str(), value.as_bytes());
            }
        }
        if !body.is_empty() {
            request.body(body);
        }
        Ok(request)
    }
}

/// Names become lower case; trailers, interim responses and the reason are dropped. The body is not copied.
///
/// ```
/// # fn example(mut client: courser::HostClient) -> Result<(), Box<dyn std::error::Error>> {
/// let mut response = courser::Response::new();
/// client.get("/", &mut response)?;
/// let response: http::Response<bytes::Bytes> = response.try_into()?;
/// println!("{} {}", response.status(), response.body().len());
/// # Ok(()) }
/// ```
impl TryFrom<Response> for http::Response<Bytes> {
    type Error = ConversionError;

    fn try_from(mut from: Response) -> Result<Self, ConversionError> {
        let mut response = Self::new(Bytes::new());
        *response.status_mut() =
            http::StatusCode::from_u16(from.status()).map_err(|_| ConversionError::Status)?;
        *response.version_mut() = match from.version() {
            Version::Http10 => http::Version::HTTP_10,
            Version::Http11 => http::Version::HTTP_11,
        };
        for (name, value) in from.headers() {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| ConversionError::HeaderName)?;
            let value = HeaderValue::from_bytes(value).map_err(|_| ConversionError::HeaderValue)?;
            let appended = response.headers_mut().try_append(name, value);
            appended.map_err(|_| ConversionError::TooManyHeaders)?;
        }
        *response.body_mut() = from.take_body();
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Defaults;

    fn encoded(request: http::request::Builder, body: &'static str) -> String {
        let request = request.body(Bytes::from(body)).unwrap();
        let mut request = Request::try_from(request).unwrap();
        request.encode(&Defaults::new("h", None)).unwrap();
        String::from_utf8(request.encoded_head().to_vec()).unwrap()
    }

    #[test]
    fn requests_keep_what_they_say() {
        let request = http::Request::put("/p?q=%20")
            .header("X-A", "1")
            .header("x-a", "2")
            .header("content-length", "4")
            .header("host", "other");
        assert_eq!(
            encoded(request, "body"),
            "PUT /p?q=%20 HTTP/1.1\r\nHost: other\r\nx-a: 1\r\nx-a: 2\r\nContent-Length: 4\r\n\r\n"
        );
        assert_eq!(
            encoded(http::Request::get("/"), ""),
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        );
        assert!(encoded(http::Request::post("/"), "").contains("Content-Length: 0\r\n"));
        let absolute = http::Request::get("http://h:81/p")
            .body(Bytes::new())
            .unwrap();
        assert_eq!(
            Request::try_from(absolute).unwrap().target(),
            "http://h:81/p"
        );
    }

    #[test]
    fn what_is_sensitive_stays_so() {
        let mut key = HeaderValue::from_static("secret");
        key.set_sensitive(true);
        let request = http::Request::get("http://h/")
            .header("x-api-key", key)
            .header("x-open", "1");
        let mut request = Request::try_from(request.body(Bytes::new()).unwrap()).unwrap();
        request.redirect("http://other/".to_owned(), None, true, false);
        let defaults = Defaults::new("other", None).with_form(crate::proto::TargetForm::OfUrl);
        request.encode_now(&defaults).unwrap();
        let head = String::from_utf8_lossy(request.encoded_head());
        assert!(
            head.contains("x-open: 1\r\n") && !head.contains("secret"),
            "{head}"
        );
    }

    #[test]
    fn requests_that_do_not_fit() {
        let with = |value: &str| {
            let request = http::Request::post("/").header("content-length", value);
            Request::try_from(request.body(Bytes::from("body")).unwrap()).map(|_| ())
        };
        assert_eq!(with("4"), Ok(()));
        for wrong in ["5", "-4", "4, 4", ""] {
            assert_eq!(with(wrong), Err(ConversionError::ContentLength), "{wrong}");
        }
        let chunked = http::Request::post("/").header("transfer-encoding", "chunked");
        let mut chunked = Request::try_from(chunked.body(Bytes::new()).unwrap()).unwrap();
        assert!(chunked.encode(&Defaults::new("h", None)).is_err());
    }

    #[test]
    fn an_empty_response_has_no_status() {
        let empty: Result<http::Response<Bytes>, _> = Response::new().try_into();
        assert_eq!(empty.unwrap_err(), ConversionError::Status);
    }
}
