//! A `tower::Service` of `http` requests, over a shared client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::slot::Permit;
use super::{Drive, Sending, Shared};
use crate::client::{Call, ConversionError};
use crate::error::{Error, ErrorKind};
use crate::proto::{Request, Response};

/// A [`Shared`] client as a `tower::Service`: `http::Request<Bytes>` in, `http::Response<Bytes>` out, with the call's
/// [`Report`](crate::Report) in the response's extensions. Made by [`Shared::service`].
///
/// The service is ready when one more call may be [in flight](crate::SharedConfig::max_in_flight). It keeps this permit
/// for its next call. A clone has to wait for a permit of its own.
///
/// ```
/// use bytes::Bytes;
/// use courser::{HostClient, HostConfig, Shared, SharedConfig};
/// use tower_service::Service as _;
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let upstream: courser::Upstream = server.local_addr()?.to_string().parse()?;
/// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
/// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
/// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
///
/// let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
/// let mut service = Shared::spawn(SharedConfig::default(), build)?.service();
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// std::future::poll_fn(|context| service.poll_ready(context)).await?;
/// let response = service.call(http::Request::get("/").body(Bytes::new())?).await?;
/// assert_eq!((response.status().as_u16(), &response.body()[..]), (200, &b"hi"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HttpService<C> {
    client: Shared<C>,
    permit: Option<Permit>,
}

impl<C> Clone for HttpService<C> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            permit: None,
        }
    }
}

impl<C: Drive> Shared<C> {
    /// This client as a `tower::Service`.
    pub fn service(&self) -> HttpService<C> {
        HttpService {
            client: self.clone(),
            permit: None,
        }
    }
}

impl<C: Drive> tower_service::Service<http::Request<Bytes>> for HttpService<C> {
    type Response = http::Response<Bytes>;
    type Error = ServiceError;
    type Future = ServiceFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ServiceError>> {
        if self.permit.is_none() {
            match self.client.inner.permits.poll_take(context) {
                Poll::Ready(permit) => self.permit = Some(permit),
                // The client is closed: the call will fail and say so.
                Poll::Pending if self.client.is_closed() => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Bytes>) -> ServiceFuture {
        let permit = self.permit.take();
        ServiceFuture(Request::try_from(request).map(|request| {
            let call = Call::new(request, Response::new());
            self.client.send_with(call, permit)
        }))
    }
}

/// The response of a [`HttpService`]. Dropping it cancels the call.
#[derive(Debug)]
#[must_use = "dropping it cancels the call"]
pub struct ServiceFuture(Result<Sending, ConversionError>);

impl Future for ServiceFuture {
    type Output = Result<http::Response<Bytes>, ServiceError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let sending = match &mut self.0 {
            Ok(sending) => sending,
            Err(unfit) => return Poll::Ready(Err(ServiceError::Request(*unfit))),
        };
        Pin::new(sending).poll(context).map(|done| {
            done.outcome.map_err(ServiceError::Call)?;
            let response = http::Response::try_from(done.response);
            let mut response = response.map_err(ServiceError::Response)?;
            response.extensions_mut().insert(done.report);
            Ok(response)
        })
    }
}

/// Why a [`HttpService`] has no response.
///
/// ```
/// # fn example(error: courser::ServiceError) {
/// use courser::ServiceError;
/// match error {
///     ServiceError::Call(error) if error.is_timeout() => println!("too slow"),
///     other => println!("{other}"),
/// }
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ServiceError {
    /// The call failed.
    Call(Error),
    /// The request could not be converted, and was not sent.
    Request(ConversionError),
    /// The response has come, but could not be converted to an `http::Response`.
    Response(ConversionError),
}

impl ServiceError {
    /// The cause, if the call itself failed.
    pub fn kind(&self) -> Option<&ErrorKind> {
        match self {
            Self::Call(error) => Some(error.kind()),
            Self::Request(_) | Self::Response(_) => None,
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call(_) => "the call failed",
            Self::Request(_) => "the request cannot be sent",
            Self::Response(_) => "the response cannot be handed on",
        })
    }
}

impl std::error::Error for ServiceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Call(error) => Some(error),
            Self::Request(unfit) | Self::Response(unfit) => Some(unfit),
        }
    }
}
