//! Tests of what a store says about itself.

use super::*;

pub(crate) fn stores_have_different_ids<E: Engine>() {
    let (one, other) = (E::new(), E::new());
    let id = |engine: &E| engine.open().store_id().expect("readable");
    assert_ne!(id(&one), id(&other));
    assert!(id(&one).len() == 8 && id(&one).bytes().all(|byte| byte.is_ascii_hexdigit()));
}
