//! The response bodies that are read while they arrive, in turns of a few buffers each.

use std::collections::{HashMap, VecDeque};

use courser::net::Net;
use courser::{BodyRead, CallId, Error};

use super::calls::Calls;
use super::hosts::HostId;
use super::stats::{Class, Exchange};
use super::work::{Body, RequestId};

/// The bodies that have not ended.
#[derive(Debug, Default)]
pub(super) struct Streams {
    all: HashMap<CallId, Stream>,
    /// Bodies with something to read.
    readable: VecDeque<CallId>,
    buffer: Vec<u8>,
}

/// A body and its request.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) host: HostId,
    pub(super) id: RequestId,
    pub(super) status: u16,
    /// The exchange up to the head.
    pub(super) exchange: Exchange,
    /// Bytes of the body received so far; they are counted as they arrive.
    received: u64,
    /// Why the body is incomplete.
    pub(super) failure: Option<Class>,
    pub(super) wanted: Body,
    /// How many bytes may still be read only to keep the connection.
    left: usize,
    is_queued: bool,
}

/// The result of one read.
pub(super) enum Progress<'b> {
    /// Bytes that the work wants.
    Data(&'b [u8]),
    /// Bytes that the work does not want.
    Skipped,
    /// Nothing can be read for now.
    Pending,
    /// The body has ended.
    End,
    /// The body is incomplete.
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
            received: 0,
            failure: None,
            wanted,
            left: MOST_UNWANTED,
            is_queued: true,
        }
    }

    /// The exchange without the bytes that were already counted.
    pub(super) fn rest(&self) -> Exchange {
        Exchange {
            bytes: self.exchange.bytes.saturating_sub(self.received),
            ..self.exchange
        }
    }
}

impl Streams {
    /// Whether no body is known to be readable.
    pub(super) fn is_idle(&self) -> bool {
        self.readable.is_empty()
    }

    pub(super) fn add(&mut self, call: CallId, stream: Stream) {
        self.all.insert(call, stream);
        self.readable.push_back(call);
    }

    /// The bodies that are wanted.
    pub(super) fn wanted(&self) -> Vec<(CallId, HostId, RequestId)> {
        let wanted = self.all.iter().filter(|(_, it)| it.wanted == Body::Wanted);
        wanted.map(|(call, it)| (*call, it.host, it.id)).collect()
    }

    /// Asks the client for readable bodies. Returns their number.
    pub(super) fn poll<N: Net>(&mut self, calls: &mut Calls<N>) -> usize {
        while let Some(call) = calls.client.readable_body() {
            if let Some(stream) = self.all.get_mut(&call)
                && !stream.is_queued
            {
                stream.is_queued = true;
                self.readable.push_back(call);
            }
        }
        self.readable.len()
    }

    /// The next readable body.
    pub(super) fn next(&mut self) -> Option<CallId> {
        self.readable.pop_front()
    }

    /// Puts a body at the end of the queue: it may have more to read.
    pub(super) fn put_back(&mut self, call: CallId) {
        self.readable.push_back(call);
    }

    /// Removes a body that has ended.
    pub(super) fn remove(&mut self, call: CallId) -> Option<Stream> {
        self.all.remove(&call)
    }

    /// Reads once from a body. The number is that of the bytes received.
    pub(super) fn read<N: Net>(
        &mut self,
        call: CallId,
        calls: &mut Calls<N>,
    ) -> Option<(&mut Stream, u64, Progress<'_>)> {
        self.buffer.resize(BUFFER, 0);
        let stream = self.all.get_mut(&call)?;
        let before = stream.received;
        let progress = match calls.client.read_body(call, &mut self.buffer) {
            Ok(BodyRead::Data(n)) => {
                stream.received += n as u64;
                if stream.wanted == Body::Wanted {
                    Progress::Data(&self.buffer[..n])
                } else if n <= stream.left {
                    stream.left -= n;
                    Progress::Skipped
                } else {
                    calls.client.cancel(call);
                    Progress::End
                }
            }
            Ok(BodyRead::Pending) => {
                stream.is_queued = false;
                Progress::Pending
            }
            Ok(BodyRead::End { report, .. }) => {
                stream.exchange.bytes = report.bytes_in();
                Progress::End
            }
            Err(error) => {
                stream.failure = Some(Class::of_error(&error));
                Progress::Failed(error)
            }
        };
        let received = stream.received - before;
        Some((stream, received, progress))
    }
}

const BUFFER: usize = 64 * 1024;
/// The longest unwanted body, in bytes, that is read to its end: that is cheaper than another connection.
const MOST_UNWANTED: usize = 64 * 1024;
