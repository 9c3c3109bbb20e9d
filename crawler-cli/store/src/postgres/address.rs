//! Addresses of databases: what the client library reads, and three parameters of this program.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslNegotiation};
use url::form_urlencoded;

use super::connect::ANSWER;
use super::tls::Trust;

/// The address of a database, with everything that is needed to connect. Shown without its password.
///
/// It is `postgres://USER@HOST:PORT/DATABASE?parameter=value`, with the parameters of [`Config`]. These have other defaults:
/// `connect_timeout`, `tcp_user_timeout` and `keepalives_idle` of 10 s, `keepalives_interval` of 3 s, `keepalives_retries` of 3,
/// and the `application_name` `crawler-cli`. These are added:
///
/// | parameters | meaning |
/// |---|---|
/// | `sslmode=verify-full` with `sslrootcert=FILE` | TLS with a server that has a certificate of this authority for its name |
/// | `allow_data_loss=1` | takes a server whose `fsync`, `full_page_writes` or `synchronous_commit` is off |
///
/// Any other parameter is an error. No variable of the environment and no other file is read.
///
/// ```
/// use store::postgres::Address;
///
/// let text = "postgres://watch:secret@db.example:5433/urls?sslmode=verify-full&sslrootcert=ca.pem";
/// let address: Address = text.parse()?;
/// assert_eq!(address.to_string(), "postgres://watch@db.example:5433/urls");
/// let error = "postgres://db.example/urls?sslmode=verify-full".parse::<Address>().unwrap_err();
/// assert_eq!(error.to_string(), "sslmode=verify-full and sslrootcert=FILE are needed together");
/// # Ok::<(), store::postgres::BadAddress>(())
/// ```
#[derive(Clone)]
pub struct Address {
    /// As it was given.
    text: String,
    pub(super) config: Config,
    pub(super) trust: Trust,
    /// Whether a server is used that may lose what it has committed.
    pub(super) may_lose: bool,
    /// How long the server may be silent when it owes an answer.
    pub(super) answer: Duration,
}

/// Why a text is no address of a database.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadAddress(String);

/// The parameter that takes a server as it is, although it may lose what it has committed.
pub(super) const MAY_LOSE: &str = "allow_data_loss";

/// The parameters that are replaced by those of the address. What was sent may be without an acknowledgement, and a connection
/// may be silent before the server is asked whether it is still there, for ten seconds.
const DEFAULTS: &str = "connect_timeout=10&application_name=crawler-cli&tcp_user_timeout=10\
     &keepalives_idle=10&keepalives_interval=3&keepalives_retries=3";

impl Address {
    /// Uses this password.
    pub fn set_password(&mut self, password: &str) {
        self.config.password(password);
    }

    /// The address as it was given, without its password.
    pub fn shown(&self) -> String {
        let (_, query) = parts(&self.text);
        let is_shown = |pair: &&str| !pair.is_empty() && !pair.starts_with("password=");
        let query: Vec<&str> = query.split('&').filter(is_shown).collect();
        match query.is_empty() {
            true => self.to_string(),
            false => format!("{self}?{}", query.join("&")),
        }
    }
}

/// What is before the question mark of an address, and what is after it. As in the client library, everything up to the first
/// `@` is the user and the password.
fn parts(text: &str) -> (&str, &str) {
    let host = text.find('@').unwrap_or(0);
    match text[host..].find('?') {
        Some(place) => (&text[..host + place], &text[host + place + 1..]),
        None => (text, ""),
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let (place, query) = parts(text);
        let mut plain = format!("{place}?{DEFAULTS}");
        let (mut is_verified, mut roots, mut may_lose) = (false, None, false);
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (name, value) {
                ("sslmode", "verify-full") => is_verified = true,
                ("sslrootcert", file) => roots = Some(decoded(file).into()),
                (MAY_LOSE, "0" | "1") => may_lose = value == "1",
                (MAY_LOSE, _) => return bad(format!("{MAY_LOSE}={value}: 0 or 1 is needed")),
                ("sslmode", "require" | "prefer" | "disable") => {
                    is_verified = false;
                    plain += &format!("&{pair}");
                }
                ("sslmode", _) => {
                    let known = "one of disable, prefer, require and verify-full is needed";
                    return bad(format!("sslmode={value}: {known}"));
                }
                ("", _) => {}
                _ => plain += &format!("&{pair}"),
            }
        }
        let config = Config::from_str(&plain).map_err(|error| {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            BadAddress(why.unwrap_or_else(|| error.to_string()))
        })?;
        // What is meant is not sure, and parts of the password would be shown.
        let has_at = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        let is_cut = |user: &str| user.contains(['/', '?']);
        if config.get_hosts().iter().any(has_at) || config.get_user().is_some_and(is_cut) {
            return bad("an @ in the user, the password or a parameter is written as %40");
        }
        if config.get_hosts().is_empty() {
            return bad("the name of a host is missing");
        }
        if config.get_ssl_negotiation() == SslNegotiation::Direct {
            return bad("sslnegotiation=direct is not supported: leave it out");
        }
        let trust = match (is_verified, roots) {
            (true, Some(roots)) => Trust::Name(roots),
            (false, None) => Trust::of_mode(config.get_ssl_mode()),
            _ => return bad("sslmode=verify-full and sslrootcert=FILE are needed together"),
        };
        Ok(Self {
            text: text.to_owned(),
            config,
            trust,
            may_lose,
            answer: ANSWER,
        })
    }
}

fn bad<T>(why: impl Into<String>) -> Result<T, BadAddress> {
    Err(BadAddress(why.into()))
}

/// The value of a parameter without its percent signs. In addresses of this kind a plus sign is one.
fn decoded(value: &str) -> String {
    let value = value.replace('+', "%2B");
    let (value, _) = form_urlencoded::parse(value.as_bytes())
        .next()
        .unwrap_or_default();
    value.into_owned()
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        // The password may be from elsewhere.
        let password = |address: &Self| address.config.get_password().map(<[u8]>::to_vec);
        self.text == other.text && password(self) == password(other)
    }
}

impl Eq for Address {}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, _) = parts(&self.text);
        let (scheme, rest) = place.split_once("://").unwrap_or(("postgres", place));
        write!(f, "{scheme}://")?;
        let (user, host) = match rest.split_once('@') {
            Some((user, host)) => (user, host),
            None => return f.write_str(rest),
        };
        let user = user.split_once(':').map_or(user, |(user, _)| user);
        write!(f, "{user}@{host}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Address>().expect_err("refused").to_string()
    }

    #[test]
    fn a_parameter_replaces_its_default() {
        let times = |query: &str| {
            let address: Address = format!("postgres://db/urls{query}").parse().expect("one");
            let config = address.config;
            let seconds = |time: Option<&Duration>| time.map(Duration::as_secs);
            (
                seconds(config.get_connect_timeout()),
                config.get_keepalives_idle().as_secs(),
                config.get_keepalives_retries(),
            )
        };
        assert_eq!(times(""), (Some(10), 10, Some(3)));
        let query = "?connect_timeout=2&keepalives_idle=60&keepalives_retries=5";
        assert_eq!(times(query), (Some(2), 60, Some(5)));
    }

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (given, shown) in [
            (
                "postgres://me:p%40s:s@db/x?sslmode=require&password=y&connect_timeout=3",
                "postgres://me@db/x?sslmode=require&connect_timeout=3",
            ),
            ("postgres://me:p?s/s@db/x", "postgres://me@db/x"),
            ("postgresql://db/x", "postgresql://db/x"),
        ] {
            let address: Address = given.parse().expect("an address");
            assert_eq!(address.shown(), shown);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(error("postgres://db/urls?colour=red").contains("colour"));
        assert!(error("postgres://db:port/urls").contains("port"));
        assert_eq!(error("postgres:///urls"), "the name of a host is missing");
        assert_eq!(
            error("postgres://db/urls?allow_data_loss=yes"),
            "allow_data_loss=yes: 0 or 1 is needed"
        );
        for unsure in [
            "postgres://me:p@ss@db/urls",
            "postgres://db/urls?password=a@b",
        ] {
            let expected = "an @ in the user, the password or a parameter is written as %40";
            assert_eq!(error(unsure), expected);
        }
        assert_eq!(
            error("postgres://db/urls?sslmode=maybe"),
            "sslmode=maybe: one of disable, prefer, require and verify-full is needed"
        );
        let together = "sslmode=verify-full and sslrootcert=FILE are needed together";
        for query in [
            "sslrootcert=ca.pem",
            "sslmode=verify-full",
            "sslmode=require&sslrootcert=ca.pem",
        ] {
            assert_eq!(error(&format!("postgres://db/urls?{query}")), together);
        }
        let with_password = error("postgres://me:geheim@db:port/urls");
        assert!(!with_password.contains("geheim"), "{with_password}");
    }

    #[test]
    fn the_file_of_the_authority_may_have_any_name() {
        let text = "postgres://db/urls?sslmode=verify-full&sslrootcert=/a%20b+c%2Bd.pem";
        let address: Address = text.parse().expect("an address");
        assert_eq!(address.trust, Trust::Name("/a b+c+d.pem".into()));
    }
}
