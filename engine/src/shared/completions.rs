//! A channel on which the completions of calls arrive.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::slot::Permit;
use crate::client::Completion;

/// A channel for [`Shared::submit`](crate::Shared::submit). The channel never holds more completions than calls may be
/// [in flight](crate::SharedConfig::max_in_flight), because a call counts as in flight until its completion is taken.
pub fn completions() -> (CompletionSender, Completions) {
    let (sender, receiver) = unbounded();
    (CompletionSender(sender), Completions(receiver))
}

/// The end of a channel to which a call sends its completion; see [`completions`].
#[derive(Clone, Debug)]
pub struct CompletionSender(pub(super) Sender<Delivered>);

/// The end of a channel at which completions arrive, in the order in which the calls end; see [`completions`]. Clones
/// take from the same channel.
///
/// ```
/// use courser::{Call, HostClient, HostConfig, Request, Response, Shared, SharedConfig};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let upstream: courser::Upstream = server.local_addr()?.to_string().parse()?;
/// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
/// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
/// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
///
/// let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
/// let client = Shared::spawn(SharedConfig::default(), build)?;
/// let (sender, arrived) = courser::shared::completions();
/// for number in 0..10 {
///     client.submit(Call::new(Request::get("/"), Response::new()).tag(number), &sender);
/// }
/// drop(sender);
/// let mut tags: Vec<u64> = arrived.map(|done| done.tag).collect();
/// tags.sort();
/// assert_eq!(tags, (0..10).collect::<Vec<_>>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Completions(Receiver<Delivered>);

impl Completions {
    /// The next completion. Blocks until there is one, for `timeout` at most (`None`: without limit). Returns `None`
    /// when the timeout has passed, or when no completion can arrive any more: all senders are dropped and all calls
    /// have ended.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Completion> {
        let delivered = match timeout {
            None => self.0.recv().ok()?,
            Some(timeout) => self.0.recv_timeout(timeout).ok()?,
        };
        Some(delivered.completion)
    }
}

impl Iterator for Completions {
    type Item = Completion;

    /// As [`wait`](Completions::wait) without limit.
    fn next(&mut self) -> Option<Completion> {
        self.wait(None)
    }
}

/// The channel that gets the completion of a call, and the number of the completion there.
#[derive(Debug)]
pub(super) struct Recipient {
    pub(super) sender: Sender<Delivered>,
    /// The number of the call within its batch; 0 outside a batch.
    pub(super) number: usize,
}

/// A completion in a channel. The permit of the call is given back when the completion is received. So completions that
/// no caller receives count against the limit of calls in flight, and cannot fill the memory.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) number: usize,
    pub(super) completion: Completion,
    #[expect(dead_code, reason = "held until the completion is received")]
    pub(super) permit: Permit,
}
