//! Streamed bodies with new data, in the order in which the data arrived. A dropped body leaves its entry in the queue
//! until more than half of the entries belong to dropped bodies. So the cost for each dropped body stays constant.

use std::collections::VecDeque;

use crate::client::CallId;

#[derive(Debug, Default)]
pub(crate) struct ReadableBodies {
    bodies: VecDeque<CallId>,
    /// How many entries belong to bodies that no longer exist.
    gone: usize,
}

impl ReadableBodies {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bodies.len() == self.gone
    }

    pub(super) fn push(&mut self, body: CallId) {
        self.bodies.push_back(body);
    }

    /// The next body that still exists according to `exists`.
    pub(super) fn pop(&mut self, exists: impl Fn(CallId) -> bool) -> Option<CallId> {
        loop {
            let body = self.bodies.pop_front()?;
            if exists(body) {
                return Some(body);
            }
            self.gone = self.gone.saturating_sub(1);
        }
    }

    /// A body in the queue no longer exists.
    pub(super) fn forget(&mut self, exists: impl Fn(CallId) -> bool) {
        self.gone += 1;
        if 2 * self.gone > self.bodies.len() {
            self.bodies.retain(|body| exists(*body));
            self.gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::reactor::CallKey;

    #[test]
    fn what_is_gone_never_comes_and_does_not_pile_up() {
        let body = |n: u32| CallId(CallKey::first_of(n));
        let (mut news, mut there) = (ReadableBodies::default(), HashSet::new());
        for n in 0..1000 {
            news.push(body(n));
            there.insert(body(n));
            if n % 3 != 0 {
                there.remove(&body(n));
                news.forget(|body| there.contains(&body));
            }
            assert!(news.bodies.len() <= 2 * there.len() + 1);
        }
        for n in (0..1000).step_by(3) {
            assert!(!news.is_empty());
            assert_eq!(news.pop(|body| there.contains(&body)), Some(body(n)));
            there.remove(&body(n));
        }
        assert!(news.is_empty());
        assert_eq!(news.pop(|_| true), None);
    }
}
