//! What a schedule does: the key `job`, a table whose keys say which kind of job it is.

use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;
use url::Url;

use super::entries::{JobConfig, ScheduleConfig};
use super::kinds::{
    Fields, FilePath, Inline, Maybe, Name, Scalar, TimeLimit, WebUrl, Words, quoted, web_url,
};
use super::reader::{Key, Kind, Reader, key};

/// `job = { check = "docs" }`
pub(super) struct Job;

impl Kind for Job {
    type Value = ScheduleConfig;
    const ALLOWED: &'static str = "{ check = \"SET\" }, { find = { start = \"URL\" }, into_set = \"SET\" }, { sitemap = \"URL\", into_set = \"SET\" } or { fetch = \"FILE\", template = \"https://…/{}\", into = \"DIR\" }";

    fn read(into: &mut ScheduleConfig, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let mut draft = Draft::default();
        let was_good = reader.is_good();
        Inline::<Draft>::read(&mut draft, reader, value);
        if let Some(timeout) = draft.timeout {
            into.timeout = timeout;
        }
        match draft.job() {
            Ok(job) => into.job = job,
            // What could not be read is no second error.
            Err(_) if was_good && !reader.is_good() => {}
            Err(why) => reader.wrong(value.span(), &why),
        }
    }

    fn show(value: &ScheduleConfig) -> Option<String> {
        <Inline<Draft> as Kind>::show(&Draft::of(&value.job))
    }
}

/// All keys of all kinds of jobs.
#[derive(Debug, Default)]
struct Draft {
    check: Option<String>,
    find: Option<Find>,
    sitemap: Option<Url>,
    fetch: Option<PathBuf>,
    into_set: Option<String>,
    template: Option<String>,
    into: Option<PathBuf>,
    timeout: Option<Option<Duration>>,
}

/// `find = { start = "URL", args = ["-name", "*.iso"] }`
#[derive(Debug, Default)]
struct Find {
    start: Option<Url>,
    args: Vec<String>,
}

impl Fields for Draft {
    const ALLOWED: &'static str = Job::ALLOWED;
    const KEYS: &'static [Key<Self>] = &[
        key!(
            "check",
            Maybe<Name>,
            |d| d.check,
            "The set whose source is read, and whose URLs are all due."
        ),
        key!(
            "find",
            FindKind,
            |d| d.find,
            "Where find starts, and its arguments."
        ),
        key!("sitemap", Maybe<WebUrl>, |d| d.sitemap, "The sitemap."),
        key!(
            "fetch",
            Maybe<FilePath>,
            |d| d.fetch,
            "A file with a name in each line."
        ),
        key!(
            "into_set",
            Maybe<Name>,
            |d| d.into_set,
            "The set that gets the URLs."
        ),
        key!(
            "template",
            Maybe<Template>,
            |d| d.template,
            "The URL of a name."
        ),
        key!(
            "into",
            Maybe<FilePath>,
            |d| d.into,
            "The folder of the files."
        ),
        key!(
            "timeout",
            Maybe<TimeLimit>,
            |d| d.timeout,
            "The time limit of the job."
        ),
    ];
}

impl Fields for Find {
    const ALLOWED: &'static str =
        "a table such as { start = \"https://…\", args = [\"-name\", \"*.iso\"] }";
    const KEYS: &'static [Key<Self>] = &[
        key!("start", Maybe<WebUrl>, |f| f.start, "Where the search starts.", is_required true),
        key!("args", Words, |f| f.args, "The arguments of find."),
    ];
}

/// `find = { ... }`, perhaps absent.
struct FindKind;

impl Kind for FindKind {
    type Value = Option<Find>;
    const ALLOWED: &'static str = <Find as Fields>::ALLOWED;

    fn read(into: &mut Option<Find>, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        Inline::<Find>::read(into.get_or_insert_default(), reader, value);
    }

    fn show(value: &Option<Find>) -> Option<String> {
        <Inline<Find> as Kind>::show(value.as_ref()?)
    }
}

/// A URL with `{}` where a name goes.
struct Template;

impl Scalar for Template {
    type Value = String;
    const ALLOWED: &'static str =
        "an http or https URL without credentials that has {} once, after the host";

    fn parse(value: &DeValue<'_>, _: &std::path::Path) -> Result<String, String> {
        // The text is not repeated: it may have credentials.
        let text = value.as_str().ok_or("not a text")?;
        if text.matches("{}").count() != 1 {
            return Err("{} does not stand there once".to_owned());
        }
        let (one, other) = (
            web_url(&text.replace("{}", "a"))?,
            web_url(&text.replace("{}", "b"))?,
        );
        match one.host_str() == other.host_str() && one.port() == other.port() {
            true => Ok(text.to_owned()),
            false => Err("the host has {}".to_owned()),
        }
    }

    fn show(value: &String) -> Option<String> {
        Some(quoted(value))
    }
}

impl Draft {
    /// The job, if the keys are those of one kind.
    fn job(self) -> Result<JobConfig, String> {
        let kinds = [
            ("check", self.check.is_some(), &[][..]),
            ("find", self.find.is_some(), &["into_set"]),
            ("sitemap", self.sitemap.is_some(), &["into_set"]),
            ("fetch", self.fetch.is_some(), &["template", "into"]),
        ];
        let mut given = kinds.iter().filter(|(_, is_given, _)| *is_given);
        let (Some((kind, _, needs)), None) = (given.next(), given.next()) else {
            return Err(format!(
                "needs one of check, find, sitemap and fetch; allowed: {}",
                Job::ALLOWED
            ));
        };
        let others = [
            ("into_set", self.into_set.is_some()),
            ("template", self.template.is_some()),
            ("into", self.into.is_some()),
        ];
        for (name, is_given) in others {
            match (needs.contains(&name), is_given) {
                (true, false) => return Err(format!("{kind} needs {name}")),
                (false, true) => return Err(format!("{name} does not go with {kind}")),
                _ => {}
            }
        }
        self.of_kind()
            .ok_or_else(|| format!("{kind} is not complete"))
    }

    fn of_kind(self) -> Option<JobConfig> {
        if let Some(set) = self.check {
            return Some(JobConfig::Check { set });
        }
        if let Some(Find { start, args }) = self.find {
            let (start, into_set) = (start?, self.into_set?);
            return Some(JobConfig::Find {
                start,
                args,
                into_set,
            });
        }
        if let Some(url) = self.sitemap {
            let into_set = self.into_set?;
            return Some(JobConfig::Sitemap { url, into_set });
        }
        let (list, template, into) = (self.fetch?, self.template?, self.into?);
        Some(JobConfig::Fetch {
            list,
            template,
            into,
        })
    }

    fn of(job: &JobConfig) -> Self {
        let mut draft = Self::default();
        match job.clone() {
            JobConfig::Check { set } => draft.check = Some(set),
            JobConfig::Find {
                start,
                args,
                into_set,
            } => {
                draft.find = Some(Find {
                    start: Some(start),
                    args,
                });
                draft.into_set = Some(into_set);
            }
            JobConfig::Sitemap { url, into_set } => {
                draft.sitemap = Some(url);
                draft.into_set = Some(into_set);
            }
            JobConfig::Fetch {
                list,
                template,
                into,
            } => {
                draft.fetch = Some(list);
                draft.template = Some(template);
                draft.into = Some(into);
            }
        }
        draft
    }
}
