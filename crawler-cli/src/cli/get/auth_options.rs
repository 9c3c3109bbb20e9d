//! Options of `crawler-cli get` about authentication with servers and proxies.

use super::Args;
use crate::cli::option;
use crate::get::auth::Schemes;

type Opt = option::Opt<Args>;

/// With servers.
pub(super) const SERVERS: &[Opt] = &[
    Opt::switch(&["--basic"], |args, on| args.group.request.auth.basic = on)
        .short("Use Basic authentication with -u; this is the default"),
    Opt::switch(&["--digest"], |args, on| args.group.request.auth.digest = on)
        .short("Use Digest authentication with -u")
        .long("Use Digest authentication with -u (RFC 7616), with the algorithms MD5, SHA-256 and SHA-512-256, and -sess of each. A body is sent only after the server has asked."),
    Opt::switch(&["--anyauth"], |args, on| {
        args.group.request.auth = if on { Schemes::ANY } else { Schemes::default() };
    })
    .short("Use the strongest authentication that the server asks for")
    .long("Send the first request without credentials, and then use the strongest authentication that the server asks for: Bearer with --oauth2-bearer, Digest, or Basic. A body is sent twice, so it cannot be stdin."),
    Opt::switch(&["--disallow-username-in-url"], |args, on| {
        args.group.request.no_user_in_url = on
    })
    .short("Refuse URLs with a user name"),
];

/// With proxies.
pub(super) const PROXIES: &[Opt] = &[
    // As in curl, the other two come before this one, whatever their order.
    Opt::switch(&["--proxy-basic"], |_, _| ())
        .short("Use Basic authentication with -U; this is the default"),
    Opt::switch(&["--proxy-digest"], |args, on| {
        args.group.proxy.auth.digest = on
    })
    .short("Use Digest authentication with -U"),
    Opt::switch(&["--proxy-anyauth"], |args, on| {
        args.group.proxy.auth.any = on
    })
    .short("Use the strongest authentication that the proxy asks for"),
];
