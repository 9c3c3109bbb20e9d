//! `crawler-cli completions SHELL`: what bash, zsh and fish need to complete command lines of this program, written
//! from the option tables of all commands.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use super::manual::Manual;
use super::option::{self, Hint, Row, Section, Show};
use super::parse::{CommandLine, Syntax, UsageError, parse};
use super::{FAILED, manuals, print, show, wrong_usage};

/// Runs the command with the arguments that follow its name.
pub(super) fn main(words: Vec<OsString>) -> ExitCode {
    let mut args = Args::default();
    let completions = match parse(&mut args, words) {
        Ok(Some(text)) => return show(text, &manual(), FAILED),
        Ok(None) => args
            .completions
            .ok_or_else(|| UsageError("no shell".into())),
        Err(error) => Err(error),
    };
    match completions {
        Ok(completions) => print(&completions(), FAILED),
        Err(error) => wrong_usage("completions", &error),
    }
}

pub(super) fn manual() -> Manual {
    Manual {
        usage: "bash|zsh|fish",
        examples: EXAMPLES,
        operands: &["bash", "zsh", "fish"],
        ..Manual::of::<Args>(
            "completions",
            "print the completions of command lines for a shell",
        )
    }
}

#[derive(Default)]
struct Args {
    /// Writes the completions for the shell that was named.
    completions: Option<fn() -> String>,
}

impl CommandLine for Args {
    const SYNTAX: Syntax = Syntax::FIND;
    const TABLE: &'static [Section<Self>] = &[Section {
        heading: "Options",
        options: &[&[option::Opt::show(&["-h", "--help"], Show::LongHelp).short("this help")]],
    }];

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        let completions = match operand.to_str() {
            Some("bash") => bash,
            Some("zsh") => zsh,
            Some("fish") => fish,
            _ => {
                let operand = operand.to_string_lossy();
                return Err(UsageError(format!("{operand}: not bash, zsh or fish")));
            }
        };
        self.completions = Some(completions);
        Ok(())
    }
}

/// The options of a command that a shell can complete: neither `(` nor `--`.
fn options(manual: &Manual) -> impl Iterator<Item = &Row> {
    manual.rows().filter(|row| names(row).next().is_some())
}

fn names(row: &Row) -> impl Iterator<Item = &'static str> {
    let names = row.names.iter().copied();
    names.filter(|name| name.starts_with('-') && *name != "--")
}

/// The commands that have verbs, each with its verbs: the second words of manuals that are named by two words.
fn commands_with_verbs(manuals: &[Manual]) -> Vec<(&'static str, Vec<&Manual>)> {
    let mut commands: Vec<(&'static str, Vec<&Manual>)> = Vec::new();
    for manual in manuals {
        let Some((command, _)) = manual.name.split_once(' ') else {
            continue;
        };
        match commands.last_mut() {
            Some((last, verbs)) if *last == command => verbs.push(manual),
            _ => commands.push((command, vec![manual])),
        }
    }
    commands
}

/// The word that names a manual after its command: a verb, or the command itself.
fn last_word(manual: &Manual) -> &'static str {
    manual
        .name
        .split_once(' ')
        .map_or(manual.name, |(_, verb)| verb)
}

fn bash() -> String {
    let manuals = manuals();
    let commands: Vec<_> = manuals
        .iter()
        .map(|manual| manual.name)
        .filter(|name| !name.contains(' '))
        .collect();
    let mut text = format!(
        "# Completions of crawler-cli for bash. Load them by: source <(crawler-cli completions bash)\n\
         _crawler_cli() {{\n    \
         local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words='' command=${{COMP_WORDS[1]}}\n    \
         COMPREPLY=()\n    \
         if [ \"$COMP_CWORD\" -eq 1 ]; then\n        \
         words='{} --help --version'\n    \
         else\n",
        commands.join(" ")
    );
    for (command, verbs) in commands_with_verbs(&manuals) {
        let verbs: Vec<_> = verbs.into_iter().map(last_word).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "        if [ \"$command\" = {command} ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n            \
             case ${{COMP_WORDS[2]}} in {}) command=\"{command} ${{COMP_WORDS[2]}}\" ;; esac\n        fi",
            verbs.join("|")
        );
    }
    text.push_str("        case $command in\n");
    for manual in &manuals {
        let _ = writeln!(text, "        '{}')", manual.name);
        let with_value = options(manual).filter(|row| !row.values.is_empty());
        let _ = writeln!(text, "            case $prev in");
        for row in with_value {
            let names = names(row).collect::<Vec<_>>().join("|");
            let action = match row.values[0].hint {
                Hint::Nothing => "return".to_owned(),
                Hint::File => "compopt -o filenames 2>/dev/null\n                mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n                return".to_owned(),
                Hint::OneOf(values) => format!(
                    "mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n                return",
                    values.join(" ")
                ),
            };
            let _ = writeln!(text, "            {names})\n                {action} ;;");
        }
        let options = options(manual).flat_map(names);
        let words: Vec<_> = options.chain(manual.operands.iter().copied()).collect();
        let _ = writeln!(text, "            *) words='{}'", words.join(" "));
        if manual.takes_files {
            text.push_str(
                "                if [[ $cur != -* ]]; then\n                    \
                 compopt -o filenames 2>/dev/null\n                    \
                 mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n                    \
                 return\n                fi\n",
            );
        }
        text.push_str("                ;;\n");
        let _ = writeln!(text, "            esac ;;");
    }
    text.push_str(
        "        esac\n    fi\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n\
         complete -F _crawler_cli crawler-cli\n",
    );
    text
}

fn zsh() -> String {
    let manuals = manuals();
    let mut text = String::from(
        "#compdef crawler-cli\n# Completions of crawler-cli for zsh. Load them by: source <(crawler-cli completions zsh)\n\
         _crawler_cli() {\n    local -a commands\n    commands=(\n",
    );
    for manual in manuals.iter().filter(|manual| !manual.name.contains(' ')) {
        let _ = writeln!(text, "        '{}:{}'", manual.name, manual.about);
    }
    text.push_str(
        "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n    \
         local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n",
    );
    for (command, verbs) in commands_with_verbs(&manuals) {
        let _ = writeln!(
            text,
            "    if [[ $command = {command} ]]; then\n        commands=("
        );
        for verb in &verbs {
            let about = verb.about.replace('\'', "'\\''");
            let _ = writeln!(text, "            '{}:{about}'", last_word(verb));
        }
        let names: Vec<_> = verbs.into_iter().map(last_word).collect();
        let _ = writeln!(
            text,
            "        )\n        if (( CURRENT == 2 )); then\n            _describe verb commands\n            return\n        fi\n        \
             case $words[2] in ({}) command=\"{command} $words[2]\"; shift words; (( CURRENT-- )) ;; esac\n    fi",
            names.join("|")
        );
    }
    text.push_str("    case $command in\n");
    for manual in &manuals {
        let _ = writeln!(text, "    '{}')\n        _arguments \\", manual.name);
        for row in options(manual) {
            for name in names(row) {
                let mut spec = format!("*{name}[{}]", zsh_text(row.short));
                for value in row.values {
                    let action = match value.hint {
                        Hint::Nothing => " ".to_owned(),
                        Hint::File => "_files".to_owned(),
                        Hint::OneOf(values) => format!("({})", values.join(" ")),
                    };
                    let _ = write!(spec, ":{}:{action}", zsh_text(value.name));
                }
                let _ = writeln!(text, "            {} \\", quoted(&spec));
            }
        }
        let operands = match manual.operands {
            [] if manual.takes_files => "*:file:_files".to_owned(),
            [] => "*:URL: ".to_owned(),
            operands => format!("*:word:({})", operands.join(" ")),
        };
        let _ = writeln!(text, "            {} ;;", quoted(&operands));
    }
    text.push_str(
        "    esac\n}\nif [ \"$funcstack[1]\" = _crawler_cli ]; then\n    _crawler_cli \"$@\"\nelse\n    compdef _crawler_cli crawler-cli\nfi\n",
    );
    text
}

fn fish() -> String {
    let mut text = String::from(
        "# Completions of crawler-cli for fish. Load them by: crawler-cli completions fish | source\n\
         complete -c crawler-cli -f\n",
    );
    let manuals = manuals();
    for (command, verbs) in commands_with_verbs(&manuals) {
        let verbs: Vec<_> = verbs.into_iter().map(last_word).collect();
        let _ = writeln!(
            text,
            "function __crawler_cli_{command}\n    set -l words (commandline -opc)\n    \
             test \"$words[2]\" = {command}; and test \"$words[3]\" = \"$argv[1]\"\nend\n\
             function __crawler_cli_no_{command}\n    set -l words (commandline -opc)\n    \
             test \"$words[2]\" = {command}; and not contains -- \"$words[3]\" {}\nend",
            verbs.join(" ")
        );
    }
    text.push_str(
        "function __crawler_cli_is\n    set -l words (commandline -opc)\n    test \"$words[2]\" = \"$argv[1]\"\nend\n",
    );
    for manual in &manuals {
        let (before, seen) = match manual.name.split_once(' ') {
            Some((command, verb)) => (
                format!("__crawler_cli_no_{command}"),
                format!("__crawler_cli_{command} {verb}"),
            ),
            None if manuals.iter().any(|other| is_verb_of(other, manual.name)) => (
                "__fish_use_subcommand".to_owned(),
                format!("__crawler_cli_no_{}", manual.name),
            ),
            None => (
                "__fish_use_subcommand".to_owned(),
                format!("__crawler_cli_is {}", manual.name),
            ),
        };
        let _ = writeln!(
            text,
            "complete -c crawler-cli -n {before} -a {} -d {}",
            last_word(manual),
            quoted(manual.about)
        );
        let seen = format!("complete -c crawler-cli -n '{seen}'");
        for row in options(manual) {
            let mut line = seen.clone();
            for name in names(row) {
                let _ = match (name.strip_prefix("--"), name.strip_prefix('-')) {
                    (Some(long), _) => write!(line, " -l {long}"),
                    (None, Some(short)) if short.chars().count() == 1 => {
                        write!(line, " -s {}", quoted(short))
                    }
                    (None, Some(old)) => write!(line, " -o {old}"),
                    (None, None) => continue,
                };
            }
            if let Some(value) = row.values.first() {
                line += match value.hint {
                    Hint::Nothing | Hint::OneOf(_) => " -x",
                    Hint::File => " -r -F",
                };
                if let Hint::OneOf(values) = value.hint {
                    let _ = write!(line, " -a {}", quoted(&values.join(" ")));
                }
            }
            let _ = writeln!(text, "{line} -d {}", quoted(row.short));
        }
        if manual.takes_files {
            let _ = writeln!(text, "{seen} -F");
        }
        for operand in manual.operands {
            let _ = writeln!(text, "{seen} -a {operand}");
        }
    }
    text
}

fn is_verb_of(manual: &Manual, command: &str) -> bool {
    let split = manual.name.split_once(' ');
    split.is_some_and(|(first, _)| first == command)
}

/// In single quotes. None of the three shells knows more in them than `'` itself, but for fish's backslash, which
/// fish's quoting of `'` needs too.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// For a specification of `_arguments`.
fn zsh_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '[' | ']' | ':' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

const EXAMPLES: &[(&str, &str)] = &[
    ("source <(crawler-cli completions bash)", "In bash"),
    ("source <(crawler-cli completions zsh)", "In zsh"),
    ("crawler-cli completions fish | source", "In fish"),
];
