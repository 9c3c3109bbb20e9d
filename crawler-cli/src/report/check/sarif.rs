//! `--report sarif`: SARIF 2.1.0, for code scanning. A result is a place that refers to a URL which is not good.
//!
//! Only files are artifacts: code scanning refuses `https` URIs of artifacts. Pages are logical locations. The rules are
//! the causes that occurred; they follow the results, which are written as they come.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use url::Url;

use super::findings::{Findings, Judged, Part};
use super::github::is_file;
use super::reason::meaning;
use crate::check::{Ending, Reference, Standing, Summary};
use crate::terminal::push_json_string;

/// What the end of a log needs to know of its results.
#[derive(Debug)]
pub(super) struct Sarif {
    /// The folder that relative paths are relative to.
    folder: PathBuf,
    /// The names of the causes that occurred, and what they mean.
    rules: Vec<(String, String)>,
    has_results: bool,
}

impl Sarif {
    /// `folder` is the current one.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            rules: Vec::new(),
            has_results: false,
        }
    }

    pub(super) fn begin(out: &mut Vec<u8>) {
        out.extend_from_slice(
            b"{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{\"columnKind\":\"unicodeCodePoints\",\"results\":[",
        );
    }

    /// The results about a URL: one for each place, none if there is nothing to look at.
    pub(super) fn add(&mut self, judged: &Judged<'_>, out: &mut Vec<u8>) {
        let Some(part) = judged.part else { return };
        let rule = self.rule(judged);
        let references = &judged.checked.references;
        for reference in references {
            self.result(judged, part, rule, Some(reference), out);
        }
        if references.is_empty() {
            self.result(judged, part, rule, None, out);
        }
    }

    /// The index of the rule that a URL breaks.
    fn rule(&mut self, judged: &Judged<'_>) -> usize {
        let checked = judged.checked;
        let (id, words) = match checked.verdict.cause() {
            Some(cause) => (cause.name().into_owned(), meaning(cause)),
            None if judged.part == Some(Part::Unjudged) => {
                ("void".to_owned(), "Taken while a guard was on".to_owned())
            }
            None if checked.moved_to.is_some() => {
                ("moved".to_owned(), "Moved permanently".to_owned())
            }
            None => ("redirected".to_owned(), "Redirected".to_owned()),
        };
        let at = self.rules.iter().position(|(known, _)| *known == id);
        at.unwrap_or_else(|| {
            self.rules.push((id, words));
            self.rules.len() - 1
        })
    }

    fn result(
        &mut self,
        judged: &Judged<'_>,
        part: Part,
        rule: usize,
        place: Option<&Reference>,
        out: &mut Vec<u8>,
    ) {
        let checked = judged.checked;
        let level = match part {
            _ if checked.standing == Standing::Fails => "error",
            Part::Broken => "error",
            Part::Unjudged => "warning",
            Part::Excused | Part::Redirected => "note",
        };
        let mut result = json!({
            "ruleId": self.rules[rule].0,
            "ruleIndex": rule,
            "level": level,
            "message": { "text": format!("{}: {}", checked.url, judged.reason) },
            "properties": { "url": checked.url },
        });
        if let Some(location) = place.and_then(|place| self.location(place)) {
            result["locations"] = json!([location]);
        }
        let why = match checked.standing {
            Standing::InBaseline => Some("in the baseline"),
            Standing::FailsRecently => Some("broken for less time than --fail-after"),
            _ => None,
        };
        if let Some(why) = why {
            result["suppressions"] = json!([{ "kind": "external", "justification": why }]);
        }
        if self.has_results {
            out.push(b',');
        }
        self.has_results = true;
        out.push(b'\n');
        push(&result, out);
    }

    /// `None` for the command line.
    fn location(&self, place: &Reference) -> Option<Value> {
        if !is_file(&place.source) {
            let name = match &*place.source {
                "" => return None,
                "-" => "standard input",
                page => page,
            };
            let mut location = json!({
                "logicalLocations": [{ "fullyQualifiedName": name, "kind": "resource" }],
            });
            if let Some(line) = place.line {
                location["message"] = json!({ "text": format!("line {line}") });
            }
            return Some(location);
        }
        let mut physical = json!({ "artifactLocation": self.artifact(&place.source) });
        if let Some(line) = place.line {
            physical["region"] = match place.column {
                Some(column) => json!({ "startLine": line, "startColumn": column }),
                None => json!({ "startLine": line }),
            };
        }
        Some(json!({ "physicalLocation": physical }))
    }

    /// A path below the current folder is relative to it; all others are absolute.
    fn artifact(&self, source: &str) -> Value {
        let path = Path::new(source);
        let relative = path.strip_prefix(&self.folder).unwrap_or(path);
        match below(relative) {
            Some(uri) => json!({ "uri": uri, "uriBaseId": BASE }),
            None => {
                let uri = Url::from_file_path(self.folder.join(path));
                json!({ "uri": uri.map_or_else(|()| source.to_owned(), String::from) })
            }
        }
    }

    /// The end of the log.
    pub(super) fn finish(&self, findings: &Findings, summary: &Summary, out: &mut Vec<u8>) {
        let rules = self
            .rules
            .iter()
            .map(|(id, words)| json!({ "id": id, "shortDescription": { "text": words } }));
        let driver = json!({
            "name": "crawler-cli check",
            "version": env!("CARGO_PKG_VERSION"),
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": rules.collect::<Vec<_>>(),
        });
        let (problems, _) = findings.problems();
        let notifications = problems
            .iter()
            .map(|problem| json!({ "level": "error", "message": { "text": problem } }));
        let invocation = json!({
            "executionSuccessful": summary.ending == Ending::Finished,
            "exitCode": summary.outcome().exit_status(),
            "toolExecutionNotifications": notifications.collect::<Vec<_>>(),
        });
        out.extend_from_slice(b"\n],\"tool\":");
        push(&json!({ "driver": driver }), out);
        out.extend_from_slice(b",\n\"invocations\":");
        push(&json!([invocation]), out);
        if let Ok(base) = Url::from_directory_path(&self.folder) {
            out.extend_from_slice(b",\n\"originalUriBaseIds\":");
            push(&json!({ BASE: { "uri": base.as_str() } }), out);
        }
        out.extend_from_slice(b"}]}\n");
    }
}

/// The relative URI of a path without `..`; `None` for all other paths.
fn below(path: &Path) -> Option<String> {
    let mut segments = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => segments.push(name.to_str()?),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    // A base for the escapes of a path; it does not get into the result.
    let mut url = Url::parse("file:///").ok()?;
    url.path_segments_mut().ok()?.extend(segments);
    Some(url.path().trim_start_matches('/').to_owned())
}

/// Appends a value. Characters that a terminal would act on are escaped.
fn push(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => push_json_string(out, text),
        Value::Array(items) => list(out, *b"[]", items.iter(), push),
        Value::Object(fields) => list(out, *b"{}", fields.iter(), |(name, value), out| {
            push_json_string(out, name);
            out.push(b':');
            push(value, out);
        }),
        plain => out.extend_from_slice(plain.to_string().as_bytes()),
    }
}

fn list<T>(
    out: &mut Vec<u8>,
    [open, close]: [u8; 2],
    items: impl Iterator<Item = T>,
    write: fn(T, &mut Vec<u8>),
) {
    out.push(open);
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(close);
}

/// The name of the folder that relative URIs are relative to.
const BASE: &str = "%SRCROOT%";
