//! A vector of slots with a free list. No key is used twice: a key has the index of its slot and how often this slot
//! was filled. So an event or a timer for an element that was removed finds nothing, and not another element.

use std::marker::PhantomData;
use std::num::NonZeroU32;

use super::key::Key;
use crate::policy::room;

/// Elements that are found by a `Key<K>`.
#[derive(Debug)]
pub(crate) struct Slab<T, K> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// The generation of a new slot. No slot whose memory was given back had a higher one.
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

    #[inline(always)] // so that what `make` returns is constructed in its final place, without a copy
    pub(crate) fn insert(&mut self, make: impl FnOnce() -> T) -> Key<K> {
        let index = match self.free.last() {
            Some(index) => *index,
            None => self.add_slot(),
        };
        let slot = &mut self.slots[index as usize];
        // The slot is empty. With this check the compiler makes no temporary copy of the element.
        if slot.value.is_none() {
            slot.value = Some(make());
        }
        self.free.pop();
        Key::new(index, slot.generation)
    }

    #[cold]
    fn add_slot(&mut self) -> u32 {
        let index = self.slots.len() as u32;
        room::make(&mut self.slots);
        self.slots.push(Slot {
            generation: self.generation,
            value: None,
        });
        self.free.push(index);
        index
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

    /// The key of the element in a slot.
    #[cfg(any(test, target_pointer_width = "32"))]
    pub(super) fn key_at(&self, index: u32) -> Option<Key<K>> {
        let slot = self.slots.get(index as usize)?;
        let key = Key::new(index, slot.generation);
        slot.value.is_some().then_some(key)
    }

    /// The keys of the elements for which `is` returns true.
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

    /// Takes out all elements.
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
        let mut index = key.index as usize;
        if self.free.len() > room::KEPT && self.free.len() == slots {
            index = 0;
            self.give_back(key);
        }
        // The value is taken last, so that it is moved only once.
        self.slots.get_mut(index)?.value.take()
    }

    /// Puts the last element into the first slot, and gives back the memory of all slots but the first ones.
    #[cold]
    fn give_back(&mut self, last: Key<K>) {
        let value = self.slots[last.index as usize].value.take();
        self.slots[0].value = value;
        let given = self.slots.drain(room::KEPT..).map(|slot| slot.generation);
        self.generation = given.fold(self.generation, NonZeroU32::max);
        self.slots.shrink_to_fit();
        self.free.retain(|&index| (index as usize) < room::KEPT);
        self.free.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactor::key::of;

    #[test]
    fn memory_is_given_back_and_no_key_is_used_twice() {
        let mut slab = Slab::<_, of::Call>::new();
        let (mut seen, mut before) = (std::collections::HashSet::new(), Vec::new());
        for rush in 0..5 {
            let keys: Vec<_> = (0..3000).map(|value| slab.insert(|| value)).collect();
            // Keys find their own elements only, also where their slots are in use again.
            assert!(before.iter().all(|&key| slab.get(key).is_none()));
            assert!(before.iter().all(|&key| slab.remove(key).is_none()));
            for (value, &key) in keys.iter().enumerate() {
                assert!(seen.insert(key), "{key:?} again in rush {rush}");
                assert_eq!(slab.get(key), Some(&value));
                assert_eq!(slab.remove(key), Some(value));
            }
            assert_eq!(slab.len(), 0);
            assert!(slab.slots.capacity() <= room::KEPT && slab.free.capacity() <= room::KEPT);
            assert!(keys.iter().all(|key| slab.get(*key).is_none()));
            before = keys;
        }
    }

    #[test]
    fn a_panic_while_an_element_is_made_leaves_its_slot_free() {
        let mut slab = Slab::<u8, of::Call>::new();
        let key = slab.insert(|| 1);
        assert_eq!(slab.remove(key), Some(1));
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            slab.insert(|| panic!("while the element is made"))
        }));
        assert!(made.is_err());
        assert_eq!(slab.len(), 0);
    }
}
