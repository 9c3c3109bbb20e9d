//! A vector of slots with a free list, whose keys are never used twice: a key names its slot and how often that slot
//! was filled, so an event or a timer that comes late finds nothing rather than somebody else.

use crate::policy::room;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Of a new slot: no slot that was given back was filled more often.
    generation: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Names an element of a slab, for ever.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Names nothing.
    pub(crate) const NONE: Self = Self {
        index: u32::MAX,
        generation: 0,
    };

    /// The slot, which another key may name too, at another time.
    pub(crate) fn place(self) -> usize {
        self.index as usize
    }

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            generation: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The key that the next [`insert`](Self::insert) will give.
    pub(crate) fn next_key(&self) -> Key {
        let index = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        Key {
            index,
            generation: self
                .slots
                .get(index as usize)
                .map_or(self.generation, |slot| slot.generation),
        }
    }

    #[inline(always)] // so that the element is made in its place
    pub(crate) fn insert(&mut self, value: T) -> Key {
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
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        match self.slots.get(key.index as usize) {
            Some(slot) if slot.generation == key.generation => slot.value.as_ref(),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.slots.get_mut(key.index as usize) {
            Some(slot) if slot.generation == key.generation => slot.value.as_mut(),
            _ => None,
        }
    }

    /// The keys of the elements for which that is true.
    pub(crate) fn keys_of(&self, mut is: impl FnMut(&T) -> bool) -> Vec<Key> {
        let mut keys = Vec::new();
        for (index, slot) in (0..).zip(&self.slots) {
            if slot.value.as_ref().is_some_and(&mut is) {
                let generation = slot.generation;
                keys.push(Key { index, generation });
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
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slots = self.slots.len();
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation || slot.value.is_none() {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        if self.free.len() > room::KEPT && self.free.len() == slots {
            return self.give_back(key);
        }
        // In the end, so that it is moved once.
        slot.value.take()
    }

    /// Takes out the last element, and keeps the first slots only.
    #[cold]
    fn give_back(&mut self, last: Key) -> Option<T> {
        let value = self.slots.get_mut(last.index as usize)?.value.take();
        let given = self.slots.drain(room::KEPT..).map(|slot| slot.generation);
        self.generation = given.fold(self.generation, u32::max);
        self.slots.shrink_to_fit();
        self.free.retain(|&index| (index as usize) < room::KEPT);
        self.free.shrink_to_fit();
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_own_element_only() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&'b')));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.len(), 1);
        assert_eq!(Key::from_bits(second.to_bits()), second);
    }

    #[test]
    fn a_rush_leaves_nothing_behind_but_its_keys() {
        let mut slab = Slab::new();
        let mut seen = std::collections::HashSet::new();
        for rush in 0..5 {
            let keys: Vec<Key> = (0..3000).map(|value| slab.insert(value)).collect();
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
