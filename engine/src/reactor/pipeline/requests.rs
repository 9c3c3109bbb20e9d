//! The requests of one connection that have no answer yet: their bytes, and the order of their answers.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::{ErrorKind, PeerFault};
use crate::policy::later;
use crate::proto::{Exchange, Request};
use crate::reactor::{CallKey, Timestamps};
use crate::time::Time;

/// The requests of a connection that have no answer yet.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Pipeline {
    /// Encoded requests. The bytes before `out_at` were sent.
    pub(super) out: Vec<u8>,
    pub(super) out_at: usize,
    /// Bytes sent since the connection began.
    pub(super) written: u64,
    /// Bytes that cannot change any more: those that were sent, and behind them those that TLS has encrypted already.
    pub(super) committed: u64,
    /// The request in front. Set by [`set_front`](Self::set_front).
    pub(super) front: ByteRange,
    /// The request in front was sent whole before the answer to the request before it had come.
    pub(super) was_front_behind: bool,
    /// The requests behind the front, in the order of their answers.
    pub(super) queued: VecDeque<QueuedRequest>,
    /// No byte from this position on may be sent before more answers have come: here a request that goes alone begins, or
    /// has ended. `None` if no unanswered request goes alone.
    held_from: Option<u64>,
    /// How many of the queued requests were sent completely.
    pub(super) sent_whole: usize,
    /// The number of bytes in `out` that belong to withdrawn requests.
    pub(super) withdrawn: usize,
    /// If requests are withdrawn: no call whose request is unsent has a lower number. A search can start here.
    pub(super) unsent_from: Option<u32>,
    /// The number of the next queued call. Numbers may wrap: only numbers of calls that are on the connection at the
    /// same time are compared.
    pub(super) next_number: u32,
    /// The number of answers since the connection began.
    pub(super) answered: u64,
    /// The number of answers before the connection was last idle.
    pub(super) answered_before: u64,
    /// The socket did not take all bytes of the last write, so sending goes on with the next event.
    pub(super) short_write: bool,
    /// The last answer said that the server closes the connection: the server should not handle the queued requests.
    pub(super) closed_by_answer: bool,
    /// The connection is in `Pipelining::unflushed`, and its requests are sent at this time at the latest.
    pub(in crate::reactor) flush_at: Option<Time>,
}

/// The position of a request in all the bytes that its connection sends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByteRange {
    pub(super) start: u64,
    pub(super) end: u64,
    /// While this request has no answer, no byte of another request may be on the way.
    pub(super) alone: bool,
}

/// A request behind the front.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) owner: ResponseOwner,
    /// Higher than the numbers of all requests before this one.
    pub(super) number: u32,
    pub(super) range: ByteRange,
    /// When the request was sent whole. Its call gets this when it comes to the front, or leaves: until then, many calls
    /// need not be touched for each write.
    pub(super) sent_at: Option<Time>,
}

impl ByteRange {
    /// Notes in the timestamps of a call when this request of the call was sent whole, if it was.
    #[inline]
    pub(super) fn note_sent(self, timestamps: &mut Timestamps, at: Option<Time>) {
        timestamps.sent = at;
        if at.is_some() {
            timestamps.bytes_out += self.end - self.start;
        }
    }
}

/// What the answer to a request is for.
#[derive(Debug)]
pub(super) enum ResponseOwner {
    Call(CallKey),
    /// The call has given up. This exchange reads the answer, which is dropped.
    Abandoned(Box<Exchange>),
    /// The call has given up before a byte of the request was committed. Such requests are dropped before the connection
    /// sends or reads.
    Withdrawn,
}

impl Pipeline {
    /// Adds a request behind all others. A request that goes `alone` is sent once all requests before it are answered,
    /// and the requests behind it are sent once it is answered itself.
    #[inline(always)] // on the path of every call
    pub(super) fn push(&mut self, request: &Request, alone: bool) -> ByteRange {
        if self.out_at > self.out.len() / 2 {
            // Otherwise sent bytes would pile up if the socket never takes all bytes.
            self.out.drain(..self.out_at);
            self.out_at = 0;
        }
        let start = self.written + (self.out.len() - self.out_at) as u64;
        let [head, body] = request.in_memory();
        self.out.extend_from_slice(head);
        if !body.is_empty() {
            self.out.extend_from_slice(body);
        }
        let end = start + (head.len() + body.len()) as u64;
        if alone {
            self.held_from.get_or_insert(start);
        }
        ByteRange { start, end, alone }
    }

    /// Lets the requests gather until they are sent together, for this time at most. False if they do so already.
    #[inline]
    pub(super) fn gathers(&mut self, now: Time, most: Duration) -> bool {
        let begins = self.flush_at.is_none();
        self.flush_at.get_or_insert_with(|| later(now, most));
        begins
    }

    /// The answer to this request is the next one.
    #[inline]
    pub(super) fn set_front(&mut self, front: ByteRange) {
        self.front = front;
        if self.held_from.is_some_and(|from| from <= front.start) {
            self.compute_hold();
        }
    }

    /// Finds the position from which on requests wait for answers.
    #[cold]
    fn compute_hold(&mut self) {
        let is_alone = |queued: &&QueuedRequest| {
            queued.range.alone && !matches!(queued.owner, ResponseOwner::Withdrawn)
        };
        self.held_from = match self.front.alone {
            true => Some(self.front.end),
            false => {
                let first = self.queued.iter().find(is_alone);
                first.map(|queued| queued.range.start)
            }
        };
    }

    /// The next bytes that may be sent.
    #[inline]
    pub(super) fn sendable(&self) -> &[u8] {
        let rest = &self.out[self.out_at..];
        let most = |from: u64| from.saturating_sub(self.written) as usize;
        &rest[..rest.len().min(self.held_from.map_or(usize::MAX, most))]
    }

    pub(super) fn unsent(&self) -> usize {
        self.out.len() - self.out_at - self.withdrawn
    }

    pub(in crate::reactor) fn has_served(&self) -> bool {
        self.answered > 0
    }

    /// Whether the request to be sent next goes alone, on a connection that has served before.
    pub(super) fn is_next_alone(&self) -> bool {
        self.front.alone && self.answered > 0 && self.is_front_unsent()
    }

    /// Whether unsent bytes wait for the socket, and not for other requests to join them.
    pub(in crate::reactor) fn is_stuck(&self) -> bool {
        self.unsent() > 0 && (self.short_write || self.flush_at.is_none())
    }

    /// Whether nothing has been sent of the request in front.
    pub(in crate::reactor) fn is_front_unsent(&self) -> bool {
        !self.is_begun(self.front)
    }

    pub(super) fn is_begun(&self, range: ByteRange) -> bool {
        range.start < self.written
    }

    /// Whether it is too late to withdraw a request.
    pub(super) fn is_committed(&self, range: ByteRange) -> bool {
        range.start < self.committed
    }

    /// The position of a call in the queue.
    pub(super) fn position(&self, call: CallKey, number: u32) -> Option<usize> {
        let first = self.queued.front()?.number;
        let before =
            |other: &QueuedRequest| other.number.wrapping_sub(first) < number.wrapping_sub(first);
        let at = self.queued.partition_point(before);
        matches!(self.queued.get(at)?.owner, ResponseOwner::Call(owner) if owner == call)
            .then_some(at)
    }

    /// Counts the bytes of a withdrawn request, which will not be sent. The bytes stay in `out` until more than half of
    /// the unsent bytes are withdrawn, or until the connection sends or reads. So the cost for each call is the same
    /// when many calls give up together.
    pub(super) fn withdraw(&mut self, range: ByteRange) {
        self.withdrawn += (range.end - range.start) as usize;
        if self.withdrawn > self.unsent() {
            self.drop_withdrawn();
        } else if range.alone
            && let Some(from) = self.held_from
            && (range.start..=range.end).contains(&from)
        {
            self.compute_hold();
        }
    }

    /// Drops the withdrawn requests and their bytes.
    pub(super) fn drop_withdrawn(&mut self) {
        if self.withdrawn == 0 {
            return;
        }
        let (out_at, written) = (self.out_at, self.written);
        let mut end = out_at;
        let mut close_up = |range: &mut ByteRange| {
            let from = range.start.max(written);
            let at = out_at + (from - written) as usize;
            let length = range.end.saturating_sub(from) as usize;
            self.out.copy_within(at..at + length, end);
            let gap = if length > 0 { at - end } else { 0 };
            // Sent bytes have no gap before them: nothing before them was withdrawn.
            range.start -= gap as u64;
            range.end -= gap as u64;
            end += length;
        };
        close_up(&mut self.front);
        let sent = self.sent_whole.min(self.queued.len());
        let mut kept = sent;
        for at in sent..self.queued.len() {
            if matches!(self.queued[at].owner, ResponseOwner::Withdrawn) {
                continue;
            }
            close_up(&mut self.queued[at].range);
            self.queued.swap(kept, at);
            kept += 1;
        }
        self.queued.truncate(kept);
        self.out.truncate(end);
        self.withdrawn = 0;
        self.unsent_from = None;
        self.compute_hold();
    }

    /// Whether an error on the connection shows that the server cannot handle several requests at a time.
    pub(in crate::reactor) fn is_broken_by(&self, kind: &ErrorKind) -> bool {
        let sent = self.queued.front().is_some_and(|b| self.is_begun(b.range));
        // A connection that was idle may have been closed by the server for that reason alone.
        let stale = self.answered > 0 && self.answered == self.answered_before;
        let early = sent && self.answered <= 1 && !stale;
        match kind {
            ErrorKind::Peer(PeerFault::Unsolicited) => true,
            ErrorKind::Peer(PeerFault::Empty | PeerFault::Truncated) | ErrorKind::Io(_) => early,
            ErrorKind::Peer(PeerFault::BadContentCoding) => false,
            ErrorKind::Peer(_) => sent,
            // A server that takes the first request of a packet, and forgets those behind it.
            ErrorKind::Timeout(_) => early && self.answered == 1,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Defaults;

    fn request(length: usize) -> Request {
        let mut request = Request::post("/", vec![b'x'; length]);
        let encoded = request.encode(&Defaults::new("h", None));
        assert!(encoded.is_ok());
        request
    }

    #[test]
    fn sent_bytes_do_not_pile_up() {
        let (request, mut pipeline) = (request(1000), Pipeline::default());
        let mut last = pipeline.push(&request, false);
        for _ in 0..1000 {
            // The socket never takes all bytes.
            let n = pipeline.unsent() - 100;
            pipeline.out_at += n;
            pipeline.written += n as u64;
            let range = pipeline.push(&request, false);
            assert_eq!(range.start, last.end);
            assert!(pipeline.out.len() < 4000 && !pipeline.is_begun(range));
            last = range;
        }
    }

    /// A pipeline of requests of these lengths, of which `written` bytes were sent; and the unsent bytes.
    fn pipeline(lengths: &[usize], written: usize) -> (Pipeline, Vec<u8>) {
        let mut pipeline = Pipeline::default();
        let mut requests = lengths.iter().map(|&length| request(length));
        pipeline.front = pipeline.push(&requests.next().expect("a front"), false);
        for (number, request) in (u32::MAX - 1..=u32::MAX).chain(0..).zip(requests) {
            let owner = ResponseOwner::Call(CallKey::first_of(number));
            let range = pipeline.push(&request, false);
            pipeline.queued.push_back(QueuedRequest {
                owner,
                number,
                range,
                sent_at: None,
            });
        }
        pipeline.out_at = written;
        pipeline.written = written as u64;
        pipeline.committed = pipeline.written;
        let whole = |queued: &&QueuedRequest| queued.range.end <= pipeline.written;
        pipeline.sent_whole = pipeline.queued.iter().take_while(whole).count();
        let unsent = pipeline.out[pipeline.out_at..].to_vec();
        (pipeline, unsent)
    }

    fn give_up(pipeline: &mut Pipeline, number: u32) {
        let call = CallKey::first_of(number);
        let at = pipeline
            .position(call, number)
            .expect("the request is queued");
        pipeline.queued[at].owner = ResponseOwner::Withdrawn;
        pipeline.withdraw(pipeline.queued[at].range);
    }

    #[test]
    fn queued_requests_are_found_by_their_numbers_even_when_numbers_wrap() {
        let (mut pipeline, _) = pipeline(&[0, 10, 20, 30, 40], 0);
        for round in 0..4 {
            let numbers: Vec<u32> = pipeline.queued.iter().map(|queued| queued.number).collect();
            for (at, number) in numbers.into_iter().enumerate() {
                let call = CallKey::first_of(number);
                assert_eq!(pipeline.position(call, number), Some(at), "{round}");
                assert_eq!(pipeline.position(CallKey::first_of(77), number), None);
            }
            let gone = pipeline.queued.pop_front().expect("another request");
            let call = CallKey::first_of(gone.number);
            assert_eq!(pipeline.position(call, gone.number), None);
        }
    }

    #[test]
    fn withdrawn_requests_are_dropped_without_gaps() {
        let lengths = [0, 500, 10, 300, 20, 1000];
        let part = |pipeline: &Pipeline, range: ByteRange| {
            let from =
                pipeline.out_at + (range.start.max(pipeline.written) - pipeline.written) as usize;
            let to = pipeline.out_at + (range.end - pipeline.written) as usize;
            pipeline.out[from..to].to_vec()
        };
        // Sent: nothing, a part of the front, the front, the front and a part of the next request.
        for written in [
            0,
            10,
            request(0).in_memory().map(<[u8]>::len).iter().sum(),
            200,
        ] {
            for given_up in 0..1 << 5 {
                let (mut pipeline, unsent) = pipeline(&lengths, written);
                let wanted = |queued: &QueuedRequest| {
                    let at = queued.number.wrapping_add(2);
                    given_up & (1 << at) == 0 || pipeline.is_begun(queued.range)
                };
                let front = pipeline.front;
                let mut expected = match front.end > pipeline.written {
                    true => part(&pipeline, front),
                    false => Vec::new(),
                };
                let (mut stay, mut go) = (Vec::new(), Vec::new());
                for queued in &pipeline.queued {
                    if wanted(queued) {
                        stay.push((queued.number, part(&pipeline, queued.range)));
                        expected.extend(part(&pipeline, queued.range));
                    } else {
                        go.push(queued.number);
                    }
                }
                assert!(expected.len() <= unsent.len());
                for &number in &go {
                    give_up(&mut pipeline, number);
                    assert!(pipeline.withdrawn <= pipeline.unsent());
                }
                assert_eq!(pipeline.unsent(), expected.len(), "{written} {given_up:b}");
                pipeline.drop_withdrawn();
                assert_eq!(pipeline.out[pipeline.out_at..], expected);
                let left = pipeline.queued.iter();
                let left: Vec<_> = left.map(|b| (b.number, part(&pipeline, b.range))).collect();
                assert_eq!(left, stay, "{written} {given_up:b}");
                // The next request is behind the others.
                let next = pipeline.push(&request(5), false);
                assert_eq!(next.start, pipeline.written + expected.len() as u64);
            }
        }
    }
}
