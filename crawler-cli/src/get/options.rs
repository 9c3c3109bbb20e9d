//! The options of `crawler-cli get`: curl's names.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use courser::policy::{Family, Override};

use super::values::{
    Time, cookie, duration, fixed_addresses, interval, path, range, redirects, user,
};
use plain::values::{bytes_as_curl, number};

/// Transfer URLs, with the main options and the exit statuses of curl
///
/// Each URL is fetched in the order of the command line. A URL without a scheme is an http URL. URLs are sent as they
/// are: { } [ ] have no meaning, and /../ stays. Options may stand before and after URLs. Letters may be joined:
/// -sSo file means -s -S -o file. --no-NAME switches off the option --NAME if it takes no value.
#[derive(clap::Args)]
#[command(after_long_help = include_str!("help.txt"))]
pub(crate) struct Options {
    /// What is transferred
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) request: RequestOptions,
    /// Follow redirects
    #[arg(short = 'L', long)]
    pub(crate) location: bool,
    /// Follow at most so many redirects; -1 is no limit [default: 50]
    #[arg(long, value_name = "number", value_parser = redirects)]
    pub(crate) max_redirs: Option<u32>,
    /// Retry so many times after problems that may pass
    ///
    /// Retry so many times after a connection that was not made in time, a name that cannot be resolved, and the
    /// statuses 408, 429, 500, 502, 503 and 504. The pauses before are random, up to 1, 2, 4 and more seconds; a longer
    /// Retry-After of the server, up to 6 hours, is waited for. No pause ends after --max-time.
    #[arg(long, value_name = "number", value_parser = number::<u32>)]
    pub(crate) retry: Option<u32>,
    /// The longest time for each URL
    ///
    /// The longest time for each URL, with its redirects, its retries and the pauses before them.
    #[arg(short, long, value_name = "seconds", value_parser = duration)]
    pub(crate) max_time: Option<Time>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// The largest body; k, M, G, T and P are powers of 1024
    #[arg(long, value_name = "bytes", value_parser = bytes_as_curl)]
    pub(crate) max_filesize: Option<u64>,
    /// Start at most N URLs per s, m, h or d
    #[arg(long, value_name = "N/unit", value_parser = interval)]
    pub(crate) rate: Option<Duration>,
    /// Write to this file, one for each URL; - is stdout
    #[arg(short, long, value_name = "file")]
    pub(crate) output: Vec<OsString>,
    /// Write to a file with the last name in the URL's path
    #[arg(short = 'O', long)]
    pub(crate) remote_name: bool,
    /// Print the heads of answers too
    #[arg(short, long)]
    pub(crate) include: bool,
    /// Print no body and exit with 22 if the status is 400 or more
    #[arg(short, long)]
    pub(crate) fail: bool,
    /// Print this text with its %{variables} after each URL
    #[arg(short, long, value_name = "format/@file")]
    pub(crate) write_out: Option<OsString>,
    /// Draw on stderr where the time of each request went
    ///
    /// Draw on standard error where the time of each request went: a bar for the lookup of the name, the connection,
    /// the handshakes, the wait for the answer, and its body. Redirects and retries are further requests.
    #[arg(long)]
    pub(crate) timing: bool,
    /// Print no errors
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// Print errors even with -s
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,
    /// Print heads and connection events on stderr
    ///
    /// Print heads and connection events on standard error. Credentials are replaced by ***: those of Authorization and
    /// Proxy-Authorization, the values of cookies, users and passwords in the URLs of Location, Content-Location and
    /// Referer, and headers with names that end in api-key, apikey, token or secret.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Start a new group of options and URLs
    #[arg(short = ':', long)]
    pub(crate) next: bool,
}

// What follows is no doc comment: clap would take it for that of the command.
// Options about the request.
#[derive(Default, clap::Args)]
pub(crate) struct RequestOptions {
    /// Use this request method
    #[arg(short = 'X', long, value_name = "method")]
    pub(crate) request: Option<String>,
    /// Request only the head, and print it
    #[arg(short = 'I', long)]
    pub(crate) head: bool,
    /// Send this header; 'Name:' removes it, 'Name;' sends it empty
    #[arg(short = 'H', long, value_name = "header/@file")]
    pub(crate) header: Vec<OsString>,
    /// POST this; line ends of a file are removed; @- is stdin
    #[arg(short, long, value_name = "data/@file")]
    pub(crate) data: Vec<OsString>,
    /// POST this byte for byte; @- is stdin
    ///
    /// POST this byte for byte. @FILE is the content of a file; @- is standard input. A file of more than 64 MiB
    /// has to be the only piece of data. A pipe can be sent once: a redirect or a retry that needs it once more is an error,
    /// 65.
    #[arg(long, value_name = "data/@file")]
    pub(crate) data_binary: Vec<OsString>,
    /// PUT this file, once for each URL; - is stdin
    ///
    /// PUT this file, once for each URL; its name is appended to a URL that ends with /. A pipe and standard input, -,
    /// can be sent once: a redirect or a retry that needs them once more is an error, 65.
    #[arg(short = 'T', long, value_name = "file", value_parser = path())]
    pub(crate) upload_file: Vec<PathBuf>,
    /// Send these credentials (Basic)
    #[arg(short, long, value_name = "user:password", value_parser = user)]
    pub(crate) user: Option<String>,
    /// Request only these bytes, for example 0-499 or -500
    #[arg(short, long, value_name = "range", value_parser = range)]
    pub(crate) range: Option<String>,
    /// Send this cookie
    #[arg(short = 'b', long, value_name = "name=value", value_parser = cookie)]
    pub(crate) cookie: Vec<String>,
    /// Ask for a compressed answer, and decode it
    #[arg(long)]
    pub(crate) compressed: bool,
}

// Options about the way to servers. Groups with equal ones share a client, and so its connections.
#[derive(Clone, Eq, PartialEq, clap::Args)]
pub(crate) struct Reach {
    /// Send this User-Agent; '' sends no User-Agent
    #[arg(short = 'A', long, value_name = "name")]
    pub(crate) user_agent: Option<String>,
    /// The longest time to connect
    ///
    /// The longest time for each of: the lookup of a name, reaching an address, and the handshakes with the server and
    /// a proxy.
    #[arg(long, value_name = "seconds", value_parser = duration)]
    pub(crate) connect_timeout: Option<Time>,
    /// Connect to IPv4 addresses only
    #[arg(short = '4', long)]
    pub(crate) ipv4: bool,
    /// Connect to IPv6 addresses only
    #[arg(short = '6', long, overrides_with = "ipv4")]
    pub(crate) ipv6: bool,
    /// Use these addresses for the host; host * is all hosts
    #[arg(long, value_name = "host:port:addr,...", value_parser = fixed_addresses)]
    pub(crate) resolve: Vec<Override>,
    /// Connect through this Unix domain socket
    #[arg(long, value_name = "path", value_parser = path())]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Use this http, https, socks5 or socks5h proxy; '' is none
    ///
    /// Without this option, these environment variables are used: http_proxy, https_proxy, all_proxy.
    #[arg(short = 'x', long, value_name = "url")]
    pub(crate) proxy: Option<String>,
    /// Connect to these hosts without the proxy; * is all hosts
    ///
    /// Without this option, these environment variables are used: no_proxy.
    #[arg(long, value_name = "hosts")]
    pub(crate) noproxy: Option<String>,
    /// Drop header lines that are wrong and harmless
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Accept any certificate, also of an https proxy
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Trust these authorities and no others
    ///
    /// Trust the authorities in this file and no others. Without it and its variables, those of Mozilla are trusted, as
    /// compiled in. Those of the system are often in /etc/ssl/certs/ca-certificates.crt. Without this option, these
    /// environment variables are used: CURL_CA_BUNDLE, SSL_CERT_FILE.
    #[arg(long, value_name = "file", value_parser = path())]
    pub(crate) cacert: Option<PathBuf>,
    /// Present this certificate if the server asks for one
    #[arg(short = 'E', long, value_name = "file", value_parser = path())]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of --cert, if it is in another file
    #[arg(long, value_name = "file", value_parser = path())]
    pub(crate) key: Option<PathBuf>,
}

impl Reach {
    /// The only family of addresses, if there is one.
    pub(crate) fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::V4),
            (false, true) => Some(Family::V6),
            (false, false) => None,
        }
    }
}

/// Everything that was typed on one command line. Nothing is opened or read yet.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) global: Global,
    pub(crate) groups: Vec<Group>,
}

/// Options that hold for every URL, at any place of the command line.
#[derive(Clone, Copy, Default)]
pub(crate) struct Global {
    pub(crate) silent: bool,
    pub(crate) show_error: bool,
    pub(crate) verbose: bool,
    pub(crate) timing: bool,
    /// `--rate`: the shortest time between the starts of two transfers.
    pub(crate) interval: Option<Duration>,
}

/// The options and URLs between two `--next`. Invariant: there is a URL.
pub(crate) struct Group {
    pub(crate) options: Options,
    /// `-d` and `--data-binary`, in the order of the command line.
    pub(crate) data: Vec<Data>,
    /// `-o` and `-O`, one for each URL. `None` means `-O`: the last segment of the URL's path.
    pub(crate) outputs: Vec<Option<PathBuf>>,
}

/// One piece of a request body: text, or `@` and the name of a file.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Data {
    /// `-d`: CR, LF and NUL bytes of a file are removed.
    Ascii(OsString),
    /// `--data-binary`: a file is sent as it is.
    Binary(OsString),
}
