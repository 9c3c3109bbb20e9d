//! The memory of the bodies of all calls together.
//!
//! Each call may have a large body, and a client may have very many calls. So the bytes of bodies that the client holds
//! have a limit over all calls. They are counted in steps of 64 KiB, so that small bodies and most reads count nothing.

use crate::error::LimitExceeded;

/// The bytes of bodies that a client holds.
#[derive(Debug)]
pub(super) struct BodyMemory {
    /// In steps.
    held: u64,
    limit: Option<u64>,
}

/// The part of one call, in steps. More than 65,535 steps (4 GiB) of one call do not count.
pub(crate) type HeldSteps = u16;

impl BodyMemory {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { held: 0, limit }
    }

    /// The body of a call has grown; `counted` steps of it are counted. At the limit the body is dropped, so that other
    /// calls can go on.
    #[cold]
    pub(super) fn grow(
        &mut self,
        counted: &mut HeldSteps,
        body: &mut Vec<u8>,
    ) -> Result<(), LimitExceeded> {
        let steps = steps(body.len().div_ceil(UNCOUNTED));
        if steps > *counted {
            self.set(counted, steps);
        }
        match self.limit {
            Some(limit) if self.is_over() => {
                *body = Vec::new();
                self.set(counted, 0);
                Err(LimitExceeded::HeldBytes(limit))
            }
            _ => Ok(()),
        }
    }

    /// Counts the bytes of a streamed body that wait for the consumer. True if the client holds more than it may.
    #[inline]
    pub(super) fn set_waiting(&mut self, counted: &mut HeldSteps, bytes: usize) -> bool {
        let steps = steps(bytes / UNCOUNTED);
        if steps != *counted {
            self.set(counted, steps);
        }
        self.is_over()
    }

    /// Whether any bytes are counted.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.held > 0
    }

    /// Counts so many steps of the body of a call: none, if the client no longer holds the body.
    #[cold]
    pub(super) fn set(&mut self, counted: &mut HeldSteps, steps: HeldSteps) {
        self.held = self.held - u64::from(*counted) + u64::from(steps);
        *counted = steps;
    }

    fn is_over(&self) -> bool {
        self.limit
            .is_some_and(|limit| self.held.saturating_mul(UNCOUNTED as u64) > limit)
    }
}

fn steps(count: usize) -> HeldSteps {
    HeldSteps::try_from(count).unwrap_or(HeldSteps::MAX)
}

/// The size of a step. A body of this size or less does not count.
pub(super) const UNCOUNTED: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_given_back() {
        const KIB: usize = 1024;
        let body = |kib: usize| vec![0; kib * KIB];
        let mut memory = BodyMemory::new(Some(256 * 1024));
        let (mut one, mut other, mut streamed) = (0, 0, 0);
        assert_eq!(memory.grow(&mut one, &mut body(65)), Ok(()));
        assert_eq!((one, memory.held), (2, 2));
        assert_eq!(memory.grow(&mut one, &mut body(100)), Ok(()));
        assert!(!memory.set_waiting(&mut streamed, UNCOUNTED - 1));
        assert!(!memory.set_waiting(&mut streamed, 90 * KIB));
        assert_eq!((streamed, memory.held), (1, 3));
        let limit = LimitExceeded::HeldBytes(256 * 1024);
        let mut too_much = body(70);
        assert_eq!(memory.grow(&mut other, &mut too_much), Err(limit));
        assert_eq!((other, too_much.capacity()), (0, 0));
        assert_eq!(memory.grow(&mut one, &mut body(200)), Err(limit));
        assert!(memory.set_waiting(&mut streamed, 320 * KIB));
        assert!(!memory.set_waiting(&mut streamed, 0));
        assert!(!memory.is_used());
    }
}
