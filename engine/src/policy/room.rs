//! How tables grow, and what they give back. A client may have one connection or a hundred thousand, so a table takes
//! room for one at first, doubles while that is cheap, and then grows by an eighth: what it has in advance is never
//! more than that. One that is empty after a rush keeps room for [`KEPT`] only.

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

/// Elements for which an empty table keeps its room.
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
