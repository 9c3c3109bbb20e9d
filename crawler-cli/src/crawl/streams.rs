//! The bodies that are being read as they come, each a little at a time.

use std::collections::{HashMap, VecDeque};

use courser::{CallId, Error, Read};

use super::calls::Calls;
use super::hosts::HostId;
use super::stats::{Class, Exchange};
use super::work::{Body, RequestId};

/// The bodies of a crawl that are not at their end.
#[derive(Debug)]
pub(super) struct Streams {
    all: HashMap<CallId, Stream>,
    /// Those that have something to read.
    readable: VecDeque<CallId>,
    buffer: Vec<u8>,
}

/// A body, and the request that it answers.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) host: HostId,
    pub(super) id: RequestId,
    pub(super) status: u16,
    /// Up to the head.
    pub(super) exchange: Exchange,
    /// Bytes of the body, which are counted as they come.
    came: u64,
    /// Why the body is not whole.
    pub(super) failure: Option<Class>,
    pub(super) wanted: Body,
    /// What may still be read of it for the sake of the connection alone.
    left: usize,
    is_queued: bool,
}

/// What was read of a body.
pub(super) enum Progress<'b> {
    /// These bytes, which are wanted.
    Data(&'b [u8]),
    /// Bytes that nobody wants.
    Skipped,
    /// Nothing for now.
    Pending,
    /// It is at its end.
    End,
    /// It failed.
    Failed(Error),
}

impl Stream {
    pub(super) fn new(
        host: HostId,
        id: RequestId,
        status: u16,
        exchange: Exchange,
        wanted: Body,
    ) -> Self {
        Self {
            host,
            id,
            status,
            exchange,
            came: 0,
            failure: None,
            wanted,
            left: MOST_UNWANTED,
            is_queued: true,
        }
    }

    /// The exchange without the bytes that were counted as they came.
    pub(super) fn rest(&self) -> Exchange {
        Exchange {
            bytes: self.exchange.bytes.saturating_sub(self.came),
            ..self.exchange
        }
    }
}

impl Streams {
    pub(super) fn new() -> Self {
        Self {
            all: HashMap::new(),
            readable: VecDeque::new(),
            buffer: Vec::new(),
        }
    }

    /// Whether no body is known to have something to read.
    pub(super) fn is_idle(&self) -> bool {
        self.readable.is_empty()
    }

    pub(super) fn add(&mut self, call: CallId, stream: Stream) {
        self.all.insert(call, stream);
        self.readable.push_back(call);
    }

    /// Asks the client which bodies can be read. Returns how many there are.
    pub(super) fn poll(&mut self, calls: &mut Calls) -> usize {
        while let Some(call) = calls.readable_body() {
            if let Some(stream) = self.all.get_mut(&call)
                && !stream.is_queued
            {
                stream.is_queued = true;
                self.readable.push_back(call);
            }
        }
        self.readable.len()
    }

    /// The body whose turn it is.
    pub(super) fn next(&mut self) -> Option<CallId> {
        self.readable.pop_front()
    }

    /// The body may have more to read, in its next turn.
    pub(super) fn put_back(&mut self, call: CallId) {
        self.readable.push_back(call);
    }

    /// The body is over.
    pub(super) fn remove(&mut self, call: CallId) -> Option<Stream> {
        self.all.remove(&call)
    }

    /// Reads from a body once. Returns how many bytes came, too.
    pub(super) fn read(
        &mut self,
        call: CallId,
        calls: &mut Calls,
    ) -> Option<(&mut Stream, u64, Progress<'_>)> {
        self.buffer.resize(BUFFER, 0);
        let stream = self.all.get_mut(&call)?;
        let before = stream.came;
        let progress = match calls.read_body(call, &mut self.buffer) {
            Ok(Read::Data(n)) => {
                stream.came += n as u64;
                if stream.wanted == Body::Wanted {
                    Progress::Data(&self.buffer[..n])
                } else if n <= stream.left {
                    stream.left -= n;
                    Progress::Skipped
                } else {
                    calls.cancel(call);
                    Progress::End
                }
            }
            Ok(Read::Pending) => {
                stream.is_queued = false;
                Progress::Pending
            }
            Ok(Read::End { report, .. }) => {
                stream.exchange.bytes = report.bytes_in();
                Progress::End
            }
            Err(error) => {
                stream.failure = Some(Class::of_error(&error));
                Progress::Failed(error)
            }
        };
        let came = stream.came - before;
        Some((stream, came, progress))
    }
}

const BUFFER: usize = 64 * 1024;
/// Longest body, such as an error's, that is read to its end because that is cheaper than another connection.
const MOST_UNWANTED: usize = 64 * 1024;
