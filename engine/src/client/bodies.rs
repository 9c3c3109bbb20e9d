//! Request bodies from the types of other crates.

use std::error::Error;
use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::proto::{BodySource, Request};

#[cfg(feature = "futures")]
impl Request {
    /// Sets a body whose pieces are the items of a stream: exactly `length` bytes, or, with `None`, all items, in
    /// the chunked coding. As with [`body_source`](Self::body_source), the stream runs on the thread that drives
    /// the client. An error of the stream ends the call.
    ///
    /// ```
    /// use courser::{Bytes, Request};
    ///
    /// let lines = futures_lite::stream::iter(["a\n", "b\n"]);
    /// let lines = futures_lite::StreamExt::map(lines, |line| Ok::<_, std::io::Error>(Bytes::from(line)));
    /// let mut request = Request::put("/lines", "");
    /// request.body_of_stream(lines, None);
    /// ```
    pub fn body_of_stream<S, B, E>(&mut self, stream: S, length: Option<u64>) -> &mut Self
    where
        S: futures_core::Stream<Item = Result<B, E>> + Send + 'static,
        B: Into<Bytes>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let mut stream = Box::pin(stream);
        let next = move |context: &mut Context<'_>| {
            let item = ready!(stream.as_mut().poll_next(context)).transpose();
            let item = item.map_err(io::Error::other)?;
            Poll::Ready(Ok(item.map(Into::into)))
        };
        self.body_source(OfFunction(next), length)
    }
}

#[cfg(feature = "http-body")]
impl Request {
    /// Sets a body of the `http_body` crate. If the body knows its exact length, that is its `Content-Length`; else
    /// it goes out in the chunked coding. As with [`body_source`](Self::body_source), the body runs on the thread
    /// that drives the client. An error of the body ends the call; so do trailers in the chunked coding, because a
    /// request must know its trailers before ([`trailer`](Self::trailer)).
    ///
    /// ```
    /// use courser::{Bytes, Request};
    /// use http_body_util::Full;
    ///
    /// let mut request = Request::put("/a", "");
    /// request.body_of(Full::new(Bytes::from("whole")));
    /// ```
    pub fn body_of<B>(&mut self, body: B) -> &mut Self
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        use bytes::Buf as _;

        let length = body.size_hint().exact();
        let mut body = Box::pin(body);
        let next = move |context: &mut Context<'_>| {
            let Some(frame) = ready!(body.as_mut().poll_frame(context)) else {
                return Poll::Ready(Ok(None));
            };
            let data = frame.map_err(io::Error::other)?.into_data();
            let data = data.map_err(|frame| match frame.is_trailers() {
                true => io::Error::other("a body with trailers of its own"),
                false => io::Error::other("a body with an unknown kind of frame"),
            });
            let whole = |mut data: B::Data| Some(data.copy_to_bytes(data.remaining()));
            Poll::Ready(data.map(whole))
        };
        self.body_source(OfFunction(next), length)
    }
}

/// A source of pieces that is one function.
struct OfFunction<F>(F);

impl<F> BodySource for OfFunction<F>
where
    F: FnMut(&mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> + Send + 'static,
{
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        (self.0)(context)
    }
}
