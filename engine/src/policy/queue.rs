//! A double-ended queue whose elements can be removed from the middle in constant time, by a ticket that was given at
//! insertion. Allocates only when it becomes longer than ever before, or longer than since it last gave memory back.

use super::room;

/// The place of an element. Valid until the element leaves the queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ticket(u32);

/// The elements are in a ring of nodes. The first node has no element: it is behind the back and before the front.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Without any before the first element.
    nodes: Vec<Node<T>>,
    /// The first of the unused nodes, which are linked by `next`; 0 for none.
    free: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    /// `None` in the first node and in the unused ones.
    value: Option<T>,
    prev: u32,
    next: u32,
}

impl<T: Copy> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: 0,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<T> {
        let front = self.nodes.first()?.next;
        self.nodes[front as usize].value
    }

    /// The element with this number from the front. Takes as many steps.
    pub(crate) fn nth(&self, n: usize) -> Option<T> {
        let mut at = self.nodes.first()?.next;
        for _ in 0..n.min(self.len) {
            at = self.nodes[at as usize].next;
        }
        self.nodes[at as usize].value
    }

    #[inline]
    pub(crate) fn push_back(&mut self, value: T) -> Ticket {
        self.insert(value, 0)
    }

    pub(crate) fn push_front(&mut self, value: T) -> Ticket {
        let front = self.nodes.first().map_or(0, |end| end.next);
        self.insert(value, front)
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let front = self.nodes.first()?.next;
        self.remove(Ticket(front))
    }

    #[inline]
    pub(crate) fn pop_back(&mut self) -> Option<T> {
        let back = self.nodes.first()?.prev;
        self.remove(Ticket(back))
    }

    #[inline]
    pub(crate) fn remove(&mut self, Ticket(at): Ticket) -> Option<T> {
        let node = self.nodes.get_mut(at as usize)?;
        let value = node.value.take()?;
        let (prev, next) = (node.prev, node.next);
        node.next = std::mem::replace(&mut self.free, at);
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        self.len -= 1;
        if self.len == 0 && self.nodes.len() > room::KEPT {
            self.give_back();
        }
        Some(value)
    }

    #[cold]
    fn give_back(&mut self) {
        self.nodes.clear();
        self.nodes.shrink_to(room::KEPT);
        self.free = 0;
    }

    /// Puts an element before this node.
    #[inline]
    fn insert(&mut self, value: T, next: u32) -> Ticket {
        let at = match self.free {
            0 => self.add_node(),
            at => at,
        };
        let prev = std::mem::replace(&mut self.nodes[next as usize].prev, at);
        self.nodes[prev as usize].next = at;
        let node = &mut self.nodes[at as usize];
        self.free = node.next;
        (node.value, node.prev, node.next) = (Some(value), prev, next);
        self.len += 1;
        Ticket(at)
    }

    /// Adds an unused node. The first node comes with the second one.
    #[cold]
    fn add_node(&mut self) -> u32 {
        let unused = Node {
            value: None,
            prev: 0,
            next: 0,
        };
        if self.nodes.is_empty() {
            self.nodes.reserve_exact(2);
            self.nodes.push(unused);
        }
        room::make(&mut self.nodes);
        self.nodes.push(unused);
        (self.nodes.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Random operations give the same results as on a plain deque.
        #[test]
        fn behaves_as_a_deque(program in prop::collection::vec((0u8..5, any::<usize>()), 0..200)) {
            let mut queue = Queue::new();
            let mut model: VecDeque<(u32, Ticket)> = VecDeque::new();
            for (step, (operation, pick)) in program.into_iter().enumerate() {
                let value = step as u32;
                match operation {
                    0 => model.push_back((value, queue.push_back(value))),
                    1 => prop_assert_eq!(queue.pop_front(), model.pop_front().map(|e| e.0)),
                    4 => model.push_front((value, queue.push_front(value))),
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
