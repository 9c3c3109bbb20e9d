//! A client for many threads and for async programs: clients that run on threads of their own, the workers, or one
//! client that a task of the caller drives.
//!
//! A call goes to a worker through a queue, and its completion comes back through a slot. The slot is the only thing
//! that is allocated for a call. The event loop of a worker is woken only when it sleeps. Only the host of a call
//! decides which worker gets the call, so that the limits of a host hold over all threads.

#[cfg(any(feature = "futures", feature = "http-body", feature = "tokio"))]
mod async_body;
mod batch;
mod body;
mod closing;
mod completions;
mod driver;
#[cfg(all(test, feature = "models"))]
#[path = "models_tests.rs"]
mod models;
mod pending_calls;
mod sending;
mod slot;
mod thread;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use batch::SharedBatch;
pub use body::{SharedBody, Streaming};
pub use closing::Closing;
pub use completions::{CompletionSender, Completions, completions};
pub use driver::{Driver, Turn};
pub use sending::{Sending, Ticket};

use crossbeam_channel::Receiver;

use crate::client::{Call, Completion, HttpClient, Report, Stats};
use crate::error::{Error, ErrorKind, LimitExceeded, Misuse, Stopped};
use crate::policy::{Caps, host_hash};
use crate::proto::{Request, Response};
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, lock};
use completions::Recipient;
use slot::{Delivery, Permits, Slot};
use thread::{Command, QueuedCall, Work, Worker, Workers};

/// A client that many threads and tasks use at the same time. It runs on threads of its own. Clones are handles on the
/// same client.
///
/// There are three ways to call: blocking ([`get`](Self::get), [`call`](Self::call), and with settings for the call
/// [`perform`](Self::perform)), with completions on a channel ([`submit`](Self::submit)), and as a future on any executor
/// ([`send`](Self::send)). Bodies are streamed by [`open`](Self::open) and [`send_streaming`](Self::send_streaming).
/// [`driven`](Self::driven) is for tasks of one thread: a client without a thread of its own.
///
/// With [`Client`](crate::Client)s, the hosts can be spread over several threads:
///
/// ```no_run
/// use std::num::NonZeroUsize;
/// use courser::{Client, Config, Redirects, Response, Shared, SharedConfig};
///
/// let config = Config { redirects: Redirects::limit(10), ..Config::default() };
/// let threads = NonZeroUsize::new(4).unwrap();
/// let client = Shared::spawn(
///     SharedConfig { threads, ..SharedConfig::default() },
///     move |_| Client::new(config.clone()),
/// )?;
/// let mut response = Response::new();
/// client.get("https://www.example.com/", &mut response)?;
/// # Ok::<(), courser::Error>(())
/// ```
///
/// All calls to one scheme, host and port are served by one thread, also after redirects. So the limits and the rates
/// of a host hold as they do with one thread. [`Config::max_connections`](crate::Config::max_connections) is for all
/// threads together: each thread gets an equal part, and at least one connection. A thread that lacks a file descriptor
/// gets those of idle connections of the other threads. Other settings for all hosts together hold for each thread
/// alone: [`Config::rate`](crate::Config::rate), the rates of bytes over all hosts, and
/// [`HostConfig::held_bytes`](crate::HostConfig::held_bytes). Each thread has its own cache of names. The threads share
/// a cookie jar if their configurations have clones of the same jar.
///
/// ```
/// // One upstream, and several threads that call:
/// use courser::{Call, HostClient, HostConfig, Request, Response, Shared, SharedConfig};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let upstream: courser::Upstream = server.local_addr()?.to_string().parse()?;
/// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
/// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
/// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
///
/// let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
/// let client = Shared::spawn(SharedConfig::default(), build)?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let mut response = Response::new();
///             client.get("/", &mut response).unwrap();
///             assert_eq!(response.body(), b"hi");
///         });
///     }
/// });
/// let unfinished = client.shutdown(std::time::Duration::from_secs(1));
/// assert_eq!(unfinished, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Its end
/// [`shutdown`](Self::shutdown) lets the calls in flight end. [`shutdown_now`](Self::shutdown_now) cancels them, and
/// dropping the last clone cancels them, too. All three join the threads and close all connections.
/// [`close`](Self::close) is for tasks: it is awaited. Each caller that waits for a call gets its completion. After the
/// end, calls fail with [`Stopped::ShutDown`].
///
/// # Panics in callbacks
/// Body sources, retry hooks and wakers of tasks run on a thread of the client. If one of them panics, all calls of
/// that thread fail with [`Stopped::Panicked`], without their buffers, and a new client replaces the old one.
pub struct Shared<C> {
    inner: Arc<Inner>,
    client: PhantomData<fn() -> C>,
}

/// The options of a [`Shared`] client.
///
/// ```
/// use courser::SharedConfig;
/// let config = SharedConfig { max_in_flight: 1_000, ..SharedConfig::default() };
/// ```
#[derive(Clone, Debug)]
pub struct SharedConfig {
    /// The number of threads. Each thread has a client of its own. The hosts are spread over the threads. Default 1.
    pub threads: NonZeroUsize,
    /// How many calls may be in flight at a time, over all threads. A call whose completion waits in a channel counts,
    /// too. One more call fails at once with [`LimitExceeded::InFlight`]. Default 65,536.
    pub max_in_flight: usize,
}

impl Default for SharedConfig {
    fn default() -> Self {
        Self {
            threads: NonZeroUsize::MIN,
            max_in_flight: 65_536,
        }
    }
}

struct Inner {
    workers: Arc<Workers>,
    /// The threads, which return how many calls they cut off. Empty once the threads are joined.
    threads: Mutex<Vec<JoinHandle<usize>>>,
    permits: Arc<Permits>,
}

impl<C: HttpClient> Shared<C> {
    /// Starts the threads. Each thread makes its client with `build`, which gets the number of the thread. If a
    /// callback panics, the thread calls `build` again.
    ///
    /// # Errors
    /// The error of `build`; [`Misuse::OneThread`] for several threads with a client of one upstream;
    /// [`Misuse::OutOfRange`] for more than 4,096 threads; the system's error if a thread cannot be started.
    pub fn spawn(
        config: SharedConfig,
        build: impl Fn(usize) -> Result<C, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let count = config.threads.get();
        if count > MOST_THREADS {
            return Err(Error::unsent(Misuse::OutOfRange {
                setting: "threads",
                least: 1.0,
                most: MOST_THREADS as f64,
            }));
        }
        if count > 1 && !C::spreads() {
            return Err(Error::unsent(Misuse::OneThread));
        }
        let build = Arc::new(build);
        let (workers, queues) = Workers::new(count, false);
        // If a thread cannot be started, dropping this ends the threads that run already.
        let shared = Self::of(&workers, config.max_in_flight);
        for (index, queue) in queues.into_iter().enumerate() {
            let build = Arc::clone(&build);
            let thread = start(index, &workers, queue, move || build(index))?;
            lock(&shared.inner.threads).push(thread);
        }
        Ok(shared)
    }

    fn of(workers: &Arc<Workers>, max_in_flight: usize) -> Self {
        let inner = Inner {
            workers: Arc::clone(workers),
            threads: Mutex::default(),
            permits: Arc::new(Permits::new(max_in_flight)),
        };
        Self {
            inner: Arc::new(inner),
            client: PhantomData,
        }
    }

    // ---- blocking

    /// Gets a target and waits for the response.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn get(&self, target: &str, response: &mut Response) -> Result<Report, Error> {
        let kept = GET_REQUEST.try_with(Cell::take).ok().flatten();
        let mut request = kept.unwrap_or_default();
        request.set_target(target);
        let outcome = self.call(&mut request, response);
        let _ = GET_REQUEST.try_with(|kept| kept.set(Some(request)));
        outcome
    }

    /// Sends a request and waits for the response.
    ///
    /// # Errors
    /// Why there is no complete response; `response` then has the part that came. [`LimitExceeded::InFlight`] if too
    /// many calls are in flight. [`Stopped`] if the client has ended. [`Misuse::OwnThread`] in a callback on one of the
    /// client's own threads: the thread would wait for itself.
    pub fn call(&self, request: &mut Request, response: &mut Response) -> Result<Report, Error> {
        let cache = CALLER_CACHE.try_with(Cell::take).ok().flatten();
        let CallerCache {
            slot,
            request: mut own_request,
            response: mut own_response,
        } = cache.unwrap_or_default();
        std::mem::swap(request, &mut own_request);
        std::mem::swap(response, &mut own_response);
        let done = self.perform_in(Call::new(own_request, own_response), &slot);
        let cache = CallerCache {
            slot,
            request: std::mem::replace(request, done.request),
            response: std::mem::replace(response, done.response),
        };
        let _ = CALLER_CACHE.try_with(|kept| kept.set(Some(cache)));
        done.outcome.map(|()| done.report)
    }

    /// Sends a call with its own deadline, limits and other settings, and waits for its completion.
    ///
    /// ```
    /// # fn example(client: &courser::Shared<courser::HostClient>) -> Result<(), courser::Error> {
    /// use std::time::Duration;
    /// use courser::{Call, Request, Response};
    ///
    /// let call = Call::new(Request::get("/"), Response::new()).timeout(Duration::from_secs(5));
    /// let done = client.perform(call);
    /// done.outcome?;
    /// println!("{} bytes", done.response.body().len());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The outcome of the completion has what [`call`](Self::call) returns, and [`Misuse::Streamed`] for a streaming call.
    pub fn perform(&self, call: Call) -> Completion {
        match buffered(call) {
            Ok(call) => self.perform_in(call, &Arc::new(Slot::default())),
            Err(refused) => refused.into_completion(),
        }
    }

    fn perform_in(&self, call: Call, slot: &Arc<Slot>) -> Completion {
        let call = self.may_wait(call.awaited());
        match call.and_then(|call| self.begin(call, Arc::clone(slot), None)) {
            Ok(()) => slot.wait(),
            Err(refused) => refused.into_completion(),
        }
    }

    /// The call, if the current thread may wait for it.
    fn may_wait(&self, call: Call) -> Result<Call, Refused> {
        match self.inner.workers.may_block() {
            Ok(()) => Ok(call),
            Err(misuse) => Err(Refused::new(call, misuse)),
        }
    }

    // ---- many in flight

    /// Submits a call. Its completion will arrive on the channel. See [`completions`].
    ///
    /// # Errors
    /// Gives the call back if the client cannot take it: [`LimitExceeded::InFlight`], [`Stopped`], or
    /// [`Misuse::Streamed`].
    pub fn submit(&self, call: Call, to: &CompletionSender) -> Result<Ticket, Refused> {
        let sender = to.0.clone();
        self.submit_to(buffered(call)?, Some(Recipient { sender, number: 0 }))
    }

    /// Submits a call whose completion goes to a channel, or else to the slot of the ticket.
    fn submit_to(&self, call: Call, to: Option<Recipient>) -> Result<Ticket, Refused> {
        let slot = Arc::new(Slot::default());
        self.begin(call, Arc::clone(&slot), to)?;
        let workers = Arc::clone(&self.inner.workers);
        Ok(Ticket { slot, workers })
    }

    /// Sends a call, and returns a future of its completion. Dropping the future before it is ready cancels the call.
    /// The call is submitted before the future is first polled.
    ///
    /// ```
    /// # async fn example(client: courser::Shared<courser::HostClient>) -> Result<(), courser::Error> {
    /// use courser::{Call, Request, Response};
    ///
    /// let (mut request, mut response) = (Request::get("/"), Response::new());
    /// for _ in 0..10 {
    ///     let done = client.send(Call::new(request, response)).await;
    ///     done.outcome?;
    ///     (request, response) = (done.request, done.response); // their buffers serve the next call
    /// }
    /// # Ok(()) }
    /// ```
    pub fn send(&self, call: Call) -> Sending {
        Sending::new(buffered(call).and_then(|call| self.submit_to(call, None)))
    }

    // ---- streamed bodies

    /// Sends a request, waits for the head of the response, and returns the body for reading.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn open(
        &self,
        request: &mut Request,
        response: &mut Response,
    ) -> Result<SharedBody, Error> {
        self.inner.workers.may_block().map_err(Error::unsent)?;
        let call = Call::new(std::mem::take(request), std::mem::take(response)).awaited();
        let begun = self.submit_to(call.streaming(true), None);
        let (done_request, done_response, outcome) = match begun {
            Err(Refused { error, call }) => (call.request, call.response, Err(error)),
            Ok(ticket) => {
                let done = ticket.slot.wait();
                let outcome = done.outcome.map(|()| SharedBody::new(ticket));
                (done.request, done.response, outcome)
            }
        };
        *request = done_request;
        *response = done_response;
        outcome
    }

    /// Sends a call, and returns a future of the head of the response and the body for reading. Dropping the future
    /// before it is ready cancels the call. The call is submitted before the future is first polled.
    ///
    /// ```
    /// # async fn example(client: courser::Shared<courser::HostClient>) -> Result<(), courser::Error> {
    /// use courser::{Call, Request, Response};
    ///
    /// let (head, body) = client.send_streaming(Call::new(Request::get("/large"), Response::new())).await;
    /// head.outcome?;
    /// if let Some(mut body) = body {
    ///     while let Some(chunk) = body.chunk().await? {
    ///         println!("{} of {:?}", chunk.len(), head.response.header("content-length"));
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn send_streaming(&self, call: Call) -> Streaming {
        Streaming(Sending::new(self.submit_to(call.streaming(true), None)))
    }

    /// The number of calls in flight. A call counts, too, while its completion waits in a channel, and while its
    /// streamed body is not read to the end.
    pub fn in_flight(&self) -> usize {
        self.inner.permits.taken()
    }

    /// The results of all calls so far, over all threads. Calls that were refused are not counted.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for recorder in self.inner.workers.recorders() {
            stats.merge(&recorder.snapshot());
        }
        stats.in_flight = self.in_flight();
        stats
    }

    fn begin(
        &self,
        call: Call,
        slot: Arc<Slot>,
        channel: Option<Recipient>,
    ) -> Result<(), Refused> {
        let Inner {
            workers, permits, ..
        } = &*self.inner;
        if workers.ending.load(Ordering::SeqCst) {
            return Err(Refused::new(call, Stopped::ShutDown));
        }
        let Some(permit) = permits.take() else {
            return Err(Refused::new(call, LimitExceeded::InFlight(permits.max)));
        };
        let worker = match workers.len() {
            1 => 0,
            count => (host_hash(call.request.target()) % count as u64) as usize,
        };
        slot.set_worker(worker);
        let delivery = Delivery {
            slot,
            channel,
            tag: call.tag,
            permit: Some(permit),
            open_call: workers.count(),
        };
        let queued = QueuedCall(Some((Work::New(call), delivery)));
        workers.send(worker, Command::Begin(queued));
        Ok(())
    }

    /// Changes limits of the clients of all threads, as [`Engine::set_caps`](crate::Engine::set_caps) does. The threads share the total.
    ///
    /// # Errors
    /// [`Misuse::Unsupported`] for a total of a client of one upstream.
    pub fn set_caps(&self, caps: &Caps) -> Result<(), Error> {
        if caps.total_connections.is_some() && !C::spreads() {
            return Err(Error::unsent(Misuse::Unsupported("total_connections")));
        }
        let workers = &self.inner.workers;
        for to in 0..workers.len() {
            workers.send(to, Command::SetCaps(*caps));
        }
        Ok(())
    }

    // ---- the end

    /// Refuses new calls, waits for the calls in flight for `limit` at most, cancels the rest, and ends the threads.
    /// Returns how many calls were cancelled.
    ///
    /// In a callback on one of the client's own threads, this does not wait for the threads, and returns 0.
    pub fn shutdown(&self, limit: Duration) -> usize {
        self.inner.end(Instant::now().checked_add(limit))
    }

    /// Refuses new calls, cancels the calls in flight, and ends the threads. Returns how many calls were cancelled.
    pub fn shutdown_now(&self) -> usize {
        self.inner.end(Some(Instant::now()))
    }

    /// As [`shutdown`](Self::shutdown), without blocking: new calls are refused from now on, and the future is ready
    /// when the calls in flight have ended, or were cancelled after `limit`.
    ///
    /// ```
    /// # async fn example(client: courser::Shared<courser::HostClient>) {
    /// let cancelled = client.close(std::time::Duration::from_secs(5)).await;
    /// # }
    /// ```
    pub fn close(&self, limit: Duration) -> Closing {
        self.inner.begin_end(Instant::now().checked_add(limit));
        Closing(Arc::clone(&self.inner.workers))
    }
}

/// Starts a thread and waits until it has its client.
fn start<C: HttpClient>(
    index: usize,
    workers: &Arc<Workers>,
    queue: Receiver<Command>,
    build: impl Fn() -> Result<C, Error> + Send + 'static,
) -> Result<JoinHandle<usize>, Error> {
    let (report, reported) = mpsc::sync_channel(1);
    let (workers, ended) = (Arc::clone(workers), Arc::clone(workers));
    let thread = std::thread::Builder::new().name(format!("courser-{index}"));
    let thread = thread.spawn(move || {
        let worker = Worker::new(index, workers, queue);
        match worker.make(&build) {
            Ok(client) => {
                let _ = report.send(Ok(()));
                let cut_off = worker.run(client, build);
                ended.ends.note(cut_off);
                cut_off
            }
            Err(error) => {
                let _ = report.send(Err(error));
                0
            }
        }
    });
    let thread = thread.map_err(Error::unsent)?;
    let error = match reported.recv() {
        Ok(Ok(())) => return Ok(thread),
        Ok(Err(error)) => error,
        // The thread ended without a report: `build` has panicked.
        Err(_) => Error::unsent(Stopped::Panicked),
    };
    let _ = thread.join();
    Err(error)
}

/// More threads than any machine has use for: most systems start fewer.
const MOST_THREADS: usize = 4096;

fn buffered(call: Call) -> Result<Call, Refused> {
    match call.streaming {
        false => Ok(call),
        true => Err(Refused::new(call, Misuse::Streamed)),
    }
}

impl Inner {
    fn begin_end(&self, until: Option<Instant>) {
        self.workers.finish(until);
    }

    fn end(&self, until: Option<Instant>) -> usize {
        self.begin_end(until);
        if self.workers.is_own_thread() {
            return 0;
        }
        // A second caller waits here until the threads have ended.
        let mut threads = lock(&self.threads);
        let ended = threads.drain(..).map(|thread| thread.join().unwrap_or(0));
        ended.sum()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end(Some(Instant::now()));
    }
}

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            client: PhantomData,
        }
    }
}

impl<C> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("threads", &self.inner.workers.len())
            .field("in_flight", &self.inner.permits.taken())
            .finish_non_exhaustive()
    }
}

/// A call that a [`Shared`] client did not take, and why.
///
/// ```
/// # fn example(client: &courser::Shared<courser::HostClient>, call: courser::Call) {
/// let (sender, _arrived) = courser::shared::completions();
/// if let Err(refused) = client.submit(call, &sender) {
///     println!("{}", refused.error);
///     let again = refused.call;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Refused {
    /// Why the client did not take the call.
    pub error: Error,
    /// The call, with its buffers.
    pub call: Call,
}

impl Refused {
    fn new(call: Call, kind: impl Into<ErrorKind>) -> Self {
        let error = Error::unsent(kind);
        Self { error, call }
    }

    fn into_completion(self) -> Completion {
        Completion::unbegun(self.call, self.error)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was not taken")
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// What a blocking caller needs for a call. It is kept for the next call, so that calls allocate nothing.
#[derive(Default)]
struct CallerCache {
    slot: Arc<Slot>,
    /// The caller's variables have these while the client has the caller's buffers.
    request: Request,
    response: Response,
}

thread_local! {
    static CALLER_CACHE: Cell<Option<CallerCache>> = const { Cell::new(None) };
    /// The request of `get`, kept for its buffers.
    static GET_REQUEST: Cell<Option<Request>> = const { Cell::new(None) };
}
