//! Counts what a session receives without content, and says when there is too much of it.
//!
//! rustls has limits of its own, which end a session with an error of rustls: 32 empty records one after the other, 32
//! KeyUpdates since the last data record, one HelloRequest, four warning alerts, two ChangeCipherSpec records within a
//! handshake of TLS 1.3 and none after it, and 64 KiB for a handshake message. It has none for session tickets, and a
//! data record without data counts as data for the limit on KeyUpdates. So the limits here count every byte.

use crate::error::{ContentlessRecords, TlsFault};

/// What came without content.
#[derive(Debug, Default)]
pub(super) struct Contentless {
    /// Bytes of ciphertext since the last content.
    bytes: usize,
}

impl Contentless {
    /// Counts `n` bytes that were read. `tickets` is the number of tickets since the session began. Returns a fault if
    /// there are too many of the two.
    pub(super) fn count(&mut self, n: usize, has_content: bool, tickets: u32) -> Option<TlsFault> {
        self.bytes = match has_content {
            true => 0,
            false => self.bytes.saturating_add(n),
        };
        if tickets > MOST_TICKETS {
            return Some(TlsFault::Contentless(ContentlessRecords::Tickets));
        }
        (self.bytes > MOST_BYTES).then_some(TlsFault::Contentless(ContentlessRecords::Any))
    }
}

/// The most tickets of one session. Servers send two (OpenSSL, rustls), some a few dozen. GnuTLS can send 255 at once.
const MOST_TICKETS: u32 = 256;

/// The most bytes since the last content: the longest handshake and the most tickets fit, and no record is as long.
const MOST_BYTES: usize = 256 * 1024;
