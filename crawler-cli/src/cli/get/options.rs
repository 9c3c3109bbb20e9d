//! The option table of `crawler-cli get`: curl's names.

use courser::{Family, TlsVersion};

use super::config;
use super::file_options::{CONDITIONS, COOKIES, FILES, FRAMING};
use super::form_options::FORMS;
use super::run_options::{METER, NETRC, PARALLEL, PROTOCOLS, SPEED, TRACE};
use super::values::{count, duration, integer, push, range, rate, scheme, set, size, tls_version};
use super::{Args, auth_options, connect_options, tls_options, version_options};
use crate::cli::option::{self, Section, Set, Show, any, file};
use crate::get::args::Data;

type Opt = option::Opt<Args>;

pub(super) const TABLE: &[Section<Args>] = &[
    Section {
        heading: "The request",
        options: &[
            REQUEST,
            FORMS,
            COOKIES,
            CONDITIONS,
            FRAMING,
            NETRC,
            auth_options::SERVERS,
            version_options::VERSIONS,
        ],
    },
    Section {
        heading: "Redirects and retries",
        options: &[REDIRECTS],
    },
    Section {
        heading: "TLS",
        options: &[TLS, tls_options::SERVERS],
    },
    Section {
        heading: "How servers are reached",
        options: &[CONNECT, connect_options::CONNECTIONS, PROTOCOLS],
    },
    Section {
        heading: "Proxies",
        options: &[PROXIES, auth_options::PROXIES, tls_options::PROXIES],
    },
    Section {
        heading: "The result",
        options: &[RESULT, FILES, TRACE, METER],
    },
    Section {
        heading: "Limits",
        options: &[LIMITS, SPEED],
    },
    Section {
        heading: "The command line",
        options: &[config::OPTIONS, PARALLEL, COMMAND_LINE],
    },
];

const REQUEST: &[Opt] = &[
    Opt::bytes(&["-X", "--request"], &[any("<method>")], |args, v| {
        set(&mut args.group.request.method, v)
    })
    .short("Use this request method"),
    Opt::switch(&["-I", "--head"], |args, on| args.group.request.head = on)
        .short("Request only the head, and print it"),
    Opt::bytes(&["-H", "--header"], &[file("<header/@file>")], |args, v| {
        push(&mut args.group.request.headers, v)
    })
    .short("Send this header; 'Name:' removes it, 'Name;' sends it empty"),
    Opt::bytes(&["-d", "--data"], &[file("<data/@file>")], |args, v| {
        push(&mut args.group.request.data, Data::Ascii(v))
    })
    .short("POST this; line ends of a file are removed; @- is stdin"),
    Opt::bytes(&["--data-ascii"], &[file("<data/@file>")], |args, v| {
        push(&mut args.group.request.data, Data::Ascii(v))
    })
    .short("Same as --data"),
    Opt::bytes(&["--data-binary"], &[file("<data/@file>")], |args, v| {
        push(&mut args.group.request.data, Data::Binary(v))
    })
    .short("POST this byte for byte; @- is stdin"),
    Opt::bytes(&["--data-raw"], &[any("<data>")], |args, v| {
        push(&mut args.group.request.data, Data::Raw(v))
    })
    .short("POST this text; an @ has no special meaning"),
    Opt::bytes(&["--data-urlencode"], &[any("<data>")], |args, v| {
        push(&mut args.group.request.data, Data::Encoded(v))
    })
    .short("POST this percent-encoded: text, name=text or name@file"),
    Opt::switch(&["-G", "--get"], |args, on| args.group.request.get = on)
        .short("GET, with the data of -d in the query of the URL"),
    Opt::bytes(&["--url-query"], &[any("<data>")], |args, v| {
        push(&mut args.group.request.query, v)
    })
    .short("Add to the query, as --data-urlencode; +text is as it is"),
    Opt::bytes(&["--json"], &[file("<data/@file>")], |args, v| {
        args.group.request.json = true;
        push(&mut args.group.request.data, Data::Json(v))
    })
    .short("POST this as JSON, and ask for JSON in the answer"),
    Opt::bytes(&["-T", "--upload-file"], &[file("<file>")], |args, v| {
        push(&mut args.group.uploads, v)
    })
    .short("PUT this file, once for each URL; - is stdin"),
    Opt::bytes(&["-A", "--user-agent"], &[any("<name>")], |args, v| {
        set(&mut args.group.request.user_agent, v)
    })
    .short("Send this User-Agent; '' sends no User-Agent"),
    Opt::bytes(&["-u", "--user"], &[any("<user:password>")], |args, v| {
        set(&mut args.group.request.user, v)
    })
    .short("Send these credentials; asks for a missing password"),
    Opt::bytes(&["--oauth2-bearer"], &[any("<token>")], |args, v| {
        set(&mut args.group.request.bearer, v)
    })
    .short("Use Bearer authentication"),
    Opt::bytes(&["-e", "--referer"], &[any("<url>")], |args, v| {
        set(&mut args.group.request.referer, v)
    })
    .short("Send this Referer"),
    Opt::bytes(&["-r", "--range"], &[any("<range>")], |args, v| {
        set(&mut args.group.request.range, range(v))
    })
    .short("Request only these bytes, for example 0-499 or -500"),
    Opt::bytes(&["-b", "--cookie"], &[file("<data/file>")], |args, v| {
        push(&mut args.group.cookies.cookies, v)
    })
    .short("Send 'name=value', or the cookies in a Netscape file"),
    Opt::bytes(&["-c", "--cookie-jar"], &[file("<file>")], |args, v| {
        set(&mut args.group.cookies.jar, v)
    })
    .short("Write all cookies to this file after each transfer"),
    Opt::switch(&["--compressed"], |args, on| {
        args.group.request.compressed = on
    })
    .short("Ask for a compressed answer, and decode it"),
    Opt::switch(&["--path-as-is"], |args, on| {
        args.group.request.path_as_is = on
    })
    .short("Keep /../ and /./ in the path"),
    Opt::switch(&["-g", "--globoff"], |args, on| {
        args.group.request.globoff = on
    })
    .short("Take {} and [] in URLs as they are: no globbing"),
    Opt::bytes(&["--url"], &[any("<url>")], |args, v| {
        push(&mut args.group.urls, v)
    })
    .short("Fetch this URL; the option name may be omitted"),
    Opt::bytes(&["--unix-socket"], &[file("<path>")], |args, v| {
        set(&mut args.group.connect.unix_socket, v)
    })
    .short("Connect through this Unix domain socket"),
];

const REDIRECTS: &[Opt] = &[
    Opt::switch(&["-L", "--location"], |args, on| args.group.follow.on = on)
        .short("Follow redirects"),
    Opt::switch(&["--location-trusted"], |args, on| {
        args.group.follow.on = on;
        args.group.follow.trusting = on;
    })
    .short("Follow redirects, and send credentials to other hosts too"),
    Opt::bytes(&["--max-redirs"], &[any("<number>")], |args, v| {
        let most = integer(&v)?;
        // Below 0 is without a limit.
        args.group.follow.limit = (most >= 0).then(|| u32::try_from(most).unwrap_or(u32::MAX));
        Ok(())
    })
    .short("Follow at most so many redirects; -1 is no limit")
    .default("50"),
    Opt::switch(&["--post301"], |args, on| args.group.follow.post301 = on)
        .short("Keep POST as the method after a 301"),
    Opt::switch(&["--post302"], |args, on| args.group.follow.post302 = on)
        .short("Keep POST as the method after a 302"),
    Opt::switch(&["--post303"], |args, on| args.group.follow.post303 = on)
        .short("Keep POST as the method after a 303"),
    Opt::bytes(&["--retry"], &[any("<number>")], |args, v| {
        args.group.retry.times = count(&v)?;
        Ok(())
    })
    .short("Retry so many times after problems that may pass")
    .long(
        "Retry so many times after a time-out, a name that cannot be resolved, and the statuses 408, 429, 500, 502, 503 and 504. The delay that a server asks for with Retry-After counts more than others, up to 6 hours. If it ends after --retry-max-time, there is no retry.",
    ),
    Opt::bytes(&["--retry-delay"], &[any("<seconds>")], |args, v| {
        duration(&mut args.group.retry.delay, &v)
    })
    .short("Wait so long before each retry, instead of 1, 2, 4... s"),
    Opt::bytes(&["--retry-max-time"], &[any("<seconds>")], |args, v| {
        duration(&mut args.group.retry.max_time, &v)
    })
    .short("Start no retry later than this time"),
    Opt::switch(&["--retry-connrefused"], |args, on| {
        args.group.retry.refused = on
    })
    .short("Retry after refused connections too"),
    Opt::switch(&["--retry-all-errors"], |args, on| {
        args.group.retry.all_errors = on
    })
    .short("Retry after any error"),
];

const TLS: &[Opt] = &[
    Opt::switch(&["-k", "--insecure"], |args, on| {
        args.group.tls.insecure = on
    })
    .short("Accept any certificate"),
    Opt::bytes(&["--cacert"], &[file("<file>")], |args, v| {
        set(&mut args.group.tls.roots, v)
    })
    .short("Trust these authorities and no others"),
    Opt::bytes(&["--crlfile"], &[file("<file>")], |args, v| {
        set(&mut args.group.tls.crl, v)
    })
    .short("Check certificates against this revocation list"),
    Opt::bytes(
        &["-E", "--cert"],
        &[file("<file[:password]>")],
        |args, v| set(&mut args.group.tls.certificate, v),
    )
    .short("Present this certificate if the server asks for one"),
    Opt::bytes(&["--key"], &[file("<file>")], |args, v| {
        set(&mut args.group.tls.key, v)
    })
    .short("The private key of --cert, if it is in another file"),
    Opt::switch(&["--tlsv1.2"], |args, on| {
        args.group.tls.min = on.then_some(TlsVersion::V1_2)
    })
    .short("Use TLS 1.2 or later"),
    Opt::switch(&["--tlsv1.3"], |args, on| {
        args.group.tls.min = on.then_some(TlsVersion::V1_3)
    })
    .short("Use TLS 1.3 or later"),
    Opt::bytes(&["--tls-min"], &[any("<version>")], |args, v| {
        tls_version(&mut args.group.tls.min, &v)
    })
    .short("The lowest version of TLS: 1.2 or 1.3"),
    Opt::bytes(&["--tls-max"], &[any("<version>")], |args, v| {
        tls_version(&mut args.group.tls.max, &v)
    })
    .short("The highest version of TLS: 1.2 or 1.3"),
];

const CONNECT: &[Opt] = &[
    Opt::switch(&["-4", "--ipv4"], |args, on| {
        args.group.connect.family = on.then_some(Family::V4)
    })
    .short("Connect to IPv4 addresses only"),
    Opt::switch(&["-6", "--ipv6"], |args, on| {
        args.group.connect.family = on.then_some(Family::V6)
    })
    .short("Connect to IPv6 addresses only"),
    Opt::bytes(&["--resolve"], &[any("<host:port:addr,...>")], |args, v| {
        push(&mut args.group.connect.resolve, v)
    })
    .short("Use these addresses for the host; host * is all hosts"),
    Opt::bytes(&["--connect-to"], &[any("<h:p:h:p>")], |args, v| {
        push(&mut args.group.connect.connect_to, v)
    })
    .short("Connect to the second host and port instead of the first"),
];

const PROXIES: &[Opt] = &[
    Opt::bytes(&["-x", "--proxy"], &[any("<url>")], |args, v| {
        set(&mut args.group.proxy.proxy, v)
    })
    .short("Use this http, https, socks5 or socks5h proxy; '' is none"),
    Opt::bytes(
        &["-U", "--proxy-user"],
        &[any("<user:password>")],
        |args, v| set(&mut args.group.proxy.user, v),
    )
    .short("Send these credentials to the proxy"),
    Opt::bytes(&["--proxy-header"], &[file("<header/@file>")], |args, v| {
        push(&mut args.group.proxy.headers, v)
    })
    .short("Send this header only to the proxy"),
    Opt::switch(&["-p", "--proxytunnel"], |args, on| {
        args.group.proxy.tunnel = on
    })
    .short("Use a tunnel through an HTTP proxy for http URLs too"),
    Opt::switch(&["--proxy-insecure"], |args, on| {
        args.group.proxy.tls.insecure = on
    })
    .short("Accept any certificate of an https proxy"),
    Opt::bytes(&["--proxy-cacert"], &[file("<file>")], |args, v| {
        set(&mut args.group.proxy.tls.roots, v)
    })
    .short("Trust only these authorities for an https proxy"),
    Opt::bytes(&["--proxy-crlfile"], &[file("<file>")], |args, v| {
        set(&mut args.group.proxy.tls.crl, v)
    })
    .short("Check certificates of the proxy against this list"),
    Opt::bytes(
        &["--proxy-cert"],
        &[file("<file[:password]>")],
        |args, v| set(&mut args.group.proxy.tls.certificate, v),
    )
    .short("Present this certificate if an https proxy asks for one"),
    Opt::bytes(&["--proxy-key"], &[file("<file>")], |args, v| {
        set(&mut args.group.proxy.tls.key, v)
    })
    .short("The private key of --proxy-cert"),
    Opt::bytes(&["--noproxy"], &[any("<hosts>")], |args, v| {
        set(&mut args.group.proxy.noproxy, v)
    })
    .short("Connect to these hosts without the proxy; * is all hosts"),
    Opt::bytes(&["--socks5"], &[any("<host:port>")], |args, v| {
        scheme(&mut args.group.proxy.proxy, "socks5://", &v)
    })
    .short("Same as -x socks5://"),
    Opt::bytes(&["--socks5-hostname"], &[any("<host:port>")], |args, v| {
        scheme(&mut args.group.proxy.proxy, "socks5h://", &v)
    })
    .short("Same as -x socks5h://"),
];

const RESULT: &[Opt] = &[
    Opt::bytes(&["-o", "--output"], &[file("<file>")], |args, v| {
        push(&mut args.group.outputs, Some(v))
    })
    .short("Write to this file, one for each URL; - is stdout"),
    Opt::switch(&["-O", "--remote-name"], |args, on| {
        if on {
            args.group.outputs.push(None);
        }
    })
    .short("Write to a file with the last name in the URL's path"),
    Opt::switch(&["-i", "--include"], |args, on| {
        args.group.result.include = on
    })
    .short("Print the heads of answers too"),
    Opt::switch(&["--suppress-connect-headers"], |args, on| {
        args.group.result.suppress_connect_headers = on
    })
    .short("With -i, do not print the answer of a proxy to CONNECT"),
    Opt::switch(&["-f", "--fail"], |args, on| args.group.result.fail = on)
        .short("Print no body and exit with 22 if the status is 400 or more"),
    Opt::switch(&["--fail-with-body"], |args, on| {
        args.group.result.fail_with_body = on
    })
    .short("Like --fail, but print the body"),
    Opt::bytes(
        &["-w", "--write-out"],
        &[file("<format/@file>")],
        |args, v| set(&mut args.group.result.write_out, v),
    )
    .short("Print this text with its %{variables} after each URL"),
    Opt::switch(&["-s", "--silent"], |args, on| args.low.global.silent = on)
        .short("Print no errors"),
    Opt::switch(&["-S", "--show-error"], |args, on| {
        args.low.global.show_error = on
    })
    .short("Print errors even with -s"),
    Opt::switch(&["-v", "--verbose"], |args, on| {
        args.low.global.verbose = on;
        args.low.global.trace = None;
    })
    .short("Print heads and connection events on stderr")
    .long(
        "Print heads and connection events on standard error. Credentials are replaced by ***: those of Authorization and Proxy-Authorization, the values of cookies, users and passwords in the URLs of Location, Content-Location and Referer, and headers with names that end in api-key, apikey, token or secret.",
    ),
];

const LIMITS: &[Opt] = &[
    Opt::bytes(&["-m", "--max-time"], &[any("<seconds>")], |args, v| {
        duration(&mut args.group.result.max_time, &v)
    })
    .short("The longest time for each URL")
    .long(
        "The longest time for each URL. With --retry, each attempt has this time, and the delays between them are not a part of it: --retry-max-time limits them.",
    ),
    Opt::bytes(&["--connect-timeout"], &[any("<seconds>")], |args, v| {
        duration(&mut args.group.connect.timeout, &v)
    })
    .short("The longest time to connect"),
    Opt::bytes(&["--max-filesize"], &[any("<bytes>")], |args, v| {
        size(&mut args.group.result.max_filesize, &v)
    })
    .short("The largest body; k, M, G, T and P are powers of 1024"),
    Opt::bytes(&["--rate"], &[any("<N/unit>")], |args, v| {
        rate(&mut args.low.global.rate, &v)
    })
    .short("Start at most N URLs per s, m, h or d"),
];

const COMMAND_LINE: &[Opt] = &[
    Opt::switch(&["--fail-early"], |args, on| {
        args.low.global.fail_early = on
    })
    .short("Stop at the first URL that fails"),
    Opt::flag(&["-:", "--next"], Args::next_group).short("Start a new group of options and URLs"),
    Opt::new(&["--"], &[], Set::Operands).short("Only URLs follow"),
    Opt::show(&["-h"], Show::ShortHelp).short("Print an overview"),
    Opt::show(&["--help"], Show::LongHelp).short("Print this help"),
    Opt::show(&["--man"], Show::Man).short("Print the man page, for man -l -"),
    Opt::show(&["-V", "--version"], Show::Version).short("Print the version"),
];
