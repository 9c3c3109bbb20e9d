//! The options of `crawler-cli get`: curl's names.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use courser::Override;

use super::values::{Time, cookie, duration, fixed_addresses, interval, range, redirects, user};
use crate::values::{bytes_as_curl, number};

/// Transfer URLs, with the main options and the exit statuses of curl
///
/// Each URL is fetched in the order of the command line. A URL without a scheme is an http URL. URLs are sent as they
/// are: { } [ ] have no meaning, and /../ stays. Options may stand before and after URLs. Letters may be joined:
/// -sSo file means -s -S -o file. --no-NAME switches off the option --NAME if it takes no value.
#[derive(clap::Args)]
#[command(after_long_help = include_str!("help.txt"))]
pub(super) struct Options {
    /// What is transferred
    #[arg(value_name = "URL")]
    pub(super) urls: Vec<String>,
    /// Use this request method
    #[arg(short = 'X', long, value_name = "method")]
    pub(super) request: Option<String>,
    /// Request only the head, and print it
    #[arg(short = 'I', long)]
    pub(super) head: bool,
    /// Send this header; 'Name:' removes it, 'Name;' sends it empty
    #[arg(short = 'H', long, value_name = "header/@file")]
    pub(super) header: Vec<OsString>,
    /// POST this; line ends of a file are removed; @- is stdin
    #[arg(short, long, value_name = "data/@file")]
    pub(super) data: Vec<OsString>,
    /// POST this byte for byte; @- is stdin
    ///
    /// POST this byte for byte. @FILE is the content of a file; @- is standard input. A file of more than 64 MiB is
    /// read while it is sent: it has to be the only piece of data, and a redirect or a retry that needs it once more is
    /// an error, 65.
    #[arg(long, value_name = "data/@file")]
    pub(super) data_binary: Vec<OsString>,
    /// PUT this file, once for each URL; - is stdin
    ///
    /// PUT this file, once for each URL; its name is appended to a URL that ends with /. A file of more than 64 MiB, a
    /// pipe and standard input, -, are read while they are sent: a redirect or a retry that needs them once more is an
    /// error, 65.
    #[arg(short = 'T', long, value_name = "file")]
    pub(super) upload_file: Vec<PathBuf>,
    /// Send this User-Agent; '' sends no User-Agent
    #[arg(short = 'A', long, value_name = "name")]
    pub(super) user_agent: Option<String>,
    /// Send these credentials (Basic)
    #[arg(short, long, value_name = "user:password", value_parser = user)]
    pub(super) user: Option<String>,
    /// Request only these bytes, for example 0-499 or -500
    #[arg(short, long, value_name = "range", value_parser = range)]
    pub(super) range: Option<String>,
    /// Send this cookie
    #[arg(short = 'b', long, value_name = "name=value", value_parser = cookie)]
    pub(super) cookie: Vec<String>,
    /// Ask for a compressed answer, and decode it
    #[arg(long)]
    pub(super) compressed: bool,
    /// Follow redirects
    #[arg(short = 'L', long)]
    pub(super) location: bool,
    /// Follow at most so many redirects; -1 is no limit [default: 50]
    #[arg(long, value_name = "number", value_parser = redirects)]
    pub(super) max_redirs: Option<u32>,
    /// Retry so many times after problems that may pass
    ///
    /// Retry so many times after a connection that was not made in time, a name that cannot be resolved, and the
    /// statuses 408, 429, 500, 502, 503 and 504. The pauses before are random, up to 1, 2, 4 and more seconds; a longer
    /// Retry-After of the server, up to 6 hours, is waited for. No pause ends after --max-time.
    #[arg(long, value_name = "number", value_parser = number::<u32>)]
    pub(super) retry: Option<u32>,
    /// The longest time for each URL
    ///
    /// The longest time for each URL, with its redirects, its retries and the pauses before them.
    #[arg(short, long, value_name = "seconds", value_parser = duration)]
    pub(super) max_time: Option<Time>,
    /// The longest time to connect
    ///
    /// The longest time for each of: the lookup of a name, reaching an address, and the handshakes with the server and
    /// a proxy.
    #[arg(long, value_name = "seconds", value_parser = duration)]
    pub(super) connect_timeout: Option<Time>,
    /// The largest body; k, M, G, T and P are powers of 1024
    #[arg(long, value_name = "bytes", value_parser = bytes_as_curl)]
    pub(super) max_filesize: Option<u64>,
    /// Start at most N URLs per s, m, h or d
    #[arg(long, value_name = "N/unit", value_parser = interval)]
    pub(super) rate: Option<Duration>,
    /// Connect to IPv4 addresses only
    #[arg(short = '4', long)]
    pub(super) ipv4: bool,
    /// Connect to IPv6 addresses only
    #[arg(short = '6', long, overrides_with = "ipv4")]
    pub(super) ipv6: bool,
    /// Use these addresses for the host; host * is all hosts
    #[arg(long, value_name = "host:port:addr,...", value_parser = fixed_addresses)]
    pub(super) resolve: Vec<Override>,
    /// Connect through this Unix domain socket
    #[arg(long, value_name = "path")]
    pub(super) unix_socket: Option<PathBuf>,
    /// Use this http, https, socks5 or socks5h proxy; '' is none
    ///
    /// Without this option, these environment variables are used: http_proxy, https_proxy, all_proxy.
    #[arg(short = 'x', long, value_name = "url")]
    pub(super) proxy: Option<String>,
    /// Connect to these hosts without the proxy; * is all hosts
    ///
    /// Without this option, these environment variables are used: no_proxy.
    #[arg(long, value_name = "hosts")]
    pub(super) noproxy: Option<String>,
    /// Drop header lines that are wrong and harmless
    #[arg(long)]
    pub(super) lenient: bool,
    /// Accept any certificate, also of an https proxy
    #[arg(short = 'k', long)]
    pub(super) insecure: bool,
    /// Trust these authorities and no others
    ///
    /// Trust the authorities in this file and no others. Without it and its variables, those of Mozilla are trusted, as
    /// compiled in. Those of the system are often in /etc/ssl/certs/ca-certificates.crt. Without this option, these
    /// environment variables are used: CURL_CA_BUNDLE, SSL_CERT_FILE.
    #[arg(long, value_name = "file")]
    pub(super) cacert: Option<PathBuf>,
    /// Present this certificate if the server asks for one
    #[arg(short = 'E', long, value_name = "file")]
    pub(super) cert: Option<PathBuf>,
    /// The private key of --cert, if it is in another file
    #[arg(long, value_name = "file")]
    pub(super) key: Option<PathBuf>,
    /// Write to this file, one for each URL; - is stdout
    #[arg(short, long, value_name = "file")]
    pub(super) output: Vec<OsString>,
    /// Write to a file with the last name in the URL's path
    #[arg(short = 'O', long)]
    pub(super) remote_name: bool,
    /// Print the heads of answers too
    #[arg(short, long)]
    pub(super) include: bool,
    /// Print no body and exit with 22 if the status is 400 or more
    #[arg(short, long)]
    pub(super) fail: bool,
    /// Print this text with its %{variables} after each URL
    #[arg(short, long, value_name = "format/@file")]
    pub(super) write_out: Option<OsString>,
    /// Draw on stderr where the time of each request went
    ///
    /// Draw on standard error where the time of each request went: a bar for the lookup of the name, the connection,
    /// the handshakes, the wait for the answer, and its body. Redirects and retries are further requests.
    #[arg(long)]
    pub(super) timing: bool,
    /// Print no errors
    #[arg(short, long)]
    pub(super) silent: bool,
    /// Print errors even with -s
    #[arg(short = 'S', long)]
    pub(super) show_error: bool,
    /// Print heads and connection events on stderr
    ///
    /// Print heads and connection events on standard error. Credentials are replaced by ***: those of Authorization and
    /// Proxy-Authorization, the values of cookies, users and passwords in the URLs of Location, Content-Location and
    /// Referer, and headers with names that end in api-key, apikey, token or secret.
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Start a new group of options and URLs
    #[arg(short = ':', long)]
    pub(super) next: bool,
}
