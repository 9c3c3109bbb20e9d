//! Options of `crawler-cli get` about the version of HTTP.

use super::Args;
use crate::cli::option;

type Opt = option::Opt<Args>;

pub(super) const VERSIONS: &[Opt] = &[
    Opt::flag(&["-0", "--http1.0"], |args| {
        args.group.request.http10 = true
    })
    .short("Send requests of HTTP/1.0"),
    Opt::flag(&["--http1.1"], |args| args.group.request.http10 = false)
        .short("Send requests of HTTP/1.1; this is the default"),
    newer(&["--http2"], |args| args.newer("--http2")),
    newer(&["--http2-prior-knowledge"], |args| {
        args.newer("--http2-prior-knowledge")
    }),
    newer(&["--http3"], |args| args.newer("--http3")),
    newer(&["--http3-only"], |args| args.newer("--http3-only")),
];

const fn newer(names: &'static [&'static str], set: fn(&mut Args)) -> Opt {
    Opt::flag(names, set).short("Warn, and use HTTP/1.1: there is no newer version here")
}
