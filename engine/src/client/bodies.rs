//! Request bodies from the types of other crates.

#[cfg(feature = "futures")]
mod of_stream {
    use std::error::Error;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use bytes::Bytes;
    use futures_core::Stream;

    use crate::proto::{BodySource, Request};

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
            S: Stream<Item = Result<B, E>> + Send + 'static,
            B: Into<Bytes>,
            E: Into<Box<dyn Error + Send + Sync>>,
        {
            self.body_source(OfStream(Box::pin(stream)), length)
        }
    }

    struct OfStream<S>(Pin<Box<S>>);

    impl<S, B, E> BodySource for OfStream<S>
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: Into<Bytes>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
            let item = ready!(self.0.as_mut().poll_next(context)).transpose();
            let item = item.map_err(io::Error::other)?;
            Poll::Ready(Ok(item.map(Into::into)))
        }
    }
}

#[cfg(feature = "http-body")]
mod of_body {
    use std::error::Error;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use bytes::{Buf, Bytes};
    use http_body::Body;

    use crate::proto::{BodySource, Request};

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
            B: Body + Send + 'static,
            B::Error: Into<Box<dyn Error + Send + Sync>>,
        {
            let length = body.size_hint().exact();
            self.body_source(OfBody(Box::pin(body)), length)
        }
    }

    struct OfBody<B>(Pin<Box<B>>);

    impl<B> BodySource for OfBody<B>
    where
        B: Body + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
            let Some(frame) = ready!(self.0.as_mut().poll_frame(context)) else {
                return Poll::Ready(Ok(None));
            };
            let frame = frame.map_err(io::Error::other)?;
            let data = frame
                .into_data()
                .map_err(|frame| match frame.is_trailers() {
                    true => io::Error::other("a body with trailers of its own"),
                    false => io::Error::other("a body with an unknown kind of frame"),
                });
            Poll::Ready(data.map(|mut data| Some(data.copy_to_bytes(data.remaining()))))
        }
    }
}
