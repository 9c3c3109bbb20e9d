//! `crawler-cli get`: fetches URLs with curl's option names and exit codes. The engine's
//! [`Client`](courser::Client) sends the requests; this module has curl's rules for options, redirects, retries and
//! output.
//!
//! ```text
//!  arguments ─▶ LowArgs (what was typed) ─▶ HiArgs (what it means) ─▶ Session::run for each URL ─▶ Facts ─▶ -w, errors
//! ```
//!
//! Deliberate differences from curl:
//! - Nothing is sent before the whole command line is checked and every file named in it is read. A file that cannot be
//!   read is exit code 26, never an empty body.
//! - Credentials appear in no message, no head that `-v` and `--trace` show, and no `-w` variable.
//! - `--max-filesize` also limits bodies without an announced length: the transfer ends at the limit.
//! - These are usage errors: a header line without a colon, bytes that would break the framing of the request, and more
//!   `-o` than URLs.
//! - After a redirect to another origin, credentials and the text of `-b` are not sent again, even if a later redirect
//!   leads back.
//! - With a proxy, a `Proxy-Authorization` of `-H` is sent to the proxy and never to a server.
//! - 304, 305, 306 and unknown 3xx are no redirects. A `Host` of `-H` goes to the first host and port alone, and headers
//!   of `-H` that describe the body are dropped with the body. The body of a redirect is not awaited for long.
//! - The default certificate authorities are Mozilla's, compiled in, unless `CURL_CA_BUNDLE` or `SSL_CERT_FILE` names a
//!   file. A folder of `--capath` has to be there.
//! - A nonce of Digest authentication stays with the server that chose it, and of several Digest challenges the first
//!   that can be answered is. An `Authorization` of `-H` is all that a server gets. `--max-redirs` counts redirects alone.
//! - A truncated body is an error for every framing that can detect it, and so is a truncated head (exit code 56).
//! - `--limit-rate` holds for a host, and a transfer that is alone has it alone; curl's holds for each transfer of `-Z`.
//! - A file that a server names with `-J` never replaces a hidden file. `--etag-save` keeps the file of a response
//!   without an `ETag`.

pub(crate) mod args;
pub(crate) mod auth;
mod certificate;
mod condition;
mod cookies;
mod data;
mod dump;
mod encoder;
mod exit;
mod facts;
mod field;
pub(crate) mod files;
pub(crate) mod form;
mod glob;
mod headers;
mod interface;
mod link;
mod local;
mod mask;
mod meter;
mod multipart;
pub(crate) mod netrc;
mod output;
mod parallel;
mod password;
mod pipe;
mod plan;
mod pool;
mod progress;
pub(crate) mod protocols;
pub(crate) mod rate;
mod redirect;
mod replace;
mod request;
mod response;
mod retry;
mod settings;
mod show;
mod target;
mod tls;
mod transfer;
mod upload;
mod write_out;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use courser::CookieJar;

use args::LowArgs;
use exit::{Exit, Failure};
use facts::Facts;
pub(crate) use output::say;
use output::write_stdout;
use plan::{HiArgs, Transfer};
use progress::Progress;
use rate::Pacer;
use replace::write_file;
use show::Trace;
use transfer::{Session, SharedState};
use write_out::WriteOut;

use crate::crawl::cookie_file;

/// Transfers the URLs and returns curl's exit code for the last transfer.
pub(crate) fn run(args: LowArgs) -> ExitCode {
    if let Some(name) = &args.global.stderr
        && let Err(error) = redirect_stderr(name)
    {
        say(&format!("Warning: --stderr {}: {error}", name.display()));
    }
    let exit = match HiArgs::new(args) {
        Ok(args) => transfer_all(&args),
        Err(failure) => {
            say(&format!("crawler-cli: ({}) {failure}", failure.exit.code()));
            failure.exit
        }
    };
    exit.into()
}

/// `--stderr`: all messages go to this file; `-` is stdout.
fn redirect_stderr(name: &OsStr) -> io::Result<()> {
    if name == "-" {
        rustix::stdio::dup2_stderr(io::stdout())?;
    } else {
        rustix::stdio::dup2_stderr(File::create(name)?)?;
    }
    Ok(())
}

fn transfer_all(args: &HiArgs) -> Exit {
    let global = &args.global;
    for warning in args.warnings.iter().filter(|_| !global.silent) {
        say(&format!("Warning: {warning}"));
    }
    if let Some(option) = global.newer_http
        && !global.silent
    {
        say(&format!("Warning: {option}: HTTP/1.1 is used"));
    }
    let trace = match Trace::new(global) {
        Ok(trace) => trace,
        Err(failure) => {
            say(&format!("crawler-cli: ({}) {failure}", failure.exit.code()));
            return failure.exit;
        }
    };
    let exit = match global.parallel.on {
        true => parallel::transfer_all(args, &trace),
        false => transfer_in_turn(args, &trace),
    };
    match trace.failure() {
        Some(failure) => {
            if (!global.silent || global.show_error) && !failure.reader_gone {
                let code = failure.exit.code();
                say(&format!(
                    "crawler-cli: ({code}) the trace is not complete: {failure}"
                ));
            }
            if exit == Exit::Ok { failure.exit } else { exit }
        }
        None => exit,
    }
}

/// Runs one transfer after the other. The exit code is that of the last one.
fn transfer_in_turn(args: &HiArgs, trace: &Trace) -> Exit {
    let global = &args.global;
    let shared = SharedState::default();
    let mut session = Session::new(trace.clone(), global.silent, args.jar.clone(), shared);
    let mut pacer = Pacer::default();
    let mut exit = Exit::Ok;
    for (urlnum, transfer) in args.transfers() {
        let transfer = match transfer {
            Ok(transfer) => transfer,
            Err(failure) => return not_begun(args, &failure),
        };
        if let Some(rate) = global.rate {
            thread::sleep(pacer.delay(rate, Instant::now()));
        }
        let view = args.view(&transfer);
        let progress = Progress::new(view, transfer.options.slow, Instant::now());
        let (facts, outcome) = session.run(&transfer, urlnum, progress);
        let outcome = settle(args, &transfer, &facts, outcome);
        let (code, ends) = verdict(args, &outcome);
        if ends {
            return code;
        }
        exit = code;
    }
    exit
}

/// Prints why a transfer cannot begin. No other one begins after it.
fn not_begun(args: &HiArgs, failure: &Failure) -> Exit {
    if !args.global.silent || args.global.show_error {
        say(&format!("crawler-cli: ({}) {failure}", failure.exit.code()));
    }
    failure.exit
}

/// Prints what is to be said about a transfer that has ended, and returns its outcome.
fn settle(
    args: &HiArgs,
    transfer: &Transfer,
    facts: &Facts,
    mut outcome: Result<(), Failure>,
) -> Result<(), Failure> {
    let global = &args.global;
    let show = |failure: &Failure| {
        if (!global.silent || global.show_error) && !failure.reader_gone {
            let code = failure.exit.code();
            let (url, hint) = (&facts.url, failure.hint);
            say(&format!("crawler-cli: ({code}) {url}: {failure}{hint}"));
        }
    };
    if let Err(failure) = &outcome {
        show(failure);
    }
    if let Some(format) = &transfer.options.write_out {
        let written = write_out(format, facts);
        if let (Ok(()), Err(failure)) = (&outcome, &written) {
            show(failure);
            outcome = written;
        }
    }
    if let Some(path) = &transfer.options.cookies.save
        && let Err(failure) = save_cookies(path, &args.jar)
        && !global.silent
    {
        say(&format!("Warning: {failure}"));
    }
    outcome
}

/// The exit code for an outcome, and whether no further transfer begins.
fn verdict(args: &HiArgs, outcome: &Result<(), Failure>) -> (Exit, bool) {
    match outcome {
        Ok(()) => (Exit::Ok, false),
        // As in curl, nothing follows a file that cannot be sent.
        Err(failure) => {
            let ends = failure.reader_gone || args.global.fail_early || failure.exit == Exit::Read;
            (failure.exit, ends)
        }
    }
}

/// `-c`: saved after each transfer, so that an interrupted command loses little. If that fails, the old file stays.
fn save_cookies(path: &Path, jar: &CookieJar) -> Result<(), Failure> {
    write_file(path, cookie_file::saved(jar).as_bytes())
}

fn write_out(format: &WriteOut, facts: &Facts) -> Result<(), Failure> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    format
        .fill(facts, &mut stdout, &mut stderr)
        .map_err(|error| Failure::write("--write-out", &error))?;
    // An error on stderr cannot be reported anywhere.
    let _ = io::stderr().lock().write_all(&stderr);
    write_stdout(&stdout)
}
