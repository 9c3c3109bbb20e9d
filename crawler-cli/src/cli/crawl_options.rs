//! The options of all commands that crawl: politeness to hosts, retries, connections, TLS and proxies.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use courser::{Rate, TlsConfig};

use super::choice;
use super::identity_options::IdentityOptions;
use super::usage::UsageError;
use super::values::{bytes, number, seconds};
use crate::curl_rules::{proxies, trust_only, with_authorities};
use crate::report::Progress;
use crawl::policy::RetryClass;
use crawl::settings::Settings;

/// What was typed about how to crawl. What was not typed keeps the value that the command has for it.
#[derive(clap::Args)]
#[command(next_help_heading = "Politeness, retries and network")]
pub(crate) struct CrawlOptions {
    /// Whether robots.txt is obeyed [default: on]
    ///
    /// Whether the robots.txt of each host (RFC 9309) is read first and obeyed, with its Crawl-delay. find reports the
    /// URLs that it disallows on standard error; switch it off for mirrors that are meant to be read by programs. check
    /// asks URLs that were given, or that files and lists name, in any case, and leaves out those that pages name.
    #[arg(long, value_name = "on|off", value_parser = choice(&[("on", true), ("off", false)]))]
    robots: Option<bool>,
    /// Requests per second to one host; 0: no limit [default: find 0; check 10, and 0 on the loopback]
    ///
    /// The largest number of requests per second to one host, evenly spread: 20, or 0.5 for one in two seconds. With a
    /// unit, per minute or hour: 30/m, 100/h. 0: only the number of connections limits the rate.
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(super) rate: Option<RateLimit>,
    /// Longest time for all attempts at one URL [default: find 900, check 60]
    ///
    /// The longest time from the first request for a URL to its last retry. While a host answers 429 or 503, its URLs
    /// are retried for this time, with any number of attempts. A Retry-After is never shortened: a URL for which the
    /// server asks for a longer wait is given up at once and reported. find gives up a host that answers 4 URLs so, and
    /// no other URL in between, and one that answers nothing else for this time. For check, a 503 without Retry-After
    /// is a failure like others.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    patience: Option<Duration>,
    /// The User-Agent of each request [default: Courser with its version]
    ///
    /// The word before its first / or blank is the name of the crawler in robots.txt.
    #[arg(short = 'A', long, value_name = "TEXT", value_parser = user_agent)]
    user_agent: Option<String>,
    /// Retries after a failure [default: find 9, check 3]
    ///
    /// How many times a URL is requested again after a transport error, an incomplete listing or a 5xx status. A host
    /// that asks for a pause by 429 or 503 gets it, and such answers do not count, until --patience is over. find:
    /// after status 410, which caches answer for some time while they are purged, a URL is requested at most twice
    /// more, each time after 2.5 to 5 seconds; a URL that is answered by 429 or 503 again and again while other URLs of
    /// the host are not has failed; a host that was never reached is given up after at most 3 retries. check: 404 and
    /// 410 stand after a GET has confirmed them.
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    retries: Option<u32>,
    /// Pause before the first retry [default: 0.5]
    ///
    /// The pause before the first retry. It doubles with each further retry, up to --retry-max-delay. A random part of
    /// up to one half is taken off each pause, so that hosts that failed together are not requested together.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    retry_delay: Option<Duration>,
    /// Longest pause between two retries [default: 2]
    ///
    /// The longest pause between two retries, if --retry-delay is not longer. A Retry-After of a server is never
    /// shortened. A host that answers 429 or 503 without Retry-After gets pauses of up to 60 seconds, or of this time
    /// if it is longer.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    retry_max_delay: Option<Duration>,
    /// Connections to one host [default: find 8, check 4]
    ///
    /// The largest number of connections to one host, and of requests to it at the same time. All hosts together have
    /// at most 900 connections, or N if N is larger; see --max-connections.
    #[arg(short = 'j', value_name = "N", value_parser = number::<NonZeroUsize>)]
    connections: Option<NonZeroUsize>,
    /// Connections to all hosts together [default: 900]
    ///
    /// The largest number of connections to all hosts together. A request waits until one of them is free.
    #[arg(long, value_name = "N", value_parser = number::<NonZeroUsize>)]
    max_connections: Option<NonZeroUsize>,
    /// Longest time for one request [default: find 30, check 20]
    ///
    /// The longest time for one request, from its start to the end of the answer. The times of --connect-timeout and
    /// --handshake-timeout are part of it. The body of a download may take any time, as long as 30 KiB of it arrive in
    /// each such time, and something without longer pauses; otherwise it is continued later, as after a lost
    /// connection.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Longest time to connect [default: 10]
    ///
    /// The longest time to connect to a server or proxy. The lookup of its name may take 10 seconds before.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    connect_timeout: Option<Duration>,
    /// Longest time for a TLS or proxy handshake [default: 10]
    ///
    /// The longest time for the handshakes of a new connection: TLS, and those of a proxy.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    handshake_timeout: Option<Duration>,
    /// How long an unused connection is kept [default: 4]
    ///
    /// How long a connection without a request is kept open for the next request.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    idle_timeout: Option<Duration>,
    /// Send TCP keep-alive probes after this time
    ///
    /// How long a connection is unused before TCP keep-alive probes are sent on it, and the time between them. Without
    /// this option there are no probes.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    keepalive_time: Option<Duration>,
    /// Largest page; K, M and G are allowed [default: 64M]
    ///
    /// The largest page, both as sent and after its content codings are decoded. A larger page is an error: find does not
    /// read it, and check says that only its first part was read. K, M and G are powers of 1024. Of a robots.txt, 500 KiB
    /// are read, whatever the limit.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    max_body: Option<u64>,
    /// Let redirects lead to private addresses
    ///
    /// Connect to private addresses too. Without this option, loopback addresses, private addresses and others that are
    /// not public are used only if the user named them, whatever redirects, links or name servers say. find: by a start
    /// or a proxy. check: by a URL that was given, or that files, lists or pages with a private address name.
    #[arg(long)]
    allow_private: bool,
    /// Accept any certificate
    ///
    /// Everyone between here and the server can then read and change the traffic.
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Trust only these certificates
    ///
    /// Trust the certificates in this PEM file and no others. Without this option and its variables, the authorities
    /// that Mozilla trusts are used, as compiled in. Those of the system are often in
    /// /etc/ssl/certs/ca-certificates.crt. Without this option, these environment variables are used: CURL_CA_BUNDLE,
    /// SSL_CERT_FILE.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Connect through this proxy
    ///
    /// Connect through this proxy: http, https, socks5 or socks5h, with user:password@ if the proxy needs them. An
    /// empty URL means no proxy. Without this option, these environment variables are used: http_proxy, https_proxy,
    /// all_proxy.
    #[arg(short = 'x', long, value_name = "URL")]
    proxy: Option<String>,
    /// Connect to these hosts without the proxy
    ///
    /// Connect to these hosts without the proxy: names (with all names below them), addresses, blocks such as
    /// 10.0.0.0/8, or * for all hosts, separated by commas. Without this option, these environment variables are used:
    /// no_proxy.
    #[arg(long, value_name = "LIST")]
    noproxy: Option<String>,
    #[command(flatten)]
    identity: IdentityOptions,
}

/// `None`: no limit.
type RateLimit = Option<Rate>;

impl CrawlOptions {
    /// Changes what was typed, but for proxies, TLS and identities.
    fn apply(&self, settings: &mut Settings) {
        let Settings { host, transfer } = settings;
        put(&mut host.robots, self.robots);
        put(&mut host.rate, self.rate);
        put(&mut host.retry.patience, self.patience);
        let attempts = self
            .retries
            .map(|retries| NonZeroU32::MIN.saturating_add(retries));
        put(&mut host.retry.attempts, attempts);
        put(&mut host.retry.first_pause, self.retry_delay);
        put(&mut host.retry.longest_pause, self.retry_max_delay);
        put(&mut transfer.connections, self.connections);
        put(&mut transfer.timeout, self.timeout);
        put(&mut transfer.connect, self.connect_timeout);
        put(&mut transfer.handshake, self.handshake_timeout);
        put(&mut transfer.max_body, self.max_body);
        transfer.most = self.max_connections.or(transfer.most);
        transfer.idle = self.idle_timeout.or(transfer.idle);
        transfer.keep_alive = self.keepalive_time.or(transfer.keep_alive);
        transfer.allow_private |= self.allow_private;
        if let Some(text) = &self.user_agent {
            settings.user_agent(text);
        }
    }

    /// The settings of a search on a network whose settings are known.
    ///
    /// # Errors
    /// An option is about proxies, TLS or identities.
    pub(super) fn apply_on_network(&self, settings: &mut Settings) -> Result<(), UsageError> {
        let has_tls = self.insecure || self.cacert.is_some();
        let has_proxy = self.proxy.is_some() || self.noproxy.is_some();
        if has_tls || has_proxy || !self.identity.is_empty() {
            let text =
                "proxies, TLS and what hosts are sent are settings of [[host]], not of a job";
            return Err(UsageError(text.to_owned()));
        }
        self.apply(settings);
        Ok(())
    }

    /// All settings. `var` is the environment. `is_secure`: TLS will be used; without it, as for curl, a file of
    /// authorities that a variable names and that cannot be read is an error of the first connection that needs the file.
    ///
    /// # Errors
    /// A file of certificates cannot be read, a proxy is none, or an identity cannot be sent.
    pub(super) fn apply_all(
        self,
        settings: &mut Settings,
        is_secure: bool,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<(), UsageError> {
        self.apply(settings);
        let mut tls = TlsConfig {
            insecure: self.insecure,
            ..TlsConfig::default()
        };
        if let Some(file) = self.cacert {
            trust_only(&mut tls, file);
        }
        let (tls, is_of_variable) = with_authorities(tls, &var);
        // The client would report the error too, but once for each start.
        if is_secure || !is_of_variable {
            tls.build()?;
        }
        let transfer = &mut settings.transfer;
        let proxies = proxies(self.proxy.as_deref(), self.noproxy.as_deref(), &var);
        transfer.proxies = proxies.map_err(UsageError)?;
        transfer.identities = self.identity.build(&tls)?;
        transfer.tls = tls;
        Ok(())
    }
}

/// Puts a value that was typed in the place of the usual one.
fn put<T>(place: &mut T, typed: Option<T>) {
    if let Some(typed) = typed {
        *place = typed;
    }
}

/// The values of `--progress`.
pub(super) const PROGRESS: &[(&str, Progress)] = &[
    ("auto", Progress::Auto),
    ("always", Progress::Always),
    ("never", Progress::Never),
];

fn user_agent(value: &str) -> Result<String, &'static str> {
    match value.is_empty() || value.bytes().any(|byte| byte.is_ascii_control()) {
        true => Err("not a text for a header"),
        false => Ok(value.to_owned()),
    }
}

/// A number of requests per second, perhaps with a fraction, or per `/s`, `/m` or `/h`. 0: no limit.
fn rate(value: &str) -> Result<RateLimit, String> {
    let bad = || "not a rate such as 20, 0.5 or 30/m".to_owned();
    let (number, unit) = value.split_once('/').unwrap_or((value, "s"));
    let per = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(bad()),
    };
    let is_decimal = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if !is_decimal(whole) || !is_decimal(part) || part.len() > 3 {
        return Err(bad());
    }
    // Without a fraction, so that the rate is exact.
    let part = part.trim_end_matches('0');
    let count = format!("{whole}{part}").parse().map_err(|_| bad())?;
    let times = 10_u64.pow(part.len() as u32);
    Ok(NonZeroU64::new(count).map(|count| Rate {
        count,
        per: Duration::from_secs(times * per),
        burst: NonZeroU64::MIN,
    }))
}

/// The classes of `--retry-on`.
pub(super) fn classes(value: &str) -> Result<BTreeSet<RetryClass>, String> {
    let named = |name: &str| {
        let class = RetryClass::ALL
            .into_iter()
            .find(|(known, _)| *known == name);
        let class = class.map(|(_, class)| class);
        class.ok_or_else(|| format!("there is no class {name:?}"))
    };
    match value {
        "all" => Ok(RetryClass::ALL.map(|(_, class)| class).into()),
        "none" => Ok(BTreeSet::new()),
        list => list.split(',').map(named).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_failures_have_names() {
        assert_eq!(classes("all").map(|all| all.len()), Ok(10));
        assert_eq!(classes("none"), Ok(BTreeSet::new()));
        let two = classes("5xx,timeout");
        assert_eq!(
            two,
            Ok([RetryClass::Timeout, RetryClass::ServerError].into())
        );
        assert_eq!(classes("5xx,x"), Err("there is no class \"x\"".to_owned()));
    }
}
