//! `--compat wfind`: the flags of wfind with their meaning there, so that its users can switch. Where wfind has no bound
//! (retries without end, pages cut at `--max-body-size`, any number of connections), the bounds of `find` hold.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::args::{Args, with};
use crate::cli::crawl_options::CrawlSetting;
use crate::cli::help;
use crate::cli::manual::Manual;
use crate::cli::option::{Opt, Section, Set, Show, any, one_of};
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse, text};
use crate::cli::values::number;
use crate::find::Kind;

/// What the flags say.
struct Flags {
    name: String,
    kind: Kind,
    recursive: bool,
    parallel: bool,
    statistics: bool,
    settings: Vec<CrawlSetting>,
    most_connections: Option<NonZeroUsize>,
    urls: Vec<String>,
}

/// Reads the arguments of wfind into `args`. `false`: they ask for the help text.
///
/// # Errors
/// The first argument that means nothing, or that `find` cannot do.
pub(super) fn read(words: Vec<String>, args: &mut Args) -> Result<bool, UsageError> {
    let mut flags = Flags {
        name: ".+".to_owned(),
        kind: Kind::File,
        recursive: true,
        parallel: true,
        statistics: false,
        settings: Vec::new(),
        most_connections: None,
        urls: Vec::new(),
    };
    let words = words.into_iter().map(OsString::from).collect();
    if parse(&mut flags, words)?.is_some() {
        return Ok(false);
    }
    flags.apply(args)?;
    Ok(true)
}

/// The help text of this mode.
pub(super) fn help(width: usize) -> String {
    let manual = Manual {
        usage: "URL [FLAG...]",
        description: "Results are printed as they are found. What cannot be read is reported on standard error, and nothing above the URL is read.",
        ..Manual::of::<Flags>(
            "find --compat wfind",
            "find below a URL with the flags of wfind",
        )
    };
    help::long(&manual, width)
}

impl Flags {
    fn apply(self, args: &mut Args) -> Result<(), UsageError> {
        let [url] = self.urls.as_slice() else {
            let error = match self.urls.as_slice() {
                [] => "no URL to start from",
                _ => "more than one URL, of which wfind reads only the first",
            };
            return Err(UsageError(error.to_owned()));
        };
        let slash = if url.ends_with('/') { "" } else { "/" };
        args.start(&format!("{url}{slash}"))?;
        let pattern = match self.kind {
            Kind::File => self.name.clone(),
            Kind::Directory => directory_pattern(&self.name),
        };
        let find = std::mem::take(&mut args.find);
        let mut find = find.kind(self.kind).min_depth(1).href(&pattern)?;
        if !self.recursive {
            find = find.max_depth(1);
        }
        if !self.parallel {
            find = find.connections(NonZeroUsize::MIN);
        }
        if let Some(most) = self.most_connections {
            find = find.at_most_connections(most);
        }
        args.find = self.settings.into_iter().fold(find, with);
        args.output.text_report |= self.statistics;
        Ok(())
    }

    /// At most `size` connections stay open if there are never more. 0 is without a limit.
    fn pool(&mut self, size: &str) -> Result<(), String> {
        let size = NonZeroUsize::new(number(size)?);
        self.most_connections = [size, self.most_connections].into_iter().flatten().min();
        Ok(())
    }
}

impl CommandLine for Flags {
    const SYNTAX: Syntax = Syntax::PFLAG;
    const TABLE: &'static [Section<Self>] = &[Section {
        heading: "Flags",
        options: &[FLAGS],
    }];

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        self.urls.push(text(operand)?);
        Ok(())
    }
}

/// What wfind makes of the pattern for directories, whose links end in `/`, and may begin with `./`.
fn directory_pattern(pattern: &str) -> String {
    let mut pattern = pattern.to_owned();
    if let Some(body) = pattern.strip_suffix('$')
        && !body.ends_with('\\')
    {
        pattern = format!("{body}/?$");
    }
    pattern
}

fn milliseconds(value: &str) -> Result<Duration, String> {
    // 0 means no limit in wfind; a year is as good.
    Ok(match number(value)? {
        0 => Duration::from_secs(365 * 24 * 60 * 60),
        number => Duration::from_millis(number),
    })
}

fn set(flags: &mut Flags, setting: CrawlSetting) -> Result<(), String> {
    flags.settings.push(setting);
    Ok(())
}

const FLAGS: &[Opt<Flags>] = &[
    Opt::text(
        &["-n", "--name"],
        &[any("RE")],
        |flags: &mut Flags, value| {
            value.clone_into(&mut flags.name);
            Ok(())
        },
    )
    .short("a match in the last segment of the link")
    .default(".+"),
    Opt::text(
        &["-t", "--type"],
        &[one_of("f|d", &["f", "d"])],
        |flags: &mut Flags, value| {
            flags.kind = match value {
                "f" | "" => Kind::File,
                "d" => Kind::Directory,
                _ => return Err("neither f nor d".to_owned()),
            };
            Ok(())
        },
    )
    .short("f: files, d: directories")
    .default("f"),
    Opt::switch(&["-r", "--recursive"], |flags: &mut Flags, on| {
        flags.recursive = on
    })
    .short("search below the listing of the URL")
    .default("true"),
    Opt::switch(&["--async"], |flags: &mut Flags, on| flags.parallel = on)
        .short("several requests at a time, at most 8")
        .default("true"),
    Opt::switch(&["-v", "--verbose"], |flags: &mut Flags, on| {
        flags.statistics = on
    })
    .short("statistics on standard error at the end, instead of a log"),
    Opt::text(
        &["--connection-timeout"],
        &[any("MS")],
        |flags: &mut Flags, value| set(flags, CrawlSetting::ConnectTimeout(milliseconds(value)?)),
    )
    .short("milliseconds to connect"),
    Opt::text(
        &["--keep-alive-interval"],
        &[any("MS")],
        |flags: &mut Flags, value| set(flags, CrawlSetting::KeepAlive(milliseconds(value)?)),
    )
    .short("milliseconds between TCP keep-alive probes"),
    Opt::text(
        &["--tls-handshake-timeout"],
        &[any("MS")],
        |flags: &mut Flags, value| set(flags, CrawlSetting::HandshakeTimeout(milliseconds(value)?)),
    )
    .short("milliseconds for the TLS handshake"),
    Opt::text(
        &["--idle-connection-timeout"],
        &[any("MS")],
        |flags: &mut Flags, value| set(flags, CrawlSetting::IdleTimeout(milliseconds(value)?)),
    )
    .short("milliseconds for which an unused connection is kept"),
    Opt::text(&["--connection-pool-size"], &[any("N")], Flags::pool)
        .short("most connections; 0: 8"),
    Opt::text(
        &["--connection-pool-size-per-host"],
        &[any("N")],
        Flags::pool,
    )
    .short("the same, because there is one host"),
    Opt::text(
        &["--max-body-size"],
        &[any("BYTES")],
        |flags: &mut Flags, value| set(flags, CrawlSetting::MaxBody(number(value)?)),
    )
    .short("largest page; a larger one is an error, never cut short"),
    Opt::show(&["-h", "--help"], Show::LongHelp).short("this help"),
    Opt::new(&["--"], &[], Set::Operands).short("only the URL follows"),
];
