//! The texts about `crawler-cli get`.

use super::Args;
use crate::cli::manual::Manual;

pub(crate) fn manual() -> Manual {
    Manual {
        usage: "[OPTION...] URL...",
        description: DESCRIPTION,
        notes: &[("Environment", ENVIRONMENT)],
        statuses: STATUSES,
        examples: EXAMPLES,
        see_also: &["curl"],
        ..Manual::of::<Args>(
            "get",
            "transfer URLs, with the options and exit statuses of curl",
        )
    }
}

const DESCRIPTION: &str = "\
Each URL is fetched in the order of the command line, or all at the same time with --parallel. Options are also read from a file .curlrc, unless the first argument is -q. The progress is shown on standard error unless the answer is printed on a terminal; -s shows none. A URL without a scheme is an http URL. Options may stand before and after URLs. Letters may be joined: -sSo file means -s -S -o file. --no-NAME switches off the option --NAME if it takes no value.\n\
A URL, and a file of -T, may be many: {a,b} stands for each of its texts, [1-9], [01-10:3] and [a-z] for a range, perhaps with a step. #1 in the name of -o is what the first of them stands for. -g, or a backslash before the bracket, takes them as they are. file:// URLs are local files.";

const ENVIRONMENT: &str = "\
CURL_HOME, XDG_CONFIG_HOME and HOME are the directories in which .curlrc is searched. http_proxy, https_proxy, all_proxy and no_proxy are used without -x and --noproxy. The authorities to trust are those of Mozilla, as compiled in, unless CURL_CA_BUNDLE or SSL_CERT_FILE names a file with others. SSL_CERT_DIR names a folder of further ones; only the first that is set of CURL_CA_BUNDLE, SSL_CERT_DIR and SSL_CERT_FILE counts, and none with --cacert, --capath or -k. The authorities of the system are often in /etc/ssl/certs/ca-certificates.crt.";

const STATUSES: &[(&str, &str)] = &[
    ("0", "The last URL was fetched."),
    (
        "1",
        "The protocol is not supported, or not allowed by --proto.",
    ),
    ("2", "Wrong usage."),
    ("3", "Not a URL."),
    ("5", "The proxy's name has no address."),
    ("6", "The host's name has no address."),
    ("7", "No connection to the server."),
    ("18", "The answer was incomplete."),
    ("22", "With -f: the status was 400 or more."),
    ("23", "The output could not be written."),
    ("25", "An upload of unknown length needs HTTP/1.1."),
    ("26", "A file could not be read."),
    (
        "28",
        "A time limit was exceeded, or the transfer was too slow.",
    ),
    ("33", "The server cannot continue a download."),
    ("35", "The TLS handshake failed."),
    ("37", "A file:// URL could not be read."),
    ("47", "Too many redirects."),
    ("45", "--interface or --local-port cannot be used."),
    ("52", "The server closed the connection without an answer."),
    ("56", "The answer could not be read, or was invalid."),
    ("58", "The client's certificate or key cannot be used."),
    ("59", "No such cipher suite or curve."),
    ("60", "The certificate of the server is not trusted."),
    ("67", "A user name in a URL, which is not allowed."),
    ("90", "The key of the server is not the pinned one."),
    ("97", "A SOCKS proxy refused the connection."),
    ("other", "As documented for curl."),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "crawler-cli get -L --compressed https://www.example.com/",
        "Follow redirects, and ask for a compressed answer",
    ),
    (
        "crawler-cli get -sS -o page -w '%{http_code} %{time_total}\\n' https://www.example.com/",
        "Write the page to a file, and print the status and the time",
    ),
    (
        "crawler-cli get -x socks5h://127.0.0.1:1080 https://www.example.com/",
        "Use a SOCKS proxy, which also looks up the name",
    ),
];
