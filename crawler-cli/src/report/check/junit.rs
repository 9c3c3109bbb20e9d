//! `--report junit`: test results in the XML that Jenkins and GitLab read. A test case is a URL in one source. Good URLs
//! pass; URLs that could not be judged, and those that are broken but do not count, are skipped. Places that are found
//! after their URL was reported are a case of their own, unless the URL is good.
//!
//! The numbers of cases stand before the cases, so the cases wait in a temporary file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use super::findings::{Judged, Part, source_name};
use super::sink::Sink;
use check::{Standing, Summary};
use plain::terminal;
use verdict::Reference;

/// Test cases that wait for their header.
#[derive(Debug)]
pub(super) struct Junit {
    cases: File,
    /// Not in the file yet.
    text: String,
    counts: Counts,
    failure: Option<io::Error>,
}

#[derive(Debug, Default)]
struct Counts {
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

impl Junit {
    /// # Errors
    /// There is no room for a temporary file.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            cases: tempfile::tempfile()?,
            text: String::new(),
            counts: Counts::default(),
            failure: None,
        })
    }

    pub(super) fn add(&mut self, judged: &Judged<'_>) {
        let checked = judged.checked;
        let references = &checked.references;
        // A good URL is counted already.
        if checked.before.is_some() && checked.standing == Standing::Passes {
            return;
        }
        if references.is_empty() {
            self.case(judged, "", &[]);
        }
        // The places of one source follow each other: a source is read at once.
        for places in references.chunk_by(|a, b| a.source == b.source) {
            self.case(judged, &places[0].source, places);
        }
        self.relieve();
    }

    pub(super) fn add_problem(&mut self, text: &str) {
        self.counts.tests += 1;
        self.counts.errors += 1;
        let text = xml(text);
        // Writing to a string does not fail.
        let _ = writeln!(
            self.text,
            "    <testcase name=\"sources are readable\" classname=\"sources\">\n      \
             <error type=\"not read\" message=\"{text}\">{text}</error>\n    </testcase>"
        );
        self.relieve();
    }

    fn case(&mut self, judged: &Judged<'_>, source: &str, places: &[Reference]) {
        self.counts.tests += 1;
        let checked = judged.checked;
        let text = &mut self.text;
        let _ = write!(
            text,
            "    <testcase name=\"{}\" classname=\"{}\"",
            xml(&checked.url),
            xml(source_name(source))
        );
        if is_file(source) {
            let _ = write!(text, " file=\"{}\"", xml(source));
        }
        let seconds = checked.answer.latency.unwrap_or_default().as_secs_f64();
        let _ = write!(text, " time=\"{seconds:.3}\"");
        let cause = checked.answer.verdict.cause().map(|cause| cause.name());
        let cause = cause.as_deref().unwrap_or("redirected");
        let reason = xml(&judged.reason);
        match judged.part {
            Some(Part::Broken | Part::Redirected) if checked.standing == Standing::Fails => {
                self.counts.failures += 1;
                let _ = writeln!(
                    text,
                    ">\n      <failure type=\"{cause}\" message=\"{reason}\">"
                );
                for place in places {
                    let _ = writeln!(text, "{}: {reason}", xml(&position(place)));
                }
                let _ = writeln!(text, "</failure>\n    </testcase>");
            }
            Some(Part::Broken | Part::Unjudged | Part::Excused) => {
                self.counts.skipped += 1;
                let _ = writeln!(
                    text,
                    ">\n      <skipped message=\"{cause}: {reason}\"/>\n    </testcase>"
                );
            }
            Some(Part::Redirected | Part::Lenient) | None => text.push_str("/>\n"),
        }
    }

    /// Moves what is waiting into the file.
    fn relieve(&mut self) {
        if self.text.len() >= LARGE {
            self.spill();
        }
    }

    fn spill(&mut self) {
        if self.failure.is_none() {
            self.failure = self.cases.write_all(self.text.as_bytes()).err();
        }
        self.text.clear();
    }

    /// Writes the whole report.
    ///
    /// # Errors
    /// The temporary file failed.
    pub(super) fn finish(
        mut self,
        summary: &Summary,
        ended: &str,
        out: &mut Sink,
    ) -> io::Result<()> {
        self.spill();
        if let Some(error) = self.failure {
            return Err(error);
        }
        let Counts {
            tests,
            failures,
            errors,
            skipped,
        } = self.counts;
        let seconds = summary.elapsed.as_secs_f64();
        let counts = format!(
            "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{seconds:.3}\""
        );
        let head = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"crawler-cli check\" {counts}>\n  \
             <testsuite name=\"links\" {counts} timestamp=\"{ended}\">\n"
        );
        out.buffer().extend_from_slice(head.as_bytes());
        self.cases.rewind()?;
        loop {
            let part = (&mut self.cases)
                .take(LARGE as u64)
                .read_to_end(out.buffer())?;
            out.relieve();
            if part == 0 {
                break;
            }
        }
        out.buffer()
            .extend_from_slice(b"  </testsuite>\n</testsuites>\n");
        Ok(())
    }
}

/// `docs/a.md:12:5`
fn position(place: &Reference) -> String {
    let mut text = source_name(&place.source).to_owned();
    for number in [place.line, place.column].into_iter().flatten() {
        let _ = write!(text, ":{number}");
    }
    if let Some(written) = &place.written {
        let _ = write!(text, ": {written}");
    }
    text
}

/// Whether a source is a file: neither a page, nor standard input, nor the command line.
fn is_file(source: &str) -> bool {
    let is_page = source.starts_with("http://") || source.starts_with("https://");
    !is_page && !matches!(source, "" | "-")
}

/// Text for XML, also in an attribute. Characters that XML does not allow become visible escapes.
fn xml(text: &str) -> String {
    let safe = terminal::neutralise(text);
    let mut out = String::with_capacity(safe.len());
    for c in safe.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// More than this is not kept in memory, in bytes.
const LARGE: usize = 64 << 10;
