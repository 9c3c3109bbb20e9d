//! Lists of URLs: one in each line, or JSON lines with a URL in one of the fields. A NUL ends a line, too. Blanks around a URL, CR, a byte order
//! mark, blank lines and lines that begin with `#` are ignored.

use std::io;

use super::ProblemKind;
use super::json;
use super::lines::{Lines, column};
use super::open::Source;
use super::outlet::{Outlet, Place};
use super::resolve::Resolver;

/// Reads the URLs of a list. `field` is the field of JSON lines that has the URL: its name, or names of nested fields
/// with dots between them. A field may hold several URLs.
pub(super) fn read(
    reader: Source,
    field: &str,
    resolver: &Resolver,
    outlet: &mut Outlet,
) -> io::Result<()> {
    let names: Vec<&str> = field.split('.').collect();
    let mut lines = Lines::new(reader);
    while let Some((number, line)) = lines.next(outlet)? {
        // URLs come in the order of the line: each is counted from the one before.
        let (mut counted, mut columns) = (0, 0);
        let mut add = |at: usize, url: &str| {
            columns += column(&line[counted..], at - counted) - 1;
            counted = at;
            let place = Place {
                line: number,
                column: columns + 1,
                written: url,
                text: "",
            };
            outlet.add(place, resolver.absolute(url));
        };
        let text = line.trim_ascii();
        let problem = match text.first() {
            None | Some(b'#') => continue,
            Some(b'{') => match json::urls(line, &names) {
                Ok(urls) => {
                    urls.for_each(|(at, url)| add(at, url.trim()));
                    continue;
                }
                Err(problem) => (ProblemKind::Malformed, problem),
            },
            Some(_) if text.len() > LONGEST_URL => (
                ProblemKind::TooLong,
                format!("the URL is longer than {LONGEST_URL} bytes"),
            ),
            Some(_) => match str::from_utf8(text) {
                Ok(url) => {
                    let at = line.len() - line.trim_ascii_start().len();
                    add(at, url);
                    continue;
                }
                Err(_) => (ProblemKind::Malformed, "not UTF-8".to_owned()),
            },
        };
        outlet.line_problem(number, problem.0, problem.1);
    }
    outlet.end_of_lines();
    Ok(())
}

/// Longest URL of a list in bytes. No server takes longer URLs.
const LONGEST_URL: usize = 64 << 10;
