//! `--fix-redirects`: asks again what has moved, edits files and shows what changed.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::check::fix::{Fixed, Fixer, Move};
use crate::check::{Checked, Checker, Event};
use crate::terminal;

/// The options about editing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct FixOptions {
    pub(super) is_on: bool,
    pub(super) dry_run: bool,
    pub(super) cross_domain: bool,
    pub(super) to_root: bool,
}

/// Gathers what has moved while a check runs, and edits the files afterwards.
pub(super) struct Fix {
    /// The settings for asking again.
    checker: Checker,
    fixer: Fixer,
    moves: Vec<Move>,
    dry_run: bool,
    /// Whether standard output has something that a diff would spoil.
    on_stderr: bool,
}

impl FixOptions {
    /// `None` without `--fix-redirects`.
    ///
    /// # Errors
    /// Another option needs `--fix-redirects`.
    pub(super) fn check(self) -> Result<Option<Self>, String> {
        let others = [
            (self.dry_run, "--dry-run"),
            (self.cross_domain, "--fix-cross-domain"),
            (self.to_root, "--fix-to-root"),
        ];
        match others.iter().find(|(is_given, _)| *is_given) {
            _ if self.is_on => Ok(Some(self)),
            Some((_, name)) => Err(format!("{name} needs --fix-redirects")),
            None => Ok(None),
        }
    }
}

impl Fix {
    pub(super) fn new(options: FixOptions, checker: &mut Checker, on_stderr: bool) -> Self {
        let fixer = checker
            .fixer()
            .cross_domain(options.cross_domain)
            .to_root(options.to_root)
            .dry_run(options.dry_run);
        Self {
            checker: checker.clone(),
            fixer,
            moves: Vec::new(),
            dry_run: options.dry_run,
            on_stderr,
        }
    }

    /// Takes what the check said about a URL.
    pub(super) fn add(&mut self, checked: &Checked) {
        let places = Move::of(checked);
        self.moves
            .extend(places.filter(|place| self.fixer.may_edit(place)));
    }

    /// Asks again, edits, and shows what changed. Returns whether all files could be edited.
    pub(super) fn run(mut self, interrupted: &AtomicBool) -> bool {
        let Some(confirmed) = self.confirmed(interrupted) else {
            return false;
        };
        let (moves, changed): (Vec<Move>, Vec<Move>) = self
            .moves
            .drain(..)
            .partition(|place| confirmed.get(&place.url) == Some(&place.to));
        for place in changed {
            say(&place, "asked again, it redirects in another way");
        }
        let fixed = self.fixer.fix(&moves);
        let shown = match self.on_stderr {
            true => self.show(&fixed, &mut io::stderr().lock()),
            false => self.show(&fixed, &mut io::stdout().lock()),
        };
        for file in &fixed {
            for kept in &file.kept {
                say(&kept.place, &kept.reason.to_string());
            }
            if let Some(error) = &file.error {
                let source = terminal::neutralise(&file.source);
                terminal::say(format_args!("crawler-cli check: {source}: {error}"));
            }
        }
        shown.is_ok() && fixed.iter().all(|file| file.error.is_none())
    }

    /// Where URLs have moved to when they are asked again. `None` if that was interrupted.
    fn confirmed(&self, interrupted: &AtomicBool) -> Option<HashMap<String, String>> {
        let mut urls: Vec<Box<str>> = self
            .moves
            .iter()
            .map(|place| place.url.as_str().into())
            .collect();
        urls.sort();
        urls.dedup();
        let mut confirmed = HashMap::new();
        if urls.is_empty() {
            return Some(confirmed);
        }
        self.checker.again(urls).run(|event| {
            if let Event::Checked(checked) = event
                && let Some(to) = &checked.moved_to
            {
                confirmed.insert(checked.url.clone(), to.clone());
            }
            match interrupted.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        (!interrupted.load(Ordering::Relaxed)).then_some(confirmed)
    }

    fn show(&self, fixed: &[Fixed], out: &mut (impl Write + IsTerminal)) -> io::Result<()> {
        let is_terminal = out.is_terminal();
        for line in fixed
            .iter()
            .flat_map(|file| file.diff.split_inclusive('\n'))
        {
            match is_terminal {
                // Other readers, such as patch(1), want what is in the file.
                false => out.write_all(line.as_bytes())?,
                true => writeln!(out, "{}", terminal::neutralise(line.trim_end()))?,
            }
        }
        out.flush()?;
        let replaced: usize = fixed.iter().map(|file| file.replaced).sum();
        let files = fixed.iter().filter(|file| file.replaced > 0).count();
        let done = if self.dry_run {
            "would be replaced"
        } else {
            "replaced"
        };
        terminal::say(format_args!(
            "crawler-cli check: {replaced} URLs in {files} files {done}"
        ));
        Ok(())
    }
}

fn say(place: &Move, why: &str) {
    let reference = &place.reference;
    let (line, column) = (reference.line.unwrap_or(0), reference.column.unwrap_or(0));
    let text = format!(
        "{}:{line}:{column}: {} stays: {why}",
        reference.source, place.url
    );
    terminal::say(format_args!(
        "crawler-cli check: {}",
        terminal::neutralise(&text)
    ));
}
