//! Writes a response to the output, and applies the rules that end a transfer early (`--fail`, `--max-filesize`).

use std::time::{Duration, Instant};

use courser::{CallId, Response};

use super::condition::modified;
use super::exit::{Exit, Failure};
use super::link::{Link, Piece};
use super::output::Sink;
use super::plan::Options;
use super::progress::Progress;
use super::show::{Trace, Way};

/// The output options of one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputOptions {
    /// `-i`: response heads are part of the output.
    pub(super) include: bool,
    /// Whether these heads include the proxy's response to CONNECT.
    pub(super) show_connect: bool,
    pub(super) fail: bool,
    pub(super) fail_with_body: bool,
    pub(super) max_filesize: Option<u64>,
}

/// The output of one transfer.
pub(super) struct Output<'a> {
    pub(super) sink: &'a mut Sink,
    pub(super) options: &'a Options,
    /// `-C`: the first byte that a GET asked for; otherwise 0.
    pub(super) resume_at: u64,
    /// The body was not wanted, because it has not changed (`-z`).
    pub(super) unchanged: bool,
    /// Bytes of the body written so far.
    pub(super) written: &'a mut u64,
    pub(super) progress: &'a mut Progress,
    pub(super) trace: &'a Trace,
}

enum Wanted {
    HeadOnly,
    Body,
    /// A body that is read and dropped.
    Nothing,
}

/// Whether a body begins where the output file ends.
enum Place {
    Right,
    /// The body is the file that is there already.
    Complete,
    Wrong,
}

impl Output<'_> {
    /// Writes a response whose head has arrived and whose body follows. The body of a followed redirect is read and
    /// dropped, so that the connection can be reused.
    pub(super) fn take(
        &mut self,
        link: &mut Link,
        id: CallId,
        response: &Response,
        proxy_head: Option<&[u8]>,
        is_followed: bool,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        match self.head(response, proxy_head, is_followed)? {
            _ if is_followed => self.drop_body(link, id, buffer),
            Wanted::HeadOnly => Ok(()),
            Wanted::Body => self.body(link, id, response, buffer),
            Wanted::Nothing => self.drop_body(link, id, buffer),
        }
    }

    /// Writes the received part of a response that failed before the engine delivered its head, if that head is
    /// complete.
    pub(super) fn take_failed(
        &mut self,
        response: &Response,
        proxy_head: Option<&[u8]>,
        is_followed: bool,
    ) -> Result<(), Failure> {
        if response.status() == 0 {
            return self.proxy_head(proxy_head);
        }
        match self.head(response, proxy_head, is_followed)? {
            Wanted::Body if !is_followed && !response.body().is_empty() => {
                match self.place(response) {
                    Place::Right => self.piece(response.body()),
                    Place::Complete => Ok(()),
                    Place::Wrong => Err(cannot_resume()),
                }
            }
            _ => Ok(()),
        }
    }

    fn proxy_head(&mut self, head: Option<&[u8]>) -> Result<(), Failure> {
        match head {
            Some(head) if self.options.output.show_connect => self.write_head(head),
            _ => Ok(()),
        }
    }

    fn head(
        &mut self,
        response: &Response,
        proxy_head: Option<&[u8]>,
        is_followed: bool,
    ) -> Result<Wanted, Failure> {
        self.proxy_head(proxy_head)?;
        for interim in response.interim() {
            self.write_head(interim.bytes())?;
        }
        self.write_head(response.head())?;
        self.sink.name(response.header_all("content-disposition"))?;
        let status = response.status();
        if self.resume_at > 0 && status == 416 {
            return self.beyond_the_end(response);
        }
        if let Some(limit) = self.options.output.max_filesize
            && announced_length(response).is_some_and(|length| length > limit)
        {
            return Err(too_large(limit));
        }
        if self.options.request.decodes()
            && !self.options.request.head_only
            && let Some(coding) = unknown_coding(response)
        {
            let cause = format!("unknown content coding {}", coding.escape_ascii());
            return Err(Failure::new(Exit::BadEncoding, "response", cause));
        }
        if self.options.output.fail && status >= 400 && !is_followed {
            return Err(http_error(status));
        }
        if self.is_unchanged(response) {
            self.unchanged = true;
            return Ok(Wanted::Nothing);
        }
        // After a 101 the bytes belong to another protocol.
        Ok(if self.options.request.head_only || status == 101 {
            Wanted::HeadOnly
        } else {
            Wanted::Body
        })
    }

    /// `-C`: there is no byte at which to continue. The body is there already if it ends at that byte. A server that does
    /// not say where it ends is believed, as in curl.
    fn beyond_the_end(&self, response: &Response) -> Result<Wanted, Failure> {
        let at = self.resume_at;
        match complete_length(response) {
            Some(length) if length != at => {
                let cause = format_args!(
                    "cannot continue at byte {at}: the server has a body of {length} bytes"
                );
                Err(Failure::new(Exit::Range, "response", cause))
            }
            _ => Ok(Wanted::Nothing),
        }
    }

    /// Writes a head where heads go: to the file of `-D`, and with `-i` to the output.
    pub(super) fn write_head(&mut self, head: &[u8]) -> Result<(), Failure> {
        self.sink.dump_head(head)?;
        if self.options.output.include {
            self.sink.write_head(head)?;
        }
        Ok(())
    }

    /// `-z`: the server has sent the body although it has not changed since.
    fn is_unchanged(&self, response: &Response) -> bool {
        let request = &self.options.request;
        let is_whole = request.range().is_none() && !request.head_only && self.resume_at == 0;
        let condition = request.condition.filter(|_| is_whole);
        condition.is_some_and(|c| c.is_unmet(modified(response.header("last-modified"))))
    }

    fn place(&self, response: &Response) -> Place {
        let range = response.header("content-range").unwrap_or_default();
        let start = range.iter().position(u8::is_ascii_digit);
        let digits = start.map_or(&[][..], |start| &range[start..]);
        let end = digits.iter().position(|b| !b.is_ascii_digit());
        let from = std::str::from_utf8(&digits[..end.unwrap_or(digits.len())]);
        let from: Option<u64> = from.ok().and_then(|digits| digits.parse().ok());
        if self.resume_at == 0 || from == Some(self.resume_at) {
            Place::Right
        } else if announced_length(response) == Some(self.resume_at) {
            Place::Complete
        } else {
            Place::Wrong
        }
    }

    /// Writes the body as it arrives. Bytes that arrived before an error are written before the error is returned.
    fn body(
        &mut self,
        link: &mut Link,
        id: CallId,
        response: &Response,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        let place = self.place(response);
        loop {
            match link.read_body(id, buffer, None, self.progress)? {
                Piece::Data(n) => match place {
                    Place::Right => self.piece(&buffer[..n])?,
                    Place::Complete => return Ok(()),
                    Place::Wrong => return Err(cannot_resume()),
                },
                Piece::End(trailers) => return self.trailers(&trailers),
                Piece::Pending => {}
            }
        }
    }

    /// Reads the body of a followed redirect and drops it, up to a limit of bytes and of time. Beyond a limit, and if the
    /// body is broken, only the connection is lost.
    fn drop_body(&mut self, link: &mut Link, id: CallId, buffer: &mut [u8]) -> Result<(), Failure> {
        let until = Instant::now() + LONGEST_DROP;
        let mut left = MOST_DROPPED;
        loop {
            match link.read_body(id, buffer, Some(until), self.progress) {
                Ok(Piece::Data(n)) if n <= left => left -= n,
                Ok(Piece::Data(_) | Piece::Pending) => return Ok(()),
                Ok(Piece::End(trailers)) => return self.trailers(&trailers),
                Err(failure) if IGNORED_IF_DROPPED.contains(&failure.exit) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Writes a part of the body, up to the limit of `--max-filesize`.
    pub(super) fn piece(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let limit = self.options.output.max_filesize.unwrap_or(u64::MAX);
        let room = usize::try_from(limit - *self.written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        self.sink.write_body(fitting)?;
        *self.written += fitting.len() as u64;
        self.progress.received(fitting.len());
        self.trace.data(Way::In, fitting);
        if fitting.len() < bytes.len() {
            return Err(too_large(limit));
        }
        Ok(())
    }

    fn trailers(&mut self, trailers: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        if self.options.request.keeps_chunks() {
            return Ok(());
        }
        for (name, value) in trailers {
            let line = [name.as_bytes(), b": ", value, b"\r\n"].concat();
            self.write_head(&line)?;
        }
        Ok(())
    }
}

pub(super) fn http_error(status: u16) -> Failure {
    let cause = format!("the server answered with status {status}");
    Failure::new(Exit::HttpError, "response", cause)
}

fn cannot_resume() -> Failure {
    let cause = "HTTP server doesn't seem to support byte ranges. Cannot resume.";
    Failure::new(Exit::Range, "response", cause)
}

fn too_large(limit: u64) -> Failure {
    Failure::new(
        Exit::TooLarge,
        "response",
        format!("the body has more than {limit} bytes"),
    )
}

/// The first content coding that the engine cannot decode.
fn unknown_coding(response: &Response) -> Option<&[u8]> {
    let known: [&[u8]; 8] = [
        b"gzip",
        b"x-gzip",
        b"deflate",
        b"br",
        b"zstd",
        b"identity",
        b"none",
        b"",
    ];
    response
        .header_all("content-encoding")
        .flat_map(|value| value.split(|b| *b == b','))
        .map(<[u8]>::trim_ascii)
        .find(|coding| !known.iter().any(|known| coding.eq_ignore_ascii_case(known)))
}

/// The `Content-Length`, if it frames the body.
pub(super) fn announced_length(response: &Response) -> Option<u64> {
    if response.header("transfer-encoding").is_some() {
        return None;
    }
    let value = std::str::from_utf8(response.header("content-length")?).ok()?;
    // A list of equal values is allowed (RFC 9110 §8.6).
    value.split(',').next()?.trim().parse().ok()
}

/// The length of the whole body in a 416 (RFC 9110 §15.5.17): `bytes */LENGTH`.
fn complete_length(response: &Response) -> Option<u64> {
    let value = std::str::from_utf8(response.header("content-range")?).ok()?;
    let (unit, range) = value.trim().split_once(' ')?;
    let length = range.trim_start().strip_prefix("*/")?;
    length
        .parse()
        .ok()
        .filter(|_| unit.eq_ignore_ascii_case("bytes"))
}

/// The most bytes of a redirect's body that are read to keep the connection.
const MOST_DROPPED: usize = 256 * 1024;

/// How long that may take.
const LONGEST_DROP: Duration = Duration::from_millis(500);

/// Errors of a body that do not matter if the body is dropped.
pub(super) const IGNORED_IF_DROPPED: [Exit; 2] = [Exit::Partial, Exit::BadEncoding];
