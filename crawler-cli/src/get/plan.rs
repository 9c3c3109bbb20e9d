//! Combines the options of a command line into one [`Transfer`] for each URL, and reads the files that they name. Read
//! later: files of `-T`, which may be large, and TLS files, which only https needs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::Arc;
use std::time::Duration;

use courser::CookieJar;

use super::args::{Early, Global, Group, LowArgs};
use super::condition::read_etag;
use super::cookies::Cookies;
use super::data::{FileText, typed_or_file};
use super::exit::{Exit, Failure};
use super::files::{FileOptions, remote_name};
use super::glob::Glob;
use super::headers::{for_proxy, read_headers};
use super::netrc::Netrc;
use super::password;
use super::progress::{SlowRule, View};
use super::protocols::ProtocolArgs;
use super::redirect::Follow;
use super::request::{Kind, RequestOptions};
use super::response::OutputOptions;
use super::retry::Retry;
use super::settings::Settings;
use super::target::{has_scheme, without_credentials};
use super::upload::Upload;
use super::write_out::WriteOut;

/// A checked command line.
#[derive(Debug)]
pub(super) struct HiArgs {
    pub(super) global: Global,
    pub(super) sources: Vec<Source>,
    /// The jar that all transfers with `-b` files or `-c` share.
    pub(super) jar: CookieJar,
    /// What is not as it should be, and no error.
    pub(super) warnings: Vec<String>,
}

/// One URL of the command line, of which a glob may make many.
#[derive(Debug)]
pub(super) struct Source {
    url: Glob,
    /// `-T`. Each of these files is sent to each of the URLs.
    upload: Option<Glob>,
    output: Output,
    globs: bool,
    pub(super) options: Arc<Options>,
}

/// Where the output of a URL goes.
#[derive(Debug)]
enum Output {
    Stdout,
    /// `-o`
    Named(OsString),
    /// `-O`
    RemoteName,
}

/// One transfer and where its output goes.
#[derive(Debug)]
pub(super) struct Transfer {
    /// Without globs. It is parsed when the transfer begins.
    pub(super) url: OsString,
    pub(super) output: Option<OsString>,
    /// A header may name the output file (`-O` with `-J`).
    pub(super) named_by_header: bool,
    pub(super) upload: Option<Upload>,
    pub(super) options: Arc<Options>,
}

/// The options that the transfers of one group share.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) request: RequestOptions,
    pub(super) output: OutputOptions,
    pub(super) files: FileOptions,
    pub(super) max_time: Option<Duration>,
    pub(super) write_out: Option<WriteOut>,
    pub(super) cookies: Cookies,
    pub(super) follow: Follow,
    pub(super) retry: Retry,
    pub(super) settings: Settings,
    pub(super) netrc: Netrc,
    pub(super) protocols: ProtocolArgs,
    pub(super) slow: Option<SlowRule>,
}

impl HiArgs {
    /// Reads the files that the options name, stdin included.
    ///
    /// # Errors
    /// [`Exit::Usage`] for options that contradict each other, [`Exit::Read`] for a file that cannot be read,
    /// [`Exit::Write`] if `-O` finds no file name in a URL.
    pub(super) fn new(low: LowArgs) -> Result<Self, Failure> {
        match low.early {
            Some(Early::Unreadable(cause)) => return Err(Failure::new(Exit::Read, "read", cause)),
            Some(Early::UnknownProtocol(name)) => {
                let cause = format!("--proto-default {name}: no such protocol");
                return Err(Failure::new(Exit::UnsupportedProtocol, "options", cause));
            }
            None => {}
        }
        let mut sources = Vec::new();
        let mut warnings = Vec::new();
        let jar = CookieJar::new();
        for mut group in low.groups {
            let urls = std::mem::take(&mut group.urls);
            let mut outputs = std::mem::take(&mut group.outputs).into_iter();
            let mut uploads = std::mem::take(&mut group.uploads).into_iter();
            let one_method = [
                group.request.head,
                !group.request.data.is_empty() && !group.request.get,
                !group.form.fields.is_empty(),
                uploads.len() > 0,
            ];
            if one_method.into_iter().filter(|asked| *asked).count() > 1 {
                return Err(usage(
                    "you can only select one of POST (-d, --data), form (-F, --form), PUT (-T, --upload-file) and HEAD (-I, --head)",
                ));
            }
            if group.files.named_by_header && (group.result.include || group.request.head) {
                return Err(usage(
                    "showing headers and --remote-header-name cannot be combined",
                ));
            }
            // What the server names is never continued: it may be any file.
            if group.files.named_by_header && group.files.resume.is_some() {
                return Err(usage(
                    "--continue-at and --remote-header-name cannot be combined",
                ));
            }
            let sends = uploads.len() > 0 || one_method[1] || one_method[2];
            if group.files.resume.is_some() && sends {
                return Err(usage(
                    "--continue-at is for downloads, and not for what is sent",
                ));
            }
            if group.request.bearer.is_none() {
                password::complete("host", &mut group.request.user);
            }
            password::complete("proxy", &mut group.proxy.user);
            let remote_names: Vec<bool> = (0..urls.len())
                .map(|url| group.files.is_remote_name(url))
                .collect();
            let globs = !group.request.globoff;
            let default = group.protocols.default;
            let options = Arc::new(Options::new(group, &jar, &mut warnings)?);
            for (url, remote_name) in urls.into_iter().zip(remote_names) {
                let output = match outputs.next() {
                    Some(Some(name)) => Output::Named(name),
                    Some(None) => Output::RemoteName,
                    None if remote_name => Output::RemoteName,
                    None => Output::Stdout,
                };
                let upload = uploads.next().map(|name| glob(&name, globs));
                let source = Source {
                    url: glob(&with_scheme(url, default), globs)?,
                    upload: upload.transpose()?,
                    output,
                    globs,
                    options: options.clone(),
                };
                // The first file name is checked before anything is sent.
                source.transfer(0)?;
                sources.push(source);
            }
            if outputs.next().is_some() {
                return Err(usage("more --output than URLs"));
            }
        }
        Ok(Self {
            global: low.global,
            sources,
            jar,
            warnings,
        })
    }
}

impl HiArgs {
    /// All transfers, one after the other, with the numbers of their URLs on the command line. Globs are expanded on the way.
    ///
    /// # Errors
    /// [`Exit::Write`] if `-O` finds no file name in a URL.
    pub(super) fn transfers(&self) -> impl Iterator<Item = (usize, Result<Transfer, Failure>)> {
        let numbered = self.sources.iter().enumerate();
        numbered.flat_map(|(urlnum, s)| (0..s.count()).map(move |n| (urlnum, s.transfer(n))))
    }

    /// How many transfers there are.
    pub(super) fn count(&self) -> u64 {
        let counts = self.sources.iter().map(Source::count);
        counts.fold(0, u64::saturating_add)
    }

    /// Whether the progress of all transfers together is shown.
    pub(super) fn shows_joint_progress(&self) -> bool {
        self.shows_progress(self.sources.iter().any(Source::is_to_stdout))
    }

    /// Whether progress is shown. As in curl, not beside an answer on a terminal.
    fn shows_progress(&self, to_stdout: bool) -> bool {
        let is_off = self.global.silent || self.global.meter.off;
        !(is_off || to_stdout && io::stdout().is_terminal())
    }

    /// What shows the progress of a transfer that runs alone.
    pub(super) fn view(&self, transfer: &Transfer) -> View {
        let to_stdout = transfer.output.as_ref().is_none_or(|name| name == "-");
        if !self.shows_progress(to_stdout) {
            return View::Nothing;
        }
        match self.global.meter.bar {
            true => View::Bar {
                columns: columns(),
                step: 0,
            },
            false => View::Meter { is_new: true },
        }
    }
}

/// The width of the bar of `-#`: COLUMNS, that of the terminal, or 79.
fn columns() -> usize {
    let set = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let of_terminal = || {
        let (_, columns) = console::Term::stderr().size_checked()?;
        Some(usize::from(columns))
    };
    let columns = set.filter(|columns| *columns > 20).or_else(of_terminal);
    columns.unwrap_or(79).clamp(20, 256)
}

impl Source {
    /// How many transfers there are.
    pub(super) fn count(&self) -> u64 {
        let uploads = self.upload.as_ref().map_or(1, Glob::count);
        // More than fits is more than anybody can transfer.
        self.url.count().saturating_mul(uploads)
    }

    fn is_to_stdout(&self) -> bool {
        match &self.output {
            Output::Stdout => true,
            Output::Named(name) => name == "-",
            Output::RemoteName => false,
        }
    }

    /// The transfer with this number, which is below the count. All URLs of one file to upload come before the next
    /// file.
    ///
    /// # Errors
    /// [`Exit::Write`] if `-O` finds no file name in the URL, [`Exit::Usage`] if that of `-o` is empty.
    pub(super) fn transfer(&self, n: u64) -> Result<Transfer, Failure> {
        let urls = self.url.count();
        let url = self.url.nth(n % urls);
        let upload = self.upload.as_ref().map(|upload| upload.nth(n / urls).text);
        let files = &self.options.files;
        let mut named_by_header = false;
        let output = match &self.output {
            Output::Stdout => None,
            Output::Named(name) if name == "-" => Some(name.clone()),
            Output::Named(name) => {
                let name = match self.globs {
                    true => OsString::from_vec(url.fill(name.as_bytes())),
                    false => name.clone(),
                };
                if name.is_empty() {
                    return Err(usage("--output: the name of the file is empty"));
                }
                Some(files.place(&name).into())
            }
            Output::RemoteName => {
                let name = OsStr::from_bytes(remote_name(&url.text));
                named_by_header = files.named_by_header;
                if name.is_empty() && !named_by_header {
                    let url = without_credentials(&url.text);
                    let cause = format_args!("{url} has no file name for -O");
                    return Err(Failure::new(Exit::Write, "write", cause));
                }
                let is_named = !name.is_empty();
                Some(if is_named {
                    files.place(name).into()
                } else {
                    OsString::new()
                })
            }
        };
        Ok(Transfer {
            url: OsString::from_vec(url.text),
            output,
            named_by_header,
            upload: upload.and_then(|name| Upload::new(OsString::from_vec(name))),
            options: self.options.clone(),
        })
    }
}

fn glob(typed: &OsStr, globs: bool) -> Result<Glob, Failure> {
    if !globs {
        return Ok(Glob::literal(typed.as_bytes()));
    }
    Glob::parse(typed.as_bytes()).map_err(|error| {
        let url = without_credentials(typed.as_bytes());
        Failure::new(Exit::MalformedUrl, url, error)
    })
}

impl Transfer {
    /// The kind of the first request.
    pub(super) fn kind(&self) -> Kind {
        let request = &self.options.request;
        match &self.upload {
            Some(_) => Kind::Put,
            None if request.body.is_some() || request.form.is_some() => Kind::Post,
            None if request.head_only => Kind::Head,
            None => Kind::Get,
        }
    }
}

impl Options {
    fn new(mut group: Group, jar: &CookieJar, warnings: &mut Vec<String>) -> Result<Self, Failure> {
        if let Some(name) = &group.files.compared_etag {
            let etag = read_etag(name, group.files.etag.is_some())?;
            let header = [b"If-None-Match: ", &etag[..]].concat();
            group.request.headers.push(OsString::from_vec(header));
        }
        let proxy_headers = read_headers(&group.proxy.headers)?;
        let user_agent = group.request.user_agent.clone();
        let request = RequestOptions::new(group.request, &group.form, warnings)?;
        let write_out = match &group.result.write_out {
            Some(typed) => Some(typed_or_file(typed, FileText::WithoutLineEnds)?),
            None => None,
        };
        Ok(Self {
            settings: Settings::new(
                group.connect,
                group.tls,
                group.proxy,
                user_agent,
                for_proxy(&request.headers, proxy_headers),
            )?,
            output: OutputOptions {
                include: group.result.include || request.head_only,
                show_connect: !group.result.suppress_connect_headers,
                fail: group.result.fail,
                fail_with_body: group.result.fail_with_body,
                max_filesize: group.result.max_filesize,
            },
            request,
            files: FileOptions::new(group.files),
            max_time: group.result.max_time,
            write_out: write_out.map(|format| WriteOut::parse(&format)),
            cookies: Cookies::new(&group.cookies, jar),
            follow: group.follow,
            retry: group.retry,
            netrc: Netrc::new(&group.netrc, warnings)?,
            protocols: group.protocols,
            slow: SlowRule::new(group.speed),
        })
    }
}

/// The URL as typed, after `--proto-default` if it has no scheme.
fn with_scheme(url: OsString, default: Option<&str>) -> OsString {
    match default {
        Some(scheme) if !has_scheme(url.as_bytes()) => {
            let mut whole = OsString::from(scheme);
            whole.push("://");
            whole.push(url);
            whole
        }
        _ => url,
    }
}

pub(super) fn text(typed: OsString, what: &str) -> Result<String, Failure> {
    typed
        .into_string()
        .map_err(|_| usage(format_args!("the {what} is not UTF-8")))
}

pub(super) fn usage(cause: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, "options", cause)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cli::get::{Request, read};

    pub(in crate::get) fn plan(args: &[&str]) -> Result<HiArgs, Failure> {
        match read(args.iter().map(OsString::from).collect()) {
            Ok(Request::Transfers(args)) => HiArgs::new(args),
            _ => panic!("not a usable command line: {args:?}"),
        }
    }

    fn outputs(plan: &HiArgs) -> Vec<Option<OsString>> {
        let all = plan.sources.iter();
        let all = all.flat_map(|s| (0..s.count()).map(|n| s.transfer(n).unwrap().output));
        all.collect()
    }

    #[test]
    fn a_url_without_a_file_name_is_refused_for_the_option_o() {
        let failure = plan(&["-O", "http://h/a", "-O", "http://u:p@h/"]).unwrap_err();
        assert_eq!(failure.exit.code(), 23);
        assert_eq!(
            failure.to_string(),
            "write: http://h/ has no file name for -O"
        );
    }

    #[test]
    fn outputs_go_to_urls_in_order_within_their_group() {
        let plan = plan(&["-o", "a", "u1", "u2", "--next", "u3", "-o", "b"]).unwrap();
        assert_eq!(outputs(&plan), [Some("a".into()), None, Some("b".into())]);
    }

    #[test]
    fn refused() {
        let cases: &[(&[&str], u8, &str)] = &[
            (
                &["-I", "-d", "x", "u"],
                2,
                "options: you can only select one of POST (-d, --data), form",
            ),
            (
                &["-o", "a", "-o", "b", "u"],
                2,
                "options: more --output than URLs",
            ),
            (
                &["-H", "secret", "u"],
                2,
                "options: a header needs a colon after its name",
            ),
            (
                &["-o", "", "u"],
                2,
                "options: --output: the name of the file is empty",
            ),
            (&["-d", "@/nonexistent", "u"], 26, "read: /nonexistent: "),
            (
                &["--data-binary", "@/nonexistent", "u"],
                26,
                "read: /nonexistent: ",
            ),
            (&["-H", "@/nonexistent", "u"], 26, "read: /nonexistent: "),
            (&["-w", "@/nonexistent", "u"], 26, "read: /nonexistent: "),
        ];
        for (args, code, message) in cases {
            let failure = plan(args).unwrap_err();
            assert_eq!(failure.exit.code(), *code, "{args:?}");
            assert!(failure.to_string().starts_with(message), "{failure}");
        }
    }
}
