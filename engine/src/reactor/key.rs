//! Keys of the elements of slabs. Each kind of element has its own type of key: the key of a call cannot be passed
//! where the key of a connection is meant.

use std::marker::PhantomData;
use std::num::NonZeroU32;

/// The key of a connection of a [`Reactor`](super::Reactor).
pub(crate) type ConnKey = Key<of::Conn>;

/// The key of a call of a [`Reactor`](super::Reactor).
pub(crate) type CallKey = Key<of::Call>;

/// The key of a host of the client.
pub(crate) type HostKey = Key<of::Host>;

/// The key of an opening of the client.
pub(crate) type OpeningKey = Key<of::Opening>;

/// The kinds of elements that have keys.
pub(crate) mod of {
    macro_rules! kinds {
        ($($name:ident)*) => {
            $(#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
            pub(crate) enum $name {})*
        };
    }

    kinds! { Conn Call Host Opening Stream }
}

/// The key of one element of a [`Slab`](super::Slab): the slot, and how often this slot was filled. No other element
/// gets the same key.
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

    /// The index of the slot. The keys of earlier and later elements in this slot have the same index.
    pub(crate) fn index(&self) -> usize {
        self.index as usize
    }

    /// The key as a number, which is not zero.
    pub(crate) fn to_bits(&self) -> u64 {
        u64::from(self.generation.get()) << 32 | u64::from(self.index)
    }

    /// The key with that number. No key has the number zero.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let generation = NonZeroU32::new((bits >> 32) as u32)?;
        Some(Self::new(bits as u32, generation))
    }
}

impl CallKey {
    /// The key of a call that no reactor has begun. This key finds nothing: no slab has so many slots.
    pub(crate) const UNBEGUN: Self = Self::new(u32::MAX, NonZeroU32::MIN);
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<T> Key<T> {
        /// The key of the first element in that slot.
        pub(crate) fn first_of(index: u32) -> Self {
            Self::new(index, NonZeroU32::MIN)
        }
    }

    #[test]
    fn a_key_and_an_optional_key_are_eight_bytes() {
        assert_eq!(size_of::<CallKey>(), 8);
        assert_eq!(size_of::<Option<CallKey>>(), 8);
    }
}
