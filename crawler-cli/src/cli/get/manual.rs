//! The texts about `crawler-cli get`.

use super::Typed;
use crate::cli::manual::Manual;

pub(crate) fn manual() -> Manual {
    Manual {
        usage: "[OPTION...] URL...",
        description: DESCRIPTION,
        notes: &[("Variables", VARIABLES)],
        statuses: STATUSES,
        examples: EXAMPLES,
        see_also: &["curl"],
        ..Manual::of::<Typed>(
            "get",
            "transfer URLs, with the main options and the exit statuses of curl",
        )
    }
}

const DESCRIPTION: &str = "\
Each URL is fetched in the order of the command line. A URL without a scheme is an http URL. URLs are sent as they are: { } [ ] have no meaning, and /../ stays. Options may stand before and after URLs. Letters may be joined: -sSo file means -s -S -o file. --no-NAME switches off the option --NAME if it takes no value.";

const VARIABLES: &str = "\
The text of -w may have these variables, as %{NAME}: errormsg, exitcode, http_code, num_connects, num_redirects, size_download, time_appconnect, time_connect, time_namelookup, time_starttransfer, time_total, url_effective. \\n, \\r and \\t are the characters that they are in C.";

const STATUSES: &[(&str, &str)] = &[
    ("0", "The last URL was fetched."),
    ("1", "The protocol is not supported."),
    ("2", "Wrong usage."),
    ("3", "Not a URL."),
    ("5", "The proxy's name has no address."),
    ("6", "The host's name has no address."),
    ("7", "No connection to the server."),
    ("18", "The answer was incomplete."),
    ("22", "With -f: the status was 400 or more."),
    ("23", "The output could not be written."),
    ("26", "A file could not be read."),
    ("28", "A time limit was exceeded."),
    ("35", "The TLS handshake failed."),
    ("47", "Too many redirects."),
    ("52", "The server closed the connection without an answer."),
    ("56", "The answer could not be read, or was invalid."),
    ("58", "The client's certificate or key cannot be used."),
    ("60", "The certificate of the server is not trusted."),
    ("63", "The body is larger than --max-filesize."),
    ("65", "A body that is not kept would have to be sent again."),
    ("97", "A SOCKS proxy refused the connection."),
    ("other", "As documented for curl."),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "crawler-cli get -L --compressed https://www.example.com/",
        "Follow redirects, and ask for a compressed answer",
    ),
    (
        "crawler-cli get -L --timing -o /dev/null https://www.example.com/",
        "Draw where the time of each request went",
    ),
];
