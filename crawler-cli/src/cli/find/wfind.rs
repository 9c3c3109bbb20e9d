//! `--compat wfind`: the flags of wfind with their meaning there, so that its users can switch. What wfind leaves to
//! chance (retries without end, pages cut at `--max-body-size`, connections without number) is done as `find` does it.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::UsageError;
use super::options::{Args, number};
use crate::find::{Find, Kind};

/// What the flags say.
struct Flags {
    name: String,
    kind: Kind,
    recursive: bool,
    parallel: bool,
    figures: bool,
    /// Settings of connections, in the order given.
    settings: Vec<Setting>,
    urls: Vec<String>,
}

type Setting = Box<dyn FnOnce(Find) -> Find>;

struct Flag {
    letter: Option<char>,
    name: &'static str,
    help: &'static str,
    set: Set,
}

enum Set {
    /// A flag that may be followed by `=true` or `=false`, in one word.
    Switch(fn(&mut Flags, bool)),
    Text(fn(&mut Flags, &str) -> Result<(), String>),
    /// A number that is kept as a setting.
    Number(fn(u64) -> Setting),
}

/// Reads wfind's arguments into `args`. `false`: they ask for help.
///
/// # Errors
/// The first argument that means nothing, or that `find` cannot mean.
pub(super) fn read(words: Vec<String>, args: &mut Args) -> Result<bool, UsageError> {
    let mut flags = Flags {
        name: ".+".to_owned(),
        kind: Kind::File,
        recursive: true,
        parallel: true,
        figures: false,
        settings: Vec::new(),
        urls: Vec::new(),
    };
    let mut words = words.into_iter();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            _ if only_urls => flags.urls.push(word),
            None | Some("") => flags.urls.push(word),
            Some("-") => only_urls = true,
            Some("h" | "-help") => return Ok(false),
            Some(rest) => match rest.strip_prefix('-') {
                Some(long) => flags.long(long, &mut words)?,
                None => flags.letters(rest, &mut words)?,
            },
        }
    }
    flags.apply(args)?;
    Ok(true)
}

type Words<'w> = &'w mut dyn Iterator<Item = String>;

impl Flags {
    /// `name`, `name=value` or `name value`.
    fn long(&mut self, word: &str, words: Words<'_>) -> Result<(), UsageError> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let flag = FLAGS.iter().find(|flag| flag.name == name);
        let flag = flag.ok_or_else(|| UsageError(format!("wfind has no flag --{name}")))?;
        self.set(flag, &format!("--{name}"), value, words)
    }

    /// Flags of one letter, the last of which may have a value.
    fn letters(&mut self, letters: &str, words: Words<'_>) -> Result<(), UsageError> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let flag = FLAGS.iter().find(|flag| flag.letter == Some(letter));
            let flag = flag.ok_or_else(|| UsageError(format!("wfind has no flag -{letter}")))?;
            let name = format!("-{letter}");
            let after = rest.as_str();
            let attached = after.strip_prefix('=');
            match (&flag.set, attached) {
                (Set::Switch(_), None) => self.set(flag, &name, None, words)?,
                (Set::Switch(_), Some(_)) => return self.set(flag, &name, attached, words),
                _ => {
                    let value = attached.or((!after.is_empty()).then_some(after));
                    return self.set(flag, &name, value, words);
                }
            }
        }
        Ok(())
    }

    fn set(
        &mut self,
        flag: &Flag,
        name: &str,
        value: Option<&str>,
        words: Words<'_>,
    ) -> Result<(), UsageError> {
        if let Set::Switch(set) = flag.set {
            let on = match value {
                None | Some("true" | "1" | "t" | "T" | "TRUE" | "True") => true,
                Some("false" | "0" | "f" | "F" | "FALSE" | "False") => false,
                Some(value) => {
                    return Err(UsageError(format!(
                        "{name}={value}: neither true nor false"
                    )));
                }
            };
            set(self, on);
            return Ok(());
        }
        let value = match value {
            Some(value) => value.to_owned(),
            None => words
                .next()
                .ok_or_else(|| UsageError(format!("{name} needs a value")))?,
        };
        let set = match flag.set {
            Set::Text(set) => set(self, &value),
            Set::Number(make) => number(&value).map(|number| self.settings.push(make(number))),
            Set::Switch(_) => Ok(()),
        };
        set.map_err(|why| UsageError(format!("{name} {value}: {why}")))
    }

    fn apply(self, args: &mut Args) -> Result<(), UsageError> {
        let [url] = self.urls.as_slice() else {
            let error = match self.urls.as_slice() {
                [] => "no URL to start from",
                _ => "more than one URL, of which wfind reads only the first",
            };
            return Err(UsageError(error.to_owned()));
        };
        let slash = if url.ends_with('/') { "" } else { "/" };
        args.start(&format!("{url}{slash}"))?;
        let pattern = match self.kind {
            Kind::File => self.name.clone(),
            Kind::Directory => directory_pattern(&self.name),
        };
        let find = std::mem::take(&mut args.find);
        let mut find = find.kind(self.kind).min_depth(1).href(&pattern)?;
        if !self.recursive {
            find = find.max_depth(1);
        }
        if !self.parallel {
            find = find.connections(NonZeroUsize::MIN);
        }
        for set in self.settings {
            find = set(find);
        }
        args.find = find;
        args.output.text_report |= self.figures;
        Ok(())
    }
}

/// What wfind makes of the pattern for directories, whose links end in `/`, and may begin with `./`.
fn directory_pattern(pattern: &str) -> String {
    let mut pattern = pattern.to_owned();
    if let Some(body) = pattern.strip_suffix('$')
        && !body.ends_with('\\')
    {
        pattern = format!("{body}/?$");
    }
    pattern
}

/// The help text of this mode.
pub(super) fn help() -> String {
    let mut text = String::from(
        "Usage: crawler-cli find --compat wfind URL [FLAG...]\n\n\
         Finds below the URL with the flags of wfind. Results come as they are found, what cannot be read\n\
         is named on standard error, and nothing above the URL is read.\n\n",
    );
    for flag in FLAGS {
        let letter = match flag.letter {
            Some(letter) => format!("-{letter}, "),
            None => "    ".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {letter}--{}\n        {}", flag.name, flag.help);
    }
    text
}

const fn flag(letter: Option<char>, name: &'static str, help: &'static str, set: Set) -> Flag {
    Flag {
        letter,
        name,
        help,
        set,
    }
}

fn milliseconds(number: u64) -> Duration {
    // 0 means no limit in wfind; a year is as good.
    match number {
        0 => Duration::from_secs(365 * 24 * 60 * 60),
        number => Duration::from_millis(number),
    }
}

/// At most so many connections stay idle if there are no more.
fn pool(size: u64) -> Setting {
    let size = usize::try_from(size).ok().and_then(NonZeroUsize::new);
    Box::new(move |find| match size {
        Some(size) => find.at_most_connections(size),
        // Without limit.
        None => find,
    })
}

#[rustfmt::skip]
const FLAGS: &[Flag] = &[
    flag(Some('n'), "name", "regular expression that the link's last segment has a match of [.+]",
        Set::Text(|flags, value| { flags.name = value.to_owned(); Ok(()) })),
    flag(Some('t'), "type", "f: files, d: directories [f]",
        Set::Text(|flags, value| {
            flags.kind = match value {
                "f" | "" => Kind::File,
                "d" => Kind::Directory,
                _ => return Err("neither f nor d".to_owned()),
            };
            Ok(())
        })),
    flag(Some('r'), "recursive", "go below the URL's own listing [true]",
        Set::Switch(|flags, on| flags.recursive = on)),
    flag(None, "async", "more than one request at a time; 8 [true]",
        Set::Switch(|flags, on| flags.parallel = on)),
    flag(Some('v'), "verbose", "write figures to standard error at the end, in place of a log",
        Set::Switch(|flags, on| flags.figures = on)),
    flag(None, "connection-timeout", "milliseconds for connecting",
        Set::Number(|number| Box::new(move |find| find.connect_timeout(milliseconds(number))))),
    flag(None, "keep-alive-interval", "milliseconds between TCP keep-alive probes",
        Set::Number(|number| Box::new(move |find| find.keep_alive(milliseconds(number))))),
    flag(None, "tls-handshake-timeout", "milliseconds for the TLS handshake",
        Set::Number(|number| Box::new(move |find| find.handshake_timeout(milliseconds(number))))),
    flag(None, "idle-connection-timeout", "milliseconds for which an idle connection is kept",
        Set::Number(|number| Box::new(move |find| find.idle_timeout(milliseconds(number))))),
    flag(None, "connection-pool-size", "connections at the most; 0: 8",
        Set::Number(pool)),
    flag(None, "connection-pool-size-per-host", "the same, as there is one host",
        Set::Number(pool)),
    flag(None, "max-body-size", "bytes of a page; a larger one is an error, never a page cut short",
        Set::Number(|number| Box::new(move |find| find.max_body(number)))),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::find::options::{Ask, Parsed, parse};

    fn parsed(args: &[&str]) -> Result<Parsed, String> {
        let args = [&["--compat", "wfind"], args].concat();
        let args = args.iter().map(Into::into).collect();
        parse(args, |_| None).map_err(|error| error.0)
    }

    #[test]
    fn its_flags_are_read_as_there() {
        for args in [
            &["http://h/a"][..],
            &["http://h/", "-n", "x"],
            &["-nx", "-t=d", "http://h/", "-rv"],
            &["--name=x", "--type", "d", "--recursive=false", "http://h/"],
            &[
                "http://h/",
                "-r=false",
                "--async=false",
                "--max-body-size",
                "10",
            ],
            &[
                "http://h/",
                "--connection-timeout=0",
                "--connection-pool-size",
                "0",
            ],
            &["--", "http://h/"],
        ] {
            assert!(matches!(parsed(args), Ok(Parsed::Args(_))), "{args:?}");
        }
        for args in [&["-h"][..], &["--help"]] {
            assert!(matches!(parsed(args), Ok(Parsed::Ask(Ask::Wfind))));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_an_error() {
        for (args, message) in [
            (&[][..], "no URL to start from"),
            (
                &["http://a/", "http://b/"],
                "more than one URL, of which wfind reads only the first",
            ),
            (&["http://h/", "-t", "x"], "-t x: neither f nor d"),
            (&["http://h/", "-x"], "wfind has no flag -x"),
            (&["http://h/", "--json"], "wfind has no flag --json"),
            (&["http://h/", "-n"], "-n needs a value"),
            (
                &["http://h/", "-r=maybe"],
                "-r=maybe: neither true nor false",
            ),
            (
                &["http://h/", "--max-body-size", "1M"],
                "--max-body-size 1M: not a number that fits here",
            ),
        ] {
            assert_eq!(
                parsed(args).map(|_| ()),
                Err(message.to_owned()),
                "{args:?}"
            );
        }
        let glob = parsed(&["http://h/", "-n", "*.iso"]).map(|_| ());
        assert!(glob.is_err_and(|message| message.contains("*.iso")));
    }

    #[test]
    fn the_end_of_a_directory_may_have_its_slash() {
        assert_eq!(directory_pattern("^a$"), "^a/?$");
        assert_eq!(directory_pattern("a\\$"), "a\\$");
        assert_eq!(directory_pattern("a"), "a");
    }

    #[test]
    fn every_flag_is_in_the_help() {
        let help = help();
        for flag in FLAGS {
            assert!(help.contains(&format!("--{}\n", flag.name)));
        }
        assert!(help.lines().all(|line| line.len() <= 100));
    }
}
