//! The options of all commands that crawl: politeness to hosts, retries, connections, TLS and proxies. Each row is
//! declared once here, for any command whose arguments are [`Crawls`].

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use courser::{Rate, TlsConfig};

use super::identity_options::IdentityOptions;
use super::option::{Opt, any, file, one_of};
use super::parse::UsageError;
use super::values::{bytes, number, on_or_off, seconds};
use crate::crawl::policy::{RetryClass, RetryPolicy};
use crate::crawl::transfer::Transfer;
use crate::curl_rules::{proxies, trust_only, with_authorities};
use crate::find::USER_AGENT;

/// The arguments of a command that crawls.
pub(crate) trait Crawls: 'static {
    const TEXTS: CrawlTexts;

    fn crawl(&mut self) -> &mut CrawlOptions;
}

/// What the texts about the options say differently for each command.
pub(crate) struct CrawlTexts {
    /// The defaults of `--rate`, `--patience`, `--retries`, `-j` and `--timeout`.
    pub(crate) rate: &'static str,
    pub(crate) patience: &'static str,
    pub(crate) retries: &'static str,
    pub(crate) connections: &'static str,
    pub(crate) timeout: &'static str,
    /// The full descriptions of `--robots`, `--patience`, `--retries` and `--allow-private`.
    pub(crate) about_robots: &'static str,
    pub(crate) about_patience: &'static str,
    pub(crate) about_retries: &'static str,
    pub(crate) about_max_body: &'static str,
    pub(crate) about_allow_private: &'static str,
}

/// What the options say about how to crawl.
#[derive(Default)]
pub(crate) struct CrawlOptions {
    /// In the order of the command line.
    settings: Vec<CrawlSetting>,
    tls: TlsConfig,
    proxy: Option<String>,
    no_proxy: Option<String>,
    pub(super) identity: IdentityOptions,
}

/// One setting of a crawl.
pub(crate) enum CrawlSetting {
    Robots(bool),
    /// `None`: no limit.
    Rate(Option<Rate>),
    UserAgent(String),
    Timeout(Duration),
    MaxBody(u64),
    AllowPrivate,
    Retry(Box<dyn FnOnce(&mut RetryPolicy)>),
    Transfer(Box<dyn FnOnce(&mut Transfer)>),
}

impl CrawlOptions {
    pub(crate) fn add(&mut self, setting: CrawlSetting) {
        self.settings.push(setting);
    }

    /// The settings but for proxies, TLS and identities, for a search whose network settings are known.
    ///
    /// # Errors
    /// An option is about these.
    pub(crate) fn settings_on_network(self) -> Result<Vec<CrawlSetting>, UsageError> {
        let own_tls = format!("{:?}", self.tls) != format!("{:?}", TlsConfig::default());
        if own_tls || self.proxy.is_some() || self.no_proxy.is_some() || !self.identity.is_empty() {
            let text =
                "proxies, TLS and what hosts are sent are settings of [[host]], not of a job";
            return Err(UsageError(text.to_owned()));
        }
        Ok(self.settings)
    }

    /// All settings. `var` is the environment. `is_secure`: TLS will be used; without it, as for curl, a file of
    /// authorities that a variable names and that cannot be read is an error of the first connection that needs the file.
    ///
    /// # Errors
    /// A file of certificates cannot be read, a proxy is none, or an identity cannot be sent.
    pub(crate) fn settings(
        self,
        is_secure: bool,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<CrawlSetting>, UsageError> {
        let (tls, is_of_variable) = with_authorities(self.tls, &var);
        // The client would report the error too, but once for each start.
        if is_secure || !is_of_variable {
            tls.build()?;
        }
        let proxies = proxies(self.proxy.as_deref(), self.no_proxy.as_deref(), &var);
        let proxies = proxies.map_err(UsageError)?;
        let identities = self.identity.build(&tls)?;
        let mut settings = self.settings;
        settings.push(CrawlSetting::Transfer(Box::new(|transfer| {
            transfer.identities = identities;
            transfer.tls = tls;
            transfer.proxies = proxies;
        })));
        Ok(settings)
    }
}

/// The rows, for the arguments `A` of a command.
pub(crate) struct CrawlRows<A>(PhantomData<A>);

impl<A: Crawls> CrawlRows<A> {
    pub(crate) const POLITENESS: &'static [Opt<A>] = &[
        Opt::text(&["--robots"], &[one_of("on|off", &["on", "off"])], |args: &mut A, value| {
            set(args, CrawlSetting::Robots(on_or_off(value)?))
        })
        .short("whether robots.txt is obeyed")
        .long(A::TEXTS.about_robots)
        .default("on"),
        Opt::text(&["--rate"], &[any("N")], |args: &mut A, value| {
            set(args, CrawlSetting::Rate(rate(value)?))
        })
        .short("requests per second to one host; 0: no limit")
        .long("The largest number of requests per second to one host, evenly spread: 20, or 0.5 for one in two seconds. With a unit, per minute or hour: 30/m, 100/h. 0: only the number of connections limits the rate.")
        .default(A::TEXTS.rate),
        Opt::text(&["--patience"], &[any("TIME")], |args: &mut A, value| {
            let time = seconds(value)?;
            retry(args, move |retry| retry.patience = time)
        })
        .short("longest time for all attempts at one URL")
        .long(A::TEXTS.about_patience)
        .default(A::TEXTS.patience),
        Opt::text(&["-A", "--user-agent"], &[any("TEXT")], |args: &mut A, value| {
            if value.is_empty() || value.bytes().any(|byte| byte.is_ascii_control()) {
                return Err("not a text for a header".to_owned());
            }
            set(args, CrawlSetting::UserAgent(value.to_owned()))
        })
        .short("the User-Agent of each request")
        .long("The User-Agent of each request. The word before its first / or blank is the name of the crawler in robots.txt.")
        .default(USER_AGENT),
    ];

    pub(crate) const RETRIES: &'static [Opt<A>] = &[
        Opt::text(&["--retries"], &[any("N")], |args: &mut A, value| {
            let retries = number(value)?;
            retry(args, move |retry| retry.attempts = NonZeroU32::MIN.saturating_add(retries))
        })
        .short("retries after a failure")
        .long(A::TEXTS.about_retries)
        .default(A::TEXTS.retries),
        Opt::text(&["--retry-delay"], &[any("TIME")], |args: &mut A, value| {
            let time = seconds(value)?;
            retry(args, move |retry| retry.first_pause = time)
        })
        .short("pause before the first retry")
        .long("The pause before the first retry. It doubles with each further retry, up to --retry-max-delay. A random part of up to one half is taken off each pause, so that hosts that failed together are not requested together.")
        .default("0.5"),
        Opt::text(&["--retry-max-delay"], &[any("TIME")], |args: &mut A, value| {
            let time = seconds(value)?;
            retry(args, move |retry| retry.longest_pause = time)
        })
        .short("longest pause between two retries")
        .long("The longest pause between two retries, if --retry-delay is not longer. A Retry-After of a server is never shortened. A host that answers 429 or 503 without Retry-After gets pauses of up to 60 seconds, or of this time if it is longer.")
        .default("2"),
    ];

    /// Not for checks, whose verdicts say what is asked again.
    pub(crate) const RETRY_ON: &'static [Opt<A>] = &[
        Opt::text(&["--retry-on"], &[any("LIST")], |args: &mut A, value| {
            let classes = classes(value)?;
            retry(args, move |retry| retry.classes = classes)
        })
        .short("failures after which a URL is requested again")
        .long("The failures after which a URL is requested again, separated by commas: timeout (also status 408), dns, connect, tls, proxy, broken (the connection was lost), incomplete (the body ended too early), throttled (429 and 503), 5xx (other 5xx statuses), 410; or all, or none. A failure that cannot pass is final in any case: a name that does not exist, a certificate that is not trusted, or an answer that is not HTTP.")
        .default("all"),
    ];

    pub(crate) const CONNECTIONS: &'static [Opt<A>] = &[
        Opt::text(&["-j"], &[any("N")], |args: &mut A, value| {
            let connections = number(value)?;
            transfer(args, move |transfer| transfer.connections = connections)
        })
        .short("connections to one host")
        .long("The largest number of connections to one host, and of requests to it at the same time. All hosts together have at most 900 connections, or N if N is larger; see --max-connections.")
        .default(A::TEXTS.connections),
        Opt::text(&["--max-connections"], &[any("N")], |args: &mut A, value| {
            let most = number(value)?;
            transfer(args, move |transfer| transfer.most = Some(most))
        })
        .short("connections to all hosts together")
        .long("The largest number of connections to all hosts together. A request waits until one of them is free.")
        .default("900"),
        Opt::text(&["--timeout"], &[any("TIME")], |args: &mut A, value| {
            set(args, CrawlSetting::Timeout(seconds(value)?))
        })
        .short("longest time for one request")
        .long("The longest time for one request, from its start to the end of the answer. The times of --connect-timeout and --handshake-timeout are part of it. The body of a download may take any time, as long as 30 KiB of it arrive in each such time, and something without longer pauses; otherwise it is continued later, as after a lost connection.")
        .default(A::TEXTS.timeout),
        Opt::text(&["--connect-timeout"], &[any("TIME")], |args: &mut A, value| {
            let time = seconds(value)?;
            transfer(args, move |transfer| transfer.connect = time)
        })
        .short("longest time to connect")
        .long("The longest time to connect to a server or proxy. The lookup of its name may take 10 seconds before.")
        .default("10"),
        Opt::text(&["--handshake-timeout"], &[any("TIME")], |args: &mut A, value| {
            let time = seconds(value)?;
            transfer(args, move |transfer| transfer.handshake = time)
        })
        .short("longest time for a TLS or proxy handshake")
        .long("The longest time for the handshakes of a new connection: TLS, and those of a proxy.")
        .default("10"),
        Opt::text(&["--idle-timeout"], &[any("TIME")], |args: &mut A, value| {
            let time = seconds(value)?;
            transfer(args, move |transfer| transfer.idle = Some(time))
        })
        .short("how long an unused connection is kept")
        .long("How long a connection without a request is kept open for the next request.")
        .default("4"),
        Opt::text(&["--keepalive-time"], &[any("TIME")], |args: &mut A, value| {
            let time = seconds(value)?;
            transfer(args, move |transfer| transfer.keep_alive = Some(time))
        })
        .short("send TCP keep-alive probes after this time")
        .long("How long a connection is unused before TCP keep-alive probes are sent on it, and the time between them. Without this option there are no probes."),
        Opt::text(&["--max-body"], &[any("BYTES")], |args: &mut A, value| {
            set(args, CrawlSetting::MaxBody(bytes(value)?))
        })
        .short("largest page; K, M and G are allowed")
        .long(A::TEXTS.about_max_body)
        .default("64M"),
        Opt::flag(&["--allow-private"], |args: &mut A| {
            args.crawl().add(CrawlSetting::AllowPrivate);
        })
        .short("let redirects lead to private addresses")
        .long(A::TEXTS.about_allow_private),
    ];

    pub(crate) const TLS: &'static [Opt<A>] = &[
        Opt::flag(&["-k", "--insecure"], |args: &mut A| args.crawl().tls.insecure = true)
            .short("accept any certificate")
            .long("Accept any certificate. Everyone between here and the server can then read and change the traffic."),
        Opt::text(&["--cacert"], &[file("FILE")], |args: &mut A, value| {
            trust_only(&mut args.crawl().tls, PathBuf::from(value));
            Ok(())
        })
        .short("trust only these certificates")
        .long("Trust the certificates in this PEM file and no others. Without this option and its variables, the authorities that Mozilla trusts are used, as compiled in. Those of the system are often in /etc/ssl/certs/ca-certificates.crt.")
        .env(&["CURL_CA_BUNDLE", "SSL_CERT_FILE"]),
    ];

    pub(crate) const PROXIES: &'static [Opt<A>] = &[
        Opt::text(&["-x", "--proxy"], &[any("URL")], |args: &mut A, value| {
            args.crawl().proxy = Some(value.to_owned());
            Ok(())
        })
        .short("connect through this proxy")
        .long("Connect through this proxy: http, https, socks5 or socks5h, with user:password@ if the proxy needs them. An empty URL means no proxy.")
        .env(&["http_proxy", "https_proxy", "all_proxy"]),
        Opt::text(&["--noproxy"], &[any("LIST")], |args: &mut A, value| {
            args.crawl().no_proxy = Some(value.to_owned());
            Ok(())
        })
        .short("connect to these hosts without the proxy")
        .long("Connect to these hosts without the proxy: names (with all names below them), addresses, blocks such as 10.0.0.0/8, or * for all hosts, separated by commas.")
        .env(&["no_proxy"]),
    ];
}

/// A number of requests per second, perhaps with a fraction, or per `/s`, `/m` or `/h`. 0: no limit.
fn rate(value: &str) -> Result<Option<Rate>, String> {
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
fn classes(value: &str) -> Result<BTreeSet<RetryClass>, String> {
    let named = |name: &str| {
        let class = RetryClass::ALL
            .into_iter()
            .find(|class| class.name() == name);
        class.ok_or_else(|| format!("there is no class {name:?}"))
    };
    match value {
        "all" => Ok(RetryClass::ALL.into_iter().collect()),
        "none" => Ok(BTreeSet::new()),
        list => list.split(',').map(named).collect(),
    }
}

fn set<A: Crawls>(args: &mut A, setting: CrawlSetting) -> Result<(), String> {
    args.crawl().add(setting);
    Ok(())
}

fn retry<A: Crawls>(
    args: &mut A,
    change: impl FnOnce(&mut RetryPolicy) + 'static,
) -> Result<(), String> {
    set(args, CrawlSetting::Retry(Box::new(change)))
}

fn transfer<A: Crawls>(
    args: &mut A,
    change: impl FnOnce(&mut Transfer) + 'static,
) -> Result<(), String> {
    set(args, CrawlSetting::Transfer(Box::new(change)))
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
