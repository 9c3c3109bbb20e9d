//! Writes a response to the output, and applies the rules that end a transfer early (`--fail`, `--max-filesize`).

use std::time::{Duration, Instant};

use courser::{CallId, Response};

use super::exit::{Exit, Failure};
use super::link::{Link, Piece};
use super::output::Sink;
use super::plan::Options;
use super::progress::Progress;

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
    /// Bytes of the body written so far.
    pub(super) written: &'a mut u64,
    pub(super) progress: &'a mut Progress,
}

enum Wanted {
    HeadOnly,
    Body,
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
            Wanted::Body => self.body(link, id, buffer),
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
                self.piece(response.body())
            }
            _ => Ok(()),
        }
    }

    fn proxy_head(&mut self, head: Option<&[u8]>) -> Result<(), Failure> {
        match head {
            Some(head) if self.options.output.include && self.options.output.show_connect => {
                self.sink.write_head(head)
            }
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
        if self.options.output.include {
            for interim in response.interim() {
                self.sink.write_head(interim.bytes())?;
            }
            self.sink.write_head(response.head())?;
        }
        let status = response.status();
        if let Some(limit) = self.options.output.max_filesize
            && announced_length(response).is_some_and(|length| length > limit)
        {
            return Err(too_large(limit));
        }
        if self.options.request.compressed
            && !self.options.request.head_only
            && let Some(coding) = unknown_coding(response)
        {
            let cause = format!("unknown content coding {}", coding.escape_ascii());
            return Err(Failure::new(Exit::BadEncoding, "response", cause));
        }
        if self.options.output.fail && status >= 400 && !is_followed {
            return Err(http_error(status));
        }
        // After a 101 the bytes belong to another protocol.
        Ok(if self.options.request.head_only || status == 101 {
            Wanted::HeadOnly
        } else {
            Wanted::Body
        })
    }

    /// Writes the body as it arrives. Bytes that arrived before an error are written before the error is returned.
    fn body(&mut self, link: &mut Link, id: CallId, buffer: &mut [u8]) -> Result<(), Failure> {
        loop {
            match link.read_body(id, buffer, None, self.progress)? {
                Piece::Data(n) => self.piece(&buffer[..n])?,
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

    fn piece(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let limit = self.options.output.max_filesize.unwrap_or(u64::MAX);
        let room = usize::try_from(limit - *self.written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        self.sink.write(fitting)?;
        *self.written += fitting.len() as u64;
        self.progress.received(fitting.len());
        if fitting.len() < bytes.len() {
            return Err(too_large(limit));
        }
        Ok(())
    }

    fn trailers(&mut self, trailers: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        if self.options.output.include {
            for (name, value) in trailers {
                let line = [name.as_bytes(), b": ", value, b"\r\n"].concat();
                self.sink.write_head(&line)?;
            }
        }
        Ok(())
    }
}

pub(super) fn http_error(status: u16) -> Failure {
    let cause = format!("the server answered with status {status}");
    Failure::new(Exit::HttpError, "response", cause)
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

/// The most bytes of a redirect's body that are read to keep the connection.
const MOST_DROPPED: usize = 256 * 1024;

/// How long that may take.
const LONGEST_DROP: Duration = Duration::from_millis(500);

/// Errors of a body that do not matter if the body is dropped.
pub(super) const IGNORED_IF_DROPPED: [Exit; 2] = [Exit::Partial, Exit::BadEncoding];
