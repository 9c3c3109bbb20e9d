//! A double-ended queue whose elements can be removed from the middle in constant time, by a ticket that was given at
//! insertion. Allocates only when it becomes longer than ever before, or longer than since it last gave memory back.

use super::room;

/// The place of an element. Valid until the element leaves the queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ticket(u32);

#[derive(Debug)]
pub(crate) struct Queue<T> {
    nodes: Vec<Node<T>>,
    /// The first of the unused nodes, which are linked by `next`.
    free: u32,
    front: u32,
    back: u32,
    len: usize,
}

#[derive(Debug)]
struct Node<T> {
    /// `None` in an unused node.
    value: Option<T>,
    prev: u32,
    next: u32,
}

impl<T: Copy> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NONE,
            front: NONE,
            back: NONE,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn front(&self) -> Option<T> {
        self.nodes.get(self.front as usize)?.value
    }

    /// The element with this number from the front. Takes as many steps.
    pub(crate) fn nth(&self, n: usize) -> Option<T> {
        let mut at = self.front;
        for _ in 0..n {
            at = self.nodes.get(at as usize)?.next;
        }
        self.nodes.get(at as usize)?.value
    }

    #[inline]
    pub(crate) fn push_back(&mut self, value: T) -> Ticket {
        let at = self.node(value);
        match self.back {
            NONE => self.front = at,
            back => self.nodes[back as usize].next = at,
        }
        self.back = at;
        Ticket(at)
    }

    pub(crate) fn push_front(&mut self, value: T) -> Ticket {
        let Ticket(at) = self.push_back(value);
        if self.front != at {
            let before = self.nodes[at as usize].prev;
            self.nodes[before as usize].next = NONE;
            self.back = before;
            self.nodes[self.front as usize].prev = at;
            self.nodes[at as usize].prev = NONE;
            self.nodes[at as usize].next = self.front;
            self.front = at;
        }
        Ticket(at)
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.remove(Ticket(self.front))
    }

    pub(crate) fn pop_back(&mut self) -> Option<T> {
        self.remove(Ticket(self.back))
    }

    #[inline]
    pub(crate) fn remove(&mut self, Ticket(at): Ticket) -> Option<T> {
        let node = self.nodes.get_mut(at as usize)?;
        let value = node.value.take()?;
        let (prev, next) = (node.prev, node.next);
        node.next = self.free;
        self.free = at;
        self.len -= 1;
        match prev {
            NONE => self.front = next,
            prev => self.nodes[prev as usize].next = next,
        }
        match next {
            NONE => self.back = prev,
            next => self.nodes[next as usize].prev = prev,
        }
        if self.len == 0 && self.nodes.len() > room::KEPT {
            self.give_back();
        }
        Some(value)
    }

    #[cold]
    fn give_back(&mut self) {
        self.nodes.clear();
        self.nodes.shrink_to(room::KEPT);
        self.free = NONE;
    }

    /// Fills a node and links it after the last one.
    #[inline]
    fn node(&mut self, value: T) -> u32 {
        self.len += 1;
        let node = Node {
            value: Some(value),
            prev: self.back,
            next: NONE,
        };
        match self.free {
            NONE => {
                room::make(&mut self.nodes);
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
            at => {
                let unused = &mut self.nodes[at as usize];
                self.free = unused.next;
                *unused = node;
                at
            }
        }
    }
}

const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Random operations give the same results as on a plain deque.
        #[test]
        fn behaves_as_a_deque(program in prop::collection::vec((0u8..4, any::<usize>()), 0..200)) {
            let mut queue = Queue::new();
            let mut model: VecDeque<(u32, Ticket)> = VecDeque::new();
            for (step, (operation, pick)) in program.into_iter().enumerate() {
                let value = step as u32;
                match operation {
                    0 => model.push_back((value, queue.push_back(value))),
                    1 => prop_assert_eq!(queue.pop_front(), model.pop_front().map(|e| e.0)),
                    2 => prop_assert_eq!(queue.pop_back(), model.pop_back().map(|e| e.0)),
                    _ if !model.is_empty() => {
                        let (value, ticket) = model.remove(pick % model.len()).expect("in range");
                        prop_assert_eq!(queue.remove(ticket), Some(value));
                    }
                    _ => {}
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.front(), model.front().map(|e| e.0));
                for n in 0..=model.len() {
                    prop_assert_eq!(queue.nth(n), model.get(n).map(|e| e.0));
                }
            }
        }
    }

    #[test]
    fn a_rush_leaves_nothing_behind() {
        let mut queue = Queue::new();
        for rush in 0..3 {
            for value in 0..10_000 {
                queue.push_back(value);
            }
            for value in 0..10_000 {
                assert_eq!(queue.pop_front(), Some(value), "in rush {rush}");
            }
            assert!(queue.nodes.capacity() <= room::KEPT);
            assert_eq!((queue.len(), queue.front()), (0, None));
        }
    }
}
