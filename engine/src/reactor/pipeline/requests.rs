//! The requests of one connection that are not answered: their bytes, and the order of their answers.

use std::collections::VecDeque;

use crate::error::{ErrorKind, PeerFault};
use crate::proto::{Exchange, Request};
use crate::reactor::CallKey;
use crate::time::Time;

/// The requests of a connection that are not answered.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Pipeline {
    /// Encoded requests, sent up to `out_at`.
    pub(super) out: Vec<u8>,
    pub(super) out_at: usize,
    /// Bytes sent since the connection began.
    pub(super) written: u64,
    /// The request in front.
    pub(super) front: ByteRange,
    pub(super) behind: VecDeque<QueuedRequest>,
    /// How many of those behind have been sent whole.
    pub(super) sent_whole: usize,
    /// Unsent bytes of requests that will not be sent.
    pub(super) withdrawn: usize,
    /// No call behind that is unsent has a lower number, if some are withdrawn.
    pub(super) unsent_from: Option<u32>,
    /// Of the next call behind others. Only numbers on the connection at the same time are compared, so it may wrap.
    pub(super) next_number: u32,
    /// Answers so far, and those since the connection was idle last.
    pub(super) answered: u64,
    pub(super) answered_now: u64,
    /// The socket did not take all of what it was last given: the event that it takes more is not to be missed.
    pub(super) short: bool,
    /// The last answer said that the requests behind it are not looked at.
    pub(super) disowned: bool,
    /// It is in `Reactor::unflushed`, for not longer than until then.
    pub(super) flush_at: Option<Time>,
}

/// Where a request is among the bytes of its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByteRange {
    pub(super) start: u64,
    pub(super) end: u64,
}

#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) owner: ResponseOwner,
    /// Higher than those before it.
    pub(super) number: u32,
    pub(super) range: ByteRange,
}

#[derive(Debug)]
pub(super) enum ResponseOwner {
    Call(CallKey),
    /// The call has given up; its answer is read by this.
    Abandoned(Box<Exchange>),
    /// The call has given up before anything was sent. Not there when something is sent or read.
    Withdrawn,
}

impl Pipeline {
    pub(super) fn push(&mut self, request: &Request) -> ByteRange {
        if self.out_at > self.out.len() / 2 {
            // Else what was sent would pile up while the socket never takes all.
            self.out.drain(..self.out_at);
            self.out_at = 0;
        }
        let start = self.written + (self.out.len() - self.out_at) as u64;
        for part in request.in_memory() {
            self.out.extend_from_slice(part);
        }
        let end = self.written + (self.out.len() - self.out_at) as u64;
        ByteRange { start, end }
    }

    pub(in crate::reactor) fn is_empty(&self) -> bool {
        self.behind.is_empty()
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.unsent() > 0
    }

    pub(super) fn unsent(&self) -> usize {
        self.out.len() - self.out_at - self.withdrawn
    }

    pub(in crate::reactor) fn has_served(&self) -> bool {
        self.answered > 0
    }

    /// Whether it has more to send than the socket took.
    pub(in crate::reactor) fn is_stuck(&self) -> bool {
        self.has_unsent() && (self.short || self.flush_at.is_none())
    }

    /// Whether nothing has been sent of the request in front.
    pub(in crate::reactor) fn is_front_unsent(&self) -> bool {
        !self.is_begun(self.front)
    }

    pub(super) fn is_begun(&self, range: ByteRange) -> bool {
        range.start < self.written
    }

    /// The place of a call behind others.
    pub(super) fn position(&self, call: CallKey, number: u32) -> Option<usize> {
        let first = self.behind.front()?.number;
        let before =
            |other: &QueuedRequest| other.number.wrapping_sub(first) < number.wrapping_sub(first);
        let at = self.behind.partition_point(before);
        self.behind.get(at)?.is_of(call).then_some(at)
    }

    /// A request of which nothing has been sent, and which has no place any more, will not be sent. Its bytes go when
    /// they must, or are more than the others': so those that end together cost no more than one by one.
    pub(super) fn withdraw(&mut self, range: ByteRange) {
        self.withdrawn += (range.end - range.start) as usize;
        if self.withdrawn > self.unsent() {
            self.tidy();
        }
    }

    /// Forgets what was withdrawn.
    pub(super) fn tidy(&mut self) {
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
            // What has been sent has no gap before it.
            range.start -= gap as u64;
            range.end -= gap as u64;
            end += length;
        };
        close_up(&mut self.front);
        let sent = self.sent_whole.min(self.behind.len());
        let mut kept = sent;
        for at in sent..self.behind.len() {
            if matches!(self.behind[at].owner, ResponseOwner::Withdrawn) {
                continue;
            }
            close_up(&mut self.behind[at].range);
            self.behind.swap(kept, at);
            kept += 1;
        }
        self.behind.truncate(kept);
        self.out.truncate(end);
        self.withdrawn = 0;
        self.unsent_from = None;
    }

    /// Whether its end is the fault of a server that cannot have several requests at a time.
    pub(in crate::reactor) fn is_broken_by(&self, kind: &ErrorKind) -> bool {
        let sent = self.behind.front().is_some_and(|b| self.is_begun(b.range));
        // What was idle may have died of old age.
        let stale = self.answered > 0 && self.answered_now == 0;
        let early = sent && self.answered <= 1 && !stale;
        match kind {
            ErrorKind::Peer(PeerFault::Unsolicited) => true,
            ErrorKind::Peer(PeerFault::Empty | PeerFault::Truncated) | ErrorKind::Io(_) => early,
            ErrorKind::Peer(PeerFault::BadContentCoding) => false,
            ErrorKind::Peer(_) => sent,
            _ => false,
        }
    }
}

impl QueuedRequest {
    fn is_of(&self, key: CallKey) -> bool {
        matches!(self.owner, ResponseOwner::Call(call) if call == key)
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
    fn what_is_sent_does_not_pile_up() {
        let (request, mut pipeline) = (request(1000), Pipeline::default());
        let mut last = pipeline.push(&request);
        for _ in 0..1000 {
            // The socket never takes all.
            let n = pipeline.unsent() - 100;
            pipeline.out_at += n;
            pipeline.written += n as u64;
            let range = pipeline.push(&request);
            assert_eq!(range.start, last.end);
            assert!(pipeline.out.len() < 4000 && !pipeline.is_begun(range));
            last = range;
        }
    }

    /// A pipeline of requests of these lengths, of which `written` bytes are sent, and what is unsent of it.
    fn pipeline(lengths: &[usize], written: usize) -> (Pipeline, Vec<u8>) {
        let mut pipeline = Pipeline::default();
        let mut requests = lengths.iter().map(|&length| request(length));
        pipeline.front = pipeline.push(&requests.next().expect("a front"));
        for (number, request) in (u32::MAX - 1..=u32::MAX).chain(0..).zip(requests) {
            let owner = ResponseOwner::Call(CallKey::first_of(number));
            let range = pipeline.push(&request);
            pipeline.behind.push_back(QueuedRequest {
                owner,
                number,
                range,
            });
        }
        pipeline.out_at = written;
        pipeline.written = written as u64;
        let whole = |behind: &&QueuedRequest| behind.range.end <= pipeline.written;
        pipeline.sent_whole = pipeline.behind.iter().take_while(whole).count();
        let unsent = pipeline.out[pipeline.out_at..].to_vec();
        (pipeline, unsent)
    }

    fn give_up(pipeline: &mut Pipeline, number: u32) {
        let call = CallKey::first_of(number);
        let at = pipeline.position(call, number).expect("a place");
        pipeline.behind[at].owner = ResponseOwner::Withdrawn;
        pipeline.withdraw(pipeline.behind[at].range);
    }

    #[test]
    fn those_behind_are_found_by_their_numbers_also_when_these_wrap() {
        let (mut pipeline, _) = pipeline(&[0, 10, 20, 30, 40], 0);
        for round in 0..4 {
            let numbers: Vec<u32> = pipeline.behind.iter().map(|behind| behind.number).collect();
            for (at, number) in numbers.into_iter().enumerate() {
                let call = CallKey::first_of(number);
                assert_eq!(pipeline.position(call, number), Some(at), "{round}");
                assert_eq!(pipeline.position(CallKey::first_of(77), number), None);
            }
            let gone = pipeline.behind.pop_front().expect("another one");
            let call = CallKey::first_of(gone.number);
            assert_eq!(pipeline.position(call, gone.number), None);
        }
    }

    #[test]
    fn what_is_withdrawn_goes_and_the_others_close_up() {
        let lengths = [0, 500, 10, 300, 20, 1000];
        let part = |pipeline: &Pipeline, range: ByteRange| {
            let from =
                pipeline.out_at + (range.start.max(pipeline.written) - pipeline.written) as usize;
            let to = pipeline.out_at + (range.end - pipeline.written) as usize;
            pipeline.out[from..to].to_vec()
        };
        // Nothing is sent, a part of the front, the front, and a part of the next.
        for written in [
            0,
            10,
            request(0).in_memory().map(<[u8]>::len).iter().sum(),
            200,
        ] {
            for given_up in 0..1 << 5 {
                let (mut pipeline, unsent) = pipeline(&lengths, written);
                let wanted = |behind: &QueuedRequest| {
                    let at = behind.number.wrapping_add(2);
                    given_up & (1 << at) == 0 || pipeline.is_begun(behind.range)
                };
                let front = pipeline.front;
                let mut expected = match front.end > pipeline.written {
                    true => part(&pipeline, front),
                    false => Vec::new(),
                };
                let (mut stay, mut go) = (Vec::new(), Vec::new());
                for behind in &pipeline.behind {
                    if wanted(behind) {
                        stay.push((behind.number, part(&pipeline, behind.range)));
                        expected.extend(part(&pipeline, behind.range));
                    } else {
                        go.push(behind.number);
                    }
                }
                assert!(expected.len() <= unsent.len());
                for &number in &go {
                    give_up(&mut pipeline, number);
                    assert!(pipeline.withdrawn <= pipeline.unsent());
                }
                assert_eq!(pipeline.unsent(), expected.len(), "{written} {given_up:b}");
                pipeline.tidy();
                assert_eq!(pipeline.out[pipeline.out_at..], expected);
                let left = pipeline.behind.iter();
                let left: Vec<_> = left.map(|b| (b.number, part(&pipeline, b.range))).collect();
                assert_eq!(left, stay, "{written} {given_up:b}");
                // What comes next is behind them.
                let next = pipeline.push(&request(5));
                assert_eq!(next.start, pipeline.written + expected.len() as u64);
            }
        }
    }
}
