//! Rows of the option table that say how transfers run: credentials from a file, protocols, speed, the progress meter
//! and transfers at the same time.

use super::Args;
use super::values::{bytes_or_none, count, seconds, set};
use crate::cli::option::{self, any, file};
use crate::get::args::{Early, TraceForm};
use crate::get::protocols::Protocols;
use crate::get::say;

type Opt = option::Opt<Args>;

pub(super) const NETRC: &[Opt] = &[
    Opt::switch(&["-n", "--netrc"], |args, on| {
        args.group.netrc.on = on;
    })
    .short("Take user and password for each host from ~/.netrc"),
    Opt::switch(&["--netrc-optional"], |args, on| {
        args.group.netrc.optional = on;
    })
    .short("As --netrc, but a password in the URL counts more"),
    Opt::bytes(&["--netrc-file"], &[file("<file>")], |args, v| {
        set(&mut args.group.netrc.file, v)
    })
    .short("As --netrc, with this file"),
];

pub(super) const PROTOCOLS: &[Opt] = &[
    Opt::text(&["--proto"], &[any("<protocols>")], |args, list| {
        let silent = args.low.global.silent;
        args.group.protocols.allowed = Some(protocols(Protocols::ALL, list, silent)?);
        Ok(())
    })
    .short("Allow only URLs of these protocols: =https or -all,http"),
    Opt::text(&["--proto-redir"], &[any("<protocols>")], |args, list| {
        let silent = args.low.global.silent;
        let usual = Protocols::of_redirects();
        args.group.protocols.redirects = Some(protocols(usual, list, silent)?);
        Ok(())
    })
    .short("Follow redirects only to these protocols"),
    Opt::text(&["--proto-default"], &[any("<protocol>")], |args, name| {
        let known = Protocols::known(name);
        if known.is_none() {
            let early = Early::UnknownProtocol(name.to_owned());
            args.low.early.get_or_insert(early);
        }
        args.group.protocols.default = known;
        Ok(())
    })
    .short("The protocol of URLs without one")
    .default("http"),
];

pub(super) const SPEED: &[Opt] = &[
    Opt::bytes(&["--limit-rate"], &[any("<bytes>")], |args, v| {
        bytes_or_none(&mut args.group.connect.rate, &v)
    })
    .short("At most so many bytes per second to and from a host")
    .long(
        "At most so many bytes per second from a host, and as many to it; k, M, G, T and P are powers of 1024. With --parallel, the transfers with one host share the rate.",
    ),
    Opt::bytes(&["-Y", "--speed-limit"], &[any("<bytes>")], |args, v| {
        args.group.speed.least = Some(count(&v)?);
        Ok(())
    })
    .short("Stop a transfer that is slower for --speed-time"),
    Opt::bytes(&["-y", "--speed-time"], &[any("<seconds>")], |args, v| {
        args.group.speed.time = Some(seconds(&v)?);
        Ok(())
    })
    .short("Stop a transfer slower than --speed-limit for so long"),
];

pub(super) const METER: &[Opt] = &[
    Opt::switch(&["-#", "--progress-bar"], |args, on| {
        args.low.global.meter.bar = on;
    })
    .short("Show the progress as a bar"),
    Opt::switch(&["--progress-meter"], |args, on| {
        args.low.global.meter.off = !on;
    })
    .short("Show the progress, which is so unless -s is given")
    .long(
        "Show the progress on standard error, unless the answer is printed on a terminal. This is so without the option; --no-progress-meter and -s show none.",
    ),
];

pub(super) const TRACE: &[Opt] = &[
    Opt::bytes(&["--trace"], &[file("<file>")], |args, v| {
        args.low.global.trace = Some((TraceForm::Hex, v));
        Ok(())
    })
    .short("Write all that is sent and received; - is stdout, % stderr")
    .long(
        "Write heads, bodies and what -v tells to this file, bodies as they are printed; - is stdout, and % is stderr. Credentials in heads are replaced by ***, as with -v. The last of --trace, --trace-ascii and -v counts.",
    ),
    Opt::bytes(&["--trace-ascii"], &[file("<file>")], |args, v| {
        args.low.global.trace = Some((TraceForm::Ascii, v));
        Ok(())
    })
    .short("As --trace, without hexadecimal numbers"),
    Opt::switch(&["--trace-time"], |args, on| {
        args.low.global.trace_time = on;
    })
    .short("Begin each line of --trace and -v with the time"),
];

pub(super) const PARALLEL: &[Opt] = &[
    Opt::switch(&["-Z", "--parallel"], |args, on| {
        args.low.global.parallel.on = on;
    })
    .short("Run the transfers at the same time"),
    Opt::bytes(&["--parallel-max"], &[any("<number>")], |args, v| {
        let most = usize::try_from(count(&v)?).unwrap_or(usize::MAX);
        // As in curl, what is out of range is the default.
        let in_range = (1..=MOST_PARALLEL).contains(&most);
        args.low.global.parallel.most = in_range.then_some(most);
        Ok(())
    })
    .short("With --parallel: so many at the same time, up to 300")
    .default("50"),
    Opt::switch(&["--parallel-immediate"], |_, _| ())
        .short("No effect: no transfer waits for the connection of another"),
];

fn protocols(base: Protocols, list: &str, silent: bool) -> Result<Protocols, String> {
    base.changed(list, |name| {
        if !silent {
            say(&format!("Warning: unrecognized protocol '{name}'"));
        }
    })
}

const MOST_PARALLEL: usize = 300;
