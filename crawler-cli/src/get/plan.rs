//! Combines the options of a command line into one [`Transfer`] for each URL, and reads the files that they name. Read
//! later: files of `-T`, which may be large, and TLS files, which only https needs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use courser::CookieJar;

use super::args::{Early, Global, Group, LowArgs};
use super::cookies::Cookies;
use super::data::{FileText, typed_or_file};
use super::exit::{Exit, Failure};
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
use super::target::has_scheme;
use super::upload::Upload;
use super::write_out::WriteOut;

/// A checked command line.
#[derive(Debug)]
pub(super) struct HiArgs {
    pub(super) global: Global,
    pub(super) transfers: Vec<Transfer>,
    /// The jar that all transfers with `-b` files or `-c` share.
    pub(super) jar: CookieJar,
}

/// One URL and where its output goes.
#[derive(Debug)]
pub(super) struct Transfer {
    /// As typed. It is parsed when the transfer begins.
    pub(super) url: OsString,
    pub(super) output: Option<OsString>,
    pub(super) upload: Option<Upload>,
    pub(super) options: Arc<Options>,
}

/// The options that the transfers of one group share.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) request: RequestOptions,
    pub(super) output: OutputOptions,
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
        let mut transfers = Vec::new();
        let jar = CookieJar::new();
        for mut group in low.groups {
            let urls = std::mem::take(&mut group.urls);
            let mut outputs = std::mem::take(&mut group.outputs).into_iter();
            let mut uploads = std::mem::take(&mut group.uploads).into_iter();
            let one_method = [
                group.request.head,
                !group.request.data.is_empty() && !group.request.get,
                uploads.len() > 0,
            ];
            if one_method.into_iter().filter(|asked| *asked).count() > 1 {
                return Err(usage(
                    "you can only select one of POST (-d, --data), PUT (-T, --upload-file) and HEAD (-I, --head)",
                ));
            }
            if group.request.bearer.is_none() {
                password::complete("host", &mut group.request.user);
            }
            password::complete("proxy", &mut group.proxy.user);
            let default = group.protocols.default;
            let options = Arc::new(Options::new(group, &jar)?);
            for url in urls {
                let output = match outputs.next() {
                    Some(None) => Some(remote_name(&url)?),
                    named => named.flatten(),
                };
                transfers.push(Transfer {
                    url: with_scheme(url, default),
                    output,
                    upload: uploads.next().and_then(Upload::new),
                    options: options.clone(),
                });
            }
            if outputs.next().is_some() {
                return Err(usage("more --output than URLs"));
            }
        }
        Ok(Self {
            global: low.global,
            transfers,
            jar,
        })
    }
}

impl HiArgs {
    /// Whether the progress of these transfers is shown. As in curl, not beside an answer on a terminal.
    pub(super) fn shows_progress(&self, transfers: &[Transfer]) -> bool {
        let to_stdout =
            |transfer: &Transfer| transfer.output.as_ref().is_none_or(|name| name == "-");
        let is_off = self.global.silent || self.global.meter.off;
        let is_beside = || transfers.iter().any(to_stdout) && io::stdout().is_terminal();
        !is_off && !is_beside()
    }

    /// What shows the progress of a transfer that runs alone.
    pub(super) fn view(&self, transfer: &Transfer) -> View {
        if !self.shows_progress(std::slice::from_ref(transfer)) {
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

impl Transfer {
    /// The kind of the first request.
    pub(super) fn kind(&self) -> Kind {
        match (&self.upload, &self.options.request.body) {
            (Some(_), _) => Kind::Put,
            (None, Some(_)) => Kind::Post,
            (None, None) if self.options.request.head_only => Kind::Head,
            (None, None) => Kind::Get,
        }
    }
}

impl Options {
    fn new(group: Group, jar: &CookieJar) -> Result<Self, Failure> {
        let proxy_headers = read_headers(&group.proxy.headers)?;
        let user_agent = group.request.user_agent.clone();
        let request = RequestOptions::new(group.request)?;
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
            max_time: group.result.max_time,
            write_out: write_out.map(|format| WriteOut::parse(&format)),
            cookies: Cookies::new(&group.cookies, jar),
            follow: group.follow,
            retry: group.retry,
            netrc: Netrc::new(&group.netrc)?,
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

/// The file name for `-O`: the last segment of the URL's path as typed.
fn remote_name(url: &OsStr) -> Result<OsString, Failure> {
    let url = url.as_bytes();
    let end = url.iter().position(|b| matches!(b, b'?' | b'#'));
    let url = &url[..end.unwrap_or(url.len())];
    let host = url
        .windows(3)
        .position(|w| w == b"://")
        .map_or(0, |at| at + 3);
    let name = match url[host..].iter().rposition(|b| *b == b'/') {
        Some(at) => &url[host + at + 1..],
        None => &[],
    };
    if name.is_empty() {
        let cause = "the URL has no file name for -O";
        return Err(Failure::new(Exit::Write, "write", cause));
    }
    Ok(OsStr::from_bytes(name).to_owned())
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

    #[test]
    fn names_of_files_in_urls() {
        for (url, name) in [
            ("http://h/a/b.txt?q=/x#/y", Some("b.txt")),
            ("h/%20;b", Some("%20;b")),
            ("http://h/a/", None),
            ("http://h", None),
            ("h?a/b", None),
        ] {
            let named = remote_name(url.as_ref());
            assert_eq!(named.as_deref().ok(), name.map(OsStr::new), "{url}");
        }
        let failure = plan(&["-O", "http://h/"]).unwrap_err();
        assert_eq!(failure.exit.code(), 23);
    }

    #[test]
    fn outputs_go_to_urls_in_order_within_their_group() {
        let plan = plan(&["-o", "a", "u1", "u2", "--next", "u3", "-o", "b"]).unwrap();
        let outputs: Vec<_> = plan.transfers.iter().map(|t| t.output.as_deref()).collect();
        assert_eq!(outputs, [Some("a".as_ref()), None, Some("b".as_ref())]);
    }

    #[test]
    fn refused() {
        let cases: &[(&[&str], u8, &str)] = &[
            (
                &["-I", "-d", "x", "u"],
                2,
                "options: you can only select one of POST (-d, --data), PUT",
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
            (&["-H", "host: ", "u"], 2, "options: HTTP/1.1 needs a Host"),
            (&["-e", "u;auto", "u"], 2, "options: a Referer of redirects"),
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
