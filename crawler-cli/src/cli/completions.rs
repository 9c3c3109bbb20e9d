//! `crawler-cli completions SHELL`: what bash, zsh and fish need to complete command lines of this program, made from
//! the tables of options of `find` and `get`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use super::find::USAGE;
use super::find::options::{Hint, Val, all};
use crate::terminal;

/// Runs the command with the arguments that follow its name.
pub fn main(args: &[OsString]) -> ExitCode {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let args: Vec<&str> = args.iter().map(|arg| &**arg).collect();
    let text = match args.as_slice() {
        ["bash"] => bash(),
        ["zsh"] => zsh(),
        ["fish"] => fish(),
        ["-h" | "--help"] => HELP.to_owned(),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(USAGE);
        }
    };
    terminal::print_help(&text);
    ExitCode::SUCCESS
}

/// A command of the program.
struct Command {
    name: &'static str,
    about: &'static str,
    rows: Vec<Row>,
    /// What stands without an option.
    operands: &'static [&'static str],
}

/// An option of a command.
struct Row {
    names: Vec<String>,
    values: Vec<Val>,
    about: &'static str,
}

fn commands() -> Vec<Command> {
    // A shell completes neither `(` nor what comes after `--`.
    let is_option = |name: &str| name.starts_with('-') && name != "--";
    let find = all().map(|opt| Row {
        names: opt
            .names
            .iter()
            .filter(|name| is_option(name))
            .map(|&name| name.to_owned())
            .collect(),
        values: opt.values.to_vec(),
        about: opt.short,
    });
    let get = crate::get::options().map(|(short, long, value, about)| Row {
        names: short
            .map(|letter| format!("-{letter}"))
            .into_iter()
            .chain([format!("--{long}")])
            .collect(),
        values: value
            .map(|name| Val {
                name,
                hint: if name.contains("file") {
                    Hint::File
                } else {
                    Hint::Any
                },
            })
            .into_iter()
            .collect(),
        about,
    });
    let help = || Row {
        names: vec!["-h".to_owned(), "--help".to_owned()],
        values: Vec::new(),
        about: "help",
    };
    let serve = Row {
        names: vec!["--serve".to_owned()],
        values: Vec::new(),
        about: "only serve the mirror",
    };
    let command = |name, about, rows, operands| Command {
        name,
        about,
        rows,
        operands,
    };
    vec![
        command(
            "find",
            "find files in web directory listings",
            find.filter(|row| !row.names.is_empty()).collect(),
            &[],
        ),
        command("get", "transfer URLs", get.collect(), &[]),
        command("demo", "show find at work", vec![serve, help()], &[]),
        command(
            "completions",
            "completions for a shell",
            vec![help()],
            &["bash", "zsh", "fish"],
        ),
    ]
}

fn bash() -> String {
    let commands = commands();
    let names: Vec<_> = commands.iter().map(|command| command.name).collect();
    let mut text = format!(
        "# Completions of crawler-cli for bash. Load them by: source <(crawler-cli completions bash)\n\
         _crawler_cli() {{\n    \
         local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words=''\n    \
         COMPREPLY=()\n    \
         if [ \"$COMP_CWORD\" -eq 1 ]; then\n        \
         words='{} --help --version'\n    \
         else\n        case ${{COMP_WORDS[1]}} in\n",
        names.join(" ")
    );
    for command in &commands {
        // Writing to a string does not fail.
        let _ = writeln!(text, "        {})", command.name);
        let with_value = command.rows.iter().filter(|row| !row.values.is_empty());
        let _ = writeln!(text, "            case $prev in");
        for row in with_value {
            let names = row.names.join("|");
            let action = match row.values[0].hint {
                Hint::Any => "return".to_owned(),
                Hint::File => "compopt -o filenames 2>/dev/null\n                mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n                return".to_owned(),
                Hint::OneOf(values) => format!(
                    "mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n                return",
                    values.join(" ")
                ),
            };
            let _ = writeln!(text, "            {names})\n                {action} ;;");
        }
        let names = command.rows.iter().flat_map(|row| &row.names);
        let words: Vec<&str> = names
            .map(String::as_str)
            .chain(command.operands.iter().copied())
            .collect();
        let _ = writeln!(text, "            *) words='{}' ;;", words.join(" "));
        let _ = writeln!(text, "            esac ;;");
    }
    text.push_str(
        "        esac\n    fi\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n\
         complete -F _crawler_cli crawler-cli\n",
    );
    text
}

fn zsh() -> String {
    let commands = commands();
    let mut text = String::from(
        "#compdef crawler-cli\n# Completions of crawler-cli for zsh. Load them by: source <(crawler-cli completions zsh)\n\
         _crawler_cli() {\n    local -a commands\n    commands=(\n",
    );
    for command in &commands {
        let _ = writeln!(text, "        '{}:{}'", command.name, command.about);
    }
    text.push_str(
        "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n    \
         local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n",
    );
    for command in &commands {
        let _ = writeln!(text, "    {})\n        _arguments \\", command.name);
        for row in &command.rows {
            for name in &row.names {
                let mut spec = format!("*{name}[{}]", zsh_text(row.about));
                for value in &row.values {
                    let action = match value.hint {
                        Hint::Any => " ".to_owned(),
                        Hint::File => "_files".to_owned(),
                        Hint::OneOf(values) => format!("({})", values.join(" ")),
                    };
                    let _ = write!(spec, ":{}:{action}", zsh_text(value.name));
                }
                let _ = writeln!(text, "            {} \\", quoted(&spec));
            }
        }
        let operands = match command.operands {
            [] => "*:URL: ".to_owned(),
            operands => format!("*:shell:({})", operands.join(" ")),
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
    for command in commands() {
        let _ = writeln!(
            text,
            "complete -c crawler-cli -n __fish_use_subcommand -a {} -d {}",
            command.name,
            quoted(command.about)
        );
        let seen = format!(
            "complete -c crawler-cli -n '__fish_seen_subcommand_from {}'",
            command.name
        );
        for row in &command.rows {
            let mut line = seen.clone();
            for name in &row.names {
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
                    Hint::Any | Hint::OneOf(_) => " -x",
                    Hint::File => " -r -F",
                };
                if let Hint::OneOf(values) = value.hint {
                    let _ = write!(line, " -a {}", quoted(&values.join(" ")));
                }
            }
            let _ = writeln!(text, "{line} -d {}", quoted(row.about));
        }
        for operand in command.operands {
            let _ = writeln!(text, "{seen} -a {operand}");
        }
    }
    text
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

const HELP: &str = "\
Prints completions for a shell.

Usage: crawler-cli completions bash|zsh|fish

  bash   source <(crawler-cli completions bash)
  zsh    source <(crawler-cli completions zsh)
  fish   crawler-cli completions fish | source
";
