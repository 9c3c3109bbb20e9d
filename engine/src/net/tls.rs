//! TLS over any stream of bytes (RFC 8446, RFC 5246): the client's side of one session.
//!
//! The records are rustls's business; what is here moves them between a non-blocking stream and the caller's buffers.
//! rustls's unbuffered interface is used, so that a session owns no buffer: ciphertext is read into the reactor's
//! buffer, decrypted there, and what is left of a record that is not complete yet is the only thing kept. Nothing here
//! waits, and nothing here knows of time; the handshake's limit is the reactor's.

mod config;
mod fault;
#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};
use std::net::IpAddr;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::{DnsName, ServerName};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus, WriteTraffic,
};
use rustls::{HandshakeKind, ProtocolVersion};

pub use config::{ClientCertificate, PemOrDer, TlsConfig, TlsIdentity, TlsRoots, TlsVersion};
use fault::from_rustls;

use crate::error::TlsFault;

/// The stream below a session.
pub(crate) trait Raw {
    /// As [`Net::read`](super::Net::read).
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes some of `bytes`; less than all, or `WouldBlock`, when there is no room.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether nothing was left after a read that returned `n` where there was room for `room`.
    fn is_drained(&self, n: usize, room: usize) -> bool {
        n < room
    }

    /// The least room that a read needs.
    fn min_room(&self) -> usize {
        1
    }
}

/// The client's side of a TLS session, before, during and after its handshake.
///
/// After an error that is a [`TlsFault`] every further call gives the same one.
pub(crate) struct Tls {
    conn: UnbufferedClientConnection,
    /// Ciphertext of a message that is not complete. Empty, and without memory, nearly always.
    leftover: Vec<u8>,
    /// Plaintext that came when nobody read: with the end of the handshake.
    early: Vec<u8>,
    out: Out,
    /// A record of the peer was accepted.
    heard: bool,
    /// The handshake is over, and our last part of it is sent.
    established: bool,
    /// `close_notify` came.
    peer_closed: bool,
    drained: bool,
    failed: Option<Box<TlsFault>>,
}

impl Tls {
    /// `server_name` is a DNS name or an IP address; the identity's own goes before it.
    pub(crate) fn new(identity: &TlsIdentity, server_name: &str) -> Result<Self, TlsFault> {
        let name = match identity.server_name() {
            Some(name) => name.clone(),
            None => parse_name(server_name)?,
        };
        let conn = UnbufferedClientConnection::new(identity.client(), name)
            .map_err(|error| from_rustls(error, false, true))?;
        Ok(Self {
            conn,
            leftover: Vec::new(),
            early: Vec::new(),
            out: Out::default(),
            heard: false,
            established: false,
            peer_closed: false,
            drained: false,
            failed: None,
        })
    }

    /// Goes on with the handshake as far as it goes; true when it is over. `scratch` is at least
    /// [`MIN_BUFFER`] long, and that above another session twice as long.
    ///
    /// # Errors
    /// A [`TlsFault`], or an error of the stream.
    pub(crate) fn handshake(&mut self, raw: &mut impl Raw, scratch: &mut [u8]) -> io::Result<bool> {
        self.check()?;
        if !self.heard && self.out.is_empty() && self.leftover.is_empty() {
            // Nothing has happened yet, or nothing but our hello, of which there is no second one.
            self.advance(scratch, 0, 0)
                .map_err(|fault| self.fail(fault, raw))?;
        }
        loop {
            match self.out.flush(raw) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => return Err(self.why_refused(error, raw, scratch)),
            }
            if !self.conn.is_handshaking() {
                self.established = true;
                return Ok(true);
            }
            match self.receive(raw, scratch, 0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads, decrypts, and leaves the plaintext at the front of `buf`; returns its length. `buf` is at least
    /// [`MIN_BUFFER`] long, and that above another session twice as long; more of it is used if there is more.
    ///
    /// Unlike with a plain stream, a count below the length of `buf` says nothing: [`is_drained`](Self::is_drained)
    /// does.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; a [`TlsFault`], also when the stream ends without `close_notify`; an error
    /// of the stream. `Ok(0)` is the end that `close_notify` announced.
    pub(crate) fn read(&mut self, raw: &mut impl Raw, buf: &mut [u8]) -> io::Result<usize> {
        if !self.early.is_empty() {
            let n = self.early.len().min(buf.len());
            buf[..n].copy_from_slice(&self.early[..n]);
            self.early.drain(..n);
            if self.early.is_empty() {
                self.early = Vec::new();
            }
            self.drained = false;
            return Ok(n);
        }
        loop {
            self.check()?;
            if self.peer_closed {
                return Ok(0);
            }
            let n = self.receive(raw, buf, GAP)?;
            if n > 0 {
                return Ok(n);
            }
        }
    }

    /// Whether the last read left nothing behind, so that what comes from now on is a new event.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Encrypts and writes the parts. Only plaintext whose record has gone out whole counts, so that what is not
    /// counted was not received. Until all has been counted, the caller repeats with the same bytes from the first
    /// that was not counted on (it may add more behind them): they may be encrypted already.
    ///
    /// # Errors
    /// `WouldBlock` when nothing can be counted; a [`TlsFault`]; an error of the stream.
    pub(crate) fn write(
        &mut self,
        raw: &mut impl Raw,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.check()?;
        let total: usize = parts.iter().map(|part| part.len()).sum();
        match self.out.flush(raw) {
            Ok(true) => self.encrypt(raw, scratch, parts, total)?,
            Ok(false) => {}
            Err(error) if self.out.counted == 0 => return Err(error),
            Err(_) => {} // the next write will hear of it
        }
        match std::mem::take(&mut self.out.counted) {
            0 if total > 0 => Err(io::ErrorKind::WouldBlock.into()),
            counted => Ok(counted),
        }
    }

    /// Tells the peer that nothing more comes, if there is room for it and the peer could understand it.
    pub(crate) fn close_notify(&mut self, raw: &mut impl Raw) {
        // Behind half a request the end is plain enough.
        if !self.established || self.failed.is_some() || !self.out.is_empty() {
            return;
        }
        let mut alert = [0; RECORD_OVERHEAD];
        let state = self.conn.process_tls_records(&mut self.leftover).state;
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = state
            && let Ok(n) = traffic.queue_close_notify(&mut alert)
        {
            self.out.push(&alert[..n]);
            let _ = self.out.flush(raw);
        }
    }

    /// What was agreed on; `None` before the end of the handshake.
    pub(crate) fn info(&self) -> Option<TlsInfo> {
        let version = match self.conn.protocol_version()? {
            ProtocolVersion::TLSv1_3 => TlsVersion::V1_3,
            _ => TlsVersion::V1_2,
        };
        let suite = self.conn.negotiated_cipher_suite()?.suite();
        Some(TlsInfo {
            version,
            cipher_suite: suite.as_str().unwrap_or("unknown"),
            resumed: self.conn.handshake_kind()? == HandshakeKind::Resumed,
            alpn: self.conn.alpn_protocol().map(<[u8]>::to_vec),
            certificates: self
                .conn
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
        })
    }

    // ---- receiving

    /// Reads once and decrypts what is complete. With a `gap` in front of the ciphertext the plaintext goes to the
    /// front of `buf`, and its length is returned; without, what there may be of it is kept.
    fn receive(&mut self, raw: &mut impl Raw, buf: &mut [u8], gap: usize) -> io::Result<usize> {
        let start = gap;
        let kept = start + self.leftover.len();
        let room = buf.len().saturating_sub(kept);
        if room < raw.min_room() {
            let fault = TlsFault::BadRecord("a message is too large for our buffer".to_owned());
            return Err(self.fail(fault, raw));
        }
        buf[start..kept].copy_from_slice(&self.leftover);
        let n = match raw.read(&mut buf[kept..]) {
            Ok(0) => {
                let fault = if self.established {
                    TlsFault::Truncated
                } else {
                    TlsFault::HandshakeEof
                };
                self.failed = Some(Box::new(fault.clone()));
                return Err(fault.into());
            }
            Ok(n) => n,
            Err(error) => {
                self.drained = error.kind() == io::ErrorKind::WouldBlock;
                return Err(error);
            }
        };
        self.drained = raw.is_drained(n, room);
        let end = kept + n;
        let advanced = match self.advance(buf, start, end) {
            Ok(advanced) => advanced,
            Err(fault) => return Err(self.fail(fault, raw)),
        };
        if advanced.used == end {
            self.leftover = Vec::new();
        } else {
            self.leftover.clear();
            self.leftover.extend_from_slice(&buf[advanced.used..end]);
        }
        if let Some(fault) = advanced.fault {
            // What came before it is good; the next call tells.
            let _ = self.fail(fault, raw);
        }
        if self.peer_closed || self.failed.is_some() || !self.early.is_empty() {
            self.drained = false;
        }
        if self.out.is_control() {
            // An answer to what was received. If it does not go out now, it goes with the next write.
            let _ = self.out.flush(raw);
        }
        Ok(advanced.plain)
    }

    /// Lets rustls handle the ciphertext in `buf[start..end]` as far as it is complete.
    fn advance(
        &mut self,
        buf: &mut [u8],
        mut start: usize,
        end: usize,
    ) -> Result<Advanced, TlsFault> {
        let mut plain = 0;
        loop {
            let (front, back) = buf.split_at_mut(start);
            let status = self.conn.process_tls_records(&mut back[..end - start]);
            let UnbufferedStatus { mut discard, state } = status;
            let mut done = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(|error| from_rustls(error, true, false))?;
                        discard += record.discard;
                        let length = record.payload.len();
                        // A record is longer than its plaintext, and the gap holds one record's: it fits.
                        match front.get_mut(plain..plain + length) {
                            Some(place) if self.early.is_empty() => {
                                place.copy_from_slice(record.payload);
                                plain += length;
                            }
                            _ => self.early.extend_from_slice(record.payload),
                        }
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => self.out.encode(data)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => {
                    self.peer_closed = true;
                    // What follows close_notify is not for us (RFC 8446 §6.1).
                    return Ok(Advanced::at(end, plain));
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                    done = true;
                }
                Ok(ConnectionState::Closed) => return Ok(Advanced::at(end, plain)),
                Ok(_) => return Err(TlsFault::Internal("unexpected state".to_owned())),
                Err(error) => {
                    let handshaking = self.conn.is_handshaking();
                    let fault = from_rustls(error, self.heard, handshaking);
                    if plain == 0 {
                        return Err(fault);
                    }
                    return Ok(Advanced {
                        used: end,
                        plain,
                        fault: Some(fault),
                    });
                }
            }
            start += discard;
            self.heard |= discard > 0;
            if done {
                return Ok(Advanced::at(start, plain));
            }
        }
    }

    // ---- sending

    /// Encrypts the parts from the first byte that has not been counted on, and writes until all is out or the stream
    /// has no room.
    fn encrypt(
        &mut self,
        raw: &mut impl Raw,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
        total: usize,
    ) -> io::Result<()> {
        if self.out.counted > total {
            // The caller has not repeated its bytes.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        while self.out.counted < total {
            self.settle(raw)?;
            if !self.out.is_empty() {
                return Ok(());
            }
            let mut cursor = Cursor::new(parts, self.out.counted);
            let (gathered, ciphertext) = scratch.split_at_mut(MAX_PLAINTEXT);
            let mut batch = Batch::default();
            match self.conn.process_tls_records(&mut self.leftover).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    while let Some(plaintext) = cursor.next_record(gathered) {
                        if !batch.add(&mut traffic, plaintext, ciphertext)? {
                            break;
                        }
                    }
                }
                _ => return Err(TlsFault::Internal("not ready to write".to_owned()).into()),
            }
            if !batch.send(raw, ciphertext, &mut self.out)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Brings the session to where it can encrypt.
    fn settle(&mut self, raw: &mut impl Raw) -> io::Result<()> {
        if self.leftover.is_empty() && !self.conn.wants_write() {
            return Ok(()); // it is there
        }
        let mut leftover = std::mem::take(&mut self.leftover);
        let end = leftover.len();
        match self.advance(&mut leftover, 0, end) {
            Ok(advanced) => {
                leftover.drain(..advanced.used);
                self.leftover = leftover;
            }
            Err(fault) => return Err(self.fail(fault, raw)),
        }
        self.out.flush(raw)?;
        Ok(())
    }

    // ---- failing

    fn check(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(fault) => Err((**fault).clone().into()),
        }
    }

    /// Ends the session, and tells the peer why if there is room for it.
    fn fail(&mut self, fault: TlsFault, raw: &mut impl Raw) -> io::Error {
        // Only the alert that rustls has ready is taken: asked for more, it would look at the bad record again.
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
        let _ = self.out.flush(raw);
        self.failed = Some(Box::new(fault.clone()));
        fault.into()
    }

    /// A server that refuses us may close before we have written all; its reason is in what it has sent.
    fn why_refused(
        &mut self,
        error: io::Error,
        raw: &mut impl Raw,
        scratch: &mut [u8],
    ) -> io::Error {
        match self.receive(raw, scratch, 0) {
            Err(reason) if matches!(self.failed.as_deref(), Some(fault) if *fault != TlsFault::HandshakeEof) => {
                reason
            }
            _ => error,
        }
    }
}

/// What [`Tls::advance`] did.
struct Advanced {
    /// Where in the buffer the bytes begin that are still needed.
    used: usize,
    /// Plaintext at the front of the buffer.
    plain: usize,
    /// What came after that plaintext.
    fault: Option<TlsFault>,
}

impl Advanced {
    fn at(used: usize, plain: usize) -> Self {
        Self {
            used,
            plain,
            fault: None,
        }
    }
}

/// Ciphertext that the stream had no room for. Has memory only then.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    sent: usize,
    /// The records with plaintext that are not out whole, in order.
    records: Vec<Record>,
    /// Plaintext whose records have gone out whole, and which the caller has not been told of.
    counted: usize,
}

struct Record {
    /// Where it ends in the ciphertext.
    end: usize,
    plain: usize,
}

impl Out {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether there is something, and none of it the caller's.
    fn is_control(&self) -> bool {
        !self.bytes.is_empty() && self.records.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn encode(
        &mut self,
        mut data: EncodeTlsData<'_, ClientConnectionData>,
    ) -> Result<(), TlsFault> {
        let at = self.bytes.len();
        let mut required = 0;
        loop {
            self.bytes.resize(at + required, 0);
            match data.encode(&mut self.bytes[at..]) {
                Ok(n) => {
                    self.bytes.truncate(at + n);
                    return Ok(());
                }
                Err(EncodeError::InsufficientSize(size)) if size.required_size > required => {
                    required = size.required_size;
                }
                Err(error) => {
                    self.bytes.truncate(at);
                    return Err(TlsFault::Internal(error.to_string()));
                }
            }
        }
    }

    /// Writes what there is; true when all is out, and with it the memory.
    fn flush(&mut self, raw: &mut impl Raw) -> io::Result<bool> {
        while self.sent < self.bytes.len() {
            match raw.write(&self.bytes[self.sent..]) {
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

/// Records that are encrypted together and go out in one write.
#[derive(Default)]
struct Batch {
    records: [(usize, usize); BATCH],
    count: usize,
    length: usize,
}

impl Batch {
    /// Encrypts one record behind the others; false when the next might not fit.
    fn add(
        &mut self,
        traffic: &mut WriteTraffic<'_, ClientConnectionData>,
        plaintext: &[u8],
        ciphertext: &mut [u8],
    ) -> io::Result<bool> {
        let n = traffic
            .encrypt(plaintext, &mut ciphertext[self.length..])
            .map_err(|error| TlsFault::Internal(error.to_string()))?;
        self.length += n;
        self.records[self.count] = (self.length, plaintext.len());
        self.count += 1;
        let room = ciphertext.len() - self.length;
        Ok(self.count < BATCH && room >= MAX_PLAINTEXT + RECORD_OVERHEAD)
    }

    /// Writes the batch; what the stream has no room for goes to `out`. True when all is out.
    fn send(self, raw: &mut impl Raw, ciphertext: &[u8], out: &mut Out) -> io::Result<bool> {
        let bytes = &ciphertext[..self.length];
        let (sent, result) = match raw.write(bytes) {
            Ok(0) => (0, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => (n, Ok(n == bytes.len())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (0, Ok(false)),
            Err(error) => (0, Err(error)),
        };
        // It cannot be encrypted a second time, so it is kept even after an error.
        if sent < bytes.len() {
            out.push(&bytes[sent..]);
        }
        for (end, plain) in &self.records[..self.count] {
            match end.checked_sub(sent) {
                None | Some(0) => out.counted += plain,
                Some(end) => out.records.push(Record { end, plain: *plain }),
            }
        }
        match result {
            Err(_) if out.counted > 0 => Ok(false), // the next write will hear of it
            result => result,
        }
    }
}

/// Cuts the caller's parts into records.
struct Cursor<'a> {
    parts: &'a [IoSlice<'a>],
    /// In the first of them.
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(parts: &'a [IoSlice<'a>], skip: usize) -> Self {
        let mut cursor = Self { parts, at: 0 };
        cursor.skip(skip);
        cursor
    }

    fn skip(&mut self, n: usize) {
        self.at += n;
        while let Some(first) = self.parts.first()
            && self.at >= first.len()
        {
            self.at -= first.len();
            self.parts = &self.parts[1..];
        }
    }

    /// The next record's plaintext; `None` at the end. What lies in one part is not copied.
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

/// What two sides of a TLS session have agreed on.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TlsInfo {
    /// The version.
    pub version: TlsVersion,
    /// The cipher suite by its name in the registry.
    pub cipher_suite: &'static str,
    /// Whether the handshake was short, on the ground of an earlier session.
    pub resumed: bool,
    /// The application protocol, if the server has confirmed one.
    pub alpn: Option<Vec<u8>>,
    /// The server's certificates in DER, its own first.
    pub certificates: Vec<Vec<u8>>,
}

/// A DNS name or an IP address. A trailing dot is not part of what certificates are for (RFC 6066 §3), nor are the
/// brackets that an IPv6 address has in a URL.
fn parse_name(text: &str) -> Result<ServerName<'static>, TlsFault> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(ServerName::IpAddress(address.into()));
    }
    let bare = text.strip_suffix('.').unwrap_or(text);
    DnsName::try_from(bare.to_owned())
        .map(ServerName::DnsName)
        .map_err(|_| TlsFault::ServerName(text.to_owned()))
}

/// The only protocol that is offered.
const ALPN: &[u8] = b"http/1.1";

/// The most plaintext in one record (RFC 8446 §5.1).
const MAX_PLAINTEXT: usize = 16 * 1024;

/// The most ciphertext in one record with its head that rustls looks at (RFC 5246 §6.2.3).
const MAX_CIPHERTEXT: usize = 5 + MAX_PLAINTEXT + 2048;

/// No record that we write, of those few that go before it too, is longer than its plaintext by more than this.
const RECORD_OVERHEAD: usize = 256;

/// In front of the ciphertext that is read, so that the plaintext of its first record has room there.
const GAP: usize = MAX_PLAINTEXT;

/// Records in one write.
const BATCH: usize = 8;

/// The least length of the buffers that sessions are given.
pub(crate) const MIN_BUFFER: usize = GAP + MAX_CIPHERTEXT;

/// A good length for a buffer that is shared by many: five full records, and those of a session inside another.
pub(crate) const GOOD_BUFFER: usize = 96 * 1024;
