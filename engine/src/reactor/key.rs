//! Names for the elements of slabs, which cannot be taken for one another: the key of a call finds no connection.

use std::marker::PhantomData;
use std::num::NonZeroU32;

/// A connection of a [`Reactor`](super::Reactor).
pub(crate) type ConnKey = Key<of::Conn>;

/// A call of a [`Reactor`](super::Reactor).
pub(crate) type CallKey = Key<of::Call>;

/// A host of the client above.
pub(crate) type HostKey = Key<of::Host>;

/// An opening of the client above.
pub(crate) type OpeningKey = Key<of::Opening>;

/// What keys can name.
pub(crate) mod of {
    macro_rules! kinds {
        ($($name:ident)*) => {
            $(#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
            pub(crate) enum $name {})*
        };
    }

    kinds! { Conn Call Host Opening Stream }
}

/// Names one element of a [`Slab`](super::Slab), and never another one: the slot, and how often that slot was filled.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key<T> {
    pub(super) index: u32,
    pub(super) generation: NonZeroU32,
    of: PhantomData<T>,
}

impl<T> Key<T> {
    #[inline(always)]
    pub(super) const fn new(index: u32, generation: NonZeroU32) -> Self {
        Self {
            index,
            generation,
            of: PhantomData,
        }
    }

    /// The slot, which another key may name too, at another time.
    pub(crate) fn index(&self) -> usize {
        self.index as usize
    }

    /// The key as a number, which is not zero.
    pub(crate) fn to_bits(&self) -> u64 {
        u64::from(self.generation.get()) << 32 | u64::from(self.index)
    }

    /// The key with that number. Zero is none's.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let generation = NonZeroU32::new((bits >> 32) as u32)?;
        Some(Self::new(bits as u32, generation))
    }
}

impl CallKey {
    /// Of a call that no reactor has taken up: no slab has so many slots.
    pub(crate) const UNBEGUN: Self = Self::new(u32::MAX, NonZeroU32::MIN);
}

#[cfg(test)]
impl<T> Key<T> {
    /// The key of the first element in that slot.
    pub(crate) fn first_of(index: u32) -> Self {
        Self::new(index, NonZeroU32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_eight_bytes_and_so_is_none() {
        assert_eq!(size_of::<CallKey>(), 8);
        assert_eq!(size_of::<Option<CallKey>>(), 8);
    }

    #[test]
    fn a_key_goes_through_a_number() {
        let key = ConnKey::first_of(7);
        assert_eq!(ConnKey::from_bits(key.to_bits()), Some(key));
        assert_eq!(ConnKey::from_bits(0), None);
    }
}
