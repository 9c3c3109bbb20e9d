//! Whole files, and what is said about them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use jobs::{CatchUp, Overlap};

use super::*;
use verdict::life::{Ladder, Profile};

fn parse(text: &str) -> Result<Config, Vec<String>> {
    Config::parse(text, Path::new("dir"))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn errors(text: &str) -> Vec<String> {
    parse(text).expect_err(text)
}

fn loaded(text: &str) -> Result<Loaded, Vec<String>> {
    Loaded::parse(text, Path::new("dir/w.toml"))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// The defaults, with the path of the store as a file in `dir` has it.
fn defaults() -> Config {
    let mut config = Config::default();
    config.store.place = Path::new("dir/watch.db").into();
    config
}

#[test]
fn an_empty_file_has_the_defaults() {
    assert_eq!(parse(""), Ok(defaults()));
    assert_eq!(parse("[limits]\n[guard]\n"), Ok(defaults()));
}

#[test]
fn lists_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("auth"),
        "# key\nX-Key: secret1\njoe:pass word\n",
    )
    .expect("written");
    let text = r#"
[[host]]
match = "*.sec.gov"
rate = 10
connections = 0
headers = { Accept = "text/html" }
auth_file = "auth"
head = "never"
[[set]]
name = "docs"
urls = "urls.txt"
reread = "1h"
[[set]]
name = "site"
sitemap = "https://example.org/sitemap.xml"
[[schedule]]
name = "nightly"
cron = "15 2 * * *"
timezone = "Europe/Zurich"
overlap = "queue_one"
catch_up = "skip"
jitter = "5m"
job = { check = "docs" }
[[schedule]]
name = "iso"
cron = "@daily"
job = { find = { start = "https://example.org/", args = ["-name", "*.iso"] }, into_set = "x" }
[[schedule]]
name = "fetch"
cron = "*/10 * * * * *"
job = { fetch = "tickers.txt", template = "https://example.org/{}", into = "out" }
[[schedule]]
name = "map"
cron = "0 0 1 1 *"
job = { sitemap = "https://example.org/sitemap.xml", into_set = "x", timeout = "2h" }
"#;
    let config = Config::parse(text, folder.path()).expect("valid");
    let host = &config.hosts[0];
    assert_eq!(host.connections, Some(None));
    assert_eq!(
        format!("{:?}", host.identity),
        r#"["Accept", "X-Key", "Authorization"]"#
    );
    assert_eq!(
        config.sets[0].source,
        Source::File(folder.path().join("urls.txt"))
    );
    assert_eq!(config.sets[0].reread, Some(Duration::from_secs(3600)));
    let nightly = &config.schedules[0];
    assert_eq!(nightly.timezone.iana_name(), Some("Europe/Zurich"));
    assert_eq!(
        (nightly.overlap, nightly.catch_up),
        (Overlap::QueueOne, CatchUp::Skip)
    );
    assert_eq!(nightly.timeout, Some(Duration::from_secs(3600)));
    assert_eq!(config.schedules[3].timeout, Some(Duration::from_secs(7200)));
    let file = folder.path().join("watch.toml");
    let shown = Loaded::parse(text, &file).expect("valid").shown(false);
    assert!(!format!("{config:?}{shown}").contains("secret1"), "{shown}");
    // What is shown is the same configuration.
    let again = Config::parse(&shown, Path::new("")).expect(&shown);
    assert_eq!(again, config);
}

#[test]
fn profiles_are_defaults() {
    let text = "[policy]\nreport_after = '1h'\nprofile = 'eager'\n";
    let eager = parse(text).expect("valid");
    let mut rules = Profile::Eager.rules();
    rules.report_after = Duration::from_secs(3600);
    assert_eq!(eager.policy.rules, rules);
    assert_eq!(
        eager.limits.adaptive_timeout,
        Some(Duration::from_millis(800))
    );
    // A slow host is not a dead one: the limit of a request stays.
    assert_eq!(eager.limits.timeout, Some(Duration::from_secs(20)));
    let own = parse(&format!("{text}[limits]\ntimeout = 0\n")).expect("valid");
    assert_eq!(own.limits.timeout, None);
    let shown = loaded(text).expect("valid").shown(true);
    for line in [
        "report_after = \"1h\"  # dir/w.toml:2:1",
        "grace = \"0s\"  # profile eager",
        "report_count = 2  # default",
        "adaptive_timeout = \"800ms\"  # profile eager",
        "per_host_rate = 1.0  # default",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
}

#[test]
fn zero_is_no_limit() {
    let text = "[limits]\nconnections = 0\nper_host_connections = 0\nper_host_rate = 0\ntimeout = '0'\ndrain_timeout = '0s'\n[store]\nkeep = 0\n";
    let config = parse(text).expect("valid");
    let limits = &config.limits;
    assert_eq!(
        (limits.connections, limits.per_host_connections),
        (None, None)
    );
    assert_eq!(
        (limits.per_host_rate, limits.timeout, limits.drain_timeout),
        (None, None, None)
    );
    assert_eq!(config.store.keep, None);
}

#[test]
fn numbers_and_times_have_their_spellings() {
    let config = parse(
        "[limits]\nconnections = 1_000\nper_host_rate = 0.5\n[policy]\nrecheck_410 = ['500ms', '1.5h']\n[http]\nlisten = 'localhost:9400'\n",
    );
    let config = config.expect("valid");
    assert_eq!(config.limits.connections, NonZeroUsize::new(1000));
    assert_eq!(
        config.limits.per_host_rate,
        Some(courser::Rate::every(Duration::from_secs(2)))
    );
    let ladder = Ladder::new(Duration::from_millis(500), [Duration::from_secs(5400)]);
    assert_eq!(config.policy.rules.recheck_410, ladder);
    assert_eq!(config.http.listen, "127.0.0.1:9400".parse().expect("valid"));
}

#[test]
fn the_example_is_the_default() {
    let text = example();
    assert_eq!(parse(&text), Ok(defaults()), "{text}");
    // With all that is commented out, but what contradicts something else, the example is right too.
    let uncommented: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest)
                if !rest.starts_with(' ')
                    && !rest.starts_with("sitemap")
                    && !rest.starts_with("spool")
                    && !rest.contains("_file") =>
            {
                rest
            }
            _ => line,
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let config = parse(&uncommented).expect(&uncommented);
    let counts = [
        config.hosts.len(),
        config.sets.len(),
        config.schedules.len(),
    ];
    assert_eq!(counts, [1; 3]);
    for table in tables::TABLES {
        for key in table.keys() {
            let is_there = text.lines().any(|line| {
                line.trim_start_matches('#')
                    .starts_with(&format!("{key} = "))
            });
            assert!(is_there, "{key}");
        }
    }
}

#[test]
fn what_is_shown_is_the_same_configuration() {
    let text = "[limits]\nconnections = 0\nper_host_rate = 0.3\nuser_agent = 'a\"b'\n[policy]\nprofile = 'eager'\nprune_on = [404, 'nxdomain']\nrecheck_net = ['90s', '1500ms']\n[guard]\ncanaries = ['https://example.org/a']\nhost_flip = { max_hold = 0 }\n";
    let first = loaded(text).expect("valid");
    let shown = first.shown(true);
    let again = Config::parse(&shown, Path::new("")).expect(&shown);
    assert_eq!(again, first.config, "{shown}");
}

#[test]
fn all_errors_are_told_at_once() {
    let text = r#"connections = 3
[limit]
x = 1
[limits]
connections = -1
per_host_rat = 2
per_host_rate = "fast"
timeout = 20
adaptive = "yes"
lease = "1m"
[policy]
profile = "eagre"
alive_interval = ["90d", "7d"]
recheck_410 = []
gone_410 = { cuont = 4, span = "x" }
prune_on = [500]
[http]
names = ["https://a/"]
[store]
url = "postgres://joe:secret@db/x?colour=1"
[guard]
canaries = ["https://joe:secret@example.org/", "ftp://x/"]
[[set]]
urls = "a"
sitemap = "https://joe:secret@example.org/s.xml"
[[host]]
match = "a/b"
headers = { Cookie = "secret" }
auth_file = "missing"
"#;
    let expected = [
        "1:1: connections: a key outside of a table; it belongs into [http]",
        "2:2: limit: there is no such table; did you mean limits?",
        "5:15: limits.connections: -1 is out of range; allowed: 1 to 1000000, or 0: no limit",
        "6:1: limits.per_host_rat: there is no such key; did you mean per_host_rate?",
        "7:17: limits.per_host_rate: \"fast\" is not a number; allowed: requests a second, from 0.00001 to 1000000, or 0: no limit",
        "8:11: limits.timeout: 20 has no unit, did you mean \"20s\"?; allowed: a time such as \"500ms\", \"90s\", \"15m\", \"12h\" or \"7d\", or 0: no limit",
        "9:12: limits.adaptive: \"yes\" is not a truth value; allowed: true or false",
        "10:1: limits.lease: there is no such key here; it is one of [store]",
        "12:11: policy.profile: \"eagre\" is unknown, did you mean eager?; allowed: \"default\" or \"eager\"",
        "13:18: policy.alive_interval: the first time is longer than the second; allowed: the first and the longest time, such as [\"7d\", \"90d\"]",
        "14:15: policy.recheck_410: 0 times; allowed: 1 to 32 times, of which the last one repeats, such as [\"15m\", \"1h\", \"24h\"]",
        "15:14: policy.gone_410.cuont: there is no such key; did you mean count?",
        "15:32: policy.gone_410.span: \"x\" is no time; allowed: a time such as \"0s\", \"500ms\", \"90s\", \"15m\", \"12h\" or \"7d\"",
        "16:12: policy.prune_on: 500 is not 410, 404 or \"nxdomain\"; allowed: a list of 410, 404 and \"nxdomain\"",
        "18:9: http.names: \"https://a/\" is no host name; allowed: a list of host names, such as [\"watch.example.org\"]",
        "20:7: store.url: unknown option `colour`; allowed: \"sqlite:FILE\" or \"postgres://USER@HOST/DATABASE\"",
        "22:12: guard.canaries: a URL with credentials; they belong into auth_file of [[host]]; allowed: a list of http or https URLs without credentials",
        "23:1: set[0]: name is missing; allowed: 1 to 100 letters, digits and . _ -",
        "25:11: set[0].sitemap: a URL with credentials; they belong into auth_file of [[host]]; allowed: an http or https URL without credentials",
        "25:11: set[0].sitemap: a set has one source: urls or sitemap",
        "27:9: host[0].match: no pattern for hosts; allowed: a host such as \"example.org\", \"*.example.org\", \"https://example.org:8443\", or \"*\" for all",
        "28:22: host[0].headers.Cookie: secrets belong into auth_file, which takes lines such as NAME: VALUE",
        "29:13: host[0].auth_file: dir/missing: No such file or directory (os error 2)",
    ];
    let errors = errors(text);
    assert_eq!(errors, expected, "{}", errors.join("\n"));
}

#[test]
fn values_that_contradict_each_other_are_told() {
    for (text, expected) in [
        (
            "[http]\nlisten = '0.0.0.0:0'\n",
            "2:1: http.listen: others reach 0.0.0.0:0, and could read all that the page shows; listen at 127.0.0.1:PORT or [::1]:PORT, or set http.allow_remote",
        ),
        (
            "[http]\nnames = ['a.example']\n",
            "2:1: http.names: without http.allow_remote nobody else is answered",
        ),
        (
            "[limits]\nconnections = 1\n",
            "2:1: limits.connections: limits.per_host_connections (2) is more than limits.connections (1)",
        ),
        (
            "[limits]\nper_host_connections = 600\n",
            "2:1: limits.per_host_connections: limits.per_host_connections (600) is more than limits.connections (512)",
        ),
        (
            "[[host]]\nmatch = 'a'\nconnections = 513\n",
            "3:1: host[0].connections: 513 is more than limits.connections (512)",
        ),
        (
            "[[host]]\nmatch = 'a'\n[[host]]\nmatch = 'a'\n",
            "4:1: host[1].match: host[0] has the same hosts",
        ),
        (
            "[[set]]\nname = 'a'\n[[set]]\nname = 'a'\n",
            "4:1: set[1].name: there is another set a",
        ),
        (
            "[[set]]\nname = 'a'\nreread = '1h'\n",
            "3:1: set[0].reread: there is neither urls nor sitemap to read again",
        ),
        (
            "[store]\npassword_file = 'x'\n",
            "2:1: store.password_file: SQLite has no password",
        ),
        (
            "[[set]]\nname = 'docs'\n[[schedule]]\nname = 'n'\ncron = '@daily'\njob = { check = 'dosc' }\n",
            "6:1: schedule[0].job: there is no set dosc; did you mean docs?",
        ),
        (
            "[[set]]\nname = 'docs'\nurls = 'u'\n[[schedule]]\nname = 'n'\ncron = '@daily'\njob = { sitemap = 'http://a/', into_set = 'docs' }\n",
            "7:1: schedule[0].job: the set docs has a source of its own; each would remove what the other one adds",
        ),
    ] {
        assert_eq!(errors(text), [expected]);
    }
}

#[test]
fn bad_schedules_are_told_with_their_columns() {
    let schedule = |cron: &str, rest: &str| {
        let text = format!(
            "[[schedule]]\nname = 'n'\n{rest}\njob = {{ sitemap = 'http://a/', into_set = 'a' }}\ncron = {cron}\n"
        );
        errors(&text).join("\n")
    };
    for (cron, expected) in [
        ("'15 25 * * *'", "5:8: schedule[0].cron: \"15 25 * * *\": "),
        ("\"\"\"5/5 * * * *\"\"\"", "5:8: schedule[0].cron: "),
        (
            "'0 0 30 2 *'",
            "5:8: schedule[0].cron: \"0 0 30 2 *\": never fires",
        ),
        ("'* * *'", "5:"),
        ("'@dayly'", "5:8: schedule[0].cron: "),
        ("''", "5:8: schedule[0].cron: "),
        ("'0 0 * * * * 2030'", "5:"),
        ("5", "5:8: schedule[0].cron: not a text"),
    ] {
        let errors = schedule(cron, "");
        assert!(errors.starts_with(expected), "{cron}: {errors}");
        assert!(!errors.contains('\n'), "{errors}");
    }
    let zone = schedule("'@daily'", "timezone = 'Europe/Zurch'");
    assert!(zone.contains("did you mean Europe/Zurich?"), "{zone}");
}

#[test]
fn jobs_are_of_one_kind() {
    for (job, expected) in [
        ("{}", "needs one of check, find, sitemap"),
        (
            "{ check = 'a', sitemap = 'http://a/' }",
            "needs one of check",
        ),
        ("{ sitemap = 'http://a/' }", "sitemap needs into_set"),
        ("{ check = 'a', into = 'b' }", "into does not go with check"),
        ("{ fetch = 'a', into = 'b' }", "fetch needs template"),
        (
            "{ fetch = 'a', into = 'b', template = 'http://{}/' }",
            "the host has {}",
        ),
        (
            "{ fetch = 'a', into = 'b', template = 'http://a/' }",
            "{} does not stand there once",
        ),
        (
            "{ find = { args = [] }, into_set = 'a' }",
            "start is missing",
        ),
        ("'x'", "not a table"),
    ] {
        let text = format!("[[schedule]]\nname = 'n'\ncron = '@daily'\njob = {job}\n");
        let errors = errors(&text);
        assert!(
            errors.len() == 1 && errors[0].contains(expected),
            "{job}: {errors:?}"
        );
    }
}

#[test]
fn tables_of_the_wrong_kind_are_told() {
    for (text, expected) in [
        ("[[limits]]\n", "limits: not a table; write [limits]"),
        (
            "[host]\nmatch = 'a'\n",
            "host: not a list of tables; write [[host]]",
        ),
        ("set = [1]\n", "set[0]: not a list of tables; write [[set]]"),
    ] {
        let errors = errors(text);
        assert!(
            errors.len() == 1 && errors[0].ends_with(expected),
            "{errors:?}"
        );
    }
}

#[test]
fn malformed_files_are_refused_once() {
    let errors = errors("[limits]\nconnections = \nper_host_rate = 'x'\n");
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors[0].starts_with("2:") && errors[1].starts_with("3:17"),
        "{errors:?}"
    );
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = Loaded::read(&folder.path().join("a\nb")).expect_err("missing");
    assert!(
        missing.ends_with("a\\nb: No such file or directory (os error 2)"),
        "{missing}"
    );
    let long = folder.path().join("long");
    std::fs::write(&long, " ".repeat((4 << 20) + 1)).expect("written");
    let long = Loaded::read(&long).expect_err("long");
    assert!(long.ends_with("longer than 4 MiB"), "{long}");
}

/// The README shows what works.
#[test]
fn the_file_of_the_readme_is_accepted() {
    let readme = include_str!("../../../README.md");
    let after = readme.split_once("```toml\n").expect("a file in TOML").1;
    let file = after.split_once("```").expect("its end").0;
    let config = parse(file).expect("a good file");
    assert_eq!((config.sets.len(), config.schedules.len()), (2, 1));
}
