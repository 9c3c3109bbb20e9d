//! The links of real documentation: how fast they are read from memory, by format; and the same files beside lychee.
//! Everything is on one core.
//!
//! Beside lychee, each program is a process that reads the files and prints all links, resolved. The differences of the
//! two sets of links are written to files.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crawler_cli::check::links::{Document, Format, Link};
use url::Url;

use crate::compare::sample::median;
use crate::process::{cores, installed, spawn_on, stay_on, tool};

/// Measures how fast links are read from documents, and compares them with those that lychee finds.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Documents: one half Markdown, one half HTML
    #[arg(short, long, default_value = "1000")]
    files: usize,

    /// Rounds; the table has the median
    #[arg(short, long, default_value = "5")]
    rounds: usize,

    /// Where documents are searched, may be given several times [default: /usr/share/doc, and Rust's documentation]
    #[arg(long = "dir", value_name = "DIR")]
    directories: Vec<PathBuf>,

    /// The lychee to compare with; left out if it is not installed
    #[arg(long, default_value = "lychee")]
    lychee: PathBuf,

    /// Where the links that only one program finds are written
    #[arg(long, value_name = "DIR", default_value = ".")]
    differences: PathBuf,
}

/// Prints the links of all documents in a directory, resolved: what is compared with lychee.
#[derive(clap::Parser, Debug)]
pub struct DumpArgs {
    /// The directory
    directory: PathBuf,
}

/// Runs the tool. Fails if the links of HTML are not read with 200 MB/s.
///
/// # Errors
/// There are too few documents, or a file or a program cannot be used.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let core = *cores()?.last().ok_or("there is no core")?;
    stay_on(core)?;
    let documents = documents(args)?;
    println!("| format | files | MB | links | MB/s |\n|---|--:|--:|--:|--:|");
    let mut is_fast = true;
    for format in [Format::Html, Format::Markdown] {
        let rate = measure(format, &documents, args.rounds)?;
        is_fast &= format != Format::Html || rate >= HTML_RATE;
    }
    if installed(&args.lychee) {
        beside_lychee(args, core, &documents)?;
    } else {
        println!("\n{} is not installed.", args.lychee.display());
    }
    Ok(match is_fast {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Bytes of HTML in a microsecond.
const HTML_RATE: f64 = 200.0;

/// Chooses documents from all over the directories.
fn documents(args: &Args) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut directories = args.directories.clone();
    if directories.is_empty() {
        let sysroot = Command::new("rustc")
            .args(["--print", "sysroot"])
            .output()?;
        let sysroot = PathBuf::from(String::from_utf8(sysroot.stdout)?.trim());
        directories = vec!["/usr/share/doc".into(), sysroot.join("share/doc")];
    }
    let mut found = Vec::new();
    for directory in &directories {
        walk(directory, &mut found)?;
    }
    found.sort();
    let mut chosen = Vec::new();
    for format in [Format::Markdown, Format::Html] {
        let all = found.iter().filter(|path| format_of(path) == Some(format));
        let all: Vec<_> = all.collect();
        let wanted = (args.files - chosen.len()).min(match format {
            Format::Markdown => args.files / 2,
            _ => args.files,
        });
        if all.len() < wanted && format == Format::Html {
            return Err(format!("only {} documents", chosen.len() + all.len()).into());
        }
        let count = wanted.min(all.len());
        chosen.extend((0..count).map(|i| all[i * all.len() / count].clone()));
    }
    Ok(chosen)
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), found)?;
        } else if kind.is_file() && format_of(&entry.path()).is_some() {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn format_of(path: &Path) -> Option<Format> {
    let format = Format::of_name(path.file_name()?.to_str()?)?;
    matches!(format, Format::Markdown | Format::Html).then_some(format)
}

/// Prints a row of the table. Returns megabytes in a second.
fn measure(format: Format, documents: &[PathBuf], rounds: usize) -> io::Result<f64> {
    let paths = documents
        .iter()
        .filter(|path| format_of(path) == Some(format));
    let bodies = paths.map(fs::read).collect::<io::Result<Vec<_>>>()?;
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    let mut links = 0;
    let mut rates = Vec::new();
    for _ in 0..rounds {
        links = 0;
        let began = Instant::now();
        for body in &bodies {
            let document = Document::new(format, body, None);
            std::hint::black_box(document.base());
            // Only XML has errors.
            let _ = document.read(&mut |link: Link<'_>| {
                std::hint::black_box(&link);
                links += 1;
            });
        }
        rates.push(bytes as f64 / 1e6 / began.elapsed().as_secs_f64());
    }
    let rate = median(rates.into_iter());
    let megabytes = bytes as f64 / 1e6;
    println!(
        "| {format:?} | {} | {megabytes:.1} | {links} | {rate:.0} |",
        bodies.len()
    );
    Ok(rate)
}

fn beside_lychee(args: &Args, core: usize, documents: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let copy = tempfile::tempdir()?;
    for (i, path) in documents.iter().enumerate() {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let name = format!("{i}.{}", extension.unwrap_or("html"));
        fs::copy(path, copy.path().join(name))?;
    }
    let mut ours = tool("links-dump")?;
    ours.arg(copy.path());
    let mut lychee = Command::new(&args.lychee);
    lychee.args(["--dump", "--no-progress", "--include-mail"]);
    lychee.arg("--root-dir").arg(copy.path()).arg(copy.path());
    let mut seconds = [Vec::new(), Vec::new()];
    let mut sets = [BTreeSet::new(), BTreeSet::new()];
    for _ in 0..args.rounds {
        for (i, command) in [&mut ours, &mut lychee].into_iter().enumerate() {
            let began = Instant::now();
            sets[i] = lines(core, command)?;
            seconds[i].push(began.elapsed().as_secs_f64());
        }
    }
    let [own, peer] = seconds;
    let (own, peer) = (median(own.into_iter()), median(peer.into_iter()));
    let [ours, theirs] = sets;
    println!("\n| program | seconds | links |\n|---|--:|--:|");
    println!("| crawler-cli | {own:.3} | {} |", ours.len());
    println!("| lychee | {peer:.3} | {} |", theirs.len());
    println!("\nlychee takes {:.1} times as long.", peer / own);
    for (name, one, other) in [
        ("only-crawler-cli.txt", &ours, &theirs),
        ("only-lychee.txt", &theirs, &ours),
    ] {
        let path = args.differences.join(name);
        let mut file = io::BufWriter::new(File::create(&path)?);
        for line in one.difference(other) {
            writeln!(file, "{line}")?;
        }
        file.flush()?;
        println!(
            "{}: {} links",
            path.display(),
            one.difference(other).count()
        );
    }
    Ok(())
}

/// The lines that a program prints.
fn lines(core: usize, command: &mut Command) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let output = spawn_on(core, command)?.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Prints the links.
///
/// # Errors
/// A file cannot be read.
pub fn dump(args: &DumpArgs) -> Result<(), Box<dyn Error>> {
    let mut paths = Vec::new();
    walk(&args.directory.canonicalize()?, &mut paths)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for path in paths {
        let Some(format) = format_of(&path) else {
            continue;
        };
        let body = fs::read(&path)?;
        let document = Document::new(format, &body, None);
        let page = Url::from_file_path(&path).map_err(|()| "the path is not absolute")?;
        let base = document.base().and_then(|base| page.join(&base).ok());
        let base = base.unwrap_or(page);
        let mut result = Ok(());
        // Only XML has errors.
        let _ = document.read(&mut |link: Link<'_>| {
            if let Ok(url) = base.join(&link.url) {
                result = writeln!(out, "{url}");
            }
        });
        result?;
    }
    out.flush()?;
    Ok(())
}
