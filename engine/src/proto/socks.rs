//! The client's side of a SOCKS5 handshake (RFC 1928), with authentication by user and password (RFC 1929) if there are
//! credentials.
//!
//! ```text
//!  Method ─▶ (Auth) ─▶ Reply ─▶ Done          each: send, then wait for the answer
//! ```
//! At most 262 bytes of the proxy's answers are kept in memory. Bytes after its last reply come from the target, which
//! may speak first. Before that reply, bytes without a request are an error.

use std::net::IpAddr;

use super::{Credentials, Handshake, ProxyFault};

/// A SOCKS5 handshake.
///
/// ```
/// use courser::proto::steps::{Handshake, Socks5, SocksTarget};
///
/// let mut socks = Socks5::new(SocksTarget::Name("example.com"), 443, None)?;
/// assert_eq!(socks.poll_send(), b"\x05\x01\x00");
/// socks.handle_sent(3);
/// assert_eq!(socks.handle_read(b"\x05\x00")?, (2, Handshake::Pending));
/// assert_eq!(socks.poll_send(), b"\x05\x01\x00\x03\x0bexample.com\x01\xbb");
/// socks.handle_sent(18);
/// assert_eq!(socks.handle_read(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")?, (10, Handshake::Done));
/// # Ok::<(), courser::proto::ProxyFault>(())
/// ```
#[derive(Debug)]
pub struct Socks5 {
    state: AwaitedAnswer,
    /// What is still to be sent of the current step.
    out: Vec<u8>,
    /// The messages of the later steps.
    auth: Option<Vec<u8>>,
    request: Vec<u8>,
    /// The part of the current answer that has come.
    answer: Vec<u8>,
}

/// The target: where the proxy shall connect to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SocksTarget<'a> {
    /// A host name. The proxy looks it up (`socks5h` in URLs).
    Name(&'a str),
    /// An address.
    Ip(IpAddr),
}

/// The answer that the client waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AwaitedAnswer {
    Method,
    Auth,
    Reply,
    Done,
}

impl Socks5 {
    /// Begins a handshake for a connection to `target` and `port`.
    ///
    /// # Errors
    /// [`ProxyFault::Inexpressible`]: the name of the target is empty, or a part is longer than 255 bytes.
    pub fn new(
        target: SocksTarget<'_>,
        port: u16,
        credentials: Option<&Credentials>,
    ) -> Result<Self, ProxyFault> {
        let mut request = vec![VERSION, CONNECT, 0];
        match target {
            SocksTarget::Name("") => return Err(ProxyFault::Inexpressible),
            SocksTarget::Name(name) => {
                request.push(NAME);
                push_short(name.as_bytes(), &mut request)?;
            }
            SocksTarget::Ip(IpAddr::V4(ip)) => {
                request.push(IPV4);
                request.extend_from_slice(&ip.octets());
            }
            SocksTarget::Ip(IpAddr::V6(ip)) => {
                request.push(IPV6);
                request.extend_from_slice(&ip.octets());
            }
        }
        request.extend_from_slice(&port.to_be_bytes());
        let mut auth = None;
        if let Some(credentials) = credentials {
            let auth = auth.insert(vec![AUTH_VERSION]);
            push_short(credentials.user(), auth)?;
            push_short(credentials.password(), auth)?;
        }
        let out = match auth {
            None => vec![VERSION, 1, NO_AUTH],
            Some(_) => vec![VERSION, 2, NO_AUTH, USER_PASSWORD],
        };
        Ok(Self {
            state: AwaitedAnswer::Method,
            out,
            auth,
            request,
            answer: Vec::new(),
        })
    }

    /// The bytes to send now; empty while the proxy is to answer.
    pub fn poll_send(&self) -> &[u8] {
        &self.out
    }

    /// Reports that `n` bytes of [`poll_send`](Self::poll_send) were written.
    pub fn handle_sent(&mut self, n: usize) {
        self.out.drain(..n.min(self.out.len()));
    }

    /// Parses what was read, and returns how much of it belongs to the handshake: all of it until the handshake is
    /// done.
    ///
    /// # Errors
    /// The handshake failed. The connection must be closed.
    pub fn handle_read(&mut self, input: &[u8]) -> Result<(usize, Handshake), ProxyFault> {
        for (at, &byte) in input.iter().enumerate() {
            if self.state == AwaitedAnswer::Done {
                return Ok((at, Handshake::Done));
            }
            if !self.poll_send().is_empty() {
                return Err(ProxyFault::Surplus);
            }
            self.answer.push(byte);
            self.handle_answer()?;
        }
        let progress = match self.state {
            AwaitedAnswer::Done => Handshake::Done,
            _ => Handshake::Pending,
        };
        Ok((input.len(), progress))
    }

    /// Checks the answer after each byte, so that a wrong answer fails at its first wrong byte.
    fn handle_answer(&mut self) -> Result<(), ProxyFault> {
        match (self.state, &*self.answer) {
            // The version in the answer to the credentials is not checked: some proxies send 5 where the RFC says 1.
            (AwaitedAnswer::Method | AwaitedAnswer::Reply, &[version]) if version != VERSION => {
                return Err(ProxyFault::NotSocks5(version));
            }
            (AwaitedAnswer::Method, &[_, NO_AUTH]) => self.send_request(),
            (AwaitedAnswer::Method, &[_, method]) => match (method, self.auth.take()) {
                (USER_PASSWORD, Some(auth)) => self.send(auth, AwaitedAnswer::Auth),
                (NO_METHOD, _) => return Err(ProxyFault::NoMethod),
                _ => return Err(ProxyFault::UnofferedMethod(method)),
            },
            (AwaitedAnswer::Auth, &[_, 0]) => self.send_request(),
            (AwaitedAnswer::Auth, &[_, _]) => return Err(ProxyFault::Credentials),
            (AwaitedAnswer::Reply, &[_, code]) if code != 0 => {
                return Err(ProxyFault::Socks(code.into()));
            }
            (AwaitedAnswer::Reply, answer) => {
                if let Some(length) = reply_length(answer)?
                    && answer.len() == length
                {
                    self.state = AwaitedAnswer::Done;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn send_request(&mut self) {
        let request = std::mem::take(&mut self.request);
        self.send(request, AwaitedAnswer::Reply);
    }

    fn send(&mut self, message: Vec<u8>, then: AwaitedAnswer) {
        self.out = message;
        self.answer.clear();
        self.state = then;
    }
}

/// The length of the reply, once enough of it has come: `VER REP RSV ATYP`, an address, two bytes of port. The address
/// is the one that the proxy connects from; it is not used.
fn reply_length(answer: &[u8]) -> Result<Option<usize>, ProxyFault> {
    Ok(match *answer {
        [_, _, _, IPV4, ..] => Some(4 + 4 + 2),
        [_, _, _, IPV6, ..] => Some(4 + 16 + 2),
        [_, _, _, NAME] => None,
        [_, _, _, NAME, length, ..] => Some(4 + 1 + usize::from(length) + 2),
        [_, _, _, _, ..] => return Err(ProxyFault::BadSocksReply),
        _ => None,
    })
}

/// Appends one byte of length, then the bytes. The RFC does not allow empty parts, but there are users without a
/// password.
fn push_short(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ProxyFault> {
    match u8::try_from(bytes.len()) {
        Ok(length) => out.push(length),
        Err(_) => return Err(ProxyFault::Inexpressible),
    }
    out.extend_from_slice(bytes);
    Ok(())
}

const VERSION: u8 = 5;
const AUTH_VERSION: u8 = 1;
const NO_AUTH: u8 = 0;
const USER_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

#[cfg(test)]
mod tests {
    use super::super::SocksReply;
    use super::*;

    /// Answers each message of the client with the next of `answers`, cut at `cut`. Returns what the client sent and
    /// how the handshake ended.
    fn run_handshake(
        mut socks: Socks5,
        answers: &[&[u8]],
        cut: usize,
        piece: usize,
    ) -> (Vec<u8>, Result<(usize, Handshake), String>) {
        let mut sent = Vec::new();
        let mut last = (0, Handshake::Pending);
        for answer in answers {
            while !socks.poll_send().is_empty() {
                let n = piece.min(socks.poll_send().len());
                sent.extend_from_slice(&socks.poll_send()[..n]);
                socks.handle_sent(n);
            }
            let (first, second) = answer.split_at(cut.min(answer.len()));
            for part in [first, second] {
                match socks.handle_read(part) {
                    Ok(step) => last = step,
                    Err(fault) => return (sent, Err(format!("{fault:?}"))),
                }
            }
        }
        (sent, Ok(last))
    }

    fn name() -> Socks5 {
        Socks5::new(SocksTarget::Name("h.x"), 0x1234, None).unwrap()
    }

    fn with_credentials() -> Socks5 {
        let credentials = Credentials::new("us", "pass");
        let ip = "1.2.3.4".parse().unwrap();
        Socks5::new(SocksTarget::Ip(ip), 80, Some(&credentials)).unwrap()
    }

    const OK: &[u8] = b"\x05\x00\x00\x01\x09\x09\x09\x09\x00\x50";

    #[test]
    fn answers_cut_at_every_offset() {
        for cut in 0..30 {
            for piece in 1..4 {
                let long_name = [&b"\x05\x00\x00\x03\xff"[..], &[b'x'; 257]].concat();
                for reply in [
                    OK,
                    b"\x05\x00\x00\x04\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x00\x50",
                    b"\x05\x00\x00\x03\x03a.b\x00\x50",
                    b"\x05\x00\x77\x03\x00\x00\x50",
                    &long_name,
                ] {
                    let (sent, end) = run_handshake(name(), &[b"\x05\x00", reply], cut, piece);
                    assert_eq!(sent, b"\x05\x01\x00\x05\x01\x00\x03\x03h.x\x12\x34");
                    let (n, done) = end.unwrap();
                    assert_eq!(done, Handshake::Done, "{reply:?} cut at {cut}");
                    assert_eq!(n, reply.len().saturating_sub(cut), "{reply:?} cut at {cut}");
                }
                let (sent, end) = run_handshake(
                    with_credentials(),
                    &[b"\x05\x02", b"\x01\x00", OK],
                    cut,
                    piece,
                );
                assert_eq!(
                    sent,
                    b"\x05\x02\x00\x02\x01\x02us\x04pass\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50"
                );
                assert_eq!(end.unwrap().1, Handshake::Done);
                // Credentials are not sent to a proxy that does not ask for them.
                let (sent, end) = run_handshake(with_credentials(), &[b"\x05\x00", OK], cut, piece);
                assert_eq!(
                    sent,
                    b"\x05\x02\x00\x02\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50"
                );
                assert_eq!(end.unwrap().1, Handshake::Done);
            }
        }
    }

    #[test]
    fn faults_at_every_cut() {
        type Case = (fn() -> Socks5, &'static [&'static [u8]], &'static str);
        let cases: &[Case] = &[
            (name, &[b"HTTP/1.1 400 Bad"], "NotSocks5(72)"),
            (name, &[b"\x04\x00"], "NotSocks5(4)"),
            (name, &[b"\x05\xff"], "NoMethod"),
            (name, &[b"\x05\x02"], "UnofferedMethod(2)"),
            (name, &[b"\x05\x01"], "UnofferedMethod(1)"),
            (with_credentials, &[b"\x05\xff"], "NoMethod"),
            (with_credentials, &[b"\x05\x03"], "UnofferedMethod(3)"),
            (with_credentials, &[b"\x05\x02", b"\x01\x01"], "Credentials"),
            (with_credentials, &[b"\x05\x02", b"\x01\xff"], "Credentials"),
            (name, &[b"\x05\x00\x05"], "Surplus"),
            (with_credentials, &[b"\x05\x02\x01\x00"], "Surplus"),
            (
                with_credentials,
                &[b"\x05\x02", b"\x01\x00\x05\x00"],
                "Surplus",
            ),
            (name, &[b"\x05\x00", b"\x04\x00"], "NotSocks5(4)"),
            (name, &[b"\x05\x00", b"\x05\x00\x00\x02"], "BadSocksReply"),
            (name, &[b"\x05\x00", b"\x05\x00\x00\x00"], "BadSocksReply"),
        ];
        for (socks, answers, expected) in cases {
            for cut in 0..5 {
                let (_, end) = run_handshake(socks(), answers, cut, 100);
                assert_eq!(end, Err(expected.to_string()), "{answers:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn every_reply_code_has_its_name() {
        for code in 1..=255 {
            let mut socks = name();
            socks.handle_sent(3);
            socks.handle_read(b"\x05\x00").unwrap();
            socks.handle_sent(100);
            let fault = socks.handle_read(&[5, code]).unwrap_err();
            let ProxyFault::Socks(reply) = fault else {
                panic!("{code}: {fault:?}");
            };
            assert_eq!(
                matches!(reply, SocksReply::Unassigned(c) if c == code),
                code > 8
            );
        }
        assert_eq!(SocksReply::from(5), SocksReply::ConnectionRefused);
    }

    #[test]
    fn bytes_after_the_reply_belong_to_the_target() {
        let mut socks = name();
        socks.handle_sent(3);
        socks.handle_read(b"\x05\x00").unwrap();
        socks.handle_sent(socks.poll_send().len());
        let input = [OK, b"220 hello"].concat();
        assert_eq!(
            socks.handle_read(&input).unwrap(),
            (OK.len(), Handshake::Done)
        );
        assert_eq!(socks.handle_read(b"x").unwrap(), (0, Handshake::Done));
    }

    #[test]
    fn bytes_before_the_greeting_are_surplus() {
        let mut socks = name();
        socks.handle_sent(2);
        assert!(matches!(
            socks.handle_read(b"\x05"),
            Err(ProxyFault::Surplus)
        ));
    }

    #[test]
    fn parts_of_more_than_255_bytes_are_inexpressible() {
        let new = |name: &str, user: &str, password: &str| {
            let credentials = Credentials::new(user, password);
            Socks5::new(SocksTarget::Name(name), 1, Some(&credentials)).is_ok()
        };
        let (fits, long) = ("a".repeat(255), "a".repeat(256));
        assert!(new(&fits, &fits, &fits));
        assert!(new("h", "", ""));
        for (name, user, password) in [
            ("", "u", "p"),
            (&long, "u", "p"),
            ("h", &long, "p"),
            ("h", "u", &long),
        ] {
            assert!(!new(name, user, password));
        }
    }
}
