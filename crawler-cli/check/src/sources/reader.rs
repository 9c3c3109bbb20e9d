//! The thread that reads sources, one after the other.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use crossbeam_channel::{Sender, bounded};
use url::Url;

use super::open::{Source, opened};
use super::outlet::Outlet;
use super::resolve::{Base, GIVEN, Resolver};
use super::{Batch, Batches, FileId, Input, List, Problem, ProblemKind, SourceOptions};
use super::{document, list, walk};
use crate::links::Format;
use store::{Demand, Link, Target};
use verdict::Reference;

/// Begins to read the inputs.
///
/// ```
/// use std::ffi::OsStr;
/// use std::time::Duration;
/// use check::sources::{Input, Next, SourceOptions, start};
///
/// # let folder = std::env::temp_dir().join(format!("courser-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("a.md"), "See [b](https://example.com/b).")?;
/// let input = Input::from_argument(folder.as_os_str())?;
/// let mut batches = start(vec![input], SourceOptions::default());
/// let mut found = Vec::new();
/// loop {
///     match batches.next(Duration::from_secs(1)) {
///         Next::Batch(batch) => found.extend(batch.links),
///         Next::Nothing => {}
///         Next::End => break,
///     }
/// }
/// assert_eq!(&*found[0].spelling, "https://example.com/b");
/// assert_eq!(found[0].reference.column, Some(5));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn start(inputs: Vec<Input>, options: SourceOptions) -> Batches {
    let stop = Arc::new(AtomicBool::new(false));
    let (batches, of_batches) = bounded(BATCHES);
    let reader = Reader {
        resolver: Resolver::new(&options),
        options,
        batches,
        stop: stop.clone(),
    };
    thread::spawn(move || {
        let read = |input| reader.guarded(name(&input), || reader.input(input));
        inputs.into_iter().try_for_each(read)
    });
    Batches::new(of_batches, stop)
}

struct Reader {
    resolver: Resolver,
    options: SourceOptions,
    batches: Sender<Batch>,
    stop: Arc<AtomicBool>,
}

/// Nobody wants further batches.
struct Stopped;

impl Reader {
    /// Runs `read`. A panic is a problem of the source: else it would look like the end of all sources.
    fn guarded(
        &self,
        source: Arc<str>,
        read: impl FnOnce() -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
            self.send(Batch {
                problems: vec![Problem {
                    source,
                    line: None,
                    kind: ProblemKind::Unreadable,
                    detail: "cannot be read: the reader has panicked".to_owned(),
                }],
                ..Batch::default()
            })
        })
    }

    fn input(&self, input: Input) -> Result<(), Stopped> {
        match input {
            Input::Page { spelling, url } => self.send(Batch {
                links: vec![page(spelling, url)],
                ..Batch::default()
            }),
            Input::Stdin => self.source("-".into(), |outlet| {
                let base = self.resolver.base_of_stdin()?;
                self.document(opened(stdin()?)?, None, &base, outlet)
            }),
            Input::List(List::Stdin) => {
                self.source("-".into(), |outlet| self.list(stdin()?, outlet))
            }
            Input::List(List::File(path)) => self.source(path.to_string_lossy().into(), |outlet| {
                self.list(File::open(&path)?, outlet)
            }),
            Input::Path(path) if path.is_dir() => self.folder(&path),
            Input::Path(path) => self.file(&path, Format::of_path(&path)),
        }
    }

    fn folder(&self, folder: &Path) -> Result<(), Stopped> {
        let options = &self.options;
        for found in walk::files(folder, options.hidden, options.ignore_files) {
            match found {
                Ok((path, _)) if self.is_left_out(&path) => {}
                Ok((path, format)) => self.file(&path, Some(format))?,
                Err(problem) => self.send(Batch {
                    problems: vec![problem],
                    ..Batch::default()
                })?,
            }
        }
        Ok(())
    }

    fn is_left_out(&self, path: &Path) -> bool {
        // Most checks leave no file out, and need not look at the files twice.
        let left_out = &self.options.left_out;
        !left_out.is_empty() && FileId::of(path).is_some_and(|file| left_out.contains(&file))
    }

    /// Reads a file, in this format if that is known.
    fn file(&self, path: &Path, format: Option<Format>) -> Result<(), Stopped> {
        self.source(path.to_string_lossy().into(), |outlet| {
            let source = opened(File::open(path)?)?;
            let base = self.resolver.base_of_file(path)?;
            self.document(source, format, &base, outlet)
        })
    }

    /// Reads a source, and says what is wrong with it.
    fn source(
        &self,
        source: Arc<str>,
        read: impl FnOnce(&mut Outlet) -> io::Result<()>,
    ) -> Result<(), Stopped> {
        let mut outlet = Outlet::new(source, self.batches.clone(), self.stop.clone());
        match read(&mut outlet) {
            Ok(()) => {}
            Err(error) if document::is_damaged(&error) => {
                document::report_damage(&error, &mut outlet);
            }
            Err(error) => {
                let detail = format!("cannot be read: {error}");
                outlet.problem(None, ProblemKind::Unreadable, detail);
            }
        }
        outlet.flush();
        match outlet.is_stopped() {
            true => Err(Stopped),
            false => Ok(()),
        }
    }

    fn list(&self, file: File, outlet: &mut Outlet) -> io::Result<()> {
        list::read(opened(file)?, &self.options.field, &self.resolver, outlet)
    }

    fn document(
        &self,
        mut source: Source,
        format: Option<Format>,
        base: &Base,
        outlet: &mut Outlet,
    ) -> io::Result<()> {
        let format = format.unwrap_or_else(|| Format::of_beginning(&mut source));
        let max_size = self.options.max_size;
        document::read(format, source, max_size, &self.resolver, base, outlet)
    }

    fn send(&self, batch: Batch) -> Result<(), Stopped> {
        self.batches.send(batch).map_err(|_| Stopped)
    }
}

/// The name of an input in problems.
fn name(input: &Input) -> Arc<str> {
    match input {
        Input::Page { spelling, .. } => (**spelling).into(),
        Input::Path(path) | Input::List(List::File(path)) => path.to_string_lossy().into(),
        Input::Stdin | Input::List(List::Stdin) => "-".into(),
    }
}

/// A page that was given as an input: its links are wanted.
fn page(spelling: Box<str>, url: Url) -> Link {
    let demand = Demand {
        links: true,
        ..GIVEN
    };
    Link {
        target: Target::Ask(url, demand),
        reference: Reference {
            source: (*spelling).into(),
            line: None,
            column: None,
            written: None,
            text: String::new(),
        },
        spelling,
        is_in_page: false,
    }
}

/// Standard input without a buffer that others share.
fn stdin() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Batches that wait to be taken.
const BATCHES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_not_the_end_of_the_sources() {
        let (batches, of_batches) = bounded(BATCHES);
        let options = SourceOptions::default();
        let reader = Reader {
            resolver: Resolver::new(&options),
            options,
            batches,
            stop: Arc::default(),
        };
        let read = reader.guarded("a.md".into(), || panic!("planned"));
        assert!(read.is_ok(), "the next source is read");
        let batch = of_batches.try_recv().expect("a batch");
        assert_eq!(batch.problems[0].kind, ProblemKind::Unreadable);
        assert_eq!(
            batch.problems[0].to_string(),
            "a.md: cannot be read: the reader has panicked"
        );
    }
}
