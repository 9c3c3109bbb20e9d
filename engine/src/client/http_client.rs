//! The trait that all clients of one thread share.

use std::io;
use std::time::Duration;

use super::{BodyRead, Call, CallId, Completion, Driven, Engine, Report, Router, Stats, Waited};
use crate::error::Error;
use crate::net::Net;
use crate::policy::{Caps, Counters};
use crate::proto::{Request, Response};

/// What [`Client`](crate::Client), [`HostClient`](crate::HostClient) and [`PipelineClient`](crate::PipelineClient) have in
/// common: for code that works with any of them, and for [`Shared`](crate::Shared), which drives them. Each method is the
/// client's own method of that name. Only clients of this library have the trait.
///
/// ```
/// use courser::{HttpClient, Request, Response};
///
/// /// Whether a target is there.
/// fn is_there(client: &mut dyn HttpClient, target: &str) -> Result<bool, courser::Error> {
///     let mut response = Response::new();
///     client.call(&mut Request::new("HEAD", target), &mut response)?;
///     Ok(response.status() == 200)
/// }
/// # let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
/// # let address = server.local_addr().unwrap();
/// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
/// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
/// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() { break } } }); });
///
/// let upstream = courser::Upstream::tcp([address]);
/// let mut one_host = courser::HostClient::new(upstream.clone(), Default::default())?;
/// assert!(is_there(&mut one_host, "/")?);
/// let mut pipelined = courser::PipelineClient::new(upstream, Default::default())?;
/// assert!(is_there(&mut pipelined, "/")?);
/// let mut any_host = courser::Client::new(Default::default())?;
/// assert!(is_there(&mut any_host, &format!("http://{address}/"))?);
/// # Ok::<(), courser::Error>(())
/// ```
pub trait HttpClient: Driven {
    /// Sends a request and waits for the response.
    ///
    /// # Errors
    /// Why there is no complete response; `response` then holds the part that arrived.
    fn call(&mut self, request: &mut Request, response: &mut Response) -> Result<Report, Error>;

    /// Sends a call and waits for its completion.
    fn perform(&mut self, call: Call) -> Completion;

    /// Submits a call, which completes in [`wait`](Self::wait).
    fn submit(&mut self, call: Call) -> CallId;

    /// Waits for the next completion.
    ///
    /// # Errors
    /// The system's error if the client cannot wait.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Waited>;

    /// The next completion that is there already.
    fn next_done(&mut self) -> Option<Completion>;

    /// Maintains the connections for this time.
    ///
    /// # Errors
    /// The system's error if the client cannot wait.
    fn maintain(&mut self, time: Duration) -> io::Result<()>;

    /// Cancels a call; false if it has ended.
    fn cancel(&mut self, id: CallId) -> bool;

    /// Goes on with the body of a request whose source had no bytes for a while.
    fn resume(&mut self, id: CallId);

    /// The next streamed body with data or an end.
    fn readable_body(&mut self) -> Option<CallId>;

    /// Takes bytes of a streamed body; never blocks.
    ///
    /// # Errors
    /// Why the body ended early; no more bytes follow.
    fn read_body(&mut self, id: CallId, buf: &mut [u8]) -> Result<BodyRead, Error>;

    /// Changes limits while the client runs.
    ///
    /// # Errors
    /// The client has no such limit.
    fn set_caps(&mut self, caps: &Caps) -> Result<(), Error>;

    /// The number of calls that have not completed.
    fn in_flight(&self) -> usize;

    /// The connections, at this moment.
    fn counters(&self) -> Counters;

    /// What has happened since the client was made.
    fn stats(&self) -> Stats;
}

impl<R: Router + 'static, N: Net + 'static> HttpClient for Engine<R, N> {
    fn call(&mut self, request: &mut Request, response: &mut Response) -> Result<Report, Error> {
        self.call(request, response)
    }

    fn perform(&mut self, call: Call) -> Completion {
        self.perform(call)
    }

    fn submit(&mut self, call: Call) -> CallId {
        self.submit(call)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Waited> {
        self.wait(timeout)
    }

    fn next_done(&mut self) -> Option<Completion> {
        self.next_done()
    }

    fn maintain(&mut self, time: Duration) -> io::Result<()> {
        self.maintain(time)
    }

    fn cancel(&mut self, id: CallId) -> bool {
        self.cancel(id)
    }

    fn resume(&mut self, id: CallId) {
        self.resume(id);
    }

    fn readable_body(&mut self) -> Option<CallId> {
        self.readable_body()
    }

    fn read_body(&mut self, id: CallId, buf: &mut [u8]) -> Result<BodyRead, Error> {
        self.read_body(id, buf)
    }

    fn set_caps(&mut self, caps: &Caps) -> Result<(), Error> {
        self.set_caps(caps)
    }

    fn in_flight(&self) -> usize {
        self.in_flight()
    }

    fn counters(&self) -> Counters {
        self.counters()
    }

    fn stats(&self) -> Stats {
        self.stats()
    }
}
