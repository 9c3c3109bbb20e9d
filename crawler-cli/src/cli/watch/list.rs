//! URLs of command lines: the operands themselves, the lines of files, and those of standard input.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::cli::usage::{Failure, usage};

/// A URL and where it was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Given {
    pub(super) url: String,
    /// The file and its line; `None` for an operand.
    pub(super) place: Option<(String, u64)>,
}

/// Passes all URLs that the operands name to `visit`: a URL, a file with one URL in each line, or `-` for standard
/// input. Blank lines and those that begin with `#` are left out.
pub(super) fn each(
    operands: &[String],
    visit: &mut dyn FnMut(Given) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if operands.is_empty() {
        return Err(usage("no URL"));
    }
    for operand in operands {
        if operand == "-" {
            lines(io::stdin().lock(), "-", visit)?;
        } else if !operand.contains("://") && can_be_read(Path::new(operand)) {
            let file = File::open(operand)
                .map_err(|error| Failure::Failed(format!("{operand}: {error}")))?;
            lines(BufReader::new(file), operand, visit)?;
        } else {
            let url = operand.clone();
            visit(Given { url, place: None })?;
        }
    }
    Ok(())
}

/// A folder has no lines. What is no regular file has some: a pipe, such as `<(command)` of a shell, or `/dev/stdin`.
fn can_be_read(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| !file.is_dir())
}

fn lines(
    mut reader: impl BufRead,
    name: &str,
    visit: &mut dyn FnMut(Given) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = read_line(&mut reader, &mut line);
        let is_over = !read.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
        let text = String::from_utf8_lossy(&line);
        let url = text.trim_start_matches('\u{feff}').trim();
        if !url.is_empty() && !url.starts_with('#') {
            visit(Given {
                url: url.to_owned(),
                place: Some((name.to_owned(), number)),
            })?;
        }
        if is_over {
            break;
        }
    }
    Ok(())
}

/// Reads a line, of which at most [`LONGEST`] bytes are kept: that is too long for a URL. `false`: it was the last one.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let chunk = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            chunk => chunk?,
        };
        if chunk.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', chunk);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        let room = LONGEST.saturating_sub(line.len()).min(part.len());
        line.extend_from_slice(&part[..room]);
        let used = end.map_or(chunk.len(), |at| at + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// More than a URL may have.
const LONGEST: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_a_url_in_each_line() {
        let text = "\u{feff}http://a/\r\n\n  # no\n http://b/ \nhttp://c/";
        let mut given = Vec::new();
        let read = lines(text.as_bytes(), "list", &mut |url| {
            given.push((url.url, url.place.map(|(_, line)| line)));
            Ok(())
        });
        assert!(read.is_ok());
        let expected = [("http://a/", 1), ("http://b/", 4), ("http://c/", 5)];
        let expected = expected.map(|(url, line)| (url.to_owned(), Some(line)));
        assert_eq!(given, expected);
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let text = format!("{}\nhttp://b/\n", "x".repeat(1 << 20));
        let mut lengths = Vec::new();
        let read = lines(
            BufReader::with_capacity(7, text.as_bytes()),
            "list",
            &mut |url| {
                lengths.push(url.url.len());
                Ok(())
            },
        );
        assert!(read.is_ok());
        assert_eq!(lengths, [LONGEST, 9]);
    }
}
