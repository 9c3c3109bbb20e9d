//! TLS over any byte stream (RFC 8446, RFC 5246): the client's side of one session.
//!
//! rustls does the protocol; this file moves the records between a non-blocking stream and the caller's buffers. It
//! uses rustls's unbuffered interface, so that a session owns no buffers: ciphertext is read into the reactor's buffer
//! and decrypted there, and only the beginning of an incomplete record is kept. Nothing here blocks or knows the time:
//! the reactor limits the handshake.
//!
//! A peer can send records that bring no content: tickets, key updates, empty records. So a read reads the stream once,
//! and tells by [`Tls::is_drained`] whether there is more; when to go on is up to the reactor, whose budgets are fair to
//! other connections. [`Contentless`] ends a session with too many such records.

mod config;
mod contentless;
mod fault;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, IoSlice};
use std::net::IpAddr;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::{DnsName, ServerName};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{HandshakeKind, ProtocolVersion};

pub use config::{
    ClientCertificate, PemOrDer, TlsConfig, TlsIdentity, TlsRoots, TlsVersion, tls_cipher_suites,
};
use contentless::Contentless;
use fault::from_rustls;

use super::session::{HandshakeProgress, LowerStream, Session};
use crate::address::bare;
use crate::error::TlsFault;

/// The client's side of a TLS session, before, during and after its handshake.
///
/// After an error that is a [`TlsFault`], every further call returns the same fault.
struct Tls {
    conn: UnbufferedClientConnection,
    /// Ciphertext of an incomplete record or message. Empty, and without memory, nearly always.
    leftover: Vec<u8>,
    /// Plaintext that came without a read: together with the end of the handshake.
    early_plaintext: Vec<u8>,
    out: PendingCiphertext,
    /// A record of the peer was accepted.
    record_accepted: bool,
    /// The handshake is complete, and the client's last message of it is sent.
    established: bool,
    /// The peer has sent `close_notify`.
    peer_closed: bool,
    drained: bool,
    /// The last read brought much ciphertext and little plaintext.
    lean: bool,
    contentless: Contentless,
    failed: Option<Box<TlsFault>>,
}

/// A session for a connection to this server, a DNS name or an IP address. A name in the identity takes its place.
pub(crate) fn session(identity: &TlsIdentity, name: &str) -> Result<Box<dyn Session>, TlsFault> {
    Ok(Box::new(Tls::new(identity, name)?))
}

impl Tls {
    fn new(identity: &TlsIdentity, server_name: &str) -> Result<Self, TlsFault> {
        let name = match &identity.0.server_name {
            Some(name) => name.clone(),
            None => parse_name(server_name)?,
        };
        let conn = UnbufferedClientConnection::new(identity.0.client.clone(), name)
            .map_err(|error| from_rustls(error, false, true))?;
        Ok(Self {
            conn,
            leftover: Vec::new(),
            early_plaintext: Vec::new(),
            out: PendingCiphertext::default(),
            record_accepted: false,
            established: false,
            peer_closed: false,
            drained: false,
            lean: false,
            contentless: Contentless::default(),
            failed: None,
        })
    }

    // ---- receiving

    /// Reads once and decrypts the complete records. With a `gap` before the ciphertext, the plaintext goes to the
    /// start of `buf`, and its length is returned. Without a gap, plaintext is kept in `early_plaintext`.
    fn receive(
        &mut self,
        lower: &mut dyn LowerStream,
        buf: &mut [u8],
        start: usize,
    ) -> io::Result<usize> {
        let kept = start + self.leftover.len();
        let room = buf.len().saturating_sub(kept);
        if room < lower.min_room() {
            let fault = TlsFault::BadRecord("a message is too large for our buffer".to_owned());
            return Err(self.fail(fault, lower));
        }
        buf[start..kept].copy_from_slice(&self.leftover);
        let room = match self.lean {
            true => room.min(lower.min_room().max(MAX_CIPHERTEXT)),
            false => room,
        };
        let n = match lower.read(&mut buf[kept..kept + room]) {
            Ok(0) => {
                let fault = match self.established {
                    true => TlsFault::Truncated,
                    false => TlsFault::HandshakeEof,
                };
                self.failed = Some(Box::new(fault.clone()));
                return Err(fault.into());
            }
            Ok(n) => n,
            Err(error) => {
                self.drained = error.kind() == io::ErrorKind::WouldBlock && !lower.has_more();
                return Err(error);
            }
        };
        self.drained = lower.is_drained(n, room);
        let end = kept + n;
        let decrypted = match self.advance(buf, start, end) {
            Ok(decrypted) => decrypted,
            Err(fault) => return Err(self.fail(fault, lower)),
        };
        if decrypted.used == end {
            self.leftover = Vec::new();
        } else {
            self.leftover.clear();
            self.leftover.extend_from_slice(&buf[decrypted.used..end]);
        }
        let has_content = decrypted.plain > 0 || !self.early_plaintext.is_empty();
        self.lean = self.established && n >= MAX_CIPHERTEXT && decrypted.plain < n / LEAN;
        let tickets = self.conn.tls13_tickets_received();
        let counted = self.contentless.count(n, has_content, tickets);
        if let Some(fault) = decrypted.fault.or(counted) {
            let error = self.fail(fault, lower);
            if !has_content {
                return Err(error);
            }
            // The plaintext before the fault is valid. The next call returns the fault.
        }
        if self.peer_closed || self.failed.is_some() || !self.early_plaintext.is_empty() {
            self.drained = false;
        }
        if !self.out.is_empty() && self.out.records.is_empty() {
            // An answer to a received message. If it cannot be sent now, the next write sends it.
            let _ = self.out.flush(lower);
        }
        Ok(decrypted.plain)
    }

    /// Processes the ciphertext in `buf[start..end]` as far as it is complete.
    fn advance(&mut self, buf: &mut [u8], start: usize, end: usize) -> Result<Decrypted, TlsFault> {
        let mut decrypted = Decrypted {
            used: start,
            plain: 0,
            fault: None,
        };
        loop {
            let (front, back) = buf.split_at_mut(decrypted.used);
            let status = self
                .conn
                .process_tls_records(&mut back[..end - decrypted.used]);
            let UnbufferedStatus { mut discard, state } = status;
            let mut done = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(|error| from_rustls(error, true, false))?;
                        discard += record.discard;
                        let length = record.payload.len();
                        // A record is longer than its plaintext, and the gap is as long as the plaintext of one record.
                        match front.get_mut(decrypted.plain..decrypted.plain + length) {
                            Some(place) if self.early_plaintext.is_empty() => {
                                place.copy_from_slice(record.payload);
                                decrypted.plain += length;
                            }
                            _ => self.early_plaintext.extend_from_slice(record.payload),
                        }
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => self.out.encode(data)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                    done = true;
                }
                Ok(state @ (ConnectionState::PeerClosed | ConnectionState::Closed)) => {
                    self.peer_closed |= matches!(state, ConnectionState::PeerClosed);
                    // Ignores everything after close_notify (RFC 8446 §6.1).
                    decrypted.used = end;
                    return Ok(decrypted);
                }
                Ok(_) => return Err(TlsFault::Internal("unexpected state".to_owned())),
                Err(error) => {
                    let handshaking = self.conn.is_handshaking();
                    let fault = from_rustls(error, self.record_accepted, handshaking);
                    if decrypted.plain == 0 {
                        return Err(fault);
                    }
                    decrypted.used = end;
                    decrypted.fault = Some(fault);
                    return Ok(decrypted);
                }
            }
            decrypted.used += discard;
            self.record_accepted |= discard > 0;
            if done {
                return Ok(decrypted);
            }
        }
    }

    // ---- sending

    /// Encrypts the parts from the first uncounted byte on, as far as one write takes them.
    fn encrypt(
        &mut self,
        lower: &mut dyn LowerStream,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
        total: usize,
    ) -> io::Result<()> {
        if self.out.counted > total {
            // The caller has not repeated its bytes.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.out.counted == total {
            return Ok(());
        }
        if !self.leftover.is_empty() || self.conn.wants_write() {
            // Pending messages come first.
            let mut leftover = std::mem::take(&mut self.leftover);
            let end = leftover.len();
            let decrypted = self.advance(&mut leftover, 0, end);
            let decrypted = decrypted.map_err(|fault| self.fail(fault, lower))?;
            leftover.drain(..decrypted.used);
            self.leftover = leftover;
            self.out.flush(lower)?;
        }
        if !self.out.is_empty() {
            return Ok(());
        }
        let mut cursor = PlaintextCursor { parts, at: 0 };
        cursor.skip(self.out.counted);
        let (gathered, ciphertext) = scratch.split_at_mut(MAX_PLAINTEXT);
        let state = self.conn.process_tls_records(&mut self.leftover).state;
        let Ok(ConnectionState::WriteTraffic(mut traffic)) = state else {
            return Err(TlsFault::Internal("not ready to write".to_owned()).into());
        };
        let (mut records, mut count, mut length) = ([Record::default(); BATCH], 0, 0);
        while count < BATCH
            && ciphertext.len() - length >= MAX_PLAINTEXT + RECORD_OVERHEAD
            && let Some(plaintext) = cursor.next_record(gathered)
        {
            length += traffic
                .encrypt(plaintext, &mut ciphertext[length..])
                .map_err(|error| TlsFault::Internal(error.to_string()))?;
            records[count].end = length;
            records[count].plain = plaintext.len();
            count += 1;
        }
        let (sent, result) = match lower.write(&ciphertext[..length]) {
            Ok(0) => (0, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => (n, Ok(())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (0, Ok(())),
            Err(error) => (0, Err(error)),
        };
        // These records cannot be encrypted a second time, so they are kept even after an error.
        let unsent = &ciphertext[sent..length];
        self.out.bytes.extend_from_slice(unsent);
        for Record { end, plain } in records.into_iter().take(count) {
            match end.checked_sub(sent) {
                None | Some(0) => self.out.counted += plain,
                Some(end) => self.out.records.push(Record { end, plain }),
            }
        }
        match result {
            Err(_) if self.out.counted > 0 => Ok(()), // the next write returns this error
            result => result,
        }
    }

    // ---- failing

    fn check(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(fault) => Err((**fault).clone().into()),
        }
    }

    /// Ends the session. Sends the peer an alert if there is room for it.
    fn fail(&mut self, fault: TlsFault, lower: &mut dyn LowerStream) -> io::Error {
        // Takes only the alert that is ready. If asked for more, rustls would process the malformed record again.
        while self.conn.wants_write() {
            let Ok(ConnectionState::EncodeTlsData(data)) =
                self.conn.process_tls_records(&mut []).state
            else {
                break;
            };
            if self.out.encode(data).is_err() {
                break;
            }
        }
        let _ = self.out.flush(lower);
        self.failed = Some(Box::new(fault.clone()));
        fault.into()
    }

    /// A server that refuses the client may close before the client has written everything. The reason is then in what
    /// the server has sent.
    fn reason_of_refusal(
        &mut self,
        error: io::Error,
        lower: &mut dyn LowerStream,
        scratch: &mut [u8],
    ) -> io::Error {
        match self.receive(lower, scratch, 0) {
            Err(reason) if matches!(self.failed.as_deref(), Some(fault) if *fault != TlsFault::HandshakeEof) => {
                reason
            }
            _ => error,
        }
    }
}

impl Session for Tls {
    fn handshake(
        &mut self,
        lower: &mut dyn LowerStream,
        scratch: &mut [u8],
    ) -> io::Result<HandshakeProgress> {
        self.check()?;
        if !self.record_accepted && self.out.is_empty() && self.leftover.is_empty() {
            // The handshake has not begun, or only the ClientHello was sent, which rustls does not produce a second
            // time.
            self.advance(scratch, 0, 0)
                .map_err(|fault| self.fail(fault, lower))?;
        }
        for _ in 0..=HANDSHAKE_READS {
            match self.out.flush(lower) {
                Ok(true) => {}
                Ok(false) => return Ok(HandshakeProgress::Blocked),
                Err(error) => return Err(self.reason_of_refusal(error, lower, scratch)),
            }
            if !self.conn.is_handshaking() {
                self.established = true;
                return Ok(HandshakeProgress::Done);
            }
            match self.receive(lower, scratch, 0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(match self.drained {
                        true => HandshakeProgress::Blocked,
                        false => HandshakeProgress::Budget,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(HandshakeProgress::Budget)
    }

    fn read(&mut self, lower: &mut dyn LowerStream, buf: &mut [u8]) -> io::Result<usize> {
        if !self.early_plaintext.is_empty() {
            let n = self.early_plaintext.len().min(buf.len());
            buf[..n].copy_from_slice(&self.early_plaintext[..n]);
            self.early_plaintext.drain(..n);
            if self.early_plaintext.is_empty() {
                self.early_plaintext = Vec::new();
            }
            self.drained = false;
            return Ok(n);
        }
        self.check()?;
        if self.peer_closed {
            return Ok(0);
        }
        match self.receive(lower, buf, GAP)? {
            0 if !self.peer_closed => {
                // The stream may have ended, too, which only another read shows.
                self.drained = false;
                Err(io::ErrorKind::WouldBlock.into())
            }
            n => Ok(n),
        }
    }

    fn is_drained(&self) -> bool {
        self.drained
    }

    fn is_lean(&self) -> bool {
        self.lean
    }

    fn is_full(&self) -> bool {
        !self.out.is_empty()
    }

    fn write(
        &mut self,
        lower: &mut dyn LowerStream,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.check()?;
        let total: usize = parts.iter().map(|part| part.len()).sum();
        match self.out.flush(lower) {
            Ok(true) => self.encrypt(lower, scratch, parts, total)?,
            Ok(false) => {}
            Err(error) if self.out.counted == 0 => return Err(error),
            Err(_) => {} // the next write returns this error
        }
        match std::mem::take(&mut self.out.counted) {
            0 if total > 0 => Err(io::ErrorKind::WouldBlock.into()),
            counted => Ok(counted),
        }
    }

    fn uncounted(&self) -> usize {
        let records: usize = self.out.records.iter().map(|record| record.plain).sum();
        self.out.counted + records
    }

    fn close_notify(&mut self, lower: &mut dyn LowerStream) {
        // After an incomplete request, the end needs no announcement.
        if !self.established || self.failed.is_some() || !self.out.is_empty() {
            return;
        }
        let mut alert = [0; RECORD_OVERHEAD];
        let state = self.conn.process_tls_records(&mut self.leftover).state;
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = state
            && let Ok(n) = traffic.queue_close_notify(&mut alert)
        {
            self.out.bytes.extend_from_slice(&alert[..n]);
            let _ = self.out.flush(lower);
        }
    }

    fn info(&self) -> Option<TlsInfo> {
        let version = match self.conn.protocol_version()? {
            ProtocolVersion::TLSv1_3 => TlsVersion::V1_3,
            _ => TlsVersion::V1_2,
        };
        let suite = self.conn.negotiated_cipher_suite()?.suite();
        let certificates = self.conn.peer_certificates().unwrap_or_default();
        Some(TlsInfo {
            version,
            cipher_suite: suite.as_str().unwrap_or("unknown"),
            resumed: self.conn.handshake_kind()? == HandshakeKind::Resumed,
            alpn: self.conn.alpn_protocol().map(<[u8]>::to_vec),
            certificates: certificates.iter().map(|one| one.to_vec()).collect(),
        })
    }
}

/// The result of [`Tls::advance`].
struct Decrypted {
    /// Where in the buffer the first unused byte is.
    used: usize,
    /// Length of the plaintext at the start of the buffer.
    plain: usize,
    /// A fault that came after that plaintext.
    fault: Option<TlsFault>,
}

/// Ciphertext that the stream had no room for. Has memory only while there is some.
#[derive(Default)]
struct PendingCiphertext {
    bytes: Vec<u8>,
    sent: usize,
    /// The records with plaintext that are not written completely, in order.
    records: Vec<Record>,
    /// Plaintext whose records are written completely, and which no call has counted yet.
    counted: usize,
}

#[derive(Clone, Copy, Default)]
struct Record {
    /// Where the record ends in the ciphertext.
    end: usize,
    plain: usize,
}

impl PendingCiphertext {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn encode(
        &mut self,
        mut data: EncodeTlsData<'_, ClientConnectionData>,
    ) -> Result<(), TlsFault> {
        let at = self.bytes.len();
        if let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) {
            self.bytes.resize(at + size.required_size, 0);
        }
        let encoded = data.encode(&mut self.bytes[at..]);
        let length = encoded.as_ref().map_or(0, |n| *n);
        self.bytes.truncate(at + length);
        encoded.map_err(|error| TlsFault::Internal(error.to_string()))?;
        Ok(())
    }

    /// Writes as much as possible. Returns true when all is written; then the memory is freed.
    fn flush(&mut self, lower: &mut dyn LowerStream) -> io::Result<bool> {
        while self.sent < self.bytes.len() {
            match lower.write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            let whole = self.records.iter().take_while(|r| r.end <= self.sent);
            let (count, plain) = whole.fold((0, 0), |(n, sum), r| (n + 1, sum + r.plain));
            self.records.drain(..count);
            self.counted += plain;
        }
        let done = self.sent == self.bytes.len();
        if done {
            self.bytes = Vec::new();
            self.records = Vec::new();
            self.sent = 0;
        }
        Ok(done)
    }
}

/// Splits the caller's parts into the plaintext of records.
struct PlaintextCursor<'a> {
    parts: &'a [IoSlice<'a>],
    /// Offset in the first of the parts.
    at: usize,
}

impl<'a> PlaintextCursor<'a> {
    fn skip(&mut self, n: usize) {
        self.at += n;
        while let Some(first) = self.parts.first()
            && self.at >= first.len()
        {
            self.at -= first.len();
            self.parts = &self.parts[1..];
        }
    }

    /// The plaintext of the next record; `None` at the end. Plaintext that lies in one part is not copied.
    fn next_record<'b>(&mut self, gathered: &'b mut [u8]) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        let (first, rest) = self.parts.split_first()?;
        let whole = &first[self.at..];
        if whole.len() >= MAX_PLAINTEXT || rest.iter().all(|part| part.is_empty()) {
            let record = &whole[..whole.len().min(MAX_PLAINTEXT)];
            self.skip(record.len());
            return Some(record);
        }
        let mut length = 0;
        while let Some(first) = self.parts.first()
            && length < MAX_PLAINTEXT
        {
            let n = (first.len() - self.at).min(MAX_PLAINTEXT - length);
            gathered[length..length + n].copy_from_slice(&first[self.at..self.at + n]);
            length += n;
            self.skip(n);
        }
        Some(&gathered[..length])
    }
}

/// What the two sides of a TLS session have agreed on.
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub struct TlsInfo {
    /// The version.
    pub version: TlsVersion,
    /// The name of the cipher suite in the IANA registry.
    pub cipher_suite: &'static str,
    /// Whether the session resumed an earlier one, with a shorter handshake.
    pub resumed: bool,
    /// The application protocol (ALPN), if the server has confirmed one.
    pub alpn: Option<Vec<u8>>,
    /// The server's certificates in DER: its own first, then those that lead to its authority.
    pub certificates: Vec<Vec<u8>>,
}

impl fmt::Debug for TlsInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alpn = self.alpn.as_deref().map(String::from_utf8_lossy);
        let sizes: Vec<usize> = self.certificates.iter().map(Vec::len).collect();
        f.debug_struct("TlsInfo")
            .field("version", &self.version)
            .field("cipher_suite", &self.cipher_suite)
            .field("resumed", &self.resumed)
            .field("alpn", &alpn)
            .field("certificate_bytes", &sizes)
            .finish()
    }
}

/// Parses a DNS name or an IP address. Certificates are not for names with a trailing dot (RFC 6066 §3), nor do they
/// have the brackets of an IPv6 address in a URL.
fn parse_name(text: &str) -> Result<ServerName<'static>, TlsFault> {
    if let Ok(address) = bare(text).parse::<IpAddr>() {
        return Ok(ServerName::IpAddress(address.into()));
    }
    let bare = text.strip_suffix('.').unwrap_or(text);
    DnsName::try_from(bare.to_owned())
        .map(ServerName::DnsName)
        .map_err(|_| TlsFault::ServerName(text.to_owned()))
}

/// The only protocol that the client offers.
const ALPN: &[u8] = b"http/1.1";

/// Bytes of the longest plaintext of one record (RFC 8446 §5.1).
const MAX_PLAINTEXT: usize = 16 * 1024;

/// Bytes of the longest record that rustls accepts, with its header (RFC 5246 §6.2.3).
const MAX_CIPHERTEXT: usize = 5 + MAX_PLAINTEXT + 2048;

/// Bytes by which the ciphertext of one record, with the few control records before it, can exceed its plaintext.
const RECORD_OVERHEAD: usize = 256;

/// Bytes before the ciphertext that is read, with room for the plaintext of its first record.
const GAP: usize = MAX_PLAINTEXT;

/// A read is lean if its plaintext is less than this part of its ciphertext. In records of 100 bytes the plaintext is
/// four fifths.
const LEAN: usize = 4;

/// The most reads of the stream in one call of [`Session::handshake`].
const HANDSHAKE_READS: usize = 16;

/// The most records in one write.
const BATCH: usize = 8;

/// The least length, in bytes, of the buffers that a session is given.
pub(crate) const MIN_BUFFER: usize = GAP + MAX_CIPHERTEXT;

/// A good length, in bytes, for a buffer that many sessions share: five full records, also for a session inside
/// another.
pub(crate) const GOOD_BUFFER: usize = 96 * 1024;
