//! The token of a connection's events: the key of the connection in one `usize`.
//!
//! A `usize` of 64 bits has room for the whole key. One of 32 bits has room for 2^20 slots and for the last 12 bits of
//! how often a slot was filled. So the number of a token comes back after its slot was filled 4,096 times. That is not
//! soon: an event is handled in the iteration in which the network reports it.

use super::{ConnKey, Slab, of};
use crate::net::Token;

/// The token of a connection; `None` if this target has no token for so many connections.
#[cfg(target_pointer_width = "64")]
#[inline]
pub(super) fn of_key(key: ConnKey) -> Option<Token> {
    Some(Token(key.to_bits() as usize))
}

/// The key of the connection with that token.
#[cfg(target_pointer_width = "64")]
#[inline]
pub(super) fn key_of<T>(token: Token, _: &Slab<T, of::Conn>) -> Option<ConnKey> {
    ConnKey::from_bits(token.0 as u64)
}

/// The token of a connection; `None` if this target has no token for so many connections.
#[cfg(target_pointer_width = "32")]
pub(super) fn of_key(key: ConnKey) -> Option<Token> {
    narrow::of_key(&key).map(|bits| Token(bits as usize))
}

/// The key of the connection with that token.
#[cfg(target_pointer_width = "32")]
pub(super) fn key_of<T>(token: Token, conns: &Slab<T, of::Conn>) -> Option<ConnKey> {
    narrow::key_of(token.0 as u32, conns)
}

#[cfg(not(any(target_pointer_width = "32", target_pointer_width = "64")))]
compile_error!("courser needs pointers of 32 or 64 bits");

/// Tokens of 32 bits.
#[cfg(any(test, target_pointer_width = "32"))]
mod narrow {
    use crate::reactor::key::Key;
    use crate::reactor::slab::Slab;

    pub(super) fn of_key<K>(key: &Key<K>) -> Option<u32> {
        let index = key.index() as u32;
        // The last index is left out: the highest number is no token.
        (index < INDEX)
            .then(|| (key.to_bits() >> 32) as u32 & GENERATION | index << GENERATION_BITS)
    }

    pub(super) fn key_of<T, K>(token: u32, slab: &Slab<T, K>) -> Option<Key<K>> {
        let key = slab.key_at(token >> GENERATION_BITS)?;
        (of_key(&key) == Some(token)).then_some(key)
    }

    const GENERATION_BITS: u32 = 12;
    const GENERATION: u32 = (1 << GENERATION_BITS) - 1;
    /// The highest index that would fit.
    const INDEX: u32 = u32::MAX >> GENERATION_BITS;
}

#[cfg(test)]
mod tests {
    use super::narrow::{key_of, of_key};
    use super::*;
    use crate::reactor::CallKey;

    #[test]
    fn a_narrow_token_finds_its_own_element_only() {
        let mut slab = Slab::<_, of::Call>::new();
        let others: Vec<_> = (0..9).map(|n| slab.insert(|| n)).collect();
        let mut seen = std::collections::HashSet::new();
        for n in 0..4096 {
            let key = slab.insert(|| n);
            let token = of_key(&key).expect("a low index");
            assert!(seen.insert(token), "twice within 4,096");
            assert_eq!(key_of(token, &slab), Some(key));
            slab.remove(key);
            assert_eq!(key_of(token, &slab), None);
        }
        for key in others {
            let token = of_key(&key).expect("a low index");
            assert_eq!(key_of(token, &slab), Some(key));
        }
    }

    #[test]
    fn the_highest_number_is_no_token() {
        assert!(of_key(&CallKey::first_of((1 << 20) - 2)).is_some());
        assert_eq!(of_key(&CallKey::first_of((1 << 20) - 1)), None);
        assert_eq!(of_key(&CallKey::UNBEGUN), None);
    }
}
