//! The words of expressions, for the texts. What the words do is in [`expr`](crate::find::expr).

use super::args::Args;
use crate::cli::option::{Opt, Set, Value, any, file, one_of};

const fn word(
    names: &'static [&'static str],
    values: &'static [Value],
    short: &'static str,
    long: &'static str,
) -> Opt<Args> {
    Opt::new(names, values, Set::Word).short(short).long(long)
}

pub(super) const TESTS: &[Opt<Args>] = &[
    word(
        &["-name"],
        &[any("GLOB")],
        "the name fits the shell pattern",
        "The name fits the shell pattern: *, ?, [a-z], [!a-z], [[:alpha:]], and \\ before a special character. The whole name must fit. It is percent-decoded; the name of a start is the last segment of its URL.",
    ),
    word(
        &["-iname"],
        &[any("GLOB")],
        "the name fits, in upper or lower case",
        "The name fits the shell pattern; upper and lower case are the same.",
    ),
    word(
        &["-path", "-wholename"],
        &[any("GLOB")],
        "the whole path fits the shell pattern",
        "The whole path fits the shell pattern, in which * and ? also match /. The path is that of the URL, percent-decoded, from its first / and without a / at the end.",
    ),
    word(
        &["-ipath", "-iwholename"],
        &[any("GLOB")],
        "the whole path fits, in upper or lower case",
        "The whole path fits the shell pattern; upper and lower case are the same.",
    ),
    word(
        &["-regex"],
        &[any("RE")],
        "the whole path fits the regular expression",
        "The whole path (the same as for -path) fits the regular expression. Back-references are not supported.",
    ),
    word(
        &["-iregex"],
        &[any("RE")],
        "the whole path fits, in upper or lower case",
        "The whole path fits the regular expression; upper and lower case are the same.",
    ),
    word(
        &["-regextype"],
        &[one_of("TYPE", &["emacs", "posix-extended", "rust"])],
        "the syntax of the regular expressions after it",
        "The syntax of the -regex and -iregex after this word: emacs (the default), posix-extended, or rust for the syntax of Rust's regex crate.",
    ),
    word(
        &["-type", "-xtype"],
        &[one_of("f|d", &["f", "d", "f,d"])],
        "a file, a directory, or with f,d either",
        "The entry is a file (f), a directory (d), or with f,d either. A symbolic link counts as what it leads to.",
    ),
    word(
        &["-size"],
        &[any("[+-]N[cwbkMG]")],
        "more than, less than or exactly N units",
        "The size, rounded up to units, is more than (+), less than (-) or exactly N. The units are bytes (c), 2 bytes (w), 512 bytes (b, or no letter), 1024 bytes (k), 1024^2 bytes (M) or 1024^3 bytes (G). Because of the rounding, -size -1M is true only for empty files. Directories have no size, and the test is never true for them. If the listing does not show enough, the server is asked.",
    ),
    word(
        &["-empty"],
        &[],
        "an empty file or directory",
        "The entry is a file of no bytes, or a directory whose listing has no entries.",
    ),
    word(
        &["-newer", "-newermm"],
        &[file("URL|FILE")],
        "changed later than that URL or file",
        "The entry was changed later than the page at the URL, by its Last-Modified, or later than the local file.",
    ),
    word(
        &["-newermt"],
        &[any("DATE")],
        "changed later than that time",
        "The entry was changed later than that time: 2026-11-21, 2026-11-21 14:05, 2026-11-21T14:05:00Z, @1795269900, yesterday, '2 days ago', and other forms that GNU date reads. A time without a zone is in the zone of the system.",
    ),
    word(
        &["-mtime"],
        &[any("[+-]N")],
        "changed N times 24 hours ago",
        "The entry was changed more than (+), less than (-) or exactly N times 24 hours ago; fractions are ignored.",
    ),
    word(
        &["-mmin"],
        &[any("[+-]N")],
        "changed N minutes ago",
        "The entry was changed more than (+), less than (-) or exactly N minutes ago.",
    ),
    word(
        &["-daystart"],
        &[],
        "count -mtime and -mmin after it from midnight",
        "The -mtime and -mmin after this word count from the end of today instead of from now.",
    ),
    word(
        &["-L", "-follow", "-xdev", "-mount"],
        &[],
        "true: nothing to do here",
        "Always true: words of GNU find that ask for what is so anyway, or that concern only file systems. A web server shows the target of a symbolic link, and not the link. So are -noleaf, -warn, -nowarn, -O0 to -O3, -ignore_readdir_race and -noignore_readdir_race.",
    ),
    word(&["-true"], &[], "always true", "Always true."),
    word(&["-false"], &[], "never true", "Never true."),
];

pub(super) const OPERATORS: &[Opt<Args>] = &[
    word(
        &["("],
        &[any("EXPR )")],
        "EXPR as one unit; in a shell \\( and \\)",
        "EXPR as one unit. Each parenthesis is an argument of its own, and a shell needs a backslash before it.",
    ),
    word(
        &["!", "-not"],
        &[any("EXPR")],
        "EXPR is false",
        "True if EXPR is false.",
    ),
    word(
        &["-a", "-and"],
        &[any("EXPR")],
        "both are true; may be omitted",
        "True if the expression before it and EXPR are both true. EXPR is evaluated only if the first is true. The word may be omitted.",
    ),
    word(
        &["-o", "-or"],
        &[any("EXPR")],
        "at least one is true",
        "True if the expression before it or EXPR is true. EXPR is evaluated only if the first is false.",
    ),
    word(
        &[","],
        &[any("EXPR")],
        "both are evaluated; EXPR counts",
        "The expression before it is evaluated, and then EXPR. The result is that of EXPR.",
    ),
];

pub(super) const ACTIONS: &[Opt<Args>] = &[
    word(
        &["-print"],
        &[],
        "print the URL; the default action",
        "Print the URL and a newline. If the expression has no action, or only -prune and -quit, this is done for each entry for which the whole expression is true.",
    ),
    word(
        &["-print0"],
        &[],
        "print the URL and a NUL",
        "Print the URL and a NUL instead of a newline.",
    ),
    word(
        &["-printf"],
        &[any("FORMAT")],
        "print in the given format",
        "Print FORMAT. In it \\n, \\t, \\0, \\NNN and others are as in C, and \\c ends the output. A % with an optional width, as in %-20p, begins: %p URL, %f name, %P path below the start, %h URL of the parent directory, %H URL of the start, %s bytes, %k kilobytes, %b blocks of 512 bytes, %d depth, %y and %Y type (f or d), %t time of the last change, %Tk the part k of that time in the notation of strftime, %T@ seconds since 1970, %T+ date and time, %% a %. %f and %P are percent-decoded. An unknown value is ?. Each value that is not exact has ~ before it, but %s, which is always a plain number, the best estimate; %b shows the interval, such as ~2-3.",
    ),
    word(
        &["-ls"],
        &[],
        "print a line like that of ls -dils",
        "Print inode, kilobytes, type and mode, links, owner, group, size, time and URL, as ls -dils does. What a web server does not tell is ?.",
    ),
    word(
        &["-fprint"],
        &[file("FILE")],
        "like -print, into the file",
        "Like -print, into the file. The file is emptied first, and exists afterwards even if nothing was printed. /dev/stdout and /dev/stderr mean the two streams.",
    ),
    word(
        &["-fprint0"],
        &[file("FILE")],
        "like -print0, into the file",
        "Like -print0, into the file; see -fprint.",
    ),
    word(
        &["-fprintf"],
        &[file("FILE"), any("FORMAT")],
        "like -printf, into the file",
        "Like -printf, into the file; see -fprint.",
    ),
    word(
        &["-fls"],
        &[file("FILE")],
        "like -ls, into the file",
        "Like -ls, into the file; see -fprint.",
    ),
    word(
        &["-exec"],
        &[any("COMMAND... ;|{} +")],
        "run the command with the URL in place of {}",
        "Run the command with the URL in place of each {}. True if the command exits with 0. The search waits for the command. A shell needs a backslash before the ; at the end. With {} + instead of ; at the end, the command gets many URLs at a time in place of {}, and runs while the search goes on; then the action is always true, and a command that fails makes the exit status 1.",
    ),
    word(
        &["-prune"],
        &[],
        "do not search below this directory; always true",
        "If the entry is a directory, send no request for anything below it. Always true.",
    ),
    word(
        &["-quit"],
        &[],
        "end the search",
        "End the search at once. Commands with {} + that still wait are run.",
    ),
];

pub(super) const DEPTHS: &[Opt<Args>] = &[
    word(
        &["-mindepth"],
        &[any("N")],
        "no tests and actions above level N",
        "Do no tests and actions for entries that are less than N levels below a start. A start itself is level 0.",
    ),
    word(
        &["-maxdepth"],
        &[any("N")],
        "search at most N levels below a start",
        "Search at most N levels below a start. Deeper entries are neither requested nor found.",
    ),
];
