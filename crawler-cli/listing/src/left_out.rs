//! What a page has and no entry can stand for: named as far as memory allows, and counted.

use std::fmt;

/// Names that were left out of a page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LeftOut {
    names: Vec<String>,
    /// The number of all, with those that are not in `names`.
    len: usize,
    /// Bytes of the names.
    bytes: usize,
}

impl LeftOut {
    /// Counts one more, and keeps its name while there is room.
    pub(super) fn add(&mut self, name: &str) {
        self.len += 1;
        if self.bytes >= MOST_BYTES {
            return;
        }
        let name = match name.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.to_owned(),
        };
        self.bytes += name.len() + OVERHEAD;
        self.names.push(name);
    }

    /// Counts more whose names are not known.
    pub(super) fn add_unnamed(&mut self, count: usize) {
        self.len += count;
    }

    /// The number of all.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The names that are known: all, unless they are longer than 16 MiB together.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Takes out the names that are something else after all.
    pub(super) fn retain(&mut self, is_left_out: impl FnMut(&String) -> bool) {
        let before = self.names.len();
        self.names.retain(is_left_out);
        self.len -= before - self.names.len();
    }
}

/// The first names, or with `{:#}` all that are known, and how many more there are.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = if f.alternate() { self.len } else { SHOWN };
        let shown = &self.names[..self.names.len().min(most)];
        for (at, name) in shown.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            match name.char_indices().nth(LONGEST_SHOWN) {
                Some((end, _)) if !f.alternate() => write!(f, "{blank}{}…", &name[..end])?,
                _ => write!(f, "{blank}{name}")?,
            }
        }
        match self.len - shown.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// How many names a message has.
const SHOWN: usize = 20;

/// Longer names are cut in a message, in characters.
const LONGEST_SHOWN: usize = 200;

/// Longer names are cut, in characters.
const LONGEST: usize = 8192;

/// The largest number of bytes of the names of one page, with [`OVERHEAD`] for each.
const MOST_BYTES: usize = 16 << 20;

/// The memory of a name beside its text.
const OVERHEAD: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_all_are_counted() {
        let mut left_out = LeftOut::default();
        for number in 0..21 {
            left_out.add(&number.to_string());
        }
        assert!(left_out.to_string().ends_with("18 19 and 1 more"));
        assert!(format!("{left_out:#}").ends_with("19 20"));
        left_out.retain(|name| name != "7");
        assert_eq!((left_out.len(), left_out.names().len()), (20, 20));
        let long = "é".repeat(LONGEST + 1);
        (0..2000).for_each(|_| left_out.add(&long));
        assert!(left_out.len() == 2020 && left_out.names().len() < 1100);
        let count = left_out.len() - left_out.names().len();
        assert!(format!("{left_out:#}").ends_with(&format!("é… and {count} more")));
    }
}
