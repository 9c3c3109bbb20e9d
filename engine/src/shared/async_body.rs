//! Streamed bodies as the types of other crates have them.

#[cfg(feature = "futures")]
mod futures {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;

    use crate::error::Error;
    use crate::shared::SharedBody;

    /// The chunks of the body. The stream ends after an error.
    impl futures_core::Stream for SharedBody {
        type Item = Result<Bytes, Error>;

        fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let body = self.get_mut();
            match body.has_failed() {
                true => Poll::Ready(None),
                false => body.poll_chunk(context).map(Result::transpose),
            }
        }
    }

    impl futures_io::AsyncRead for SharedBody {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buf: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            let read = Self::poll_read(self.get_mut(), context, buf);
            read.map_err(Into::into)
        }
    }
}

#[cfg(feature = "tokio")]
mod of_tokio {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use tokio::io::{AsyncRead, ReadBuf};

    use crate::shared::SharedBody;

    impl AsyncRead for SharedBody {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let room = buf.initialize_unfilled();
            let n = ready!(Self::poll_read(self.get_mut(), context, room))?;
            buf.advance(n);
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(feature = "http-body")]
mod of_http_body {
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use bytes::Bytes;
    use http::{HeaderMap, HeaderName, HeaderValue};
    use http_body::{Body, Frame};

    use crate::error::Error;
    use crate::shared::SharedBody;

    /// The chunks of the body, then its trailers, if there are any. Trailers that the `http` crate does not accept are
    /// left out; [`SharedBody::trailers`] has all.
    impl Body for SharedBody {
        type Data = Bytes;
        type Error = Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
            let body = self.get_mut();
            if body.has_failed() {
                return Poll::Ready(None);
            }
            let chunk = ready!(body.poll_chunk(context))?;
            let frame = match chunk {
                Some(chunk) => Some(Frame::data(chunk)),
                None if body.note_trailers_given() => None,
                None => Some(trailers(body))
                    .filter(|trailers| !trailers.is_empty())
                    .map(Frame::trailers),
            };
            Poll::Ready(frame.map(Ok))
        }
    }

    fn trailers(body: &SharedBody) -> HeaderMap {
        let accepted = body.trailers().filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_bytes(value).ok()?))
        });
        let mut trailers = HeaderMap::new();
        for (name, value) in accepted {
            // Fails beyond 32,768 trailers, of which the limit on their size allows fewer.
            let _ = trailers.try_append(name, value);
        }
        trailers
    }
}
