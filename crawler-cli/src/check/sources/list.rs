//! Lists of URLs: one in each line. Blanks around a URL, CR, a byte order mark, blank lines and lines that begin with `#`
//! are ignored.

use std::io;

use super::open::Source;
use super::outlet::{Outlet, Place};
use super::records::{LONGEST_URL, Lines, column};
use super::resolve::Resolver;

pub(super) fn read(
    reader: Source,
    max_size: u64,
    resolver: &Resolver,
    outlet: &mut Outlet,
) -> io::Result<()> {
    let mut lines = Lines::new(reader, LONGEST_URL, max_size);
    while let Some((number, line)) = lines.next(outlet)? {
        let url = line.trim_ascii();
        if url.is_empty() || url.starts_with(b"#") {
            continue;
        }
        let at = line.len() - line.trim_ascii_start().len();
        let place = Place {
            line: number,
            column: column(line, at),
            text: "",
        };
        outlet.add(place, resolver.absolute(&String::from_utf8_lossy(url)));
    }
    outlet.end_of_lines();
    Ok(())
}

/// Adds the URLs of a list in memory.
pub(super) fn given(urls: &[Box<str>], resolver: &Resolver, outlet: &mut Outlet) {
    for (line, url) in (1..).zip(urls) {
        if outlet.is_stopped() {
            return;
        }
        let place = Place {
            line,
            column: 1,
            text: "",
        };
        outlet.add(place, resolver.absolute(url));
    }
}
