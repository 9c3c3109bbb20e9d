//! A shared client without a thread of its own: the caller's executor drives the client.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{self, Context, Poll};
use std::time::Instant;

use super::thread::{Worker, Workers};
use super::{Shared, SharedConfig};
use crate::client::HttpClient;
use crate::error::{Error, Misuse};
use crate::net::Waker;
use crate::net::sleep::Sleep;
use crate::sync::{Mutex, lock};

impl<C: HttpClient> Shared<C> {
    /// A shared client without a thread of its own. The client works only while its [`Driver`] runs: on the caller's
    /// executor, as a task of its own. A call that is awaited on the same thread then costs no change of threads.
    ///
    /// Calls are awaited as always ([`send`](Self::send), [`send_streaming`](Self::send_streaming)), or have their
    /// completions sent to a channel. What would block fails with [`Misuse::Blocking`], and
    /// [`shutdown`](Self::shutdown) returns at once; [`close`](Self::close) is awaited. If the driver is dropped, all
    /// calls fail, those in flight and later ones.
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use courser::{Call, HostClient, HostConfig, Request, Response, Shared, SharedConfig};
    /// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let upstream: courser::Upstream = server.local_addr()?.to_string().parse()?;
    /// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
    /// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
    /// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
    ///
    /// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// runtime.block_on(tokio::task::LocalSet::new().run_until(async {
    ///     let client = HostClient::new(upstream, HostConfig::default())?;
    ///     let (client, driver) = Shared::driven(SharedConfig::default(), client)?;
    ///     let driver = tokio::task::spawn_local(driver.run_on_tokio());
    ///
    ///     let done = client.send(Call::new(Request::get("/"), Response::new())).await;
    ///     assert_eq!(done.response.body(), b"hi");
    ///
    ///     drop(client); // the last handle: the driver ends
    ///     driver.await??;
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// }))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Misuse::Unsupported`] if the configuration asks for several threads, or that of the client for
    /// [`busy_poll`](crate::net::SocketOptions::busy_poll); the system's error if no descriptor is left.
    pub fn driven(config: SharedConfig, mut client: C) -> Result<(Self, Driver<C>), Error> {
        if config.threads.get() > 1 {
            let misuse = Misuse::Unsupported("several threads, because a task drives it");
            return Err(Error::unsent(misuse));
        }
        let (workers, mut queues) = Workers::new(1, true);
        let shared = Self::of(&workers, config.max_in_flight);
        let queue = queues.remove(0);
        let worker = Worker::new(0, Arc::clone(&workers), queue);
        worker.prepare(&mut client).map_err(Error::unsent)?;
        let descriptor = client.descriptor()?;
        let task = Arc::new(Task::default());
        let woken = Arc::clone(&task);
        workers.set_waker(0, Waker::new(move || woken.wake()));
        let driver = Driver {
            worker,
            client,
            task,
            descriptor,
            ended: false,
        };
        Ok((shared, driver))
    }
}

/// Drives a [`Shared`] client that has no thread of its own. Made by [`Shared::driven`], which has an example with
/// tokio.
///
/// On another executor, the loop is three lines: take a [`turn`](Self::turn), then wait until the descriptor is
/// readable ([`AsFd`]), until a call has been given to the client ([`poll_given`](Self::poll_given)), or until a time.
///
/// ```
/// use std::future::poll_fn;
/// use std::os::fd::AsFd as _;
/// use async_io::{Async, Timer};
/// use courser::shared::{Driver, Turn};
/// use courser::HttpClient;
/// use futures_lite::FutureExt as _;
///
/// async fn drive<C: HttpClient>(mut driver: Driver<C>) -> std::io::Result<()> {
///     let readable = Async::new_nonblocking(driver.as_fd().try_clone_to_owned()?)?;
///     loop {
///         let until = match driver.turn()? {
///             Turn::Ended => return Ok(()),
///             Turn::Again => Some(std::time::Instant::now()),
///             Turn::Wait(until) => until,
///         };
///         let timer = until.map_or_else(Timer::never, Timer::at);
///         let given = poll_fn(|context| driver.poll_given(context));
///         let timer = async { _ = timer.await; Ok(()) };
///         let given = async { given.await; Ok(()) };
///         readable.readable().or(given).or(timer).await?;
///     }
/// }
/// # use courser::{Call, HostClient, HostConfig, Request, Response, Shared, SharedConfig};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let upstream: courser::Upstream = server.local_addr()?.to_string().parse()?;
/// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
/// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
/// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
/// # let client = HostClient::new(upstream, HostConfig::default())?;
/// # let (client, driver) = Shared::driven(SharedConfig::default(), client)?;
/// # let calls = async move {
/// #     for _ in 0..3 {
/// #         let done = client.send(Call::new(Request::get("/"), Response::new())).await;
/// #         assert_eq!(done.response.body(), b"hi");
/// #     }
/// # };
/// # let (driven, ()) = futures_lite::future::block_on(futures_lite::future::zip(drive(driver), calls));
/// # driven?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "calls make no progress without it"]
pub struct Driver<C: HttpClient> {
    worker: Worker,
    client: C,
    task: Arc<Task>,
    descriptor: OwnedFd,
    ended: bool,
}

/// What a [`Driver`] waits for after a [turn](Driver::turn).
///
/// ```
/// use courser::shared::Turn;
/// let turn = Turn::Wait(None);
/// assert_ne!(turn, Turn::Ended);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Turn {
    /// There is more to do: take the next turn soon. The descriptor may not become readable before.
    Again,
    /// Take the next turn when the descriptor is readable, when a call has been given to the client, or at this time.
    Wait(Option<Instant>),
    /// The client has ended, and the driver may be dropped.
    Ended,
}

impl<C: HttpClient> Driver<C> {
    /// Does all that can be done now, without waiting: begins calls, sends, receives, and completes calls.
    ///
    /// # Errors
    /// The system's, when the client cannot wait for events at all. All calls have failed, and the driver has ended.
    pub fn turn(&mut self) -> io::Result<Turn> {
        if self.ended {
            return Ok(Turn::Ended);
        }
        self.task.sleep.end();
        let turned = self.worker.turn(&mut self.client);
        if let Err(error) = &turned {
            self.worker.end_failed(Some(error));
        }
        self.ended = matches!(turned, Ok(Turn::Ended) | Err(_));
        turned
    }

    /// Ready if a call has been given to the client since the last [turn](Self::turn), or something else asks for
    /// another turn: a call was cancelled, a part of a body was read, the client is to end. Otherwise wakes the task when
    /// that happens.
    pub fn poll_given(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.task.register(context.waker());
        match self.task.sleep.begin() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl<C: HttpClient> AsFd for Driver<C> {
    /// A descriptor that is readable when there is something for a [turn](Driver::turn). It must not be read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl<C: HttpClient> fmt::Debug for Driver<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl<C: HttpClient> Drop for Driver<C> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if std::thread::panicking() {
            // Perhaps a callback has panicked: then the state of the client is unknown.
            self.worker.end_failed(None);
        } else {
            self.worker.end(&mut self.client);
        }
    }
}

/// The task that drives the client.
#[derive(Debug, Default)]
struct Task {
    /// Whether the task waits.
    sleep: Sleep,
    waker: Mutex<Option<task::Waker>>,
}

impl Task {
    fn wake(&self) {
        if self.sleep.interrupt() {
            let waker = lock(&self.waker).clone();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn register(&self, task: &task::Waker) {
        let mut waker = lock(&self.waker);
        if waker.as_ref().is_some_and(|known| known.will_wake(task)) {
            return;
        }
        let before = waker.replace(task.clone());
        // The drop of a waker runs foreign code, which must not run under the lock.
        drop(waker);
        drop(before);
    }
}

#[cfg(feature = "tokio")]
impl<C: HttpClient> Driver<C> {
    /// Drives the client on tokio until the client ends.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    ///
    /// # Panics
    /// If the task does not run on tokio, or if the runtime has no I/O or no time (`enable_all`).
    pub async fn run_on_tokio(mut self) -> io::Result<()> {
        use std::future::{Future as _, poll_fn};
        use std::pin::pin;
        use std::time::Duration;
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;
        use tokio::time::sleep;

        let descriptor = self.descriptor.try_clone()?;
        #[expect(
            deprecated,
            reason = "the successor is unsafe for the sake of types whose descriptor may change, unlike `OwnedFd`"
        )]
        let descriptor = AsyncFd::with_interest(descriptor, Interest::READABLE)?;
        // Fires at the time for which the driver waits, or earlier. It is set anew only when it must fire earlier, or
        // has fired: most limits are those of calls that end long before.
        let mut timer = pin!(sleep(Duration::ZERO));
        // Takes one turn each time. Then other tasks may run.
        poll_fn(|context| {
            // Before the turn: what becomes readable later sets the readiness again.
            let readable = match descriptor.poll_read_ready(context) {
                Poll::Ready(guard) => Some(guard?),
                Poll::Pending => None,
            };
            let until = match self.turn()? {
                Turn::Ended => return Poll::Ready(Ok(())),
                Turn::Again => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::Wait(until) => until,
            };
            if let Some(mut guard) = readable {
                guard.clear_ready();
            }
            let is_due = descriptor.poll_read_ready(context).is_ready()
                || self.poll_given(context).is_ready()
                || until.is_some_and(|until| {
                    if until < timer.deadline().into_std() || timer.is_elapsed() {
                        timer.as_mut().reset(until.into());
                    }
                    timer.as_mut().poll(context).is_ready()
                });
            if is_due {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }
}
