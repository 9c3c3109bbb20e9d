//! The words of expressions, for the texts. What they do is in [`expr`](crate::find::expr).

use super::options::{Group, Hint, Opt, Set, Val};

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

const fn file(name: &'static str) -> Val {
    Val {
        name,
        hint: Hint::File,
    }
}

/// The words.
#[rustfmt::skip]
pub(super) const WORDS: &[Opt] = &[
    word(&["-name"], &[any("GLOB")], Group::Tests, "the name fits the shell pattern",
        "The name fits the shell pattern: *, ?, [a-z], [!a-z], [[:alpha:]], and \\ before a special character. It is the whole name, percent-decoded; for a start the last segment of its URL."),
    word(&["-iname"], &[any("GLOB")], Group::Tests, "the name fits, whatever its case",
        "The name fits the shell pattern, upper and lower case being the same."),
    word(&["-path", "-wholename"], &[any("GLOB")], Group::Tests, "the whole path fits the shell pattern",
        "The whole path fits the shell pattern, in which * and ? take / too. The path is that of the URL, percent-decoded, from its first / and without a last one."),
    word(&["-ipath", "-iwholename"], &[any("GLOB")], Group::Tests, "the whole path fits, whatever its case",
        "The whole path fits the shell pattern, upper and lower case being the same."),
    word(&["-regex"], &[any("RE")], Group::Tests, "the whole path fits the regular expression",
        "The whole path, as -path has it, fits the regular expression. Back-references are not supported."),
    word(&["-iregex"], &[any("RE")], Group::Tests, "the whole path fits the expression, whatever its case",
        "The whole path fits the regular expression, upper and lower case being the same."),
    word(&["-regextype"], &[Val { name: "TYPE", hint: Hint::OneOf(&["emacs", "posix-basic", "posix-extended", "egrep", "grep", "sed", "awk", "rust"]) }], Group::Tests, "the syntax of regular expressions after it",
        "The syntax of the -regex and -iregex after it: emacs, which holds without it, findutils-default, posix-basic, posix-extended, posix-egrep, posix-awk, posix-minimal-basic, egrep, grep, sed, ed, awk, gnu-awk, or rust for that of Rust's regex crate."),
    word(&["-type"], &[Val { name: "f|d", hint: Hint::OneOf(&["f", "d", "f,d"]) }], Group::Tests, "it is a file, a directory, or with f,d either",
        "It is a file (f), a directory (d), or with f,d either. What a symbolic link leads to counts."),
    word(&["-size"], &[any("[+-]N[cwbkMG]")], Group::Tests, "more than, less than or exactly N units",
        "Its size, rounded up to units, is more than (+), less than (-) or exactly N: bytes (c), 2 (w), 512 (b, or no letter), 1024 (k), 1024^2 (M) or 1024^3 (G) of them. So -size -1M holds for what is empty only. Directories have no size, and it never holds for them. When the listing shows too little, the server is asked."),
    word(&["-empty"], &[], Group::Tests, "an empty file or directory",
        "It is a file of no bytes, or a directory whose listing has no entries."),
    word(&["-newer", "-newermm"], &[file("URL|FILE")], Group::Tests, "changed later than that",
        "It was changed later than the page at the URL, by its Last-Modified, or than the local file."),
    word(&["-newermt"], &[any("DATE")], Group::Tests, "changed later than at that time",
        "It was changed later than at that time: 2026-11-21, 2026-11-21 14:05, 2026-11-21T14:05:00Z, @1795269900, yesterday, '2 days ago', and what else GNU date reads. Without a zone it is that of the system."),
    word(&["-mtime"], &[any("[+-]N")], Group::Tests, "changed N times 24 hours ago",
        "It was changed more than (+), less than (-) or exactly N times 24 hours ago, fractions of them not counted."),
    word(&["-mmin"], &[any("[+-]N")], Group::Tests, "changed N minutes ago",
        "It was changed more than (+), less than (-) or exactly N minutes ago."),
    word(&["-daystart"], &[], Group::Tests, "count -mtime and -mmin after it from midnight",
        "The -mtime and -mmin after it count from the end of today instead of from now."),
    word(&["-true"], &[], Group::Tests, "always holds",
        "Always holds."),
    word(&["-false"], &[], Group::Tests, "never holds",
        "Never holds."),
    word(&["("], &[any("EXPR )")], Group::Operators, "EXPR as one; in a shell \\( and \\)",
        "EXPR, as one. Each parenthesis is an argument of its own, and a shell needs a backslash before it."),
    word(&["!", "-not"], &[any("EXPR")], Group::Operators, "EXPR does not hold",
        "EXPR does not hold."),
    word(&["-a", "-and"], &[any("EXPR")], Group::Operators, "both hold; may be left out",
        "What stands before it holds, and EXPR too; EXPR is looked at only then. It may be left out."),
    word(&["-o", "-or"], &[any("EXPR")], Group::Operators, "either holds",
        "What stands before it holds, or else EXPR; EXPR is looked at only if it does not."),
    word(&[","], &[any("EXPR")], Group::Operators, "both are looked at; EXPR counts",
        "What stands before it is looked at, and then EXPR, which alone counts."),
    word(&["-print"], &[], Group::Actions, "print the URL; done if there is no other action",
        "Print the URL and a newline. Without any action but -prune and -quit, this is done with what the expression as a whole holds for."),
    word(&["-print0"], &[], Group::Actions, "print the URL and a NUL",
        "Print the URL and a NUL instead of a newline."),
    word(&["-printf"], &[any("FORMAT")], Group::Actions, "print as FORMAT says",
        "Print FORMAT, in which \\n, \\t, \\0, \\NNN and such are as in C, \\c ends it, and %, with an optional width as in %-20p, begins: %p URL, %f name, %P path below the start, %h URL of what holds it, %H URL of the start, %s bytes, %k kilobytes, %b blocks of 512 bytes, %d depth, %y and %Y type (f or d), %t time of the last change, %Tk the part k of it as strftime has it, %T@ seconds since 1970, %T+ date and time, %% a %. %f and %P are percent-decoded. What is not known is ?; what is not exactly known has ~ before it."),
    word(&["-ls"], &[], Group::Actions, "print what ls -dils would",
        "Print inode, kilobytes, type and mode, links, owner, group, size, time and URL, as ls -dils does; what a web server does not tell is ?."),
    word(&["-fprint"], &[file("FILE")], Group::Actions, "as -print, into the file",
        "As -print, into the file, which is emptied first and written even if there is nothing to write. /dev/stdout and /dev/stderr mean the streams."),
    word(&["-fprint0"], &[file("FILE")], Group::Actions, "as -print0, into the file",
        "As -print0, into the file; see -fprint."),
    word(&["-fprintf"], &[file("FILE"), any("FORMAT")], Group::Actions, "as -printf, into the file",
        "As -printf, into the file; see -fprint."),
    word(&["-fls"], &[file("FILE")], Group::Actions, "as -ls, into the file",
        "As -ls, into the file; see -fprint."),
    word(&["-exec"], &[any("COMMAND... ;|{} +")], Group::Actions, "run the command with the URL, or with many, for {}",
        "Run the command, with the URL wherever {} stands; holds if it exits with 0. The search waits for it. A shell needs a backslash before the ; at the end. With {} + in its place, the command gets many URLs at a time, in place of {}, and runs beside the search; it always holds, and when the command fails the exit status is 1."),
    word(&["-prune"], &[], Group::Actions, "do not go below; always holds",
        "If it is a directory, send no request for what is below it. Always holds."),
    word(&["-quit"], &[], Group::Actions, "end the search",
        "End the search at once; commands put off by {} + are run."),
    word(&["-mindepth"], &[any("N")], Group::Search, "no tests and actions above N levels below a start",
        "Do no tests and actions less than N levels below a start, which is level 0."),
    word(&["-maxdepth"], &[any("N")], Group::Search, "go no more than N levels below a start",
        "Go no more than N levels below a start. What is deeper is neither asked for nor found."),
];
