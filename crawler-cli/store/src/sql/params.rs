//! The parameters of statements.

use rusqlite::ToSql;

/// Parameters: an array of values of one type, or what [`params!`](super::params) makes.
pub(crate) trait Params {
    /// Lends the parameters.
    fn with<T>(&self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T;
}

impl Params for &[&dyn ToSql] {
    fn with<T>(&self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        run(self)
    }
}

impl Params for [&dyn ToSql; 0] {
    fn with<T>(&self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        run(&[])
    }
}

/// One implementation for all lengths would leave the type of `[]` open.
macro_rules! arrays {
    ($($length:literal)*) => {
        $(impl<V: ToSql> Params for [V; $length] {
            fn with<T>(&self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
                run(&self.each_ref().map(|value| value as &dyn ToSql))
            }
        })*
    };
}

arrays! { 1 2 3 4 5 6 7 8 }

impl Params for &[i64] {
    fn with<T>(&self, run: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        let values: Vec<&dyn ToSql> = self.iter().map(|value| value as &dyn ToSql).collect();
        run(&values)
    }
}
