//! The body of a response, read while it arrives.

use std::io;

use bytes::Bytes;

use super::Engine;
use crate::client::router::Router;
use crate::client::{BodyRead, CallId, HttpClient, Report};
use crate::error::{Error, Phase, Sent};
use crate::net::Net;
use crate::proto::{Request, Response};

/// The body of a response, read while it arrives. A body that is dropped before its end closes the connection.
///
/// ```
/// # fn example(client: &mut courser::HostClient) -> Result<(), Box<dyn std::error::Error>> {
/// let (mut request, mut response) = (courser::Request::get("/large.iso"), courser::Response::new());
/// let mut body = client.open(&mut request, &mut response)?;
/// std::io::copy(&mut body, &mut std::io::sink())?;
/// let report = body.finish()?;
/// println!("{:?}", report.timings().total);
/// # Ok(()) }
/// ```
///
/// A struct can hold it:
///
/// ```
/// struct Download<'a> {
///     body: courser::Body<'a, courser::Client>,
/// }
/// # fn hold<'a>(body: courser::Body<'a, courser::Client>) -> Download<'a> { Download { body } }
/// ```
pub struct Body<'a, C: HttpClient> {
    client: &'a mut C,
    id: CallId,
    end: Option<(Report, Response)>,
    request: Option<Request>,
    /// A clone of the last chunk. When the caller has dropped the chunk, its memory is used again.
    last: Bytes,
}

impl<'a, C: HttpClient> Body<'a, C> {
    pub(super) fn new(client: &'a mut C, id: CallId) -> Self {
        Self {
            client,
            id,
            end: None,
            request: None,
            last: Bytes::new(),
        }
    }
}

impl<R: Router + 'static, N: Net + 'static> Body<'_, Engine<R, N>> {
    /// Waits for bytes and copies them to `buf`; 0 means the end of the body, or an empty `buf`.
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn read_some(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        if buf.is_empty() {
            return Ok(0);
        }
        self.read_by(|client, id| client.read_body(id, buf))
    }

    /// Waits for bytes, and takes all that have arrived without a copy; `None` is the end of the body. When the caller
    /// drops a chunk before the next one is read, its memory is used again.
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let mut chunk = std::mem::take(&mut self.last);
        let n = self.read_by(|client, id| client.read_chunk(id, &mut chunk))?;
        self.last = chunk.clone();
        Ok((n > 0).then_some(chunk))
    }

    /// Repeats `read` until there are bytes, and returns their number; 0 at the end of the body.
    fn read_by(
        &mut self,
        mut read: impl FnMut(&mut Engine<R, N>, CallId) -> Result<BodyRead, Error>,
    ) -> Result<usize, Error> {
        while self.end.is_none() {
            match read(self.client, self.id)? {
                BodyRead::Data(n) => return Ok(n),
                BodyRead::Pending => {
                    let id = self.id;
                    let iterated = self
                        .client
                        .calls
                        .iterate(None, |calls| calls.has_body_news(id));
                    iterated.map_err(|error| Error::new(error, Phase::Body, Sent::ReplyBegun))?;
                }
                BodyRead::End {
                    report,
                    trailers,
                    request,
                } => (self.end, self.request) = (Some((report, trailers)), request),
            }
        }
        Ok(0)
    }

    /// Reads and discards the rest of the body, and returns the report of the call.
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn finish(mut self) -> Result<Report, Error> {
        let mut rest = [0; 8192];
        loop {
            if let Some((report, response)) = self.end.take() {
                let reactor = &mut self.client.calls.dispatch.reactor;
                reactor.common.spares.put_response(response);
                return Ok(report);
            }
            self.read_some(&mut rest)?;
        }
    }

    /// The trailers, once the end has been read.
    pub fn trailers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.end
            .iter()
            .flat_map(|(_, response)| response.trailers())
    }

    /// The request, once the end has been read, if the head came before the whole request was sent.
    pub fn take_request(&mut self) -> Option<Request> {
        self.request.take()
    }

    /// The call.
    pub fn id(&self) -> CallId {
        self.id
    }
}

impl<R: Router + 'static, N: Net + 'static> io::Read for Body<'_, Engine<R, N>> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_some(buf)?)
    }
}

impl<C: HttpClient> Drop for Body<'_, C> {
    fn drop(&mut self) {
        if let Some((_, response)) = self.end.take() {
            self.client.put_spare(response);
        }
        self.client.cancel(self.id);
    }
}
