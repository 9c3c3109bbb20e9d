//! The options of `crawler-cli get` about files and conditions: curl's names.

use super::Args;
use super::values::{integer, set};
use crate::cli::option::{self, any, file};
use crate::get::files::{Clobber, Resume};

type Opt = option::Opt<Args>;

pub(super) const CONDITIONS: &[Opt] = &[
    Opt::bytes(&["-z", "--time-cond"], &[file("<time>")], |args, v| {
        set(&mut args.group.request.time, v)
    })
    .short("Fetch only what changed after this date or this file's time")
    .long(
        "Fetch only what has changed since this date, or since the time of the file with this name. With a minus sign before, fetch only what has not changed since. A text that is neither a date nor a file is no condition.",
    ),
    Opt::bytes(&["--etag-save"], &[file("<file>")], |args, v| {
        set(&mut args.group.files.etag, v)
    })
    .short("Write the ETag of the answer to this file"),
    Opt::bytes(&["--etag-compare"], &[file("<file>")], |args, v| {
        set(&mut args.group.files.compared_etag, v)
    })
    .short("Fetch only if the ETag is not that in this file"),
];

pub(super) const FRAMING: &[Opt] = &[
    Opt::bytes(&["--request-target"], &[any("<path>")], |args, v| {
        set(&mut args.group.request.target, v)
    })
    .short("Send this in the request line, instead of path and query"),
    Opt::switch(&["--raw"], |args, on| args.group.request.raw = on)
        .short("Decode neither the content nor the chunks of answers"),
    Opt::switch(&["--ignore-content-length"], |args, on| {
        args.group.request.ignore_length = on
    })
    .short("Read a body until the server closes the connection"),
];

pub(super) const COOKIES: &[Opt] = &[Opt::switch(&["-j", "--junk-session-cookies"], |args, on| {
    args.group.cookies.junk_session = on
})
.short("Leave out the session cookies in the files of -b")];

pub(super) const FILES: &[Opt] = &[
    Opt::switch(&["--remote-name-all"], |args, on| {
        let urls = args.group.urls.len();
        args.group.files.remote_names.push((urls, on));
    })
    .short("Use -O for all URLs that follow without -o"),
    Opt::switch(&["-J", "--remote-header-name"], |args, on| {
        args.group.files.named_by_header = on
    })
    .short("With -O, take the name in the header Content-Disposition")
    .long(
        "With -O, take the file name in the header Content-Disposition, if there is one. Directories in the name are dropped. A file that exists is not replaced, unless --clobber is given, and a hidden file never.",
    ),
    Opt::bytes(&["--output-dir"], &[file("<directory>")], |args, v| {
        set(&mut args.group.files.directory, v)
    })
    .short("Write the files of -o and -O in this directory"),
    Opt::switch(&["--create-dirs"], |args, on| {
        args.group.files.create_directories = on
    })
    .short("Create the directories that -o and --output-dir name"),
    Opt::switch(&["--clobber"], |args, on| {
        args.group.files.clobber = if on { Clobber::Always } else { Clobber::Never };
    })
    .short("Replace files; --no-clobber writes name.1 to name.99 instead"),
    Opt::switch(&["--remove-on-error"], |args, on| {
        args.group.files.remove_on_error = on
    })
    .short("Remove the output file of a transfer that fails"),
    Opt::bytes(&["-C", "--continue-at"], &[any("<offset>")], |args, v| {
        args.group.files.resume = Some(if v == "-" {
            Resume::AtEnd
        } else {
            let at = integer(&v)?;
            Resume::At(u64::try_from(at).map_err(|_| "expected a positive number")?)
        });
        Ok(())
    })
    .short("Continue a download at this byte; - is the end of the file"),
    Opt::switch(&["-R", "--remote-time"], |args, on| {
        args.group.files.remote_time = on
    })
    .short("Give the output file the time in the header Last-Modified"),
    Opt::bytes(&["-D", "--dump-header"], &[file("<file>")], |args, v| {
        set(&mut args.group.files.heads, v)
    })
    .short("Write the heads of answers to this file; - is stdout"),
    Opt::bytes(&["--create-file-mode"], &[any("<mode>")], |args, v| {
        let mode = v.to_str().and_then(|text| u32::from_str_radix(text, 8).ok());
        let mode = mode.filter(|mode| *mode <= 0o777);
        args.group.files.mode = Some(mode.ok_or("expected an octal number up to 777")?);
        Ok(())
    })
    .short("The mode of a file that -T creates at a file:// URL")
    .default("644"),
    Opt::bytes(&["--stderr"], &[file("<file>")], |args, v| {
        set(&mut args.low.global.stderr, v)
    })
    .short("Write messages to this file instead; - is stdout"),
    Opt::switch(&["-N", "--no-buffer"], |_, _| ())
        .short("No effect: output is never held back"),
];
