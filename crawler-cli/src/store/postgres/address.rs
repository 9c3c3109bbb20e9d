//! Addresses of databases: `postgres://USER@HOST:PORT/DATABASE?parameter=value`, with the parameters of libpq.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslNegotiation};
use url::form_urlencoded;

use super::connect::ANSWER;
use super::passfile;
use super::tls::{Roots, Tls, Trust};

/// The address of a database, with everything that is needed to connect. Shown without its password.
///
/// The parameters are those of libpq:
///
/// | parameters | meaning |
/// |---|---|
/// | `user`, `password`, `dbname`, `host`, `hostaddr`, `port` | instead of the places in front; `host=/FOLDER` is a socket of this machine |
/// | `target_session_attrs`, `load_balance_hosts` | which of several hosts is used, such as `read-write` |
/// | `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `channel_binding` | TLS; `sslrootcert=system` for the authorities of the system |
/// | `passfile` | the file of passwords instead of `~/.pgpass`; ignored if others may read it |
/// | `connect_timeout` (10 s), `tcp_user_timeout` (10 s, in ms), `keepalives`, `keepalives_idle` (10 s), `keepalives_interval` (3 s), `keepalives_count` (3) | when a connection has failed |
/// | `application_name` (`crawler-cli`), `options` | what the server is told |
/// | `allow_data_loss=1` | takes a server whose `fsync`, `full_page_writes` or `synchronous_commit` is off |
///
/// What is missing comes from `PGUSER`, `PGDATABASE`, `PGPASSWORD`, `PGPASSFILE`, `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT` and
/// `PGSSLKEY`. Any other parameter is an error.
///
/// ```
/// use crawler_cli::store::postgres::Address;
///
/// let address: Address = "postgres://watch:secret@db.example:5433/urls?sslmode=verify-full".parse()?;
/// assert_eq!(address.to_string(), "postgres://watch@db.example:5433/urls");
/// let error = "postgres://db.example/urls?sslmode=maybe".parse::<Address>().unwrap_err();
/// assert_eq!(error.to_string(), "sslmode=maybe: one of disable, prefer, require, verify-ca and verify-full is needed");
/// # Ok::<(), crawler_cli::store::postgres::BadAddress>(())
/// ```
#[derive(Clone)]
pub struct Address {
    /// As it was given.
    text: String,
    pub(super) config: Config,
    pub(super) tls: Tls,
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
        let (place, query) = self.text.split_once('?').unwrap_or((&self.text, ""));
        let (scheme, rest) = place.split_once("://").unwrap_or(("postgres", place));
        let place = match rest.rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split_once(':').map_or(user, |(user, _)| user);
                format!("{scheme}://{user}@{host}")
            }
            None => format!("{scheme}://{rest}"),
        };
        let is_password = |pair: &&str| {
            pair.split_once('=')
                .is_some_and(|(name, _)| name == "password")
        };
        let query: Vec<&str> = query
            .split('&')
            .filter(|pair| !pair.is_empty() && !is_password(pair))
            .collect();
        match query.is_empty() {
            true => place,
            false => format!("{place}?{}", query.join("&")),
        }
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let mut ours = Ours::from_environment();
        let mut theirs = form_urlencoded::Serializer::new(DEFAULTS.to_owned());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "keepalives_count" => theirs.append_pair("keepalives_retries", &value),
                // The library counts seconds.
                "tcp_user_timeout" => theirs.append_pair(&name, &seconds(&value)?.to_string()),
                _ if ours.take(&name, &value)? => continue,
                _ => theirs.append_pair(&name, &value),
            };
        }
        // In addresses of this kind a plus sign is one.
        let theirs = theirs.finish().replace('+', "%20");
        let plain = format!("{place}?{theirs}");
        let mut config = Config::from_str(&plain).map_err(|error| {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            BadAddress(why.unwrap_or_else(|| error.to_string()))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(BadAddress("the name of a host is missing".to_owned()));
        }
        if config.get_user().is_none()
            && let Ok(user) = env::var("PGUSER")
        {
            config.user(&user);
        }
        if config.get_dbname().is_none()
            && let Ok(database) = env::var("PGDATABASE")
        {
            config.dbname(&database);
        }
        if config.get_password().is_none() {
            match env::var("PGPASSWORD") {
                Ok(password) => {
                    config.password(password);
                }
                Err(_) => passfile::fill(&mut config, ours.passfile.as_deref()),
            }
        }
        let tls = ours.tls()?;
        if config.get_ssl_negotiation() == SslNegotiation::Direct {
            let why = "sslnegotiation=direct is not supported: leave it out";
            return Err(BadAddress(why.to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            config,
            tls,
            may_lose: ours.may_lose,
            answer: ANSWER,
        })
    }
}

/// Milliseconds in seconds, not less.
fn seconds(milliseconds: &str) -> Result<u64, BadAddress> {
    let number: Result<u64, _> = milliseconds.parse();
    let bad = |_| {
        BadAddress(format!(
            "tcp_user_timeout={milliseconds}: milliseconds are needed"
        ))
    };
    Ok(number.map_err(bad)?.div_ceil(1000))
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        let key = |address: &Self| address.config.get_password().map(<[u8]>::to_vec);
        self.text == other.text && key(self) == key(other)
    }
}

impl Eq for Address {}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        for (place, host) in self.config.get_hosts().iter().enumerate() {
            f.write_str(if place > 0 { "," } else { "" })?;
            match host {
                Host::Tcp(name) => f.write_str(name)?,
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            let ports = self.config.get_ports();
            if let Some(port) = ports.get(place).or(ports.first()) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
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

/// The parameters that the client library does not know.
#[derive(Debug, Default)]
struct Ours {
    sslmode: Option<String>,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    passfile: Option<PathBuf>,
    may_lose: bool,
}

impl Ours {
    fn from_environment() -> Self {
        let path = |name: &str| env::var_os(name).map(PathBuf::from);
        Self {
            sslmode: env::var("PGSSLMODE").ok(),
            roots: path("PGSSLROOTCERT"),
            certificate: path("PGSSLCERT"),
            key: path("PGSSLKEY"),
            passfile: path("PGPASSFILE"),
            may_lose: false,
        }
    }

    /// Takes a parameter, if it is one of these.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, BadAddress> {
        match name {
            "sslmode" => self.sslmode = Some(value.to_owned()),
            "sslrootcert" => self.roots = Some(value.into()),
            "sslcert" => self.certificate = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            "passfile" => self.passfile = Some(value.into()),
            MAY_LOSE => {
                self.may_lose = match value {
                    "1" => true,
                    "0" => false,
                    _ => return Err(BadAddress(format!("{MAY_LOSE}={value}: 0 or 1 is needed"))),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn tls(&self) -> Result<Tls, BadAddress> {
        let trust = match self.sslmode.as_deref() {
            Some("disable") => Trust::Off,
            None | Some("prefer") => Trust::IfOffered,
            // As libpq: whoever names the authority wants it to be asked.
            Some("require") if self.roots.is_some() => Trust::Authority,
            Some("require") => Trust::Anyone,
            Some("verify-ca") => Trust::Authority,
            Some("verify-full") => Trust::Name,
            Some(other) => {
                let known = "one of disable, prefer, require, verify-ca and verify-full is needed";
                return Err(BadAddress(format!("sslmode={other}: {known}")));
            }
        };
        let roots = match &self.roots {
            None => Roots::System,
            Some(path) if path.as_os_str() == "system" => Roots::System,
            Some(path) => Roots::File(path.clone()),
        };
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => {
                return Err(BadAddress(
                    "sslcert and sslkey are needed together".to_owned(),
                ));
            }
        };
        Ok(Tls {
            trust,
            roots,
            identity,
        })
    }
}

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
        let query = "?connect_timeout=2&keepalives_idle=60&keepalives_count=5";
        assert_eq!(times(query), (Some(2), 60, Some(5)));
    }

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (given, shown) in [
            (
                "postgres://me:p%40s:s@db/x?sslmode=require&password=y&connect_timeout=3",
                "postgres://me@db/x?sslmode=require&connect_timeout=3",
            ),
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
        let with_password = error("postgres://me:geheim@db:port/urls");
        assert!(!with_password.contains("geheim"), "{with_password}");
    }
}
