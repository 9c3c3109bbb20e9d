//! Options in files: `-K`, and `.curlrc`, which is read before the command line. The syntax is curl's: one option in each
//! line, with or without its dashes, and its value after space, `=` or `:`, perhaps in quotes.
//!
//! As in curl, a line that means nothing is a warning, and the rest of the file counts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::option::{self, file};
use crate::cli::parse::parse_one;
use crate::get::args::Early;
use crate::get::say;

pub(super) const OPTIONS: &[option::Opt<Args>] = &[
    option::Opt::bytes(&["-K", "--config"], &[file("<file>")], |args: &mut Args, name| {
        let nested = args.files.depth > 0;
        match read_named(args, &name) {
            Err(why) if nested => Err(why),
            Err(why) => {
                let name = name.to_string_lossy();
                let early = Early::Unreadable(format!("{name}: {why}"));
                args.low.early.get_or_insert(early);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    })
    .short("Read options from this file; - is stdin")
    .long(
        "Read options from this file; - is stdin. Each line has one option, with or without its dashes, and its value after a space, = or :. A value with spaces stands in double quotes, in which \\\\, \\\", \\t, \\n, \\r and \\v are escapes. Lines that begin with # are comments. Without -q, options are first read from .curlrc in CURL_HOME, XDG_CONFIG_HOME or the home directory, or from .config/curlrc there.",
    )
    .env(&["CURL_HOME", "XDG_CONFIG_HOME"]),
    option::Opt::switch(&["-q", "--disable"], |_, _| ())
        .short("As the first argument: do not read .curlrc"),
];

/// What was read of files so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Files that are being read: each but the first is named by a line of the one before.
    depth: usize,
    count: usize,
    bytes: u64,
}

/// Reads `.curlrc`, unless the first argument is `-q`.
pub(super) fn read_default(args: &mut Args, words: &[OsString]) {
    let first = words.first().map(|word| word.as_encoded_bytes());
    if first.is_some_and(|word| word.starts_with(b"-q") || word == b"--disable") {
        return;
    }
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    for path in default_paths(set("CURL_HOME"), set("XDG_CONFIG_HOME"), env::home_dir()) {
        if let Ok(file) = File::open(&path) {
            // As in curl, what cannot be read counts as empty.
            let _ = read_from(args, &path.to_string_lossy(), file);
            return;
        }
    }
}

/// Where `.curlrc` may be, in curl's order.
fn default_paths(
    curl_home: Option<OsString>,
    xdg: Option<OsString>,
    home: Option<PathBuf>,
) -> Vec<PathBuf> {
    let has_xdg = xdg.is_some();
    let mut paths: Vec<PathBuf> = [curl_home.map(PathBuf::from), xdg.map(PathBuf::from)]
        .into_iter()
        .flatten()
        .map(|directory| directory.join(".curlrc"))
        .collect();
    if let Some(home) = home.filter(|home| !home.as_os_str().is_empty()) {
        paths.push(home.join(".curlrc"));
        if !has_xdg {
            paths.push(home.join(".config/curlrc"));
        }
    }
    paths
}

/// `-K`
fn read_named(args: &mut Args, name: &OsStr) -> Result<(), String> {
    if name == "-" {
        return read_from(args, "<stdin>", io::stdin().lock());
    }
    let file = File::open(Path::new(name)).map_err(|error| error.to_string())?;
    read_from(args, &name.to_string_lossy(), file)
}

fn read_from(args: &mut Args, name: &str, source: impl Read) -> Result<(), String> {
    let files = &mut args.files;
    if files.depth == MOST_NESTED || files.count == MOST_FILES {
        return Err(format!(
            "files that name each other: more than {MOST_NESTED} deep, or {MOST_FILES} in all"
        ));
    }
    files.count += 1;
    let room = MOST_BYTES - files.bytes;
    let mut text = Vec::new();
    let read = source.take(room + 1).read_to_end(&mut text);
    let bytes = read.map_err(|error| error.to_string())? as u64;
    if bytes > room {
        return Err(format!("more than {MOST_BYTES} bytes of options"));
    }
    files.bytes += bytes;
    files.depth += 1;
    for (number, line) in (1..).zip(text.split(|b| *b == b'\n')) {
        if let Some(entry) = Entry::read(line)
            && let Err(why) = entry.apply(args)
            && !args.low.global.silent
        {
            say(&format!("Warning: {name}:{number}: {why}"));
        }
    }
    args.files.depth -= 1;
    Ok(())
}

/// One line with an option.
#[derive(Debug, Eq, PartialEq)]
struct Entry {
    /// As it stands there, perhaps without dashes.
    option: Vec<u8>,
    value: Option<Vec<u8>>,
    /// More words follow a value without quotes.
    has_more: bool,
}

impl Entry {
    /// `None` for a comment and an empty line.
    fn read(line: &[u8]) -> Option<Self> {
        let line = skip(line, is_space);
        // `/` and `*` also begin comments, as in curl.
        if matches!(line.first(), None | Some(b'#' | b'/' | b'*' | 0)) {
            return None;
        }
        let dashed = line.starts_with(b"-");
        let separates = |b: u8| is_space(b) || (!dashed && matches!(b, b'=' | b':'));
        let (option, rest) = line.split_at(length_until(line, separates));
        let rest = skip(rest, separates);
        let (value, has_more) = match rest {
            [] => (None, false),
            [b'"', quoted @ ..] => (Some(unquoted(quoted)), false),
            _ => {
                let (value, after) = rest.split_at(length_until(rest, is_space));
                let after = skip(after, is_space);
                (Some(value.to_vec()), !matches!(after, [] | [b'#', ..]))
            }
        };
        Some(Self {
            option: option.to_vec(),
            value,
            has_more,
        })
    }

    /// Sets the option. An error says what is wrong with the line.
    fn apply(self, args: &mut Args) -> Result<(), String> {
        let name = String::from_utf8_lossy(&self.option).into_owned();
        let word = match self.option.starts_with(b"-") {
            true => self.option,
            false => [b"--", &self.option[..]].concat(),
        };
        match &word[..] {
            b"-" | b"--" => return Err(format!("option {name}: is unknown")),
            b"-:" | b"--next" => {
                // Before the first URL of a group, it begins nothing.
                if !args.group.urls.is_empty() {
                    args.next_group();
                }
                return Ok(());
            }
            _ => {}
        }
        let value = self.value.map(OsString::from_vec);
        parse_one(args, OsString::from_vec(word), value).map_err(|error| error.0)?;
        if self.has_more {
            return Err(format!(
                "option {name}: more words follow the value, which needs double quotes"
            ));
        }
        Ok(())
    }
}

/// A value in quotes, without them: up to the second quote, or the end of the line.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => value.extend(bytes.next().map(|escaped| match escaped {
                b't' => b'\t',
                b'n' => b'\n',
                b'r' => b'\r',
                b'v' => 0x0b,
                other => *other,
            })),
            other => value.push(*other),
        }
    }
    value
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn length_until(bytes: &[u8], ends: impl Fn(u8) -> bool) -> usize {
    let end = bytes.iter().position(|b| ends(*b));
    end.unwrap_or(bytes.len())
}

fn skip(bytes: &[u8], passes: impl Fn(u8) -> bool) -> &[u8] {
    &bytes[length_until(bytes, |b| !passes(b))..]
}

/// How deep files may name each other.
const MOST_NESTED: usize = 16;

/// Files in one command.
const MOST_FILES: usize = 200;

/// Bytes in all files together.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
