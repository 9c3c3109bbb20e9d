//! `crawler-cli get`: the command line. The transfers are in [`get`](crate::get).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches as _};

use crate::cli::usage::{Failure, UsageError};
use crate::cli::{matches_of, values_after};
use crate::get::options::{Args, Data, Global, Group, Options};

/// Runs the command with the arguments that follow its name, and returns curl's exit code for what happened to the
/// last URL.
///
/// # Errors
/// The arguments ask for a text, or mean nothing.
pub(super) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    Ok(crate::get::run(read(words)?))
}

/// The options, and for each switch the one that switches it off.
pub(super) fn command() -> Command {
    let command = Options::augment_args(Command::new("get"));
    SWITCHES.into_iter().fold(command, |command, (id, off)| {
        let off = Arg::new(off).long(off).action(ArgAction::SetTrue);
        command.arg(off.overrides_with(id).hide(true))
    })
}

/// Reads the arguments.
///
/// # Errors
/// The first argument that means nothing, or a group without a URL.
fn read(words: &[OsString]) -> Result<Args, Failure> {
    let mut args = Args::default();
    let mut groups = groups(words)?.into_iter().peekable();
    while let Some(words) = groups.next() {
        let matches = matches_of("get", &words)?;
        let options = Options::from_arg_matches(&matches)?;
        if options.urls.is_empty() {
            let error = match groups.peek() {
                Some(_) => "missing URL before --next",
                None => "no URL specified",
            };
            return Err(UsageError(error.to_owned()).into());
        }
        set_global(&mut args.global, &options, &matches);
        args.groups.push(group(options, &matches));
    }
    Ok(args)
}

/// The words of each group of options and URLs, as clap reads them: each option and each value is a word of its own.
///
/// # Errors
/// A word is `-`, which is neither an option nor a URL.
fn groups(words: &[OsString]) -> Result<Vec<Vec<OsString>>, UsageError> {
    let command = command();
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    let mut words = words.iter().cloned();
    while let Some(word) = words.next() {
        match word.as_bytes() {
            // What follows is not read.
            b"-h" | b"--help" | b"-V" | b"--version" | b"--man" => {
                group.push(word);
                break;
            }
            b"-" => return Err(UsageError("option -: is unknown".to_owned())),
            b"--" => {
                group.push(word);
                group.extend(words.by_ref());
            }
            b"--next" => groups.push(std::mem::take(&mut group)),
            b"--remote-name" => group.extend(remote_name()),
            [b'-', b'-', ..] => {
                let values = values_after(&command, &word.to_string_lossy());
                group.push(word);
                group.extend(words.by_ref().take(values));
            }
            // Letters, the last perhaps with its value.
            [b'-', letters @ ..] => {
                for (at, letter) in letters.iter().enumerate() {
                    let name = format!("-{}", char::from(*letter));
                    let takes_value = values_after(&command, &name) > 0;
                    match letter {
                        b':' => groups.push(std::mem::take(&mut group)),
                        b'O' => group.extend(remote_name()),
                        _ => group.push(name.into()),
                    }
                    if takes_value {
                        let attached = letters[at + 1..].to_vec();
                        let attached = Some(attached).filter(|value| !value.is_empty());
                        let value = attached.map(OsString::from_vec).or_else(|| words.next());
                        group.extend(value);
                        break;
                    }
                }
            }
            _ => group.push(word),
        }
    }
    groups.push(group);
    Ok(groups)
}

/// `-O` as a value of `-o`, because the order of the two decides which URL each is for. No argument has a NUL.
fn remote_name() -> [OsString; 2] {
    ["--output".into(), REMOTE_NAME.into()]
}

/// Sets what holds for all groups.
fn set_global(global: &mut Global, options: &Options, matches: &ArgMatches) {
    let set = |switch: &mut bool, is_on: bool, off: &str| {
        *switch = (*switch || is_on) && !matches.get_flag(off);
    };
    set(&mut global.silent, options.silent, "no-silent");
    set(&mut global.show_error, options.show_error, "no-show-error");
    set(&mut global.verbose, options.verbose, "no-verbose");
    set(&mut global.timing, options.timing, "no-timing");
    global.interval = options.rate.or(global.interval);
}

fn group(mut options: Options, matches: &ArgMatches) -> Group {
    let outputs = std::mem::take(&mut options.output).into_iter();
    let outputs = outputs.map(|name| (name != REMOTE_NAME).then(|| PathBuf::from(name)));
    Group {
        data: data(matches),
        outputs: outputs.collect(),
        options,
    }
}

/// The pieces of a request body, in the order of the command line.
fn data(matches: &ArgMatches) -> Vec<Data> {
    let pieces = |id: &str, kind: fn(OsString) -> Data| {
        let places = matches.indices_of(id).into_iter().flatten();
        let values = matches.get_many::<OsString>(id).into_iter().flatten();
        let pieces = places.zip(values.cloned().map(kind));
        pieces.collect::<Vec<_>>()
    };
    let mut all = pieces("data", Data::Ascii);
    all.extend(pieces("data_binary", Data::Binary));
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, piece)| piece).collect()
}

/// Switches, each with the name that switches it off.
const SWITCHES: [(&str, &str); 11] = [
    ("compressed", "no-compressed"),
    ("fail", "no-fail"),
    ("head", "no-head"),
    ("include", "no-include"),
    ("insecure", "no-insecure"),
    ("lenient", "no-lenient"),
    ("location", "no-location"),
    ("show_error", "no-show-error"),
    ("silent", "no-silent"),
    ("timing", "no-timing"),
    ("verbose", "no-verbose"),
];
/// What stands for the name of a file in the place of `-O`.
const REMOTE_NAME: &str = "\0";

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn read(words: &[&str]) -> Result<Args, Failure> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        super::read(&words)
    }

    fn first(args: &[&str]) -> Group {
        read(args).unwrap().groups.remove(0)
    }

    #[test]
    fn bundles_take_switches_and_then_one_value() {
        let args = read(&["-sSfo", "file", "u1", "-Iofile2", "u2", "-i"]).unwrap();
        assert!(args.global.silent && args.global.show_error);
        let group = first(&["-sSfo", "file", "u1", "-Iofile2", "u2"]);
        assert!(group.options.fail && group.options.request.head && !group.options.include);
        assert_eq!(group.outputs, [Some("file".into()), Some("file2".into())]);
        assert_eq!(group.options.urls, ["u1", "u2"]);
    }

    #[test]
    fn outputs_and_pieces_of_a_body_keep_their_order() {
        let group = first(&["-oa", "-O", "--output", "b", "-sO", "--remote-name", "u"]);
        let name = |name: &str| Some(PathBuf::from(name));
        assert_eq!(group.outputs, [name("a"), None, name("b"), None, None]);
        let group = first(&["-d1", "--data-binary", "2", "--data", "3", "u"]);
        let pieces = [
            Data::Ascii("1".into()),
            Data::Binary("2".into()),
            Data::Ascii("3".into()),
        ];
        assert_eq!(group.data, pieces);
        assert_eq!(
            first(&["-XPOST", "-d=a=b", "-d--next", "u"]).data,
            [Data::Ascii("=a=b".into()), Data::Ascii("--next".into()),]
        );
    }

    #[test]
    fn two_dashes_end_the_options() {
        let group = first(&["--", "-", "-f", "--", "--next"]);
        assert!(!group.options.fail);
        assert_eq!(group.options.urls, ["-", "-f", "--", "--next"]);
    }

    #[test]
    fn a_value_may_look_like_an_option_and_need_not_be_unicode() {
        let mut words = vec![OsString::from("-o"), "-f".into(), "-d".into()];
        words.push(OsString::from_vec(vec![0xff, 0]));
        words.push("u".into());
        let group = super::read(&words).unwrap().groups.remove(0);
        assert_eq!(group.outputs, [Some("-f".into())]);
        assert_eq!(group.data, [Data::Ascii(OsString::from_vec(vec![0xff, 0]))]);
        assert!(!group.options.fail);
    }

    #[test]
    fn long_forms_and_their_negation() {
        let group = first(&["--fail", "--include", "--no-fail", "u", "--request", "PUT"]);
        assert!(group.options.include && !group.options.fail);
        assert_eq!(group.options.request.request.unwrap(), "PUT");
    }

    #[test]
    fn a_text_is_printed_as_soon_as_it_is_asked_for() {
        for words in [&["-h"][..], &["-sh"], &["u", "--help", "--foo"], &["-ih"]] {
            assert!(matches!(read(words), Err(Failure::Text(_))), "{words:?}");
        }
    }

    #[test]
    fn usage_errors() {
        let table = "
             => no URL specified
            -s => no URL specified
            u --next => no URL specified
            --next u => missing URL before --next
            - u => option -: is unknown
            -sQ u => unexpected argument '-Q' found
            -sm5fi u => --max-time 5fi: expected a number
            u -o => a value is required for '--output <file>' but none was supplied
            --rate 3/x u => --rate 3/x: unsupported unit, use s, m, h or d
            -b file u => --cookie <name=value>: expected NAME=VALUE
            -u me u => --user <user:password>: expected USER:PASSWORD";
        for row in table.lines().skip(1) {
            let (line, error) = row.split_once(" => ").expect("a row");
            let args: Vec<&str> = line.split_whitespace().collect();
            let Err(Failure::Usage(said)) = read(&args) else {
                panic!("{row}");
            };
            assert_eq!(said.0, error, "{row}");
        }
    }
}
