//! The words of an expression: which there are, and what they make of a search.

use super::UsageError;
use super::options::{Args, Group, Hint, Opt, Set, Val, number};
use crate::find::Kind;
use crate::find::report::Format;

/// Takes the words that were typed and makes them tests of the search.
///
/// # Errors
/// What is wrong with the first wrong word.
pub(super) fn apply(args: &mut Args) -> Result<(), UsageError> {
    let words = std::mem::take(&mut args.words);
    let mut find = std::mem::take(&mut args.find);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let wrong =
            |value: &str, why: &dyn std::fmt::Display| UsageError(format!("{word} {value}: {why}"));
        if word == "-print0" {
            args.output.format = Format::Nul;
            continue;
        }
        // The parser has seen to it that it is there.
        let value = words.next().unwrap_or_default();
        let depth = || number(value).map_err(|why| wrong(value, &why));
        find = match word {
            "-name" => find.name(value),
            "-iname" => find.iname(value),
            "-regex" => find.regex(value).map_err(|error| wrong(value, &error))?,
            "-type" => match value {
                "f" => find.kind(Kind::File),
                "d" => find.kind(Kind::Directory),
                _ => return Err(wrong(value, &"neither f nor d")),
            },
            "-mindepth" => find.min_depth(depth()?),
            "-maxdepth" => find.max_depth(depth()?),
            _ => return Err(UsageError(format!("unknown test {word}"))),
        };
    }
    args.find = find;
    Ok(())
}

const fn word(
    names: &'static [&'static str],
    values: &'static [Val],
    group: Group,
    short: &'static str,
    long: &'static str,
) -> Opt {
    Opt {
        names,
        values,
        group,
        short,
        long,
        default: "",
        env: &[],
        set: Set::Word,
    }
}

const fn any(name: &'static str) -> Val {
    Val {
        name,
        hint: Hint::Any,
    }
}

/// The words. How many values each has, its row tells.
#[rustfmt::skip]
pub(super) const WORDS: &[Opt] = &[
    word(&["-name"], &[any("GLOB")], Group::Tests, "the name fits the shell pattern",
        "The name fits the shell pattern: *, ?, [a-z], [!a-z], and \\ before a special character. It is the whole name, percent-decoded; for a start the last segment of its URL."),
    word(&["-iname"], &[any("GLOB")], Group::Tests, "the same without regard to case",
        "The name fits the shell pattern, upper and lower case being the same."),
    word(&["-regex"], &[any("RE")], Group::Tests, "the whole path fits the regular expression",
        "The whole path fits the regular expression, in the syntax of Rust's regex crate. The path is that of the URL, percent-decoded, from its first / and without a last one."),
    word(&["-type"], &[Val { name: "f|d", hint: Hint::OneOf(&["f", "d"]) }], Group::Tests, "it is a file, a directory",
        "It is a file, or a directory."),
    word(&["-mindepth"], &[any("N")], Group::Tests, "it is at least N levels below its start",
        "It is at least N levels below its start, which is level 0."),
    word(&["-maxdepth"], &[any("N")], Group::Search, "go no more than N levels below a start",
        "Go no more than N levels below a start. What is deeper is neither asked for nor found."),
    word(&["-print0"], &[], Group::Output, "the same as -0", "The same as -0."),
];
