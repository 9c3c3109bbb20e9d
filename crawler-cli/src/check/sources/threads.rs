//! The threads that read sources. One finds the files, some read them; each file has a channel of its own, and the
//! channels are taken in order.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::open::{Source, opened};
use super::outlet::Outlet;
use super::resolve::{Base, Resolver};
use super::{Batch, Batches, FileId, Input, List, ProblemKind, SourceOptions};
use super::{document, list, walk};
use crate::check::links::Format;

/// Begins to read the inputs.
///
/// ```
/// use std::ffi::OsStr;
/// use std::time::Duration;
/// use crawler_cli::check::sources::{Input, Next, SourceOptions, start};
///
/// # let folder = std::env::temp_dir().join(format!("courser-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("a.md"), "See [b](https://example.com/b).")?;
/// let input = Input::from_argument(folder.as_os_str())?;
/// let mut batches = start(vec![input], SourceOptions::default());
/// let mut found = Vec::new();
/// loop {
///     match batches.next(Duration::from_secs(1)) {
///         Next::Batch(batch) => found.extend(batch.occurrences),
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
    let (files, of_files) = bounded(FILES);
    let (jobs, of_jobs) = bounded(FILES);
    let dispatcher = Dispatcher {
        files,
        jobs,
        stop: stop.clone(),
        hidden: options.hidden,
        ignore_files: options.ignore_files,
        left_out: options.left_out.clone(),
    };
    let reader = Arc::new(Reader {
        resolver: Resolver::new(&options),
        field: options.field,
        max_size: options.max_size,
        stop: stop.clone(),
    });
    let is_simple = matches!(inputs.as_slice(), [Input::Page { .. } | Input::List(_)]);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let readers = if is_simple { 1 } else { cores.min(READERS) };
    for _ in 0..readers {
        let (reader, jobs) = (reader.clone(), of_jobs.clone());
        thread::spawn(move || reader.work(&jobs));
    }
    thread::spawn(move || dispatcher.work(inputs));
    Batches::new(of_files, stop)
}

/// What is read, and where its batches go.
struct Job {
    source: Arc<str>,
    what: What,
    batches: Sender<Batch>,
}

enum What {
    /// A file, in this format if that is known.
    File(PathBuf, Option<Format>),
    Stdin,
    List(List),
}

/// Finds the files of all inputs.
struct Dispatcher {
    files: Sender<Receiver<Batch>>,
    jobs: Sender<Job>,
    stop: Arc<AtomicBool>,
    hidden: bool,
    ignore_files: bool,
    left_out: Vec<FileId>,
}

/// Nobody wants further batches.
pub(super) struct Stopped;

impl Dispatcher {
    fn work(&self, inputs: Vec<Input>) {
        for input in inputs {
            if self.input(input).is_err() {
                return;
            }
        }
    }

    fn input(&self, input: Input) -> Result<(), Stopped> {
        match input {
            Input::Page { spelling, url } => self.batch(Batch {
                page: Some((spelling, url)),
                ..Batch::default()
            }),
            Input::Stdin => self.job("-".into(), What::Stdin),
            Input::List(list) => {
                let source = match &list {
                    List::File(path) => path.to_string_lossy().into(),
                    List::Stdin => "-".into(),
                };
                self.job(source, What::List(list))
            }
            Input::Path(path) if path.is_dir() => {
                for found in walk::files(&path, self.hidden, self.ignore_files) {
                    match found {
                        Ok((path, _)) if self.is_left_out(&path) => {}
                        Ok((path, format)) => {
                            let source = path.to_string_lossy().into();
                            self.job(source, What::File(path, Some(format)))?;
                        }
                        Err(problem) => self.batch(Batch {
                            problems: vec![problem],
                            ..Batch::default()
                        })?,
                    }
                }
                Ok(())
            }
            Input::Path(path) => {
                let format = Format::of_path(&path);
                self.job(path.to_string_lossy().into(), What::File(path, format))
            }
        }
    }

    fn is_left_out(&self, path: &Path) -> bool {
        // Most checks leave no file out, and need not look at the files twice.
        !self.left_out.is_empty()
            && FileId::of(path).is_some_and(|file| self.left_out.contains(&file))
    }

    /// Has a source read.
    fn job(&self, source: Arc<str>, what: What) -> Result<(), Stopped> {
        let (batches, of_batches) = bounded(BATCHES);
        self.file(of_batches)?;
        let job = Job {
            source,
            what,
            batches,
        };
        self.jobs.send(job).map_err(|_| Stopped)
    }

    /// Gives a batch that needs no reading.
    fn batch(&self, batch: Batch) -> Result<(), Stopped> {
        let (batches, of_batches) = bounded(1);
        // There is room for one, and the receiver is here.
        let _ = batches.send(batch);
        self.file(of_batches)
    }

    fn file(&self, batches: Receiver<Batch>) -> Result<(), Stopped> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        self.files.send(batches).map_err(|_| Stopped)
    }
}

/// Reads sources. All threads that read share one.
struct Reader {
    resolver: Resolver,
    field: String,
    max_size: u64,
    stop: Arc<AtomicBool>,
}

impl Reader {
    fn work(&self, jobs: &Receiver<Job>) {
        for job in jobs {
            let mut outlet = Outlet::new(job.source, job.batches, self.stop.clone());
            match self.read(job.what, &mut outlet) {
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
        }
    }

    fn read(&self, what: What, outlet: &mut Outlet) -> io::Result<()> {
        match what {
            What::File(path, format) => {
                let source = opened(File::open(&path)?)?;
                let base = self.resolver.base_of_file(&path)?;
                self.document(source, format, &base, outlet)
            }
            What::Stdin => {
                let base = self.resolver.base_of_stdin()?;
                self.document(opened(stdin()?)?, None, &base, outlet)
            }
            What::List(list) => {
                let file = match list {
                    List::File(path) => File::open(path)?,
                    List::Stdin => stdin()?,
                };
                list::read(opened(file)?, &self.field, &self.resolver, outlet)
            }
        }
    }

    fn document(
        &self,
        mut source: Source,
        format: Option<Format>,
        base: &Base,
        outlet: &mut Outlet,
    ) -> io::Result<()> {
        let format = format.unwrap_or_else(|| Format::of_beginning(&mut source));
        document::read(format, source, self.max_size, &self.resolver, base, outlet)
    }
}

/// Standard input without a buffer that others share.
fn stdin() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Files that are found but whose batches are not taken yet.
const FILES: usize = 16;
/// Batches of one file that wait to be taken.
const BATCHES: usize = 2;
/// Most threads that read.
const READERS: usize = 8;
