//! The option table of `crawler-cli get`: curl's names.

use std::path::PathBuf;

use courser::Family;

use super::Typed;
use super::values::{duration, fixed_addresses, interval, range};
use crate::cli::option::{self, Section, Set, Show, any, file};
use crate::get::args::Data;
use crate::values::{bytes_as_curl, number};

type Opt = option::Opt<Typed>;

pub(super) const TABLE: &[Section<Typed>] = &[
    Section {
        heading: "The request",
        options: &[REQUEST],
    },
    Section {
        heading: "Redirects, limits and connections",
        options: &[LIMITS, REACH],
    },
    Section {
        heading: "The result, and the command line",
        options: &[RESULT, COMMAND_LINE],
    },
];

const REQUEST: &[Opt] = &[
    Opt::text(&["-X", "--request"], &[any("<method>")], |t, v| {
        set(&mut t.group.request.method, Some(v.to_owned()))
    })
    .short("Use this request method"),
    Opt::switch(&["-I", "--head"], |t, on| t.group.request.head_only = on)
        .short("Request only the head, and print it"),
    Opt::bytes(&["-H", "--header"], &[file("<header/@file>")], |t, v| {
        push(&mut t.group.request.headers, v)
    })
    .short("Send this header; 'Name:' removes it, 'Name;' sends it empty"),
    Opt::bytes(&["-d", "--data"], &[file("<data/@file>")], |t, v| {
        push(&mut t.group.request.data, Data::Ascii(v))
    })
    .short("POST this; line ends of a file are removed; @- is stdin"),
    Opt::bytes(&["--data-binary"], &[file("<data/@file>")], |t, v| {
        push(&mut t.group.request.data, Data::Binary(v))
    })
    .short("POST this byte for byte; @- is stdin")
    .long("POST this byte for byte. @FILE is the content of a file; @- is standard input. A file of more than 64 MiB is read while it is sent: it has to be the only piece of data, and a redirect or a retry that needs it once more is an error, 65."),
    Opt::bytes(&["-T", "--upload-file"], &[file("<file>")], |t, v| {
        push(&mut t.group.request.uploads, v.into())
    })
    .short("PUT this file, once for each URL; - is stdin")
    .long("PUT this file, once for each URL; its name is appended to a URL that ends with /. A file of more than 64 MiB, a pipe and standard input, -, are read while they are sent: a redirect or a retry that needs them once more is an error, 65."),
    Opt::text(&["-A", "--user-agent"], &[any("<name>")], |t, v| {
        set(&mut t.group.reach.user_agent, Some(v.to_owned()))
    })
    .short("Send this User-Agent; '' sends no User-Agent"),
    Opt::text(&["-u", "--user"], &[any("<user:password>")], |t, v| match v.contains(':') {
        true => set(&mut t.group.request.user, Some(v.to_owned())),
        false => Err("expected USER:PASSWORD".to_owned()),
    })
    .short("Send these credentials (Basic)"),
    Opt::text(&["-r", "--range"], &[any("<range>")], |t, v| {
        set(&mut t.group.request.range, Some(range(v)))
    })
    .short("Request only these bytes, for example 0-499 or -500"),
    Opt::text(&["-b", "--cookie"], &[any("<name=value>")], |t, v| match v.contains('=') {
        true => push(&mut t.group.request.cookies, v.to_owned()),
        false => Err("expected NAME=VALUE".to_owned()),
    })
    .short("Send this cookie"),
    Opt::switch(&["--compressed"], |t, on| t.group.request.compressed = on)
        .short("Ask for a compressed answer, and decode it"),
];

const LIMITS: &[Opt] = &[
    Opt::switch(&["-L", "--location"], |t, on| t.group.follows = on)
        .short("Follow redirects"),
    Opt::text(&["--max-redirs"], &[any("<number>")], |t, v| {
        let most = if v == "-1" { u32::MAX } else { number(v)? };
        set(&mut t.group.max_redirects, Some(most))
    })
    .short("Follow at most so many redirects; -1 is no limit")
    .default("50"),
    Opt::text(&["--retry"], &[any("<number>")], |t, v| {
        set(&mut t.group.retries, number(v)?)
    })
    .short("Retry so many times after problems that may pass")
    .long(
        "Retry so many times after a connection that was not made in time, a name that cannot be resolved, and the statuses 408, 429, 500, 502, 503 and 504. The pauses before are random, up to 1, 2, 4 and more seconds; a longer Retry-After of the server, up to 6 hours, is waited for. No pause ends after --max-time.",
    ),
    Opt::text(&["-m", "--max-time"], &[any("<seconds>")], |t, v| {
        set(&mut t.group.max_time, duration(v)?)
    })
    .short("The longest time for each URL")
    .long("The longest time for each URL, with its redirects, its retries and the pauses before them."),
    Opt::text(&["--connect-timeout"], &[any("<seconds>")], |t, v| {
        set(&mut t.group.reach.connect_timeout, duration(v)?)
    })
    .short("The longest time to connect")
    .long("The longest time for each of: the lookup of a name, reaching an address, and the handshakes with the server and a proxy."),
    Opt::text(&["--max-filesize"], &[any("<bytes>")], |t, v| {
        set(&mut t.group.max_filesize, Some(bytes_as_curl(v)?).filter(|most| *most > 0))
    })
    .short("The largest body; k, M, G, T and P are powers of 1024"),
    Opt::text(&["--rate"], &[any("<N/unit>")], |t, v| {
        set(&mut t.args.global.interval, Some(interval(v)?))
    })
    .short("Start at most N URLs per s, m, h or d"),
];

const REACH: &[Opt] = &[
    Opt::flag(&["-4", "--ipv4"], |t| t.group.reach.family = Some(Family::V4))
        .short("Connect to IPv4 addresses only"),
    Opt::flag(&["-6", "--ipv6"], |t| t.group.reach.family = Some(Family::V6))
        .short("Connect to IPv6 addresses only"),
    Opt::text(&["--resolve"], &[any("<host:port:addr,...>")], |t, v| {
        t.group.reach.resolve.push(fixed_addresses(v)?);
        Ok(())
    })
    .short("Use these addresses for the host; host * is all hosts"),
    Opt::bytes(&["--unix-socket"], &[file("<path>")], |t, v| {
        set(&mut t.group.reach.unix_socket, Some(v.into()))
    })
    .short("Connect through this Unix domain socket"),
    Opt::text(&["-x", "--proxy"], &[any("<url>")], |t, v| {
        set(&mut t.group.reach.proxy, Some(v.to_owned()))
    })
    .short("Use this http, https, socks5 or socks5h proxy; '' is none")
    .env(&["http_proxy", "https_proxy", "all_proxy"]),
    Opt::text(&["--noproxy"], &[any("<hosts>")], |t, v| {
        set(&mut t.group.reach.noproxy, Some(v.to_owned()))
    })
    .short("Connect to these hosts without the proxy; * is all hosts")
    .env(&["no_proxy"]),
    Opt::switch(&["--lenient"], |t, on| t.group.reach.lenient = on)
        .short("Drop header lines that are wrong and harmless"),
    Opt::switch(&["-k", "--insecure"], |t, on| t.group.reach.insecure = on)
        .short("Accept any certificate, also of an https proxy"),
    Opt::bytes(&["--cacert"], &[file("<file>")], |t, v| {
        set(&mut t.group.reach.authorities, Some(v.into()))
    })
    .short("Trust these authorities and no others")
    .long("Trust the authorities in this file and no others. Without it and its variables, those of Mozilla are trusted, as compiled in. Those of the system are often in /etc/ssl/certs/ca-certificates.crt.")
    .env(&["CURL_CA_BUNDLE", "SSL_CERT_FILE"]),
    Opt::bytes(&["-E", "--cert"], &[file("<file>")], |t, v| {
        set(&mut t.group.reach.certificate, Some(v.into()))
    })
    .short("Present this certificate if the server asks for one"),
    Opt::bytes(&["--key"], &[file("<file>")], |t, v| {
        set(&mut t.group.reach.key, Some(v.into()))
    })
    .short("The private key of --cert, if it is in another file"),
];

const RESULT: &[Opt] = &[
    Opt::bytes(&["-o", "--output"], &[file("<file>")], |t, v| {
        push(&mut t.group.outputs, Some(PathBuf::from(v)))
    })
    .short("Write to this file, one for each URL; - is stdout"),
    Opt::flag(&["-O", "--remote-name"], |t| t.group.outputs.push(None))
        .short("Write to a file with the last name in the URL's path"),
    Opt::switch(&["-i", "--include"], |t, on| t.group.include = on)
        .short("Print the heads of answers too"),
    Opt::switch(&["-f", "--fail"], |t, on| t.group.fail = on)
        .short("Print no body and exit with 22 if the status is 400 or more"),
    Opt::bytes(&["-w", "--write-out"], &[file("<format/@file>")], |t, v| {
        set(&mut t.group.write_out, Some(v))
    })
    .short("Print this text with its %{variables} after each URL"),
    Opt::switch(&["--timing"], |t, on| t.args.global.timing = on)
        .short("Draw on stderr where the time of each request went")
        .long("Draw on standard error where the time of each request went: a bar for the lookup of the name, the connection, the handshakes, the wait for the answer, and its body. Redirects and retries are further requests."),
    Opt::switch(&["-s", "--silent"], |t, on| t.args.global.silent = on)
        .short("Print no errors"),
    Opt::switch(&["-S", "--show-error"], |t, on| t.args.global.show_error = on)
        .short("Print errors even with -s"),
    Opt::switch(&["-v", "--verbose"], |t, on| t.args.global.verbose = on)
        .short("Print heads and connection events on stderr")
        .long(
            "Print heads and connection events on standard error. Credentials are replaced by ***: those of Authorization and Proxy-Authorization, the values of cookies, users and passwords in the URLs of Location, Content-Location and Referer, and headers with names that end in api-key, apikey, token or secret.",
        ),
];

const COMMAND_LINE: &[Opt] = &[
    Opt::flag(&["-:", "--next"], Typed::next_group).short("Start a new group of options and URLs"),
    Opt::new(&["--"], &[], Set::Operands).short("Only URLs follow"),
    Opt::show(&["-h"], Show::ShortHelp).short("Print an overview"),
    Opt::show(&["--help"], Show::LongHelp).short("Print this help"),
    Opt::show(&["--man"], Show::Man).short("Print the man page, for man -l -"),
    Opt::show(&["-V", "--version"], Show::Version).short("Print the version"),
];

fn set<T>(to: &mut T, value: T) -> Result<(), String> {
    *to = value;
    Ok(())
}

fn push<T>(to: &mut Vec<T>, value: T) -> Result<(), String> {
    to.push(value);
    Ok(())
}
