//! A vector of slots with a free list, whose keys are never used twice: a key names its slot and how often that slot
//! was filled, so an event or a timer that comes late finds nothing, rather than another element.

use std::marker::PhantomData;
use std::num::NonZeroU32;

use super::key::Key;
use crate::policy::room;

/// Elements that are named by a `Key<K>`.
#[derive(Debug)]
pub(crate) struct Slab<T, K> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Of a new slot: no slot that was given back was filled more often.
    generation: NonZeroU32,
    keys: PhantomData<K>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: NonZeroU32,
    value: Option<T>,
}

impl<T, K> Slab<T, K> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            generation: NonZeroU32::MIN,
            keys: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The key that the next [`insert`](Self::insert) will give.
    pub(crate) fn next_key(&self) -> Key<K> {
        let index = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        let slot = self.slots.get(index as usize);
        Key::new(index, slot.map_or(self.generation, |slot| slot.generation))
    }

    #[inline(always)] // so that the element is made in its place
    pub(crate) fn insert(&mut self, value: T) -> Key<K> {
        let key = self.next_key();
        match self.free.pop() {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                // Known to be empty, it is filled without a second copy of the element in between.
                if slot.value.is_none() {
                    slot.value = Some(value);
                }
            }
            None => {
                room::make(&mut self.slots);
                self.slots.push(Slot {
                    generation: self.generation,
                    value: Some(value),
                });
            }
        }
        key
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: Key<K>) -> Option<&T> {
        match self.slots.get(key.index as usize) {
            Some(slot) if slot.generation == key.generation => slot.value.as_ref(),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        match self.slots.get_mut(key.index as usize) {
            Some(slot) if slot.generation == key.generation => slot.value.as_mut(),
            _ => None,
        }
    }

    /// The keys of the elements for which that is true.
    pub(crate) fn keys_of(&self, mut is: impl FnMut(&T) -> bool) -> Vec<Key<K>> {
        let mut keys = Vec::new();
        for (index, slot) in (0..).zip(&self.slots) {
            if slot.value.as_ref().is_some_and(&mut is) {
                keys.push(Key::new(index, slot.generation));
            }
        }
        keys
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    /// Takes out everything.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        self.slots.drain(..).filter_map(|slot| slot.value)
    }

    #[inline(always)] // so that the element goes to where it is used in one move
    pub(crate) fn remove(&mut self, key: Key<K>) -> Option<T> {
        let slots = self.slots.len();
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation || slot.value.is_none() {
            return None;
        }
        slot.generation = slot.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.free.push(key.index);
        if self.free.len() > room::KEPT && self.free.len() == slots {
            return self.give_back(key);
        }
        // In the end, so that it is moved once.
        slot.value.take()
    }

    /// Takes out the last element, and keeps the first slots only.
    #[cold]
    fn give_back(&mut self, last: Key<K>) -> Option<T> {
        let value = self.slots.get_mut(last.index as usize)?.value.take();
        let given = self.slots.drain(room::KEPT..).map(|slot| slot.generation);
        self.generation = given.fold(self.generation, NonZeroU32::max);
        self.slots.shrink_to_fit();
        self.free.retain(|&index| (index as usize) < room::KEPT);
        self.free.shrink_to_fit();
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactor::key::of;

    type Letters = Slab<char, of::Call>;

    #[test]
    fn a_key_finds_its_own_element_only() {
        let mut slab = Letters::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&'b')));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn a_rush_leaves_nothing_behind_but_its_keys() {
        let mut slab = Slab::<_, of::Call>::new();
        let mut seen = std::collections::HashSet::new();
        for rush in 0..5 {
            let keys: Vec<_> = (0..3000).map(|value| slab.insert(value)).collect();
            for (value, &key) in keys.iter().enumerate() {
                assert!(seen.insert(key), "{key:?} again in rush {rush}");
                assert_eq!(slab.remove(key), Some(value));
            }
            assert_eq!(slab.len(), 0);
            assert!(slab.slots.capacity() <= room::KEPT && slab.free.capacity() <= room::KEPT);
            assert!(keys.iter().all(|key| slab.get(*key).is_none()));
        }
    }
}
