//! Bodies that are read: of pages, of robots.txt, and of answers that may be challenges.

/// The beginning of a body, up to a limit.
#[derive(Debug)]
pub(super) struct BodyStart {
    bytes: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

impl BodyStart {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            bytes: Vec::new(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            is_cut: false,
        }
    }

    /// One with the same limit.
    pub(super) fn emptied(&self) -> Self {
        Self {
            bytes: Vec::new(),
            is_cut: false,
            ..*self
        }
    }

    /// Adds a part, at most `room` bytes. Returns whether more is wanted.
    pub(super) fn add(&mut self, part: &[u8], room: usize) -> bool {
        let room = room.min(self.limit - self.bytes.len());
        self.is_cut = part.len() > room;
        self.bytes.extend_from_slice(&part[..part.len().min(room)]);
        !self.is_cut
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The most bytes that are kept.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether the body was longer than the limit.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// What the body of an answer about a URL is read for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BodyUse {
    /// Links.
    Page,
    /// Whether the answer is a challenge.
    Challenge,
}

/// The body of an answer about a URL.
#[derive(Debug)]
pub(super) struct AnswerBody {
    pub(super) purpose: BodyUse,
    pub(super) start: BodyStart,
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
}

/// The most bytes of a body that are read to find out whether the answer is a challenge.
pub(super) const EXCERPT: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_more_than_the_limit_is_kept() {
        let mut start = BodyStart::new(5);
        assert!(start.add(b"abc", 3) && start.add(b"de", 9));
        assert!(!start.is_cut());
        assert!(!start.add(b"f", 9));
        assert_eq!((start.bytes(), start.is_cut()), (&b"abcde"[..], true));
        assert!(!BodyStart::new(0).add(b"a", 9));
        assert!(!BodyStart::new(9).add(b"ab", 1));
    }
}
