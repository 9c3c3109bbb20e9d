//! Log lines on standard error, as text or JSON. Each line goes through one place that hides credentials and tokens, and
//! makes visible what a terminal would act on: URLs and answers of servers are in these lines.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

use regex::Regex;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt as _};
use tracing_subscriber::{Layer as _, Registry};

use super::config::{LogConfig, LogFormat, LogLevel};
use plain::terminal;

/// Logs on standard error from now on. Does nothing if the program logs already.
pub fn start(config: LogConfig) {
    set_level(config.level);
    let lines = Lines {
        format: config.format,
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(lines)
        .with_timer(Clock)
        .with_ansi(false);
    // The level can change at any time, so it is asked at each event.
    let set = match config.format {
        LogFormat::Text => {
            let layer = layer.with_target(false).with_filter(AtLevel);
            tracing::subscriber::set_global_default(Registry::default().with(layer))
        }
        LogFormat::Json => {
            let layer = layer.json().flatten_event(true).with_current_span(false);
            let layer = layer.with_span_list(false).with_filter(AtLevel);
            tracing::subscriber::set_global_default(Registry::default().with(layer))
        }
    };
    // The only failure: somebody else logs already.
    drop(set);
}

/// Logs from this level on.
pub fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// The least important level that is logged.
static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Info as u8);

/// Lets through what is important enough.
struct AtLevel;

impl<S> Filter<S> for AtLevel {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        let needed = match *metadata.level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warn,
            Level::INFO => LogLevel::Info,
            Level::DEBUG => LogLevel::Debug,
            Level::TRACE => LogLevel::Trace,
        };
        // What libraries say to those who debug them is not for operators.
        let package = metadata.target().split("::").next();
        let is_own = package.is_some_and(|package| OWN.contains(&package));
        let least = if is_own {
            LogLevel::Trace
        } else {
            LogLevel::Warn
        };
        needed <= least && needed as u8 <= LEVEL.load(Ordering::Relaxed)
    }
}

/// The packages that tell operators something.
const OWN: [&str; 2] = ["store", "watch"];

/// Times in UTC with microseconds.
struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(w, "{:.6}", jiff::Timestamp::now())
    }
}

/// Writes the lines of log events.
#[derive(Clone, Copy)]
struct Lines {
    format: LogFormat,
}

impl<'w> MakeWriter<'w> for Lines {
    type Writer = Line;

    fn make_writer(&'w self) -> Line {
        Line {
            format: self.format,
        }
    }
}

/// Writes one line. Each event is written at once.
struct Line {
    format: LogFormat,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = clean(text.trim_end_matches('\n'), self.format);
        // That nobody reads the log is no reason to stop.
        let _ = io::stderr().lock().write_all(line.as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The line that is written: without secrets, and with one line end, the last character.
fn clean(text: &str, format: LogFormat) -> String {
    let masked = mask(text);
    let mut line = match format {
        LogFormat::Text => terminal::neutralise(&masked).into_owned(),
        LogFormat::Json => {
            let mut json = String::with_capacity(masked.len() + 1);
            for c in masked.chars() {
                match terminal::neutralise(c.encode_utf8(&mut [0; 4])) {
                    // All of these are in the basic plane. Writing to a string does not fail.
                    escaped if escaped.len() > c.len_utf8() => {
                        let _ = write!(json, "\\u{:04x}", u32::from(c));
                    }
                    _ => json.push(c),
                }
            }
            json
        }
    };
    line.push('\n');
    line
}

/// The text without credentials, user information of URLs, and tokens.
///
/// ```
/// use watch::log::mask;
///
/// assert_eq!(mask("GET https://joe:pw@example.org/?token=abc&x=1"), "GET https://***@example.org/?token=***&x=1");
/// assert_eq!(mask("Authorization: Bearer abc.def"), "Authorization: ***");
/// ```
pub fn mask(text: &str) -> Cow<'_, str> {
    // An expression that cannot be read hides everything; a test uses each of them.
    let Ok(secrets) = &*SECRETS else {
        return Cow::Borrowed("***");
    };
    let mut text = Cow::Borrowed(text);
    for (secret, shown) in secrets {
        if let Cow::Owned(masked) = secret.replace_all(&text, *shown) {
            text = Cow::Owned(masked);
        }
    }
    text
}

/// What is hidden, and what stands there instead.
static SECRETS: LazyLock<Result<Vec<(Regex, &str)>, regex::Error>> = LazyLock::new(|| {
    let secrets = [
        (USERINFO, "${1}***@"),
        (HEADER, "${1}***"),
        (SCHEME, "${1}***"),
        (PARAMETER, "${1}***"),
    ];
    let compiled = secrets.map(|(secret, shown)| Regex::new(secret).map(|secret| (secret, shown)));
    compiled.into_iter().collect()
});

/// `joe:secret` in `https://joe:secret@example.org/`
const USERINFO: &str = r#"(?i)([a-z][a-z0-9+.-]*://)[^/\s?#"\\]*@"#;
/// `Authorization: ...`, `Cookie: ...`
const HEADER: &str = r#"(?i)\b((?:proxy-)?authorization:\s*|(?:set-)?cookie:\s*)[^"\\\r\n]+"#;
/// `Bearer ...`, `Basic ...`
const SCHEME: &str = r"(?i)\b((?:bearer|basic|digest)\s+)[a-z0-9._~+/=-]{6,}";
/// `?token=...`
const PARAMETER: &str = r#"(?i)([?&;](?:[a-z0-9_.-]*(?:token|secret|password|passwd|api[_-]?key|access[_-]?key|signature|credential|session)[a-z0-9_.-]*|key|sig|auth|pw)=)[^&;#\s"\\]+"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        for (text, expected) in [
            ("nothing here", "nothing here"),
            ("https://joe@example.org/", "https://***@example.org/"),
            (
                "https://joe:p@ss@example.org/a@b",
                "https://***@example.org/a@b",
            ),
            (
                "see https://example.org/a@b?x=y@z",
                "see https://example.org/a@b?x=y@z",
            ),
            ("Cookie: a=b; c=d", "Cookie: ***"),
            ("proxy-authorization: Basic abc", "proxy-authorization: ***"),
            ("sent Bearer abcdef.ghi now", "sent Bearer *** now"),
            ("http://a/?key=1&b=2#c", "http://a/?key=***&b=2#c"),
            (
                "http://a/?b=2&X-Amz-Signature=1;x",
                "http://a/?b=2&X-Amz-Signature=***;x",
            ),
            ("http://a/?monkey=1", "http://a/?monkey=1"),
            ("postgres://u:p@db/x", "postgres://***@db/x"),
        ] {
            assert_eq!(mask(text), expected);
        }
    }

    #[test]
    fn a_line_stays_one_line() {
        let url = "http://a/\n2026 ERROR forged \u{1b}[31m\u{202e}\u{9b}";
        let line = clean(url, LogFormat::Text);
        assert_eq!(
            line,
            "http://a/\\n2026 ERROR forged \\u{1b}[31m\\u{202e}\\u{9b}\n"
        );
        let json = clean("{\"url\":\"\u{202e}\u{9b} ok\"}", LogFormat::Json);
        assert_eq!(json, "{\"url\":\"\\u202e\\u009b ok\"}\n");
        let value: serde_json::Value = serde_json::from_str(&json).expect("valid");
        assert_eq!(value["url"], "\u{202e}\u{9b} ok");
    }
}
