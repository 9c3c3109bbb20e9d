//! Streamed bodies as the types of other crates have them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::SharedBody;

/// The chunks of the body. The stream ends after an error.
#[cfg(feature = "futures")]
impl futures_core::Stream for SharedBody {
    type Item = Result<bytes::Bytes, crate::error::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let body = self.get_mut();
        match body.has_failed() {
            true => Poll::Ready(None),
            false => body.poll_chunk(context).map(Result::transpose),
        }
    }
}

#[cfg(feature = "futures")]
impl futures_io::AsyncRead for SharedBody {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<std::io::Result<usize>> {
        let n = ready!(Self::poll_read(self.get_mut(), context, buf))?;
        Poll::Ready(Ok(n))
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncRead for SharedBody {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let room = buf.initialize_unfilled();
        let n = ready!(Self::poll_read(self.get_mut(), context, room))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

/// The chunks of the body, then its trailers, if there are any. Trailers that the `http` crate does not accept are
/// left out; [`SharedBody::trailers`] has all.
#[cfg(feature = "http-body")]
impl http_body::Body for SharedBody {
    type Data = bytes::Bytes;
    type Error = crate::error::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        let body = self.get_mut();
        if body.has_failed() {
            return Poll::Ready(None);
        }
        let chunk = ready!(body.poll_chunk(context))?;
        let frame = match chunk {
            Some(chunk) => Some(http_body::Frame::data(chunk)),
            None if body.note_trailers_given() => None,
            None => Some(trailers(body))
                .filter(|trailers| !trailers.is_empty())
                .map(http_body::Frame::trailers),
        };
        Poll::Ready(frame.map(Ok))
    }
}

#[cfg(feature = "http-body")]
fn trailers(body: &SharedBody) -> http::HeaderMap {
    let mut trailers = http::HeaderMap::new();
    for (name, value) in body.trailers() {
        let name = http::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(value)) {
            // Fails beyond 32,768 trailers, of which the limit on their size allows fewer.
            let _ = trailers.try_append(name, value);
        }
    }
    trailers
}
