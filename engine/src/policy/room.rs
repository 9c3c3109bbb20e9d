//! How tables grow and shrink. A client may have one connection or a hundred thousand. So a table takes room for one
//! element first, doubles while it is small, and then grows by an eighth: it never has more than that in advance. A
//! table that becomes empty keeps room for [`KEPT`] elements only.

/// Makes room for one more element.
#[inline]
pub(crate) fn make<T>(table: &mut Vec<T>) {
    if table.len() == table.capacity() {
        grow(table);
    }
}

#[cold]
fn grow<T>(table: &mut Vec<T>) {
    match table.len() {
        0 => table.reserve_exact(1),
        len if len < KEPT => table.reserve(1),
        len => table.reserve_exact(len / 8),
    }
}

/// How many elements an empty table keeps room for.
pub(crate) const KEPT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_had_in_advance_is_an_eighth() {
        let mut table = Vec::new();
        for number in 0..100_000 {
            make(&mut table);
            table.push(number);
            let spare = table.capacity() - table.len();
            let most = if number < KEPT { number } else { number / 8 };
            assert!(spare <= most + 3, "{spare} after {number}");
        }
    }
}
