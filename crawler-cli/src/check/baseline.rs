//! Known failures: an earlier `--json` output, whose failures no longer make a check fail.

use std::collections::HashSet;
use std::io::{self, BufRead};

use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_128;

/// The URLs that failed in an earlier check.
///
/// ```
/// use crawler_cli::check::Baseline;
///
/// let output = br#"{"url":"https://example.com/old","class":"neg","cause":"status_404"}
/// {"url":"https://example.com/","class":"ok"}
/// "#;
/// let baseline = Baseline::read(&output[..])?;
/// assert!(baseline.has("https://example.com/old") && !baseline.has("https://example.com/"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// Hashes of the URLs: 16 bytes each, because a baseline can be large.
    failed: HashSet<u128>,
}

impl Baseline {
    /// Reads the lines of a `--json` output. Lines without a URL, such as a summary, are ignored.
    ///
    /// # Errors
    /// The input cannot be read, or a line is not JSON: the error names the line.
    pub fn read(input: impl BufRead) -> io::Result<Self> {
        let mut failed = HashSet::new();
        for (index, line) in input.lines().enumerate() {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            let line: Line = serde_json::from_str(&line).map_err(|error| {
                let text = format!("line {}: {error}", index + 1);
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?;
            if let (Some(url), Some(class)) = (line.url, line.class)
                && class != "ok"
                && class != "void"
            {
                failed.insert(xxh3_128(url.as_bytes()));
            }
        }
        Ok(Self { failed })
    }

    /// Whether this URL, as it is printed, failed.
    pub fn has(&self, url: &str) -> bool {
        self.failed.contains(&xxh3_128(url.as_bytes()))
    }

    /// The number of URLs.
    pub fn len(&self) -> usize {
        self.failed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }
}

/// What is read of a line.
#[derive(Deserialize)]
struct Line {
    url: Option<String>,
    class: Option<String>,
}
