//! The handshake with an HTTP proxy for a tunnel: CONNECT (RFC 9110 §9.3.6), as one [`Exchange`].
//!
//! Interim responses are skipped. Only a 2xx status opens the tunnel; the body of any other response is not read. In a
//! tunnel the client speaks first (TLS or HTTP), so bytes after the head of a 2xx response are an error.

use super::request::PROXY_AUTHORIZATION;
use super::{BodyMode, Credentials, Defaults, Exchange, Handshake, ProxyFault};
use super::{Limits, Request, Response, SendStep};
use crate::error::ErrorKind;

/// A CONNECT handshake.
///
/// ```
/// use courser::proto::steps::{Handshake, Tunnel};
///
/// let mut tunnel = Tunnel::new("example.com:443", Some("probe/1.0"), None, &[])?;
/// let sent = tunnel.poll_send()?.len();
/// tunnel.handle_sent(sent);
/// let reply = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// assert_eq!(tunnel.handle_read(reply)?, (reply.len(), Handshake::Done));
/// # Ok::<(), courser::proto::ProxyFault>(())
/// ```
#[derive(Debug)]
pub struct Tunnel {
    request: Request,
    exchange: Exchange,
    response: Response,
    limits: Limits,
}

impl Tunnel {
    /// Begins a handshake for a tunnel to `host_port`, in the form of [`push_host_port`](super::Url::push_host_port). The
    /// additional headers come first: a `Proxy-Authorization` among them replaces the credentials; a `User-Agent` or a `Host`
    /// replaces the default.
    ///
    /// # Errors
    /// [`ProxyFault::Request`]: a part of the request is invalid.
    pub fn new(
        host_port: &str,
        user_agent: Option<&str>,
        credentials: Option<&Credentials>,
        headers: &[(Box<str>, Box<[u8]>)],
    ) -> Result<Self, ProxyFault> {
        let mut request = Request::new("CONNECT", host_port);
        for (name, value) in headers {
            request.add_header(name, value);
        }
        let authorized = |(name, _): &(Box<str>, _)| name.eq_ignore_ascii_case(PROXY_AUTHORIZATION);
        if let Some(credentials) = credentials.filter(|_| !headers.iter().any(authorized)) {
            let mut value = Vec::new();
            credentials.push_basic(&mut value);
            request.add_header(PROXY_AUTHORIZATION, value);
        }
        request
            .encode(&Defaults::new(host_port, user_agent))
            .map_err(ProxyFault::Request)?;
        Ok(Self {
            exchange: Exchange::new(&request, BodyMode::Discard),
            request,
            response: Response::new(),
            limits: Limits::default(),
        })
    }

    /// The bytes to send now; empty while the proxy is to answer.
    ///
    /// # Errors
    /// None that is known: the request has no body that could fail.
    pub fn poll_send(&mut self) -> Result<&[u8], ProxyFault> {
        match self.exchange.poll_send(&mut self.request) {
            Ok(SendStep::Write([bytes, _])) => Ok(bytes),
            Ok(_) => Ok(&[]),
            Err(misuse) => Err(ProxyFault::Request(misuse)),
        }
    }

    /// Reports that `n` bytes of [`poll_send`](Self::poll_send) were written.
    pub fn handle_sent(&mut self, n: usize) {
        self.exchange.handle_sent(n);
    }

    /// Parses what was read, and returns how much of it belongs to the handshake (always all of it).
    ///
    /// # Errors
    /// The handshake failed. The connection must be closed.
    pub fn handle_read(&mut self, input: &[u8]) -> Result<(usize, Handshake), ProxyFault> {
        if !self.poll_send()?.is_empty() {
            return Err(ProxyFault::Surplus);
        }
        let used = self
            .exchange
            .handle_read(input, &mut self.response, &self.limits)
            .map_err(|kind| match kind {
                ErrorKind::Peer(fault) => ProxyFault::Http(fault),
                ErrorKind::Limit(limit) => ProxyFault::Limit(limit),
                ErrorKind::Misuse(misuse) => ProxyFault::Request(misuse),
                // An exchange returns no other errors.
                _ => ProxyFault::Closed,
            })?;
        if !self.exchange.has_head() {
            return Ok((used, Handshake::Pending));
        }
        match self.response.status() {
            200..=299 if used < input.len() => Err(ProxyFault::Surplus),
            200..=299 => Ok((used, Handshake::Done)),
            status => Err(ProxyFault::Status(status)),
        }
    }

    /// The head of the request.
    pub fn request_head(&self) -> &[u8] {
        self.request.encoded_head()
    }

    /// The proxy's answer, as far as it came: it may explain a refusal.
    pub fn response(&self) -> &Response {
        &self.response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &[u8] = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n";

    fn sent(tunnel: &mut Tunnel, piece: usize) -> Vec<u8> {
        let mut sent = Vec::new();
        loop {
            let bytes = tunnel.poll_send().unwrap();
            if bytes.is_empty() {
                return sent;
            }
            let n = piece.min(bytes.len());
            sent.extend_from_slice(&bytes[..n]);
            tunnel.handle_sent(n);
        }
    }

    /// Feeds the answer in two parts, and returns how the handshake ended.
    fn end(answer: &[u8], cut: usize) -> Result<Handshake, String> {
        let mut tunnel = Tunnel::new("h:443", None, None, &[]).unwrap();
        sent(&mut tunnel, 7);
        let (first, second) = answer.split_at(cut.min(answer.len()));
        let mut progress = Handshake::Pending;
        for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
            match tunnel.handle_read(part) {
                Ok((used, step)) => {
                    assert_eq!(used, part.len());
                    progress = step;
                }
                Err(fault) => return Err(format!("{fault:?}")),
            }
        }
        Ok(progress)
    }

    #[test]
    fn connect_requests_on_the_wire() {
        let credentials = Credentials::from_userinfo("Aladdin:open%20sesame");
        for piece in [1, 2, 1000] {
            let mut bare = Tunnel::new("h:443", None, None, &[]).unwrap();
            assert_eq!(
                sent(&mut bare, piece),
                b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n"
            );
            let mut full = Tunnel::new("[::1]:80", Some("probe"), Some(&credentials), &[]).unwrap();
            let expected = "CONNECT [::1]:80 HTTP/1.1\r\nHost: [::1]:80\r\nUser-Agent: probe\r\n\
                            Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n";
            assert_eq!(String::from_utf8(sent(&mut full, piece)).unwrap(), expected);
        }
        let headers = [
            ("X-A", "b"),
            ("proxy-authorization", "c"),
            ("User-Agent", "d"),
        ];
        let headers = headers.map(|(name, value)| (name.into(), value.as_bytes().into()));
        let mut own = Tunnel::new("h:1", Some("probe"), Some(&credentials), &headers).unwrap();
        let expected = "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\nUser-Agent: d\r\nX-A: b\r\n\
                        proxy-authorization: c\r\n\r\n";
        assert_eq!(String::from_utf8(sent(&mut own, 9)).unwrap(), expected);
        let framing = [("Content-Length".into(), b"3".as_slice().into())];
        let refused = Tunnel::new("h:1", None, None, &framing);
        assert!(matches!(refused, Err(ProxyFault::Request(_))));
        let refused = Tunnel::new("h:1\r\nX: y", None, None, &[]);
        assert!(matches!(refused, Err(ProxyFault::Request(_))));
    }

    #[test]
    fn answers_cut_at_every_offset() {
        let interim = [
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\n",
            OK,
        ]
        .concat();
        // Length headers have no meaning in an answer to CONNECT (RFC 9110 §9.3.6).
        let lengths = b"HTTP/1.0 204 x\r\nContent-Length: 9\r\n\r\n";
        let chunked = b"HTTP/1.1 299 x\r\nTransfer-Encoding: chunked\r\n\r\n";
        for answer in [OK, &interim, lengths, chunked] {
            for cut in 0..answer.len() {
                assert_eq!(end(answer, cut), Ok(Handshake::Done), "cut at {cut}");
                assert_eq!(end(&answer[..cut], cut / 2), Ok(Handshake::Pending));
                let surplus = [answer, b"x"].concat();
                let at_once = end(&surplus, cut.max(1));
                assert_eq!(at_once, Err("Surplus".into()), "cut at {cut}");
            }
        }
        for (answer, expected) in [
            (
                &b"HTTP/1.1 407 x\r\nContent-Length: 2\r\n\r\nno"[..],
                "Status(407)",
            ),
            (b"HTTP/1.1 302 x\r\nLocation: /\r\n\r\n", "Status(302)"),
            (b"HTTP/1.1 502 x\r\n\r\nuntil the end", "Status(502)"),
            (
                b"HTTP/1.1 403 x\r\nTransfer-Encoding: chunked\r\n\r\n",
                "Status(403)",
            ),
            (
                b"HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n",
                "Http(UnexpectedUpgrade)",
            ),
            (b"SSH-2.0-x\r\n", "Http(BadStatusLine)"),
            (b"\x05\x00", "Http(BadStatusLine)"),
            (b"HTTP/1.1 200 x\r\nbad header\r\n\r\n", "Http(BadHeader)"),
        ] {
            for cut in 0..answer.len() {
                let ended = end(answer, cut);
                assert_eq!(ended, Err(expected.into()), "{answer:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn an_endless_answer_exceeds_a_limit() {
        for (first, piece) in [
            (&b"HTTP/1.1 200 x\r\n"[..], &b"A: bbbbbbbbbb\r\n"[..]),
            (b"", b"HTTP/1.1 103 x\r\n\r\n"),
        ] {
            let mut tunnel = Tunnel::new("h:443", None, None, &[]).unwrap();
            sent(&mut tunnel, 100);
            tunnel.handle_read(first).unwrap();
            let fault = (0..100_000).find_map(|_| tunnel.handle_read(piece).err());
            assert!(matches!(fault, Some(ProxyFault::Limit(_))), "{fault:?}");
        }
    }

    #[test]
    fn bytes_before_the_request_and_after_the_answer_are_surplus() {
        let mut tunnel = Tunnel::new("h:443", None, None, &[]).unwrap();
        tunnel.handle_sent(3);
        assert!(matches!(tunnel.handle_read(OK), Err(ProxyFault::Surplus)));
        // Bytes after the answer are surplus, too.
        let mut tunnel = Tunnel::new("h:443", None, None, &[]).unwrap();
        sent(&mut tunnel, 100);
        tunnel.handle_read(OK).unwrap();
        assert!(matches!(tunnel.handle_read(b"x"), Err(ProxyFault::Surplus)));
    }
}
