//! A parsed response (RFC 9110 §3.4) in buffers that its owner reuses: one for heads and trailers, one for the body,
//! one for the ranges of the header fields. [`Exchange`](super::Exchange) fills it.

mod read;

use std::any::Any;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::Limits;
use super::coding::Decoder;
use super::head::Framing;
use crate::error::PeerFault;
#[cfg(feature = "json")]
pub use read::JsonError;
pub use read::StatusError;

/// A response, filled by a call and reused for the next one. Its buffers keep their capacity, up to a cap, so that in
/// the steady state a call allocates nothing.
///
/// ```
/// # fn example(client: &mut courser::HostClient) -> Result<(), courser::Error> {
/// let mut response = courser::Response::new();
/// for path in ["/a", "/b"] {
///     client.get(path, &mut response)?;
///     println!("{} {:?}", response.status(), response.header("content-type"));
///     for (name, value) in response.headers() {
///         println!("{name}: {}", String::from_utf8_lossy(value));
///     }
///     std::io::Write::write_all(&mut std::io::stdout(), response.body()).ok();
/// }
/// # Ok(()) }
/// # let mut server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
/// # let upstream = server.local_addr().unwrap().to_string().parse().unwrap();
/// # std::thread::spawn(move || { use std::io::*; let mut s = server.accept().unwrap().0; for _ in 0..2 {
/// #     let mut b = [0; 999]; let _ = s.read(&mut b); s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap(); } });
/// # example(&mut courser::HostClient::new(upstream, Default::default()).unwrap()).unwrap();
/// ```
pub struct Response(pub(super) Box<Inner>);

/// The content of a response, in one allocation, so that moving it with calls and completions costs as much as moving a
/// pointer.
#[derive(Default)]
#[repr(C)] // what every response needs stands together
pub(super) struct Inner {
    /// Raw bytes: the interim heads, the final head, unfolded values, the trailer section.
    pub(super) buffer: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// The length of the body behind `first`, if that head says nothing else about the body and the connection; else 0.
    pub(super) first_body: u64,
    /// The first head, if it was plain and in one read.
    pub(super) first: HeadParts,
    pub(super) head: HeadParts,
    /// A range of `fields`.
    pub(super) trailers: Range<u32>,
    /// Lines of heads and trailers that were not read.
    pub(super) dropped_lines: u32,
    /// The response was cleared, and no head has come since. The buffer has `first`, in case the next head is the same.
    pub(super) is_cleared: bool,
    /// Content codings of the body were decoded.
    pub(super) decoded: bool,
    /// The fields of all heads, then the trailers, as ranges into `buffer`.
    pub(super) fields: Fields,
    pub(super) retained: usize,
    pub(super) interim: Vec<HeadParts>,
    /// The URL that the response came from, or empty.
    url: String,
    /// Kept for the next coded body. While an exchange decodes, the exchange has it.
    pub(super) decoder: Option<Box<Decoder>>,
    /// The connection, if it has switched to another protocol: a type of a layer above this one.
    switched: Option<Box<dyn Any + Send + Sync>>,
    /// What the final head says about the body and the connection.
    pub(super) framing: Framing,
}

impl Response {
    /// An empty response. Its status is 0.
    pub fn new() -> Self {
        Self(Box::new(Inner {
            retained: DEFAULT_RETAINED,
            ..Inner::default()
        }))
    }

    /// The URL that the response came from, where the followed redirects have led, with its fragment and its user
    /// information. `None` before a response has come, and for the response of a client of one upstream.
    pub fn url(&self) -> Option<&str> {
        Some(&*self.0.url).filter(|url| !url.is_empty())
    }

    /// The status code, 100 to 999; 0 before a response has come.
    pub fn status(&self) -> u16 {
        self.0.head.status
    }

    /// The version in the status line.
    pub fn version(&self) -> Version {
        self.0.head.version
    }

    /// The reason phrase as received. It may hold blanks, tabs, visible ASCII characters and bytes above 127.
    pub fn reason(&self) -> &[u8] {
        &self.0.buffer[range(&self.0.head.reason)]
    }

    /// The headers in the order received, their names as sent. Values hold no CR, LF or NUL; folded values are joined
    /// with one SP.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        fields(&self.0.buffer, &self.0.fields[range(&self.0.head.fields)])
    }

    /// The value of the first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers();
        headers.find_map(|(candidate, value)| candidate.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The values of all headers with this name, ignoring case, in the order received.
    pub fn header_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.headers()
            .filter(move |(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The value of `Location`: the URL that a [redirect](super::is_redirect) leads to, to be
    /// [resolved](super::resolve). An empty value is none.
    ///
    /// ```
    /// assert_eq!(courser::Response::new().location(), Ok(None));
    /// ```
    ///
    /// # Errors
    /// Values differ, so that the response leads nowhere.
    pub fn location(&self) -> Result<Option<&[u8]>, PeerFault> {
        let mut values =
            (self.header_all("location").map(<[u8]>::trim_ascii)).filter(|value| !value.is_empty());
        let first = values.next();
        match values.all(|value| Some(value) == first) {
            true => Ok(first),
            false => Err(PeerFault::ConflictingLocation),
        }
    }

    /// The final head as received, with its status line and its empty line.
    pub fn head(&self) -> &[u8] {
        &self.0.buffer[range(&self.0.head.bytes)]
    }

    /// The trailers of a chunked body, without fields that may not stand there (RFC 9110 §6.5.1).
    pub fn trailers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        fields(&self.0.buffer, &self.0.fields[range(&self.0.trailers)])
    }

    /// How many lines of heads and trailers were dropped, because the grammar does not permit them: 0 unless
    /// [`HostConfig::ignore_invalid_headers`](crate::HostConfig::ignore_invalid_headers) is set.
    pub fn dropped_lines(&self) -> u32 {
        self.0.dropped_lines
    }

    /// The interim (1xx) responses that came before the final one.
    pub fn interim(&self) -> impl Iterator<Item = Head<'_>> {
        self.0.interim.iter().map(|parts| Head {
            buffer: &self.0.buffer,
            fields: &self.0.fields[range(&parts.fields)],
            parts,
        })
    }

    /// The body: the whole body in buffered mode, the part that is not yet read in streaming mode. After a failed call,
    /// the part that came.
    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    /// Whether content codings of the body were decoded. `Content-Encoding` and `Content-Length` stay as received, so
    /// they describe the coded body. False if the response had no coding, if no decoding was
    /// [requested](super::Request::decode), or if one of its codings was not in the set; then the body, too, is as
    /// received.
    pub fn decoded(&self) -> bool {
        self.0.decoded
    }

    /// Takes the body out of the response, without a copy. The response allocates a new buffer for its next body.
    /// `Vec::from` makes a vector of the body, without a copy if there is no clone.
    pub fn take_body(&mut self) -> Bytes {
        std::mem::take(&mut self.0.body).into()
    }

    /// Empties the response. Keeps its buffers, except for the memory above [the cap](Self::set_retained).
    #[inline]
    pub fn clear(&mut self) {
        self.0.switched = None;
        self.0.url.clear();
        self.0.fields.set_len(0);
        self.0.interim.clear();
        self.0.head = HeadParts::default();
        self.0.trailers = 0..0;
        self.0.dropped_lines = 0;
        self.0.decoded = false;
        let inner = &mut *self.0;
        if let Some(decoder) = &inner.decoder
            && decoder.idle_memory() > decoder_cap(inner.retained)
        {
            inner.decoder = None;
        }
        let mut kept = inner.kept_length();
        if kept > inner.retained {
            inner.first = HeadParts::default();
            kept = 0;
        }
        inner.is_cleared = true;
        inner.buffer.truncate(kept);
        inner.body.clear();
        for buffer in [&mut inner.buffer, &mut inner.body] {
            if buffer.capacity() > inner.retained {
                buffer.shrink_to(inner.retained);
            }
        }
    }

    pub(crate) fn set_url(&mut self, url: &str) {
        self.0.url.clear();
        self.0.url.push_str(url);
    }

    /// Keeps the connection, which has switched to another protocol.
    pub(crate) fn set_switched(&mut self, connection: Box<dyn Any + Send + Sync>) {
        self.0.switched = Some(connection);
    }

    pub(crate) fn take_switched(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        self.0.switched.take()
    }

    /// Copies heads and trailers of `other`, whose body is still coming. The trailers move.
    pub(crate) fn continue_from(&mut self, other: &mut Self) {
        self.clear();
        self.0.forget_first();
        self.0.url.push_str(&other.0.url);
        if !other.0.is_cleared {
            self.0.buffer.extend_from_slice(&other.0.buffer);
        }
        (other.0.fields.iter()).for_each(|field| self.0.fields.push(*field));
        self.0.interim.extend_from_slice(&other.0.interim);
        self.0.head = other.0.head.clone();
        self.0.dropped_lines = other.0.dropped_lines;
        self.0.decoded = other.0.decoded;
        self.0.trailers = std::mem::replace(&mut other.0.trailers, 0..0);
    }

    /// The decoder that is kept for the next body.
    pub(crate) fn decoder(&mut self) -> &mut Option<Box<Decoder>> {
        &mut self.0.decoder
    }

    /// The buffer of the body, for bytes that do not pass through the exchange.
    pub(crate) fn body_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.0.body
    }

    /// Sets how many bytes of memory [`clear`](Self::clear) keeps in each buffer, and half of how many it keeps for
    /// decoding. Default 2 MiB.
    pub fn set_retained(&mut self, bytes: usize) {
        self.0.retained = bytes;
    }
}

impl Inner {
    /// The length of the head in `first`, which begins at 0.
    #[inline]
    pub(super) fn kept_length(&self) -> usize {
        self.first.bytes.end as usize
    }

    /// Takes the first head of the response before, if this response begins with the same bytes: servers often send the
    /// same head many times. So the head is neither parsed nor copied again. Returns its length.
    #[inline(always)] // into its only caller
    pub(super) fn repeat_head(&mut self, input: &[u8], limits: &Limits) -> Option<usize> {
        if !std::mem::take(&mut self.is_cleared) {
            return None;
        }
        let (length, count) = (self.kept_length(), self.first.fields.end as usize);
        let fits = length <= limits.head_bytes
            && length <= limits.header_line
            && count <= limits.header_count;
        if length > 0 && fits && input.starts_with(&self.buffer) {
            self.head = self.first.clone();
            self.fields.set_len(count);
            return Some(length);
        }
        self.forget_first();
        None
    }

    /// Drops the first head of the response before.
    fn forget_first(&mut self) {
        self.buffer.clear();
        self.first = HeadParts::default();
        self.is_cleared = false;
    }
}

impl Default for Response {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("url", &self.shown_url())
            .field("status", &self.status())
            .field("body_len", &self.0.body.len())
            .finish_non_exhaustive()
    }
}

/// An interim response (RFC 9110 §15.2), from [`Response::interim`].
#[derive(Clone, Copy)]
pub struct Head<'a> {
    buffer: &'a [u8],
    fields: &'a [Field],
    parts: &'a HeadParts,
}

impl<'a> Head<'a> {
    /// The status code, 100 to 199.
    pub fn status(&self) -> u16 {
        self.parts.status
    }

    /// The headers in the order received.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        fields(self.buffer, self.fields)
    }

    /// The head as received.
    pub fn bytes(&self) -> &'a [u8] {
        &self.buffer[range(&self.parts.bytes)]
    }
}

impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// The version in a status line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        })
    }
}

/// Where the parts of one head are in the buffers of the response.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadParts {
    pub(super) status: u16,
    pub(super) version: Version,
    /// In the buffer.
    pub(super) bytes: Range<u32>,
    /// In the buffer.
    pub(super) reason: Range<u32>,
    /// A range of the fields.
    pub(super) fields: Range<u32>,
}

/// Header fields in slots that are kept when they are not in use. A parser fills them like an array and cannot grow
/// them.
#[derive(Default)]
pub(crate) struct Fields {
    slots: Vec<Field>,
    used: usize,
}

impl Fields {
    /// Removes all fields and returns the slots. What is written there counts after [`set_len`](Self::set_len).
    #[inline]
    pub(super) fn refill(&mut self) -> &mut [Field] {
        self.used = 0;
        if self.slots.is_empty() {
            self.grow();
        }
        &mut self.slots
    }

    /// Sets how many of the slots are in use.
    #[inline]
    pub(super) fn set_len(&mut self, n: usize) {
        self.used = n.min(self.slots.len());
    }

    pub(super) fn push(&mut self, field: Field) {
        if self.used == self.slots.len() {
            self.grow();
        }
        self.slots[self.used] = field;
        self.used += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let more = self.slots.len().max(FIRST_SLOTS);
        self.slots.resize(self.used + more, Field::default());
    }
}

impl std::ops::Deref for Fields {
    type Target = [Field];

    #[inline]
    fn deref(&self) -> &[Field] {
        &self.slots[..self.used]
    }
}

impl std::ops::DerefMut for Fields {
    fn deref_mut(&mut self) -> &mut [Field] {
        &mut self.slots[..self.used]
    }
}

/// A header field as two ranges into the buffer that it was parsed from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field {
    pub(super) name: u32,
    pub(super) name_len: u32,
    pub(super) value: u32,
    pub(super) value_len: u32,
}

impl Field {
    /// A field with these slices of `whole`, which is the buffer, or the beginning of what will be the buffer.
    pub(super) fn new(whole: &[u8], name: &[u8], value: &[u8]) -> Self {
        Self {
            name: offset_in(whole, name) as u32,
            name_len: name.len() as u32,
            value: offset_in(whole, value) as u32,
            value_len: value.len() as u32,
        }
    }

    #[cfg(test)]
    pub(super) fn show(&self, buffer: &[u8]) -> String {
        let text = |range| String::from_utf8_lossy(&buffer[range]).into_owned();
        format!("{}: {}", text(self.name()), text(self.value()))
    }

    pub(super) fn name(&self) -> Range<usize> {
        self.name as usize..self.name as usize + self.name_len as usize
    }

    pub(super) fn value(&self) -> Range<usize> {
        self.value as usize..self.value as usize + self.value_len as usize
    }

    pub(super) fn set_value(&mut self, range: Range<usize>) {
        self.value = range.start as u32;
        self.value_len = range.len() as u32;
    }
}

/// The offset of `part`, a slice of `whole`; 0 if it is empty, since an empty slice may point anywhere.
fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    if part.is_empty() {
        return 0;
    }
    (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize)
}

fn fields<'a>(buffer: &'a [u8], fields: &'a [Field]) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    fields.iter().map(|field| {
        // Names are tokens (RFC 9110 §5.6.2), so ASCII; the parser has checked this.
        let name = std::str::from_utf8(&buffer[field.name()]).unwrap_or_default();
        (name, &buffer[field.value()])
    })
}

pub(super) fn range(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Bytes of memory that decoding may keep. The usual window of zstd alone is as large as the default cap for a buffer.
pub(super) fn decoder_cap(retained: usize) -> usize {
    retained.saturating_mul(2)
}

/// Bytes. Enough for ordinary pages and API answers, and for a download of 1 MiB with the growth of its buffer.
const DEFAULT_RETAINED: usize = 2 * 1024 * 1024;

/// Slots allocated first. Nearly all heads have fewer fields.
const FIRST_SLOTS: usize = 16;
