//! Functions of the caller in configurations that are cloned, compared and shown.

use std::fmt;
use std::sync::Arc;

/// A function of the caller. Clones of one function are equal.
pub(crate) struct Hook<F: ?Sized>(pub(crate) Arc<F>);

impl<F: ?Sized> Clone for Hook<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: ?Sized> fmt::Debug for Hook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl<F: ?Sized> Eq for Hook<F> {}

impl<F: ?Sized> PartialEq for Hook<F> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
