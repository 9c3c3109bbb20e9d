//! The errors of handshakes with proxies.

use std::fmt;

use super::{DnsError, LimitExceeded, Misuse, PeerFault};

/// How a handshake with a proxy failed. The connection is closed after each of these errors.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProxyFault {
    /// The name of the proxy itself could not be resolved.
    Name(DnsError),
    /// The proxy answered CONNECT with this status. 407 asks for other credentials.
    Status(u16),
    /// The proxy's answer to CONNECT is not HTTP.
    Http(PeerFault),
    /// The proxy's answer to CONNECT exceeds a limit.
    Limit(LimitExceeded),
    /// The request to the proxy is invalid.
    Request(Misuse),
    /// The proxy sent unexpected bytes: before a request, or after its answer.
    Surplus,
    /// The proxy closed the connection during the handshake.
    Closed,
    /// The proxy does not speak SOCKS5: its reply began with this byte.
    NotSocks5(u8),
    /// The proxy accepts neither clients without credentials nor, if there are credentials, user and password (RFC 1928
    /// §3).
    NoMethod,
    /// The proxy chose an authentication method that was not offered (RFC 1928 §3).
    UnofferedMethod(u8),
    /// The proxy did not accept the user and the password (RFC 1929 §2).
    Credentials,
    /// SOCKS5 cannot express the request: the name of the target is empty, or the name, the user or the password is
    /// longer than 255 bytes.
    Inexpressible,
    /// The proxy could not connect to the target, or refused to (RFC 1928 §6).
    Socks(SocksReply),
    /// The proxy's reply has an address of unknown type (RFC 1928 §5).
    BadSocksReply,
}

impl fmt::Display for ProxyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => write!(f, "the proxy's name: {error}"),
            Self::Status(407) => f.write_str("the proxy asks for credentials (status 407)"),
            Self::Status(code) => write!(f, "the proxy answered CONNECT with status {code}"),
            Self::Http(fault) => write!(f, "in the proxy's answer to CONNECT: {fault}"),
            Self::Limit(limit) => write!(f, "in the proxy's answer to CONNECT: {limit}"),
            Self::Request(misuse) => write!(f, "in the request to the proxy: {misuse}"),
            Self::Surplus => f.write_str("the proxy sent unexpected bytes"),
            Self::Closed => f.write_str("the proxy closed the connection during the handshake"),
            Self::NotSocks5(byte) => write!(f, "the proxy does not speak SOCKS5 ({byte:#04x})"),
            Self::NoMethod => {
                f.write_str("the SOCKS5 proxy asks for another authentication method")
            }
            Self::UnofferedMethod(method) => write!(
                f,
                "the SOCKS5 proxy chose authentication method {method:#04x}, which was not offered"
            ),
            Self::Credentials => f.write_str("the SOCKS5 proxy refused the user and the password"),
            Self::Inexpressible => f.write_str(
                "SOCKS5 allows 255 bytes for the target's name, the user and the password",
            ),
            Self::Socks(reply) => write!(f, "the SOCKS5 proxy says: {reply}"),
            Self::BadSocksReply => f.write_str("malformed reply of the SOCKS5 proxy"),
        }
    }
}

impl std::error::Error for ProxyFault {}

/// Why a SOCKS5 proxy did not connect (RFC 1928 §6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SocksReply {
    /// 1
    GeneralFailure,
    /// 2
    NotAllowed,
    /// 3
    NetworkUnreachable,
    /// 4
    HostUnreachable,
    /// 5
    ConnectionRefused,
    /// 6
    TtlExpired,
    /// 7
    CommandNotSupported,
    /// 8
    AddressTypeNotSupported,
    /// A code that the RFC does not assign.
    Unassigned(u8),
}

impl From<u8> for SocksReply {
    fn from(code: u8) -> Self {
        let reply = REPLIES.get(usize::from(code).wrapping_sub(1));
        reply.map_or(Self::Unassigned(code), |(reply, _)| *reply)
    }
}

impl fmt::Display for SocksReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Unassigned(code) = self {
            return write!(f, "code {code:#04x}");
        }
        let reply = REPLIES.iter().find(|(reply, _)| reply == self);
        f.write_str(reply.map_or("", |(_, text)| text))
    }
}

/// The replies with the codes from 1 on, and what they say.
const REPLIES: [(SocksReply, &str); 8] = [
    (SocksReply::GeneralFailure, "general failure"),
    (SocksReply::NotAllowed, "not allowed by its rules"),
    (SocksReply::NetworkUnreachable, "network unreachable"),
    (SocksReply::HostUnreachable, "host unreachable"),
    (SocksReply::ConnectionRefused, "connection refused"),
    (SocksReply::TtlExpired, "TTL expired"),
    (SocksReply::CommandNotSupported, "command not supported"),
    (
        SocksReply::AddressTypeNotSupported,
        "address type not supported",
    ),
];
